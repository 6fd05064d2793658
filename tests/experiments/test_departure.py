"""The regret at the longest context less the least one: paired on the same chains."""

from __future__ import annotations

import numpy as np
import pytest

from icl_estimators import compare, get
from icl_estimators.experiments.departure import last_less_earlier, regret_since_least
from icl_estimators.experiments.study import Study
from icl_estimators.inference import Moments, with_mean


def study(length: int) -> Study:
    return Study((get("add-one"),), length=length, chains=400)


def curves(trend: list[float], noise: float, shared: float, chains: int = 400) -> Moments:
    """Return the moments of curves with a large part that all lengths of a chain share."""
    rng = np.random.default_rng(3)
    values = np.array(trend) + noise * rng.normal(size=(chains, len(trend))) + shared * rng.normal(size=(chains, 1))
    return Moments.of(with_mean(values))


def test_differences_from_the_last_are_those_of_the_values() -> None:
    values = np.random.default_rng(0).normal(size=(30, 5))
    found, expected = last_less_earlier(Moments.of(values)), Moments.of(values[:, -1:] - values[:, :-1])
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-12)
    np.testing.assert_allclose(found.covariance, expected.covariance, atol=1e-12)


def test_what_a_chain_shares_does_not_hide_a_rise() -> None:
    found = regret_since_least(study(4), curves([3.0, 1.0, 2.0, 1.3], noise=0.5, shared=5.0))
    assert found is not None
    assert found["context_length"] == 2
    assert 0.15 < found["ci_low"] < found["difference"] < found["ci_high"] < 0.45
    assert found["difference"] - found["ci_low"] == pytest.approx(found["ci_high"] - found["difference"])


def test_a_chosen_length_does_not_make_a_rise_of_a_flat_curve() -> None:
    rng = np.random.default_rng(1)
    risen = []
    for _ in range(100):
        found = regret_since_least(study(8), Moments.of(with_mean(rng.normal(size=(100, 8)))))
        risen.append(found is not None and found["ci_low"] > 0)
    assert np.mean(risen) < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 100)


@pytest.mark.parametrize("trend", [[3.0, 2.0, 1.0], [np.inf, 1.0, 2.0]])
def test_there_is_nothing_to_say_where_the_last_is_the_least_or_one_is_infinite(trend: list[float]) -> None:
    assert regret_since_least(study(3), curves(trend, noise=0.1, shared=0.0)) is None


@pytest.mark.slow
def test_run_json_has_it_for_the_trained_model_alone() -> None:
    found = compare(["transformer", "uniform"], chains=12, sequences_per_chain=1, length=12, decomposition_chains=0)
    since = found.run["regret_since_least"]
    regret = found.risk.query("metric == 'regret_nats' and estimator == 'transformer' and context_length != 'mean'")
    curve = regret.estimate.to_numpy(float)
    assert since.keys() <= {"transformer"}
    if curve.argmin() < len(curve) - 1:
        assert since["transformer"]["context_length"] == curve.argmin() + 1
        assert since["transformer"]["difference"] == pytest.approx(curve[-1] - curve.min(), abs=1e-12)
    else:
        assert since == {}
