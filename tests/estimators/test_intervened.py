from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators import check_estimator
from icl_estimators.estimators.intervened import Intervened
from icl_estimators.estimators.transformer import Transformer
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import transition_counts
from icl_estimators.transformer import INTERVENTIONS, PERFECT_READ_OUT, Intervention
from icl_estimators.validation import InputError

pytestmark = pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no checkpoint ships")


@pytest.fixture(scope="module")
def intact():
    return Transformer(3)


@pytest.mark.parametrize("intervention", [*INTERVENTIONS, PERFECT_READ_OUT], ids=lambda item: item.name)
def test_each_is_an_estimator(intact, intervention):
    rule = Intervened(intact, intervention)
    assert rule.name == f"transformer:{intervention.name}"
    check_estimator(rule, 3)


def test_nothing_replaced_is_the_intact_model_bit_for_bit(intact):
    tokens = np.random.default_rng(0).integers(0, 3, size=(70, 30))
    np.testing.assert_array_equal(
        Intervened(intact, Intervention()).predict_proba(tokens), intact.predict_proba(tokens)
    )


def test_exact_attention_sees_the_counts_alone(intact):
    # Two prefixes with the same last tokens and counts, in another order, are predicted alike once attention is exact.
    tokens = np.array([[0, 1, 0, 2, 0, 1, 0], [0, 2, 0, 1, 0, 1, 0]])
    counts = transition_counts(tokens, 3)[:, -1]
    np.testing.assert_array_equal(counts[0], counts[1])
    exact = Intervened(intact, next(item for item in INTERVENTIONS if item.name == "exact-attention"))
    np.testing.assert_allclose(*exact.predict_proba(tokens)[:, -1], atol=1e-5)
    trained = intact.predict_proba(tokens)[:, -1]
    assert np.abs(trained[0] - trained[1]).max() > 1e-3


def test_a_model_of_another_form_is_refused():
    class Unfolded:
        name, n_states, folded = "other", 3, None

    with pytest.raises(InputError, match="no folded form"):
        Intervened(Unfolded(), Intervention())


def test_it_shows_where_the_replaced_heads_look(intact):
    tokens = np.random.default_rng(0).integers(0, 3, size=(4, 9))
    for own, shown in zip(intact.attention(tokens), Intervened(intact, Intervention()).attention(tokens), strict=True):
        np.testing.assert_array_equal(shown, own)
    first, second = Intervened(intact, Intervention("even", layer1="previous", layer2="uniform")).attention(tokens)
    np.testing.assert_array_equal(first[0], np.eye(9, k=-1) + np.eye(9)[0][:, None] * np.eye(9)[0])
    np.testing.assert_allclose(second[0], np.tri(9) / np.arange(1, 10)[:, None], rtol=1e-6)


def test_it_keeps_what_the_intact_model_offers(intact):
    rule = Intervened(intact, Intervention("even", layer1="uniform"))
    assert (rule.windowed, rule.checkpoint, rule.info, rule.recipe) == (True, intact.checkpoint, intact.info, None)
    assert rule.model is intact
