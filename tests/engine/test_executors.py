"""Blocks in order, on every crew, through losses."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from icl_estimators.engine.executors import ATTEMPTS, InProcess, Processes, TaskFailed, in_order, one_thread
from icl_estimators.validation import InputError


def double(shared: int, task: int) -> int:
    return shared * task


def slow_first(shared: float, task: int) -> int:
    if task == 0:
        time.sleep(shared)
    return task


def fails_while_file_is_short(shared: Path, task: int) -> int:
    """Fail on task 1 as long as fewer than two tries are on record."""
    if task == 1:
        tries = len(shared.read_text()) if shared.exists() else 0
        shared.write_text("x" * (tries + 1))
        if tries < 2:
            raise OSError("no luck yet")
    return task


def always_fails(shared: object, task: int) -> int:
    if task == 2:
        raise ValueError("never works")
    return task


def bad_input(shared: Path, task: int) -> int:
    with shared.open("a") as file:
        file.write(f"{task}\n")
    raise InputError("fix this")


def dies(shared: tuple[Path, int], task: int) -> int:
    """Kill the process on task 1 until it has died `shared[1]` times."""
    record, deaths = shared
    if task == 1:
        died = len(record.read_text()) if record.exists() else 0
        if died < deaths:
            record.write_text("x" * (died + 1))
            os.kill(os.getpid(), signal.SIGKILL)
    return task


def threads(shared: object, task: int) -> list[int]:
    return [library["num_threads"] for library in threadpool_info()]


def slow_after_zero(shared: object, task: int) -> int:
    time.sleep(60 if task else 0.01)
    return task


def pid(shared: object, task: int) -> int:
    time.sleep(0.05)
    return os.getpid()


class Countable:
    """Counts how often it is pickled."""

    pickled = 0

    def __getstate__(self) -> dict[str, int]:
        type(self).pickled += 1
        return {}


class Homebody:
    """Can leave, but not arrive."""

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return explode, ()


def explode() -> None:
    raise RuntimeError("only at home")


class Unpicklable:
    def __reduce__(self) -> str:
        raise TypeError("stays here")


def test_in_process_yields_in_order() -> None:
    assert list(in_order(double, InProcess(2), [3, 1, 2])) == [6, 2, 4]


@pytest.mark.slow
def test_processes_yield_in_the_order_of_the_tasks_not_of_their_ends() -> None:
    came: list[int] = []
    with Processes(1.0, 2) as crew:
        results = list(in_order(slow_first, crew, range(5), finished=lambda task, result: came.append(task)))
    assert results == [0, 1, 2, 3, 4]
    assert sorted(came) == results
    assert came[0] != 0  # kept as they come, before their turn


def test_what_fails_for_a_while_is_tried_again(tmp_path: Path) -> None:
    lines: list[str] = []
    crew = InProcess(tmp_path / "tries")
    assert list(in_order(fails_while_file_is_short, crew, range(3), notice=lines.append)) == [0, 1, 2]
    assert len(lines) == 2
    assert "no luck yet" in lines[0]


def test_three_failures_end_the_run_and_keep_what_was_finished() -> None:
    kept: list[int] = []
    with pytest.raises(TaskFailed, match=rf"ValueError: never works \(task 2, tried {ATTEMPTS} times\)"):
        list(in_order(always_fails, InProcess(None), range(5), finished=lambda task, result: kept.append(task)))
    assert kept == [0, 1]


def test_input_that_will_not_mend_itself_is_not_tried_again(tmp_path: Path) -> None:
    record = tmp_path / "calls"
    with pytest.raises(InputError, match="fix this"):
        list(in_order(bad_input, InProcess(record), range(5)))
    assert record.read_text() == "0\n"


def test_a_killed_worker_costs_nothing_but_time(tmp_path: Path) -> None:
    lines: list[str] = []
    with Processes((tmp_path / "deaths", 2), 2) as crew:
        assert list(in_order(dies, crew, range(6), notice=lines.append)) == list(range(6))
    assert any("a worker was lost" in line for line in lines)


@pytest.mark.slow
def test_a_task_that_kills_its_worker_every_time_ends_the_run_and_is_named(tmp_path: Path) -> None:
    with Processes((tmp_path / "deaths", 99), 2) as crew, pytest.raises(TaskFailed, match=r"unexpectedly.*task 1, tri"):
        list(in_order(dies, crew, range(6)))


def test_what_is_shared_travels_once_however_many_tasks_there_are() -> None:
    Countable.pickled = 0
    with Processes(Countable(), 2) as crew:
        list(in_order(pid, crew, range(12)))
    assert Countable.pickled == 1
    assert len(pickle.dumps((pid, range(50, 100)))) < 200


def test_what_cannot_travel_is_said_before_the_work() -> None:
    with pytest.raises(InputError, match=r"cannot be sent to worker processes.*--jobs 1"):
        Processes(Unpicklable(), 2)


def test_in_flight_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with Processes(None, 1) as crew:
        open_now, most, lock = 0, 0, threading.Lock()
        submit = crew.submit

        def counted(work, task):  # type: ignore[no-untyped-def]
            nonlocal open_now, most
            with lock:
                open_now += 1
                most = max(most, open_now)
            future = submit(work, task)

            def closed(_: object) -> None:
                nonlocal open_now
                with lock:
                    open_now -= 1

            future.add_done_callback(closed)
            return future

        monkeypatch.setattr(crew, "submit", counted)
        list(in_order(pid, crew, range(20)))
    assert most <= crew.in_flight


def test_what_cannot_arrive_is_an_input_error() -> None:
    expected = "cannot be sent to worker processes .RuntimeError: only at home.: use --jobs 1"
    with pytest.raises(InputError, match=expected), Processes(Homebody(), 2) as crew:
        list(in_order(pid, crew, [1, 2]))


def test_every_block_runs_on_one_thread_and_leaves_the_others_alone() -> None:
    before = [library["num_threads"] for library in threadpool_info()]
    alone = list(in_order(threads, InProcess(None), [0, 1]))
    with Processes(None, 2) as crew:
        apart = list(in_order(threads, crew, [0, 1]))
    assert {count for counts in alone + apart for count in counts} == {1}
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_one_thread_is_given_back() -> None:
    before = threadpool_info()
    with one_thread():
        assert {library["num_threads"] for library in threadpool_info()} == {1}
    assert threadpool_info() == before


def test_one_crew_serves_several_calls_with_the_same_processes() -> None:
    with Processes(None, 2) as crew:
        first = set(in_order(pid, crew, range(12)))
        again = set(in_order(pid, crew, range(12)))
    assert first | again == first
    assert os.getpid() not in first
    assert not multiprocessing.active_children()


def test_nobody_waits_for_blocks_that_nobody_wants() -> None:
    def run() -> None:
        with Processes(None, 2) as crew:
            for _ in in_order(slow_after_zero, crew, [0, 1, 1, 1, 1]):
                raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert wait(lambda: not multiprocessing.active_children())
    assert time.monotonic() - began < 30


PARENT = """
import time
from icl_estimators.engine.executors import Processes, in_order

