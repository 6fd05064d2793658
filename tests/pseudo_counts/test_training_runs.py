from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, t

from icl_estimators.pseudo_counts import PseudoCount, pseudo_count_seeds
from icl_estimators.validation import InputError


def fit(alpha, se_log=0.0):
    numbers = {name: np.nan for name in PseudoCount.__dataclass_fields__ if name not in ("notes",)}
    return replace(PseudoCount(**{**numbers, "notes": ()}), estimate=alpha, se_log=se_log, n_chains=41)


def test_runs_and_chains_are_both_samples():
    runs = [fit(alpha) for alpha in (0.8, 1.0, 1.5, 1.1, 0.9)]
    logs = np.log([0.8, 1.0, 1.5, 1.1, 0.9])
    spread = pseudo_count_seeds(runs, fit(1.05, se_log=0.02), level=0.9)
    se = np.sqrt(logs.var(ddof=1) / 5 + 0.02**2)
    assert spread.estimate == pytest.approx(np.exp(logs.mean()))
    assert spread.se == pytest.approx(spread.estimate * se)
    degrees = se**4 / ((logs.var(ddof=1) / 5) ** 2 / 4 + 0.02**4 / 40)
    assert np.log(spread.high) == pytest.approx(logs.mean() + t.ppf(0.95, degrees) * se)
    assert np.log(spread.low) == pytest.approx(logs.mean() - t.ppf(0.95, degrees) * se)
    assert spread.sd_log == pytest.approx(logs.std(ddof=1))
    assert spread.sd_low == pytest.approx(spread.sd_log * np.sqrt(4 / chi2.ppf(0.95, 4)))
    assert spread.sd_high == pytest.approx(spread.sd_log * np.sqrt(4 / chi2.ppf(0.05, 4)))
    assert spread.note == f"5 training runs, t with {degrees:.3g} degrees of freedom"


def test_runs_that_hardly_differ_leave_the_interval_of_the_chains():
    spread = pseudo_count_seeds([fit(1.0), fit(1.0001), fit(0.9999), fit(1.0), fit(1.0)], fit(1.0, se_log=0.05))
    assert np.log(spread.high / spread.estimate) == pytest.approx(t.ppf(0.975, 40) * 0.05, rel=0.01)


def test_two_runs_take_each_part_at_its_own_quantile():
    spread = pseudo_count_seeds([fit(0.8), fit(1.0)], fit(0.9, se_log=0.05))
    runs = np.log(0.8) ** 2 / 4  # variance of a mean of two
    margin = np.sqrt(t.ppf(0.975, 1) ** 2 * runs + t.ppf(0.975, 40) ** 2 * 0.05**2)
    assert np.log(spread.high / spread.estimate) == pytest.approx(margin)


def test_equal_runs_do_not_spread():
    spread = pseudo_count_seeds([fit(0.5), fit(0.5)], fit(0.5))
    assert (spread.sd_log, spread.se) == (0.0, 0.0)
    assert (spread.low, spread.high) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("odd", [0.0, np.inf, np.nan])
def test_a_run_without_a_logarithm_is_named(odd):
    spread = pseudo_count_seeds([fit(1.0), fit(odd)], fit(1.0))
    assert np.isnan([spread.estimate, spread.sd_log, spread.low]).all()
    assert "in 1 of 2 training runs" in spread.note


def test_bad_input_is_named():
    with pytest.raises(InputError, match="at least 2 training runs"):
        pseudo_count_seeds([fit(1.0)], fit(1.0))
    with pytest.raises(InputError, match="level"):
        pseudo_count_seeds([fit(1.0), fit(2.0)], fit(1.0), level=0.0)
