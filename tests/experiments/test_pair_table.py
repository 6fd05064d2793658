from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from icl_estimators.api import Comparison, compare
from icl_estimators.estimators import get_all
from icl_estimators.experiments.pair_table import pair_table
from icl_estimators.experiments.risk import risk_block
from icl_estimators.experiments.risk_tables import difference_table
from icl_estimators.experiments.study import Study
from icl_estimators.inference import merge_in_order
from icl_estimators.notes import Code, Note
from strange_rules import Leaning


def of(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    return frame[frame.metric == metric]


def test_all_pairs_of_the_mean_rows_are_there_once(small: Comparison) -> None:
    names = small.risk.estimator.drop_duplicates()
    for metric in ("kl_nats", "regret_nats", "log_loss_nats"):
        rows = of(small.pairs, metric)
        found = [frozenset(pair) for pair in zip(rows.estimator, rows.other, strict=True)]
        assert len(found) == len(set(found))
        assert set(found) == {frozenset(pair) for pair in combinations(names, 2)}


def test_a_difference_is_that_of_the_means_and_its_error_that_of_the_differences(small: Comparison) -> None:
    risk = small.risk[small.risk.context_length == "mean"].set_index(["estimator", "metric"]).estimate
    single = small.differences[small.differences.context_length == "mean"].set_index(["estimator", "metric"])
    compared = 0
    for row in small.pairs.itertuples():
        a, b = risk[row.estimator, row.metric], risk[row.other, row.metric]
        if np.isfinite(a) and np.isfinite(b):
            assert row.difference == pytest.approx(a - b, abs=1e-12)
            assert row.difference >= 0
            reference = {"add-one"} & {row.estimator, row.other}
            if reference:
                (name,) = {row.estimator, row.other} - reference
                expected = single.loc[(name, row.metric)]
                assert row.se == pytest.approx(expected.se, rel=1e-9, abs=1e-15)
                assert row.ci_high - row.ci_low >= (expected.ci_high - expected.ci_low) * (1 - 1e-9)
                compared += 1
        else:
            assert np.isnan([row.difference, row.se, row.ci_low, row.p_simultaneous]).all()
            assert row.note.startswith("no difference: one is infinite in ")
    assert compared > 6


@pytest.mark.slow
def test_overlapping_intervals_do_not_decide() -> None:
    """The found case: the mean KLs overlap by far, their paired difference is clear."""
    rules = ["add-one", "add-constant:0.9", "uniform"]
    result = compare(rules, chains=400, sequences_per_chain=2, length=20, decomposition_chains=0)
    mean = of(result.risk[result.risk.context_length == "mean"], "regret_nats").set_index("estimator")
    kl = of(result.risk[result.risk.context_length == "mean"], "kl_nats").set_index("estimator")
    assert kl.loc["add-constant:0.9"].ci_low < kl.loc["add-one"].ci_high
    row = of(result.pairs, "regret_nats").iloc[0]
    assert (row.estimator, row.other, row.tied) == ("add-constant:0.9", "add-one", False)
    assert row.ci_low > 0
    assert row.difference == pytest.approx(mean.loc["add-constant:0.9"].estimate, rel=1e-12)
    assert "Smallest mean regret: add-one. Tied with it: none." in result.summary()


@pytest.mark.slow
def test_twins_are_identical_and_tied() -> None:
    rules = ["krichevsky-trofimov", "add-constant:0.5", "uniform", "bigram"]
    result = compare(rules, concentration=0.5, chains=60, length=5, decomposition_chains=0)
    rows = of(result.pairs, "regret_nats").set_index(["estimator", "other"])
    twin = rows.loc["add-constant:0.5", "krichevsky-trofimov"]
    assert (twin.difference, twin.se, twin.ci_low, twin.ci_high, twin.p_simultaneous) == (0, 0, 0, 0, 1)
    assert (twin.tied, twin.note) == (True, Note(Code.IDENTICAL))
    best = rows.xs("krichevsky-trofimov", level="other")
    assert best.tied.to_dict() == {"add-constant:0.5": True, "add-one": False, "uniform": False, "bigram": False}
    assert (rows.drop(index=best.index.map(lambda name: (name, "krichevsky-trofimov"))).tied.isna()).all()
    text = result.summary()
    assert "Smallest mean regret: krichevsky-trofimov. Tied with it: add-constant:0.5 (identical)." in text
    assert "apart from the Bayes rule: add-one. Tied with it: none." in text
    twins = compare(rules[:2], reference="add-constant:0.5", chains=60, length=5, decomposition_chains=0).differences
    assert of(twins, "kl_nats").note.eq(Note(Code.IDENTICAL)).all()


def test_with_a_stationary_start_pairs_of_regret_say_why_there_are_none() -> None:
    rules = ["unigram", "add-one", "uniform"]
    result = compare(rules, start="stationary", chains=30, length=4, decomposition_chains=0)
    regret = of(result.pairs, "regret_nats")
    assert len(regret) == 3
    assert regret[["difference", "se", "ci_low", "ci_high", "p_simultaneous"]].isna().all(axis=None)
    assert regret.note.str.startswith("undefined: the posterior of these chains").all()
    assert of(result.pairs, "kl_nats").difference.notna().all()
    assert "Smallest mean KL: " in result.summary()


def test_one_estimator_makes_no_pairs() -> None:
    result = compare(["add-one"], chains=10, length=3, decomposition_chains=0)
    assert result.pairs.empty
    assert "tied with the best" not in result.summary()


@pytest.mark.slow
def test_training_runs_and_their_mean_are_paired_as_in_the_other_tables() -> None:
    result = compare([Leaning("m:a", 0.1), Leaning("m:b", 0.3), "add-one"], chains=60, length=4, decomposition_chains=0)
    rows = of(result.pairs, "log_loss_nats")
    assert set(rows.estimator) | set(rows.other) == {"m:a", "m:b", "m", "add-one"}
    assert len(rows) == 6


def test_it_is_the_same_whatever_the_order_of_estimators_and_blocks() -> None:
    made = tuple(get_all(["unigram", "add-one", "uniform", "krichevsky-trofimov"], n_states=3, warn=print))
    design = Study(made, chains=150, length=3, decomposition_chains=0)
    turned = replace(design, estimators=made[::-1])
    one = pair_table(design, risk_block(design, range(150)))
    cut = merge_in_order([risk_block(design, range(50)), risk_block(design, range(50, 150))])
    # Units are merged in chain order within and between blocks alike.
    pd.testing.assert_frame_equal(pair_table(design, cut).frame(), one.frame(), rtol=1e-12)
    assert pair_table(turned, risk_block(turned, range(150))).rows == one.rows
    assert len(difference_table(design, cut).rows) > 0
