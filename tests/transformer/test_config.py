from __future__ import annotations

import dataclasses
import json

import pytest

from icl_estimators.transformer import ModelConfig
from icl_estimators.validation import InputError


def test_default_is_the_studied_model():
    config = ModelConfig()
    assert config.parameter_count == 33_352
    assert config.parameter_count == 3 * 64 + 64 * 3 + 2 * 4 * 64**2 + 2 * 100
    assert config.foldable


@pytest.mark.parametrize(
    "changed", [{}, {"n_states": 5}, {"n_layers": 3, "n_heads": 4}, {"sentinel": True, "length": 7}, {"d_model": 16}]
)
def test_parameter_count_formula(changed):
    config = ModelConfig(**changed)
    k, d, s = config.n_states, config.d_model, int(config.sentinel)
    expected = (k + s) * d + d * k + config.n_layers * (4 * d * d + config.n_heads * (config.length + s))
    assert config.parameter_count == expected


@pytest.mark.parametrize("changed", [{"n_layers": 1}, {"n_layers": 3}, {"n_heads": 2}, {"sentinel": True}])
def test_only_two_layers_of_one_head_fold(changed):
    assert not ModelConfig(**changed).foldable


def test_round_trip_through_json():
    config = ModelConfig(n_states=4, length=17, sentinel=True, init_std=0.25)
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelConfig().length = 5


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"n_states": 1}, "n_states must be an integer of at least 2"),
        ({"length": 0}, "length must be an integer of at least 1"),
        ({"d_model": 2.5}, "d_model must be an integer"),
        ({"n_layers": 0}, "n_layers"),
        ({"n_heads": 5}, "n_heads must divide d_model = 64, but 5 does not"),
        ({"init_std": 0.0}, "init_std must be a finite number above 0"),
        ({"sentinel": 1}, "sentinel must be True or False"),
    ],
)
def test_bad_values(changed, says):
    with pytest.raises(InputError, match=says):
        ModelConfig(**changed)


def test_from_dict_names_the_field():
    values = ModelConfig().to_dict()
    with pytest.raises(InputError, match="lacks 'length'"):
        ModelConfig.from_dict({name: value for name, value in values.items() if name != "length"})
    with pytest.raises(InputError, match="unknown field 'width'"):
        ModelConfig.from_dict({**values, "width": 3})
    with pytest.raises(InputError, match="n_states"):
        ModelConfig.from_dict({**values, "n_states": "three"})
