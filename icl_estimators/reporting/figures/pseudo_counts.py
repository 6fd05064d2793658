"""Which pseudo-count an estimator acts like, by visits and by context length."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import (
    MUTED,
    WIDTH,
    LineEnd,
    figure_style,
    label_line_ends,
    line_looks,
    plain_log_axis,
)

__all__ = ["pseudo_count_figure", "pseudo_count_names", "pseudo_counts"]

_AXES = {"visits": "visits n_v to the current token", "context-length": "context length n (tokens read)"}


def pseudo_counts(results: Results, by: str) -> pd.DataFrame:
    """Return the fitted pseudo-counts, `by` visits or context-length."""
    frame = results.tables["smoothing"]
    return frame[(frame["by"] == by) & (frame["family"] == "add-constant") & (frame["parameter"] == "pseudo_count")]


def pseudo_count_names(results: Results) -> list[str]:
    """Return the estimators with a pseudo-count that can be drawn: finite and above 0 somewhere."""
    frame = results.tables["smoothing"]
    drawn = frame[np.isfinite(frame["estimate"]) & (frame["estimate"] > 0) & frame["by"].isin(_AXES)]
    return [name for name in results.curves if name in set(drawn["estimator"])]


def pseudo_count_figure(results: Results) -> Figure:
    """Draw effective pseudo-counts with intervals on log axes, and the prior's α, which is what Bayes adds.

    Estimates of 0 or inf, at a boundary, have no place on a log axis and are left out.
    """
    names = pseudo_count_names(results)
    kinds = [by for by in _AXES if len(pseudo_counts(results, by))]
    with figure_style():
        figure = Figure(figsize=(WIDTH, 0.3 + 2.35 * len(kinds)))
        panels = figure.subplots(len(kinds), 1, squeeze=False)[:, 0]
        for axes, by in zip(panels, kinds, strict=True):
            _draw(axes, results, by, names)
    return figure


def _draw(axes: Axes, results: Results, by: str, names: list[str]) -> None:
    looks = line_looks(results.curves)
    rows = pseudo_counts(results, by)
    rows = rows[np.isfinite(rows["estimate"]) & (rows["estimate"] > 0)]
    concentration = float(results.options["concentration"])
    ends = []
    for name in names:
        own = rows[rows["estimator"] == name].sort_values("value")
        if own.empty:
            continue
        x, estimate = own["value"].to_numpy(float), own["estimate"].to_numpy(float)
        low = own["ci_low"].fillna(own["estimate"]).clip(lower=1e-12).to_numpy(float)
        high = own["ci_high"].replace(np.inf, np.nan).fillna(own["estimate"]).to_numpy(float)
        look = looks[name]
        axes.errorbar(
            x,
            estimate,
            yerr=np.stack([np.maximum(estimate - low, 0.0), np.maximum(high - estimate, 0.0)]),
            color=look.colour,
            linestyle=look.style,
            marker="o",
            markersize=3,
            capsize=2,
            linewidth=1.3,
            elinewidth=1.0,
            label=results.display(name),
        )
        ends.append(LineEnd(float(x[-1]), float(estimate[-1]), results.display(name), look.colour))
    axes.axhline(concentration, color=MUTED, linestyle=":", linewidth=1.2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    right = float(rows["value"].max())
    axes.set_xlim(float(rows["value"].min()) / 1.08, right * 1.08)
    values = np.append(rows["estimate"].to_numpy(float), concentration)
    axes.set_ylim(values.min() / 2, values.max() * 2)
    for axis in (axes.xaxis, axes.yaxis):
        plain_log_axis(axis)
    axes.set_xlabel(_AXES[by])
    axes.set_ylabel("effective pseudo-count")
    if concentration not in rows["estimate"].to_numpy():
        ends.append(LineEnd(right, concentration, f"Bayes: α = {concentration:g}", MUTED))
    label_line_ends(axes, ends)
