"""The whole comparison: estimators in, tables out. The Python face of ``python -m icl_estimators.evaluate``."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

from icl_estimators.engine.block_store import StudyBlocks
from icl_estimators.engine.cluster import Cluster
from icl_estimators.engine.executors import InProcess, Processes, cannot_travel, in_order, one_thread
from icl_estimators.engine.tables import Table
from icl_estimators.estimators import (
    CHECK_LENGTH,
    DEFAULT_SPECS,
    Estimator,
    check_estimator,
    expect,
    get_all,
    split_specs,
    stated_tolerances,
    tolerance_lines,
)
from icl_estimators.estimators.construction import ConstructionSoftmax
from icl_estimators.estimators.identity import Sealed, study_identity
from icl_estimators.estimators.offers import require_use
from icl_estimators.estimators.training_runs import pooled_runs
from icl_estimators.experiments.attention import attention_example_table, attention_table
from icl_estimators.experiments.checks import check_table, exact_risks
from icl_estimators.experiments.circuit import circuit_table
from icl_estimators.experiments.decomposition import DecompositionMoments, decomposition_block
from icl_estimators.experiments.departure import regret_since_least
from icl_estimators.experiments.pair_table import pair_table
from icl_estimators.experiments.risk import RiskMoments, risk_block
from icl_estimators.experiments.risk_tables import (
    decomposition_table,
    difference_table,
    risk_table,
    signed_bias_table,
)
from icl_estimators.experiments.smoothing_tables import few_chains, smoothing_table
from icl_estimators.experiments.study import Study, blocks
from icl_estimators.experiments.tuning import gamma_tuner
from icl_estimators.files import sha256
from icl_estimators.inference import required_chains
from icl_estimators.provenance import made_with
from icl_estimators.reporting.terminal.comparison import summary_text
from icl_estimators.sources import ChainLaw, StartLaw
from icl_estimators.validation import InputError, positive_int
from icl_estimators.workers import refuse_in_worker

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Comparison",
    "Paths",
    "Progress",
    "compare",
    "crew_for",
    "design_options",
    "expect_study",
    "refuse_unused",
    "run_design",
    "run_study",
    "gamma_record",
    "study_estimators",
    "warn_left_out",
    "weight_files",
]


class _CanMerge(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def merge(self, other: Self) -> Self: ...


Mergeable = TypeVar("Mergeable", bound=_CanMerge)
Shared = TypeVar("Shared")

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

Progress = Callable[[str, int, int], None]
"""Called with what is being done, units done, and units in all."""

_TARGETS = (1e-3, 1e-4)
_WORTH_PROCESSES = 5000  # sequences below which starting processes costs more than it saves


@dataclass(frozen=True)
class Comparison:
    """What a comparison found.

    Attributes
    ----------
    tables : dict of str to Table
        By file stem, in the order they are written: risk, differences, …
    run : dict
        Design, γ used, chains needed for a target SE, seeds: what run.json adds provenance to.
    """

    tables: dict[str, Table]
    run: dict[str, Any]

    def __getattr__(self, name: str) -> pd.DataFrame:
        """Return a table as a DataFrame: ``.risk``, ``.differences``, …"""
        tables = self.__dict__.get("tables", {})
        if name in tables:
            frame: pd.DataFrame = tables[name].frame()
            return frame
        raise AttributeError(f"a comparison has no table {name!r}: it has {', '.join(tables)}")

    def summary(self) -> str:
        """Return the headline figures as text: means and intervals by context length, differences, infinite shares."""
        return summary_text(self.tables, self.run)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(f'{name} ({len(t.rows)})' for name, t in self.tables.items())}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.summary())}</pre>"

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write every table and run.json to `folder`; return the paths.

        Raises
        ------
        InputError
            If the folder cannot be written to, another process is writing to it, or it holds another study and `force`
            is false.
        """
        from icl_estimators.engine.folder import save_tables

        return save_tables(Path(folder), self.tables, self.run, force=force)


