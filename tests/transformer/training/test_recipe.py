from __future__ import annotations

import json
import math

import pytest

from icl_estimators.transformer import ModelConfig
from icl_estimators.transformer.training import Recipe
from icl_estimators.transformer.training.recipe import row_steps, snapshot_steps
from icl_estimators.validation import InputError

SMALL = ModelConfig(length=12, d_model=8)


def small(steps: int = 20, **changed) -> Recipe:
    return Recipe(**{"steps": steps, "batch": 8, "length": 12, **changed})


def test_default_recipe():
    recipe = Recipe()
    assert (recipe.steps, recipe.batch, recipe.length, recipe.peak_lr) == (8000, 64, 100, 3e-3)
    assert recipe.learning_rate(0) == 3e-3
    assert recipe.learning_rate(4000) == pytest.approx(1.5e-3)
    assert 0.0 < recipe.learning_rate(7999) < 1e-9
    assert Recipe(schedule="constant").learning_rate(7999) == 3e-3


def test_recipe_round_trip():
    recipe = small(start="stationary", concentration=0.5)
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
    with pytest.raises(InputError, match="lacks 'batch'"):
        Recipe.from_dict({name: value for name, value in recipe.to_dict().items() if name != "batch"})
    with pytest.raises(InputError, match="unknown field 'momentum'"):
        Recipe.from_dict({**recipe.to_dict(), "momentum": 0.9})


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"steps": 0}, "steps must be an integer of at least 1"),
        ({"batch": 0}, "batch"),
        ({"length": 0}, "length"),
        ({"peak_lr": 0.0}, "peak_lr"),
        ({"peak_lr": math.nan}, "peak_lr"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"beta1": 1.0}, "beta1 must be a number from 0 up to"),
        ({"beta2": "0.9"}, "beta2"),
        ({"schedule": "linear"}, "schedule must be one of cosine, constant"),
        ({"concentration": 0.0}, "concentration"),
        ({"start": "first"}, "start must be one of"),
    ],
)
def test_bad_recipes(changed, says):
    with pytest.raises(InputError, match=says):
        Recipe(**changed)


def test_steps_that_are_kept():
    steps = snapshot_steps(8000)
    assert steps[:12] == [0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20]
    assert steps[-2:] == [7943, 8000]
    assert len(steps) == 39
    assert snapshot_steps(1) == [0, 1]
    assert set(snapshot_steps(1000)) <= set(row_steps(1000))
    assert set(range(0, 1001, 100)) <= set(row_steps(1000))
