"""KL, regret, infinite KL and paired differences."""

from __future__ import annotations

import math
import statistics

from icl_estimators.readout_floor import readout_floor
from icl_estimators.reporting.figures.risk import (
    floor_applies,
    infinite_figure,
    infinite_names,
    kl_figure,
    regret_figure,
    regret_names,
)
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import interval, interval_of, percent_interval, spell
from icl_estimators.reporting.results import Results, records
from icl_estimators.ties import verdict

__all__ = ["add_differences", "add_infinite", "add_kl", "add_pairs", "add_regret", "add_runs"]


def add_kl(page: Page, results: Results) -> None:
    """Add KL to the truth against context length."""
    if results.observed:
        return
    page.heading("Distance from the truth", "kl")
    infinite = infinite_names(results)
    parts = [
        "{fig:kl} shows the expected KL of each estimator’s prediction from the true next-token law; {tbl:kl} has the "
        f"numbers at a few lengths; {code('risk.csv')} has all lengths."
    ]
    if infinite:
        listed = " and ".join(escape(results.display(name)) for name in infinite)
        parts.append(
            f"The mean of {listed} is infinite ({{tbl:infinite}}). The dashed lines are means over the sequences with "
            "finite KL. Those are the easier ones, because no possible token was given probability 0."
        )
    page.text(" ".join(parts))
    if floor_applies(results):
        page.text(_floor_text(results))
    bands = (
        "Shaded: simultaneous bands, and pointwise intervals for the dashed lines."
        if infinite
        else "Shaded: simultaneous bands."
    )
    page.figure(
        "kl",
        kl_figure(results),
        f"Expected KL(truth ‖ estimate) in nats against the number of tokens read, both axes logarithmic. {bands}",
        f"Line plot on logarithmic axes of expected KL in nats against context length 1 to {results.length}. "
        + _ends(results, "kl_nats"),
    )
    lengths = results.shown_lengths()
    rows = []
    for name in results.curves:
        found = [results.at("risk", name, n, metric="kl_nats") for n in lengths]
        rows.append([escape(results.display(name)), *(spell(row["estimate"]) for row in found)])
    page.table(
        "kl", ["estimator", *(f"n = {n}" for n in lengths)], rows, "Expected KL in nats at a few context lengths."
    )


def _floor_text(results: Results) -> str:
    k, alpha = int(results.options["states"]), float(results.options["concentration"])
    floor = readout_floor(k, alpha)
    return (
        f"The dotted line, {spell(floor.kl_nats)} nats, is the KL of a softmax read-out whose frequencies are exact: "
        f"the minimum of E KL(p ‖ softmax(γp)) over γ, reached at γ = {floor.gamma:.2f}, with rows p weighted by how "
        "often a long context visits them. It is a limit for n → ∞. It is not a bound at any finite n."
    )


def _ends(results: Results, metric: str) -> str:
    n = results.length
    found = [(name, results.at("risk", name, n, metric=metric)["estimate"]) for name in results.curves]
    finite = sorted((value, name) for name, value in found if math.isfinite(value))
    text = f"At n = {n}: " + ", ".join(f"{results.display(name)} {spell(value)}" for value, name in finite) + "."
    lost = [name for name, value in found if math.isinf(value)]
    return text + (f" Infinite: {', '.join(lost)}." if lost else "")


def add_regret(page: Page, results: Results) -> None:
    """Add the excess over the Bayes rule."""
    names = regret_names(results) if results.exact_posterior else []
    if not names:
        return
    page.heading("Excess over the Bayes rule", "regret")
    left_out = [name for name in infinite_names(results) if name not in names]
    text = (
        "{fig:regret} shows the part of the KL that is due to the estimator itself. For any prediction p̂ the "
        "expected KL given the prefix is that of the Bayes predictive q plus KL(q ‖ p̂), so the regret is estimated by "
        "the mean of KL(q ‖ p̂). It is never negative, and the draw of the chain adds no noise to it."
    )
    if left_out:
        text += f" Not drawn because infinite: {', '.join(escape(results.display(name)) for name in left_out)}."
    page.text(text)
    page.figure(
        "regret",
        regret_figure(results),
        "Expected KL above the Bayes rule’s in nats against the number of tokens read, both axes logarithmic. Shaded: "
        "simultaneous bands." + (" Dotted: the read-out floor." if floor_applies(results) else ""),
        f"Line plot on logarithmic axes of the regret in nats against context length 1 to {results.length}. "
        + _ends(results, "regret_nats"),
    )


