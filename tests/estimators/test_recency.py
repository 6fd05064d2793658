from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators import get
from icl_estimators.estimators.recency import Recency
from icl_estimators.validation import InputError


@pytest.mark.parametrize("decay", [0.3, 0.9, 1.0])
def test_it_is_its_formula(decay: float) -> None:
    tokens = np.random.default_rng(0).integers(0, 3, size=(6, 20))
    ours = Recency(3, decay).predict_proba(tokens)
    for line, rows in zip(tokens.tolist(), ours, strict=True):
        for n in range(1, len(line) + 1):
            weight = [1.0] * 3
            for i in range(1, n):  # from line[i - 1] to line[i], which n - 1 - i tokens have followed
                if line[i - 1] == line[n - 1]:
                    weight[line[i]] += decay ** (n - 1 - i)
            np.testing.assert_allclose(rows[n - 1], np.divide(weight, sum(weight)), rtol=1e-13)


@pytest.mark.parametrize("n_states", [2, 3, 8])
def test_without_decay_it_is_add_one_bit_for_bit(n_states: int) -> None:
    tokens = np.random.default_rng(1).integers(0, n_states, size=(20, 50))
    ours, add_one = (get(spec, n_states=n_states).predict_proba(tokens) for spec in ("recency:1", "add-one"))
    np.testing.assert_array_equal(ours, add_one)


def test_its_name_says_the_decay() -> None:
    assert [Recency(3, decay).name for decay in (1, 0.9, 1e-300)] == ["recency:1", "recency:0.9", "recency:1e-300"]


@pytest.mark.parametrize(
    ("n_states", "decay", "message"),
    [
        (1, 0.5, "n_states must be an integer of at least 2, not 1"),
        (3, 0, "the decay of recency must be a finite number above 0, not 0"),
        (3, -0.5, "the decay of recency must be a finite number above 0, not -0.5"),
        (3, 1.01, "the decay of recency must be at most 1, not 1.01"),
        (3, "x", "the decay of recency must be a number above 0, not 'x'"),
    ],
)
def test_parameters_are_checked(n_states: int, decay: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Recency(n_states, decay)
