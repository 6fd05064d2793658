from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from icl_estimators.api import compare_observed
from icl_estimators.reporting.build import report_page
from icl_estimators.reporting.figures.data import cumulative_rows, state_colours, strip_figure, strip_rows
from icl_estimators.reporting.results import Results, read_results
from icl_estimators.reporting.sections.data import order_sentence
from icl_estimators.sources import ObservedSequences, elnino


def sessions(count: int = 30, states: int = 4) -> ObservedSequences:
    rng = np.random.default_rng(1)
    law = rng.dirichlet(np.full(states, 0.3), size=states)
    made = []
    for length in rng.integers(2, 9, size=count):
        tokens = [int(rng.integers(states))]
        for _ in range(length - 1):
            tokens.append(int(rng.choice(states, p=law[tokens[-1]])))
        made.append(np.array(tokens))
    labels = tuple(f"s{k}" for k in range(states))
    return ObservedSequences("sessions", labels, tuple(made), missing=3, groups=tuple(k // 2 for k in range(count)))


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("months")
    compare_observed(elnino(), "add-one,unigram,construction").save(folder)
    return read_results(folder)


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("pooled")
    with pytest.warns(UserWarning, match="no pooled rows: construction"):
        result = compare_observed(sessions(), "add-one,unigram,construction", pool=True, folds=5)
    result.save(folder)
    return read_results(folder)


def test_the_report_says_what_was_read_and_shows_it(months: Results) -> None:
    _, page = report_page(months)
    text = page.markdown()
    assert "**Source.** elnino. Sea-surface temperature of the eastern tropical Pacific" in text
    assert "**States.** 3: La Niña, neutral, El Niño." in text
    assert "**Read.** 1 sequence of 732 tokens; 731 predictions." in text
    stems = [picture.stem for picture in page.pictures]
    assert stems == ["series", "transitions", "log-loss", "cumulative", "concentration"]
    assert "Probability to stay: La Niña 0.78, neutral 0.67, El Niño 0.82." in text


def test_the_order_and_the_tests_are_told_with_their_numbers(months: Results) -> None:
    sentence = order_sentence(months)
    assert sentence == (
        "**How much context.** The whole history, order 1 has a posterior probability above 0.999 among orders 0, 1 "
        "and 2, for which add-one has a log loss of 1.097, 0.661, 0.680 nats."
    )
    text = report_page(months)[1].markdown()
    assert re.search(r"\| the whole history +\| 0 +\| +1.0966 \| +0.4358 \| +−318.6 \|", text)
    assert re.search(r"the next token does not depend on the current one +\| +665.88 \| +4 \| +< 0.0001", text)
    row = next(line for line in text.splitlines() if line.startswith("| largest marginal likelihood"))
    assert "0.276 [0.078, 0.741]" in row.replace("\N{NO-BREAK SPACE}", " ")


def test_pooled_rows_have_names_of_their_own_and_pieces_are_told(pooled: Results) -> None:
    text = report_page(pooled)[1].markdown()
    assert "add-one, pooled" in text
    assert "add-one, other folds" in text
    assert "**Read.** 15 sequences, divided by 3 missing values into 30 pieces of 2 to 8 tokens" in text
    assert "Counts carry over from sequence to sequence." in text
    assert list(cumulative_rows(pooled)) == ["unigram:pooled"]
    assert "fitted to the other folds (5)" in text


def test_a_strip_breaks_one_long_series_into_rows_and_gives_each_of_several_its_own(
    months: Results, pooled: Results
) -> None:
    assert [text.get_text() for text in strip_figure(months).axes[0].get_xticklabels()] == [
        *("La Niña", "neutral", "El Niño"),
    ]
    rows = strip_rows(months.tables["series"])
    assert [name for name, _ in rows] == ["1", "184", "367", "550"]
    assert sum(len(states) for _, states in rows) == 732
    several = strip_rows(pooled.tables["series"])
    assert [name for name, _ in several[:3]] == ["1", "2", "3"]
    assert len(several) == 12
    named = pooled.tables["series"].assign(id=[f"person {n:g}" for n in pooled.tables["series"]["sequence"]])
    assert strip_rows(named)[1][0] == "person 2"


def test_states_have_distinct_colours_however_many_there_are() -> None:
    for count in (2, 8, 30):
        colours = state_colours([str(k) for k in range(count)])
        assert len(set(colours.values())) == count


def test_many_states_are_drawn_without_a_legend_and_without_numbers(tmp_path: Path) -> None:
    compare_observed(sessions(60, states=30), "add-one").save(tmp_path)
    results = read_results(tmp_path)
    assert len(strip_figure(results).axes) == 1
    _, page = report_page(results)
    matrix = next(picture.figure for picture in page.pictures if picture.stem == "transitions")
    assert not matrix.axes[0].texts


def test_a_folder_without_these_tables_has_a_report_without_these_sections(months: Results) -> None:
    older = replace(
        months,
        tables={name: table for name, table in months.tables.items() if name in ("risk", "differences", "pairs")},
        run={name: value for name, value in months.run.items() if name != "histories"},
    )
    text = report_page(older)[1].markdown()
    assert "## The data" not in text
    assert "add-one, last 100" in text
    assert order_sentence(older) is None
