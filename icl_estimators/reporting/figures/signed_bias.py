"""Which true probabilities are predicted too high and which too low, at a few context lengths."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure

from icl_estimators.reporting.figures.forest import distances_to
from icl_estimators.reporting.figures.lines import curve_of, draw_curves
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import MUTED, WIDTH, figure_style

__all__ = ["signed_bias_figure", "signed_bias_names"]

_MOST = 4  # others than the model
_LEAST = 1e-3  # of the y-axis on either side of 0


def signed_bias_names(results: Results) -> list[str]:
    """Return who is drawn: the model and at most four others, so that the lines can be told apart.

    The others are the Bayes rule, then those most like the model; without a model, those with the least regret.
    """
    subject = results.subject
    distances = distances_to(results, subject) if subject else {}
    others = [name for name in results.curves if name != subject]

    def order(name: str) -> tuple[bool, float]:
        if name in distances:
            return name not in results.bayes, float(distances[name]["estimate"])
        metric = results.headline_metric
        value = float(results.at("risk", name, "mean", metric=metric)["estimate"])
        return name not in results.bayes, value if math.isfinite(value) else math.inf

    chosen = {*sorted(others, key=order)[:_MOST], subject}
    return [name for name in results.curves if name in chosen]


def _shown(frame: pd.DataFrame) -> pd.Series:
    """Bins with an interval: few chains reach the others, and their means say little."""
    return frame["ci_low"].notna()


def signed_bias_figure(results: Results) -> Figure:
    """Draw the mean of p̂ − P against P, by tenths of P, with pointwise intervals; a panel a context length."""
    looks = results.looks()
    names = signed_bias_names(results)
    lengths = results.shown_lengths((3, 12))
    frame = results.tables["signed_bias"]
    with figure_style():
        figure = Figure(figsize=(WIDTH, 0.3 + 1.65 * len(lengths)))
        panels = figure.subplots(len(lengths), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, n in zip(panels, lengths, strict=True):
            axes.set_title(f"n = {n}")
            axes.set_xlim(0, 1)
            axes.axhline(0.0, color=MUTED, linewidth=0.8)
        low = high = 0.0
        for n in lengths:
            at_n = frame[(frame["context_length"] == str(n)) & frame["estimator"].isin(names) & _shown(frame)]
            low, high = min(low, at_n["ci_low"].min()), max(high, at_n["ci_high"].max())
        for axes, n in zip(panels, lengths, strict=True):
            axes.set_ylim(min(low, -_LEAST) * 1.05, max(high, _LEAST) * 1.05)
            curves = []
            for name in names:
                rows = frame[(frame["estimator"] == name) & (frame["context_length"] == str(n)) & _shown(frame)]
                rows = rows.assign(middle=(rows["bin_low"] + rows["bin_high"]) / 2)
                if rows["estimate"].notna().any():
                    curves.append(curve_of(rows, results.display(name), looks[name], x="middle"))
            draw_curves(axes, curves, log=False)
        panels[-1].set_xlabel("true probability P of the next token")
        figure.supylabel("mean of p̂ − P", fontsize=9.5)
    return figure
