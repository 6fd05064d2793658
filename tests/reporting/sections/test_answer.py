"""The sentences of the answer: what they say follows from intervals, and nothing is claimed that these don't tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from icl_estimators.reporting.markdown import Page
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.sections.answer import (
    add_answer,
    alarm_sentence,
    departure_sentence,
    nearest_sentence,
    pseudo_count_sentence,
    ranking,
)
from icl_estimators.reporting.sections.trust import add_checks

Change = Callable[..., Results]
SOFTMAX = "softmax of frequencies with a bonus for repeating, γ = 0.645"
MEAN = {"metric": "regret_nats", "context_length": "mean"}


def words(text: str | None) -> str:
    assert text is not None
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture
def regrets(changed: Change) -> Callable[..., Results]:
    """Set the mean regret and its interval of estimators, and half the interval of their paired differences."""

    def set_them(half: float = 0.001, **values: tuple[float, float, float]) -> Results:
        study: Results | None = None
        for name, (estimate, low, high) in values.items():
            where = {**MEAN, "estimator": name.replace("_", "-")}
            new = changed("risk", where, estimate=estimate, ci_low=low, ci_high=high)
            if study is None:
                study = new
            else:
                frame = study.tables["risk"].copy()
                keep = np.logical_and.reduce([frame[column] == value for column, value in where.items()])
                frame.loc[keep, ["estimate", "ci_low", "ci_high"]] = (estimate, low, high)
                study = Results({**study.tables, "risk": frame}, study.run)
        assert study is not None
        pairs = study.tables["pairs"].copy()
        means = {name.replace("_", "-"): estimate for name, (estimate, _, _) in values.items()}
        both = pairs["estimator"].isin(list(means)) & pairs["other"].isin(list(means))
        difference = pairs["estimator"].map(means) - pairs["other"].map(means)
        pairs.loc[both, "difference"] = difference[both]
        pairs.loc[both, "ci_low"] = difference[both] - half
        pairs.loc[both, "ci_high"] = difference[both] + half
        return Results({**study.tables, "pairs": pairs}, study.run)

    return set_them


def test_the_nearest_is_named_with_its_distance(regrets: Change) -> None:
    study = regrets(
        transformer=(0.02, 0.019, 0.021), construction_softmax=(0.05, 0.04, 0.06), uniform=(0.2, 0.19, 0.21)
    )
    text = words(nearest_sentence(study))
    assert "transformer has a mean regret of 0.0200 [0.0190, 0.0210] nats" in text
    assert f"Next is {SOFTMAX} with 0.0500 [0.0400, 0.0600]: 0.0300 [0.0290, 0.0310] more" in text
    assert "more (paired difference), 2.50 times as much." in text
    assert "add-one" not in text, "the Bayes rule is not its own neighbour"


def test_the_paired_difference_decides_and_no_overlap(regrets: Change) -> None:
    values = {
        "transformer": (0.02, 0.01, 0.03),
        "construction_softmax": (0.025, 0.02, 0.03),
        "uniform": (0.2, 0.1, 0.3),
    }
    clear = words(nearest_sentence(regrets(**values)))
    assert "0.0050 [0.0040, 0.0060] more (paired difference), 1.25 times as much." in clear
    tied = words(nearest_sentence(regrets(half=0.006, **values)))
    assert "0.0050 [−0.0010, 0.0110] more (paired difference): not distinguishable from it." in tied
    everyone = words(nearest_sentence(regrets(half=0.5, **values)))
    assert everyone.endswith("Also tied with transformer: uniform.")
    apart = {
        "transformer": (0.02, 0.019, 0.021),
        "construction_softmax": (0.03, 0.029, 0.031),
        "uniform": (1.0, 0.9, 1.1),
    }
    assert "not distinguishable" in words(nearest_sentence(regrets(half=0.02, **apart)))


def test_without_pairs_nothing_is_claimed(results: Results) -> None:
    older = Results({name: table for name, table in results.tables.items() if name != "pairs"}, results.run)
    text = words(nearest_sentence(older))
    assert "there is no paired comparison" in text
    assert "not distinguishable" not in text
    page = Page()
    add_answer(page, older)
    assert "#pairs" not in page.markdown()


def test_the_headline_marks_who_is_tied(regrets: Change) -> None:
    values = {
        "transformer": (0.02, 0.01, 0.03),
        "construction_softmax": (0.025, 0.02, 0.03),
        "uniform": (0.2, 0.1, 0.3),
    }
    tied, clear = Page(), Page()
    add_answer(tied, regrets(half=0.006, **values))
    lines = [words(line).split("|")[1].strip() for line in tied.markdown().split("\n") if line.startswith("| ")]
    assert [line for line in lines if "†" in line] == ["transformer †", f"{SOFTMAX} †"]
    add_answer(clear, regrets(**values))
    assert "†" not in clear.markdown()
    assert "No other estimator is tied with the best ([all pairs](#pairs))." in clear.markdown()


def test_infinite_regret_comes_last(results: Results) -> None:
    order = [item.name for item in ranking(results)]
    assert order[0] == "add-one"
    assert set(order[-2:]) == {"bigram", "construction"}


def regret_curve(changed: Change, middle: float, end: float, half: float = 0.001) -> Results:
    """Give the transformer a regret of 1 at n = 1, `middle` from n = 2 on and `end` at T."""
    frame = changed("risk", {"estimator": "transformer"}).tables["risk"].copy()
    keep = (frame["estimator"] == "transformer") & (frame["metric"] == "regret_nats")
    keep &= frame["context_length"] != "mean"
    n = frame.loc[keep, "context_length"].astype(int)
    values = np.where(n == 1, 1.0, np.where(n == 24, end, middle + 1e-6 * n))
    for column, shift in (
        ("estimate", 0),
        ("ci_low", -half),
        ("ci_high", half),
        ("band_low", -half),
        ("band_high", half),
    ):
        frame.loc[keep, column] = values + shift
    return Results({"risk": frame}, changed("risk", {"estimator": "transformer"}).run)


def since(study: Results, low: float, high: float, n: int = 2) -> Results:
    """Record the regret at T less that at n, as the experiment does."""
    found = {"transformer": {"context_length": n, "difference": 0.01, "ci_low": low, "ci_high": high}}
    return Results(study.tables, {**study.run, "regret_since_least": found})


def test_it_moves_away_only_if_the_paired_difference_says_so(changed: Change) -> None:
    risen = regret_curve(changed, 0.010, 0.020)
    away = words(departure_sentence(since(risen, 0.009, 0.011)))
    assert "largest at n = 1 (1.0000 [0.9990, 1.0010] nats)" in away
    assert "smallest at n = 2 (0.0100 [0.0090, 0.0110]); at n = 24 it is 0.0200 [0.0190, 0.0210]" in away
    assert ", 0.0100 [0.0090, 0.0110] more (paired difference): it has moved away from Bayes again." in away
    unsure = words(departure_sentence(since(risen, -0.001, 0.021)))
    assert ", 0.0100 [−0.0010, 0.0210] more (paired difference): not distinguishable." in unsure
    falling = words(departure_sentence(regret_curve(changed, 0.010, 0.005)))
    assert "smallest at n = 24 (0.0050 [0.0040, 0.0060]), the longest context." in falling


def test_without_the_paired_difference_the_two_regrets_stand_without_a_verdict(changed: Change) -> None:
    apart = regret_curve(changed, 0.010, 0.020)
    older = Results(apart.tables, {key: value for key, value in apart.run.items() if key != "regret_since_least"})
    for study in (older, since(apart, 0.009, 0.011, n=3)):  # of another length than the least
        text = words(departure_sentence(study))
        assert "at n = 24 it is 0.0200 [0.0190, 0.0210]." in text
        assert "paired" not in text
        assert "moved away" not in text


def test_signed_bias_stands_beside_that_of_bayes_without_a_verdict(changed: Change) -> None:
    study = changed("signed_bias", {"bin_low": 0.0}, estimate=0.1, ci_low=0.05, ci_high=0.15)
    text = words(departure_sentence(study))
    expected = "0.100 [0.050, 0.150] at n = {} (Bayes rule: 0.100 [0.050, 0.150])"
    assert f"Where P < 0.1, its mean p̂ − P is {expected.format(12)}; {expected.format(24)}." in text
    assert "sharper" not in text
    assert "flatter" not in text


def test_pseudo_counts_at_few_and_many_visits_stand_without_a_verdict(results: Results, changed: Change) -> None:
    text = words(pseudo_count_sentence(results))
    assert text.endswith(
        "acts like.** 0.300 [0.270, 0.330] after 1 visit, 2.837 [2.554, 3.121] after 20 visits. "
        "Bayes adds 1 at every number of visits."
    )
    where = {"estimator": "transformer", "by": "visits", "value": 20.0}
    flat = words(pseudo_count_sentence(changed("smoothing", where, estimate=0.4, ci_low=0.2, ci_high=0.6)))
    for word in ("rises", "falls", "overlap"):
        assert word not in text + flat


def test_pseudo_counts_from_too_few_chains_are_left_out(results: Results) -> None:
    few = Results(results.tables, {**results.run, "few_chains": {"visits": [20, 21]}})
    assert "after 10 visits" in words(pseudo_count_sentence(few))
    assert "after 20 visits" in words(pseudo_count_sentence(results))


def test_pseudo_counts_at_a_boundary_or_unidentified_are_left_out(changed: Change) -> None:
    where = {"estimator": "transformer", "by": "visits", "value": 20.0}
    for cells in ({"boundary": True, "estimate": np.inf}, {"identified": False}):
        assert "after 10 visits" in words(pseudo_count_sentence(changed("smoothing", where, **cells)))
    nothing = changed("smoothing", {"estimator": "transformer"}, identified=False)
    assert "The data identify it at fewer than two numbers of visits." in words(pseudo_count_sentence(nothing))


def test_without_a_trained_model_nothing_is_said_of_one(results: Results) -> None:
    options = {**results.options, "weights": {}}
    without = Results(results.tables, {**results.run, "options": options, "subjects": []})
    assert without.subject is None
    assert departure_sentence(without) is None
    assert pseudo_count_sentence(without) is None
    page = Page()
    add_answer(page, without)
    assert page.markdown().count("\n- ") == 1


def test_without_an_exact_posterior_the_reference_takes_the_place_of_bayes(results: Results) -> None:
    options = {**results.options, "exact_posterior": False}
    stationary = Results(results.tables, {**results.run, "options": options})
    text = words(nearest_sentence(stationary))
    assert text.startswith("**Nearest to add-one, or below it.**")
    assert "there is no exact Bayes rule here" in text
    assert departure_sentence(stationary) is None


def test_the_headline_table_has_everyone_the_least_mean_first(results: Results) -> None:
    page = Page()
    add_answer(page, results)
    lines = page.markdown().split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("| estimator"))
    names = [line.split("|")[1].strip() for line in lines[start + 2 : start + 8]]
    assert names[0] == "add-one (Bayes)"
    assert set(names[-2:]) == {"unsmoothed bigram", "explicit induction head"}
    assert lines[start + 7].count("inf ") >= 3


def test_an_estimator_that_has_seen_the_future_is_named_first(results: Results) -> None:
    assert results.alarms == ()
    row = ("saw_the_future", "uniform", 7, -0.02, 0.001, -20.0, "the mean log loss is below that of the Bayes rule")
    alarm = pd.DataFrame([row], columns=list(results.tables["checks"]))
    checks = pd.concat(
        [results.tables["checks"].astype({"context_length": str}), alarm.astype({"context_length": str})]
    )
    accused = replace(results, tables={**results.tables, "checks": checks})
    sentence = "**uniform has seen the future.** At n = 7, the mean log loss is below that of the Bayes rule (z = "
    assert alarm_sentence(accused.alarms[0]).startswith(sentence)
    for add in (add_answer, add_checks):
        page = Page()
        add(page, accused)
        assert sentence in words(page.markdown())
        page = Page()
        add(page, results)
        assert "seen the future" not in words(page.markdown())
