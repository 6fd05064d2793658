from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from icl_estimators.estimators import get
from icl_estimators.experiments.budget_design import budget_chains, exact_length, no_budget, sampled_lengths
from icl_estimators.experiments.compare import run_study
from icl_estimators.experiments.regret_budget import PARTS, exact_budget
from icl_estimators.experiments.sampled_budget import sampled_budget
from icl_estimators.experiments.study import Study
from icl_estimators.sources import ChainLaw, transition_counts


class Recency:
    """Counts that fade with age by a factor of `decay`, plus 1: it reads the order of the transitions, in one row."""

    name = "fading"

    def __init__(self, n_states: int = 3, decay: float = 0.8) -> None:
        self.n_states, self.decay = n_states, decay

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        number, length = tokens.shape
        row, counts = np.arange(number), np.zeros((number, self.n_states, self.n_states))
        out = np.empty((number, length, self.n_states))
        for t in range(length):
            if t:
                counts[row, tokens[:, t - 1]] *= self.decay  # ages by the visits to its own row
                counts[row, tokens[:, t - 1], tokens[:, t]] += 1.0
            mine = counts[row, tokens[:, t]] + 1.0
            out[:, t] = mine / mine.sum(axis=1, keepdims=True)
        return out


def small(estimators: str, **options: object) -> Study:
    given: dict[str, object] = {"chains": 60, "decomposition_chains": 0, "length": 12, **options}
    return Study.build(estimators, warn=print, **given)  # type: ignore[arg-type]


def test_order_finds_out_a_rule_that_reads_it() -> None:
    exact = exact_budget(Recency(), 7).parts
    assert exact["order"] > 5e-4
    assert max(abs(exact[part]) for part in ("other_rows", "label_asymmetry", "self_bias")) < exact["order"] / 10
    sampled = sampled_budget(Recency(), 24, chains=2000)
    assert sampled.low["order"] > 0.0
    for part in ("label_asymmetry", "self_bias"):
        assert sampled.low[part] < sampled.estimates["order"] / 10, part


def test_the_table_of_a_study() -> None:
    table = run_study(small("bayes,add-constant:3,unigram,bigram")).tables["budget"].frame()
    assert set(table.method[table.context_length <= 9]) == {"exact"}
    assert set(table.method[table.context_length > 9]) == {"monte-carlo"}
    assert sorted(set(table.context_length)) == [*range(1, 10), 12]
    wide = table.pivot(index=["estimator", "context_length"], columns="part", values="estimate")
    bigram = wide.loc["bigram"].loc[2:]
    assert (bigram["regret"] == np.inf).all()
    assert bigram[list(PARTS)].isna().all(axis=None)
    assert (
        table.note[(table.estimator == "bigram") & (table.part == "amount") & (table.context_length > 1)] != ""
    ).all()
    finite = wide.drop("bigram")
    whole = finite.dropna()
    assert len(whole) >= 27  # the exact ones of three estimators
    np.testing.assert_allclose(whole[list(PARTS)].sum(axis=1), whole["regret"], atol=1e-12)
    assert finite.loc["bayes"].abs().max(axis=None) < 1e-12
    amounts = finite.loc["add-constant:3"]
    np.testing.assert_allclose(amounts["amount"], amounts["regret"], atol=1e-12)
    assert finite.loc["unigram", "order"].abs().max() < 1e-12
    assert (table.se[table.method == "exact"].dropna() == 0.0).all()


def test_a_study_without_a_budget_says_why() -> None:
    stationary = run_study(small("add-one", start="stationary", length=5))
    assert "budget" not in stationary.tables
    assert "not known exactly" in stationary.run["no_budget"]
    many = run_study(small("add-one", states=7, length=5))
    assert "7 states are too many" in many.run["no_budget"]
    assert "regret_by_visits" in many.tables
    assert run_study(small("add-one", length=5)).run["no_budget"] == ""


def test_lengths_follow_the_cost() -> None:
    study = small("add-one", length=100)
    assert exact_length(study) == 9
    assert sampled_lengths(study) == [12, 24, 50, 100]
    assert sampled_lengths(small("add-one", length=5)) == []
    assert budget_chains(small("add-one", length=5)) == 0
    assert budget_chains(replace(study, chains=20_000)) == 40_000
    assert exact_length(small("add-one", states=6, length=20)) == 1
    assert exact_length(small("add-one", states=4, length=20)) == 6
    assert no_budget(study) == ""


@pytest.mark.slow
def test_too_few_prefixes_with_equal_counts_are_no_estimate() -> None:
    table = run_study(small("unigram", length=60, chains=20)).tables["budget"].frame()
    last = table[(table.context_length == 60) & (table.estimator == "unigram")].set_index("part")
    assert last.estimate[["regret", "order", "amount"]].notna().all()
    assert last.estimate[["other_rows", "label_asymmetry", "self_bias", "shape"]].isna().all()
    assert last.note["shape"].startswith("only ")


@pytest.mark.slow
def test_workers_change_no_bit() -> None:
    study = small("unigram,transformer", chains=1000)
    alone, together = (run_study(study, jobs=jobs).tables["budget"] for jobs in (1, 2))
    assert alone.frame().equals(together.frame())


def test_counts_of_the_rule_are_those_of_the_package() -> None:
    tokens = ChainLaw().sample(range(5), sequences_per_chain=1, length=9).inputs
    np.testing.assert_allclose(Recency(decay=1.0).predict_proba(tokens), get("add-one").predict_proba(tokens))
    assert transition_counts(tokens, 3).shape == (5, 9, 3)
