from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from icl_estimators.estimators import (
    ContractError,
    Estimator,
    StatesTolerance,
    check_estimator,
    check_predictions,
    stated_tolerance,
    stated_tolerances,
    tolerance_lines,
)
from icl_estimators.estimators.counting import AddOne
from icl_estimators.validation import InputError
from strange_rules import (
    Rule,
    at_random,
    changed,
    depends_a_little_on_the_batch,
    fails,
    good,
    looks_ahead,
    looks_ahead_at,
    looks_at_the_last_token,
    looks_at_the_length,
    pools_the_batch,
    with_entry,
    writes_all_the_same,
    writes_through_torch,
    writes_to_its_input,
)

BREACHES: dict[str, tuple[object, str]] = {
    "no name": (Rule(good, name=None), r"has no name: set a non-empty string attribute `name`"),
    "empty name": (Rule(good, name=""), r"has no name: set a non-empty string attribute `name`"),
    "no method": (Rule(None), r"mine: has no method predict_proba\(tokens\)"),
    "nothing at all": (object(), r"has no name"),
    "wrong n_states": (Rule(good, n_states=4), r"mine: n_states is 4, but 3 states were asked for"),
    "no n_states": (Rule(good, n_states=None), r"mine: n_states is None, but 3 states were asked for"),
    "a list": (Rule(changed(np.ndarray.tolist)), r"mine: predict_proba returned a list, not a NumPy array"),
    "None": (Rule(lambda tokens: None), r"mine: predict_proba returned a NoneType, not a NumPy array"),
    "last prediction only": (
        Rule(changed(lambda p: p[:, -1])),
        r"mine: predict_proba returned shape \(6, 3\) for 6 sequences of 24 tokens and 3 states, not \(6, 24, 3\)",
    ),
    "too few states": (Rule(changed(lambda p: p[..., :2])), r"mine: predict_proba returned shape \(6, 24, 2\)"),
    "float32": (
        Rule(changed(lambda p: p.astype(np.float32))),
        r"mine: predict_proba returned float32, not float64: convert it before normalising",
    ),
    "NaN": (Rule(with_entry(np.nan)), r"mine: the prediction for sequence 5 at context length 24 has a NaN: \["),
    "negative": (Rule(changed(lambda p: 3 * p - 2 / 3)), r"mine: .* has a negative entry"),
    "infinite": (Rule(with_entry(np.inf)), r"mine: .* context length 24 sums to inf, not 1"),
    "not normalised": (
        Rule(changed(lambda p: 2 * p)),
        r"mine: the prediction for sequence 0 at context length 1 sums to 2, not 1",
    ),
    "looks ahead": (Rule(looks_ahead), r"mine: not causal: its prediction at context length \d+ changes when only"),
    "looks at the last token": (
        Rule(looks_at_the_last_token),
        r"mine: not causal: its prediction at context length 1 changes when only tokens after position 1 change",
    ),
    "looks at the length": (
        Rule(looks_at_the_length),
        r"mine: not causal: its predictions up to context length 2 are 0\.\d+ apart when the tokens after it",
    ),
    "pools the batch": (
        Rule(pools_the_batch),
        r"mine: not batch invariant: a sequence alone and in a batch of 6 are predicted 0\.\d+ apart",
    ),
    "writes to its input": (
        Rule(writes_to_its_input),
        r"mine: predict_proba failed on read-only tokens of shape \(6, 24\): ValueError: assignment destination",
    ),
    "writes all the same": (Rule(writes_all_the_same), r"mine: predict_proba writes to the tokens it is given"),
    "writes through torch": (Rule(writes_through_torch), r"mine: predict_proba writes to the tokens it is given"),
    "at random": (Rule(at_random()), r"mine: not deterministic: the same tokens are predicted differently"),
    "fails": (
        Rule(fails),
        r"mine: predict_proba failed on read-only tokens of shape \(6, 24\): ZeroDivisionError: ",
    ),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_each_breach_of_the_contract_is_named_in_one_line(breach: str) -> None:
    estimator, message = BREACHES[breach]
    with pytest.raises(ContractError, match=message) as caught:
        check_estimator(estimator, 3)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, InputError)  # what a command line prints


