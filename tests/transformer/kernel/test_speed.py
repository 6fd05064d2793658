"""What the kernel is for, measured alternately with the plain module on one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from icl_estimators.estimators.transformer import Transformer as Rule
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.transformer import CheckpointInfo, ModelConfig, Transformer
from icl_estimators.transformer.checkpoint import read_info
from icl_estimators.transformer.training import Recipe, Trainer
from icl_estimators.transformer.training.grouped_runs import train_group
from icl_estimators.transformer.training.joint_updates import advance_together
from icl_estimators.transformer.training.runs import Run

pytestmark = pytest.mark.slow


def ratio(first: Callable[[], object], second: Callable[[], object], rounds: int = 15) -> float:
    """Return the median of the ratios of times, pair by pair."""
    ratios = []
    for round_ in range(rounds + 1):
        times = []
        for action in (first, second):
            began = time.perf_counter()
            action()
            times.append(time.perf_counter() - began)
        if round_:  # the first is a warm-up
            ratios.append(times[0] / times[1])
    return statistics.median(ratios)


def test_a_training_step(tokens_of):
    """64 × 100, forward, backward and Adam: 15 times faster alone, 40 times for each of ten side by side."""
    plain, tokens = Transformer(), tokens_of(3, (64, 101))
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-3, fused=True)

    def plain_step() -> None:
        optimizer.zero_grad()
        cross_entropy(plain(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()

    for seeds, at_least in ((1, 15.0), (10, 40.0)):
        trainers = [Trainer(ModelConfig(), Recipe(steps=10**6), seed=seed, engine="kernel") for seed in range(seeds)]
        for trainer in trainers:
            trainer.batch = lambda step: tokens
        steps = ratio(plain_step, lambda runs=trainers: advance_together(runs, runs[0].step + 1))
        assert seeds * steps > at_least


def test_forward_evaluation(tokens_of):
    rule = Rule(3, engine="kernel")
    tokens = tokens_of(3, (1000, 100))

    def plain() -> None:
        with torch.inference_mode():
            for part in tokens.split(64):
                rule.model(part)

    assert ratio(plain, lambda: rule.logits(tokens.numpy()), rounds=5) > 40


def test_the_plateau_is_that_of_torch(tmp_path):
    """The default run of five seeds against the shipped ones, which torch trained: regret within 0.0005 nats."""
    runs = [Run(ModelConfig(), Recipe(), seed, engine="kernel") for seed in range(5)]
    how = {"report": lambda run, step, row: None, "should_stop": lambda: False, "save_every": 1e9, "force": False}
    found = train_group(runs, tmp_path, **how)
    folder = Path(shipped_checkpoint(3)).parent
    for run in runs:
        info, shipped = found[run], read_info(folder / f"{run.name}.safetensors")
        assert isinstance(info, CheckpointInfo)
        assert (info.engine, shipped.engine) == ("kernel", "torch")
        for name in ("regret_nats", "regret_late_nats", "log_loss_nats"):
            assert info.metrics[name] == pytest.approx(shipped.metrics[name], abs=5e-4)
