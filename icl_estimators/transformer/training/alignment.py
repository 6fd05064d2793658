"""Where matrices start in memory. This decides the last bits of products, and so which runs may share a computation."""

from __future__ import annotations

__all__ = ["CACHE_LINE", "may_share"]

CACHE_LINE = 16
"""float32 numbers in a line of a processor's cache."""


def may_share(d_model: int) -> bool:
    """Return whether training runs of this width keep the same bits when they are computed side by side.

    The order in which a matrix product adds up may depend on where in a line of the cache its matrices start. Where
    rows fill whole lines, that is the same for every run.

    Examples
    --------
    >>> may_share(64), may_share(30)
    (True, False)
    """
    return d_model % CACHE_LINE == 0
