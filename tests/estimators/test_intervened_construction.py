from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators import intervened_construction
from icl_estimators.estimators.construction import Construction, ConstructionSoftmax
from icl_estimators.estimators.intervened_construction import IntervenedConstruction
from icl_estimators.validation import InputError

HEADS = ("previous", "match", "uniform", "zero")
TOKENS = np.random.default_rng(0).integers(0, 3, size=(5, 14))


@pytest.mark.parametrize("beta", [None, 2.0])
@pytest.mark.parametrize("second", [None, *HEADS])
@pytest.mark.parametrize("first", [None, *HEADS])
def test_attention_is_causal_shares(beta: float | None, first: str | None, second: str | None) -> None:
    rule = IntervenedConstruction(ConstructionSoftmax(3, 2.0, beta=beta), first, second)  # type: ignore[arg-type]
    for weights in rule.attention(TOKENS):
        assert weights.shape == (5, 15, 15)
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-12)
        assert np.abs(np.triu(weights, k=1)).max() == 0


@pytest.mark.parametrize("beta", [None, 2.0])
def test_the_second_head_reads_what_the_first_has_copied(beta: float | None) -> None:
    first, second = IntervenedConstruction(Construction(3, beta), layer1="uniform").attention(TOKENS[:1])
    sequence = TOKENS[0]
    for query in range(1, 15):
        token = sequence[query - 1]
        shares = [float(np.mean([*(sequence[:key] == token), False])) for key in range(query + 1)]  # ^ is no token
        scores = np.array(shares)
        weights = scores == scores.max() if beta is None else np.exp(beta * scores)
        np.testing.assert_allclose(second[0, query, : query + 1], weights / weights.sum(), rtol=1e-12)
    np.testing.assert_allclose(first[0, 2, :4], [1 / 3, 1 / 3, 1 / 3, 0], rtol=1e-12)


def test_sequences_that_do_not_fit_at_once_are_predicted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = IntervenedConstruction(Construction(3, 2.0), layer1="uniform")
    whole = rule.predict_proba(TOKENS)
    monkeypatch.setattr(intervened_construction, "_CELLS", 2 * 15**2)
    np.testing.assert_array_equal(rule.predict_proba(TOKENS), whole)


def test_nothing_is_left_without_layer_two_and_without_a_read_out() -> None:
    with pytest.raises(InputError, match="construction:layer2=zero: the prediction is what layer 2 adds"):
        IntervenedConstruction(Construction(3), layer2="zero")
