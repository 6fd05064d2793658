"""How far from the truth are the trained model and the Bayes rule, on 200 sequences and on 20,000?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.claims import Claim, Rule
from analysis.questions import LEVEL, Answer, Drawing, Sizes
from icl_estimators import get, sample_chains
from icl_estimators.divergences import kl_divergence
from icl_estimators.inference import (
    Moments,
    PairMoments,
    RatioMoments,
    mean_intervals,
    paired_differences,
    ratio_intervals,
    simultaneous_band,
)
from icl_estimators.reporting.figures.lines import Curve, context_axis, draw_curves
from icl_estimators.reporting.numbers import interval, percent_interval
from icl_estimators.reporting.style import WIDTH, figure_style, line_looks
from icl_estimators.sources import posterior_predictive, transition_counts

__all__ = ["answer", "draw"]

Array = NDArray[np.float64]

DOZEN = 12
CONCORDANCE = Rule(
    "concordance is good if the model's excess over the Bayes rule is at most a tenth of the Bayes rule's own KL",
    high=0.1,
)
NAMES = ("transformer", "add-one")
_BATCH = 2000


def draw(sizes: Sizes) -> tuple[dict[str, Array], Array]:
    """Return KL to the truth by estimator, and the model's regret, of each sequence at n = 1 … T.

    Returns
    -------
    kl : dict of ndarray, shape (N, T)
    regret : ndarray, shape (N, T)
        KL of the model's prediction from the Bayes predictive, which is the add-one rule's.
    """
    rules = {name: get(name) for name in NAMES}
    kl: dict[str, list[Array]] = {name: [] for name in NAMES}
    regret: list[Array] = []
    for first in range(0, sizes.many, _BATCH):
        sample = sample_chains(
            range(first, min(first + _BATCH, sizes.many)),
            sequences_per_chain=1,
            length=sizes.length,
            seed=sizes.seed,
            purpose="risk",
        )
        predictions = {name: rule.predict_proba(sample.inputs) for name, rule in rules.items()}
        for name, prediction in predictions.items():
            kl[name].append(kl_divergence(sample.truth, prediction))
        bayes = posterior_predictive(transition_counts(sample.inputs, 3), 1.0)
        regret.append(kl_divergence(bayes, predictions["transformer"]))
    return {name: np.concatenate(parts) for name, parts in kl.items()}, np.concatenate(regret)


def answer(sizes: Sizes) -> Answer:
    """Draw, tabulate, plot and judge."""
    kl, regret = draw(sizes)
    counts = (min(sizes.few, sizes.many), sizes.many)
    curves = pd.concat([_curves(kl, count) for count in counts], ignore_index=True)
    apart = pd.concat([_differences(kl, count) for count in counts], ignore_index=True)
    late = slice(min(DOZEN, sizes.length - 1), None)
    share = _ratio(regret[:, late].sum(axis=1), kl["add-one"][:, late].sum(axis=1))
    last = _ratio(regret[:, -1], kl["add-one"][:, -1])
    paired = {count: _told_apart(apart, count) for count in counts}
    overlap = {count: _bands_overlap(curves, count) for count in counts}
    n = sizes.length
    claims = (
        Claim(
            "concordance with the Bayes rule after the first dozen tokens",
            f"regret / the Bayes rule's KL, n = {DOZEN + 1} to {n}",
            *share,
            CONCORDANCE,
        ),
        Claim(
            "concordance with the Bayes rule at the end", f"regret / the Bayes rule's KL at n = {n}", *last, CONCORDANCE
        ),
    )
    share_at = regret.mean(axis=0) / kl["add-one"].mean(axis=0)
    least, least_share = int(regret.mean(axis=0).argmin()), int(share_at.argmin())
    at_least = _mean(regret[:, least])
    at_least_share = _ratio(regret[:, least_share], kl["add-one"][:, least_share])
    excess = pd.DataFrame(
        [
            (column + 1, *_mean(regret[:, column]), *_ratio(regret[:, column], kl["add-one"][:, column]))
            for column in range(sizes.length)
        ],
        columns=["context_length", "regret_nats", "regret_low", "regret_high", "share", "share_low", "share_high"],
    )
    late_lengths = n - DOZEN
    paragraph = (
        f"On {counts[0]:,} sequences the bands of the two curves overlap at {overlap[counts[0]]} of the {late_lengths} "
        f"context lengths after the first dozen ({{fig:kl-to-truth}}, upper panel); on {counts[1]:,} sequences they "
        f"overlap at {overlap[counts[1]]} (lower panel). But the 95 % interval of the paired difference excludes 0 at "
        f"{paired[counts[0]]} of these lengths with only {counts[0]:,} sequences. After the first dozen tokens the "
        f"model’s excess over the Bayes rule is {percent_interval(*share)} of the Bayes rule’s own KL, and "
        f"{percent_interval(*last)} at n = {n}. In nats the excess is smallest at n = {least + 1}: "
        f"{interval(*at_least, 4)}. As a share of the Bayes rule’s KL, which keeps falling, it is smallest at "
        f"n = {least_share + 1}: {percent_interval(*at_least_share)}. Both lengths are chosen by the point estimates."
    )
    ends = ", ".join(f"{name} {kl[name][:, -1].mean():.4f}" for name in NAMES)
    drawing = Drawing(
        "kl-to-truth",
        _figure(curves, counts, n),
        "KL to the true next-token law of the trained model and of the Bayes rule, both axes logarithmic. Shaded: "
        f"simultaneous 95 % bands; a band from {counts[0]:,} sequences has less than its nominal coverage (about 0.8).",
        f"Two line plots of KL in nats against context length 1 to {n} on logarithmic axes, from {counts[0]:,} and "
        f"from {counts[1]:,} sequences. At n = {n}, on {counts[1]:,} sequences: {ends}.",
    )
    tables = {"kl_to_truth": curves, "kl_difference": apart, "kl_excess": excess}
    return Answer("KL to the truth, on few sequences and on many", tables, (paragraph,), (drawing,), claims)


def _curves(kl: dict[str, Array], count: int) -> pd.DataFrame:
    parts = []
    for name, values in kl.items():
        moments = Moments.of(values[:count])
        found, band = mean_intervals(moments, level=LEVEL), simultaneous_band(moments, level=LEVEL)
        columns = {
            "sequences": count,
            "estimator": name,
            "context_length": np.arange(1, values.shape[1] + 1),
            "kl_nats": found.estimate,
            "se": found.se,
            "ci_low": found.low,
            "ci_high": found.high,
            "band_low": band.low,
            "band_high": band.high,
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def _differences(kl: dict[str, Array], count: int) -> pd.DataFrame:
    model, bayes = (kl[name][:count] for name in NAMES)
    found = paired_differences(PairMoments.of(model, bayes), level=LEVEL)
    return pd.DataFrame(
        {
            "sequences": count,
            "context_length": np.arange(1, model.shape[1] + 1),
            "difference_nats": found.difference,
            "se": found.se,
            "ci_low": found.low,
            "ci_high": found.high,
        }
    )


def _told_apart(apart: pd.DataFrame, count: int) -> int:
    late = apart[(apart["sequences"] == count) & (apart["context_length"] > DOZEN)]
    return int(((late["ci_low"] > 0) | (late["ci_high"] < 0)).sum())


def _bands_overlap(curves: pd.DataFrame, count: int) -> int:
    late = curves[(curves["sequences"] == count) & (curves["context_length"] > DOZEN)]
    model, bayes = (late[late["estimator"] == name] for name in NAMES)
    apart = (model["band_low"].to_numpy() > bayes["band_high"].to_numpy()) | (
        model["band_high"].to_numpy() < bayes["band_low"].to_numpy()
    )
    return int((~apart).sum())


def _mean(values: Array) -> tuple[float, float, float]:
    found = mean_intervals(Moments.of(values[:, None]), level=LEVEL)
    return float(found.estimate[0]), float(found.low[0]), float(found.high[0])


def _ratio(above: Array, below: Array) -> tuple[float, float, float]:
    found = ratio_intervals(RatioMoments.of(above[:, None], below[:, None]), level=LEVEL)
    return float(found.estimate[0]), float(found.low[0]), float(found.high[0])


def _figure(curves: pd.DataFrame, counts: tuple[int, ...], length: int) -> Figure:
    looks = line_looks(NAMES)
    with figure_style():
        figure = Figure(figsize=(WIDTH, 4.2))
        panels = figure.subplots(2, 1, sharex=True, sharey=True)
        for axes, count in zip(panels, counts, strict=True):
            context_axis(axes, length, "")
            axes.set_title(f"{count:,} sequences")
            drawn = []
            for name in NAMES:
                rows = curves[(curves["sequences"] == count) & (curves["estimator"] == name)]
                columns = (rows[column].to_numpy() for column in ("context_length", "kl_nats", "band_low", "band_high"))
                drawn.append(Curve({"add-one": "add-one (Bayes)"}.get(name, name), looks[name], *columns))
            draw_curves(axes, drawn)
        panels[1].set_xlabel("context length n (tokens read)")
        figure.supylabel("KL(truth ‖ estimate), nats", fontsize=9.5)
    return figure
