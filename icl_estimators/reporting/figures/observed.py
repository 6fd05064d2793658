"""Log loss on observed sequences."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from icl_estimators.reporting.marks import mark
from icl_estimators.reporting.results import Results, records
from icl_estimators.reporting.style import WIDTH, figure_style, wrap_name

__all__ = ["log_loss_figure"]


def log_loss_figure(results: Results) -> Figure:
    """Draw each estimator's mean log loss, the lowest first, with its interval where there is one."""
    rows = results.tables["risk"].query("metric == 'log_loss_nats'")
    rows = rows[np.isfinite(rows["estimate"])].sort_values("estimate", kind="stable")
    names = results.options["estimators"]
    looks = results.looks(names)
    with figure_style():
        figure = Figure(figsize=(WIDTH, 0.7 + 0.42 * max(3, len(rows))))
        axes = figure.add_subplot()
        for place, row in enumerate(records(rows)):
            colour = looks[results.estimator_of(str(row["estimator"]))].colour
            (dot,) = axes.plot(row["estimate"], place, "o", color=colour, markersize=5)
            name, value = results.display(str(row["estimator"])), row["estimate"]
            mark(dot, name, "dot", x=[value], estimate=[place], low=[row["ci_low"]], high=[row["ci_high"]])
            if np.isfinite(row["ci_low"]):
                (line,) = axes.plot([row["ci_low"], row["ci_high"]], [place, place], color=colour, linewidth=1.6)
                mark(line, name, "band")
        axes.set_yticks(range(len(rows)), [wrap_name(results.display(name), 44) for name in rows["estimator"]])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel("log loss per prediction, nats")
    return figure
