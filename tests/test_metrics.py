"""The table of metrics: exact expectations agree with losses of drawn rows, and each entry is complete."""

from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.metrics import DECOMPOSITION_METRICS, MEANINGS, METRICS, Drawn, GivenPrefix, Summary
from icl_estimators.sources import posterior_kl_floor, posterior_predictive

COUNTS = np.array([3, 0, 1], dtype=np.int32)
PREDICTION = np.array([0.5, 0.2, 0.3])
DRAWS = 200_000


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.expected is not None])
@pytest.mark.parametrize("alpha", [0.7, 1.0])
def test_what_is_expected_is_the_mean_of_the_losses_of_drawn_rows(name: str, alpha: float) -> None:
    metric, rng = METRICS[name], np.random.default_rng(7)
    bayes, floor = posterior_predictive(COUNTS, alpha), posterior_kl_floor(COUNTS, alpha)
    truth = rng.dirichlet(COUNTS + alpha, DRAWS)
    targets = (rng.random(DRAWS)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    predictions = np.broadcast_to(PREDICTION, truth.shape)
    assert metric.loss is not None
    assert metric.expected is not None
    drawn = Drawn(predictions, truth, targets, np.broadcast_to(bayes, truth.shape), np.broadcast_to(floor, DRAWS))
    losses = metric.loss(drawn)
    expected = float(metric.expected(GivenPrefix(PREDICTION, bayes, floor, COUNTS + alpha)))
    assert abs(losses.mean() - expected) <= 4.5 * losses.std() / np.sqrt(DRAWS) + 1e-12


def test_a_metric_without_a_loss_is_made_of_another_one() -> None:
    for name, metric in METRICS.items():
        assert name == metric.name
        assert (metric.loss is None) == (metric.summary is Summary.FINITE_MEAN)
        assert metric.loss is not None or metric.made_of in METRICS
        assert metric.differenced or not metric.paired
        assert metric.is_exact or not metric.checked


def test_what_needs_the_posterior_is_all_that_does() -> None:
    drawn = Drawn(PREDICTION[None], PREDICTION[None], np.array([0]))
    for metric in METRICS.values():
        if metric.loss is not None and metric.needs_posterior:
            with pytest.raises(AssertionError):
                metric.loss(drawn)
        elif metric.loss is not None:
            assert metric.loss(drawn).shape == (1,)


def test_every_metric_has_a_meaning() -> None:
    assert all(MEANINGS.values())
    assert MEANINGS.keys() >= METRICS.keys() | DECOMPOSITION_METRICS.keys()