def compare(
    estimators: Iterable[str | Estimator] | str | None = None,
    *,
    reference: str = "add-one",
    checkpoints: Paths = (),
    chains: int = 2000,
    sequences_per_chain: int = 10,
    decomposition_chains: int = 500,
    decomposition_sequences: int = 64,
    length: int = 100,
    states: int = 3,
    concentration: float = 1.0,
    start: StartLaw = "uniform",
    seed: int = 0,
    level: float = 0.95,
    jobs: int = 1,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Comparison:
    """Compare estimators on freshly sampled chains.

    Parameters
    ----------
    estimators : iterable of str or Estimator, or str, optional
        Specs or your own objects, or specs in one string, separated by commas; by default every estimator of the
        default list that takes `states`, γ of `construction-softmax` tuned to the law and the length.
    reference : str
        Spec or name of the estimator that the others are compared with; added if it is not among them.
    checkpoints : path or sequence of paths
        Trained transformers, FILE or "NAME=FILE"; by default the one that ships for this K. Several are pooled where
        they are training runs of one recipe with seeds of their own.
    chains, sequences_per_chain : int
        R ≥ 2 independent chains, S ≥ 1 sequences of each.
    decomposition_chains, decomposition_sequences : int
        The nested design of bias and variance, on chains of its own; 0 chains leave it out.
    length : int
        T ≥ 1 tokens are read.
    states : int
        K ≥ 2.
    concentration : float
        α of the Dirichlet prior.
    start : {"uniform", "stationary"}
        Law of the first token.
    seed : int
        The study's seed.
    level : float
        Confidence level of intervals and bands.
    jobs : int
        Processes. Results are the same bits for any number, on the same kind of CPU and with the same versions.
    device : str
        Where a transformer runs.
    progress : callable, optional
        Called with (what, done, total) after each block.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If an option is out of its range, an estimator is unknown, or fails at each of several tries; or if several
        jobs are asked for where they cannot start: in a worker process, which is what importing a module does that
        calls this at its top level, or in a program that was read from standard input; if `checkpoints` or another
        `device` is given but no estimator uses it.
    ContractError
        If an estimator breaks the contract.

    Warns
    -----
    UserWarning
        If an estimator of the default list does not take `states` and is left out.

    Examples
    --------
    >>> result = compare(["bigram", "add-one"], chains=100, sequences_per_chain=1, length=12, decomposition_chains=0)
    >>> result.risk.query("estimator == 'add-one' and context_length == 1 and metric == 'regret_nats'").estimate.item()
    0.0
    """
    refuse_in_worker(jobs)
    law = ChainLaw(states, concentration, start)
    estimators = refuse_unused(estimators, reference, checkpoints=checkpoints, device=device)
    made, reference = study_estimators(
        estimators,
        law,
        reference=reference,
        checkpoints=checkpoints,
        device=device,
        warn=warn_left_out,
        length=length,
        tune=gamma_tuner(law, length),
    )
    study = Study(
        estimators=made,
        reference=reference,
        law=law,
        length=length,
        chains=chains,
        sequences_per_chain=sequences_per_chain,
        decomposition_chains=decomposition_chains,
        decomposition_sequences=decomposition_sequences,
        seed=seed,
        level=level,
    )
    expect_study(study)
    return run_study(study, jobs=jobs, progress=progress)


def study_estimators(
    estimators: Iterable[str | Estimator] | str | None,
    law: ChainLaw,
    *,
    reference: str,
    checkpoints: Paths,
    device: str,
    warn: Callable[[str], None],
    length: int = CHECK_LENGTH,
    tune: Callable[[bool], float] | None = None,
) -> tuple[tuple[Estimator, ...], str]:
    """Make the estimators of a study, add the reference, and hold each to the contract at the study's T, `length`.

    Returns
    -------
    estimators : tuple of Estimator
    reference : str
        The reference's name.

    Raises
    ------
    InputError
        As :func:`icl_estimators.estimators.get_all`.
    ContractError
        If an estimator breaks the contract.
    """
    options: dict[str, Any] = {"n_states": law.n_states, "concentration": law.concentration, "device": device}
    options |= {"checkpoints": _as_paths(checkpoints), "warn": warn, "tune": tune}
    if device != "cpu":  # asked for, even if no transformer is
        from icl_estimators.transformer.device import require_device

        require_device(device)
    made: list[Estimator] = []
    if estimators is None:
        made += get_all(None, **options)
    else:
        for item in split_specs(estimators) if isinstance(estimators, str) else estimators:
            made += get_all([item], **options) if isinstance(item, str) else [item]
        if not made:
            raise InputError("no estimators to compare: name at least one")
    _check(made, law, length)
    known = {*(estimator.name for estimator in made), *pooled_runs(made)}
    if reference not in known:
        candidates = get_all([reference], **options)
        recipe = next(iter(pooled_runs(candidates)), None)
        if recipe is None and len(candidates) > 1:
            names = ", ".join(rule.name for rule in candidates)
            raise InputError(f"the reference {reference} could be each of {names}, which are not pooled: name one")
        reference = recipe or candidates[0].name  # a spec may be spelled in several ways
        if reference not in known:
            _check(candidates, law, length)
            made += candidates
    for line in tolerance_lines(stated_tolerances(made)):
        warn(line)
    return tuple(made), reference


def refuse_unused(
    estimators: Iterable[str | Estimator] | str | None, reference: str, *, checkpoints: Paths, device: str
) -> Iterable[str | Estimator] | None:
    """Refuse checkpoints or a device that no estimator is to use; return the estimators, specs one by one.

    Raises
    ------
    InputError
        If `checkpoints` or another `device` than the CPU is given, but none of the estimators and the reference takes
        it: objects that are made already do not.
    """
    if estimators is None:
        specs, items = list(DEFAULT_SPECS), None
    else:
        items = split_specs(estimators) if isinstance(estimators, str) else list(estimators)
        specs = [item for item in items if isinstance(item, str)]
    if device != "cpu":
        from icl_estimators.transformer.device import require_device

        require_device(device)
    made = {getattr(item, "name", None) for item in items or ()}
    specs += [] if reference in made else [reference]
    require_use(specs, checkpoints=bool(_as_paths(checkpoints)), device=device)
    return items


def warn_left_out(line: str) -> None:
    """Warn whoever called :func:`compare`, or another face of a command, that an estimator was left out."""
    warnings.warn(line, stacklevel=5)  # this, get_all, study_estimators, compare, and its caller


def _check(estimators: Iterable[Estimator], law: ChainLaw, length: int) -> None:
    with one_thread():
        for estimator in estimators:
            check_estimator(estimator, law.n_states, length=length)


def _as_paths(checkpoints: Paths) -> Sequence[str | os.PathLike[str]]:
    return (checkpoints,) if isinstance(checkpoints, (str, os.PathLike)) else checkpoints


def run_study(
    study: Study,
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
    kept: StudyBlocks | None = None,
) -> Comparison:
    """Run a study and make its tables.

    Parameters
    ----------
    study : Study
    jobs : int
        Processes on this machine.
    dask : str, optional
        Address of a dask.distributed scheduler, whose workers are used instead.
    progress : callable, optional
        Called with (what, done, total) after each block.
    notice : callable, optional
        Takes one line for each worker or block that was lost and made good.
    kept : StudyBlocks, optional
        Where finished blocks are kept, and taken from.

    Raises
    ------
    InputError, ContractError
        As :func:`compare`, and if the cluster cannot be used.
    """
    jobs = positive_int(jobs, "jobs")
    refuse_in_worker(jobs)
    began = time.perf_counter()
    identity = study_identity(study.estimators)  # before they are asked for anything
    with one_thread():
        # Before the long work: what is wrong with an estimator shows at once.
        example = attention_example_table(study)
        exact = exact_risks(study)
    design = partial(
        run_design,
        shared=study,
        cells=study.cells,
        progress=progress or (lambda what, done, total: None),
        notice=notice or (lambda line: None),
        kept=kept,
    )
    sequences = study.chains * study.sequences_per_chain + study.decomposition_chains * study.decomposition_sequences
    other_cpus: dict[str, list[str]] = {}
    with crew_for(study, study.estimators, sequences, jobs, dask) as crew:
        if isinstance(crew, Cluster):
            other_cpus = crew.other_cpus
        if other_cpus and notice is not None:
            worker, differs = next(iter(other_cpus.items()))
            notice(f"the dask worker {worker} has another kind of CPU ({differs[0]}): numbers agree to 1e-6 only")
        risk = design("risk", RiskMoments, risk_block, study.chains, study.sequences_per_chain, crew=crew)
        decomposition = design(
            "decomposition",
            DecompositionMoments,
            decomposition_block,
            study.decomposition_chains,
            study.decomposition_sequences,
            crew=crew,
        )
    assert risk is not None  # a study has at least two chains
    with one_thread():
        circuit, scales = circuit_table(study)
        tables: dict[str, Table | None] = {
            "risk": risk_table(study, risk),
            "decomposition": None if decomposition is None else decomposition_table(study, decomposition),
            "signed_bias": signed_bias_table(study, risk),
            "differences": difference_table(study, risk),
            "pairs": pair_table(study, risk),
            "smoothing": smoothing_table(study, risk.smoothing),
            "attention": attention_table(study),
            "attention_example": example,
            "circuit": circuit,
            "checks": check_table(study, risk, decomposition, exact),
        }
    run = {
        "options": design_options(study),
        "identity": identity,
        **gamma_record(study.estimators),
        "nearest_construction": scales,
        "chains_for_target_se": _chains_needed(study, risk),
        "few_chains": few_chains(risk.smoothing),
        "regret_since_least": _regret_since_least(study, risk),
        "streams": ["risk", "decomposition", "tuning", "example"],
        "jobs": jobs,
        **({"other_cpus": other_cpus} if other_cpus else {}),  # of a cluster's workers
        "threads": 1,  # in each of them
        **made_with(),
        "wall_time_s": time.perf_counter() - began,
    }
    return Comparison({name: table for name, table in tables.items() if table is not None}, run)


def expect_study(study: Study) -> None:
    """Tell the estimators how much a study will ask of them, before its options are written down."""
    nested = study.decomposition_chains * study.decomposition_sequences
    expect(study.estimators, study.chains * study.sequences_per_chain + nested, study.length)


def crew_for(
    shared: object, estimators: Sequence[Estimator], sequences: int, jobs: int, dask: str | None = None
) -> InProcess | Processes | Cluster:
    """Return who does the work; a small study stays in this process, where it is done sooner.

    Parameters
    ----------
    shared : object
        What every task needs.
    estimators : sequence of Estimator
        Those in it; workers must have their very sources.
    sequences : int
        How many are to be predicted.
    jobs : int
        Processes on this machine.
    dask : str, optional
        Address of a dask.distributed scheduler, whose workers are used instead.
    """
    if dask is None and (jobs == 1 or sequences < _WORTH_PROCESSES):
        return InProcess(shared)
    try:
        sealed = Sealed(shared, estimators)
    except Exception as error:
        raise cannot_travel(error) from error
    return Processes(sealed, jobs) if dask is None else Cluster(sealed, dask)


def design_options(study: Study) -> dict[str, Any]:
    """Return all that decides a study's numbers, as plain values."""
    tolerances = stated_tolerances(study.estimators)
    by_kernel = [rule.name for rule in study.estimators if getattr(rule, "engine", None) == "kernel"]
    return {
        "estimators": [estimator.name for estimator in study.estimators],
        "reference": study.reference,
        "chains": study.chains,
        "sequences_per_chain": study.sequences_per_chain,
        "decomposition_chains": study.decomposition_chains,
        "decomposition_sequences": study.decomposition_sequences,
        "length": study.length,
        "states": study.law.n_states,
        "concentration": study.law.concentration,
        "start": study.law.start,
        "seed": study.seed,
        "level": study.level,
        "checkpoints": list(study.checkpoints),
        "recipes": {recipe: list(runs) for recipe, runs in study.recipes.items()},
        "weights": {name: sha256(path) for name, path in weight_files(study.estimators).items()},
        **({"tolerances": tolerances} if tolerances else {}),
        **({"kernel": by_kernel} if by_kernel else {}),  # the last bits are others than torch's
    }


def weight_files(estimators: Iterable[Estimator]) -> dict[str, Path]:
    """Return the files that estimators say, by an attribute ``checkpoint``, they were read from, by name."""
    files = {}
    for estimator in estimators:
        checkpoint = getattr(estimator, "checkpoint", None)
        if isinstance(checkpoint, (str, os.PathLike)) and Path(checkpoint).is_file():
            files[estimator.name] = Path(checkpoint)
    return files


def gamma_record(estimators: Iterable[Estimator]) -> dict[str, dict[str, float]]:
    """Return what run.json says of γ, by name: all that was used, and of it what was tuned or the default."""
    rules = [rule for rule in estimators if isinstance(rule, ConstructionSoftmax)]
    return {
        "gamma": {rule.name: rule.gamma for rule in rules},
        "tuned_gamma": {rule.name: rule.gamma for rule in rules if rule.gamma_from == "tuned"},
        "default_gamma": {rule.name: rule.gamma for rule in rules if rule.gamma_from == "default"},
    }


def run_design(
    what: str,
    kind: type[Mergeable],
    work: Callable[[Shared, range], Mergeable],
    chains: int,
    sequences: int,
    *,
    shared: Shared,
    cells: int,
    crew: InProcess | Processes | Cluster,
    progress: Progress,
    notice: Callable[[str], None],
    kept: StudyBlocks | None = None,
) -> Mergeable | None:
    """Run a design's blocks and merge them in chain order; None if it has no chains.

    Parameters
    ----------
    what : str
        The design's name.
    kind : type
        What `work` returns.
    work : callable
        (shared, chains) → the summary of those chains.
    chains, sequences : int
        R chains with S sequences each.
    shared : object
        What every block needs; the crew has it too.
    cells : int
        T·K, probabilities predicted for one sequence.
    crew, progress, notice, kept
        As for :func:`run_study`.
    """
    tasks = list(blocks(chains, sequences, cells))
    store = None if kept is None else kept.design(what, kind)
    done, whole = (0, None) if store is None else store.merged()
    tasks = [task for task in tasks if task.start >= done]
    there = set() if store is None else {task for task in tasks if store.has(task)}
    if done or there:
        progress(what, done + sum(map(len, there)), chains)
    fresh = in_order(
        work,
        crew,
        [task for task in tasks if task not in there],
        finished=(lambda task, part: None) if store is None else store.save,
        notice=notice,
    )
    for task in tasks:
        part = store.load(task) if store is not None and task in there else None
        if part is None and task in there:  # it was there, but cannot be read
            with one_thread():
                part = work(shared, task)
        if part is None:
            part = next(fresh)
        whole = part if whole is None else whole.merge(part)
        if store is not None:
            store.passed(task, whole)
        done += len(task)
        progress(what, done, chains)
    return whole


def _regret_since_least(study: Study, risk: RiskMoments) -> dict[str, dict[str, Any]]:
    """Return what run.json says of the trained models: the mean over the runs of a recipe, or a single model."""
    trained = (*study.recipes, *weight_files(study.estimators))
    regrets = ((name, risk.risk.get((name, "regret_nats"))) for name in trained)
    with one_thread():
        found = {name: regret_since_least(study, moments) for name, moments in regrets if moments is not None}
    return {name: since for name, since in found.items() if since is not None}


def _chains_needed(study: Study, risk: RiskMoments) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return how many chains bring the SE of each estimator's mean KL and mean regret down to a target, in nats."""
    needed: dict[str, dict[str, dict[str, float | None]]] = {}
    for (name, metric), moments in risk.risk.items():
        if metric in ("kl_nats", "regret_nats"):
            counts = {f"{target:g}": required_chains(moments.select([study.length]), target)[0] for target in _TARGETS}
            needed.setdefault(name, {})[metric] = {
                target: None if math.isnan(count) else float(count) for target, count in counts.items()
            }
    return needed
