"""Train the two-layer transformer on fresh chains: ``python -m icl_estimators.train``."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from icl_estimators.locking import sole_writer
from icl_estimators.options import Interrupted, Parser, Terminated, command, count, natural
from icl_estimators.options import concentration as positive
from icl_estimators.progress import progress_reports
from icl_estimators.validation import InputError
from icl_estimators.workers import refuse_in_worker

if TYPE_CHECKING:
    from icl_estimators.transformer.checkpoint import CheckpointInfo
    from icl_estimators.transformer.training.runs import Report, Run
    from icl_estimators.transformer.training.trainer import MetricRow

__all__ = ["main", "train_runs"]


def _seeds(text: str) -> list[int]:
    """Parse a seed, or a range such as 0..9 with both ends included."""
    first, dots, last = text.partition("..")
    if not dots:
        return [natural(text)]
    seeds = list(range(natural(first), natural(last) + 1))
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r} is empty: write the smaller seed first")
    return seeds


def _parser() -> Parser:
    from icl_estimators.sources.start import START_LAWS

    parser = Parser(
        prog="python -m icl_estimators.train",
        description="Train an attention-only transformer on sequences of freshly sampled Markov chains, one run for "
        "each seed.\nA run that was stopped, or even killed, continues with --resume, on the same kind of CPU with the "
        "same versions,\nand ends with exactly the same weights.",
    )
    parser.add_argument(
        "--seed",
        type=_seeds,
        nargs="+",
        default=[[0]],
        metavar="S",
        help="random seeds, one run for each; 0..9 is a range (default 0)",
    )
    parser.add_argument("--states", type=count, default=3, metavar="K", help="number of states (default 3)")
    parser.add_argument(
        "--length", type=count, default=100, metavar="T", help="tokens read from each sequence (default 100)"
    )
    recipe = parser.add_argument_group("recipe")
    recipe.add_argument("--steps", type=count, default=8000, metavar="N", help="number of updates (default 8000)")
    recipe.add_argument("--batch", type=count, default=64, metavar="B", help="fresh chains in each update (default 64)")
    recipe.add_argument(
        "--peak-lr", type=positive, default=3e-3, metavar="X", help="largest step size of Adam (default 0.003)"
    )
    recipe.add_argument(
        "--schedule",
        choices=["cosine", "constant"],
        default="cosine",
        help="schedule of the step size (default cosine)",
    )
    recipe.add_argument(
        "--concentration", type=positive, default=1.0, metavar="A", help="α of the Dirichlet prior (default 1)"
    )
    recipe.add_argument(
        "--start", choices=list(START_LAWS), default="uniform", help="distribution of the first token (default uniform)"
    )
    model = parser.add_argument_group("model")
    model.add_argument("--d-model", type=count, default=64, metavar="D", help="width (default 64)")
    model.add_argument("--n-layers", type=count, default=2, metavar="N", help="attention layers (default 2)")
    model.add_argument("--n-heads", type=count, default=1, metavar="N", help="heads in each layer (default 1)")
    model.add_argument("--sentinel", action="store_true", help="put a special token before every sequence")
    model.add_argument(
        "--init-std",
        type=positive,
        default=0.1,
        metavar="X",
        help="standard deviation of the initial embedding (default 0.1)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("training-runs"), metavar="DIR", help="output folder (default training-runs)"
    )
    restart = parser.add_mutually_exclusive_group()
    restart.add_argument(
        "--resume", action="store_true", help="continue the runs in the output folder; start those that are not there"
    )
    restart.add_argument("--force", action="store_true", help="start again and overwrite the runs in the output folder")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument(
        "--engine",
        choices=["auto", "kernel", "torch"],
        default="auto",
        help="what computes the gradient: the compiled kernel (needs numba), torch, or the faster one; "
        "a run is resumed with the same engine (default auto)",
    )
    parser.add_argument(
        "--threads",
        type=count,
        default=1,
        metavar="N",
        help="threads of each run; a run is resumed with the same number (default 1)",
    )
    parser.add_argument(
        "--jobs", type=count, metavar="N", help="number of processes for the runs (default: one for each core)"
    )
    parser.add_argument(
        "--save-every", type=positive, default=10.0, metavar="SECONDS", help="time between saved states (default 10)"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parser


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Train what the options ask for; return the exit status."""
    with ExitStack() as held:
        return _main(_parser().parse_args(argv), held)


