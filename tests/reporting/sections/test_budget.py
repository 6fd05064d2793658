from __future__ import annotations

import math
from collections.abc import Callable

from icl_estimators.reporting.markdown import Page
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.sections.budget import add_budget

Change = Callable[..., Results]
OWN = {"estimator": "transformer", "context_length": 9}


def text_of(results: Results) -> str:
    page = Page()
    add_budget(page, results)
    return page.markdown().replace("\N{NO-BREAK SPACE}", " ")


def cells(text: str, row: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {row} "))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_what_is_not_known_is_a_dash_and_never_0(changed: Change, results: Results) -> None:
    known = cells(text_of(results), "transitions of other states")
    assert known[3] not in ("–", "0.0000")
    unknown = changed("budget", {**OWN, "part": "other_rows"}, estimate=math.nan, ci_low=math.nan, ci_high=math.nan)
    assert cells(text_of(unknown), "transitions of other states")[3] == "–"


def test_the_parts_of_a_column_sum_to_the_regret(results: Results) -> None:
    text = text_of(results)
    rows = ("order of the transitions", "transitions of other states", "labels of the states", "which state is current")
    rows += ("shape of the smoothing", "amount of smoothing")
    for column in range(4):  # exact ones
        total = sum(float(cells(text, row)[column].replace("−", "-")) for row in rows)
        assert abs(total - float(cells(text, "regret")[column])) < 4e-4


def test_what_it_depends_on_is_said_at_the_longest_length_that_is_known(results: Results) -> None:
    text = text_of(results)
    assert "it depends on" in text
    assert "transitions out of other states" in text
    assert "% of its regret there." in text


def test_prefixes_whose_token_was_not_left_before_are_named(results: Results) -> None:
    row = results.tables["regret_by_visits"].query("estimator == 'transformer' and visits == 0").iloc[0]
    share = (
        f"{100 * row['share_of_prefixes']:.1f} % of all and carry {100 * row['share_of_regret']:.0f} % of the regret"
    )
    assert share in text_of(results)


def test_without_a_budget_nothing_is_said(results: Results) -> None:
    tables = {name: table for name, table in results.tables.items() if name != "budget"}
    assert text_of(Results(tables, results.run)).strip() == ""
