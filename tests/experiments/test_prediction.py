from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from icl_estimators.estimators import ContractError, get
from icl_estimators.experiments.prediction import ask, predict
from strange_rules import Changed, Writes


def broken(change: Any) -> Changed:
    return Changed(change, "broken")


def failing(when: Callable[[np.ndarray], bool]) -> Changed:
    def change(tokens: np.ndarray, out: np.ndarray) -> np.ndarray:
        if when(tokens):
            raise ZeroDivisionError("I cannot\nread this")
        return out

    return broken(change)


TOKENS = np.arange(24).reshape(8, 3) % 3  # 4 chains × 2 sequences × 3 tokens


def at(row: int, position: int, values: list[float]) -> Any:
    def change(tokens: np.ndarray, out: np.ndarray) -> np.ndarray:
        out[row, position] = values
        return out

    return change


def test_predictions_that_keep_the_contract_come_back_as_they_are_chain_by_chain() -> None:
    expected = get("add-one").predict_proba(TOKENS).reshape(4, 2, 3, 3)
    np.testing.assert_array_equal(predict(get("add-one"), TOKENS, range(4), 2), expected)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (at(5, 1, [0.5, 0.6, 0.5]), "chain 12, sequence 1 at context length 2 sums to 1.6, not 1"),
        (at(2, 0, [1.2, -0.2, 0.0]), "chain 11, sequence 0 at context length 1 has a negative entry"),
        (at(7, 2, [np.nan, 0.5, 0.5]), "chain 13, sequence 1 at context length 3 has a NaN"),
        (at(7, 2, [np.inf, 0.0, 0.0]), "chain 13, sequence 1 at context length 3 sums to inf"),
        (lambda tokens, out: out[:, 1:], r"returned shape \(8, 2, 3\) for 8 sequences of 3 tokens and 3 states"),
        (lambda tokens, out: out.astype(np.float32), "returned float32, not float64"),
        (lambda tokens, out: out.tolist(), "returned a list, not a NumPy array"),
        (lambda tokens, out: None, "returned a NoneType, not a NumPy array"),
    ],
)
def test_a_broken_prediction_is_named_with_its_first_row(change: Any, complaint: str) -> None:
    with pytest.raises(ContractError, match=rf"^broken: .*{complaint}"):
        predict(broken(change), TOKENS, range(10, 14), 2)


def test_the_first_broken_row_is_the_one_that_is_named() -> None:
    def change(tokens: np.ndarray, out: np.ndarray) -> np.ndarray:
        out[3:, 1:] = 2.0
        return out

    with pytest.raises(ContractError, match="chain 11, sequence 1 at context length 2"):
        predict(broken(change), TOKENS, range(10, 14), 2)


def test_an_exception_is_named_with_the_chain_that_raises_it() -> None:
    culprit = TOKENS[4].tolist()
    rule = failing(lambda tokens: culprit in tokens.tolist() and len(tokens) != 1)
    expected = r"^broken failed on chain 10: ZeroDivisionError: I cannot"  # chain 10 holds the same tokens
    with pytest.raises(ContractError, match=expected) as caught:
        predict(rule, TOKENS, range(10, 14), 2)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_exception_of_the_batch_alone_names_its_chains() -> None:
    with pytest.raises(ContractError, match=r"^broken failed on chains 10 to 13: ZeroDivisionError"):
        predict(failing(lambda tokens: len(tokens) > 2), TOKENS, range(10, 14), 2)


def test_an_estimator_cannot_write_to_the_tokens() -> None:
    tokens = TOKENS.copy()
    with pytest.raises(ContractError, match="read-only"):
        ask(Writes(), tokens, place=str, where=lambda given: "here")
    np.testing.assert_array_equal(tokens, TOKENS)
    assert tokens.flags.writeable


def test_ctrl_c_is_no_fault_of_the_estimator() -> None:
    def interrupt(tokens: np.ndarray, out: np.ndarray) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict(broken(interrupt), TOKENS, range(4), 2)
