from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike, NDArray

from icl_estimators import compare, get
from icl_estimators.experiments.fitted_rules import fit_rules
from icl_estimators.experiments.likeness import LikenessDesign
from icl_estimators.experiments.strategies import (
    SHOWN_LENGTHS,
    dictionary_of,
    strategy_table,
    strategy_weights,
)
from icl_estimators.experiments.study import Study
from icl_estimators.schemas import SCHEMAS
from icl_estimators.sources import ChainLaw, sample_chains


class Mixed:
    """A weighted mean of rules."""

    n_states = 3

    def __init__(self, weights: dict[str, float], name: str = "mixed") -> None:
        self.name, self.weights = name, weights
        self.rules = {spec: get(spec) for spec in weights}

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        total = np.zeros((*np.shape(tokens), 3))
        for spec, weight in self.weights.items():
            total += weight * self.rules[spec].predict_proba(tokens)
        return total


def table_of(study: Study) -> pd.DataFrame | None:
    found = strategy_table(study, LikenessDesign.of(study).fitted)
    return None if found is None else found.frame()


def test_the_dictionary_has_the_rules_that_were_fitted() -> None:
    fitted = fit_rules(ChainLaw(), 12, 0, [get("add-constant:0.37")])
    names = [rule.name for rule in dictionary_of(fitted, 3)]
    assert names[:3] == ["uniform", "unigram", "add-constant:0.37"]
    assert "add-one:order=2" in names
    assert not any(name.startswith("recency") for name in names)  # no recency is better than none


def test_weights_of_a_mixture_are_found_again_at_every_length() -> None:
    known = {"unigram": 0.3, "add-one:order=2": 0.5, "uniform": 0.2}
    dictionary = tuple(get(spec) for spec in ("uniform", "unigram", "add-constant:0.1", "add-one:order=2"))

    def draw(chains: range) -> NDArray[np.int64]:
        return sample_chains(chains, sequences_per_chain=1, length=24, seed=0, purpose="test").inputs

    found = strategy_weights(Mixed(known), dictionary, draw, 200, 24)
    assert [one.context_length for one in found] == [1, 3, 6, 12, 24, None]
    for one in found[2:]:
        np.testing.assert_allclose(one.fit.weights, [0.2, 0.3, 0.0, 0.5], atol=1e-5)
        assert one.explained == pytest.approx(1.0, abs=1e-9)
    # At n = 1 three of the rules are uniform: only the weight of the fourth is known.
    first = found[0].fit
    assert first.identified.tolist() == [False, True, False, False]
    assert first.weights[1] == pytest.approx(0.3, abs=1e-6)


def test_the_table_has_a_row_for_every_length_and_rule_of_each_model_but_none_of_rules() -> None:
    model = Mixed({"unigram": 0.3, "add-one": 0.7})
    study = Study((model, get("add-one"), get("bigram")), chains=40, sequences_per_chain=1, length=8)
    frame = table_of(study)
    assert frame is not None
    assert tuple(frame.columns) == SCHEMAS["strategies"].names
    assert frame.estimator.unique().tolist() == ["mixed"]
    assert frame.context_length.unique().tolist() == [1, 3, 6, 8, "mean"]
    assert len(frame) % 5 == 0
    for _, rows in frame.groupby("context_length"):
        if rows.estimate.notna().all():
            assert rows.estimate.sum() == pytest.approx(1.0)
    shown = frame[frame.estimate.notna()]
    assert ((shown.ci_low <= shown.estimate) & (shown.estimate <= shown.ci_high)).all()
    unknown = frame[frame.estimate.isna()]
    assert len(unknown)  # at n = 1, where several rules are uniform
    assert unknown.note.str.contains("not identified: other weights give the same mixture").all()
    assert unknown[["se", "ci_low", "ci_high"]].isna().all(axis=None)
    rule_of = {spec for spec in frame.strategy if get(spec).name == spec}
    assert rule_of == set(frame.strategy)  # each is itself a spec
    assert table_of(Study((get("add-one"), get("bigram")), chains=4, length=4)) is None


def test_a_uniform_model_explains_nothing_and_says_so() -> None:
    frame = table_of(Study((Mixed({"uniform": 1.0}), get("add-one")), chains=20, length=6))
    assert frame is not None
    assert frame.explained.isna().all()
    assert frame.note.str.contains("explained is 0/0: the estimator is uniform").all()
    pooled = frame[frame.context_length == "mean"].set_index("strategy").estimate
    assert pooled["unigram"] == pytest.approx(0.0, abs=1e-6)


def test_evaluate_writes_it_for_the_transformer() -> None:
    result = compare(["transformer", "bigram"], chains=30, sequences_per_chain=1, length=6, decomposition_chains=0)
    assert result.strategies.estimator.unique().tolist() == ["transformer"]
    rules = compare(["bigram"], chains=10, sequences_per_chain=1, length=4, decomposition_chains=0)
    assert "strategies" not in rules.tables


@pytest.mark.slow
def test_the_shipped_model_is_mostly_a_softmax_of_frequencies() -> None:
    frame = table_of(Study((get("transformer"), get("add-one"))))
    assert frame is not None
    assert [n for n in frame.context_length.unique() if n != "mean"] == list(SHOWN_LENGTHS)
    pooled = frame[frame.context_length == "mean"].set_index("strategy")
    softmax = pooled[pooled.index.str.startswith("construction-softmax")].iloc[0]
    assert softmax.estimate == pytest.approx(0.83, abs=0.03)
    assert pooled.explained.iloc[0] == pytest.approx(0.962, abs=0.01)
