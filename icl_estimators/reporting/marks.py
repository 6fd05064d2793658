"""What a drawn thing stands for: the series it belongs to, and its numbers, for whoever reads a figure by mouse or key.

A figure function says it with :func:`mark`; matplotlib carries the name through as the `id` of the SVG element.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.artist import Artist
from numpy.typing import ArrayLike, NDArray

__all__ = ["Mark", "mark", "mark_of"]

SomeArtist = TypeVar("SomeArtist", bound=Artist)


@dataclass(frozen=True, eq=False)
class Mark:
    """What an artist stands for.

    Attributes
    ----------
    series : str
        The name that the reader sees.
    kind : {"line", "dot", "band", "label"}
    x, estimate, low, high : ndarray or None
        The numbers of a line, in data coordinates; `low` and `high` are NaN where there is no interval. Of a dot on a
        row, as in a forest plot, `x` is the number and `estimate` the row.
    """

    series: str
    kind: str = "line"
    x: NDArray[np.float64] | None = None
    estimate: NDArray[np.float64] | None = None
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None


_MARKS: WeakKeyDictionary[Artist, Mark] = WeakKeyDictionary()
_COUNTS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # of a figure: an id is there once


def mark(
    artist: SomeArtist,
    series: str,
    kind: str = "line",
    *,
    x: ArrayLike | None = None,
    estimate: ArrayLike | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
) -> SomeArtist:
    """Say what an artist stands for, and return it; it must be part of a figure already.

    Parameters
    ----------
    artist : Artist
    series : str
        Things of one series are shown and hidden together.
    kind : {"line", "dot", "band", "label"}
    x, estimate, low, high : array_like, optional
        The numbers that a line shows.

    Raises
    ------
    ValueError
        If `artist` is in no figure.
    """
    figure = artist.get_figure()
    if figure is None:
        raise ValueError("mark an artist once it is part of a figure")
    columns = [None if values is None else np.asarray(values, dtype=np.float64) for values in (x, estimate, low, high)]
    _MARKS[artist] = Mark(series, kind, *columns)
    count = _COUNTS[figure] = _COUNTS.get(figure, 0) + 1
    artist.set_gid(f"{kind}-{re.sub(r'[^a-z0-9]+', '-', series.lower()).strip('-')}-{count}")
    return artist


def mark_of(artist: Artist) -> Mark | None:
    """Return what an artist stands for, None if nobody said it."""
    return _MARKS.get(artist)
