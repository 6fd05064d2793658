"""A trained model's folded matrices beside the explicit construction's, in one basis and on one colour scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icl_estimators.reporting.figures.attention import state_label
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import (
    DIVERGING,
    WIDTH,
    LineEnd,
    figure_style,
    heat_map,
    label_line_ends,
    line_looks,
)

__all__ = ["circuit_figure", "circuit_names", "distance_figure", "twin"]

_MATRICES = {
    "S1": "layer 1\nscores S¹",
    "G": "layer 2\nscores G",
    "direct": "logits from\nthe position",
    "induction": "logits from\nlayer 2",
}
_GROUPS = {"score": ("S1", "G"), "logit": ("direct", "induction")}  # what has a unit in common shares a scale
_MOST_NUMBERS = 8  # features up to which the values are written into the cells


def circuit_names(results: Results) -> list[str]:
    """Return the trained models of circuit.csv; the constructions beside them are not among them."""
    known = list(dict.fromkeys(results.tables["circuit"]["estimator"]))
    return [name for name in known if twin(name) in known]


def twin(name: str) -> str:
    """Return what the construction nearest to a model is called in circuit.csv."""
    return f"construction nearest {name}"


def circuit_figure(results: Results, name: str) -> Figure:
    """Draw the four matrices of a model in the upper row, the construction's in the lower.

    Features are the token block, A B …, then the scratch block, A′ B′ …: what layer 1 read before the position. Scores
    share one colour scale and logits another, symmetric about 0, the same for the model and the construction.
    """
    frame = results.tables["circuit"]
    n_states = int(results.options["states"])
    columns = list(_MATRICES)
    with figure_style():
        figure = Figure(figsize=(WIDTH, 4.4))
        grid = figure.subplots(2, len(columns), width_ratios=[1, 2, 1, 1], squeeze=False)
        for unit, group in _GROUPS.items():
            values = {(who, matrix): _matrix(frame, who, matrix) for who in (name, twin(name)) for matrix in group}
            limit = max(float(np.abs(matrix).max()) for matrix in values.values()) or 1.0
            mesh: Any = None
            for (who, matrix), cells in values.items():
                axes = grid[int(who != name), columns.index(matrix)]
                mesh = heat_map(axes, cells, DIVERGING, -limit, limit)
                _feature_axes(axes, cells, n_states, limit)
            places = [grid[row, columns.index(matrix)] for row in (0, 1) for matrix in group]
            bar = figure.colorbar(mesh, ax=places, orientation="horizontal", aspect=30, shrink=0.8, pad=0.03)
            bar.outline.set_visible(False)
            bar.ax.tick_params(labelsize=7.5)
            bar.set_label(unit, fontsize=8)
        for axes, title in zip(grid[0], _MATRICES.values(), strict=True):
            axes.set_title(title, fontsize=8.5)
        grid[0, 0].set_ylabel(name if len(name) <= 24 else f"{name[:23]}…", labelpad=8)
        grid[1, 0].set_ylabel("construction", labelpad=8)
    return figure


def _matrix(frame: pd.DataFrame, name: str, matrix: str) -> np.ndarray[Any, Any]:
    rows = frame[(frame["estimator"] == name) & (frame["matrix"] == matrix)]
    values = np.zeros((int(rows["row"].max()) + 1, int(rows["column"].max()) + 1))
    values[rows["row"].astype(int), rows["column"].astype(int)] = rows["value"]
    return values


def _features(count: int, n_states: int) -> list[str]:
    tokens = [state_label(str(state), n_states) for state in range(n_states)]
    return (tokens + [f"{token}′" for token in tokens])[:count]


def _feature_axes(axes: Axes, values: np.ndarray[Any, Any], n_states: int, limit: float) -> None:
    n_rows, n_columns = values.shape
    axes.set_yticks(np.arange(n_rows) + 0.5, _features(n_rows, n_states), fontsize=7.5)
    axes.set_xticks(np.arange(n_columns) + 0.5, _features(n_columns, n_states), fontsize=7.5)
    if n_rows > _MOST_NUMBERS:
        return
    for (row, column), value in np.ndenumerate(values):
        if abs(value) >= 0.05 * limit:
            colour = "white" if abs(value) > 0.6 * limit else "black"
            number = f"{value:.1f}".replace("-", "−")
            axes.text(column + 0.5, row + 0.5, number, ha="center", va="center", fontsize=6, color=colour)


def distance_figure(results: Results, name: str) -> Figure:
    """Draw both layers' scores by relative distance, for the model and the construction."""
    frame = results.tables["circuit"]
    looks = line_looks([name, "construction"])
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.7))
        panels = figure.subplots(1, 2, sharey=True)
        ends: list[list[LineEnd]] = [[], []]
        for axes, own, matrix, title in zip(panels, ends, ("r1", "r2"), ("layer 1", "layer 2"), strict=True):
            for who, label in ((twin(name), "construction"), (name, name)):
                values = _matrix(frame, who, matrix)[0]
                distance = np.arange(len(values))
                colour = looks[label].colour
                axes.plot(distance, values, color=colour, linewidth=1.2, label=label, marker="o", markersize=2)
                own.append(LineEnd(float(distance[-1]), float(values[-1]), label, colour))
            axes.set_title(title)
            axes.set_xlabel("relative distance (tokens back)")
        for axes, own in zip(panels, ends, strict=True):  # once the shared axis has its final limits
            label_line_ends(axes, own, size=8)
        panels[0].set_ylabel("score added, median 0")
    return figure
