"""The self-checks as z-scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import ndtri

from icl_estimators.metrics import METRICS
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import MUTED, WIDTH, figure_style
from icl_estimators.vocabulary import SAW_THE_FUTURE

__all__ = ["CHECK_TITLES", "agreeing", "check_figure"]

Array = NDArray[np.float64]

CHECK_TITLES = {
    "martingale": "Bayes: realised KL − its posterior mean",
    **{f"exact:{metric.name}": f"{metric.title}: Monte Carlo − exact" for metric in METRICS.values() if metric.checked},
    "mse": "MSE: nested design − risk design",
    "next_token": "probability of the next token − its expectation",
}

ONE_SIDED = ("bayes_bound:log_loss_nats", "bayes_bound:kl_nats")
"""Checks whose z may be as large as it likes, and the alarm that is made of them: no dots."""


def agreeing(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of checks.csv that have a z that is standard normal if all is well."""
    return frame[frame["z"].notna() & ~frame["check"].isin([*ONE_SIDED, SAW_THE_FUTURE])]


def check_figure(results: Results) -> Figure:
    """Draw every z-score of each check as a dot, and the range that 95 % of standard normal values lie in."""
    frame = agreeing(results.tables["checks"])
    kinds = list(dict.fromkeys(frame["check"]))
    inner = float(ndtri(0.975))
    with figure_style():
        figure = Figure(figsize=(WIDTH, 0.9 + 0.42 * len(kinds)))
        axes = figure.add_subplot()
        axes.axvspan(-inner, inner, color=MUTED, alpha=0.12, linewidth=0)
        axes.axvline(0.0, color=MUTED, linewidth=0.8)
        for row, kind in enumerate(kinds):
            z = np.sort(frame[frame["check"] == kind]["z"].to_numpy(float))
            width = 2.6 if len(z) < 300 else 1.4
            spread = np.asarray(np.arange(len(z)) * 0.618034 % 1.0 - 0.5, dtype=np.float64)  # apart, without randomness
            axes.plot(
                *_dots(z, row + 0.6 * spread), color="#0072B2", linewidth=width, alpha=0.55, solid_capstyle="round"
            )
        axes.set_yticks(range(len(kinds)), [CHECK_TITLES.get(kind, kind) for kind in kinds])
        axes.set_ylim(len(kinds) - 0.5, -0.5)
        reach = max(4.0, float(np.abs(frame["z"]).max()) * 1.05)
        axes.set_xlim(-reach, reach)
        axes.grid(False, axis="y")
        axes.set_xlabel("z: difference / its standard error")
    return figure


def _dots(x: Array, y: Array) -> tuple[Array, Array]:
    """Return a broken line of dots: one path instead of a thousand markers."""
    gap = np.full_like(x, np.nan)
    return np.stack([x, x, gap], axis=1).ravel(), np.stack([y, y + 1e-3, gap], axis=1).ravel()
