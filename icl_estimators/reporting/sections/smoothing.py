"""Effective pseudo-counts, the richer families, and what interventions on the model do to them."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from icl_estimators.reporting.figures.pseudo_counts import pseudo_count_figure, pseudo_count_names, pseudo_counts
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import interval, interval_of, joined, spell
from icl_estimators.reporting.results import Results, records

__all__ = ["add_interventions", "add_smoothing"]

_MOST_ROWS = 12


def add_smoothing(page: Page, results: Results) -> None:
    """Add the pseudo-counts that estimators act like."""
    if "smoothing" not in results:
        return
    page.heading("Effective pseudo-counts", "smoothing")
    page.text(
        "Add-α rules predict (n~vw~ + α)/(n~v~ + Kα). The *effective pseudo-count* of an estimator is the α whose rule "
        "is nearest to its predictions in KL, over prefixes whose current token has been left before (n~v~ ≥ 1). One "
        "number describes an estimator only if little is left over: beside each fit stands the share it *explains*, "
        "1 − ΣKL(p̂ ‖ fitted rule)/ΣKL(p̂ ‖ uniform)."
    )
    if pseudo_count_names(results) and any(len(pseudo_counts(results, by)) for by in ("visits", "context-length")):
        page.figure(
            "pseudo-counts",
            pseudo_count_figure(results),
            f"Effective pseudo-count, both axes logarithmic, with {results.level_text} intervals clustered on chains. "
            "Estimates of 0 or inf cannot be drawn.",
            "Line plot with intervals, on logarithmic axes, of the effective pseudo-count against visits and context "
            f"length. {_alt(results)}",
        )
    _add_fits(page, results)
    _add_families(page, results)
    if "interventions" in results:
        add_interventions(page, results)


def _alt(results: Results) -> str:
    fits = pseudo_counts(results, "visits").sort_values("value", kind="stable")
    texts = []
    for name in pseudo_count_names(results):
        own = [row for row in records(fits[fits["estimator"] == name]) if math.isfinite(row["estimate"])]
        if own:
            few, many = (f"{spell(row['estimate'], 2)} at {row['value']:g}" for row in (own[0], own[-1]))
            texts.append(f"{name}: {few} visits, {many}")
    return "; ".join(texts) + "." if texts else ""


def _add_fits(page: Page, results: Results) -> None:
    subject = results.subject
    fits = records(pseudo_counts(results, "overall"))
    if subject is not None:
        by_visits = pseudo_counts(results, "visits").sort_values("value", kind="stable")
        fits += _thinned(records(by_visits[by_visits["estimator"] == subject]))
    rows = [
        [
            escape(results.display(row["estimator"])),
            "all prefixes" if row["by"] == "overall" else f"n~v~ = {row['value']:g}",
            interval_of(row, 3),
            spell(row["residual_kl_nats"]),
            _share(row["explained"]),
            _remarks(row),
        ]
        for row in fits
    ]
    if rows:
        page.table(
            "pseudo-counts",
            ["estimator", "prefixes", f"pseudo-count [{results.level_text}]", "left over, nats", "explained", "remark"],
            rows,
            f"Effective pseudo-counts over all prefixes of up to {results.length} tokens"
            + (f", and of {escape(subject)} by visits" if subject is not None else "")
            + f". *Left over*: mean KL from the fitted rule. All fits: {code('smoothing.csv')}.",
            left=2,
        )


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %".replace(" ", "\N{NO-BREAK SPACE}")


def _remarks(row: dict[str, Any]) -> str:
    found = {"at a boundary": row["boundary"] == "True", "not identified": row["identified"] == "False"}
    return joined(", ".join(remark for remark, holds in found.items() if holds))


def _thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return at most a dozen of the rows, the first and the last among them."""
    if len(rows) <= _MOST_ROWS:
        return rows
    return [rows[round(place * (len(rows) - 1) / (_MOST_ROWS - 1))] for place in range(_MOST_ROWS)]


def _add_families(page: Page, results: Results) -> None:
    frame = results.tables["smoothing"]
    frame = frame[frame["by"] == "overall"]
    several = [name for name in results.curves if frame[frame["estimator"] == name]["family"].nunique() > 1]
    if not several:
        return
    rows = [cells for name in several for cells in _family_rows(frame, name)]
    page.text(
        "Does a richer rule describe it better? {tbl:families} compares families by what they leave over, on chains "
        "that were not used for the fit where that was measured; the least first."
    )
    page.table(
        "families",
        ["estimator", "family", "parameters", "left over, held out", "left over", "explained"],
        rows,
        "Families of rules fitted to the same predictions; mean KL left over, in nats.",
        left=3,
    )


def _family_rows(frame: pd.DataFrame, name: str) -> list[list[str]]:
    """Return a row a family, what leaves the least over first."""
    families: dict[str, list[dict[str, Any]]] = {}
    for row in records(frame[frame["estimator"] == name]):
        families.setdefault(row["family"], []).append(row)
    fits: list[tuple[float, list[str]]] = []
    for family, members in families.items():
        parameters = ", ".join(f"{escape(row['parameter'])} = {interval_of(row, 3)}" for row in members)
        held_out, residual = (float(members[0][key]) for key in ("residual_kl_heldout_nats", "residual_kl_nats"))
        order = next((value for value in (held_out, residual) if math.isfinite(value)), math.inf)
        shown = [spell(held_out, 5), spell(residual, 5), _share(members[0]["explained"])]
        fits.append((order, [escape(name), escape(family), parameters, *shown]))
    return [cells for _, cells in sorted(fits, key=lambda fit: fit[0])]


def add_interventions(page: Page, results: Results) -> None:
    """Add what changing the model's parts does."""
    rows = [
        [
            escape(row["intervention"]),
            "all" if math.isnan(row["visits"]) else f"{row['visits']:g}",
            escape(row["quantity"]),
            spell(row["estimate"]),
            interval(row["difference"], row["ci_low"], row["ci_high"]),
        ]
        for row in records(results.tables["interventions"])
    ]
    page.text("{tbl:interventions} changes one part of the model at a time and measures the same sequences again.")
    page.table(
        "interventions",
        ["intervention", "visits", "quantity", "with it", f"intact less it [{results.level_text}]"],
        rows,
        "Interventions on the model, paired with the intact model on the same sequences.",
        left=1,
    )
