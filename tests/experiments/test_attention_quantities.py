from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.experiments.attention_quantities import attention_quantities, in_context_learning_score
from icl_estimators.sources import sample_chains
from icl_estimators.validation import InputError


def random_attention(rng, n_sequences, length):
    weights = np.tril(rng.random((n_sequences, length, length)))
    return weights / weights.sum(axis=2, keepdims=True)


def test_masses_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 3, size=(4, 9))
    layer1, layer2 = random_attention(rng, 4, 9), random_attention(rng, 4, 9)
    result = attention_quantities(layer1, layer2, tokens)
    for i in range(4):
        for n in range(9):
            matches = [j for j in range(1, n + 1) if tokens[i, j - 1] == tokens[i, n]]
            assert result.match_mass[i, n] == pytest.approx(sum(layer2[i, n, j] for j in matches))
            assert result.match_mass_chance[i, n] == pytest.approx(len(matches) / (n + 1))
            assert result.self_mass[i, n] == layer1[i, n, n]
            if n:
                assert result.previous_token_mass[i, n] == layer1[i, n, n - 1]
    assert np.isnan(result.previous_token_mass[:, 0]).all()


def test_uniform_attention_is_at_chance():
    uniform = np.broadcast_to(np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None], (2, 6, 6))
    result = attention_quantities(uniform, uniform, np.array([[0, 0, 1, 0, 1, 2], [0, 1, 2, 2, 2, 0]]))
    np.testing.assert_allclose(result.match_mass, result.match_mass_chance)
    np.testing.assert_allclose(result.self_mass, np.tile(1 / np.arange(1, 7), (2, 1)))


def test_a_perfect_induction_circuit():
    tokens = np.array([[0, 1, 0, 2, 0]])
    layer1 = np.eye(5, k=-1)[None] + np.eye(5)[:1].T * np.eye(5)[None, :1]
    layer2 = np.zeros((1, 5, 5))
    layer2[0, 4, [1, 3]] = 0.5
    result = attention_quantities(layer1, layer2, tokens)
    np.testing.assert_array_equal(result.previous_token_mass[0, 1:], 1.0)
    assert result.match_mass[0].tolist() == [0, 0, 0, 0, 1]
    assert result.match_mass_chance[0].tolist() == [0, 0, pytest.approx(1 / 3), 0, 0.4]


def test_chance_level_of_the_chains():
    tokens = sample_chains(range(4000), sequences_per_chain=1, length=50, purpose="test").inputs
    chance = np.zeros(50)
    for block in np.split(tokens, 8):
        nothing = np.zeros((len(block), 50, 50), dtype=np.float32)
        chance += attention_quantities(nothing, nothing, block).match_mass_chance.mean(axis=0) / 8
    np.testing.assert_allclose(chance[[2, 5, 11, 23, 49]], [0.26, 0.337, 0.374, 0.393, 0.403], atol=0.011)


def test_one_token_has_no_past():
    result = attention_quantities(np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.array([[2]]))
    assert np.isnan(result.previous_token_mass).all()
    assert result.self_mass.tolist() == [[1.0]]
    assert result.match_mass.tolist() == result.match_mass_chance.tolist() == [[0.0]]


def test_in_context_learning_score_compares_the_last_length_with_a_tenth_of_it():
    loss = np.arange(1.0, 101.0)
    assert in_context_learning_score(loss) == 90.0  # n = 100 against n = 10
    assert in_context_learning_score(loss[:95]) == 85.0  # n = 95 against n = 10
    assert in_context_learning_score(loss[None, :2]).tolist() == [1.0]


def test_bad_input_is_named():
    tokens, good, bad = np.zeros((2, 3), dtype=np.int64), np.zeros((2, 3, 3)), np.zeros((2, 4, 4))
    with pytest.raises(InputError, match="layer1 must have shape"):
        attention_quantities(bad, good, tokens)
    with pytest.raises(InputError, match="layer2 must have shape"):
        attention_quantities(good, bad, tokens)
    with pytest.raises(InputError, match="at least 2 context lengths"):
        in_context_learning_score(np.zeros((3, 1)))