def slow(shared, task):
    time.sleep(60 if task else 0.01)

if {guard}:
    with Processes(None, 2) as crew:
        for _ in in_order(slow, crew, [0, 0, 1, 1]):
            pass
"""


def script(tmp_path: Path, guard: str) -> tuple[list[str], dict[str, str]]:
    path = tmp_path / "parent.py"
    path.write_text(PARENT.format(guard=guard), encoding="utf-8")
    return [sys.executable, str(path)], {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_parent_that_is_killed_leaves_no_orphan(tmp_path: Path) -> None:
    command, environment = script(tmp_path, "__name__ == '__main__'")
    parent = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        assert wait(lambda: len(workers_of(parent.pid)) == 2)
        time.sleep(0.5)
    finally:
        parent.kill()
        parent.wait()
    assert wait(lambda: not workers_of(parent.pid))


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    command, environment = script(tmp_path, "True")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert "NestedWorkers: a worker process tried to start workers of its own: put the call under" in done.stderr


def workers_of(session: int) -> list[str]:
    """Return the command lines of the living worker processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, IndexError):
            continue
        if entry.name.isdigit() and int(state[3]) == session and state[0] != "Z" and "spawn_main" in command:
            found.append(command)
    return found


def wait(done: Callable[[], bool], seconds: float = 30) -> bool:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if done():
            return True
        time.sleep(0.05)
    return False
