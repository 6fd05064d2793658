from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from icl_estimators.inference.predictive_constant import best_constant
from icl_estimators.validation import InputError


def mean_loss(followed: np.ndarray, visits: np.ndarray, k: int, beta: float) -> float:
    return float(-np.log((followed + beta) / (visits + k * beta)).mean())


def drawn(seed: int, size: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    visits = rng.integers(0, 20, size=size)
    return rng.binomial(visits, rng.beta(2.0, 1.0, size=size)), visits


@pytest.mark.parametrize("seed", range(5))
def test_no_other_constant_predicts_better(seed: int) -> None:
    followed, visits = drawn(seed)
    found = best_constant(followed, visits, 3)
    direct = minimize_scalar(
        lambda theta: mean_loss(followed, visits, 3, math.exp(theta)), bounds=(-8, 8), method="bounded"
    )
    assert found.estimate == pytest.approx(math.exp(direct.x), rel=1e-4)
    assert found.log_loss == pytest.approx(direct.fun, abs=1e-10)
    assert math.isnan(found.low)


def test_the_interval_is_the_sandwich_of_numerical_derivatives() -> None:
    followed, visits = drawn(7)

    def variance(values: np.ndarray) -> float:
        return float(values.var(ddof=1) / len(values))

    found = best_constant(followed, visits, 3, variance=variance, degrees_of_freedom=10.0, level=0.9)
    theta, step = math.log(found.estimate), 1e-4

    def losses(at: float) -> np.ndarray:
        return -np.log((followed + math.exp(at)) / (visits + 3 * math.exp(at)))

    scores = (losses(theta + step) - losses(theta - step)) / (2 * step)
    bread = (losses(theta + step) - 2 * losses(theta) + losses(theta - step)).mean() / step**2
    margin = 1.8124611 * math.sqrt(variance(scores)) / bread
    assert math.log(found.high) - theta == pytest.approx(margin, rel=1e-4)
    assert theta - math.log(found.low) == pytest.approx(margin, rel=1e-4)


def test_limits_are_named_and_have_no_interval() -> None:
    certain = best_constant([1, 2, 3, 4], [1, 2, 3, 4], 2, variance=lambda values: 1.0)
    assert (certain.estimate, certain.log_loss) == (0.0, pytest.approx(0.0, abs=1e-6))
    flat = best_constant([0, 1, 0, 1], [1, 2, 2, 3], 2, variance=lambda values: 1.0)
    assert (flat.estimate, flat.log_loss) == (math.inf, math.log(2))
    assert math.isnan(certain.low)
    assert math.isnan(flat.high)
    assert math.isnan(best_constant([0, 0], [0, 0], 2).estimate)  # no context came twice


def test_what_cannot_be_fitted_is_refused() -> None:
    for followed, visits in ([], []), ([1], [1, 2]):
        with pytest.raises(InputError, match="give the counts of at least one prediction"):
            best_constant(followed, visits, 2)
    with pytest.raises(InputError, match="level"):
        best_constant([1], [2], 2, level=0.0)
