"""The model's predictions by counts, its regret by chain, and its training."""

from __future__ import annotations

import math

import numpy as np

from icl_estimators.reporting.figures.entropy import entropy_figure, entropy_names
from icl_estimators.reporting.figures.maps import map_figure, simplex_figure
from icl_estimators.reporting.figures.training import training_figure, training_names
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import spell
from icl_estimators.reporting.results import Results, records

__all__ = ["add_entropy", "add_maps", "add_training"]


def add_maps(page: Page, results: Results) -> None:
    """Add the pseudo-count by context length and visits, and the simplex."""
    subject = results.subject
    if subject is None:
        return
    shown = escape(results.display(subject))
    if "pseudo_count_map" in results:
        frame = results.tables["pseudo_count_map"]
        own = frame[(frame["estimator"] == subject) & np.isfinite(frame["estimate"]) & (frame["estimate"] > 0)]
        if not own.empty:
            page.text(
                "Does the pseudo-count depend on visits alone? {fig:pseudo-count-map} has it by context length too. An "
                "add-α rule would have one colour everywhere."
            )
            least, most = own.loc[own["estimate"].idxmin()], own.loc[own["estimate"].idxmax()]
            page.figure(
                "pseudo-count-map",
                map_figure(results, subject),
                f"The pseudo-count nearest to the predictions of {shown}, by context length and visits. Blue: below "
                "1, red: "
                "above 1, black line: where it crosses 1. Blank: fewer than 50 prefixes, or more visits than fit. "
                f"Intervals are in {code('pseudo_count_map.csv')}.",
                f"Heat map of pseudo-counts. Least: {spell(float(least['estimate']), 2)} at n = "
                f"{least['context_length']:g} and {least['visits']:g} visits; greatest: "
                f"{spell(float(most['estimate']), 2)} at n = {most['context_length']:g} and {most['visits']:g} visits.",
            )
    if "simplex" in results and (results.tables["simplex"]["estimator"] == subject).any():
        page.text(
            "{fig:simplex} shows the predictions themselves. Each vector of counts out of the current token has three "
            "points: the frequencies, add-one, and the mean prediction of the model, joined by lines. Long blue "
            "lines mean "
            "that the model and add-one differ."
        )
        page.figure(
            "simplex",
            simplex_figure(results, subject),
            f"Predictions of {shown} on the simplex of three states, averaged over prefixes with the same counts, the "
            f"current token on top. The numbers: {code('simplex.csv')}.",
            "Three triangles, after 1, 4 and 10 visits to the current token. "
            f"Mean distance between model and add-one: {_apart(results, subject)}.",
        )


def _apart(results: Results, subject: str) -> str:
    frame = results.tables["simplex"]
    frame = frame[frame["estimator"] == subject]
    texts = []
    for visits in sorted(frame["visits"].unique()):
        total = weight = 0.0
        for row in records(frame[frame["visits"] == visits]):
            count = float(str(row["counts"]).split()[int(row["token"])])
            total += float(row["n_prefixes"]) * abs(float(row["estimate"]) - (count + 1) / (visits + 3))
            weight += float(row["n_prefixes"])
        texts.append(f"{100 * 1.5 * total / weight:.1f} % after {visits:g} visit{'s' if visits > 1 else ''}")
    return ", ".join(texts)


def add_entropy(page: Page, results: Results) -> None:
    """Add the regret of a chain by its entropy rate."""
    if "regret_by_entropy" not in results or not entropy_names(results):
        return
    page.heading("On which chains", "entropy")
    page.text(
        "A chain that is nearly deterministic has an entropy rate near 0, one that is nearly uniform one near log K. "
        f"{{fig:entropy}} has the mean regret by entropy rate.{_trend(results)}"
    )
    page.figure(
        "entropy",
        entropy_figure(results),
        f"Mean regret of a chain by its entropy rate, averaged over n = 1 … {results.length}; bins of fewer than 20 "
        f"chains are left out. Shaded: {results.level_text} intervals, clustered on chains. Everyone and all bins "
        "are in "
        f"{code('regret_by_entropy.csv')}.",
        f"Line plot of mean regret against the entropy rate of the chain.{_trend(results)}",
    )


def _trend(results: Results) -> str:
    subject = results.subject
    if subject is None:
        return ""
    frame = results.tables["regret_by_entropy"]
    rows = frame[(frame["estimator"] == subject) & (frame["n_chains"] >= 20) & np.isfinite(frame["estimate"])]
    if len(rows) < 2:
        return ""
    rows = rows.sort_values("entropy_mean")
    first, last = rows.iloc[0], rows.iloc[-1]
    if not (math.isfinite(first["estimate"]) and math.isfinite(last["estimate"])):
        return ""
    return (
        f" {escape(results.display(subject))}: {spell(float(first['estimate']))} nats at an entropy rate of "
        f"{float(first['entropy_mean']):.2f}, {spell(float(last['estimate']))} at {float(last['entropy_mean']):.2f}."
    )


def add_training(page: Page, results: Results) -> None:
    """Add how the regret fell in training."""
    if "training" not in results or not training_names(results) or not results.exact_posterior:
        return
    page.heading("Training", "training")
    names = training_names(results)
    frame = results.tables["training"]
    own = frame[(frame["estimator"] == names[0]) & (frame["quantity"] == "regret_nats")].sort_values("step")
    last = own.iloc[-1]
    end = spell(float(last["value"]))
    said = f"{escape(results.display(names[0]))} ends with {end} nats after {last['step']:,.0f} updates"
    page.text(
        f"{{fig:training}} has the regret during training, on fresh chains, as the metrics beside the weights have "
        f"it. {said}."
    )
    page.figure(
        "training",
        training_figure(results),
        "Regret against updates, both axes logarithmic. The Bayes rule has regret 0, below the axis. The numbers, "
        "with loss "
        f"and learning rate: {code('training.csv')}.",
        f"Line plot of regret against updates for {len(names)} training run{'s' if len(names) > 1 else ''}. {said}.",
    )
