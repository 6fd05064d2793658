from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from threadpoolctl import threadpool_info

from icl_estimators.experiments.executors import Workers, one_thread
from icl_estimators.validation import InputError

WORK = """
import os, time
from threadpoolctl import threadpool_info
import numpy

def square(shared, task):
    return os.getpid(), shared + task * task

def threads(shared, task):
    return [library["num_threads"] for library in threadpool_info()]

def slow(shared, task):
    time.sleep(60 if task else 0.01)
    return task

def fail(shared, task):
    if task == shared:
        raise ValueError(f"task {task} in process {os.getpid()}")
    return task

def die(shared, task):
    os._exit(3)

class Local:
    def __reduce__(self):
        return explode, ()

def explode():
    raise RuntimeError("only at home")
"""


@pytest.fixture
def work(module: Callable[[str, str], None]) -> ModuleType:
    module("blocks_of_work", WORK)
    sys.modules.pop("blocks_of_work", None)
    return importlib.import_module("blocks_of_work")


def test_results_come_in_the_order_of_the_tasks_from_several_processes(work: ModuleType) -> None:
    with Workers(100) as workers:
        alone = list(workers.in_order(work.square, list(range(12))))
        first = list(workers.in_order(work.square, list(range(12)), jobs=2))
        again = list(workers.in_order(work.square, list(range(3)), jobs=2))
    assert [value for _, value in alone] == [value for _, value in first] == [100 + n * n for n in range(12)]
    assert [value for _, value in again] == [100, 101, 104]
    assert {process for process, _ in alone} == {os.getpid()}
    processes = {process for process, _ in first}
    assert os.getpid() not in processes
    assert {process for process, _ in again} <= processes  # the second call starts none
    assert not multiprocessing.active_children()


def test_one_task_or_one_job_starts_no_process(work: ModuleType) -> None:
    with Workers(1) as workers:
        for tasks, jobs in (([5], 8), ([1, 2], 1), ([], 4)):
            found = list(workers.in_order(work.square, tasks, jobs=jobs))
            assert {process for process, _ in found} <= {os.getpid()}


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_block_runs_on_one_thread_and_leaves_the_others_alone(work: ModuleType, jobs: int) -> None:
    before = [library["num_threads"] for library in threadpool_info()]
    with Workers(None) as workers:
        found = list(workers.in_order(work.threads, [0, 1], jobs=jobs))
    assert {count for counts in found for count in counts} == {1}
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_one_thread_is_given_back() -> None:
    before = threadpool_info()
    with one_thread():
        assert {library["num_threads"] for library in threadpool_info()} == {1}
    assert threadpool_info() == before


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_of_a_block_comes_through_after_the_results_before_it(work: ModuleType, jobs: int) -> None:
    found: list[int] = []

    def run() -> None:
        with Workers(2) as workers:
            found.extend(workers.in_order(work.fail, list(range(6)), jobs=jobs))

    with pytest.raises(ValueError, match="task 2 in process"):
        run()
    assert found == [0, 1]
    assert wait(lambda: not multiprocessing.active_children())


def test_what_cannot_be_pickled_is_an_input_error_and_starts_nothing() -> None:
    with (
        pytest.raises(InputError, match=r"an estimator cannot be sent to worker processes .*: use --jobs 1, or define"),
        Workers(lambda: None) as workers,
    ):
        list(workers.in_order(print, [1, 2], jobs=2))  # type: ignore[arg-type]


def test_what_cannot_be_unpickled_in_a_worker_is_an_input_error(work: ModuleType) -> None:
    expected = "an estimator cannot be sent to worker processes .RuntimeError: only at home.: use --jobs 1"
    with pytest.raises(InputError, match=expected), Workers(work.Local()) as workers:
        list(workers.in_order(work.square, [1, 2], jobs=2))


def test_a_worker_that_dies_is_one_line(work: ModuleType) -> None:
    with pytest.raises(InputError, match=r"a worker process ended abruptly.*fewer --jobs"), Workers(0) as workers:
        list(workers.in_order(work.die, [1, 2, 3], jobs=2))
    assert wait(lambda: not multiprocessing.active_children())


def test_nobody_waits_for_blocks_that_nobody_wants(work: ModuleType) -> None:
    def run() -> None:
        with Workers(None) as workers:
            for _ in workers.in_order(work.slow, [0, 1, 1, 1, 1], jobs=2):
                raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert wait(lambda: not multiprocessing.active_children())
    assert time.monotonic() - began < 20


PARENT = """
import os, sys
sys.path.insert(0, sys.argv[1])
import blocks_of_work
from icl_estimators.experiments.executors import Workers

if __name__ == "__main__":
    with Workers(None) as workers:
        for _ in workers.in_order(blocks_of_work.slow, [0, 0, 1, 1], jobs=2):
            pass
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_parent_that_is_killed_leaves_no_orphan(work: ModuleType, tmp_path: Path) -> None:
    folder = str(Path(str(work.__file__)).parent)
    script = tmp_path / "parent.py"
    script.write_text(PARENT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    parent = subprocess.Popen([sys.executable, str(script), folder], env=environment, start_new_session=True)
    try:
        assert wait(lambda: len(workers_of(parent.pid)) == 2)
        time.sleep(0.5)
    finally:
        parent.kill()
        parent.wait()
    assert wait(lambda: not workers_of(parent.pid))


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


def test_a_script_without_a_main_guard_is_told_so(work: ModuleType, tmp_path: Path) -> None:
    folder = str(Path(str(work.__file__)).parent)
    script = tmp_path / "unguarded.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {folder!r})\nimport blocks_of_work\n"
        "from icl_estimators.experiments.executors import Workers\n"
        "with Workers(0) as workers:\n    list(workers.in_order(blocks_of_work.square, [1, 2], jobs=2))\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "InputError: a worker process ended abruptly" in done.stderr
    assert "if __name__ == '__main__':" in done.stderr
