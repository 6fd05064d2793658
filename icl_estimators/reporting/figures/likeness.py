"""The distances between all pairs of estimators, as a matrix in which like ones stand together."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from icl_estimators.reporting.figures.forest import distances_to
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import SEQUENTIAL, WIDTH, figure_style, heat_map, wrap_name

__all__ = ["distance_matrix", "likeness_figure"]

_NUMBERS_UP_TO = 12


def distance_matrix(results: Results) -> tuple[list[str], NDArray[np.float64]]:
    """Return the estimators, like ones beside each other, and their mean total variation, shape (N, N)."""
    names = [name for name in results.curves if distances_to(results, name)]
    found = {name: distances_to(results, name) for name in names}
    matrix = np.array(
        [[0.0 if a == b else float(found[a][b]["estimate"]) if b in found[a] else np.nan for b in names] for a in names]
    )
    if len(names) > 2 and np.isfinite(matrix).all():
        flat = squareform(matrix, checks=False)
        order = leaves_list(optimal_leaf_ordering(linkage(flat, "average"), flat))
        names, matrix = [names[i] for i in order], matrix[np.ix_(order, order)]
    return names, matrix


def likeness_figure(results: Results) -> Figure:
    """Draw the matrix, with the distances in percent in its cells where there is room."""
    names, matrix = distance_matrix(results)
    size = len(names)
    with figure_style():
        figure = Figure(figsize=(WIDTH, 1.3 + 0.42 * size))
        axes = figure.add_subplot()
        high = float(np.nanmax(matrix)) or 1.0
        shown = 100.0 * np.where(np.eye(size, dtype=bool), np.nan, matrix)
        mesh = heat_map(axes, shown, SEQUENTIAL, 0.0, 100.0 * high)
        axes.set_aspect("auto")
        labels = [wrap_name(results.display(name), 30) for name in names]
        axes.set_yticks(np.arange(size) + 0.5, labels)
        axes.set_xticks(np.arange(size) + 0.5, [wrap_name(results.display(name), 26) for name in names], fontsize=8)
        axes.tick_params(axis="x", rotation=40 if size > 4 else 0)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right" if size > 4 else "center")
            label.set_rotation_mode("anchor" if size > 4 else "default")
        if size <= _NUMBERS_UP_TO:
            for row, column in np.argwhere(np.isfinite(shown)):
                value = shown[row, column]
                axes.text(
                    column + 0.5, row + 0.5, f"{value:.1f}", ha="center", va="center", fontsize=8.5,
                    color="white" if value > 55.0 * high else "black",
                )  # fmt: skip
        else:
            figure.colorbar(mesh, ax=axes, label="probability elsewhere, %")
    return figure
