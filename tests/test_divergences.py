from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr

from icl_estimators.divergences import hellinger, kl_divergence, log_loss, squared_error, total_variation

DISTANCES = [kl_divergence, total_variation, squared_error, hellinger]


def laws(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


@pytest.mark.parametrize("n_states", [2, 3, 8])
def test_each_is_its_formula(n_states: int) -> None:
    rng = np.random.default_rng(n_states)
    p, q = laws(rng, 40, 3, n_states), laws(rng, 40, 3, n_states)
    np.testing.assert_allclose(kl_divergence(p, q), rel_entr(p, q).sum(-1), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(total_variation(p, q), np.maximum(p - q, 0).sum(-1), rtol=1e-12)
    np.testing.assert_allclose(squared_error(p, q), np.linalg.norm(p - q, axis=-1) ** 2, rtol=1e-12)
    np.testing.assert_allclose(hellinger(p, q) ** 2, 1 - np.sqrt(p * q).sum(-1), atol=1e-15)


@pytest.mark.parametrize("distance", DISTANCES)
def test_zero_between_a_law_and_itself_and_shapes_broadcast(distance: object) -> None:
    p = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    assert distance(p, p).tolist() == [0.0, 0.0]
    assert distance(p[:, None], p).shape == (2, 2)


def test_kl_is_infinite_and_never_nan_where_the_estimate_misses_mass() -> None:
    p = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1e-320, 1.0, 0.0]])
    q = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    assert kl_divergence(p, q).tolist() == [math.inf, 0.0, math.inf, math.inf]


def test_nothing_is_floored() -> None:
    q = np.array([1.0 - 1e-300, 1e-300])
    assert kl_divergence(np.array([0.0, 1.0]), q) == pytest.approx(300 * math.log(10))
    assert log_loss(q, np.array(1)) == pytest.approx(300 * math.log(10))


def test_log_loss_picks_the_target_and_is_infinite_at_0() -> None:
    q = np.array([[[0.25, 0.75], [1.0, 0.0]]])
    assert log_loss(q, np.array([[0, 1]])).tolist() == [[math.log(4), math.inf]]


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_known_bounds_hold(seed: int, n_states: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = laws(rng, n_states), laws(rng, n_states)
    kl, tv, h = kl_divergence(p, q), total_variation(p, q), hellinger(p, q)
    assert kl >= 2 * tv**2 - 1e-15  # Pinsker
    assert h**2 - 1e-15 <= tv <= math.sqrt(2) * h + 1e-15  # Le Cam
    assert squared_error(p, q) <= 2 * tv + 1e-15
    assert kl >= 2 * h**2 - 1e-15
