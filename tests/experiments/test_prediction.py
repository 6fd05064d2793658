from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icl_estimators.estimators import ContractError, get
from icl_estimators.experiments.prediction import ask, predict


class Broken:
    """Uniform, but for what `change` does to it; `fail` raises for tokens it does not like."""

    name = "broken"
    n_states = 3

    def __init__(self, change: Any = None, fail: Any = None) -> None:
        self.change, self.fail = change, fail

    def predict_proba(self, tokens: np.ndarray) -> Any:
        if self.fail is not None and self.fail(tokens):
            raise ZeroDivisionError("I cannot\nread this")
        out = np.full((*tokens.shape, 3), 1 / 3)
        return out if self.change is None else self.change(out)


TOKENS = np.arange(24).reshape(8, 3) % 3  # 4 chains × 2 sequences × 3 tokens


def at(row: int, position: int, values: list[float]) -> Any:
    def change(out: np.ndarray) -> np.ndarray:
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
        (lambda out: out[:, 1:], r"returned shape \(8, 2, 3\) for 8 sequences of 3 tokens and 3 states"),
        (lambda out: out.astype(np.float32), "returned float32, not float64"),
        (lambda out: out.tolist(), "returned a list, not a NumPy array"),
        (lambda out: None, "returned a NoneType, not a NumPy array"),
    ],
)
def test_a_broken_prediction_is_named_with_its_first_row(change: Any, complaint: str) -> None:
    with pytest.raises(ContractError, match=rf"^broken: .*{complaint}"):
        predict(Broken(change), TOKENS, range(10, 14), 2)


def test_the_first_broken_row_is_the_one_that_is_named() -> None:
    def change(out: np.ndarray) -> np.ndarray:
        out[3:, 1:] = 2.0
        return out

    with pytest.raises(ContractError, match="chain 11, sequence 1 at context length 2"):
        predict(Broken(change), TOKENS, range(10, 14), 2)


def test_an_exception_is_named_with_the_chain_that_raises_it() -> None:
    culprit = TOKENS[4].tolist()
    broken = Broken(fail=lambda tokens: culprit in tokens.tolist() and len(tokens) != 1)
    expected = r"^broken failed on chain 10: ZeroDivisionError: I cannot"  # chain 10 holds the same tokens
    with pytest.raises(ContractError, match=expected) as caught:
        predict(broken, TOKENS, range(10, 14), 2)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_exception_of_the_batch_alone_names_its_chains() -> None:
    with pytest.raises(ContractError, match=r"^broken failed on chains 10 to 13: ZeroDivisionError"):
        predict(Broken(fail=lambda tokens: len(tokens) > 2), TOKENS, range(10, 14), 2)


def test_an_estimator_cannot_write_to_the_tokens() -> None:
    class Writer(Broken):
        def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
            tokens[0, 0] = 0
            return np.full((*tokens.shape, 3), 1 / 3)

    tokens = TOKENS.copy()
    with pytest.raises(ContractError, match="read-only"):
        ask(Writer(), tokens, place=str, where=lambda given: "here")
    np.testing.assert_array_equal(tokens, TOKENS)
    assert tokens.flags.writeable


def test_ctrl_c_is_no_fault_of_the_estimator() -> None:
    class Interrupted(Broken):
        def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict(Interrupted(), TOKENS, range(4), 2)
