"""Running a comparison: a study's designs, and every table that is made of them."""

from __future__ import annotations

import math
import time
from typing import Any

from icl_estimators.engine.designs import Blocks
from icl_estimators.engine.executors import Notice, one_thread
from icl_estimators.engine.result import StudyResult
from icl_estimators.engine.running import Progress, run_design
from icl_estimators.engine.tables import Table
from icl_estimators.engine.time_limit import TimeLimit
from icl_estimators.estimators import rules_record
from icl_estimators.estimators.identity import study_identity
from icl_estimators.experiments.assembly import gamma_record, weight_files
from icl_estimators.experiments.attention import attention_table
from icl_estimators.experiments.budget_design import budget_table, no_budget
from icl_estimators.experiments.checks import check_table
from icl_estimators.experiments.circuit import circuit_table
from icl_estimators.experiments.decomposition import DecompositionMoments
from icl_estimators.experiments.departure import regret_since_least
from icl_estimators.experiments.elsewhere import mass_elsewhere
from icl_estimators.experiments.heads import heads_table
from icl_estimators.experiments.kept_chains import chains_table
from icl_estimators.experiments.likeness import LikenessMoments, likeness_table, nearest_table
from icl_estimators.experiments.mechanism import mechanism_tables
from icl_estimators.experiments.pair_table import pair_table
from icl_estimators.experiments.plan import Plan, first_look, working
from icl_estimators.experiments.prefix_maps import PrefixSums, pseudo_count_map_table, simplex_table
from icl_estimators.experiments.regret_groups import entropy_table, visits_table
from icl_estimators.experiments.risk import RiskMoments
from icl_estimators.experiments.risk_tables import (
    decomposition_table,
    difference_table,
    risk_table,
    signed_bias_table,
)
from icl_estimators.experiments.sampled_budget import BudgetDraws
from icl_estimators.experiments.smoothing_tables import few_chains, smoothing_table
from icl_estimators.experiments.strategies import strategy_table
from icl_estimators.experiments.study import Study
from icl_estimators.experiments.training_curves import training_table
from icl_estimators.inference import required_chains
from icl_estimators.provenance import made_with
from icl_estimators.validation import positive_int
from icl_estimators.workers import refuse_in_worker

__all__ = ["run_study"]

_TARGETS = (1e-3, 1e-4)


def run_study(
    study: Study,
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: Progress | None = None,
    notice: Notice | None = None,
    kept: Blocks | None = None,
    limit: TimeLimit | None = None,
) -> StudyResult:
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
        Takes one line for each worker or block that was lost and whose work is repeated.
    kept : Blocks, optional
        Where finished blocks are stored and read.
    limit : TimeLimit, optional
        No block is started after it.

    Raises
    ------
    OutOfTime
        If the time is over before the work; it says how far the work is if blocks are kept.
    InputError, ContractError
        As :func:`icl_estimators.compare`, and if the cluster cannot be used.
    """
    jobs = positive_int(jobs, "jobs")
    refuse_in_worker(jobs)
    began = time.perf_counter()
    identity = study_identity(study.estimators)  # before they are asked for anything
    example, exact = first_look(study)
    with one_thread():
        elsewhere = mass_elsewhere(study)
    plan, say = Plan.of(study), notice or (lambda line: None)
    report = progress or (lambda what, done, total: None)
    parts: dict[str, Any] = {}
    with working(plan, jobs, dask, notice=say, kept=kept) as (crew, other_cpus):
        for design in plan.designs():
            parts[design.name] = run_design(
                design.name,
                design.kind,
                design.work,
                design.chains,
                design.sequences,
                shared=plan,
                cells=design.cells,
                crew=crew,
                progress=report,
                notice=say,
                kept=kept,
                limit=limit,
            )
    risk: RiskMoments = parts["risk"]  # a study has at least two chains
    decomposition: DecompositionMoments | None = parts["decomposition"]
    likeness: LikenessMoments | None = parts.get("likeness")
    maps: PrefixSums | None = parts.get("maps")
    budget: BudgetDraws | None = parts["budget"]
    with one_thread():
        circuit, scales = circuit_table(study)
        tables: dict[str, Table | None] = {
            "risk": risk_table(study, risk),
            "chains": None if risk.kept is None else chains_table(study.names, risk.kept),
            "decomposition": None if decomposition is None else decomposition_table(study, decomposition),
            "signed_bias": signed_bias_table(study, risk),
            "differences": difference_table(study, risk),
            "pairs": pair_table(study, risk),
            "likeness": None if likeness is None else likeness_table(plan.likeness, likeness),
            "nearest": None if likeness is None else nearest_table(plan.likeness, likeness),
            "budget": budget_table(study, budget),
            "regret_by_visits": visits_table(study.names, risk.groups, study.length, study.level)
            if risk.groups
            else None,
            "regret_by_entropy": entropy_table(study.names, risk.groups, study.n_states, study.level)
            if risk.groups
            else None,
            "smoothing": smoothing_table(study, risk.smoothing),
            **mechanism_tables(study),
            "strategies": strategy_table(study, plan.likeness.fitted),
            "pseudo_count_map": None if maps is None else pseudo_count_map_table(plan.likeness, maps),
            "simplex": None if maps is None else simplex_table(plan.likeness, maps),
            "training": training_table(study.estimators),
            "attention": attention_table(study),
            "heads": heads_table(study),
            "attention_example": example,
            "circuit": circuit,
            "checks": check_table(study, risk, decomposition, exact),
        }
    run = {
        "kind": "comparison",
        "options": study.record(),
        "identity": identity,
        **gamma_record(study.estimators),
        "nearest_construction": scales,
        **({"mass_elsewhere": elsewhere} if elsewhere else {}),
        "subjects": list(plan.likeness.subjects),
        "rules": rules_record([*study.estimators, *plan.likeness.all_fitted, *plan.likeness.dictionary]),
        "fitted_rules": plan.likeness.record(),
        "chains_for_target_se": _chains_needed(study, risk),
        "few_chains": few_chains(risk.smoothing),
        "regret_since_least": _regret_since_least(study, risk),
        "no_budget": no_budget(study),  # why there is no budget.csv; empty where there is one
        "streams": ["risk", "decomposition", "tuning", "fitting", "budget", "example"],
        "jobs": jobs,
        **({"other_cpus": dict(other_cpus)} if other_cpus else {}),  # of a cluster's workers
        "threads": 1,  # in each of them
        **made_with(),
        "wall_time_s": time.perf_counter() - began,
    }
    return StudyResult({name: table for name, table in tables.items() if table is not None}, run)


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
    targets = (*_TARGETS, *([] if study.target_se is None else [study.target_se]))
    for (name, metric), moments in risk.risk.items():
        if metric in ("kl_nats", "regret_nats"):
            counts = {f"{target:g}": required_chains(moments.select([study.length]), target)[0] for target in targets}
            needed.setdefault(name, {})[metric] = {
                target: None if math.isnan(count) else float(count) for target, count in counts.items()
            }
    return needed
