from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, t

from icl_estimators.inference import PseudoCount, pseudo_count_seeds
from icl_estimators.validation import InputError


def fit(alpha, se_log=0.0):
    numbers = {name: np.nan for name in PseudoCount.__dataclass_fields__ if name not in ("notes",)}
    return replace(PseudoCount(**{**numbers, "notes": ()}), estimate=alpha, se_log=se_log)


def test_runs_and_chains_are_both_samples():
    runs = [fit(alpha) for alpha in (0.8, 1.0, 1.5, 1.1)]
    logs = np.log([0.8, 1.0, 1.5, 1.1])
    spread = pseudo_count_seeds(runs, fit(1.05, se_log=0.02), level=0.9)
    se = np.sqrt(logs.var(ddof=1) / 4 + 0.02**2)
    assert spread.estimate == pytest.approx(np.exp(logs.mean()))
    assert spread.se == pytest.approx(spread.estimate * se)
    assert np.log(spread.high) == pytest.approx(logs.mean() + t.ppf(0.95, 3) * se)
    assert np.log(spread.low) == pytest.approx(logs.mean() - t.ppf(0.95, 3) * se)
    assert spread.sd_log == pytest.approx(logs.std(ddof=1))
    assert spread.sd_low == pytest.approx(spread.sd_log * np.sqrt(3 / chi2.ppf(0.95, 3)))
    assert spread.sd_high == pytest.approx(spread.sd_log * np.sqrt(3 / chi2.ppf(0.05, 3)))
    assert spread.note == "4 training runs"


def test_equal_runs_do_not_spread():
    spread = pseudo_count_seeds([fit(0.5), fit(0.5)], fit(0.5))
    assert (spread.sd_log, spread.se, spread.low, spread.high) == (0.0, 0.0, 0.5, 0.5)


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
