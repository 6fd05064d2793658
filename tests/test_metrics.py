"""The table of metrics: exact expectations agree with losses of drawn rows, and each entry is complete."""

from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.metrics import DECOMPOSITION_METRICS, MEANINGS, METRICS, Drawn, GivenPrefix, Metric
from icl_estimators.sources import DirichletPosterior

COUNTS = np.array([3, 0, 1], dtype=np.int32)
PREDICTION = np.array([0.5, 0.2, 0.3])
DRAWS = 200_000


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.expected is not None])
@pytest.mark.parametrize("alpha", [0.7, 1.0])
def test_what_is_expected_is_the_mean_of_the_losses_of_drawn_rows(name: str, alpha: float) -> None:
    metric, rng = METRICS[name], np.random.default_rng(7)
    posterior = DirichletPosterior(COUNTS + alpha)
    bayes, floor = posterior.predictive, posterior.kl_floor
    truth = rng.dirichlet(COUNTS + alpha, DRAWS)
    targets = (rng.random(DRAWS)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    predictions = np.broadcast_to(PREDICTION, truth.shape)
    assert metric.expected is not None
    drawn = Drawn(predictions, truth, targets, np.broadcast_to(bayes, truth.shape), np.broadcast_to(floor, DRAWS))
    losses = metric.loss(drawn)
    expected = float(metric.expected(GivenPrefix(PREDICTION, posterior)))
    assert abs(losses.mean() - expected) <= 4.5 * losses.std() / np.sqrt(DRAWS) + 1e-12


def test_entries_agree_with_themselves() -> None:
    for name, metric in METRICS.items():
        assert name == metric.name
        assert not metric.made_of or metric.made_of in METRICS
        assert metric.differenced or not metric.paired
        assert metric.expected is not None or not metric.checked


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_only_what_says_so_needs_the_posterior(metric: Metric) -> None:
    drawn = Drawn(PREDICTION[None], PREDICTION[None], np.array([0]))
    if metric.needs_posterior:
        with pytest.raises(TypeError):
            metric.loss(drawn)
    else:
        assert metric.loss(drawn).shape == (1,)


def test_every_metric_has_a_meaning() -> None:
    assert all(MEANINGS.values())
    assert MEANINGS.keys() >= METRICS.keys() | DECOMPOSITION_METRICS.keys()
