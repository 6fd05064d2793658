from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from icl_estimators.inference import Moments, mean_intervals, two_way_intervals
from icl_estimators.inference.intervals.two_way import two_way
from icl_estimators.validation import InputError


def layout(rng, n_seeds, n_chains, seed_sd, chain_sd, interaction_sd):
    return (
        seed_sd * rng.normal(size=(n_seeds, 1, 1))
        + chain_sd * rng.normal(size=(1, n_chains, 1))
        + interaction_sd * rng.normal(size=(n_seeds, n_chains, 1))
    )


def intervals_of(values, full=True):
    return two_way_intervals([Moments.of(one, full=full) for one in values], Moments.of(values.mean(axis=0)))


@pytest.mark.parametrize("sds", [(1.0, 3.0, 2.0), (0.0, 3.0, 2.0)])
def test_variance_of_the_recipe_is_right_on_average(sds):
    rng = np.random.default_rng(0)
    n_seeds, n_chains = 5, 40
    variances = [intervals_of(layout(rng, n_seeds, n_chains, *sds)).se[0] ** 2 for _ in range(2000)]
    truth = sds[0] ** 2 / n_seeds + sds[1] ** 2 / n_chains + sds[2] ** 2 / (n_seeds * n_chains)
    assert np.mean(variances) == pytest.approx(truth, rel=0.05)


def test_coverage_speaks_for_new_seeds_and_the_conditional_one_does_not():
    rng = np.random.default_rng(1)
    both, conditional = [], []
    for _ in range(600):
        values = layout(rng, 5, 60, 1.0, 1.0, 1.0)
        for kind, interval in (
            (both, intervals_of(values)),
            (conditional, mean_intervals(Moments.of(values.mean(0)))),
        ):
            kind.append(interval.low[0] <= 0 <= interval.high[0])
    assert np.mean(both) > 0.93
    assert np.mean(conditional) < 0.6


def test_variance_is_never_below_that_over_chains_alone():
    rng = np.random.default_rng(2)
    for _ in range(50):
        values = layout(rng, 3, 10, 0.0, 1.0, 3.0)
        assert intervals_of(values).se[0] >= mean_intervals(Moments.of(values.mean(axis=0))).se[0]


def test_estimate_is_the_mean_over_seeds_and_chains():
    values = layout(np.random.default_rng(3), 4, 10, 1.0, 1.0, 1.0)
    result = intervals_of(values, full=False)
    assert result.estimate[0] == pytest.approx(values.mean())
    assert result.count == 10


def test_degrees_of_freedom_are_satterthwaites():
    values = layout(np.random.default_rng(5), 6, 30, 0.3, 1.0, 0.5)
    result = intervals_of(values)
    cells = values[..., 0]
    runs, chains = cells.mean(axis=1).var(ddof=1) / 6, cells.mean(axis=0).var(ddof=1) / 30
    rest = cells - cells.mean(axis=1, keepdims=True) - cells.mean(axis=0) + cells.mean()
    interaction = (rest**2).sum() / (5 * 29) / 180
    variance = runs + chains - interaction
    degrees = variance**2 / (runs**2 / 5 + chains**2 / 29 + interaction**2 / 145)
    assert result.se[0] ** 2 == pytest.approx(variance)
    assert result.high[0] - result.estimate[0] == pytest.approx(stats.t.ppf(0.975, degrees) * np.sqrt(variance))
    assert result.notes[0].startswith(
        f"two-way over 6 training runs and 30 chains, t with {degrees:.3g} degrees of freedom (Satterthwaite)"
    )


@pytest.mark.parametrize("n_runs", [3, 6])
def test_the_note_warns_of_skewed_runs_where_the_runs_decide_the_width(n_runs):
    warning = "if their values are skewed"
    runs_decide = intervals_of(layout(np.random.default_rng(5), n_runs, 100, 1.0, 0.1, 0.1))
    chains_decide = intervals_of(layout(np.random.default_rng(5), n_runs, 100, 0.0, 1.0, 0.1))
    assert warning in runs_decide.notes[0]
    assert warning not in chains_decide.notes[0]


def test_where_chains_dominate_few_runs_do_not_widen_the_interval():
    values = layout(np.random.default_rng(6), 5, 100, 0.0, 1.0, 0.1)
    result, chains = intervals_of(values), mean_intervals(Moments.of(values.mean(axis=0)))
    assert result.high[0] - result.low[0] < 1.1 * (chains.high[0] - chains.low[0])


@pytest.mark.parametrize("n_seeds", [2, 3, 5])
@pytest.mark.parametrize("seed_sd", [0.0, 0.1, 1.0])
def test_it_covers_whichever_way_dominates(n_seeds, seed_sd):
    rng = np.random.default_rng((n_seeds, round(10 * seed_sd)))
    inside = []
    for _ in range(600):
        found = intervals_of(layout(rng, n_seeds, 60, seed_sd, 1.0, 0.5))
        inside.append(found.low[0] <= 0 <= found.high[0])
    assert np.mean(inside) > 0.92 - 3 * np.sqrt(0.92 * 0.08 / 600)


def test_two_runs_take_each_part_at_its_own_quantile():
    values = layout(np.random.default_rng(7), 2, 20, 0.5, 1.0, 0.5)
    result = intervals_of(values)
    cells = values[..., 0]
    runs, chains = cells.mean(axis=1).var(ddof=1) / 2, cells.mean(axis=0).var(ddof=1) / 20
    rest = cells - cells.mean(axis=1, keepdims=True) - cells.mean(axis=0) + cells.mean()
    interaction = (rest**2).sum() / 19 / 40
    margin = np.sqrt(stats.t.ppf(0.975, 1) ** 2 * runs + stats.t.ppf(0.975, 19) ** 2 * (chains - interaction))
    assert result.high[0] - result.estimate[0] == pytest.approx(margin)


def test_parts_of_variance_need_two_runs():
    moments = Moments.of([[1.0], [2.0]])
    with pytest.raises(InputError, match="at least 2 training runs"):
        two_way([moments], moments)


def test_what_is_undefined_says_why():
    values = np.ones((2, 3, 2))
    values[0, 1, 1] = np.inf
    result = intervals_of(values)
    np.testing.assert_array_equal(result.estimate, [1.0, np.inf])
    np.testing.assert_array_equal(result.se, [0.0, np.nan])
    np.testing.assert_array_equal(result.low, [1.0, np.nan])
    assert result.notes[1] == "infinite in 1 of 3 chains"
    alone = intervals_of(values[:1])
    assert np.isnan(alone.se).all()
    assert alone.notes == ("one training run: it cannot show how training runs vary", "infinite in 1 of 3 chains")


def test_bad_input_is_named():
    moments = Moments.of([[1.0], [2.0]])
    with pytest.raises(InputError, match="level"):
        two_way_intervals([moments, moments], moments, level=1.0)
    with pytest.raises(InputError, match="no training runs"):
        two_way_intervals([], moments)
    with pytest.raises(InputError, match="same chains and coordinates"):
        two_way_intervals([moments, Moments.of([[1.0]])], moments)
