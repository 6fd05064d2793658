"""Mean regret of a chain against its entropy rate."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from icl_estimators.reporting.figures.lines import Curve, draw_curves
from icl_estimators.reporting.figures.signed_bias import signed_bias_names
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import WIDTH, figure_style

__all__ = ["entropy_figure", "entropy_names"]

_FEWEST = 20  # chains in a bin


def entropy_names(results: Results) -> list[str]:
    """Return who is drawn: the model and a few rules with a finite regret that is not 0."""
    frame = results.tables["regret_by_entropy"]
    drawn = frame[np.isfinite(frame["estimate"]) & (frame["estimate"] > 0)]["estimator"].unique()
    chosen = {*signed_bias_names(results), *[name for name in results.curves if name in drawn]}
    return [name for name in results.curves if name in chosen and name in drawn and name not in results.bayes]


def entropy_figure(results: Results) -> Figure:
    """Draw the mean regret of chains by their entropy rate, with intervals; bins of few chains are left out."""
    frame = results.tables["regret_by_entropy"]
    looks = results.looks()
    curves = []
    for name in entropy_names(results):
        rows = frame[(frame["estimator"] == name) & (frame["n_chains"] >= _FEWEST)].sort_values("entropy_mean")
        x, estimate, low, high = (
            rows[column].to_numpy(float) for column in ("entropy_mean", "estimate", "ci_low", "ci_high")
        )
        curves.append(Curve(results.display(name), looks[name], x, estimate, low, high))
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.4))
        axes = figure.add_subplot()
        left = min((float(curve.x.min()) for curve in curves if len(curve.x)), default=0.0)
        axes.set_xlim(0.9 * left, np.log(results.options["states"]))
        draw_curves(axes, curves)
        axes.set_xlabel("entropy rate of the chain, nats (at most log K)")
        axes.set_ylabel("mean regret, nats")
    return figure
