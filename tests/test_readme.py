"""The README's numbers are those of the tables that they come from, and its prompt is answered as printed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from analysis import readme
from analysis.readme import Sentence
from icl_estimators import identify_estimator
from icl_estimators.estimators import get
from icl_estimators.experiments.exact import exact_risk
from icl_estimators.predict import main as predict

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("sentence", list(readme.sentences()), ids=lambda sentence: sentence.text[:50])
def test_every_number_is_its_tables(sentence: Sentence) -> None:
    assert sentence.changes(PAGE) == [], f"python -m analysis.readme puts the numbers of {sentence.source} in"


def test_a_changed_number_is_found_and_put_right(tmp_path: Path) -> None:
    for sentence in readme.sentences():
        where = sentence.find(PAGE)
        for index, right in enumerate(sentence.numbers, start=1):
            spoiled = PAGE[: where.start(index)] + "7.77" + PAGE[where.end(index) :]
            assert sentence.changes(spoiled) == [("7.77", right)]
            assert sentence.fill(spoiled) == PAGE
    page = tmp_path / "README.md"
    page.write_text(PAGE, encoding="utf-8")
    assert readme.refresh(page) == []
    assert page.read_text(encoding="utf-8") == PAGE


@pytest.mark.parametrize("times", [0, 2])
def test_a_sentence_that_is_not_there_once_is_an_error(times: int) -> None:
    with pytest.raises(ValueError, match=f"the README has {times} stretches like 'it is {{}} nats'"):
        Sentence("it is {} nats", ("1",), "a table").find("it is 2\nnats. " * times)
    with pytest.raises(ValueError, match="2 numbers for the holes"):
        Sentence("it is {} nats", ("1", "2"), "a table").find("it is 2 nats")


def test_white_space_and_line_breaks_are_kept() -> None:
    sentence = Sentence("it is {} nats, or {} %", ("0.5", "1,234"), "a table")
    assert sentence.fill("so it\nis 0.25   nats, or\n12 %.") == "so it\nis 0.5   nats, or\n1,234 %."


def test_the_prompt_is_answered_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert predict(["ABACABADA"]) == 0
    lines = capsys.readouterr().out.splitlines()[2:]  # the first is the question, in the text
    printed = "\n".join(f"    {line}".rstrip() for line in lines)
    assert printed in PAGE


def test_the_screen_of_identify_is_the_one_that_was_printed() -> None:
    assert readme.screen_of(PAGE) == readme.SCREEN.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="does not show what identify prints"):
        readme.screen_of("no screen")


@pytest.mark.slow
def test_identify_prints_what_the_readme_shows() -> None:
    assert identify_estimator().summary() + "\n" == readme.screen_of(PAGE)


def test_the_example_of_a_tuned_name_is_true(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    (name,) = set(re.findall(r"`(construction-softmax:0\.\d+)`", PAGE))
    arguments = ["--context-length", "6", "--estimators", "construction-softmax:tuned", "--csv"]
    done = python("-m", "icl_estimators.exact", *arguments)
    assert done.returncode == 0
    assert f"\n{name},6,regret_nats," in done.stdout


def test_monte_carlo_rows_agree_with_enumeration() -> None:
    risk = pd.read_csv(readme.DATA / "evaluate_risk.csv", dtype={"context_length": str})
    rows = risk[(risk["metric"] == "regret_nats") & risk["context_length"].isin(["3", "6"])]
    for name in ("transformer", "unigram", "uniform"):
        exact = exact_risk(get(name), 6).metrics["regret_nats"]
        for row in rows[rows["estimator"] == name].itertuples():
            assert abs(row.estimate - exact[int(row.context_length) - 1]) < 4.5 * row.se


def test_the_tables_say_what_made_them() -> None:
    record = json.loads((readme.DATA / "run.json").read_text(encoding="utf-8"))
    assert record["command"] == "python -m analysis.readme_numbers"
