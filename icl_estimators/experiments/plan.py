"""The plan of a comparison: its designs, what every block of them needs, and what does the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from icl_estimators.engine.cluster import Cluster
from icl_estimators.engine.designs import Blocks, Design, done_so_far
from icl_estimators.engine.executors import InProcess, Notice, Processes, one_thread
from icl_estimators.engine.pieces import Piece
from icl_estimators.engine.running import crew_for
from icl_estimators.engine.tables import Table
from icl_estimators.engine.time_limit import OutOfTime
from icl_estimators.experiments.attention import attention_example_table
from icl_estimators.experiments.budget_design import REORDERINGS, budget_block, budget_chains
from icl_estimators.experiments.checks import exact_risks
from icl_estimators.experiments.decomposition import DecompositionMoments, decomposition_block
from icl_estimators.experiments.exact import ExactRisk
from icl_estimators.experiments.likeness import LikenessDesign, LikenessMoments, likeness_block
from icl_estimators.experiments.prefix_maps import PrefixSums, map_block
from icl_estimators.experiments.risk import RiskMoments, risk_block
from icl_estimators.experiments.sampled_budget import BudgetDraws
from icl_estimators.experiments.study import Study

__all__ = ["Plan", "first_look", "working"]


@dataclass(frozen=True)
class Plan:
    """What every block of work needs.

    Attributes
    ----------
    study : Study
    likeness : LikenessDesign
        With the rules that were fitted to the study's models.
    """

    study: Study
    likeness: LikenessDesign

    @classmethod
    def of(cls, study: Study) -> Self:
        """Fit rules to the study's models.

        Raises
        ------
        ContractError
            If a model fails or breaks the contract.
        """
        with one_thread():
            return cls(study, LikenessDesign.of(study))

    def designs(self) -> list[Design[Plan]]:
        """Return the designs in the order in which they are run; one without chains has no blocks."""
        study, cells = self.study, self.study.cells
        few = self.likeness.sequences_per_chain
        nested = study.decomposition_chains, study.decomposition_sequences
        found: list[Design[Plan]] = [
            Design("risk", RiskMoments, _risk, study.chains, study.sequences_per_chain, cells),
            Design("decomposition", DecompositionMoments, _decomposition, *nested, cells),
        ]
        if len(study.estimators) > 1:
            found.append(Design("likeness", LikenessMoments, _likeness, study.chains, few, cells))
        if self.likeness.subjects:
            found.append(Design("maps", PrefixSums, _maps, study.chains, few, cells))
        return [*found, Design("budget", BudgetDraws, _budget, budget_chains(study), REORDERINGS + 1, cells)]


def _risk(plan: Plan, chains: range) -> RiskMoments:
    return risk_block(plan.study, chains)


def _decomposition(plan: Plan, chains: range) -> DecompositionMoments:
    return decomposition_block(plan.study, chains)


def _likeness(plan: Plan, chains: range) -> LikenessMoments:
    return likeness_block(plan.likeness, chains)


def _maps(plan: Plan, chains: range) -> PrefixSums:
    return map_block(plan.likeness, chains)


def _budget(plan: Plan, chains: range) -> BudgetDraws:
    return budget_block(plan.study, chains)


def first_look(study: Study) -> tuple[Table | None, dict[str, ExactRisk]]:
    """Return what is made before the long work, so that what is wrong with an estimator shows at once.

    Returns
    -------
    example : Table or None
        attention_example.csv.
    exact : dict of str to ExactRisk

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    """
    with one_thread():
        return attention_example_table(study), exact_risks(study)


@contextmanager
def working(
    plan: Plan,
    jobs: int,
    dask: str | None = None,
    *,
    notice: Notice,
    kept: Blocks | None = None,
    piece: Piece | None = None,
) -> Iterator[tuple[InProcess | Processes | Cluster, Mapping[str, list[str]]]]:
    """Give what does the work, and the dask workers that have another kind of CPU.

    Parameters
    ----------
    plan : Plan
    jobs, dask, notice
        As for :func:`icl_estimators.experiments.compare.run_study`.
    kept : Blocks, optional
        Where finished blocks are stored.
    piece : Piece, optional
        The part of the study that is computed.

    Raises
    ------
    InputError
        If the estimators cannot be sent to other processes, or the cluster cannot be used.
    OutOfTime
        If the time is over before the work; it says how far the work is if blocks are kept.
    """
    designs = plan.designs()
    sequences = plan.study.sequences
    if piece is not None:
        sequences = sum(len(block) * design.sequences for design in designs[:2] for block in design.blocks(piece))
    try:
        with crew_for(plan, sequences, jobs, dask, pack=plan.study.sealed) as crew:
            other_cpus = crew.other_cpus if isinstance(crew, Cluster) else {}
            if other_cpus:
                worker, differs = next(iter(other_cpus.items()))
                notice(f"the dask worker {worker} has another kind of CPU ({differs[0]}): numbers agree to 1e-6 only")
            yield crew, other_cpus
    except OutOfTime:
        if kept is None:
            raise
        raise OutOfTime(done_so_far(designs, kept, piece)) from None
