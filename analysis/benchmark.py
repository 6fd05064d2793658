"""Speed and memory as ratios, measured alternately in one run: ``python -m analysis.benchmark``.

Machines are shared and drift: each pair of contestants runs A B A B …, and what is printed is the median time of
each and the median of the ratios pair by pair, with their range. Seconds are for orientation, ratios are the result.
"""

from __future__ import annotations

import argparse
import atexit
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from analysis.pairs import HEADER, Action, Pair, measure, seconds
from icl_estimators.compiling import numba_is_there
from icl_estimators.estimators import get
from icl_estimators.experiments.risk import risk_block
from icl_estimators.experiments.study import Study
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import sample_batch, sample_chains
from icl_estimators.text import text_table
from icl_estimators.transformer import ModelConfig, Transformer, fold, folded_logits, folded_loss, load_checkpoint
from icl_estimators.transformer.training import Recipe, Trainer
from icl_estimators.transformer.training.updates import advance

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the pairs that were asked for and print a table."""
    parser = argparse.ArgumentParser(prog="python -m analysis.benchmark", description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="torch threads")
    parser.add_argument("--rounds", type=int, default=15, help="alternations of each pair")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    print(
        f"{options.threads} threads, {options.rounds} alternations, medians; ratio = first / second, with its range\n"
    )
    rows = []
    for pair in _pairs():
        rows.append(measure(pair, options.rounds))
        print(f"  measured: {pair.what}", file=sys.stderr)
    print(text_table(HEADER, rows, left=1))
    print()
    if numba_is_there():
        from analysis.benchmark_kernel import training_shares

        print(training_shares(options.rounds))
        print()
    _evaluation_shares()
    return 0


def _pairs() -> list[Pair]:
    pairs = [_training_pair(), _seeds_pair(), _forward_pair()]
    if numba_is_there():
        from analysis.benchmark_kernel import kernel_pairs

        pairs += kernel_pairs()
    tokens = sample_chains(range(2000), sequences_per_chain=1, length=100).inputs
    copied = np.empty_like(tokens)

    def copy() -> None:
        np.copyto(copied, tokens)

    add_one = get("add-one")
    nothing_new = f"{tokens.size / 1e3:.0f}k tokens"
    pairs.append(
        Pair(
            f"sampling, {nothing_new}",
            "sample",
            "copy of the same bytes",
            lambda: sample_chains(range(2000), sequences_per_chain=1, length=100),
            copy,
        )
    )
    pairs.append(
        Pair(
            f"sampling, {nothing_new}",
            "chain by chain",
            "one block",
            lambda: sample_chains(range(2000), sequences_per_chain=1, length=100),
            lambda: sample_batch(0, batch=2000, length=100),
        )
    )
    pairs.append(
        Pair(
            f"add-one prediction, {nothing_new}",
            "predict_proba",
            "copy of the same bytes",
            lambda: add_one.predict_proba(tokens),
            copy,
        )
    )
    return pairs


def _training_pair() -> Pair:
    batches = [torch.from_numpy(sample_batch(step, batch=64, length=100).tokens[:, 0]) for step in range(8)]
    config = ModelConfig()
    plain, folded = Transformer(config), Transformer(config)

    def step(model: Transformer, loss_of: Callable[[torch.Tensor], torch.Tensor]) -> Action:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
        count = 0

        def run() -> None:
            nonlocal count
            for _ in range(5):
                optimizer.zero_grad()
                loss_of(batches[count % len(batches)]).backward()
                optimizer.step()
                count += 1

        return run

    def plain_loss(tokens: torch.Tensor) -> torch.Tensor:
        return cross_entropy(plain(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return Pair(
        "5 training steps, 64 × 100, forward + backward + Adam",
        "plain module",
        "folded",
        step(plain, plain_loss),
        step(folded, lambda tokens: folded_loss(fold(folded), tokens)),
    )


def _seeds_pair() -> Pair:
    """One run on all threads against as many runs as there are cores, a process of one thread each, per seed."""
    jobs = os.cpu_count() or 1
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    )
    atexit.register(pool.shutdown)

    def several() -> None:
        for done in [pool.submit(_train_on, seed, 50) for seed in range(jobs)]:
            done.result()

    return Pair(
        "50 training steps of a run, sampling included",
        "alone",
        f"{jobs} seeds at once, per seed",
        lambda: _train_on(0, 50),
        several,
        per=jobs,
    )


def _train_on(seed: int, steps: int) -> None:
    """Make some more updates of a run that this process keeps."""
    if seed not in _trainers:
        _trainers[seed] = Trainer(ModelConfig(), Recipe(), seed=seed)
    trainer = _trainers[seed]
    advance([trainer], trainer.step + steps)


_trainers: dict[int, Trainer] = {}


def _forward_pair() -> Pair:
    path = shipped_checkpoint(3)
    if path is None:
        raise SystemExit("no checkpoint ships for K = 3: train one first")
    model, _ = load_checkpoint(path)
    numbers = fold(model).detach()
    tokens = torch.from_numpy(sample_chains(range(640), sequences_per_chain=1, length=100).inputs.copy())
    parts = tokens.split(64)

    @torch.inference_mode()
    def plain() -> None:
        for part in parts:
            model(part)

    @torch.inference_mode()
    def folded() -> None:
        for part in parts:
            folded_logits(numbers, part)

    return Pair("forward evaluation, 640 sequences × 100", "plain module", "folded", plain, folded)


def _evaluation_shares() -> None:
    """Print what a block of the risk design costs, estimator by estimator."""
    names = ["transformer", "construction", "construction-softmax", "bigram", "add-one", "unigram", "uniform"]
    chains = range(200)
    every = Study(tuple(get(name) for name in names))
    only_reference = Study((get("add-one"),))
    began = time.perf_counter()
    sample = sample_chains(chains, sequences_per_chain=10, length=100)
    parts = [("sampling", time.perf_counter() - began)]
    for estimator in every.estimators:
        parts.append((f"predict: {estimator.name}", seconds(lambda rule=estimator: rule.predict_proba(sample.inputs))))
    risk_block(only_reference, chains)
    one = seconds(lambda: risk_block(only_reference, chains))
    whole = seconds(lambda: risk_block(every, chains))
    losses = whole - sum(seconds for _, seconds in parts)
    parts.append(("losses, moments, differences, signed bias", losses))
    print(
        f"risk of {len(names)} estimators on {len(chains) * 10:,} sequences: "
        f"{len(chains) * 10 / whole:,.0f} sequences/s"
    )
    print(f"(with add-one alone {len(chains) * 10 / one:,.0f} sequences/s)")
    print(text_table(["part", "ms", "share"], [[p, f"{1e3 * s:.1f}", f"{100 * s / whole:.0f} %"] for p, s in parts]))


if __name__ == "__main__":
    sys.exit(main())
