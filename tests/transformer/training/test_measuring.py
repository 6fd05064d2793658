from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from icl_estimators.divergences import kl_divergence, log_loss
from icl_estimators.sources import ChainLaw, posterior_predictive, sample_batch, sample_batches, transition_counts
from icl_estimators.transformer import ModelConfig, Transformer
from icl_estimators.transformer.training import Recipe
from icl_estimators.transformer.training.measuring import final_metrics

SMALL = ModelConfig(length=12, d_model=8)


def small(steps: int = 20, **changed) -> Recipe:
    return Recipe(**{"steps": steps, "batch": 8, "length": 12, **changed})


def test_final_metrics(monkeypatch):
    """Regret is KL from the posterior predictive; memory-saving blocks change nothing."""
    model = Transformer(SMALL).requires_grad_(False)
    metrics = final_metrics(model, small())
    assert metrics["sequences"] == 20_480
    sample = sample_batches(range(4, 324), batch=64, length=12, purpose="validation")
    p = model(torch.from_numpy(sample.inputs.copy())).double().softmax(dim=-1).numpy()
    q = posterior_predictive(transition_counts(sample.inputs, 3), 1.0)
    regret = kl_divergence(q, p)
    assert metrics["regret_nats"] == pytest.approx(regret.mean(), rel=1e-5)
    assert metrics["regret_late_nats"] == pytest.approx(regret[:, 6:].mean(), rel=1e-5)
    assert metrics["regret_nats_se"] == pytest.approx(regret.mean(axis=1).std(ddof=1) / math.sqrt(20_480), rel=1e-4)
    assert metrics["log_loss_nats"] == pytest.approx(log_loss(p, sample.targets).mean(), rel=1e-6)
    monkeypatch.setattr("icl_estimators.transformer.training.measuring._BATCHES_PER_BLOCK", 77)
    assert final_metrics(model, small()) == metrics


def test_final_metrics_under_a_stationary_start():
    metrics = final_metrics(Transformer(SMALL).requires_grad_(False), small(start="stationary"))
    for name in ("regret_nats", "regret_nats_se", "regret_late_nats", "regret_late_nats_se"):
        assert metrics[name] is None
    assert metrics["log_loss_nats"] > 0


def test_held_out_sequences_are_not_the_training_ones():
    law = ChainLaw()
    training = sample_batch(0, batch=64, length=100, law=law, seed=0).tokens
    held_out = sample_batch(0, batch=64, length=100, law=law, seed=0, purpose="validation").tokens
    assert not np.array_equal(training, held_out)
