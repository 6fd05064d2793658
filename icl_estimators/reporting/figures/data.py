"""Observed data: the tokens as a strip, the transition matrix, losses over time, the concentration's likelihood."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from icl_estimators.reporting.marks import mark
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import (
    MUTED,
    SEQUENTIAL,
    WIDTH,
    LineEnd,
    figure_style,
    heat_map,
    label_line_ends,
    wrap_name,
)

__all__ = ["concentration_figure", "cumulative_figure", "matrix_figure", "strip_figure"]

Array = NDArray[np.float64]

_STATE_COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#0072B2", "#D55E00", "#999999", "#6B4C9A")
_PER_ROW, _ROWS = 200, 12
_NAMED = 24  # states up to which the strip has a key
_KEY_COLUMNS = 70  # characters that fit beside each other
_WRITTEN = 7  # states up to which a matrix has its numbers in its cells
_CURVES = 6
_LOOKS = {"alone": ("#0072B2", "-"), "pooled": ("#D55E00", "--")}
_PROFILES = {"alone": "each sequence alone", "pooled": "pooled"}


def state_colours(labels: list[str]) -> dict[str, tuple[float, float, float]]:
    """Return a colour for each state: distinct up to eight, an ordered scale beyond."""
    if len(labels) <= len(_STATE_COLOURS):
        return {label: to_rgb(colour) for label, colour in zip(labels, _STATE_COLOURS, strict=False)}
    steps = mpl.colormaps["viridis"](np.linspace(0.0, 1.0, len(labels)))
    return {label: (float(r), float(g), float(b)) for label, (r, g, b, _) in zip(labels, steps, strict=True)}


def strip_rows(series: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """Return what stands in each row of the strip: a name for its beginning, and its states.

    One sequence is broken into rows of up to 200 tokens; of several each has one row, cut off there.
    """
    by_sequence = [(f"{number:g}", rows) for number, rows in series.groupby("sequence", sort=False)]
    if len(by_sequence) > 1:
        return [
            (str(rows["id"].iloc[0]) if str(rows["id"].iloc[0]) not in ("", "nan") else number, list(rows["state"]))
            for number, rows in ((number, rows.iloc[:_PER_ROW]) for number, rows in by_sequence[:_ROWS])
        ]
    states = list(by_sequence[0][1]["state"])[: _PER_ROW * _ROWS]
    width = -(-len(states) // -(-len(states) // _PER_ROW))
    return [(f"{first + 1:,}", states[first : first + width]) for first in range(0, len(states), width)]


def strip_figure(results: Results) -> Figure:
    """Draw the first tokens as a strip of colours, one row for each sequence, or several of one long series."""
    labels = list(results.options["labels"])
    colours = state_colours(labels)
    rows = strip_rows(results.tables["series"])
    place = {label: index for index, label in enumerate(labels)}
    width = max(len(states) for _, states in rows)
    values = np.full((len(rows), width), np.nan)
    for row, (_, states) in enumerate(rows):
        values[row, : len(states)] = [place[str(state)] for state in states]
    scale = ListedColormap([colours[label] for label in labels])
    named = len(labels) <= _NAMED
    with figure_style():
        figure = Figure(figsize=(WIDTH, (1.5 if named else 1.0) + 0.24 * len(rows)))
        heights = [0.22, 0.24 * len(rows)] if named else [1.0]
        *key, axes = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        if named:
            _key(key[0], labels, scale)
        # Without lines between the tokens, which would hide them where there are hundreds.
        axes.pcolormesh(
            np.arange(width + 1) + 0.5,
            np.arange(len(rows) + 1) - 0.5,
            np.ma.masked_invalid(values),
            cmap=scale,
            vmin=-0.5,
            vmax=len(labels) - 0.5,
        )
        for row in range(1, len(rows)):
            axes.axhline(row - 0.5, color="white", linewidth=3.0)
        axes.set_yticks(range(len(rows)), [wrap_name(name, 16) for name, _ in rows], fontsize=8)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0.5, max(width, 2) + 0.5)
        axes.grid(False)
        axes.tick_params(axis="y", length=0)
        several = len(set(results.tables["series"]["sequence"])) > 1
        axes.set_xlabel("token" if several else "token, counted from the first of its row")
        axes.set_ylabel("sequence" if several else "first token")
    return figure


def _key(axes: Axes, labels: list[str], scale: ListedColormap) -> None:
    """Draw a cell of each state's colour with its name; a mesh, so that its colours are those of the strip."""
    size = len(labels)
    axes.pcolormesh(np.arange(size + 1), [0, 1], np.arange(size)[None], cmap=scale, vmin=-0.5, vmax=size - 0.5)
    axes.vlines(np.arange(1, size), 0, 1, colors="white", linewidth=3.0)
    long = size * max(map(len, labels)) > _KEY_COLUMNS
    axes.set_xticks(np.arange(size) + 0.5, [wrap_name(label, 18) for label in labels], rotation=90 if long else 0)
    axes.xaxis.tick_top()
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def matrix_figure(results: Results) -> Figure:
    """Draw the posterior mean of each transition probability, with the counts in the cells of a small matrix."""
    frame = results.tables["transitions"]
    labels = list(dict.fromkeys(frame["target"]))
    size = len(labels)
    table = frame.pivot(index="source", columns="target", values="estimate").reindex(index=labels, columns=labels)
    by_count = frame.pivot(index="source", columns="target", values="count").reindex(index=labels, columns=labels)
    counts = by_count.to_numpy(float)
    values = table.to_numpy(float)
    with figure_style():
        height = min(WIDTH, 1.6 + 0.55 * size) if size <= _WRITTEN else WIDTH * 0.85
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.add_subplot()
        mesh = heat_map(axes, values, SEQUENTIAL, 0.0, 1.0)
        if size <= _WRITTEN:
            for row, column in np.ndindex(values.shape):
                if np.isfinite(values[row, column]):
                    axes.text(
                        column + 0.5,
                        row + 0.5,
                        f"{values[row, column]:.2f}\n{counts[row, column]:,.0f}",
                        ha="center",
                        va="center",
                        fontsize=8,
                        color="white" if values[row, column] > 0.6 else "black",
                    )
        shown = range(size) if size <= 40 else range(0, size, -(-size // 20))
        axes.set_xticks([k + 0.5 for k in shown], [wrap_name(labels[k], 14) for k in shown])
        axes.set_yticks([k + 0.5 for k in shown], [wrap_name(labels[k], 18) for k in shown])
        if size > 6:
            axes.tick_params(axis="x", rotation=90)
        axes.tick_params(length=0)
        axes.set_xlabel("next state")
        axes.set_ylabel("current state")
        figure.colorbar(mesh, ax=axes, label="transition probability")
    return figure


def cumulative_rows(results: Results) -> dict[str, pd.DataFrame]:
    """Return the curves that are drawn, the finite ones of one kind: of windows, else pooled, else each alone."""
    frame = results.tables["cumulative"]
    finite = frame.groupby("estimator", sort=False)["difference"].agg(lambda values: np.isfinite(values).all())
    names = [str(name) for name, whole in finite.items() if whole]
    of_kinds = ([name for name in names if results.history_of(name) == kind] for kind in ("window", "pooled", "alone"))
    chosen = next((found for found in of_kinds if found), [])
    last = {name: abs(float(frame[frame["estimator"] == name]["difference"].iloc[-1])) for name in chosen}
    kept = sorted(chosen, key=last.__getitem__)[:_CURVES]
    return {name: frame[frame["estimator"] == name] for name in chosen if name in kept}


def cumulative_figure(results: Results) -> Figure:
    """Draw the sum of the loss differences from the reference so far."""
    curves = cumulative_rows(results)
    whose = {name: results.estimator_of(name) for name in curves}
    looks = results.looks(list(dict.fromkeys(whose.values())))
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.4))
        axes = figure.add_subplot()
        axes.axhline(0.0, color=MUTED, linewidth=0.9)
        ends = []
        for name, rows in curves.items():
            x, y = rows["prediction"].to_numpy(float), rows["difference"].to_numpy(float)
            look, shown = looks[whose[name]], results.display(name)
            (line,) = axes.plot(x, y, color=look.colour, linestyle=look.style, linewidth=1.4)
            mark(line, shown, x=x, estimate=y)
            ends.append(LineEnd(float(x[-1]), float(y[-1]), shown, look.colour))
        axes.margins(x=0.0)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlabel("predictions so far")
        axes.set_ylabel("log loss minus the reference's,\nsummed, nats")
        label_line_ends(axes, ends)
    return figure


