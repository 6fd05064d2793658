"""The compiled kernel's part of the benchmark: training and evaluation beside the plain module, and where time goes."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import torch
from torch.nn.functional import cross_entropy

from analysis.pairs import Action, Pair, seconds
from icl_estimators.estimators import get
from icl_estimators.estimators.transformer import Transformer as Rule
from icl_estimators.sources import sample_chains
from icl_estimators.text import text_table
from icl_estimators.transformer import ModelConfig, Transformer, fold
from icl_estimators.transformer.kernel import kernel_loss
from icl_estimators.transformer.training import Recipe, Trainer
from icl_estimators.transformer.training.adam import adam_update
from icl_estimators.transformer.training.joint_updates import advance_together

__all__ = ["kernel_pairs", "training_shares"]

STEPS = 5
SEEDS = 10


def kernel_pairs() -> list[Pair]:
    """Return the comparisons with the plain module."""
    return [_one_seed(), _ten_seeds(), _ten_seeds_in_processes(), _forward()]


def _trainers(seeds: int) -> list[Trainer]:
    return [Trainer(ModelConfig(), Recipe(steps=10**6), seed=seed, engine="kernel") for seed in range(seeds)]


def _plain_steps() -> Action:
    """Updates of the plain module on batches that are drawn beforehand."""
    model = Transformer(ModelConfig())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    trainer = _trainers(1)[0]
    batches = [trainer.batch(step) for step in range(8)]
    count = 0

    def run() -> None:
        nonlocal count
        for _ in range(STEPS):
            tokens = batches[count % len(batches)]
            optimizer.zero_grad()
            cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
            optimizer.step()
            count += 1

    return run


def _kernel_steps(seeds: int) -> Action:
    """Updates of that many runs side by side, on batches that are drawn beforehand."""
    trainers = _trainers(seeds)
    for trainer in trainers:
        drawn = [trainer.batch(step) for step in range(8)]
        trainer.batch = lambda step, drawn=drawn: drawn[step % 8]  # type: ignore[method-assign, misc]
    return lambda: advance_together(trainers, trainers[0].step + STEPS)


def _one_seed() -> Pair:
    what = f"{STEPS} training steps, 64 × 100, forward + backward + Adam"
    return Pair(what, "plain module", "kernel", _plain_steps(), _kernel_steps(1))


def _ten_seeds() -> Pair:
    what = f"{STEPS} training steps, the same of {SEEDS} seeds in one process"
    return Pair(what, "plain module", "kernel, per seed", _plain_steps(), _kernel_steps(SEEDS), per=SEEDS)


def _ten_seeds_in_processes() -> Pair:
    """As the command line trains: a process for each core, the seeds shared among them, sampling included."""
    jobs = os.cpu_count() or 1
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    )
    atexit.register(pool.shutdown)

    def several() -> None:
        for done in [pool.submit(_train_on, SEEDS // jobs, 40) for _ in range(jobs)]:
            done.result()

    return Pair(
        f"a training step, {SEEDS} seeds in {jobs} processes, sampling included",
        "plain module",
        "kernel, per seed",
        _plain_steps(),
        several,
        per=40 * jobs * (SEEDS // jobs) / STEPS,
    )


_kept: dict[int, list[Trainer]] = {}


def _train_on(seeds: int, steps: int) -> None:
    """Make some more updates of the runs that this process keeps."""
    trainers = _kept.setdefault(seeds, _trainers(seeds) if seeds not in _kept else [])
    advance_together(trainers, trainers[0].step + steps)


def _forward() -> Pair:
    rule = get("transformer:engine=kernel")
    assert isinstance(rule, Rule)
    tokens = sample_chains(range(2000), sequences_per_chain=1, length=100).inputs
    parts = torch.from_numpy(tokens.copy()).split(64)
    model = rule.model

    @torch.inference_mode()
    def plain() -> None:
        for part in parts:
            model(part)

    what = "forward evaluation, 2,000 sequences × 100"
    return Pair(what, "plain module", "kernel", plain, lambda: rule.logits(tokens))


def training_shares(rounds: int) -> str:
    """Return a table of where the time of a step of ten seeds goes."""
    trainers = _trainers(SEEDS)
    config, recipe = trainers[0].config, trainers[0].recipe
    weights = {
        name: torch.stack([trainer.parameters()[name] for trainer in trainers]).requires_grad_()
        for name in config.parameter_shapes
    }
    flat = [trainer.weights.detach() for trainer in trainers]
    moments = [trainer.moments for trainer in trainers]
    tokens = torch.stack([trainer.batch(0) for trainer in trainers])
    numbers = fold(weights).detach()
    ones = [torch.ones_like(tensor) for tensor in numbers.tensors]
    block = 40

    def sample() -> None:
        for trainer in trainers:
            trainer._drawn = (0, torch.empty(0))
            trainer.batch(1)

    parts: dict[str, tuple[Callable[[], object], float]] = {
        "kernel": (lambda: kernel_loss(numbers, tokens), 1.0),
        "fold, there and back": (lambda: torch.autograd.grad(fold(weights).tensors, list(weights.values()), ones), 1.0),
        "Adam": (lambda: adam_update(flat, flat, moments, recipe, 0), 1.0),
        "sampling": (sample, float(block)),
    }
    times = {name: [] for name in parts}  # type: dict[str, list[float]]
    for _ in range(rounds):
        for name, (action, per) in parts.items():
            times[name].append(seconds(action) / per)
    median = {name: statistics.median(taken) for name, taken in times.items()}
    whole = sum(median.values())
    rows = [[name, f"{1e6 * taken / SEEDS:.0f} µs", f"{100 * taken / whole:.0f} %"] for name, taken in median.items()]
    return text_table([f"a step of {SEEDS} seeds", "per seed", "share"], rows)
