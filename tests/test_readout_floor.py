"""The read-out floor against known values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from icl_estimators.readout_floor import readout_floor
from icl_estimators.validation import InputError


def test_rows_that_weigh_the_same() -> None:
    floor = readout_floor(3, 1.0, by_visits=False)
    assert floor.kl_nats == pytest.approx(0.0162217, rel=3e-4)  # by quadrature
    assert floor.gamma == pytest.approx(3.21068, rel=3e-4)


def test_rows_as_a_long_context_meets_them() -> None:
    floor = readout_floor(3, 1.0)
    assert floor.kl_nats == pytest.approx(0.01663, rel=2e-3)
    assert floor.gamma == pytest.approx(3.215, rel=2e-3)


def test_two_states_by_quadrature() -> None:
    def kl(p: float, gamma: float) -> float:
        entropy = sum(x * np.log(x) for x in (p, 1 - p) if x > 0)
        return entropy - gamma * (p**2 + (1 - p) ** 2) + np.logaddexp(gamma * p, gamma * (1 - p))

    exact = minimize_scalar(lambda gamma: quad(kl, 0, 1, args=(gamma,))[0], bounds=(1, 6), method="bounded")
    floor = readout_floor(2, 1.0, by_visits=False)
    assert floor.kl_nats == pytest.approx(exact.fun, rel=1e-3)
    assert floor.gamma == pytest.approx(exact.x, rel=1e-3)


def test_it_is_the_same_on_every_call() -> None:
    first = readout_floor(4, 0.7)
    readout_floor.cache_clear()
    assert readout_floor(4, 0.7) == first


@pytest.mark.parametrize(("n_states", "concentration"), [(1, 1.0), (3, 0.0), (3, float("nan"))])
def test_what_is_out_of_range_is_refused(n_states: int, concentration: float) -> None:
    with pytest.raises(InputError):
        readout_floor(n_states, concentration)
