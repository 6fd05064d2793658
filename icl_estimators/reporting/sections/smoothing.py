"""Effective pseudo-counts, the richer families, and what interventions on the model do to them."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from icl_estimators.reporting.definitions import INTERVENTION_DEFINITIONS
from icl_estimators.reporting.figures.smoothing import mechanism_figure, prediction_figure, pseudo_count_figure
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import interval, interval_of, joined, spell
from icl_estimators.reporting.results import Results, records

__all__ = ["add_smoothing", "pseudo_counts"]

_SHOWN_VISITS = (1, 2, 5, 10, 20, 40)
_QUANTITIES = ("explained", "residual_kl_heldout_nats", "heldout_gain_nats")  # rows that are no parameters

_PAIRED = ("log_pseudo_count", "regret_nats")  # with the intact model; the others are compared with add-one

Row = dict[str, Any]


def pseudo_counts(results: Results, by: str, name: str | None = None) -> list[Row]:
    """Return the fitted pseudo-counts `by` visits, context-length or overall, in order, of one estimator or of all.

    Those without an interval, or from so few chains that it may be too narrow, are left out.
    """
    if "smoothing" not in results:
        return []
    frame = results.tables["smoothing"]
    frame = frame[(frame["by"] == by) & (frame["family"] == "add-constant") & (frame["parameter"] == "pseudo_count")]
    rows = records(frame.sort_values("value", kind="stable"))
    sound = [row for row in rows if not math.isnan(row["ci_low"]) and not results.few_chains(by, row["value"])]
    return [row for row in sound if name in (None, row["estimator"])]


def add_smoothing(page: Page, results: Results) -> None:
    """Add the pseudo-counts that estimators act like."""
    if not any(pseudo_counts(results, by) for by in ("visits", "overall")):
        return
    smoothing, run = results.tables["smoothing"], results.run
    page.heading("Effective pseudo-counts", "smoothing")
    page.text(
        "Add-α rules predict (n~vw~ + α)/(n~v~ + Kα), where n~v~ counts the *visits*: the transitions out of the "
        "current token v so far. The *effective pseudo-count* of an estimator is the α whose rule is nearest to its "
        "predictions in KL. One number describes an estimator well only if little is left unexplained: each fit has "
        "the share that it *explains*, 1 − ΣKL(p̂ ‖ fitted rule)/ΣKL(p̂ ‖ uniform)."
    )
    by_visits = pseudo_counts(results, "visits")
    if any(0 < row["estimate"] < math.inf for row in by_visits):
        page.figure(
            "pseudo-counts",
            pseudo_count_figure(smoothing, run, caption=False),
            f"Effective pseudo-count against visits, both axes logarithmic. Shaded: pointwise {results.level_text} "
            f"intervals, clustered on {results.unit}s. The thin line at 1 is add-one. Estimates of 0 or inf cannot be "
            "drawn.",
            "Line plot on logarithmic axes of the effective pseudo-count against the number of visits to the current "
            f"token. {_alt(results)}",
        )
    _add_by_visits(page, results)
    _add_fits(page, results)
    if (smoothing["family"] == "empirical").any():
        _add_predictions(page, results)
    _add_families(page, results)
    if "interventions" in results:
        _add_interventions(page, results)


def _alt(results: Results) -> str:
    texts = []
    for name in results.curves:
        own = [row for row in pseudo_counts(results, "visits", name) if 0 < row["estimate"] < math.inf]
        if own:
            few, many = (f"{spell(row['estimate'], 2)} at n_v = {row['value']:g}" for row in (own[0], own[-1]))
            texts.append(f"{name}: {few}, {many}")
    return "; ".join(texts) + "." if texts else ""


_OTHER_CHAINS = (
    f" Fitted to the chains of this comparison. {code('python -m icl_estimators.smoothing')} draws its own chains, "
    "so its numbers differ by sampling error."
)


def _add_by_visits(page: Page, results: Results) -> None:
    found = {(row["estimator"], row["value"]): row["estimate"] for row in pseudo_counts(results, "visits")}
    visits = [v for v in _SHOWN_VISITS if any(value == v for _, value in found)]
    names = [name for name in results.curves if any(who == name for who, _ in found)]
    if visits:
        page.table(
            "by-visits",
            ["estimator", *(joined(f"n~v~ = {v}") for v in visits)],
            [
                [escape(results.display(name)), *(spell(found.get((name, v), math.nan), 2) for v in visits)]
                for name in names
            ],
            "Effective pseudo-count by visits. It is 0 for the bigram, which does not smooth, and inf for the uniform "
            f"rule. Intervals are in {code('smoothing.csv')}.{_OTHER_CHAINS if 'risk' in results else ''}",
        )


def _add_fits(page: Page, results: Results) -> None:
    """Add the fits over all prefixes, and the subject's by visits, with what they leave over."""
    fits = pseudo_counts(results, "overall")
    subject = results.subject
    if subject is not None:
        own = pseudo_counts(results, "visits", subject)
        fits += [row for row in own if row["value"] in _SHOWN_VISITS or row is own[-1]]
    if not fits:
        return
    rows = [
        [
            escape(results.display(row["estimator"])),
            "all" if row["by"] == "overall" else f"{row['value']:g}",
            interval_of(row, 3),
            spell(row["residual_kl_nats"]),
            _share(row["explained"]),
            _remarks(row),
        ]
        for row in fits
    ]
    header = ["estimator", "visits", f"pseudo-count [{results.level_text}]", "left over, nats", "explained", "remark"]
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    page.table(
        "pseudo-counts", header, rows, "How well one pseudo-count fits. *Left over*: mean KL(estimator ‖ fitted rule)."
    )


