"""Bias and variance, and the signed bias by true probability."""

from __future__ import annotations

import math

from icl_estimators.reporting.figures.decomposition import PARTS, decomposition_figure, decomposition_names
from icl_estimators.reporting.figures.signed_bias import signed_bias_figure, signed_bias_names
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import counted, interval_of, spell
from icl_estimators.reporting.results import Results

__all__ = ["add_decomposition", "add_signed_bias"]


def add_decomposition(page: Page, results: Results) -> None:
    """Add squared bias, variance and their sum."""
    if "decomposition" not in results:
        return
    names = decomposition_names(results)
    options = results.options
    page.heading("Bias and variance", "decomposition")
    page.text(
        f"From {counted(options['decomposition_chains'], 'chain')} × "
        f"{counted(options['decomposition_sequences'], 'sequence')}: how much of the mean squared error is bias, and "
        "how much is variance over sequences of the same chain, given the current token. The estimate of bias² is "
        "unbiased, so it can be 0 or negative; such points cannot be shown on the logarithmic axes of "
        "{fig:decomposition}. Bias² + variance = MSE exactly."
    )
    page.figure(
        "decomposition",
        decomposition_figure(results),
        "Mean squared error and its parts against the number of tokens read, all axes logarithmic and shared. Shaded: "
        "simultaneous bands.",
        "Small multiples, one panel per estimator, of mean squared error, squared bias and variance against context "
        "length. " + _part_ends(results, names),
    )
    page.text(
        "{tbl:decomposition} has numbers from these curves; the parts in KL, after @heskes1998, are in "
        f"{code('decomposition.csv')}."
    )
    page.table(
        "decomposition",
        ["estimator", "n", *(label for label, _ in PARTS.values() if label != "training variance")],
        [
            [escape(results.display(name)), str(n), *_cells(results, name, n)]
            for name in names
            for n in results.shown_lengths((12,))
        ],
        f"Squared error, summed over next tokens, with {results.level_text} intervals.",
    )


def _cells(results: Results, name: str, n: int) -> list[str]:
    rows = [results.at("decomposition", name, n, metric=metric) for metric in ("mse", "bias_squared", "variance")]
    total, *parts = ({end: _nought(float(row[end])) for end in ("estimate", "ci_low", "ci_high")} for row in rows)
    return [spell(total["estimate"]), *map(interval_of, parts)]


def _nought(value: float) -> float:
    """Return 0 for what is 0 up to rounding, as the variance of a rule that looks at nothing."""
    return 0.0 if abs(value) < 1e-15 else value


def _part_ends(results: Results, names: list[str]) -> str:
    n = results.length
    texts = []
    for name in names:
        bias, variance = (
            _nought(float(results.at("decomposition", name, n, metric=metric)["estimate"]))
            for metric in ("bias_squared", "variance")
        )
        texts.append(f"{results.display(name)} bias² {spell(bias)}, variance {spell(variance)}")
    return f"At n = {n}: " + "; ".join(texts) + "."


def add_signed_bias(page: Page, results: Results) -> None:
    """Add the direction of the bias."""
    if "signed_bias" not in results:
        return
    page.heading("Direction of the bias", "signed-bias")
    page.text(
        "Which probabilities are predicted too high, and which too low? In {fig:signed-bias} the horizontal axis is "
        "the true probability P of a next token, in ten bins. A line that falls from above 0 to below 0 means that the "
        "estimator shrinks its predictions towards the middle: it smooths. "
        + ("The Bayes rule smooths too, but less as the context grows. " if results.exact_posterior else "")
        + "The figure has the model, the Bayes rule and "
        "the rules most like the model, and only bins that enough chains reach; everyone and all lengths are in "
        f"{code('signed_bias.csv')}."
    )
    page.figure(
        "signed-bias",
        signed_bias_figure(results),
        f"Mean of p̂ − P against P, by tenths of P. Shaded: pointwise {results.level_text} intervals, clustered on "
        "chains.",
        "Line plots of the mean of predicted minus true probability against the true probability, one panel per "
        f"context length. At n = {results.length}: {_bias_ends(results)}.",
    )


def _bias_ends(results: Results) -> str:
    frame = results.tables["signed_bias"]
    texts = []
    for name in signed_bias_names(results):
        rows = frame[(frame["estimator"] == name) & (frame["context_length"] == str(results.length))]
        rows = rows[rows["ci_low"].notna()]
        if rows.empty:
            continue
        low, high = rows["estimate"].iloc[0], rows["estimate"].iloc[-1]
        if math.isfinite(low) and math.isfinite(high):
            texts.append(
                f"{results.display(name)} {spell(low, 3)} in the lowest bin drawn, {spell(high, 3)} in the highest"
            )
    return "; ".join(texts) or "no estimates"
