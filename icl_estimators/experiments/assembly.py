"""Make the estimators that a command or a study asks for, and record them for run.json."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from icl_estimators.engine.executors import one_thread
from icl_estimators.estimators import (
    DEFAULT_SPECS,
    Estimator,
    check_estimator,
    get_all,
    split_specs,
    stated_tolerances,
    tolerance_lines,
)
from icl_estimators.estimators.accepted_options import require_use
from icl_estimators.estimators.capabilities import weights_of
from icl_estimators.estimators.checkpoint_labels import label_checkpoints
from icl_estimators.estimators.construction import ConstructionSoftmax
from icl_estimators.estimators.registry import BUILT_IN_NAMES
from icl_estimators.estimators.training_runs import Trained, TrainingRecord, pooled_runs
from icl_estimators.files import sha256
from icl_estimators.validation import InputError

__all__ = ["Paths", "assemble", "estimators_record", "gamma_record", "weight_files"]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def assemble(
    estimators: Iterable[str | Estimator] | str | None,
    *,
    n_states: int,
    concentration: float,
    warn: Callable[[str], None],
    reference: str | None = None,
    pooled: bool = True,
    checkpoints: Paths = (),
    device: str = "cpu",
    tune: Callable[[bool], float] | None = None,
    check_length: int | None = None,
    dashes: str = "",
) -> tuple[tuple[Estimator, ...], str]:
    """Make estimators, add the reference, and check each against the contract once.

    Parameters
    ----------
    estimators : iterable of str or Estimator, or str, optional
        Specs or objects, or specs in one string, separated by commas; by default the default list.
    n_states : int
        K.
    concentration : float
        α of the prior, for estimators that know it.
    warn : callable
        Takes one line for each estimator that is left out, each reason why checkpoints are not pooled, and each
        tolerance that is looser than float32's.
    reference : str, optional
        Spec or name of the estimator that the others are compared with; added if it is not among them.
    pooled : bool
        Whether the reference may be a recipe, the mean over its training runs.
    checkpoints : path or sequence of paths
        Trained transformers, FILE or "NAME=FILE".
    device : str
        Where a transformer runs.
    tune : callable, optional
        What ``construction-softmax:tuned`` asks for its γ.
    check_length : int, optional
        Tokens in the sequences that the contract is checked on; by default it is not checked here.
    dashes : str
        ``--`` if the options are flags; messages then use the flags' names.

    Returns
    -------
    estimators : tuple of Estimator
    reference : str
        The reference's name; empty without a reference.

    Raises
    ------
    InputError
        If no estimator is named; if a checkpoint or the device is not there, or no estimator uses it; if the reference
        stands for several estimators; or as :func:`icl_estimators.estimators.get_all`.
    ContractError
        If an estimator breaks the contract.
    """
    items = split_specs(estimators) if isinstance(estimators, str) else estimators
    items = None if items is None else list(items)
    if items is not None and not items:
        raise InputError("no estimators to compare: give at least one")
    files = (checkpoints,) if isinstance(checkpoints, (str, os.PathLike)) else tuple(checkpoints)
    for checkpoint in label_checkpoints(files):
        if not checkpoint.path.is_file():
            raise InputError(f"no such checkpoint: {checkpoint.path} (give a .safetensors file)")
    if device != "cpu":  # asked for, even if no transformer is
        from icl_estimators.transformer.device import require_device

        require_device(device)
    specs = list(DEFAULT_SPECS) if items is None else [item for item in items if isinstance(item, str)]
    objects = [item for item in items or () if not isinstance(item, str)]
    added = (
        []
        if reference is None or reference in {rule.name for rule in objects if isinstance(rule, Estimator)}
        else [reference]
    )
    require_use([*specs, *added], checkpoints=bool(files), device=device, dashes=dashes)

    options: dict[str, Any] = {"n_states": n_states, "concentration": concentration, "device": device}
    options |= {"checkpoints": files, "warn": warn, "tune": tune}
    if items is None or not objects:
        made = get_all(None if items is None else specs, **options)
    else:
        made = [rule for item in items for rule in (get_all([item], **options) if isinstance(item, str) else [item])]
    _refuse_borrowed_names(made)
    _check(made, n_states, check_length)
    if reference is not None:
        more, reference = _reference(reference, made, pooled, options)
        _check(more, n_states, check_length)
        made += more
    for line in tolerance_lines(stated_tolerances(made)):
        warn(line)
    return tuple(made), reference or ""


def _reference(
    spec: str, made: Sequence[Estimator], pooled: bool, options: dict[str, Any]
) -> tuple[list[Estimator], str]:
    """Return what must be added so that the reference is included, and its name."""

    def recipes(rules: Sequence[Estimator]) -> dict[str, tuple[str, ...]]:
        return pooled_runs(rules) if pooled else {}

    known = {*(rule.name for rule in made), *recipes(made)}
    if spec in known:
        return [], spec
    candidates = get_all([spec], **options)
    recipe = next(iter(recipes(candidates)), None)
    if recipe is None and len(candidates) > 1:
        names = ", ".join(rule.name for rule in candidates)
        raise InputError(f"the reference {spec} could be any of {names}, which are not pooled: name one")
    name = recipe or candidates[0].name  # a spec may be spelled in several ways
    return ([] if name in known else candidates), name


def _refuse_borrowed_names(estimators: Iterable[Estimator]) -> None:
    """Refuse an estimator of your own under the name of a built-in rule: one name is one estimator."""
    for rule in estimators:
        name = getattr(rule, "name", None)  # the contract has not been checked yet
        ours = type(rule).__module__.partition(".")[0] == __name__.partition(".")[0]
        if not ours and isinstance(name, str) and name in BUILT_IN_NAMES:
            raise InputError(f"an estimator of your own is called {name}, the name of a built-in rule: rename it")


def _check(estimators: Iterable[Estimator], n_states: int, length: int | None) -> None:
    if length is not None:
        with one_thread():
            for estimator in estimators:
                check_estimator(estimator, n_states, length=length)


def weight_files(estimators: Iterable[Estimator]) -> dict[str, Path]:
    """Return the files that estimators say, by an attribute ``checkpoint``, they were read from, by name."""
    files = {}
    for estimator in estimators:
        path = weights_of(estimator)
        if path is not None:
            files[estimator.name] = path
    return files


def estimators_record(estimators: Sequence[Estimator]) -> dict[str, Any]:
    """Return what run.json says of estimators among a study's options, as plain values."""
    tolerances = stated_tolerances(estimators)
    trained = {
        rule.name: {
            "config": dict(rule.info.config),
            "recipe": dict(rule.info.recipe),
            "seed": rule.info.seed,
            "step": rule.info.step,
        }
        for rule in estimators
        if isinstance(rule, Trained) and isinstance(rule.info, TrainingRecord)
    }
    return {
        "weights": {name: sha256(path) for name, path in weight_files(estimators).items()},
        **({"trained": trained} if trained else {}),
        **({"tolerances": tolerances} if tolerances else {}),
    }


def gamma_record(estimators: Iterable[Estimator]) -> dict[str, dict[str, float]]:
    """Return what run.json says of γ, by name: all that was used, and of it what was tuned or the default."""
    rules = [rule for rule in estimators if isinstance(rule, ConstructionSoftmax)]
    return {
        "gamma": {rule.name: rule.gamma for rule in rules},
        "tuned_gamma": {rule.name: rule.gamma for rule in rules if rule.gamma_from == "tuned"},
        "default_gamma": {rule.name: rule.gamma for rule in rules if rule.gamma_from == "default"},
    }
