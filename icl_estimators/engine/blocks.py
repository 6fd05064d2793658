"""Dividing the chains of a study into units that are summarised together, and into blocks of work."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["UNIT", "blocks", "unit_size"]

UNIT = 50
"""Chains that are summarised together; summaries are merged in chain order."""

# What an estimator is given at once: large enough to pay for a call, small in memory.
_BLOCK_SEQUENCES = 2000
_BLOCK_CELLS = 600_000  # probabilities: as many sequences at K = 3 and T = 100
_UNIT_CELLS = 6_000_000


def unit_size(sequences_per_chain: int, cells: int = 300) -> int:
    """Return how many chains are summarised together: :data:`UNIT`, or fewer if their sequences need much memory.

    Parameters
    ----------
    sequences_per_chain : int
        S.
    cells : int
        T·K, probabilities predicted for one sequence.

    Examples
    --------
    >>> unit_size(64), unit_size(1000)
    (50, 20)
    """
    return max(1, min(UNIT, _UNIT_CELLS // (sequences_per_chain * cells)))


def blocks(n_chains: int, sequences_per_chain: int, cells: int = 300) -> Iterator[range]:
    """Divide chains 0 … R − 1 into blocks of work, each a whole number of units.

    The division depends only on the design, so that results do not depend on the number of workers. Parameters as for
    :func:`unit_size`.

    Examples
    --------
    >>> [len(block) for block in blocks(450, 10)]
    [200, 200, 50]
    """
    unit = unit_size(sequences_per_chain, cells)
    sequences = min(_BLOCK_SEQUENCES, _BLOCK_CELLS // cells)
    size = max(1, sequences // (unit * sequences_per_chain)) * unit
    for first in range(0, n_chains, size):
        yield range(first, min(first + size, n_chains))
