"""The first half page: what it says follows from the tables, and nothing is said that these do not tell."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from icl_estimators.reporting.markdown import Page
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.sections.first_page import (
    add_first_page,
    add_rules,
    bayes_sentence,
    induction_sentence,
    largest_part,
    likeness_sentence,
    pseudo_count_words,
)

Change = Callable[..., Results]
MODEL = "transformer"
NEAREST = {"estimator": MODEL, "measure": "total_variation"}


def words(text: str | None) -> str:
    assert text is not None
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_nearest_rule_is_named_with_the_share_that_lies_elsewhere(results: Results) -> None:
    row = results.tables["nearest"].query("measure == 'total_variation'").iloc[0]
    text = words(likeness_sentence(results))
    assert results.display(row["rule"]) in text
    assert f"{100 * float(row['estimate']):.1f} % [" in text
    assert "The next kind of rule is" in text


def test_two_rules_that_are_as_near_are_both_named(changed: Change) -> None:
    text = words(likeness_sentence(changed("nearest", NEAREST, decided=False)))
    assert "may be as near" in text
    assert "the paired difference does not tell the two apart" in text


def test_the_regret_is_said_with_its_greatest_part(results: Results) -> None:
    found = largest_part(results, MODEL)
    assert found is not None
    part, share, n = found
    rows = results.tables["budget"].query(f"estimator == '{MODEL}' and context_length == {n}").set_index("part")
    assert share == pytest.approx(rows.loc[part, "estimate"] / rows.loc["regret", "estimate"])
    assert part == rows.drop("regret")["estimate"].idxmax()
    text = words(bayes_sentence(results))
    assert f"At n = {n}, {100 * share:.0f} % of this excess comes from" in text


def test_an_infinite_regret_is_said(changed: Change) -> None:
    where = {"estimator": MODEL, "metric": "regret_nats", "context_length": "mean"}
    text = words(bayes_sentence(changed("risk", where, estimate=math.inf)))
    assert "its regret is infinite" in text


def test_the_pseudo_count_goes_from_few_visits_to_many(results: Results) -> None:
    text = words(pseudo_count_words(results))
    assert "After 1 visit of the current token it smooths as if it added 0.300 [0.270, 0.330]" in text
    assert "after 20 visits as if it added 2.84 [" in text
    assert "Bayes adds 1 at every number of visits." in text


def test_under_another_start_no_bayes_rule_is_quoted(results: Results) -> None:
    stationary = Results(results.tables, {**results.run, "options": {**results.options, "exact_posterior": False}})
    assert "Bayes" not in words(pseudo_count_words(stationary))
    assert bayes_sentence(stationary) is None


def test_an_induction_head_is_recognised_by_its_attention(results: Results, changed: Change) -> None:
    assert words(induction_sentence(results)).startswith("**Is it an induction head?** Yes")
    elsewhere = changed("attention", {"estimator": MODEL, "quantity": "previous_token_mass"}, estimate=0.2)
    assert words(induction_sentence(elsewhere)).startswith("**Is it an induction head?** No")
    by_chance = changed("attention", {"estimator": MODEL, "quantity": "match_mass"}, ci_low=0.0)
    assert words(induction_sentence(by_chance)).startswith("**Is it an induction head?** No")


def test_what_a_missing_table_would_say_is_left_out(results: Results) -> None:
    bare = Results({"risk": results.tables["risk"]}, results.run)
    assert likeness_sentence(bare) is None
    assert induction_sentence(bare) is None
    assert pseudo_count_words(bare) is None
    assert "comes from" not in words(bayes_sentence(bare))
    page = Page()
    add_first_page(page, bare)
    assert page.markdown().count("\n- **") <= 1


def test_rules_are_defined_under_the_names_that_the_report_uses(results: Results) -> None:
    page = Page()
    add_rules(page, results)
    assert page.markdown().strip() == ""  # they come after the answer
    page.heading("The answer", "answer")
    add_rules(page, results)
    add_rules(page, results)
    assert page.markdown().count("{#rules}") == 1
    text = words(page.markdown())
    for name in results.rules:
        if name in results.curves:
            assert results.display(name) in text
    assert "construction-softmax" not in text
    assert "n~vw~/n~v~" in text
