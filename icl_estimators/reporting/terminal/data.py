"""What observed data say about themselves, as text: transitions, the best pseudo-count, the order, tests."""

from __future__ import annotations

import math
from typing import Any

from icl_estimators.reporting.terminal.rows import Record, real
from icl_estimators.text import number, text_table

__all__ = ["data_text"]

_STATES_SHOWN = 8
_HISTORIES = {
    "alone": "each sequence alone",
    "window": "the last {window} tokens",
    "pooled": "pooled, in the order of the file",
    "folds": "fitted to the other of {folds} folds",
}
_TESTS = {
    "order_0_against_1": "independence of the current token (order 0 against 1)",
    "order_1_against_2": "independence of the token before it (order 1 against 2)",
    "stated_matrix": "the stated matrix",
}


def data_text(tables: dict[str, list[Record]], run: dict[str, Any]) -> str:
    """Return what the tables of statistics show, a paragraph each; empty if there are none."""
    if "transitions" not in tables:
        return ""
    options = run["options"]
    level = f"{100 * options['level']:g} %"
    parts = [_transitions(tables["transitions"], level), _orders(tables["orders"], options, level)]
    parts += [_concentrations(tables["concentration"], options, level), _tests(tables["likelihood_ratio"])]
    return "\n\n".join(part for part in parts if part)


def _history(row: Record, options: dict[str, Any]) -> str:
    if row["history"] == "alone" and options["n_sequences"] == 1:
        return "the whole history"
    return _HISTORIES[str(row["history"])].format(window=options["length"], folds=options["folds"])


def _transitions(rows: list[Record], level: str) -> str:
    names = list(dict.fromkeys(str(row["target"]) for row in rows))
    if len(names) > _STATES_SHOWN or len(rows) != len(names) ** 2:
        return f"Transitions of {len(names):,} states: see transitions.csv."
    shown: dict[str, list[str]] = {}
    for row in rows:
        low, high = real(row["ci_low"]), real(row["ci_high"])
        cell = f"{real(row['estimate']):.3f} [{low:.3f}, {high:.3f}]"
        shown.setdefault(str(row["source"]), [str(row["source"]), f"{row['visits']:,}"]).append(cell)
    return (
        f"Transition probabilities over all sequences, posterior mean and {level} credible interval (row: current "
        "state)\n" + text_table(["", "left", *names], list(shown.values()))
    )


def _orders(rows: list[Record], options: dict[str, Any], level: str) -> str:
    table = []
    for row in rows:
        if row["fitted"]:
            continue
        difference, low, high = (real(row[name]) for name in ("difference", "ci_low", "ci_high"))
        factor = real(row["log_bayes_factor"])
        beside = "–" if row["order"] == 1 else f"{difference:+.4f}"
        if row["order"] != 1 and not math.isnan(low):
            beside += f" [{low:+.4f}, {high:+.4f}]"
        table.append(
            [
                _history(row, options),
                str(row["order"]),
                number(real(row["log_loss_nats"])),
                beside,
                "" if math.isnan(factor) else "–" if row["order"] == 1 else f"{factor:+.1f}",
            ]
        )
    return (
        "How much context the data support: log loss of the add-one rule by order, in nats per prediction, and its\n"
        f"difference from order 1 with a {level} interval; log of the Bayes factor against order 1\n"
        + text_table(["", "order", "log loss", "minus order 1", "log Bayes factor"], table)
    )


def _concentrations(rows: list[Record], options: dict[str, Any], level: str) -> str:
    lines = []
    for row in rows:
        if row["order"] != 1:
            continue
        estimate, low, high = (real(row[name]) for name in ("estimate", "ci_low", "ci_high"))
        limits = "" if math.isnan(low) else f" [{low:.3g}, {high:.3g}]"
        if row["criterion"] == "marginal_likelihood":
            what = f"by marginal likelihood, {_history(row, options)}: α = {estimate:.3g}{limits}"
        else:
            what = f"by log loss, {_history(row, options)}: β = {estimate:.3g}{limits}"
        lines.append(f"  {what}")
    return f"Best pseudo-count for the next state given the current one, {level} interval\n" + "\n".join(lines)


def _tests(rows: list[Record]) -> str:
    lines = []
    for row in rows:
        statistic, freedom, p = (real(row[name]) for name in ("statistic", "degrees_of_freedom", "p_value"))
        if math.isnan(statistic):
            found = str(row["note"])
        else:
            found = f"G² = {statistic:.2f}, {freedom:.0f} degrees of freedom, p {_p(p)}"
            found += f" ({row['note']})" if row["note"] else ""
        lines.append(f"  {_TESTS[str(row['test'])]}: {found}")
    return "Likelihood-ratio tests, transitions of all sequences together\n" + "\n".join(lines)


def _p(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"= {p:.4f}"
