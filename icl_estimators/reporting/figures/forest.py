"""Likeness and regret side by side: which rule the model is like, and how far everyone is from Bayes."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icl_estimators.reporting.marks import mark
from icl_estimators.reporting.results import Results, records
from icl_estimators.reporting.style import MUTED, WIDTH, figure_style, plain_log_axis, wrap_name

__all__ = ["distances_to", "forest_figure", "forest_names"]

_ZERO = 1e-12
_THICK, _THIN = 2.6, 1.2


def distances_to(results: Results, subject: str, measure: str = "total_variation") -> dict[str, dict[str, Any]]:
    """Return the rows of likeness.csv between `subject` and each other estimator, averaged over n."""
    if "likeness" not in results:
        return {}
    frame = results.tables["likeness"]
    frame = frame[(frame["context_length"] == "mean") & (frame["measure"] == measure)]
    found = {}
    for row in records(frame):
        pair = (row["estimator"], row["other"])
        if pair[0] == subject:
            found[str(pair[1])] = row
        elif pair[1] == subject and measure == "total_variation":  # symmetric: one row for a pair
            found[str(pair[0])] = row
    return found


def forest_names(results: Results) -> list[str]:
    """Return the estimators of the figure: the subject, then the others, the most like it first."""
    subject = results.subject
    distances = distances_to(results, subject) if subject else {}
    others = [name for name in results.curves if name != subject]
    if distances:
        others.sort(key=lambda name: float(distances[name]["estimate"]) if name in distances else math.inf)
    return ([subject] if subject else []) + others


def forest_figure(results: Results) -> Figure:
    """Draw the distance of each estimator from the model, and its regret on a log axis; infinite ones at the edge.

    Without a model, or without distances, only the regret is drawn.
    """
    subject = results.subject
    names = forest_names(results)
    distances = distances_to(results, subject) if subject else {}
    regrets = {name: results.at("risk", name, "mean", metric=results.headline_metric) for name in names}
    looks = results.looks()
    with figure_style():
        figure = Figure(figsize=(WIDTH, 0.95 + 0.37 * len(names)))
        panels = list(figure.subplots(1, 2 if distances else 1, sharey=True, squeeze=False)[0])
        for axes in panels:
            axes.grid(False, axis="y")
            axes.set_ylim(len(names) - 0.45, -0.55)
            axes.tick_params(axis="y", length=0)
        shown = {name: (results.display(name), looks[name].colour) for name in names}
        if distances:
            _distances(panels[0], names, subject, distances, shown)
        _regrets(panels[-1], names, subject, regrets, shown)
        panels[-1].set_xlabel(
            {"regret_nats": "mean regret over Bayes, nats"}.get(results.headline_metric, "mean KL from the truth, nats")
        )
        panels[0].set_yticks(range(len(names)), [wrap_name(results.display(name), 30) for name in names])
        for tick, name in zip(panels[0].get_yticklabels(), names, strict=True):
            tick.set_fontweight("bold" if name == subject else "normal")
    return figure


def _mark(
    axes: Axes, place: int, row: dict[str, Any], look: tuple[str, str], *, model: bool, scale: float = 1.0
) -> None:
    """Draw an estimate on its row, with its interval; `look` is the series' name and colour."""
    series, colour = look
    estimate, low, high = (scale * float(row[field]) for field in ("estimate", "ci_low", "ci_high"))
    width = _THICK if model else _THIN
    if math.isfinite(low):
        (line,) = axes.plot([low, high], [place, place], color=colour, linewidth=width, solid_capstyle="butt")
        mark(line, series, "band")
    (dot,) = axes.plot(estimate, place, "o", color=colour, markersize=6.5 if model else 4.5)
    mark(dot, series, "dot", x=[estimate], estimate=[place], low=[low], high=[high])


def _distances(
    axes: Axes, names: list[str], subject: str | None, rows: dict[str, Any], looks: dict[str, tuple[str, str]]
) -> None:
    axes.set_xlabel("probability that lies elsewhere\nthan in the model, %")
    for place, name in enumerate(names):
        if name in rows:
            _mark(axes, place, rows[name], looks[name], model=False, scale=100.0)
        elif name == subject:
            axes.annotate("0, by definition", (0, place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_xlim(left=0.0)


def _regrets(
    axes: Axes, names: list[str], subject: str | None, rows: dict[str, Any], looks: dict[str, tuple[str, str]]
) -> None:
    drawn = [float(row["estimate"]) for row in rows.values() if _ZERO < float(row["estimate"]) < math.inf]
    axes.set_xscale("log")
    low, high = (min(drawn) / 1.6, max(drawn) * 1.8) if drawn else (0.01, 1.0)
    axes.set_xlim(low, high)
    plain_log_axis(axes.xaxis)
    for place, name in enumerate(names):
        value = float(rows[name]["estimate"])
        colour = looks[name][1]
        if _ZERO < value < math.inf:
            _mark(axes, place, rows[name], looks[name], model=name == subject)
        elif math.isinf(value):
            axes.plot(high, place, ">", color=colour, markersize=6, clip_on=False)
            axes.annotate("∞", (high, place), (-12, 0), textcoords="offset points", ha="right", va="center", fontsize=9)
        elif abs(value) <= _ZERO:
            axes.annotate(
                "0, by definition",
                (low, place),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=MUTED,
            )
