"""Why to believe it: self-checks, provenance, how the sentences are made, and what every column means."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from icl_estimators.metrics import MEANINGS
from icl_estimators.reporting.figures.checks import CHECK_TITLES, agreeing, check_figure
from icl_estimators.reporting.markdown import Page, code, escape, prose
from icl_estimators.reporting.numbers import counted, spell
from icl_estimators.reporting.results import Results, records
from icl_estimators.reporting.sections.answer import RULES, alarm_sentence
from icl_estimators.schemas import SCHEMAS

__all__ = ["add_checks", "add_definitions", "add_provenance", "verdict_on_checks"]

_ALARM = 0.01
"""Adjusted p-value below which a self-check is reported as failed."""


def add_checks(page: Page, results: Results) -> None:
    """Add the self-checks, if they gave any z-score."""
    if "checks" not in results:
        return
    frame = agreeing(results.tables["checks"])
    if frame.empty:
        return
    page.heading("Self-checks", "checks")
    page.text(*map(alarm_sentence, results.alarms))
    page.text(
        "These pairs of numbers must agree; {fig:checks} shows how far apart they are, in standard errors. Context "
        "lengths and estimators share draws, so many neighbouring dots can lie on the same side. A dot far outside the "
        "shaded range would be a warning."
    )
    page.text(verdict_on_checks(frame))
    kinds = list(dict.fromkeys(frame["check"]))
    inner = float(ndtri(0.975))
    rows = []
    for kind in kinds:
        z = frame[frame["check"] == kind]["z"].to_numpy(float)
        largest = float(np.abs(z).max())
        rows.append(
            [
                CHECK_TITLES.get(kind, escape(kind)),
                f"{len(z):,}",
                f"{100 * float((np.abs(z) > inner).mean()):.1f} %",
                spell(largest, 2),
            ]
        )
    page.figure(
        "checks",
        check_figure(results),
        "Each dot is one difference divided by its standard error; 95 % of standard normal values lie in the shaded "
        "range.",
        "Strip plot of z-scores. "
        + " ".join(f"{row[0]}: {row[1]} values, largest absolute value {row[3]}." for row in rows),
    )
    page.table(
        "checks",
        ["check", "comparisons", "beyond ±1.96", "largest absolute z"],
        rows,
        f"Self-checks; 5 % are expected beyond ±1.96 if all agree. Each is a row of {code('checks.csv')}.",
    )


def verdict_on_checks(frame: pd.DataFrame) -> str:
    """Say in one line whether all checks pass, adjusted for their number (Bonferroni), or which does not."""
    worst = max(records(frame), key=lambda row: abs(float(row["z"])))
    z, count = float(worst["z"]), len(frame)
    chance = min(1.0, 2.0 * count * float(ndtr(-abs(z))))
    if chance >= _ALARM:
        return (
            f"**All {count:,} checks pass.** The largest |z| is {abs(z):.1f}; among so many independent checks its "
            f"p-value, adjusted for their number (Bonferroni), is {spell(chance, 2)}."
        )
    where = "averaged over n" if worst["context_length"] == "mean" else f"at n = {worst['context_length']}"
    title = CHECK_TITLES.get(worst["check"], escape(str(worst["check"])))
    return (
        f"**Look here.** {title}, {escape(str(worst['estimator']))}, {where}: z = {spell(z, 1)}. All {count:,} checks "
        f"together give so large a value with a probability of at most {spell(chance, 4)} (Bonferroni)."
    )


def add_provenance(page: Page, results: Results) -> None:
    """Add what reproduces these numbers."""
    run = results.run
    page.heading("Provenance", "provenance")
    if "command" in run:
        page.text("This command reproduces these numbers:")
        page.text(f"```sh\n{run['command']}\n```")
    rows = [["version", escape(f"icl-estimators {run.get('version') or 'from a source tree'}")]]
    if run.get("commit"):
        rows.append(["commit", code(str(run["commit"]))])
    libraries = ", ".join(f"{name} {version}" for name, version in run.get("libraries", {}).items() if version)
    rows += [["libraries", escape(libraries)]] if libraries else []
    rows += [
        [label, escape(str(run[key]))] for key, label in (("platform", "platform"), ("device", "device")) if key in run
    ]
    if "jobs" in run:
        rows.append(["processes", f"{run['jobs']} (the tables are the same for any number)"])
    if "wall_time_s" in run:
        rows.append(["time", f"{run['wall_time_s']:.0f} s"])
    rows += [[f"SHA-256 of {escape(name)}", code(digest)] for name, digest in run.get("inputs", {}).items()]
    page.table(
        "provenance", ["what", "value"], rows, f"Where these numbers come from; more in {code('run.json')}.", left=2
    )
    _add_precision(page, results)


def _add_precision(page: Page, results: Results) -> None:
    needed = results.run.get("chains_for_target_se") or {}
    rows = []
    for name, metrics in needed.items():
        counts = metrics.get("regret_nats" if results.exact_posterior else "kl_nats") or {}
        cells = [f"{value:,.0f}" if value is not None else "–" for value in counts.values()]
        if name not in results.bayes and any(cell != "–" for cell in cells):
            rows.append((list(counts), [escape(results.display(name)), *cells]))
    if not rows:
        return
    what = "regret" if results.exact_posterior else "KL"
    page.text(f"For planning a run of your own, {{tbl:precision}} has the number of chains that the mean {what} needs.")
    page.table(
        "precision",
        ["estimator", *(f"SE = {target}" for target in rows[0][0])],
        [cells for _, cells in rows],
        f"Number of chains for a target standard error of the mean {what}, in nats "
        f"(this run: {counted(results.options['chains'], 'chain')}).",
    )


def add_definitions(page: Page, results: Results) -> None:
    """Add the rules behind the sentences, and what every column and metric means."""
    page.heading("Rules and definitions", "definitions")
    if "risk" in results and not results.observed:
        page.text("The sentences of the answer are made from the tables by these rules.")
        page.items(RULES)
    elif "risk" not in results:
        page.text("{tbl:metrics} and {tbl:columns} say what every metric and every column means.")
    present = [name for name in SCHEMAS if name in results]
    used = {
        str(label)
        for name in present
        for column in ("metric", "quantity")
        if column in results.tables[name]
        for label in results.tables[name][column].unique()
    }
    rows = [[code(metric), prose(text)] for metric, text in MEANINGS.items() if metric in used]
    page.table("metrics", ["metric", "meaning"], rows, "Metrics and quantities.", left=2, folded=True)
    tables: dict[tuple[str, str], list[str]] = {}
    for name in present:
        for column in SCHEMAS[name].columns:
            tables.setdefault((column.name, column.meaning), []).append(name)
    rows = [[code(column), prose(text), _listed(names, present)] for (column, text), names in tables.items()]
    page.table(
        "columns",
        ["column", "meaning", "in"],
        rows,
        "Every column of the tables beside this report. Numbers are unrounded. An undefined number is left empty, with "
        "the reason in `note`; an infinite number is `inf`.",
        left=3,
        folded=True,
    )


def _listed(names: list[str], present: list[str]) -> str:
    return "every table" if names == present and len(present) > 1 else ", ".join(map(escape, names))
