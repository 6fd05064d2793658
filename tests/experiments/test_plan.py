"""The designs of a comparison, and a piece of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from icl_estimators.engine.block_store import StudyBlocks
from icl_estimators.engine.pieces import Piece
from icl_estimators.engine.time_limit import OutOfTime, TimeLimit
from icl_estimators.estimators import ContractError, get
from icl_estimators.experiments.compare import run_study
from icl_estimators.experiments.pieces import run_piece
from icl_estimators.experiments.plan import Plan, first_look, working
from icl_estimators.experiments.study import Study
from icl_estimators.validation import InputError
from strange_rules import Raises


def study(*more: str, **options: int) -> Study:
    rules = tuple(get(name) for name in (*more, "add-one"))
    given = {"length": 12, "chains": 2000, "sequences_per_chain": 10, "decomposition_chains": 0, **options}
    return Study(rules, **given)  # type: ignore[arg-type]


def test_designs_are_those_that_the_study_has() -> None:
    sizes = {design.name: (design.chains, design.sequences) for design in Plan.of(study("bigram")).designs()}
    assert sizes == {"risk": (2000, 10), "decomposition": (0, 64), "likeness": (2000, 2), "budget": (8000, 2)}
    assert "likeness" not in {design.name for design in Plan.of(study()).designs()}


def test_a_design_gives_the_blocks_of_a_piece() -> None:
    risk, *_, budget = Plan.of(study("bigram")).designs()
    assert [block.start for block in risk.blocks()] == list(range(0, 2000, 200))
    assert risk.blocks(Piece(0, 500, 2000)) == risk.blocks()[:3]
    assert budget.blocks(Piece(500, 2000, 2000)) == budget.blocks()[2:]


def test_a_first_look_finds_what_is_wrong_with_an_estimator() -> None:
    with pytest.raises(ContractError):
        first_look(Study((Raises(), get("add-one")), length=4))


def test_out_of_time_says_how_far_the_work_is_if_blocks_are_kept(tmp_path: Path) -> None:
    plan = Plan.of(study("bigram"))

    def work(kept: StudyBlocks | None) -> None:
        with working(plan, 1, notice=print, kept=kept) as (_, other_cpus):
            assert other_cpus == {}
            raise OutOfTime

    with pytest.raises(OutOfTime, match="0 of 0 chains are done"):
        work(None)
    with pytest.raises(OutOfTime, match="0 of 12,000 chains are done"):
        work(StudyBlocks(tmp_path, {}))


def test_a_whole_run_stops_after_a_block_too() -> None:
    small = study("bigram", chains=400, sequences_per_chain=10)
    with pytest.raises(OutOfTime):
        run_study(small, limit=TimeLimit(0.0))


def test_a_piece_is_recorded_with_what_was_computed_of_each_design(tmp_path: Path) -> None:
    small = study("bigram", chains=400, length=6)
    kept = StudyBlocks(tmp_path, {"seed": 0})
    reported: list[tuple[str, int, int]] = []
    piece = Piece(200, 400, 400)
    run = run_piece(small, piece, kept, progress=lambda *what: reported.append(what))
    assert run["designs"]["risk"] == {"blocks": 1, "chains": 200, "of_chains": 400}
    assert run["designs"]["decomposition"] == {"blocks": 0, "chains": 0, "of_chains": 0}
    assert (run["kind"], run["chains_from"], run["chains_to"], run["jobs"]) == ("piece", 200, 400, 1)
    assert reported == [("risk", 200, 200)]
    again: list[tuple[str, int, int]] = []
    run_piece(small, piece, StudyBlocks(tmp_path, {"seed": 0}, resume=True), progress=lambda *what: again.append(what))
    assert again == [("risk", 200, 200)]  # it was there
    with pytest.raises(InputError, match="jobs must be an integer of at least 1"):
        run_piece(small, piece, kept, jobs=0)
