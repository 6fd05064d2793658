from __future__ import annotations

import math
import sys

import numpy as np
import pytest
import torch

from icl_estimators.api import compare
from icl_estimators.estimators import ContractError, check_estimator
from icl_estimators.estimators.misfits import misfit, row_remedy, training_remedy
from strange_rules import Flat


class Wrapped:
    """A wrapper that forgets to switch dropout off."""

    name, n_states = "wrapped", 3

    def __init__(self, dropout: float = 0.5, training: bool = True) -> None:
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Embedding(3, 8), torch.nn.Dropout(dropout), torch.nn.Linear(8, 3))
        self.net.train(training)

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.net(torch.tensor(np.array(tokens))).double().softmax(-1).numpy()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.nn.GRU(3, 4), r"is a plain torch module: wrap it, icl_estimators\.from_torch\(module, n_states=…\)"),
        (Flat, r"is a class, not an object of it: give Flat\(…\)"),
        (math, "is a Python module: name what it holds"),
        (len, "is a function: call it, or give a spec that names it"),
    ],
)
def test_what_is_no_estimator_is_named_in_one_line(value: object, message: str) -> None:
    with pytest.raises(ContractError, match=message) as refused:
        compare([value], chains=2, length=3, decomposition_chains=0)  # type: ignore[list-item]
    assert "\n" not in str(refused.value)
    assert misfit(Flat()) is None


def test_dropout_that_is_on_is_found() -> None:
    with pytest.raises(ContractError, match=r"wrapped: not deterministic.*Sequential is in training mode with dropout"):
        check_estimator(Wrapped(), 3)
    check_estimator(Wrapped(training=False), 3)
    assert training_remedy(Wrapped(training=False)) == ""
    assert training_remedy(3) == ""


@pytest.mark.parametrize(
    ("row", "looks"),
    [
        (np.log([0.2, 0.3, 0.5]), "log-probabilities"),
        (np.array([-math.inf, 0.0]), "log-probabilities"),
        (np.array([3.0, -1.0, 0.2]), "logits"),
        (np.array([0.5, 0.6]), ""),
        (np.array([math.nan, 1.0]), ""),
        (np.array([1.0 + 1e-9, -1e-9]), ""),  # rounding
    ],
)
def test_rows_that_look_like_something_else_say_so(row: np.ndarray, looks: str) -> None:
    assert looks in row_remedy(row)
    assert bool(row_remedy(row)) == bool(looks)


def test_half_precision_is_told_what_to_do() -> None:
    class Half(Flat):
        def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
            return super().predict_proba(tokens).astype(np.float16)

    with pytest.raises(ContractError, match=r"returned float16, not float64: convert it .*attribute `tolerance`"):
        check_estimator(Half(), 3)


def test_no_module_is_a_torch_module_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    assert misfit(Flat()) is None
