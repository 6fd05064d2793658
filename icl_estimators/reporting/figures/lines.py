"""Curves along context length, with their intervals and names on the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from icl_estimators.reporting.marks import mark
from icl_estimators.reporting.style import LineEnd, Look, label_line_ends, plain_log_axis

__all__ = ["Curve", "context_axis", "curve_of", "draw_curves", "draw_level", "line_ends"]

Array = NDArray[np.float64]

_NOUGHT = 1e-12  # what is no larger is 0 up to rounding


@dataclass(frozen=True, eq=False)
class Curve:
    """An estimate along an axis, with its interval.

    Attributes
    ----------
    label : str
        What stands beside the line.
    look : Look
    x, estimate, low, high : ndarray
        The interval is NaN where there is none.
    """

    label: str
    look: Look
    x: NDArray[Any]
    estimate: Array
    low: Array
    high: Array


def curve_of(rows: pd.DataFrame, label: str, look: Look, *, x: str = "n", band: bool = True) -> Curve:
    """Return the curve of some rows; the band where there is one, else the pointwise interval."""
    low, high = rows["ci_low"].to_numpy(float), rows["ci_high"].to_numpy(float)
    if band and "band_low" in rows and rows["band_low"].notna().any():
        low, high = rows["band_low"].to_numpy(float), rows["band_high"].to_numpy(float)
    return Curve(label, look, rows[x].to_numpy(), rows["estimate"].to_numpy(float), low, high)


def draw_curves(
    axes: Axes, curves: Sequence[Curve], *, log: bool = True, labels: bool = True, extra: Sequence[LineEnd] = ()
) -> None:
    """Draw curves with shaded intervals; what has no place on a log axis is left out.

    Parameters
    ----------
    axes : Axes
        With the scale of its x-axis set.
    curves : sequence of Curve
    log : bool
        Whether the y-axis is logarithmic.
    labels : bool
        Whether each line's name stands beside its end.
    extra : sequence of LineEnd
        Lines that are there already and want a label too.
    """
    ends = list(extra)
    for curve in curves:
        shown = np.isfinite(curve.estimate) & ((curve.estimate > _NOUGHT) if log else True)
        if not shown.any():
            continue
        x, estimate = curve.x[shown], curve.estimate[shown]
        colour, style = curve.look
        marker = "o" if len(x) == 1 else None
        (line,) = axes.plot(x, estimate, color=colour, linestyle=style, marker=marker, label=curve.label)
        mark(line, curve.label, x=x, estimate=estimate, low=curve.low[shown], high=curve.high[shown])
        low = np.maximum(curve.low[shown], estimate * 1e-3) if log else curve.low[shown]
        band = axes.fill_between(x, low, curve.high[shown], color=colour, alpha=0.22, linewidth=0)
        mark(band, curve.label, "band")
        ends.append(LineEnd(float(x[-1]), float(estimate[-1]), curve.label, colour))
    if log:
        axes.set_yscale("log")
        values = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.get_lines()] or [np.ones(1)])
        values = values[np.isfinite(values)]
        axes.set_ylim(values.min() / 1.25, values.max() * 1.25)  # the lines decide, not a wide band at its end
        plain_log_axis(axes.yaxis)
    if labels:
        label_line_ends(axes, ends)


def line_ends(axes: Axes) -> list[LineEnd]:
    """Return where the labelled lines of a panel end, to be labelled once its limits are final."""
    ends = []
    for line in axes.get_lines():
        x, y = (np.asarray(values, float) for values in line.get_data())
        ends.append(LineEnd(float(x[-1]), float(y[-1]), str(line.get_label()), str(line.get_color())))
    return ends


def draw_level(axes: Axes, value: float, label: str, colour: str, x: float) -> LineEnd:
    """Draw a dotted horizontal line and return its end, for a label."""
    mark(axes.axhline(value, color=colour, linestyle=":", linewidth=1.2, label=label), label)
    return LineEnd(x, value, label, colour)


def context_axis(axes: Axes, length: int, label: str = "context length n (tokens read)", *, minor: bool = True) -> None:
    """Make the x-axis that of context lengths 1 … T, logarithmic."""
    axes.set_xscale("log")
    axes.set_xlim(1, max(2, length))
    plain_log_axis(axes.xaxis, minor=minor)
    axes.set_xlabel(label)