def concentration_figure(results: Results) -> Figure:
    """Draw the log likelihood of the concentration below its maximum, with the estimate and its interval."""
    profile, fits = results.tables["concentration_profile"], results.tables["concentration"]
    fits = fits[(fits["criterion"] == "marginal_likelihood") & (fits["order"] == 1)].set_index("history")
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.9))
        axes = figure.add_subplot()
        for history, rows in profile.groupby("history", sort=False):
            colour, style = _LOOKS[str(history)]
            name = _PROFILES[str(history)] if len(fits) > 1 else "log likelihood"
            x, y = rows["concentration"].to_numpy(float), rows["log_likelihood_ratio"].to_numpy(float)
            (line,) = axes.plot(x, y, color=colour, linestyle=style, label=name)
            mark(line, name, x=x, estimate=y)
            estimate, low, high = (float(fits[column][str(history)]) for column in ("estimate", "ci_low", "ci_high"))
            _interval(axes, colour, estimate, low, high)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        near = profile[profile["log_likelihood_ratio"] > -12.0]["concentration"]
        axes.set_xlim(max(1e-3, float(near.min()) / 2), min(1e3, float(near.max()) * 2))
        axes.set_ylim(-12.0, 1.4)
        axes.set_xlabel("concentration α of the Dirichlet prior, log scale")
        axes.set_ylabel("log likelihood below\nits maximum, nats")
        if len(fits) > 1:
            axes.legend(loc="lower right", fontsize=9)
    return figure


def _interval(axes: Axes, colour: str, estimate: float, low: float, high: float) -> None:
    if np.isnan(low):
        return
    axes.plot([max(low, 1e-3), min(high, 1e3)], [0.6, 0.6], color=colour, linewidth=3.0, solid_capstyle="butt")
    if 0.0 < estimate < np.inf:
        axes.plot(estimate, 0.6, "o", color=colour, markersize=5, markeredgecolor="white")
