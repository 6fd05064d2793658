"""Does the explicit construction compute raw empirical frequencies?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.claims import Claim, Rule
from analysis.questions import Answer, Drawing, Sizes
from icl_estimators import get, sample_chains
from icl_estimators.estimators.induction_matrices import InductionMatrices
from icl_estimators.reporting.numbers import spell
from icl_estimators.reporting.style import WIDTH, Look, figure_style, plain_log_axis
from icl_estimators.sources import transition_counts

__all__ = ["answer"]

SCALES = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0)
SATURATED = 30.0
SEQUENCES = 50
FREQUENCIES = Rule("they are the same numbers if none differs by more than 1e-9", high=1e-9)


def answer(sizes: Sizes) -> Answer:
    """Run the matrices at several scales and compare with n_vw / n_v wherever the token was left before."""
    sample = sample_chains(range(SEQUENCES), sequences_per_chain=1, length=sizes.length, seed=sizes.seed)
    tokens = sample.inputs
    counts = transition_counts(tokens, 3)
    seen = counts.sum(axis=-1) > 0
    frequencies = counts[seen] / counts[seen].sum(axis=-1, keepdims=True)
    rows = []
    for beta in SCALES:
        path = InductionMatrices(3, sizes.length, beta).run(tokens).induction_path[:, 1:, :3]
        apart = np.abs(path[seen] / path[seen].sum(axis=-1, keepdims=True) - frequencies)
        rows.append((beta, int(seen.sum()), float(apart.max()), float(apart.mean())))
    frame = pd.DataFrame(rows, columns=["beta", "prefixes", "largest_difference", "mean_difference"])
    worst = float(frame.set_index("beta").loc[SATURATED, "largest_difference"])
    trained = get("transformer").predict_proba(tokens)[seen]
    farthest = float(np.abs(trained - frequencies).mean())
    claim = Claim.exact(
        "the construction computes raw empirical frequencies",
        f"largest difference from n_vw / n_v at β = {SATURATED:g}, of {int(seen.sum()):,} prefixes",
        worst,
        FREQUENCIES,
    )
    paragraph = (
        f"The matrices, run as written on {SEQUENCES} sequences, give the empirical frequencies n~vw~/n~v~ to within "
        f"{spell(worst)} at β = {SATURATED:g} ({{fig:construction}}), wherever the prefix has a transition out of the "
        f"current token. The trained model’s predictions differ from those frequencies by {farthest:.3f} on average: "
        "it does not compute them."
    )
    drawing = Drawing(
        "construction",
        _figure(frame),
        "Difference of the construction’s induction path from the empirical frequencies, against its attention scale "
        "β; both axes logarithmic.",
        f"Line plot of the largest and the mean difference against β from {SCALES[0]:g} to {SCALES[-1]:g}: "
        f"{spell(frame['largest_difference'].iloc[0], 2)} at β = {SCALES[0]:g}, {spell(worst)} at β = {SATURATED:g}.",
    )
    return Answer("The construction’s frequencies", {"construction": frame}, (paragraph,), (drawing,), (claim,))


def _figure(frame: pd.DataFrame) -> Figure:
    looks = {"largest_difference": Look("#D55E00"), "mean_difference": Look("#0072B2")}
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.8))
        axes = figure.add_subplot()
        for column, look in looks.items():
            axes.plot(frame["beta"], frame[column], color=look.colour, marker="o", markersize=3, label=column)
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_log_axis(axes.xaxis)
        axes.legend(["largest", "mean"], frameon=False)
        axes.set_xlabel("attention scale β")
        axes.set_ylabel("difference in probability")
    return figure
