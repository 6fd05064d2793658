"""Where the model loses against Bayes: its regret divided, and where on the way it arises."""

from __future__ import annotations

import math

from icl_estimators.reporting.figures.budget import PART_NAMES, budget_figure, budget_rows
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import interval_of, spell
from icl_estimators.reporting.results import Results, records

__all__ = ["add_budget"]

_VISITS = (0, 1, 2, 5, 10, 20, 40)
_CAUSES = {
    "order": "the order of the transitions",
    "other_rows": "transitions out of other states",
    "label_asymmetry": "the labels of the other states",
    "self_bias": "which state is the current one",
}
_TRACE = 5e-5  # nats: what rounds to 0 is not worth a word


def add_budget(page: Page, results: Results) -> None:
    """Add the regret budget of the model, and its regret by visits."""
    subject = results.subject
    if subject is None or "budget" not in results:
        return
    rows = budget_rows(results, subject)
    if not rows:
        return
    shown = escape(results.display(subject))
    page.heading("Where it loses", "budget")
    page.text(
        "The Bayes rule depends on the counts out of the current token and on nothing else. So the prediction of "
        f"{shown} is averaged, step by step, over what that rule ignores: the order in which the same transitions "
        "happened, the transitions out of other states, the labels of the other states, and which state is the current "
        "one. By convexity of KL each step can only lower the regret, and the drop is what it costs to depend on it. "
        "What is left is a rule of the counts. *Amount* is the regret of the add-α rules nearest to it, one at each "
        "number of visits; *shape* is the rest, and may be negative. The parts sum to the regret.",
        _dependence(results, subject),
    )
    page.figure(
        "budget",
        budget_figure(results, subject),
        f"Regret of {shown} and its parts, in nats. Up to the dotted line by enumeration of every prefix, beyond from "
        f"sampled chains; the black lines are {results.level_text} intervals of the whole. Bars taller than the axis "
        "have their height on top.",
        f"Stacked bars of the regret of {results.display(subject)} over context length. {_alt(results, subject)}",
    )
    lengths = [n for n in rows if n in (1, 3, 6, 9, 12, 24, 50, results.length)]
    table = [["regret", *(_cell(rows[n]["regret"]) for n in lengths)]]
    table += [[words, *(_cell(rows[n][part]) for n in lengths)] for part, words in PART_NAMES.items()]
    page.table(
        "budget",
        ["lost through", *(f"n = {n}" for n in lengths)],
        table,
        f"The parts of the regret of {shown}, nats. Exact values have no interval. A dash: too few sampled prefixes "
        f"share their counts; more chains would tell. All lengths and estimators are in {code('budget.csv')}.",
    )
    if "regret_by_visits" in results:
        _add_visits(page, results, subject)


def _cell(row: dict[str, object]) -> str:
    value, low, high = (float(str(row[field])) for field in ("estimate", "ci_low", "ci_high"))
    if math.isnan(value):
        return "–"
    return spell(value if abs(value) >= _TRACE else 0.0) if low == high or math.isnan(low) else interval_of(row)


def _dependence(results: Results, subject: str) -> str:
    """Say what it depends on besides the counts, at the longest length with all parts."""
    rows = budget_rows(results, subject)
    whole = [n for n, parts in rows.items() if all(math.isfinite(float(parts[p]["estimate"])) for p in PART_NAMES)]
    if not whole:
        return ""
    n = whole[-1]
    beyond = {part: rows[n][part] for part in ("order", "other_rows", "label_asymmetry", "self_bias")}
    used = [_CAUSES[part] for part, row in beyond.items() if float(row["ci_low"]) > _TRACE]
    said = _listed(used) if used else "nothing but the counts, as far as these data show"
    cost = sum(float(row["estimate"]) for row in beyond.values())
    regret = float(rows[n]["regret"]["estimate"])
    share = f", which costs {100 * cost / regret:.0f} % of its regret there" if used and regret > 0 else ""
    return f"At n = {n} it depends on {said}{share}."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _alt(results: Results, subject: str) -> str:
    rows = budget_rows(results, subject)
    n = max(rows)
    parts = [
        f"{words} {spell(float(rows[n][part]['estimate']))}"
        for part, words in PART_NAMES.items()
        if math.isfinite(float(rows[n][part]["estimate"]))
    ]
    return f"At n = {n}: regret {spell(float(rows[n]['regret']['estimate']))} nats; {', '.join(parts)}."


def _add_visits(page: Page, results: Results, subject: str) -> None:
    frame = results.tables["regret_by_visits"]
    own = records(frame[frame["estimator"] == subject])
    rows = [
        [
            f"{row['visits']:.0f}",
            interval_of(row),
            f"{100 * float(row['share_of_prefixes']):.1f} %",
            f"{100 * float(row['share_of_regret']):.1f} %",
        ]
        for row in own
        if row["visits"] in _VISITS and row["visits"] == row["visits_high"] and math.isfinite(row["estimate"])
    ]
    if not rows:
        return
    first = own[0]
    page.text(
        f"Prefixes whose last token has not been left before are {100 * float(first['share_of_prefixes']):.1f} % of "
        f"all and carry {100 * float(first['share_of_regret']):.0f} % of the regret ({{tbl:visits}}). Bayes is "
        "uniform there."
    )
    page.table(
        "visits",
        [
            "visits to the current token",
            f"mean regret, nats [{results.level_text}]",
            "of the prefixes",
            "of the regret",
        ],
        rows,
        f"Regret of {escape(results.display(subject))} by how often the current token has been left before; all "
        f"numbers of visits are in {code('regret_by_visits.csv')}.",
    )
