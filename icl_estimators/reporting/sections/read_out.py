"""Attention and read-out replaced one after the other: which of the two costs what."""

from __future__ import annotations

import math

from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import interval_of
from icl_estimators.reporting.results import Results, records

__all__ = ["add_read_out"]

_READ_OUTS = {"trained": "as trained", "refitted": "refitted", "perfect": "perfect"}


def add_read_out(page: Page, results: Results) -> None:
    """Add the regrets of all combinations, and the share of each part."""
    if "mechanism" not in results:
        return
    frame = results.tables["mechanism"]
    subject = results.subject if results.subject in set(frame["estimator"]) else None
    name = subject or str(frame["estimator"].iloc[0])
    own = records(frame[frame["estimator"] == name])
    rows = [
        [
            "the model’s" if row["attention"] == "model" else "exact",
            _READ_OUTS.get(str(row["read_out"]), escape(str(row["read_out"]))),
            escape(str(row["unmatched"])) or "–",
            "–" if math.isnan(float(row["gamma"])) else f"{float(row['gamma']):.2f}",
            "–" if math.isnan(float(row["bonus"])) else f"{float(row['bonus']):.2f}".replace("-", "−"),
            interval_of(row),
        ]
        for row in own
    ]
    shown = escape(results.display(name))
    page.heading("Attention or read-out?", "read-out")
    page.text(
        "To replace one part while the other keeps the weights that were trained together with it tells only half. "
        f"{{tbl:read-out}} combines the attention of {shown}, or that of an exact induction head, with the read-out as "
        "trained, with one that is fitted again (softmax of γf and a bonus for repeating, on separate chains), or with "
        f"a perfect one, which predicts what was copied. {_shares(results, name)}"
    )
    page.table(
        "read-out",
        ["attention", "read-out", "f before v was left", "γ", "bonus", f"mean regret, nats [{results.level_text}]"],
        rows,
        "Regret of each combination, on the same sequences. A perfect read-out gives probability 0 to what has not "
        f"occurred, so that its regret is infinite. Both orders of replacement are in {code('mechanism_shares.csv')}.",
        left=3,
    )


def _shares(results: Results, name: str) -> str:
    """Say what the replacement of each part changes, averaged over both orders."""
    if "mechanism_shares" not in results:
        return ""
    frame = results.tables["mechanism_shares"]
    rows = records(
        frame[(frame["estimator"] == name) & (frame["read_out"] == "refitted") & (frame["replaced"] == "average")]
    )
    found = {(str(row["unmatched"]), str(row["part"])): row for row in rows if math.isfinite(row["estimate"])}
    variant = next((unmatched for unmatched, _ in found), None)
    if variant is None or (variant, "attention") not in found or (variant, "read_out") not in found:
        return ""
    changes = []
    for part, words in (("attention", "exact attention"), ("read_out", "a refitted read-out")):
        row = found[variant, part]
        verb = "lowers" if row["estimate"] > 0 else "raises"
        size = {key: abs(float(row[key])) for key in ("estimate", "ci_low", "ci_high")}
        low, high = sorted((size["ci_low"], size["ci_high"]))
        changes.append(f"{words} {verb} the regret by {interval_of({**size, 'ci_low': low, 'ci_high': high})} nats")
    return (
        f"Averaged over both orders of replacement, {' and '.join(changes)} (f = {escape(variant)} before v was left)."
    )
