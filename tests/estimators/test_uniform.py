from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators.uniform import Uniform
from icl_estimators.validation import InputError


@pytest.mark.parametrize("n_states", [2, 3, 8])
def test_it_knows_nothing(n_states: int) -> None:
    prediction = Uniform(n_states).predict_proba([[0, 1, 0]])
    np.testing.assert_array_equal(prediction, np.full((1, 3, n_states), 1 / n_states))


def test_states_and_tokens_are_checked() -> None:
    with pytest.raises(InputError, match="n_states must be an integer of at least 2, not 0"):
        Uniform(0)
    with pytest.raises(InputError, match="token 5 at sequence 0, position 0 is outside"):
        Uniform(3).predict_proba([[5]])
