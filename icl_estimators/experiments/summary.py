"""The headline figures of a comparison as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from icl_estimators.experiments.smoothing_summary import pseudo_count_text, records
from icl_estimators.experiments.tables import Cell, Table
from icl_estimators.text import gamma_text, number, text_table

__all__ = ["summary_text"]

_SHOWN = (1, 3, 12, 50, 100)
_LONG_NAME = 24


def summary_text(tables: dict[str, Table], run: dict[str, Any]) -> str:
    """Return the summary of `tables`, made from their rows alone."""
    if "differences" not in tables:
        used = gamma_text(run.get("default_gamma", {}))
        return _observed_text(tables["risk"], run) + (f"\n{used}" if used else "")
    options = run["options"]
    level = f"{100 * options['level']:g} %"
    risk = _index(tables["risk"], "estimate", "ci_low", "ci_high")
    differences = _index(tables["differences"], "difference", "ci_low", "ci_high")
    names = list(dict.fromkeys(str(row[0]) for row in tables["risk"].rows))  # with the mean over training runs
    labels = [n for n in _SHOWN if n <= options["length"]]
    if options["length"] not in labels:
        labels.append(options["length"])
    columns: list[Cell] = ["mean", *labels]
    header = ["", "mean over n", *(f"n = {n}" for n in labels)]
    parts = [
        f"{options['chains']:,} chains × {options['sequences_per_chain']} sequences × {options['length']} tokens; "
        f"K = {options['states']}, α = {options['concentration']:g}, {options['start']} start, seed {options['seed']}; "
        f"± is half a {level} interval, clustered on chains"
    ]

    def block(title: str, metric: str, rows: Sequence[str]) -> None:
        parts.append(f"\n{title}\n" + _named_rows(header, rows, columns, risk, metric))

    block("KL(truth ‖ estimate), nats", "kl_nats", names)
    infinite = [
        name
        for name in names
        if (name, "mean", "kl_finite_nats") in risk and any(risk[name, n, "p_infinite"][0] > 0 for n in columns)
    ]
    if infinite:
        block("… of which this share of sequences has KL = inf", "p_infinite", infinite)
        block("… and where it is finite, its mean is", "kl_finite_nats", infinite)
    if options["start"] == "uniform":
        block("Regret: KL above the Bayes rule's, nats", "regret_nats", names)
    else:
        parts.append("\nRegret is not defined with a stationary start (the tables say why).")
    metric = "regret_nats" if options["start"] == "uniform" else "kl_nats"
    rows = []
    for name in names:
        if (name, "mean", metric) not in differences:
            continue
        difference, low, high = differences[name, "mean", metric]
        if math.isnan(difference):
            rows.append([name, "undefined: KL is infinite with positive probability", ""])
        else:
            verdict = "worse" if low > 0 else "better" if high < 0 else "not distinguishable"
            rows.append([name, f"{_signed(difference)} [{_signed(low)}, {_signed(high)}]", verdict])
    if rows:
        what = "regret" if metric == "regret_nats" else "KL"
        parts.append(
            f"\nMean {what} over n less that of {options['reference']}, paired on the same draws, "
            f"{level} interval, nats\n" + text_table(["", "difference", ""], rows, left=2)
        )
    acts_like = pseudo_count_text(records(tables["smoothing"])) if "smoothing" in tables else ""
    if acts_like:
        parts.append(
            "\nPseudo-count α that it acts like after n_v transitions out of the current token, on these chains\n"
            "(python -m icl_estimators.smoothing fits it to chains of its own: within the intervals, other digits)\n"
            + acts_like
        )
    used = gamma_text(run.get("default_gamma", {}), run.get("tuned_gamma", {}))
    if used:
        parts.append(f"\n{used}")
    return "\n".join(parts)


def _named_rows(
    header: Sequence[str],
    names: Sequence[str],
    columns: Sequence[Cell],
    values: dict[tuple[Cell, ...], tuple[float, ...]],
    metric: str,
) -> str:
    """Align one row an estimator; a long name gets a line of its own, so that the columns stay narrow."""
    rows: list[list[str]] = []
    for name in names:
        cells = [_with_margin(*values[name, column, metric]) for column in columns]
        if len(name) > _LONG_NAME:
            rows.append([name, *[""] * len(cells)])
            name = ""
        rows.append([name, *cells])
    marked = [[row[0] if len(row[0]) <= _LONG_NAME else "\0" + row[0], *row[1:]] for row in rows]
    table = text_table(header, [["" if row[0].startswith("\0") else row[0], *row[1:]] for row in marked])
    lines = table.split("\n")
    for index, row in enumerate(marked, start=2):
        if row[0].startswith("\0"):
            lines[index] = row[0][1:]
    return "\n".join(lines)


def _with_margin(estimate: float, low: float, high: float) -> str:
    if math.isnan(estimate):
        return "–"
    if math.isnan(low):
        return number(estimate)
    margin = max(estimate - low, high - estimate)
    return f"{number(estimate)} ±{f'{margin:.4f}'.removeprefix('0')}"


def _signed(value: float) -> str:
    return f"{value + 0.0:+.4f}"


def _index(table: Table, *fields: str) -> dict[tuple[Cell, ...], tuple[float, ...]]:
    """Return {(estimator, context_length, metric): the fields}."""
    where = {column: index for index, column in enumerate(table.columns)}
    key = [where[name] for name in ("estimator", "context_length", "metric")]
    wanted = [where[name] for name in fields]
    return {tuple(row[k] for k in key): tuple(_real(row[w]) for w in wanted) for row in table.rows}


def _real(cell: Cell) -> float:
    return math.nan if cell is None or isinstance(cell, str) else float(cell)


def _observed_text(risk: Table, run: dict[str, Any]) -> str:
    options = run["options"]
    where = {column: index for index, column in enumerate(risk.columns)}
    rows = []
    for row in risk.rows:
        estimate, low, high = (_real(row[where[name]]) for name in ("estimate", "ci_low", "ci_high"))
        interval = "" if math.isnan(low) else f"[{low:.5f}, {high:.5f}]"
        rows.append([str(row[where["estimator"]]), number(estimate, 5), interval])
    head = (
        f"Log loss per prediction, nats: {options['data']}, {options['n_predictions']:,} predictions, "
        f"states {', '.join(options['labels'])}\n"
        f"(window={options['length']}: only the last {options['length']} tokens, as a fresh prefix; "
        "else the whole history)\n"
    )
    rows.sort(key=lambda row: float(row[1]))
    note = "" if any(row[2] for row in rows) else "\nNo intervals: one series has no independent units."
    interval = f"{100 * options['level']:g} % interval" if any(row[2] for row in rows) else ""
    return head + text_table(["estimator", "log loss", interval], rows) + note
