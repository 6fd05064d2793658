"""Which estimators of a study are training runs of one recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from icl_estimators.estimators.base import Estimator
from icl_estimators.estimators.capabilities import TrainingRun, recipe_of

__all__ = ["Trained", "TrainingRecord", "pool_runs", "pooled_runs"]


@runtime_checkable
class TrainingRecord(Protocol):
    """What a checkpoint says about its training run.

    Attributes
    ----------
    config, recipe : dict
        The model's form and how it was trained.
    seed, step : int
        The run's seed, and the updates that the weights have had.
    sha256 : str
        Of the weights.
    """

    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def recipe(self) -> Mapping[str, Any]: ...
    @property
    def seed(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def sha256(self) -> str: ...


@runtime_checkable
class Trained(TrainingRun, Protocol):
    """An estimator that was trained, and says how.

    Attributes
    ----------
    info : TrainingRecord
    """

    info: TrainingRecord


def pool_runs(runs: Mapping[str, Trained], name: str, warn: Callable[[str], None]) -> None:
    """Set `recipe` on the estimators that are independent training runs of one recipe, if there are two or more.

    They are independent if the model's form, the recipe and the number of updates agree, and seeds and weights differ.

    Parameters
    ----------
    runs : mapping of label to estimator
        Two or more of the same kind, by what the messages call them.
    name : str
        What their rows together are called.
    warn : callable
        Takes one line for each reason why some are not pooled.
    """
    distinct: dict[str, str] = {}  # weights to the first label
    for label, run in runs.items():
        first = distinct.setdefault(run.info.sha256, label)
        if first != label:
            warn(
                f"{name}: {label} has the same weights as {first} (SHA-256 {run.info.sha256[:12]}…), so it is not a "
                "second training run: it has its own rows and is not pooled"
            )
    labels = list(distinct.values())
    differing = _differing({label: runs[label].info for label in labels})
    if differing:
        seeds = {runs[label].info.seed for label in labels}
        one_run = f", snapshots of one training run (seed {seeds.pop()})" if len(seeds) == 1 else ""
        options = "; ".join(f"{option} is {values}" for option, values in differing.items())
        warn(f"{name}: {', '.join(labels)} are not pooled as training runs of one recipe{one_run}: {options}")
        return
    by_seed: dict[int, str] = {}
    for label in labels:
        seed = runs[label].info.seed
        first = by_seed.setdefault(seed, label)
        if first != label:
            warn(
                f"{name}: {label} has the same seed, {seed}, as {first}, so it is not a second training run: it has "
                "its own rows and is not pooled"
            )
    if len(by_seed) > 1:
        for label in by_seed.values():
            runs[label].recipe = name


def _differing(records: Mapping[str, TrainingRecord]) -> dict[str, str]:
    """Return the options that are not the same in all, each with its values and the runs that have them."""
    options: dict[str, dict[str, Any]] = {}
    for label, record in records.items():
        trained = {f"recipe {key}": value for key, value in record.recipe.items()}
        options[label] = {**record.config, **trained, "step": record.step}
    found = {}
    for option in dict.fromkeys(key for of_one in options.values() for key in of_one):
        whose: dict[str, list[str]] = {}
        for label, of_one in options.items():
            whose.setdefault(repr(of_one[option]) if option in of_one else "not given", []).append(label)
        if len(whose) > 1:
            found[option] = " and ".join(f"{value} in {', '.join(labels)}" for value, labels in whose.items())
    return found


def pooled_runs(estimators: Sequence[Estimator]) -> dict[str, tuple[str, ...]]:
    """Return the names of the training runs by recipe, for recipes of which there are two or more.

    Parameters
    ----------
    estimators : sequence of Estimator
        See :class:`icl_estimators.estimators.TrainingRun`.
    """
    recipes: dict[str, tuple[str, ...]] = {}
    for rule in estimators:
        recipe = recipe_of(rule)
        if recipe is not None:
            recipes[recipe] = (*recipes.get(recipe, ()), rule.name)
    return {recipe: runs for recipe, runs in recipes.items() if len(runs) > 1}