def test_the_function_that_the_breaches_start_from_is_sound() -> None:
    check_estimator(Rule(good), 3, tolerance=1e-12)


@pytest.mark.parametrize("cut", [1, 2, 7, 23])
def test_a_look_ahead_at_any_distance_is_seen(cut: int) -> None:
    def peeks(tokens: np.ndarray) -> np.ndarray:
        prediction = good(tokens)
        if tokens.shape[1] > cut:
            prediction[:, cut - 1] = 0.5 * prediction[:, cut - 1] + 0.5 * np.eye(3)[tokens[:, cut]]
        return prediction

    with pytest.raises(ContractError, match="not causal"):
        check_estimator(Rule(peeks), 3)


def test_what_an_exception_says_is_kept_as_its_cause() -> None:
    with pytest.raises(ContractError) as caught:
        check_estimator(Rule(fails), 3)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_the_tolerance_is_what_it_says() -> None:
    nearly = Rule(changed(lambda p: p * (1 + 1e-8)))
    check_estimator(nearly, 3)
    with pytest.raises(ContractError, match=r"sums to 1\.00000001, not 1"):
        check_estimator(nearly, 3, tolerance=1e-12)


def test_a_rule_that_returns_its_buffer_again_is_not_compared_with_itself() -> None:
    class Reused(Rule):
        def __init__(self) -> None:
            super().__init__(self.reuse)
            self.buffer = np.empty((6, 24, 3))

        def reuse(self, tokens: np.ndarray) -> np.ndarray:
            view = self.buffer[: tokens.shape[0], : tokens.shape[1]]
            view[:] = looks_ahead(tokens)
            return view

    with pytest.raises(ContractError, match="not causal"):
        check_estimator(Reused(), 3)


def test_predictions_pass_through_unchanged() -> None:
    prediction = good(np.array([[0, 1]]))
    assert check_predictions(prediction, (1, 2, 3), "mine") is prediction


def test_the_first_offending_row_is_shown() -> None:
    prediction = good(np.array([[0, 1, 2], [0, 1, 2]]))
    prediction[1, 1] = [0.25, 0.25, 0.25]
    message = "mine: the prediction for sequence 1 at context length 2 sums to 0.75, not 1: [0.25 0.25 0.25]"
    with pytest.raises(ContractError, match=re.escape(message)):
        check_predictions(prediction, (2, 3, 3), "mine")


def test_a_sequence_may_go_by_another_name() -> None:
    with pytest.raises(ContractError, match=r"mine: the prediction for chain 50 at context length 1 sums to 0, not 1"):
        check_predictions(np.zeros((1, 1, 3)), (1, 1, 3), "mine", place=lambda i: f"chain {50 + i}")


def test_rows_of_many_states_are_shown_on_one_line() -> None:
    for n_states in (8, 200):
        with pytest.raises(ContractError, match=r"has a negative entry: \[") as caught:
            check_predictions(np.full((1, 1, n_states), -1 / 7.123456), (1, 1, n_states), "mine")
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 250


def test_infinities_of_both_signs_are_no_law_and_no_warning() -> None:
    with pytest.raises(ContractError, match="has a negative entry"):
        check_predictions(np.array([[[np.inf, -np.inf, 1.0]]]), (1, 1, 3), "mine")


def test_the_protocol_is_checked_by_what_an_object_has() -> None:
    assert isinstance(Rule(good), Estimator)
    assert not isinstance(object(), Estimator)


@pytest.mark.parametrize(
    ("where", "distance"),
    [
        (lambda n: n > 30, 1),
        (lambda n: n == 57, 1),
        (lambda n: n == 99, 1),
        (lambda n: n == 31, 69),
        (lambda n: n > 90, 3),
        (lambda n: n in (41, 43), 2),
    ],
)
def test_a_look_ahead_at_long_contexts_only_is_found_at_the_length_that_is_asked_for(
    where: Callable[[int], bool], distance: int
) -> None:
    rule = Rule(looks_ahead_at(where, distance))
    check_estimator(rule, 3)  # 24 tokens: nothing is amiss
    with pytest.raises(ContractError, match="mine: not causal: its prediction at context length"):
        check_estimator(rule, 3, length=100)


