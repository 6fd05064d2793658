"""Models and tokens that several tests need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from icl_estimators.transformer import ModelConfig, Transformer
from icl_estimators.transformer.training import Recipe, Trainer
from icl_estimators.transformer.training.updates import advance


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def random_model() -> Callable[..., Transformer]:
    """Make a model far from its initial weights: sizeable scores, biases and embeddings."""

    def make(n_states: int, *, length: int = 100, seed: int = 0, **config: Any) -> Transformer:
        model = Transformer(ModelConfig(n_states=n_states, length=length, **config), seed=seed)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("distance_bias") or name == "embedding":
                    parameter.normal_(std=0.5, generator=generator)
        return model

    return make


@pytest.fixture(scope="session")
def tokens_of() -> Callable[..., torch.Tensor]:
    """Draw tokens uniformly."""

    def draw(n_states: int, shape: tuple[int, ...], seed: int = 0) -> torch.Tensor:
        return torch.from_numpy(np.random.default_rng(seed).integers(0, n_states, shape))

    return draw


@pytest.fixture(scope="session")
def trained_model() -> Callable[[int], Transformer]:
    """Train a model for K states until its heads begin to form: a few hundred updates on sequences of 100."""
    made: dict[int, Transformer] = {}

    def train(n_states: int) -> Transformer:
        if n_states not in made:
            trainer = Trainer(ModelConfig(n_states=n_states), Recipe(steps=300, batch=16), seed=n_states)
            with torch.enable_grad():  # whatever the test that asks is in the middle of
                advance([trainer], 300)
            made[n_states] = trainer.model()
        return made[n_states]

    return train
