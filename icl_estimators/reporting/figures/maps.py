"""What the model predicts by the counts of a prefix: a map of pseudo-counts, and the simplex."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import DIVERGING, MUTED, WIDTH, figure_style

__all__ = ["map_figure", "simplex_figure"]

Array = NDArray[np.float64]

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
_COLOURS = {"frequency": "#9A9A9A", "add-one": "#000000", "model": "#0072B2"}


def map_figure(results: Results, name: str) -> Figure:
    """Draw α̂ by context length and visits, white at 1, with the contour where it is 1; too few prefixes stay blank."""
    frame = results.tables["pseudo_count_map"]
    frame = frame[frame["estimator"] == name]
    table = frame.pivot(index="visits", columns="context_length", values="estimate").sort_index()
    known = table.notna()
    table = table.loc[known.any(axis=1), known.any(axis=0)]  # lengths and visits that too few prefixes have
    values = table.to_numpy(float)
    drawn = np.where(np.isfinite(values) & (values > 0), values, np.nan)
    reach = float(np.nanmax(np.abs(np.log(drawn)))) if np.isfinite(drawn).any() else 1.0
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.9))
        axes = figure.add_subplot()
        norm = LogNorm(np.exp(-reach), np.exp(reach))
        mesh = axes.pcolormesh(
            np.ma.masked_invalid(drawn), cmap=DIVERGING, norm=norm, edgecolors="white", linewidth=0.7
        )
        for row, column in np.argwhere(np.isfinite(drawn)):
            strong = abs(np.log(drawn[row, column])) > 0.62 * reach
            axes.text(
                column + 0.5, row + 0.5, _short(drawn[row, column]), ha="center", va="center", fontsize=7.5,
                color="white" if strong else "black",
            )  # fmt: skip
        _contour(axes, drawn)
        axes.set_xticks(np.arange(drawn.shape[1]) + 0.5, [f"{n:g}" for n in table.columns])
        axes.set_yticks(np.arange(drawn.shape[0]) + 0.5, [f"{v:g}" for v in table.index])
        axes.tick_params(length=0)
        axes.grid(False)
        axes.set_xlabel("context length n (tokens read)")
        axes.set_ylabel("visits to the current token")
        bar = figure.colorbar(mesh, ax=axes, label="pseudo-count α̂, log scale")
        bar.ax.minorticks_off()
        ticks = [tick for tick in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if np.exp(-reach) <= tick <= np.exp(reach)]
        bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    return figure


def _contour(axes: Axes, values: Array) -> None:
    """Draw the boundary between cells below and above 1."""
    above = np.where(np.isfinite(values), np.sign(np.log(values)), 0.0)
    for row, column in np.ndindex(values.shape):
        for step_row, step_column in ((0, 1), (1, 0)):
            other = row + step_row, column + step_column
            if other[0] < values.shape[0] and other[1] < values.shape[1] and above[row, column] * above[other] < 0:
                x = [column + step_column, column + 1]
                y = [row + step_row, row + 1]
                axes.plot(x, y, color="black", linewidth=1.8, solid_capstyle="round")


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


def simplex_figure(results: Results, name: str) -> Figure:
    """Draw, for each vector of counts, the frequency, add-one and the model, joined; the current token is on top.

    Only K = 3; the other two states are in the order of their labels.
    """
    frame = results.tables["simplex"]
    frame = frame[frame["estimator"] == name]
    visits = sorted(int(v) for v in frame["visits"].unique())
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.75))
        for axes, n in zip(figure.subplots(1, len(visits), squeeze=False)[0], visits, strict=True):
            _triangle(axes, frame[frame["visits"] == n], n)
            axes.set_title(f"{n} visit{'s' if n > 1 else ''}")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _triangle(axes: Axes, rows: pd.DataFrame, visits: int) -> None:
    outline = np.vstack([_CORNERS, _CORNERS[:1]])
    axes.plot(*outline.T, color=MUTED, linewidth=0.9)
    counts, predicted = _turned(rows)
    frequency = counts / visits
    add_one = (counts + 1.0) / (visits + 3.0)
    points = {"frequency": frequency @ _CORNERS, "add-one": add_one @ _CORNERS, "model": predicted @ _CORNERS}
    for a, b in zip(points["frequency"], points["add-one"], strict=True):
        axes.plot([a[0], b[0]], [a[1], b[1]], color=_COLOURS["frequency"], linewidth=0.5)
    for a, b in zip(points["add-one"], points["model"], strict=True):
        axes.plot([a[0], b[0]], [a[1], b[1]], color=_COLOURS["model"], linewidth=0.9)
    size = 5.0 if visits < 5 else 3.2
    for label, place in points.items():
        axes.plot(*place.T, "o", color=_COLOURS[label], markersize=size, label=label, linestyle="none")
    axes.set_aspect("equal")
    axes.axis("off")
    for corner, text, side in zip(_CORNERS, ("other", "other", "current token"), ("top", "top", "bottom"), strict=True):
        axes.annotate(
            text, corner, (0, -4 if side == "top" else 4), textcoords="offset points", ha="center", va=side, fontsize=8,
            color=MUTED,
        )  # fmt: skip


def _turned(rows: pd.DataFrame) -> tuple[Array, Array]:
    """Return counts and predictions with the current token last, averaged over which state it is."""
    sums: dict[tuple[int, ...], tuple[Array, float]] = {}
    for _, cell in rows.groupby(["current_token", "counts"]):
        current, counts = int(cell["current_token"].iloc[0]), cell["counts"].iloc[0]
        order = [*(state for state in range(3) if state != current), current]
        vector = tuple(int(part) for part in np.array(str(counts).split())[order])
        law = cell.sort_values("token")["estimate"].to_numpy(float)[order]
        weight = float(cell["n_prefixes"].iloc[0])
        total, number = sums.get(vector, (np.zeros(3), 0.0))
        sums[vector] = (total + weight * law, number + weight)
    vectors = sorted(sums)
    return np.array(vectors, float), np.array([sums[vector][0] / sums[vector][1] for vector in vectors])
