"""A training run on disk: the files that it leaves, how it is resumed, and when it must not be overwritten.

For a run named ``k3-seed0`` an output folder holds

- ``k3-seed0.safetensors``, ``k3-seed0.json``: the finished checkpoint; it appears when the run has finished;
- ``k3-seed0.csv``: its metrics so far;
- ``k3-seed0/step-00000100.safetensors``, ``.json``: snapshots, checkpoints themselves;
- ``k3-seed0/state.safetensors``: what an unfinished run continues from, with its options and rows, in one
  file, so that its parts always belong to the same step.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from icl_estimators.files import require_writable, write_whole
from icl_estimators.provenance import code_commit, environment, environment_differences, library_versions
from icl_estimators.transformer.checkpoint import (
    CheckpointInfo,
    load_checkpoint,
    read_info,
    save_checkpoint,
    sidecar_path,
)
from icl_estimators.transformer.config import ModelConfig
from icl_estimators.transformer.device import require_device
from icl_estimators.transformer.engines import Engine, require_engine
from icl_estimators.transformer.training.measuring import final_metrics
from icl_estimators.transformer.training.recipe import Recipe, row_steps, snapshot_steps
from icl_estimators.transformer.training.trainer import MetricRow, Trainer, TrainingState
from icl_estimators.transformer.training.updates import advance
from icl_estimators.validation import InputError

__all__ = [
    "Outcome",
    "Recorder",
    "Report",
    "Run",
    "RunFiles",
    "begin",
    "cannot_write",
    "check_space",
    "engine_there",
    "prepare",
    "train",
]

Report = Callable[["Run", int, MetricRow], None]
"""Called with a run, the updates that it has had, and its latest row."""

Outcome = CheckpointInfo | InputError | None
"""Of one run: its checkpoint, why it failed, or None if it was stopped and can be resumed."""

STEPS_PER_REPORT = 20
_STATE_TENSORS = ("weights", "first_moment", "second_moment", "loss_sum")


@dataclass(frozen=True, slots=True)
class Run:
    """One training run: everything that its weights depend on.

    Attributes
    ----------
    config : ModelConfig
    recipe : Recipe
    seed : int
    threads : int
        Of torch; part of the run because sums over threads may differ in the last bits.
    device : str
    engine : {"torch", "kernel"}
        See :mod:`icl_estimators.transformer.engines`.
    """

    config: ModelConfig
    recipe: Recipe
    seed: int = 0
    threads: int = 1
    device: str = "cpu"
    engine: Engine = "torch"

    @property
    def name(self) -> str:
        """The run's name, for instance k3-seed0."""
        return f"k{self.config.n_states}-seed{self.seed}"

    @property
    def options(self) -> dict[str, Any]:
        """Every option by its name on the command line, for comparison with another run."""
        own = {"threads": self.threads, "device": self.device, "engine": self.engine}
        values = {**self.config.to_dict(), **self.recipe.to_dict(), **own}
        return {name.replace("_", "-"): value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Where a run's files lie."""

    out: Path
    name: str

    @property
    def checkpoint(self) -> Path:
        """The finished weights; their sidecar is beside them."""
        return self.out / f"{self.name}.safetensors"

    @property
    def metrics(self) -> Path:
        """The metrics, one row a measured step."""
        return self.out / f"{self.name}.csv"

    @property
    def folder(self) -> Path:
        """Snapshots, and the state of an unfinished run."""
        return self.out / self.name

    @property
    def state(self) -> Path:
        """What an unfinished run continues from."""
        return self.folder / "state.safetensors"

    def snapshot(self, step: int) -> Path:
        """The weights after `step` updates."""
        return self.folder / f"step-{step:08d}.safetensors"

    def remove(self) -> None:
        """Delete all that the run has left."""
        for path in (self.checkpoint, sidecar_path(self.checkpoint), self.metrics):
            path.unlink(missing_ok=True)
        if self.folder.is_dir():
            shutil.rmtree(self.folder)


def engine_there(out: Path, name: str) -> Engine | None:
    """Return the engine of the run of that name in `out`, finished or not; None where there is none, or no telling."""
    files = RunFiles(out, name)
    try:
        if sidecar_path(files.checkpoint).exists():
            return read_info(files.checkpoint).engine
        if files.state.exists():
            engine: Engine = _read_state(files.state)[0]["engine"]
            return engine
    except InputError:
        pass  # prepare() says what is wrong
    return None


def prepare(run: Run, out: Path, *, resume: bool, force: bool) -> CheckpointInfo | None:
    """Find out, before any work, whether a run may write to `out`, and whether it has finished there already.

    Returns
    -------
    CheckpointInfo or None
        What the sidecar of the finished run says; None where there is work to do.

    Raises
    ------
    InputError
        If the device is absent or `out` cannot be written to; if `out` holds this run already, or one of the
        same name with other options, and neither `resume` (for exactly the same options) nor `force` says what
        to do; if an unfinished run was started with other versions or on another kind of processor; or if what is
        there is damaged.
    """
    require_device(run.device)
    files = RunFiles(out, run.name)
    require_writable(out)
    finished = sidecar_path(files.checkpoint).exists()
    if force or not finished:
        require_engine(run.engine, run.config, run.device)
    if force:
        return None
    if finished:
        info = load_checkpoint(files.checkpoint)[1]
        there = _run_of(info).options
    elif files.state.exists():
        there = _read_state(files.state)[0]
    elif files.checkpoint.exists() or files.metrics.exists():
        raise InputError(
            f"{out} holds files called {run.name} of an unknown run: name another --out, or overwrite them with --force"
        )
    else:
        return None
    for option, value in run.options.items():
        if there.get(option) != value:
            now = f"--{option} was {there.get(option)} and is now {value}"
            if resume:
                raise InputError(f"{run.name} in {out} cannot be resumed: {now}; give the same options as before")
            raise InputError(
                f"{out} holds another run {run.name} ({now}): name another --out, or overwrite it with --force"
            )
    if resume and not finished:
        differs = environment_differences(_environment_of(files.state), environment(torch=True))
        if differs:
            raise InputError(
                f"{run.name} in {out} cannot be resumed: {'; '.join(differs)}; restore what differs, or "
                "start again with --force"
            )
    if not resume:
        status = "has finished" if finished else "is unfinished"
        raise InputError(f"{run.name} in {out} {status}: --resume continues from what is there, --force starts again")
    return info if finished else None


def check_space(runs: list[Run], out: Path) -> None:
    """Check that there is disk space for the runs' files, before the training.

    Raises
    ------
    InputError
        If there is less space on the disk than they need.
    """
    needed = 2**20
    for run in runs:
        files = len(snapshot_steps(run.recipe.steps)) + 8  # the checkpoint, and the state twice while it is replaced
        needed += files * (4 * run.config.parameter_count + 2**14)
    free = shutil.disk_usage(out).free
    if free < needed:
        raise InputError(
            f"{out} has {free / 2**20:.0f} MiB left on its disk, but the runs need {needed / 2**20:.0f} MiB: free some "
            "space"
        )


def train(
    run: Run,
    out: Path,
    *,
    report: Callable[[int, MetricRow], None] = lambda step, row: None,
    should_stop: Callable[[], bool] = lambda: False,
    save_every: float = 10.0,
    force: bool = False,
) -> CheckpointInfo | None:
    """Train, from the state in `out` if there is one, and keep everything there.

    Parameters
    ----------
    run : Run
        One that :func:`prepare` has nothing against.
    out : Path
    report : callable
        Called every few updates with the updates made and the latest row.
    should_stop : callable
        Asked between updates; once it says yes the state is saved.
    save_every : float
        Seconds between two saves of the state.
    force : bool
        Start again and delete what is there.

    Returns
    -------
    CheckpointInfo or None
        Of the finished checkpoint; None if the run was stopped and can be resumed.

    Raises
    ------
    InputError
        If the run diverges, a file cannot be written, or the state is damaged.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(run.threads)
    try:
        return begin(run, out, force=force).train(report, should_stop, save_every)
    except OSError as error:
        raise cannot_write(out, error) from None
    finally:
        torch.set_num_threads(before)


def begin(run: Run, out: Path, *, force: bool) -> Recorder:
    """Return the recorder of a run, where its state in `out` left it; `force` deletes what is there first."""
    files = RunFiles(out, run.name)
    if force:
        files.remove()
    return Recorder(run, files)


def cannot_write(out: Path, error: OSError) -> InputError:
    """Return what to tell the user when the disk gives out."""
    return InputError(f"cannot write to {out}: {error.strerror}; fix that and continue with --resume")


class Recorder:
    """A trainer and what it leaves on disk.

    What a step leaves is written before the state that lies past it, so that a run that is resumed
    either has it or makes it again.
    """

    def __init__(self, run: Run, files: RunFiles) -> None:
        self.run, self.files = run, files
        files.folder.mkdir(parents=True, exist_ok=True)
        for left in (*files.folder.glob(".*.tmp"), *files.out.glob(f".{files.name}.*.tmp")):
            left.unlink(missing_ok=True)  # a process was killed while it wrote
        self.rows: list[MetricRow] = []
        state = None
        if files.state.exists():
            _, self.rows, state = _read_state(files.state)
        self.trainer = Trainer(run.config, run.recipe, seed=run.seed, device=run.device, engine=run.engine, state=state)
        if state is None:
            self.record()
            self.save()

    def train(
        self, report: Callable[[int, MetricRow], None], should_stop: Callable[[], bool], save_every: float
    ) -> CheckpointInfo | None:
        saved = time.monotonic()
        for step in row_steps(self.run.recipe.steps):
            while self.trainer.step < step:
                report(self.trainer.step, self.rows[-1])
                advance([self.trainer], min(step, self.trainer.step + STEPS_PER_REPORT), should_stop)
                if self.trainer.step == step:
                    self.record()
                stop = should_stop()
                if stop or time.monotonic() - saved >= save_every:
                    self.save()
                    saved = time.monotonic()
                if stop:
                    return None
        report(self.trainer.step, self.rows[-1])
        return self.finish()

    def record(self) -> None:
        """Measure, and keep the weights where a snapshot is due."""
        row = self.trainer.row()
        if row.step in snapshot_steps(self.run.recipe.steps):
            measured = {"loss_nats": _or_none(row.loss_nats), "regret_nats": _or_none(row.regret_nats)}
            self.save_weights(self.files.snapshot(row.step), measured)
        self.rows.append(row)

    def save(self) -> None:
        """Keep the state, and show the metrics."""
        state = self.trainer.state()
        tensors = {name: getattr(state, name) for name in _STATE_TENSORS}
        metadata = {
            "step": str(state.step),
            "last_row": str(state.last_row),
            "options": json.dumps(self.run.options),
            "environment": json.dumps(environment(torch=True)),
            "rows": json.dumps([astuple(row) for row in self.rows]),
        }
        with write_whole(self.files.state) as temporary:
            temporary.write_bytes(save(tensors, metadata))
        self.write_metrics()

    def finish(self) -> CheckpointInfo:
        self.write_metrics()
        info = self.save_weights(
            self.files.checkpoint, final_metrics(self.trainer.model(), self.run.recipe, self.run.engine)
        )
        self.files.state.unlink(missing_ok=True)
        return info

    def save_weights(self, path: Path, metrics: dict[str, float | None]) -> CheckpointInfo:
        run = self.run
        return save_checkpoint(
            path,
            self.trainer.parameters(),
            CheckpointInfo(
                config=run.config.to_dict(),
                seed=run.seed,
                step=self.trainer.step,
                recipe=run.recipe.to_dict(),
                metrics=metrics,
                threads=run.threads,
                device=run.device,
                engine=run.engine,
                versions=library_versions(*(["numba"] if run.engine == "kernel" else [])),
                commit=code_commit(),
            ),
        )

    def write_metrics(self) -> None:
        with (
            write_whole(self.files.metrics) as temporary,
            temporary.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(MetricRow)])
            writer.writerows(asdict(row).values() for row in self.rows)


def _read_state(path: Path) -> tuple[dict[str, Any], list[MetricRow], TrainingState]:
    """Return the options, rows and state of an unfinished run.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        options = {"engine": "torch", **json.loads(metadata["options"])}  # the first there was
        rows = [MetricRow(*values) for values in json.loads(metadata["rows"])]
        state = TrainingState(step=int(metadata["step"]), last_row=int(metadata["last_row"]), **tensors)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError):
        raise InputError(f"{path} is damaged: start again with --force") from None
    return options, rows, state


def _environment_of(path: Path) -> dict[str, Any]:
    """Return the versions and kind of processor that an unfinished run was started with, if it recorded them."""
    with safe_open(path, "pt") as file:
        found: dict[str, Any] = json.loads(file.metadata().get("environment", "{}"))
    return found


def _run_of(info: CheckpointInfo) -> Run:
    config, recipe = ModelConfig.from_dict(info.config), Recipe.from_dict(info.recipe)
    return Run(config, recipe, info.seed, info.threads, info.device, info.engine)


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
