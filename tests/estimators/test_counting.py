from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from nltk import ngrams
from nltk.lm import MLE, Laplace, Lidstone, Vocabulary
from nltk.lm.api import LanguageModel

from icl_estimators.estimators import get
from icl_estimators.estimators.counting import AddConstant, AddOne, Bayes, Bigram, KrichevskyTrofimov
from icl_estimators.sources import occurrence_counts, transition_counts
from icl_estimators.validation import InputError

RANDOM = [(2, 30, 0), (3, 40, 1), (5, 40, 2)]


def refitted(
    model_of: object, line: list[int], n_states: int, order: int = 1
) -> Iterator[tuple[int, LanguageModel, list[str]]]:
    """Fit an nltk model of (order + 1)-grams anew to every prefix of a sequence."""
    states = [str(k) for k in range(n_states)]
    words = [str(token) for token in line]
    for n in range(1, len(words) + 1):
        model = model_of(Vocabulary(states))
        model.fit([list(ngrams(words[:n], order + 1))])
        yield n, model, states


@pytest.mark.parametrize(("n_states", "length", "seed"), RANDOM)
@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("constant", [0.1, 0.5, 1.0, 2.0])
def test_additive_smoothing_is_nltks(n_states: int, length: int, seed: int, constant: float, order: int) -> None:
    """nltk counts <UNK> as a word, so its vocabulary has K + 1 and its Lidstone is (n_vw + γ)/(n_v + (K + 1)γ).

    No state is unknown here: given that the word is not <UNK>, nltk's score divided by 1 − its score of <UNK>
    is (n_vw + γ)/(n_v + Kγ).
    """
    line = np.random.default_rng(seed).integers(0, n_states, size=length).tolist()
    rules = [AddConstant(n_states, constant, order=order)]
    if constant == 1.0:
        rules.append(AddOne(n_states, order=order))
    if constant == 0.5:
        rules.append(KrichevskyTrofimov(n_states, order=order))
    ours = [rule.predict_proba([line])[0] for rule in rules]

    def make(vocabulary: Vocabulary) -> LanguageModel:
        n = order + 1
        return Laplace(n, vocabulary) if constant == 1.0 else Lidstone(constant, n, vocabulary)

    for n, model, states in refitted(make, line, n_states, order):
        if n < order:
            assert all((prediction[n - 1] == 1 / n_states).all() for prediction in ours)
            continue
        context = [str(token) for token in line[n - order : n]]
        unknown = model.score("<UNK>", context)
        assert unknown > 0
        expected = [model.score(state, context) / (1 - unknown) for state in states]
        for prediction in ours:
            np.testing.assert_allclose(prediction[n - 1], expected, rtol=1e-12)


@pytest.mark.parametrize(("n_states", "length", "seed"), RANDOM)
def test_the_bigram_is_nltks_maximum_likelihood(n_states: int, length: int, seed: int) -> None:
    """Maximum likelihood gives <UNK> nothing, so nothing needs taking out. For an unseen context nltk says 0."""
    line = np.random.default_rng(seed).integers(0, n_states, size=length).tolist()
    ours = Bigram(n_states).predict_proba([line])[0]
    unseen = 0
    for n, model, states in refitted(lambda vocabulary: MLE(2, vocabulary), line, n_states):
        scores = [model.score(state, [str(line[n - 1])]) for state in states]
        if sum(scores) == 0:
            unseen += 1
            scores = [1 / n_states] * n_states
        np.testing.assert_allclose(ours[n - 1], scores, rtol=1e-14)
    assert unseen == len(set(line))  # once for each state, when it is met first


@pytest.mark.parametrize(("n_states", "length", "seed"), RANDOM)
@pytest.mark.parametrize("order", [0, 2, 3])
def test_higher_orders_of_the_bigram_are_nltks_too(n_states: int, length: int, seed: int, order: int) -> None:
    line = np.random.default_rng(seed).integers(0, n_states, size=length).tolist()
    ours = Bigram(n_states, order=order).predict_proba([line])[0]
    for n, model, states in refitted(lambda vocabulary: MLE(order + 1, vocabulary), line, n_states, order):
        context = [str(token) for token in line[n - order : n]] if n >= order else ["nothing like it"]
        scores = [model.score(state, context) for state in states]
        expected = scores if sum(scores) else [1 / n_states] * n_states
        np.testing.assert_allclose(ours[n - 1], expected, rtol=1e-14)