def test_a_look_ahead_that_shifting_all_tokens_does_not_change_is_found() -> None:
    def predict(tokens: np.ndarray) -> np.ndarray:
        prediction = good(tokens).copy()
        repeats = tokens[:, 40:-1] == tokens[:, 41:]  # of two tokens that both come later
        prediction[:, 38:-3] = np.where(repeats[..., None], [0.2, 0.3, 0.5], prediction[:, 38:-3])
        return prediction

    with pytest.raises(ContractError, match="not causal: its prediction at context length"):
        check_estimator(Rule(predict), 3, length=60)


@pytest.mark.parametrize("length", [300, 1000])
def test_at_lengths_with_many_positions_late_and_wide_looks_ahead_are_found(length: int) -> None:
    calls = []

    def counted(tokens: np.ndarray) -> np.ndarray:
        calls.append(tokens.size)
        return good(tokens)

    check_estimator(Rule(counted), 3, length=length)
    assert sum(calls) < 400 * length  # a few calls of a few sequences
    for where, distance in ((lambda n: n > 250, 20), (lambda n: n == length - 1, 1), (lambda n: n < 250, 30)):
        with pytest.raises(ContractError, match="not causal"):
            check_estimator(Rule(looks_ahead_at(where, distance)), 3, length=length)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_sequences_can_be_checked(length: int) -> None:
    check_estimator(Rule(good), 3, length=length)


def test_the_length_must_be_a_count() -> None:
    with pytest.raises(InputError, match="length must be an integer of at least 1, not 0"):
        check_estimator(Rule(good), 3, length=0)


def test_half_precision_needs_a_stated_tolerance() -> None:
    rule = Rule(depends_a_little_on_the_batch)
    with pytest.raises(ContractError, match="mine: not batch invariant"):
        check_estimator(rule, 3)
    rule.tolerance = 0.01  # type: ignore[attr-defined]
    assert isinstance(rule, StatesTolerance)
    check_estimator(rule, 3)
    with pytest.raises(ContractError, match=r"not batch invariant: .* apart \(tolerance 1e-12\)"):
        check_estimator(rule, 3, tolerance=1e-12)
    assert stated_tolerances([rule, AddOne(3)]) == {"mine": 0.01}
    assert stated_tolerance(AddOne(3)) == 1e-6
    (line,) = tolerance_lines({"mine": 0.01, "fine": 1e-9})
    assert line.startswith("mine: its predictions are checked to 0.01 only")


@pytest.mark.parametrize("breach", ["looks ahead", "looks at the last token"])
def test_a_stated_tolerance_does_not_allow_a_look_ahead(breach: str) -> None:
    rule: Any = BREACHES[breach][0]
    tolerant = Rule(rule.predict_proba)
    tolerant.tolerance = 0.05  # type: ignore[attr-defined]
    with pytest.raises(ContractError, match="not causal: its prediction at context length"):
        check_estimator(tolerant, 3)


def test_a_stated_tolerance_does_not_allow_rows_that_are_no_laws() -> None:
    rule = Rule(changed(lambda p: 1.001 * p))
    rule.tolerance = 0.05  # type: ignore[attr-defined]
    with pytest.raises(ContractError, match=r"sums to 1\.001, not 1"):
        check_estimator(rule, 3)


@pytest.mark.parametrize("stated", [0, -1e-3, 0.06, float("nan")])
def test_a_tolerance_out_of_range_is_refused(stated: Any) -> None:
    rule = Rule(good)
    rule.tolerance = stated  # type: ignore[attr-defined]
    with pytest.raises(ContractError, match=r"mine: its attribute `tolerance` is .*: state a number above 0 and at"):
        stated_tolerance(rule)
    with pytest.raises(ContractError, match="its attribute `tolerance`"):
        check_estimator(rule, 3)