def add_infinite(page: Page, results: Results) -> None:
    """Add the share of sequences with infinite KL, if there are any."""
    names = [] if results.observed else infinite_names(results)
    if not names:
        return
    page.heading("Infinite KL", "infinite")
    page.text(
        "If an estimator gives probability 0 to a possible token, its KL from the truth is infinite. {fig:infinite-kl} "
        "and {tbl:infinite} show how often this happens, and the mean KL over the other sequences."
    )
    page.figure(
        "infinite-kl",
        infinite_figure(results),
        "Share of sequences in which KL is infinite, against the number of tokens read. Shaded: pointwise Wilson "
        "intervals.",
        f"Line plot of the share of sequences with infinite KL against context length 1 to {results.length}. "
        + " ".join(f"{name}: {_share_range(results, name)}." for name in names),
    )
    rows = []
    for name in names:
        for n in results.shown_lengths((3, 12, 50)):
            share = results.at("risk", name, n, metric="p_infinite")
            finite = results.at("risk", name, n, metric="kl_finite_nats")
            rows.append(
                [
                    escape(results.display(name)),
                    str(n),
                    percent_interval(share["estimate"], share["ci_low"], share["ci_high"]),
                    interval_of(finite),
                ]
            )
    page.table(
        "infinite",
        ["estimator", "n", "infinite in", "mean KL where finite"],
        rows,
        f"Infinite KL, with {results.level_text} intervals. The mean where KL is finite is conditional on a finite KL.",
    )


def _share_range(results: Results, name: str) -> str:
    rows = records(results.curve("risk", name, metric="p_infinite"))
    top = max(rows, key=lambda row: float(row["estimate"]))
    return f"at most {100 * top['estimate']:.0f} % at n = {top['n']}, {100 * rows[-1]['estimate']:.0f} % at the end"


def add_differences(page: Page, results: Results) -> None:
    """Add the paired differences from the reference."""
    rows = _difference_rows(results) if "differences" in results else []
    if not rows:
        return
    reference = escape(results.display(str(results.options["reference"])))
    page.heading("Differences on the same draws", "differences")
    if results.observed:
        what = f"Each estimator minus {reference}, paired by prediction"
        page.text(
            f"{what} ({{tbl:differences}}; more in {code('differences.csv')}). Whole histories are compared with whole "
            "histories, and windows with windows. Several sequences are independent units. One long series has no "
            "independent units; there, the losses of a sliding window are compared by the method of @diebold1995, with "
            "the standard error of @newey1987. For comparison, further rows treat predictions as independent (*lag 0*) "
            "or use a moving-block *bootstrap*. The last column is how many *times more data* an unpaired comparison "
            "would need for the same standard error."
        )
    else:
        what = f"Mean over n = 1 … {results.length} of estimator minus {reference}, paired"
        page.text(
            f"Each estimator minus {reference}, averaged over n, on the same sequences ({{tbl:differences}}; "
            f"{code('differences.csv')} has every length and metric). The last column is how many *times more chains* "
            "an unpaired comparison would need for the same standard error."
        )
    page.table(
        "differences",
        [
            "estimator",
            "measure",
            f"difference, nats [{results.level_text}]",
            "verdict",
            f"times more {'data' if results.observed else 'chains'}",
        ],
        rows,
        f"{what}. *Not distinguishable*: the interval contains 0. *Identical*: equal on all draws. A dash: undefined"
        f"{' (the notes in the table say why)' if results.observed else ' because infinite'}.",
        left=2,
    )


_SIMULATED = (("KL", "kl_nats"), ("log loss", "log_loss_nats"))
_OBSERVED = (
    ("log loss", "log_loss_nats"),
    ("… lag 0", "log_loss_nats_lag_0"),
    ("… bootstrap", "log_loss_nats_block_bootstrap"),
)


def _difference_rows(results: Results) -> list[list[str]]:
    frame = results.tables["differences"]
    means = {(row["estimator"], row["metric"]): row for row in records(frame[frame["context_length"] == "mean"])}
    rows = []
    for name in results.curves:
        for label, metric in _OBSERVED if results.observed else _SIMULATED:
            row = means.get((name, metric))
            if row is not None:
                low, high = float(row["ci_low"]), float(row["ci_high"])
                times = "–" if math.isnan(row["variance_reduction"]) else spell(row["variance_reduction"], 1)
                shown = interval(row["difference"], low, high)
                said = verdict(row["difference"], low, high)
                rows.append([escape(results.display(name)), label, shown, said, times])
    return rows


