"""Squared bias, variance and mean squared error against context length, a panel an estimator."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icl_estimators.reporting.figures.lines import context_axis, curve_of, draw_curves, line_ends
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import WIDTH, Look, figure_style, label_line_ends, plain_log_axis, wrap_name

__all__ = ["PARTS", "decomposition_figure", "decomposition_names"]

PARTS = {
    "mse": ("MSE", Look("#000000")),
    "bias_squared": ("bias²", Look("#D55E00")),
    "variance": ("variance", Look("#0072B2")),
    "training_variance": ("training variance", Look("#009E73", "--")),
}
"""What is drawn of the decomposition, by metric: label and look."""

_MOST = 10
_COLUMNS = 2


def decomposition_names(results: Results) -> list[str]:
    """Return whose decomposition is drawn: at most ten estimators, in the order of the tables."""
    known = set(results.tables["decomposition"]["estimator"])
    return [name for name in results.curves if name in known][:_MOST]


def decomposition_figure(results: Results) -> Figure:
    """Draw the parts of the mean squared error, log–log, with bands; all panels share their axes."""
    names = decomposition_names(results)
    n_rows = -(-len(names) // _COLUMNS)
    with figure_style():
        figure = Figure(figsize=(WIDTH, 0.5 + 1.6 * n_rows))
        grid = figure.subplots(n_rows, _COLUMNS, sharex=True, sharey=True, squeeze=False)
        panels = list(grid.flat)
        for axes, name in zip(panels, names, strict=False):
            axes.set_title(wrap_name(results.display(name), 42))
            context_axis(axes, results.length, "", minor=False)
            curves = []
            for metric, (label, look) in PARTS.items():
                rows = results.curve("decomposition", name, metric=metric)
                if len(rows):
                    curves.append(curve_of(rows, label, look))
            draw_curves(axes, curves, labels=False)
        _share_limits(panels[: len(names)])
        for axes in panels[: len(names)]:
            label_line_ends(axes, line_ends(axes), size=7.5)
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        figure.supxlabel("context length n (tokens read)", fontsize=9.5)
        figure.supylabel("expected squared error, summed over next tokens", fontsize=9.5)
    return figure


def _share_limits(panels: list[Axes]) -> None:
    """Give all panels the y-axis that holds every line, but no less than a thousandth of the highest."""
    values = np.concatenate([np.asarray(line.get_ydata(), float) for axes in panels for line in axes.get_lines()])
    high = values.max() * 1.25
    for axes in panels:
        axes.set_ylim(max(values.min() / 1.25, high * 1e-3), high)
        plain_log_axis(axes.yaxis, minor=False)
