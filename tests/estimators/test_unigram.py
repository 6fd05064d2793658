from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators.unigram import Unigram
from icl_estimators.validation import InputError


def test_it_is_add_one_over_the_prefix() -> None:
    line = np.random.default_rng(0).integers(0, 4, size=25).tolist()
    prediction = Unigram(4).predict_proba([line])[0]
    for n in range(1, 26):
        expected = [(line[:n].count(w) + 1) / (n + 4) for w in range(4)]
        np.testing.assert_allclose(prediction[n - 1], expected, rtol=1e-14)


def test_it_is_blind_to_the_order() -> None:
    prediction = Unigram(3).predict_proba([[0, 1, 2, 2], [2, 2, 1, 0]])
    assert prediction[0, -1].tolist() == prediction[1, -1].tolist()


def test_states_are_checked() -> None:
    with pytest.raises(InputError, match="n_states must be an integer of at least 2, not 1"):
        Unigram(1)
