"""The checkpoints that travel with the package are what they are said to be."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import torch

from icl_estimators.divergences import kl_divergence
from icl_estimators.resources import checkpoint_folder
from icl_estimators.sources import posterior_predictive, sample_batches, transition_counts
from icl_estimators.transformer import ModelConfig, fold, folded_attention, folded_logits, load_checkpoint
from icl_estimators.transformer.training import Recipe

SEEDS = range(10)


@pytest.mark.parametrize("seed", SEEDS)
def test_recipe_and_regret_of_every_seed(seed):
    model, info = load_checkpoint(checkpoint_folder() / f"k3-seed{seed}.safetensors")
    assert model.config == ModelConfig()
    assert (info.seed, info.step) == (seed, 8000)
    assert Recipe.from_dict(info.recipe) == Recipe()
    assert info.metrics["regret_nats"] <= 0.0325
    assert info.metrics["regret_late_nats"] <= 0.0240
    assert info.metrics["regret_nats_se"] < 0.0003
    assert info.metrics["regret_late_nats_se"] < 0.0003


@pytest.mark.parametrize("name", ["k3-seed0", "k3-seed9", "k4-seed0"])
def test_metrics_beside_the_weights(name):
    with (checkpoint_folder() / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["step"], rows[-1]["step"]) == ("0", "8000")
    assert float(rows[-1]["regret_nats"]) < 0.25 * float(rows[0]["regret_nats"])


def test_four_states():
    model, info = load_checkpoint(checkpoint_folder() / "k4-seed0.safetensors")
    assert model.config == ModelConfig(n_states=4)
    assert info.metrics["regret_nats"] < 0.045


@pytest.fixture(scope="module")
def fresh():
    sample = sample_batches(range(16), batch=64, length=200, purpose="test")
    return sample, torch.from_numpy(sample.inputs.copy())


def test_regret_on_fresh_chains_within_and_beyond_the_trained_length(fresh):
    """The sidecar's figure again; then 200 tokens, by the default rule and with the last bias reused."""
    sample, tokens = fresh
    model, info = load_checkpoint(checkpoint_folder() / "k3-seed0.safetensors")
    folded = fold(model)
    q = posterior_predictive(transition_counts(sample.inputs, 3), 1.0)
    regret = {}
    with torch.inference_mode():
        for far in (None, "last"):
            logits = torch.cat([folded_logits(folded, part, far=far) for part in tokens.split(64)])
            regret[far] = kl_divergence(q, logits.double().softmax(dim=-1).numpy()).mean(axis=0)
    assert abs(regret[None][:100].mean() - info.metrics["regret_nats"]) < 0.002
    assert np.array_equal(regret[None][:100], regret["last"][:100])
    assert regret[None][199] < 0.036
    assert regret["last"][199] > 0.1


def test_attention_of_an_induction_head(fresh):
    """Mass on the previous token, and on positions that follow an earlier occurrence of the current one."""
    tokens = fresh[1][:512, :100]
    model, _ = load_checkpoint(checkpoint_folder() / "k3-seed0.safetensors")
    first, second = folded_attention(fold(model), tokens)
    match = torch.zeros_like(second)
    match[:, :, 1:] = (tokens[:, :, None] == tokens[:, None, :-1]).to(second.dtype)
    match = match.tril()
    previous = first.diagonal(-1, 1, 2).mean(dim=0)
    assert float(previous[:50].min()) > 0.9
    mass = (second * match).sum(dim=-1).mean(dim=0)
    chance = match.sum(dim=-1).mean(dim=0) / torch.arange(1, 101)
    for n, expected, by_chance in (
        (3, 0.42, 0.26),
        (6, 0.72, 0.34),
        (12, 0.83, 0.38),
        (24, 0.88, 0.40),
        (50, 0.90, 0.41),
    ):
        assert abs(float(mass[n - 1]) - expected) < 0.03
        assert abs(float(chance[n - 1]) - by_chance) < 0.03
