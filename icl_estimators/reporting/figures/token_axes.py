"""The axes of an attention matrix: a token at each tick, grey where causality masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

__all__ = ["token_axes"]

_MASKED = "#F0F0F0"
"""What causality masks is no share of 0."""


def token_axes(axes: Axes, labels: Sequence[str], *, size: float, every: int = 1) -> None:
    """Write the tokens beside the rows and below the columns of a heat map.

    Parameters
    ----------
    axes : Axes
    labels : sequence of str
        Of all positions; a dollar sign is a dollar sign.
    size : float
        Of the letters, in points.
    every : int
        Only every so many positions have a label.
    """
    places = np.arange(0, len(labels), every)
    names = list(labels)[::every]
    axes.set_xticks(places + 0.5, names, fontsize=size, rotation=90 if max(map(len, labels)) > 2 else 0)
    axes.set_yticks(places + 0.5, names, fontsize=size)
    for text in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        text.set_parse_math(False)
    axes.set_facecolor(_MASKED)
