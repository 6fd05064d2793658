"""What the report says of the source, and of folders that were written before run.json said it."""

from __future__ import annotations

import pytest

from icl_estimators.reporting.markdown import Page
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.sections.design import add_design


def written(results: Results) -> str:
    page = Page()
    add_design(page, results)
    return " ".join(page.markdown().split())


def test_the_source_is_described_in_its_own_words(results: Results) -> None:
    text = written(results)
    assert "of K = 3 states, each row of the transition matrix P drawn from Dirichlet(α, …, α) with α = 1; the" in text
    assert "the first token is uniform, independent of the chain; " in text
    assert "it is exact for this source" in text


def test_without_an_exact_posterior_regret_is_not_defined(results: Results) -> None:
    options = {**results.options, "exact_posterior": False}
    text = written(Results(results.tables, {**results.run, "options": options}))
    assert "Regret is not defined, because the posterior given a prefix has no closed form for these chains." in text


@pytest.mark.parametrize(("start", "exact"), [("uniform", True), ("stationary", False)])
def test_an_older_folder_is_told_by_its_start_law(results: Results, start: str, exact: bool) -> None:
    new = ("source", "source_description", "exact_posterior")
    options = {key: value for key, value in results.options.items() if key not in new} | {"start": start}
    older = Results(results.tables, {**results.run, "options": options})
    assert older.exact_posterior == exact
    assert f"of K = 3 states, Dirichlet rows, α = 1, {start} start; " in written(older)
