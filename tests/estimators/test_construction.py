from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import softmax

from icl_estimators.divergences import kl_divergence
from icl_estimators.estimators import get
from icl_estimators.estimators.construction import DEFAULT_GAMMA, Construction, ConstructionSoftmax, induction_path
from icl_estimators.estimators.induction_matrices import InductionMatrices
from icl_estimators.sources import occurrence_counts, posterior_predictive, sample_chains, transition_counts
from icl_estimators.validation import InputError


def random_tokens(n_states: int, n_sequences: int, length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n_states, size=(n_sequences, length))


def matched(tokens: np.ndarray, n_states: int) -> np.ndarray:
    """Where the current token has been left before, (N, T)."""
    return transition_counts(tokens, n_states).sum(axis=-1) > 0


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0])
@pytest.mark.parametrize(("n_states", "length"), [(2, 1), (2, 40), (3, 2), (3, 100), (5, 30), (8, 12)])
def test_the_block_form_is_the_matrices(n_states: int, length: int, beta: float) -> None:
    tokens = random_tokens(n_states, 6, length)
    tokens[0] = 0  # a state that repeats, and states that never occur
    dense = InductionMatrices(n_states, length, beta).run(tokens).induction_path[:, 1:, :n_states]
    np.testing.assert_allclose(induction_path(tokens, n_states, beta), dense, rtol=0, atol=1e-12)


@pytest.mark.parametrize("beta", [1e3, 1e5, 1e300])
def test_a_huge_beta_is_the_limit(beta: float) -> None:
    tokens = random_tokens(3, 20, 60)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        path = induction_path(tokens, 3, beta)
    np.testing.assert_allclose(path, induction_path(tokens, 3), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n_sequences", "length"), [(30, 100), (4, 1000)])
@pytest.mark.parametrize("n_states", [2, 3, 20])
def test_construction_at_30_is_the_bigram_where_there_is_a_match(n_states: int, n_sequences: int, length: int) -> None:
    tokens = random_tokens(n_states, n_sequences, length)
    match = matched(tokens, n_states)
    prediction = get("construction:30", n_states=n_states).predict_proba(tokens)
    bigram = get("bigram", n_states=n_states).predict_proba(tokens)
    frequencies = occurrence_counts(tokens, n_states) / np.arange(1, length + 1)[:, None]
    np.testing.assert_allclose(prediction[match], bigram[match], rtol=0, atol=1e-9)
    np.testing.assert_allclose(prediction[~match], frequencies[~match], rtol=0, atol=1e-9)
    assert (~match).sum() >= n_sequences  # both sides are really there
    # Before it is restricted to the real tokens, the path itself: the sentinel holds the rest in the fallback.
    path = induction_path(tokens, n_states, 30.0)
    np.testing.assert_allclose(path[match], bigram[match], rtol=0, atol=1e-9)
    shared = np.broadcast_to(np.arange(1, length + 1) / np.arange(2, length + 2), match.shape)
    np.testing.assert_allclose(path[~match].sum(axis=-1), shared[~match], rtol=0, atol=1e-9)


def test_construction_itself_is_the_limit_with_exact_zeros() -> None:
    tokens = random_tokens(3, 50, 40)
    prediction = Construction(3).predict_proba(tokens)
    bigram = get("bigram:unseen=prefix").predict_proba(tokens)
    np.testing.assert_allclose(prediction, bigram, rtol=1e-15)
    assert ((prediction == 0) == (bigram == 0)).all()
    np.testing.assert_allclose(Construction(3, 60.0).predict_proba(tokens), prediction, rtol=0, atol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 40])
