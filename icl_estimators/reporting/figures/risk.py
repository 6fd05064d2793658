"""KL, regret and the share of infinite KL against context length."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icl_estimators.readout_floor import readout_floor
from icl_estimators.reporting.figures.lines import Curve, context_axis, curve_of, draw_curves, draw_level
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import MUTED, WIDTH, LineEnd, Look, figure_style

__all__ = ["floor_applies", "infinite_figure", "infinite_names", "kl_figure", "regret_figure", "regret_names"]

_FLOOR = "softmax read-out floor"


def floor_applies(results: Results) -> bool:
    """Whether someone's logits are linear in what the attention gathered: the floor is theirs."""
    softmax = {*results.run.get("gamma", {}), *results.run.get("nearest_construction", {})}
    softmax |= {recipe for recipe, runs in results.recipes.items() if softmax.issuperset(runs)}
    return not softmax.isdisjoint(results.curves)


def infinite_names(results: Results) -> list[str]:
    """Return the estimators whose KL is infinite with positive probability at some context length."""
    risk = results.tables["risk"]
    some = risk[(risk["metric"] == "p_infinite") & (risk["estimate"] > 0)]["estimator"].unique()
    return [name for name in results.curves if name in some]


def regret_names(results: Results) -> list[str]:
    """Return the estimators with a regret that can be drawn: above 0 and finite somewhere."""
    regret = results.tables["risk"].query("metric == 'regret_nats' and context_length != 'mean'")
    some = regret[np.isfinite(regret["estimate"]) & (regret["estimate"] > 0)]["estimator"].unique()
    return [name for name in results.curves if name in some and name not in results.bayes]


def kl_figure(results: Results) -> Figure:
    """Draw KL to the truth against context length, log–log, with bands.

    Where an estimator's KL is infinite with positive probability its mean is infinite: its line is the mean over the
    sequences where it is finite, dashed and labelled so.
    """
    looks = results.looks()
    infinite = infinite_names(results)
    curves = []
    for name in results.curves:
        if name in infinite:
            rows = results.curve("risk", name, metric="kl_finite_nats")
            curves.append(curve_of(rows, f"{results.display(name)} (where finite)", Look(looks[name].colour, "--")))
        else:
            rows = results.curve("risk", name, metric="kl_nats")
            curves.append(curve_of(rows, results.display(name), looks[name]))
    bayes = results.bayes_curve()
    if bayes is not None and not results.bayes:
        nothing = np.full(len(bayes[0]), np.nan)
        curves.append(Curve("Bayes rule", Look("#000000"), *bayes, nothing, nothing))
    with figure_style():
        figure = Figure(figsize=(WIDTH, 4.0))
        axes = figure.add_subplot()
        context_axis(axes, results.length)
        draw_curves(axes, curves, extra=_floor(axes, results))
        axes.set_ylabel("KL(truth ‖ estimate), nats")
    return figure


def regret_figure(results: Results) -> Figure:
    """Draw the excess of KL over the Bayes rule's against context length, log–log, with bands."""
    looks = results.looks()
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.8))
        axes = figure.add_subplot()
        context_axis(axes, results.length)
        curves = [
            curve_of(results.curve("risk", name, metric="regret_nats"), results.display(name), looks[name])
            for name in regret_names(results)
        ]
        draw_curves(axes, curves, extra=_floor(axes, results))
        axes.set_ylabel("regret: KL in excess of Bayes, nats")
    return figure


def infinite_figure(results: Results) -> Figure:
    """Draw the share of sequences with infinite KL against context length, with Wilson intervals."""
    looks = results.looks()
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.9))
        axes = figure.add_subplot()
        context_axis(axes, results.length)
        axes.set_ylim(0, 1)
        curves = [
            curve_of(
                results.curve("risk", name, metric="p_infinite"),
                results.display(name),
                Look(looks[name].colour, ("-", "--")[index % 2]),  # they often lie on each other
            )
            for index, name in enumerate(infinite_names(results))
        ]
        draw_curves(axes, curves, log=False)
        axes.set_ylabel("share with infinite KL")
    return figure


def _floor(axes: Axes, results: Results) -> list[LineEnd]:
    if not floor_applies(results):
        return []
    floor = readout_floor(int(results.options["states"]), float(results.options["concentration"]))
    return [draw_level(axes, floor.kl_nats, _FLOOR, MUTED, max(2, results.length))]
