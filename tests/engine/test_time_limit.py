"""No block is started after the time, and at least one is finished."""

from __future__ import annotations

import pytest

from icl_estimators.engine.executors import InProcess, Processes, in_order
from icl_estimators.engine.time_limit import OutOfTime, TimeLimit


class Clock:
    """A clock that the tests set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def ticking(clock: Clock, task: int) -> int:
    clock.now += 1.0
    return task


def plain(shared: object, task: int) -> int:
    return task


def test_it_is_over_after_its_seconds_but_not_before_a_block_is_finished() -> None:
    clock = Clock()
    limit = TimeLimit(10.0, clock=clock)
    clock.now = 11.0
    assert not limit.over
    limit.block_finished()
    assert limit.over
    clock.now = 9.9
    assert not limit.over


def test_time_before_the_limit_was_made_counts() -> None:
    clock = Clock()
    clock.now = 8.0
    limit = TimeLimit(10.0, 0.0, clock)
    limit.block_finished()
    clock.now = 10.0
    assert limit.over


@pytest.mark.parametrize(("seconds", "done"), [(0.0, [0]), (2.5, [0, 1, 2]), (4.0, [0, 1, 2, 3])])
def test_blocks_in_progress_are_finished_and_kept(seconds: float, done: list[int]) -> None:
    clock, kept = Clock(), []
    limit = TimeLimit(seconds, clock=clock)
    results = in_order(ticking, InProcess(clock), range(9), finished=lambda task, _: kept.append(task), limit=limit)
    with pytest.raises(OutOfTime):
        list(results)
    assert kept == done


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    clock = Clock()
    assert list(in_order(ticking, InProcess(clock), range(3), limit=TimeLimit(3.0, clock=clock))) == [0, 1, 2]
    assert list(in_order(ticking, InProcess(clock), [], limit=TimeLimit(0.0, clock=clock))) == []


def test_what_processes_have_in_progress_is_finished() -> None:
    kept: list[int] = []
    with Processes(None, 2) as crew:
        results = in_order(plain, crew, range(99), finished=lambda task, _: kept.append(task), limit=TimeLimit(0.0))
        with pytest.raises(OutOfTime):
            list(results)
    assert sorted(kept) == list(range(len(kept)))
    assert 1 <= len(kept) <= 8


def test_it_says_how_far_the_work_is() -> None:
    assert str(OutOfTime()) == "0 of 0 chains are done"
    assert str(OutOfTime({"risk": (50, 2000)})) == "50 of 2,000 chains are done (risk 50 of 2,000)"