def test_the_attention_is_the_matrices(length: int) -> None:
    tokens = random_tokens(3, 6, length)
    dense = InductionMatrices(3, length, 60.0).run(tokens).attention
    soft = InductionMatrices(3, length, 2.0).run(tokens).attention
    for layer in range(2):
        np.testing.assert_allclose(Construction(3).attention(tokens)[layer], dense[layer], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(Construction(3, 2.0).attention(tokens)[layer], soft[layer])


def test_at_finite_beta_only_states_that_have_not_occurred_get_nothing() -> None:
    tokens = random_tokens(3, 50, 10)
    absent = occurrence_counts(tokens, 3) == 0
    for beta in (0.1, 1.0, 5.0, 30.0, 200.0):
        assert ((Construction(3, beta).predict_proba(tokens) == 0) == absent).all()


def test_kl_grows_linearly_in_beta() -> None:
    """Once every state has occurred: what the bigram leaves at 0 gets mass of order e^(−β)."""
    tokens = np.array([[0, 1, 2, 0]])
    kl = [
        float(kl_divergence(np.full(3, 1 / 3), Construction(3, b).predict_proba(tokens)[0, -1])) for b in (50, 100, 150)
    ]
    assert kl[2] - kl[1] == pytest.approx(kl[1] - kl[0], rel=1e-6)
    assert kl[1] - kl[0] == pytest.approx(50 * 2 / 3, rel=0.05)


@pytest.mark.parametrize("direct_path", [True, False])
@pytest.mark.parametrize(("n_states", "gamma"), [(2, 0.3), (3, None), (5, 40.0)])
def test_the_softmax_form_is_its_formula(n_states: int, gamma: float | None, direct_path: bool) -> None:
    tokens = random_tokens(n_states, 10, 30)
    counts = transition_counts(tokens, n_states)
    visits = counts.sum(axis=-1, keepdims=True)
    fallback = occurrence_counts(tokens, n_states) / np.arange(2, 32)[:, None]  # the sentinel holds 1/(n + 1)
    path = np.where(visits > 0, counts / np.maximum(visits, 1), fallback)
    used = (0.645 if direct_path else 2.21) if gamma is None else gamma
    expected = softmax(used * (path + direct_path * np.eye(n_states)[tokens]), axis=-1)
    rule = ConstructionSoftmax(n_states, gamma, direct_path=direct_path)
    np.testing.assert_allclose(rule.predict_proba(tokens), expected, rtol=1e-13)


def test_the_softmax_form_is_the_matrices_logits() -> None:
    tokens = random_tokens(3, 10, 30)
    logits = InductionMatrices(3, 30, beta=60.0, gamma=3.0).run(tokens).logits[:, 1:, :3]
    expected = softmax(logits, axis=-1)
    np.testing.assert_allclose(ConstructionSoftmax(3, 3.0).predict_proba(tokens), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("direct_path", "regret"), [(True, 0.135), (False, 0.0290)])
def test_the_default_gamma_is_the_best_one_and_has_the_known_regret(direct_path: bool, regret: float) -> None:
    tokens = sample_chains(range(2000), sequences_per_chain=1, length=100, purpose="test").inputs
    counts = transition_counts(tokens, 3)
    bayes = posterior_predictive(counts, 1.0)

    def excess(gamma: float) -> np.ndarray:
        rule = ConstructionSoftmax(3, gamma, direct_path=direct_path)
        return kl_divergence(bayes, rule.predict_proba(tokens)).mean(axis=1)

    best = DEFAULT_GAMMA[direct_path]
    at_best = excess(best)
    assert abs(at_best.mean() - regret) < 4 * at_best.std() / math.sqrt(len(tokens)) + 5e-4
    for other in (0.9 * best, 1.1 * best):
        assert excess(other).mean() > at_best.mean()


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (Construction(3), "construction"),
        (Construction(3, 30), "construction:30"),
        (Construction(3, 0.123456789), "construction:0.123456789"),
        (ConstructionSoftmax(3), "construction-softmax"),
        (ConstructionSoftmax(3, 2.2), "construction-softmax:2.2"),
        (ConstructionSoftmax(3, direct_path=False), "construction-softmax:direct_path=false"),
        (ConstructionSoftmax(3, 2, direct_path=False), "construction-softmax:2:direct_path=false"),
        (ConstructionSoftmax(3, name="tuned"), "tuned"),
    ],
)
def test_names_say_the_values(rule: Construction | ConstructionSoftmax, name: str) -> None:
    assert rule.name == name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Construction(1), "n_states must be an integer of at least 2, not 1"),
        (lambda: Construction(3, 0), "beta of construction must be a finite number above 0, not 0"),
        (lambda: Construction(3, "a"), "beta of construction must be a number above 0, not 'a'"),
        (lambda: ConstructionSoftmax(1), "n_states must be an integer of at least 2, not 1"),
        (
            lambda: ConstructionSoftmax(3, -2.0),
            "gamma of construction-softmax must be a finite number above 0, not -2",
        ),
        (lambda: ConstructionSoftmax(3, direct_path="no"), "direct_path must be true or false, not 'no'"),
    ],
)
def test_parameters_are_checked(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
