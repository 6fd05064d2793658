"""A group of runs on disk, trained side by side by the kernel. Each run has its own files and ends, fails or is resumed
by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch

from icl_estimators.transformer.training.joint_updates import advance_together
from icl_estimators.transformer.training.recipe import row_steps
from icl_estimators.transformer.training.runs import (
    STEPS_PER_REPORT,
    Outcome,
    Recorder,
    Report,
    Run,
    begin,
    cannot_write,
)
from icl_estimators.validation import InputError

__all__ = ["train_group"]

Result = TypeVar("Result")


def train_group(
    runs: Sequence[Run],
    out: Path,
    *,
    report: Report,
    should_stop: Callable[[], bool],
    save_every: float,
    force: bool,
) -> dict[Run, Outcome]:
    """Train runs of one config and recipe by the kernel, each as it would be trained alone.

    Those that were stopped at an earlier step than others catch up first.

    Returns
    -------
    dict of Run to CheckpointInfo or InputError or None
        The result of each. A run that fails does not stop the others.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(runs[0].threads)
    try:
        group = _Group(runs, out, force=force)
        saved = time.monotonic()
        while group.recorders:
            group.advance(report, should_stop)
            stop = should_stop()
            if stop or time.monotonic() - saved >= save_every:
                group.save()
                saved = time.monotonic()
            if stop:
                break
        return {run: group.outcomes.get(run) for run in runs}
    finally:
        torch.set_num_threads(before)


class _Group:
    """The runs that are still being trained, and the results of the others."""

    def __init__(self, runs: Sequence[Run], out: Path, *, force: bool) -> None:
        self.out = out
        self.outcomes: dict[Run, Outcome] = {}
        self.recorders: dict[Run, Recorder] = {}
        for run in runs:
            recorder = self._attempt(run, partial(begin, run, out, force=force))
            if recorder is not None:
                self.recorders[run] = recorder

    def advance(self, report: Report, should_stop: Callable[[], bool]) -> None:
        """Bring those that are farthest back some steps forward; finish them where they reach the end."""
        steps = {run: recorder.trainer.step for run, recorder in self.recorders.items()}
        step, last = min(steps.values()), next(iter(steps)).recipe.steps
        behind = {run: recorder for run, recorder in self.recorders.items() if steps[run] == step}
        measured = row_steps(last)
        to = min([step + STEPS_PER_REPORT, *(other for other in (*steps.values(), *measured) if other > step)])
        for run, recorder in behind.items():
            report(run, step, recorder.rows[-1])
        advance_together([recorder.trainer for recorder in behind.values()], to, should_stop)
        for run, recorder in behind.items():
            if recorder.trainer.step in measured and recorder.rows[-1].step < recorder.trainer.step:
                self._attempt(run, recorder.record)
            if recorder.trainer.step == last and run in self.recorders:
                report(run, last, recorder.rows[-1])
                info = self._attempt(run, recorder.finish)
                if info is not None:
                    self.outcomes[run] = info
                    del self.recorders[run]

    def save(self) -> None:
        """Keep the states."""
        for run, recorder in list(self.recorders.items()):
            self._attempt(run, recorder.save)

    def _attempt(self, run: Run, action: Callable[[], Result]) -> Result | None:
        """Return what `action` returns; if it fails, take the run out."""
        try:
            return action()
        except InputError as error:
            self.outcomes[run] = error
        except OSError as error:
            self.outcomes[run] = cannot_write(self.out, error)
        self.recorders.pop(run, None)
        return None
