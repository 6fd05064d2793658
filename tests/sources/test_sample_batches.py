"""Batches of several training steps drawn at once."""

from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.sources import ChainLaw, sample_batch, sample_batches
from icl_estimators.validation import InputError


@pytest.mark.parametrize("law", [ChainLaw(), ChainLaw(5, 0.3, "stationary")])
def test_each_batch_is_the_one_drawn_alone(law):
    steps = [3, 0, 8]
    together = sample_batches(steps, batch=6, length=9, law=law, seed=2)
    assert together.tokens.shape == (18, 1, 10)
    for index, step in enumerate(steps):
        alone = sample_batch(step, batch=6, length=9, law=law, seed=2)
        part = slice(6 * index, 6 * index + 6)
        assert np.array_equal(together.tokens[part], alone.tokens)
        assert np.array_equal(together.transition[part], alone.transition)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"steps": []}, "give at least one step"),
        ({"steps": [-1]}, "step must be an integer of at least 0"),
        ({"batch": 0}, "batch"),
        ({"length": 0}, "length"),
        ({"seed": -1}, "seed"),
        ({"purpose": "fun"}, "purpose"),
    ],
)
def test_bad_input(changed, says):
    arguments = {"steps": [0], "batch": 2, "length": 3, **changed}
    with pytest.raises(InputError, match=says):
        sample_batches(arguments.pop("steps"), **arguments)
