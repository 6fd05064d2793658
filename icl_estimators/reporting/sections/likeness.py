"""Who is like whom: distances between all pairs, and the model as a mixture of rules."""

from __future__ import annotations

import math

import numpy as np

from icl_estimators.reporting.figures.likeness import distance_matrix, likeness_figure
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import interval_of
from icl_estimators.reporting.results import Results, records

__all__ = ["add_likeness", "add_strategies"]


def add_likeness(page: Page, results: Results) -> None:
    """Add the matrix of distances."""
    if "likeness" not in results:
        return
    names, matrix = distance_matrix(results)
    if len(names) < 2:
        return
    page.heading("Who is like whom", "likeness")
    page.text(
        "Two estimators with the same regret need not be alike. {fig:likeness} has the total variation between every "
        "two of them on the same prefixes: the share of the probability that one puts elsewhere than the other. "
        f"{_closest(results, names, matrix)} Intervals, KL, and all lengths are in {code('likeness.csv')}."
    )
    page.figure(
        "likeness",
        likeness_figure(results),
        f"Total variation in percent, the mean over n = 1 … {results.length}. Like estimators stand together.",
        f"Matrix of distances between {len(names)} estimators. {_closest(results, names, matrix)}",
    )


def _closest(results: Results, names: list[str], matrix: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    apart = np.where(np.eye(len(names), dtype=bool) | ~np.isfinite(matrix), np.inf, matrix)
    row, column = np.unravel_index(int(apart.argmin()), apart.shape)
    one, other = sorted((results.display(names[row]), results.display(names[column])))
    return f"The two that are most alike are {escape(one)} and {escape(other)}: {100 * apart.min():.1f} %."


def add_strategies(page: Page, results: Results) -> None:
    """Add the weights of the rules in the mixture that is nearest to the model."""
    subject = results.subject
    if subject is None or "strategies" not in results:
        return
    frame = results.tables["strategies"]
    own = records(frame[frame["estimator"] == subject])
    if not own:
        return
    strategies = list(dict.fromkeys(str(row["strategy"]) for row in own))
    lengths = list(dict.fromkeys(str(row["context_length"]) for row in own))
    found = {(str(row["strategy"]), str(row["context_length"])): row for row in own}
    shown = escape(results.display(subject))
    page.heading("As a mixture of rules", "mixture", level=3)
    rows = []
    for n in lengths:
        explained = float(found[strategies[0], n]["explained"])
        cells = [_weight(found[name, n]) for name in strategies]
        rows.append(["all" if n == "mean" else n, *cells, "–" if math.isnan(explained) else f"{100 * explained:.1f} %"])
    page.text(
        f"{{tbl:mixture}} describes {shown} as a weighted mean of rules: the weights that leave the least KL, found at "
        "each context length, and how much of its predictions the mixture explains on other chains. A weight is left "
        "out where other weights give the same mixture."
    )
    page.table(
        "mixture",
        ["n", *(escape(results.display(name)) for name in strategies), "explained"],
        rows,
        f"Weights of the rules, with {results.level_text} intervals in the last row; all intervals are in "
        f"{code('strategies.csv')}.",
    )


def _weight(row: dict[str, object]) -> str:
    value = float(str(row["estimate"]))
    if math.isnan(value):
        return "–"
    if row["context_length"] == "mean" and math.isfinite(float(str(row["ci_low"]))):
        return interval_of(row, 2)
    return f"{value:.2f}"
