from __future__ import annotations

import pytest

from icl_estimators.transformer import ModelConfig, engines
from icl_estimators.transformer.engines import choose_engine, require_engine
from icl_estimators.transformer.training import Recipe, Trainer
from icl_estimators.validation import InputError

LARGE = {"work": "training", "sequences": 8000 * 64, "length": 100}


@pytest.fixture
def numba(monkeypatch):
    """Say whether numba is there."""

    def there(yes: bool) -> None:
        monkeypatch.setattr(engines, "numba_is_there", lambda: yes)

    there(True)
    return there


def test_the_default_run_is_worth_compiling_for_and_a_short_one_is_not(numba):
    assert choose_engine("auto", ModelConfig(), **LARGE) == "kernel"
    assert choose_engine("auto", ModelConfig(), work="training", sequences=300 * 64, length=100) == "torch"
    assert choose_engine("auto", ModelConfig(), work="prediction", sequences=20_000, length=100) == "torch"
    assert choose_engine("auto", ModelConfig(), work="prediction", sequences=1_000_000, length=100) == "kernel"


@pytest.mark.parametrize(
    ("config", "device"),
    [
        (ModelConfig(n_layers=3), "cpu"),
        (ModelConfig(n_heads=2), "cpu"),
        (ModelConfig(sentinel=True), "cpu"),
        (ModelConfig(n_states=9), "cpu"),
        (ModelConfig(), "cuda"),
    ],
)
def test_what_only_torch_can_run(numba, config, device):
    assert choose_engine("auto", config, device=device, **LARGE) == "torch"
    with pytest.raises(InputError, match=r"the engine kernel needs .*: use the engine torch"):
        choose_engine("kernel", config, device=device, **LARGE)


def test_without_numba(numba):
    numba(False)
    assert choose_engine("auto", ModelConfig(), **LARGE) == "torch"
    with pytest.raises(InputError, match=r"needs numba.*pip install 'icl-estimators\[fast\]'"):
        require_engine("kernel", ModelConfig(), "cpu")
    with pytest.raises(InputError, match="needs numba"):
        Trainer(ModelConfig(), Recipe(), engine="kernel")
    require_engine("torch", ModelConfig(), "cpu")


def test_what_is_asked_for_is_taken(numba):
    small = {"work": "training", "sequences": 1, "length": 1}
    assert choose_engine("kernel", ModelConfig(), **small) == "kernel"
    assert choose_engine("torch", ModelConfig(), **LARGE) == "torch"