def _share(value: float) -> str:
    return "–" if math.isnan(value) else joined(f"{100 * value:.1f} %")


def _remarks(row: Row) -> str:
    found = {"at a boundary": row["boundary"] is True, "not identified": row["identified"] is False}
    return joined(", ".join(remark for remark, holds in found.items() if holds))


def _add_predictions(page: Page, results: Results) -> None:
    smoothing = results.tables["smoothing"]
    known = list(dict.fromkeys(smoothing[smoothing["family"] == "empirical"]["estimator"]))
    subject = results.subject
    name = subject if subject is not None and subject in known else str(known[0])
    page.text("{fig:prediction} shows the predictions themselves.")
    page.figure(
        "prediction",
        prediction_figure(smoothing, results.run, name, caption=False),
        f"Mean prediction of {escape(results.display(name))} for a state that followed the current token n~vw~ times "
        "in n~v~, against "
        f"that frequency; one panel per number of visits. {results.level_text} intervals, clustered on "
        f"{results.unit}s.",
        f"Small multiples of the mean predicted probability of {results.display(name)} against the frequency n_vw / "
        "n_v, with the "
        "add-one rule, the fitted add-α rule and, where it was fitted, the temperature rule.",
    )


def _add_families(page: Page, results: Results) -> None:
    frame = results.tables["smoothing"]
    frame = frame[(frame["by"] == "overall") & (frame["family"] != "empirical")]
    several = [name for name in results.curves if frame[frame["estimator"] == name]["family"].nunique() > 1]
    if not several:
        return
    name = results.subject if results.subject in several else several[0]
    page.text(
        f"Does a richer rule describe {escape(results.display(name))} better? {{tbl:families}} compares families by "
        "what they leave "
        f"over, smallest first; where available, this is measured on {results.unit}s that were not used for the fit. "
        f"The other estimators are in {code('smoothing.csv')}."
    )
    page.table(
        "families",
        ["family", "parameters", "left over, held out", "left over", "explained"],
        _family_rows(frame, name),
        f"Families of rules fitted to the predictions of {escape(results.display(name))}; mean KL left over, in nats.",
        left=2,
    )


def _family_rows(frame: pd.DataFrame, name: str) -> list[list[str]]:
    """Return a row for each family, the one that leaves the least over first."""
    families: dict[str, list[Row]] = {}
    for row in records(frame[frame["estimator"] == name]):
        families.setdefault(row["family"], []).append(row)
    fits: list[tuple[float, list[str]]] = []
    for family, members in families.items():
        parameters = ", ".join(
            f"{escape(row['parameter'])} = {interval_of(row, 3)}"
            for row in members
            if row["parameter"] not in _QUANTITIES
        )
        held_out, residual = (
            next((float(row[key]) for row in members if not math.isnan(row[key])), math.nan)
            for key in ("residual_kl_heldout_nats", "residual_kl_nats")
        )
        order = next((value for value in (held_out, residual) if math.isfinite(value)), math.inf)
        shown = [spell(held_out, 5), spell(residual, 5), _share(members[0]["explained"])]
        fits.append((order, [escape(family), parameters, *shown]))
    return [cells for _, cells in sorted(fits, key=lambda fit: fit[0])]


def _add_interventions(page: Page, results: Results) -> None:
    """Add what changing the model's parts does."""
    interventions = results.tables["interventions"]
    overall = [row for row in records(interventions) if math.isnan(row["visits"])]
    rows = [
        [
            escape(row["intervention"]),
            escape(row["quantity"]),
            spell(row["estimate"]),
            interval(row["difference"], row["ci_low"], row["ci_high"]),
        ]
        for row in overall
        if row["quantity"] in _PAIRED
    ]
    page.text(
        "{fig:mechanism} changes one part of the model at a time and measures the same sequences again. "
        + INTERVENTION_DEFINITIONS
    )
    page.figure(
        "mechanism",
        mechanism_figure(interventions, results.run, caption=False),
        f"Effective pseudo-count (above) and regret (below) against visits, with parts of the model’s mechanism "
        f"replaced. Shaded: pointwise {results.level_text} intervals.",
        "Two line plots on logarithmic axes against visits, the effective pseudo-count and the regret, one line "
        f"per intervention: {', '.join(dict.fromkeys(interventions['intervention']))}.",
    )
    if rows:
        page.table(
            "interventions",
            ["intervention", "quantity", "estimate", f"intact minus estimate [{results.level_text}]"],
            rows,
            "Interventions over all prefixes, paired with the intact model on the same sequences; all visits are in "
            f"{code('interventions.csv')}.",
            left=2,
        )
