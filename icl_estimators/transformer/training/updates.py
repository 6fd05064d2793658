"""Advance training runs: by torch one after another, or by the kernel side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from icl_estimators.transformer.training.trainer import Trainer
from icl_estimators.validation import InputError

__all__ = ["advance"]


def advance(trainers: Sequence[Trainer], to: int, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Make updates until every run has made `to` of them, or `should_stop` says so between two.

    Parameters
    ----------
    trainers : sequence of Trainer
        All of one engine. Several for the kernel have the same config and recipe and are at the same step.
    to : int
        No run goes beyond the steps of its recipe.
    should_stop : callable

    Raises
    ------
    InputError
        If the runs are of different engines.
    """
    engines = {trainer.engine for trainer in trainers}
    if len(engines) > 1:
        raise InputError(f"runs with different engines ({', '.join(sorted(engines))}) cannot advance together")
    if engines == {"kernel"}:
        from icl_estimators.transformer.training.joint_updates import advance_together  # loads numba

        advance_together(trainers, to, should_stop)
        return
    for trainer in trainers:
        while trainer.step < min(to, trainer.recipe.steps) and not should_stop():
            trainer.update()