def add_pairs(page: Page, results: Results) -> None:
    """Add every estimator against the best: the tied set."""
    pairs, metric = results.pairs, results.headline_metric
    if not len(pairs):
        return
    means = {name: results.at("risk", name, "mean", metric=metric)["estimate"] for name in results.curves}
    p = {
        (row["estimator"], row["other"]): float(row["p_simultaneous"])
        for row in records(results.tables["pairs"])
        if row["metric"] == metric
    }
    rows = []
    for group in pairs.groups(list(means)):
        ranked = sorted((name for name in group if math.isfinite(means[name])), key=means.__getitem__)
        above = [name for name in ranked if name not in results.bayes]
        for names in [ranked, above] if len(above) < len(ranked) else [ranked]:
            for name in names[1:]:
                pair = pairs.of(name, names[0])
                if pair is not None:
                    chance = p.get((name, names[0]), p.get((names[0], name), math.nan))
                    shown = interval(pair.difference, pair.low, pair.high)
                    said = {"worse": "more", "better": "less"}.get(pair.verdict, pair.verdict)
                    tied = pair.verdict in ("identical", "not distinguishable")
                    cells = [escape(results.display(name)), escape(results.display(names[0])), shown]
                    rows.append(
                        [*cells, "< 0.0001" if chance < 1e-4 else spell(chance, 4), f"tied: {said}" if tied else said]
                    )
    if not rows:
        return
    what = {"regret_nats": "mean regret", "kl_nats": "mean KL", "log_loss_nats": "log loss"}[metric]
    best = ", and again with the best estimator that is not the Bayes rule" if results.bayes else ""
    page.heading("All pairs at once", "pairs")
    page.text(
        f"Each estimator is compared with the best by the paired difference in {what}{best} ({{tbl:pairs}}; "
        f"{code('pairs.csv')} has all pairs and metrics). Intervals and p-values are simultaneous over all pairs, so "
        "they remain valid although the data choose the best. An estimator is *tied* if it is not distinguishable from "
        "the best. The order of rows is not a finding."
    )
    page.table(
        "pairs",
        ["estimator", "minus the best", f"difference, nats [{results.level_text}, all pairs]", "p", "verdict"],
        rows,
        f"Paired differences in {what} from the best; intervals are simultaneous over all pairs (max-t).",
        left=2,
    )


def add_runs(page: Page, results: Results) -> None:
    """Add the training runs of one recipe, if there are several."""
    if results.observed or not results.recipes:
        return
    metric, what = ("regret_nats", "regret") if results.exact_posterior else ("kl_nats", "KL")
    page.heading("Training runs", "runs")
    page.text(
        "These models share one training recipe and differ in the seed. {tbl:runs} has two intervals for their mean: "
        "one for *these* runs (only the chains are a sample), and one for the *recipe* (the runs are a sample too)."
    )
    rows, spreads = [], []
    for recipe, runs in results.recipes.items():
        whom = [*((run, "this run") for run in runs), (recipe, "these runs"), (f"{recipe}:recipe", "the recipe")]
        found = [results.at("risk", name, "mean", metric=metric) for name, _ in whom]
        values = [float(row["estimate"]) for row in found[: len(runs)]]
        spread = statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan
        # Rows that differ only beyond the fourth decimal would look the same.
        digits = 4 if not 0 < spread < 1e-4 else min(7, 2 - math.floor(math.log10(spread)))
        rows += [
            [escape(name), scope, interval_of(row, digits)] for (name, scope), row in zip(whom, found, strict=True)
        ]
        spreads.append(
            f"Between the {len(runs)} runs of {escape(recipe)} the mean {what} has a standard deviation of "
            f"{spell(spread, max(digits, 5))} nats, on the same chains."
        )
    page.text(*spreads)
    page.table(
        "runs",
        ["rows", "interval for", f"mean {what}, nats [{results.level_text}]"],
        rows,
        f"Mean {what} over n = 1 … {results.length} of each training run, and their mean.",
        left=2,
    )
