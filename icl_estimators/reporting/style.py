"""One look for every figure: colours that colour-blind readers can tell apart, labels on the lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

__all__ = ["figure_style", "label_line_ends", "line_looks"]

# Okabe & Ito (2008); yellow is left out, too faint on white.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B4C9A", "#7F7F7F")
_FIXED = {
    "transformer": "#0072B2",
    "add-one": "#000000",
    "bayes": "#000000",
    "bigram": "#E69F00",
    "construction": "#D55E00",
    "construction-softmax": "#CC79A7",
    "construction-softmax:direct_path=false": "#009E73",
    "unigram": "#56B4E9",
    "uniform": "#7F7F7F",
}
_RC: Any = {
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "svg.fonttype": "path",
    "svg.hashsalt": "icl-estimators",
    "axes.unicode_minus": True,
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw without a display in the project's style, and leave matplotlib as it was."""
    with mpl.rc_context(_RC):
        yield


def line_looks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return (colour, line style) by estimator; the known ones always look the same."""
    looks: dict[str, tuple[str, str]] = {}
    spare = [colour for colour in _PALETTE if colour not in {_FIXED.get(name) for name in names}] or list(_PALETTE)
    unknown = 0
    for name in names:
        if name in _FIXED:
            looks[name] = _FIXED[name], "-"
        else:
            looks[name] = spare[unknown % len(spare)], ("-", "--", ":", "-.")[unknown // len(spare) % 4]
            unknown += 1
    return looks


def label_line_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]], *, gap: float = 0.045) -> None:
    """Write each line's name beside its end, pushed apart so that none overlaps.

    Parameters
    ----------
    axes : Axes
        With its final limits and scales.
    ends : sequence of (x, y, name, colour)
        In data coordinates.
    gap : float
        Least distance of two labels, as a share of the axes' height.
    """
    to_axes = axes.transData + axes.transAxes.inverted()
    placed = sorted((*to_axes.transform((x, y)), name, colour) for x, y, name, colour in ends)
    placed.sort(key=lambda item: item[1])
    heights = np.array([item[1] for item in placed])
    for _ in range(200):  # relax: neighbours that are too close push each other apart
        for low in range(len(heights) - 1):
            lack = gap - (heights[low + 1] - heights[low])
            if lack > 1e-9:
                heights[low] -= lack / 2
                heights[low + 1] += lack / 2
    for (x, y, name, colour), height in zip(placed, heights, strict=True):
        axes.annotate(
            name,
            xy=(x, y),
            xycoords="axes fraction",
            xytext=(1.03, height),
            textcoords="axes fraction",
            color=colour,
            va="center",
            fontsize=9,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "alpha": 0.6, "shrinkA": 0, "shrinkB": 2},
        )
