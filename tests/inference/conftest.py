"""What several tests of this room share: the oracles, and nested samples with add-one predictions of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from icl_estimators.chains import (
    Sample,
    posterior_predictive,
    sample_chains,
    start_probabilities,
    transition_counts,
)
from icl_estimators.inference import Cells


@pytest.fixture(scope="session")
def oracles() -> dict[str, Any]:
    path = Path(__file__).parents[1] / "oracles" / "small_examples.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def nested() -> Callable[[int, int, int], Nested]:
    """Give the function that draws chains, sequences of each, and a length."""
    return draw_nested


@dataclass(frozen=True)
class Nested:
    sample: Sample
    cells: Cells
    add_one: NDArray[np.float64]  # (R, S, T, K)

    @property
    def tokens(self) -> NDArray[np.int64]:
        return self.sample.tokens[:, :, :-1]

    @property
    def truth(self) -> NDArray[np.float64]:
        return self.sample.truth.reshape(self.add_one.shape)


def draw_nested(n_chains: int, n_sequences: int, length: int) -> Nested:
    sample = sample_chains(range(n_chains), sequences_per_chain=n_sequences, length=length, purpose="test")
    start = start_probabilities(sample.transition, "uniform")
    predictions = posterior_predictive(transition_counts(sample.inputs, 3), 1.0)
    tokens = sample.tokens[:, :, :-1]
    return Nested(sample, Cells.of(tokens, sample.transition, start), predictions.reshape(*tokens.shape, 3))