@pytest.mark.parametrize("n_states", [2, 3, 5])
def test_order_1_is_the_plain_rule_and_order_0_the_unigram_bit_for_bit(n_states: int) -> None:
    tokens = np.random.default_rng(0).integers(0, n_states, size=(30, 40))
    for spec in ("add-one", "add-constant:0.3", "krichevsky-trofimov", "bigram", "bigram:unseen=prefix"):
        plain, named = (get(text, n_states=n_states) for text in (spec, f"{spec}:order=1"))
        assert named.name == plain.name == spec
        np.testing.assert_array_equal(named.predict_proba(tokens), plain.predict_proba(tokens))
    unigram = get("unigram", n_states=n_states).predict_proba(tokens)
    np.testing.assert_array_equal(AddOne(n_states, order=0).predict_proba(tokens), unigram)


@pytest.mark.parametrize("n_states", [2, 3, 8])
def test_each_rule_is_its_formula(n_states: int) -> None:
    tokens = np.random.default_rng(0).integers(0, n_states, size=(20, 30))
    counts = transition_counts(tokens, n_states)
    visits = counts.sum(axis=-1, keepdims=True)
    constants = {
        "add-one": 1.0,
        "krichevsky-trofimov": 0.5,
        "bayes": 0.3,
        "add-constant:0.25": 0.25,
        "add-constant:1e-300": 1e-300,
    }
    for spec, constant in constants.items():
        prediction = get(spec, n_states=n_states, concentration=0.3).predict_proba(tokens)
        np.testing.assert_allclose(prediction, (counts + constant) / (visits + n_states * constant), rtol=1e-13)


def test_the_bigram_has_exact_zeros_and_says_what_it_does_unseen() -> None:
    tokens = np.array([[0, 1, 0, 2, 2]])
    uniform = Bigram(3).predict_proba(tokens)[0]
    prefix = Bigram(3, unseen="prefix").predict_proba(tokens)[0]
    third = [1 / 3] * 3
    assert uniform.tolist() == [third, third, [0.0, 1.0, 0.0], third, [0.0, 0.0, 1.0]]
    assert prefix.tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0.5, 0.25, 0.25], [0, 0, 1]]
    counted = occurrence_counts(tokens, 3)[0] / np.arange(1, 6)[:, None]
    np.testing.assert_array_equal(prefix[[0, 1, 3]], counted[[0, 1, 3]])


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (AddOne(3), "add-one"),
        (AddConstant(3, 2.0), "add-constant:2"),
        (AddConstant(3, 0.5), "add-constant:0.5"),
        (AddConstant(3, 0.12345678), "add-constant:0.12345678"),
        (AddConstant(3, 1e-300), "add-constant:1e-300"),
        (AddConstant(3, 2.0, name="mine"), "mine"),
        (KrichevskyTrofimov(3), "krichevsky-trofimov"),
        (Bayes(3, concentration=0.2), "bayes"),
        (Bigram(3), "bigram"),
        (Bigram(3, unseen="prefix"), "bigram:unseen=prefix"),
        (AddOne(3, order=1), "add-one"),
        (AddOne(3, order=2), "add-one:order=2"),
        (AddConstant(3, 0.5, order=0), "add-constant:0.5:order=0"),
        (KrichevskyTrofimov(3, order=2), "krichevsky-trofimov:order=2"),
        (Bigram(3, order=2), "bigram:order=2"),
        (Bigram(3, unseen="prefix", order=2), "bigram:unseen=prefix:order=2"),
    ],
)
def test_names_say_the_values(rule: AddConstant | Bigram, name: str) -> None:
    assert rule.name == name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AddOne(1), "n_states must be an integer of at least 2, not 1"),
        (lambda: Bigram(1), "n_states must be an integer of at least 2, not 1"),
        (lambda: AddConstant(3, -1), "the constant of add-constant must be a finite number above 0, not -1"),
        (
            lambda: AddConstant(3, float("nan")),
            "the constant of add-constant must be a finite number above 0, not nan",
        ),
        (lambda: AddConstant(3, "x"), "the constant of add-constant must be a number above 0, not 'x'"),
        (lambda: Bayes(3, concentration=0), "concentration must be a finite number above 0, not 0"),
        (lambda: AddOne(3, order=-1), "order must be an integer of at least 0, not -1"),
        (lambda: Bigram(3, order=1.5), "order must be an integer, not 1.5"),
        (lambda: Bigram(3, unseen="zero"), "unseen must be uniform or prefix, not 'zero'"),
    ],
)
def test_parameters_are_checked(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
