"""Effective smoothing: which pseudo-count, or which other rule, does an estimator act like, and by what mechanism."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from icl_estimators.engine.blocks import blocks
from icl_estimators.engine.executors import Notice, in_order, one_thread
from icl_estimators.engine.result import StudyResult
from icl_estimators.engine.running import Progress, crew_for, run_design
from icl_estimators.engine.tables import Table
from icl_estimators.estimators import Estimator, rules_record
from icl_estimators.estimators.identity import study_identity
from icl_estimators.experiments.assembly import gamma_record
from icl_estimators.experiments.interventions import (
    InterventionMoments,
    intervention_block,
    intervention_table,
    intervention_targets,
)
from icl_estimators.experiments.mechanism import mechanism_tables
from icl_estimators.experiments.prediction import predict
from icl_estimators.experiments.smoothing_tables import few_chains, smoothing_table
from icl_estimators.experiments.study import Study
from icl_estimators.inference import merge_in_order
from icl_estimators.inference.trees import Summary
from icl_estimators.notes import Code, Note
from icl_estimators.provenance import made_with
from icl_estimators.pseudo_counts import (
    FAMILIES,
    GROUPINGS,
    FamilyFit,
    Grouping,
    Prefixes,
    fit_families,
    smoothing_family,
)
from icl_estimators.pseudo_counts.streaming import PANEL_VISITS, SmoothingMoments, SmoothingPrefixes, SmoothingSums
from icl_estimators.sources import occurrence_counts, transition_counts
from icl_estimators.validation import InputError, positive_int
from icl_estimators.workers import refuse_in_worker

__all__ = [
    "SmoothingDesign",
    "SmoothingPart",
    "checked_families",
    "family_fits",
    "run_smoothing",
    "smoothing_block",
]

FAMILY_PREFIXES = 2_000_000
"""Prefixes that families are fitted to at most, so that memory stays bounded: 2,000 chains × 10 × 100."""


@dataclass(frozen=True)
class SmoothingDesign:
    """What decides the numbers of a smoothing study.

    Attributes
    ----------
    study : Study
        Estimators and chains; its decomposition design is not used.
    by : tuple of {"overall", "context-length", "visits"}
    families : tuple of str
        Compared with `add-constant` over all prefixes; empty for none.
    interventions : bool
        Whether trained models are intervened on.

    Raises
    ------
    InputError
        If a grouping or family is unknown or named twice, or no grouping is named.
    """

    study: Study
    by: tuple[Grouping, ...] = GROUPINGS
    families: tuple[str, ...] = FAMILIES
    interventions: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "families", checked_families(self.by, self.families, self.study.n_states))

    @property
    def family_chains(self) -> int:
        """Chains that families are fitted to."""
        chains = max(2, FAMILY_PREFIXES // (self.study.sequences_per_chain * self.study.length))
        return min(self.study.chains, chains)

    def record(self) -> dict[str, Any]:
        """Return everything that decides the study's numbers, as plain values: the `options` of run.json."""
        options = self.study.record()
        for unused in ("reference", "decomposition_chains", "decomposition_sequences", "exact_checks"):
            del options[unused]
        own = {"by": list(self.by), "families": list(self.families), "interventions": self.interventions}
        return options | own


def checked_families(by: Sequence[str], families: Sequence[str], n_states: int) -> tuple[str, ...]:
    """Check groupings and families, and return the families with `add-constant`, which is compared with, first.

    Raises
    ------
    InputError
        If a grouping or family is unknown or named twice, or no grouping is named.
    """
    if not by:
        raise InputError(f"no grouping is given: choose from {', '.join(GROUPINGS)}")
    for grouping in by:
        if grouping not in GROUPINGS:
            raise InputError(f"unknown grouping {grouping!r}: choose from {', '.join(GROUPINGS)}")
    for family in families:
        smoothing_family(family, n_states)
    for named in (by, families):
        for name in named:
            if list(named).count(name) > 1:
                raise InputError(f"{name} is given twice: give each once")
    if families and families[0] != "add-constant":
        return ("add-constant", *(family for family in families if family != "add-constant"))
    return tuple(families)