def _main(options: argparse.Namespace, held: ExitStack) -> int:
    from icl_estimators.transformer.training.processes import train_many  # loads torch
    from icl_estimators.transformer.training.runs import RunFiles, check_space, prepare

    runs = _runs(options)
    for run in runs:
        held.enter_context(sole_writer(options.out, run.name))
    done = {run: prepare(run, options.out, resume=options.resume, force=options.force) for run in runs}
    waiting = [run for run in runs if done[run] is None]
    if options.resume:
        for run in waiting:
            if not RunFiles(options.out, run.name).state.exists():
                print(f"train: {run.name} has no saved state in {options.out}: it starts at step 0", file=sys.stderr)
    check_space(waiting, options.out)
    failed: list[InputError] = []
    with _progress(waiting, quiet=options.quiet) as report, _interruptible() as should_stop:
        jobs = options.jobs or (1 if options.device != "cpu" else (os.cpu_count() or 1))
        outcomes = train_many(
            waiting,
            options.out,
            jobs=jobs,
            report=report,
            should_stop=should_stop,
            save_every=options.save_every,
            force=options.force,
        )
        for run, outcome in outcomes:
            if isinstance(outcome, InputError):
                failed.append(outcome)
            else:
                done[run] = outcome
    if not options.quiet:
        for run, info in done.items():
            if info is not None:
                print(_summary(run, info, before=run not in waiting))
        print("\nWrote" if waiting else "\nAll runs had already finished; nothing was trained. The files are")
        for run in runs:
            files = RunFiles(options.out, run.name)
            written = [files.checkpoint, files.checkpoint.with_suffix(".json"), files.metrics, files.folder]
            for path in written:
                if path.exists():
                    print(f"  {path}")
    if failed:
        raise failed[0]
    if None in done.values():
        if not options.quiet:
            print("stopped; continue with --resume", file=sys.stderr)
        raise should_stop.by or Interrupted()
    return 0


def train_runs(out: Path, seeds: Sequence[int], **options: object) -> list[Path]:
    """Train what flags ask for, by their names with underscores, without progress; return the weights.

    Raises
    ------
    InputError
        As the command says in one line.
    """
    from icl_estimators.transformer.training.runs import RunFiles

    flags: list[str] = []
    for name, value in {"jobs": 1, **options}.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            flags.append(flag)
        elif value is not None and value is not False:
            flags += [flag, str(value)]
    parsed = _parser().parse_args(["--out", str(out), "--seed", *map(str, seeds), *flags, "--quiet"])
    refuse_in_worker(parsed.jobs or 1)
    with ExitStack() as held:
        _main(parsed, held)
    return [RunFiles(out, run.name).checkpoint for run in _runs(parsed)]


def _runs(options: argparse.Namespace) -> list[Run]:
    from icl_estimators.transformer.config import ModelConfig
    from icl_estimators.transformer.engines import choose_engine
    from icl_estimators.transformer.training.recipe import Recipe
    from icl_estimators.transformer.training.runs import Run, engine_there

    config = ModelConfig(
        n_states=options.states,
        length=options.length,
        d_model=options.d_model,
        n_layers=options.n_layers,
        n_heads=options.n_heads,
        sentinel=options.sentinel,
        init_std=options.init_std,
    )
    recipe = Recipe(
        steps=options.steps,
        batch=options.batch,
        length=options.length,
        peak_lr=options.peak_lr,
        schedule=options.schedule,
        concentration=options.concentration,
        start=options.start,
    )
    engine = choose_engine(
        options.engine,
        config,
        work="training",
        sequences=recipe.steps * recipe.batch,
        length=recipe.length,
        device=options.device,
    )
    seeds = dict.fromkeys(seed for some in options.seed for seed in some)
    runs = [Run(config, recipe, seed, options.threads, options.device, engine) for seed in seeds]
    if options.engine == "auto" and not options.force:  # continue with the engine that a run started with
        return [replace(run, engine=engine_there(options.out, run.name) or engine) for run in runs]
    return runs


def _summary(run: Run, info: CheckpointInfo, *, before: bool) -> str:
    """Return one line on a finished run."""
    metrics, length = info.metrics, run.recipe.length
    if metrics["regret_nats"] is None:
        result = f"log loss {metrics['log_loss_nats']:.4f} ± {metrics['log_loss_nats_se']:.4f} nats"
    else:
        result = (
            f"regret {metrics['regret_nats']:.5f} ± {metrics['regret_nats_se']:.5f} nats over n = 1..{length}, "
            f"{metrics['regret_late_nats']:.5f} ± {metrics['regret_late_nats_se']:.5f} over n > {length // 2}"
        )
    return f"{run.name}: {result} (standard error){', already finished' if before else ''}"


class _Asked:
    """Whether Ctrl-C or SIGTERM has come, and which."""

    def __init__(self) -> None:
        self.by: Interrupted | None = None

    def __call__(self) -> bool:
        return self.by is not None


@contextmanager
def _interruptible() -> Iterator[_Asked]:
    """Give a function that returns True after Ctrl-C or SIGTERM, so that a run stops between two updates.

    A second signal stops at once.
    """
    asked = _Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heard = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]

    def ask(number: int, frame: object) -> None:
        asked.by = Terminated() if number == signal.SIGTERM else Interrupted()
        restore()

    def restore() -> None:
        for number in heard:
            signal.signal(number, before[number])

    for number in heard:
        signal.signal(number, ask)
    try:
        yield asked
    finally:
        restore()


@contextmanager
def _progress(runs: Sequence[Run], *, quiet: bool) -> Iterator[Report]:
    """Give a callback that shows every run's step and what was measured there."""
    steps = sum(run.recipe.steps for run in runs)
    with progress_reports(quiet=quiet, unit="step", together=steps) as (progress, _):

        def report(run: Run, step: int, row: MetricRow) -> None:
            progress(run.name, step, run.recipe.steps, _measured(row))

        yield report


def _measured(row: MetricRow) -> str:
    loss = "" if math.isnan(row.loss_nats) else f"loss {row.loss_nats:.4f}, "
    regret = "not defined" if math.isnan(row.regret_nats) else f"{row.regret_nats:.4f}"
    return f"{loss}regret {regret}"


if __name__ == "__main__":
    sys.exit(main())
