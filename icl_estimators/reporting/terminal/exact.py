"""The numbers of an enumeration as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from icl_estimators.metrics import METRICS
from icl_estimators.text import gamma_text, number, text_table

__all__ = ["budget_text", "exact_text", "shown_lengths"]

Rows = Iterable[dict[str, Any]]


def shown_lengths(longest: int) -> list[int]:
    """Return the context lengths that a table has a column for.

    Examples
    --------
    >>> shown_lengths(3), shown_lengths(11)
    ([1, 2, 3], [1, 2, 3, 4, 6, 8, 10, 11])
    """
    return [n for n in range(1, longest + 1) if longest <= 8 or n in (1, 2, 3, 4, 6, 8, 10, 12, longest)]


def exact_text(rows: Rows, run: dict[str, Any]) -> str:
    """Return KL by context length, every metric at the longest, and the γ that was used."""
    options = run["options"]
    last, prefixes = options["length"], options["states"] ** options["length"]
    found = {(row["estimator"], row["context_length"], row["metric"]): row["estimate"] for row in rows}
    names = options["estimators"]
    shown = shown_lengths(last)
    columns = [METRICS[metric] for metric in dict.fromkeys(metric for _, _, metric in found)]
    parts = [
        f"Exact risk, no Monte Carlo error: all {prefixes:,} prefixes of {last} tokens; K = {options['states']}, "
        f"α = {options['concentration']:g}, {options['start']} start\n",
        "Expected KL(truth ‖ estimate) in nats, by context length n",
        text_table(
            ["estimator", *(f"n={n}" for n in shown)],
            [[name, *(number(found[name, n, "kl_nats"]) for n in shown)] for name in names],
        ),
        f"\nEvery metric at n = {last}",
        text_table(
            ["estimator", *(column.title for column in columns)],
            [[name, *(number(found[name, last, column.name]) for column in columns)] for name in names],
        ),
        "",
        *(f"{column.title}{f', {column.unit}' if column.unit else ''}: {column.meaning}" for column in columns),
    ]
    used = gamma_text(run["default_gamma"], run["tuned_gamma"])
    return "\n".join([*parts, *([f"\n{used}"] if used else [])])


def budget_text(rows: Rows, run: dict[str, Any]) -> str:
    """Return the regret at the longest context length, and the parts that add up to it."""
    options = run["options"]
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["context_length"] == options["length"]:
            value = row["estimate"]
            found.setdefault(row["estimator"], {})[row["part"]] = math.nan if value is None else float(value)
    parts = list(next(iter(found.values())))
    table = text_table(
        ["estimator", *(part.replace("_", " ") for part in parts)],
        [[name, *(number(of_name[part]) for part in parts)] for name, of_name in found.items()],
    )
    return (
        f"Where each estimator loses at n = {options['length']}: its regret in nats, and the parts that add up to it.\n"
        f"Exact, no Monte Carlo error; K = {options['states']}, α = {options['concentration']:g}, uniform start\n\n"
        f"{table}\n"
        "\norder: it depends on the order of the same transitions; other rows: on transitions out of other states than"
        "\nthe current one; label asymmetry: on the names of the other states; self bias: it treats the current token"
        "\ndifferently. The rest depends on the counts only: amount is the regret of the nearest add-α rule at each"
        "\nnumber of visits, and shape is the rest, which may be negative. An infinite regret is not divided."
    )