def run_smoothing(
    design: SmoothingDesign,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    notice: Notice | None = None,
) -> StudyResult:
    """Run a smoothing study and make its tables.

    Parameters
    ----------
    design : SmoothingDesign
    jobs : int
        Processes on this machine.
    progress, notice : callable, optional
        As for :func:`icl_estimators.experiments.compare.run_study`.

    Raises
    ------
    InputError, ContractError
        As :func:`icl_estimators.effective_smoothing`.
    """
    jobs = positive_int(jobs, "jobs")
    refuse_in_worker(jobs)
    identity = study_identity(design.study.estimators)  # before they are asked for anything
    began = time.perf_counter()
    report, say = progress or (lambda what, done, total: None), notice or (lambda line: None)
    study = design.study
    targets = intervention_targets(study) if design.interventions else ()
    families: dict[str, tuple[FamilyFit, ...]] = {}
    tables: dict[str, Table] = {}
    with crew_for(design, study.chains * study.sequences_per_chain, jobs, pack=study.sealed) as crew:
        run = partial(
            run_design,
            chains=study.chains,
            sequences=study.sequences_per_chain,
            shared=design,
            cells=study.cells,
            crew=crew,
            progress=report,
            notice=say,
        )
        part = run("smoothing", SmoothingPart, smoothing_block)
        if design.families and "overall" in design.by:
            names = study.names
            for done, fits in enumerate(in_order(family_fits, crew, names, notice=say), start=1):
                families[names[done - 1]] = fits
                report("families", done * study.chains // len(names), study.chains)
        changed = run("interventions", InterventionMoments, _intervention_block) if targets else None
    assert part is not None  # a study has at least two chains
    note: str = ""
    if design.family_chains < study.chains:
        note = Note(Code.FAMILY_CHAINS, chains=design.family_chains)
    with one_thread():
        tables["smoothing"] = smoothing_table(study, part.moments, families, family_note=note)
        if changed is not None:
            tables["interventions"] = intervention_table(study, changed)
            tables |= mechanism_tables(study, purpose="smoothing")
    record = {
        "kind": "smoothing",
        "options": design.record(),
        "identity": identity,
        "rules": rules_record(study.estimators),
        **gamma_record(study.estimators),
        "intervened_on": [target.name for target in targets],
        "family_formulas": {name: smoothing_family(name, study.n_states).formula for name in design.families},
        "few_chains": few_chains(part.moments),
        "streams": ["smoothing", "tuning"],
        "jobs": jobs,
        "threads": 1,  # in each of them
        **made_with(),
        "wall_time_s": time.perf_counter() - began,
    }
    return StudyResult(tables, record)


@dataclass(frozen=True, eq=False)
class SmoothingPart(Summary):
    """The moments of every estimator and recipe, by name."""

    moments: dict[str, SmoothingMoments]


def smoothing_block(design: SmoothingDesign, chains: range) -> SmoothingPart:
    """Draw `chains` from the smoothing stream, ask every estimator, and keep what fits need.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    InputError
        If a chain lacks the stationary law that the study starts from.
    """
    study = design.study
    drawn = _Drawn(study, chains)
    panels = [visits for visits in PANEL_VISITS if visits < study.length] if "visits" in design.by else []
    sums: dict[str, SmoothingSums] = {}
    prefixes = SmoothingPrefixes(drawn.counts, design.by, panels)
    for estimator in study.estimators:
        sums[estimator.name] = prefixes.sums(drawn.ask(estimator))
    for recipe, runs in study.recipes.items():
        sums[recipe] = SmoothingSums.average([sums[run] for run in runs])
    units, n_first = study.units(len(chains)), study.chains // 2 - chains.start
    return SmoothingPart({name: merge_in_order(found.moments(units, n_first)) for name, found in sums.items()})


def _intervention_block(design: SmoothingDesign, chains: range) -> InterventionMoments:
    return intervention_block(design.study, chains)


def family_fits(design: SmoothingDesign, name: str) -> tuple[FamilyFit, ...]:
    """Fit every family to one estimator, or to the pooled objective of a recipe's training runs; none without prefixes.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    """
    study = design.study
    names = study.recipes.get(name, (name,))
    rules = [rule for rule in study.estimators if rule.name in names]
    n_chains = design.family_chains
    halves: list[list[Prefixes]] = [[], []]
    for task in blocks(n_chains, study.sequences_per_chain, study.cells):
        middle = min(max(n_chains // 2, task.start), task.stop)
        for half, chains in zip(halves, (range(task.start, middle), range(middle, task.stop)), strict=True):
            if len(chains):
                half += _prefixes(study, rules, chains)
    first, second = (Prefixes.join(half) for half in halves)
    if not first.number.sum() + second.number.sum():
        return ()  # contexts of one token: no transition has been seen
    return fit_families(first, second, families=design.families, level=study.level)


_PREFIX_CHAINS = 50  # whose columns fit a cache


def _prefixes(study: Study, rules: Sequence[Estimator], chains: range) -> list[Prefixes]:
    drawn = _Drawn(study, chains)
    predictions = [drawn.ask(rule) for rule in rules]
    occurrences = occurrence_counts(drawn.tokens, study.n_states).reshape(drawn.shape)
    tokens = drawn.tokens.reshape(drawn.shape[:3])
    parts = []
    for first in range(0, len(chains), _PREFIX_CHAINS):
        cut = slice(first, first + _PREFIX_CHAINS)
        parts.append(Prefixes.of([p[cut] for p in predictions], tokens[cut], drawn.counts[cut], occurrences[cut]))
    return parts


class _Drawn:
    """Sequences of some chains with their transition counts."""

    def __init__(self, study: Study, chains: range) -> None:
        self.study, self.chains = study, chains
        self.tokens = study.source.sample(
            chains,
            sequences_per_chain=study.sequences_per_chain,
            length=study.length,
            seed=study.seed,
            purpose="smoothing",
        ).inputs
        self.shape = (len(chains), study.sequences_per_chain, study.length, study.n_states)
        self.counts = transition_counts(self.tokens, study.n_states).reshape(self.shape)

    def ask(self, estimator: Estimator) -> Any:
        """Return checked predictions, shape (R, S, T, K)."""
        return predict(estimator, self.tokens, self.chains, self.study.sequences_per_chain)
