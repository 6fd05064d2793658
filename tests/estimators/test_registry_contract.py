"""One contract for everything in the registry."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from icl_estimators.estimators import DEFAULT_SPECS, REGISTRY, Estimator, check_estimator, get, get_all
from icl_estimators.estimators.registry import parse_spec
from icl_estimators.validation import InputError

EXAMPLES: dict[str, list[str]] = {
    "transformer": ["transformer", *(["transformer:engine=kernel"] if find_spec("numba") else [])],
    "construction": ["construction", "construction:30", "construction:0.5", "construction:1e5"],
    "construction-softmax": [
        "construction-softmax",
        "construction-softmax:2.2",
        "construction-softmax:direct_path=false",
        "construction-softmax:3:direct_path=false",
    ],
    "bigram": ["bigram", "bigram:unseen=prefix", "bigram:order=2", "bigram:unseen=prefix:order=0"],
    "add-one": ["add-one", "add-one:order=0", "add-one:order=2", "add-one:order=5"],
    "add-constant": [
        "add-constant:0.5",
        "add-constant:1e-300",
        "add-constant:constant=1000",
        "add-constant:0.5:order=2",
    ],
    "krichevsky-trofimov": ["krichevsky-trofimov", "krichevsky-trofimov:order=3"],
    "bayes": ["bayes"],
    "recency": ["recency:0.9", "recency:1", "recency:decay=1e-300"],
    "unigram": ["unigram"],
    "uniform": ["uniform"],
}

# The shipped transformer is for K = 3 and computes in float32.
CASES = [
    (spec, n_states, 1e-12)
    for name, specs in EXAMPLES.items()
    if name != "transformer"
    for spec in specs
    for n_states in (2, 3, 5, 8)
]
CASES += [(spec, 3, 1e-6) for spec in EXAMPLES["transformer"]]

every_rule = pytest.mark.parametrize(("spec", "n_states", "tolerance"), CASES)


def test_every_name_of_the_registry_has_an_example() -> None:
    assert EXAMPLES.keys() == REGISTRY.keys()
    assert {parse_spec(spec).head for spec in DEFAULT_SPECS} <= EXAMPLES.keys()


@every_rule
def test_it_keeps_the_contract(spec: str, n_states: int, tolerance: float) -> None:
    rule = get(spec, n_states=n_states)
    assert isinstance(rule, Estimator)
    check_estimator(rule, n_states, tolerance=tolerance)


@every_rule
def test_its_name_makes_it_again(spec: str, n_states: int, tolerance: float) -> None:
    rule = get(spec, n_states=n_states)
    again = get(rule.name, n_states=n_states)
    tokens = np.random.default_rng(0).integers(0, n_states, size=(4, 20))
    np.testing.assert_array_equal(again.predict_proba(tokens), rule.predict_proba(tokens))


@every_rule
def test_every_way_to_write_tokens_is_the_same(spec: str, n_states: int, tolerance: float) -> None:
    rule = get(spec, n_states=n_states)
    tokens = np.random.default_rng(1).integers(0, n_states, size=(6, 14))
    expected = rule.predict_proba(tokens)
    read_only = tokens.copy()
    read_only.setflags(write=False)
    wide = np.zeros((6, 28), dtype=np.int64)
    wide[:, ::2] = tokens
    ways = [tokens.tolist(), tokens.astype(np.uint8), tokens.astype(np.int16), tokens.astype(">i8")]
    for way in [*ways, read_only, np.asfortranarray(tokens), wide[:, ::2]]:
        np.testing.assert_array_equal(rule.predict_proba(way), expected)


@every_rule
def test_one_token_and_one_state_are_enough(spec: str, n_states: int, tolerance: float) -> None:
    rule = get(spec, n_states=n_states)
    for tokens in ([[0]], [[n_states - 1]], [[0]] * 3, [[0] * 30]):
        prediction = rule.predict_proba(tokens)
        assert prediction.shape == (len(tokens), len(tokens[0]), n_states)
        np.testing.assert_allclose(prediction.sum(axis=-1), 1.0, rtol=0, atol=tolerance)


@every_rule
def test_it_refuses_what_are_no_tokens(spec: str, n_states: int, tolerance: float) -> None:
    rule = get(spec, n_states=n_states)
    bad = {
        "is outside": [[0, n_states]],
        "at sequence 0, position 0 is outside": [[-1, 0]],
        "must be integers": [[0.5, 1.0]],
        "must be integers in .* not float64": [[float("nan"), 0.0]],
        "are empty": np.zeros((0, 4), dtype=int),
        "wrap one sequence": [0, 1],
    }
    for message, tokens in bad.items():
        with pytest.raises(InputError, match=message):
            rule.predict_proba(tokens)


@pytest.mark.parametrize("concentration", [1.0, 0.2])
def test_bayes_is_the_rule_of_its_prior(concentration: float) -> None:
    tokens = np.random.default_rng(2).integers(0, 3, size=(5, 40))
    bayes = get("bayes", concentration=concentration).predict_proba(tokens)
    same = get(f"add-constant:{concentration}").predict_proba(tokens)
    np.testing.assert_array_equal(bayes, same)


@pytest.mark.parametrize("n_states", [2, 3])
def test_the_default_list_leaves_out_what_cannot_take_k_and_says_so(n_states: int) -> None:
    lines: list[str] = []
    names = [rule.name for rule in get_all(None, n_states=n_states, warn=lines.append)]
    assert ("transformer" in names) == (n_states == 3)
    assert len(names) + len(lines) == len(DEFAULT_SPECS)
    assert all(line.startswith("left out: ") for line in lines)
