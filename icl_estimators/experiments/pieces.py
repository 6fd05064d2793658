"""Running a piece of a comparison: its blocks are kept, and no table is made."""

from __future__ import annotations

import time
from typing import Any

from icl_estimators.engine.block_store import StudyBlocks
from icl_estimators.engine.executors import Notice
from icl_estimators.engine.pieces import Piece
from icl_estimators.engine.running import Progress, keep_blocks
from icl_estimators.engine.time_limit import TimeLimit
from icl_estimators.experiments.plan import Plan, first_look, working
from icl_estimators.experiments.study import Study
from icl_estimators.provenance import made_with
from icl_estimators.reading import PIECE
from icl_estimators.validation import positive_int
from icl_estimators.workers import refuse_in_worker

__all__ = ["run_piece"]


def run_piece(
    study: Study,
    piece: Piece,
    kept: StudyBlocks,
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: Progress | None = None,
    notice: Notice | None = None,
    limit: TimeLimit | None = None,
) -> dict[str, Any]:
    """Compute the blocks of a piece and return its record, without options and identity.

    Parameters
    ----------
    study : Study
        The whole study.
    piece : Piece
    kept : StudyBlocks
        Where finished blocks are stored and read.
    jobs, dask, progress, notice, limit
        As for :func:`icl_estimators.experiments.compare.run_study`.

    Raises
    ------
    OutOfTime
        If the time is over before the work.
    InputError, ContractError
        As :func:`icl_estimators.compare`, and if the cluster cannot be used.
    """
    jobs = positive_int(jobs, "jobs")
    refuse_in_worker(jobs)
    began = time.perf_counter()
    first_look(study)
    plan, say = Plan.of(study), notice or (lambda line: None)
    report = progress or (lambda what, done, total: None)
    done: dict[str, dict[str, int]] = {}
    with working(plan, jobs, dask, notice=say, kept=kept, piece=piece) as (crew, other_cpus):
        for design in plan.designs():
            keep_blocks(design, piece, crew=crew, progress=report, notice=say, kept=kept, limit=limit)
            mine = design.blocks(piece)
            done[design.name] = {"blocks": len(mine), "chains": sum(map(len, mine)), "of_chains": design.chains}
    return {
        "kind": PIECE,
        **piece.record(),
        "designs": done,
        "jobs": jobs,
        **({"other_cpus": dict(other_cpus)} if other_cpus else {}),  # of a cluster's workers
        **made_with(),
        "wall_time_s": time.perf_counter() - began,
    }
