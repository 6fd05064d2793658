"""The same tasks on a dask.distributed cluster on loopback."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from icl_estimators.engine import cluster as module
from icl_estimators.engine.cluster import Cluster
from icl_estimators.engine.executors import in_order
from icl_estimators.provenance import environment
from icl_estimators.validation import InputError

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # dask's own
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of workers that were killed
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def double(shared: int, task: int) -> int:
    return shared * task


def slow_pid(shared: float, task: int) -> tuple[int, int]:
    time.sleep(shared)
    return task, os.getpid()


def never(shared: object, task: int) -> int:
    raise ValueError(f"task {task} never works")


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as running:
            yield running


def test_results_come_in_the_order_of_the_tasks(local: Any) -> None:
    with Cluster(3, local.scheduler_address) as crew:
        assert list(in_order(double, crew, range(10))) == [3 * task for task in range(10)]


def test_what_is_shared_is_sent_once_to_each_worker(local: Any) -> None:
    with Cluster(b"x" * 1_000_000, local.scheduler_address) as crew:
        list(in_order(length, crew, range(40)))
        held = crew._client.run(lambda dask_worker: sum(len(v) for v in dask_worker.data.values() if type(v) is bytes))
    assert all(size <= 1_100_000 for size in held.values())  # one copy each, not one a task


def length(shared: bytes, task: int) -> int:
    return len(shared) + task


@pytest.mark.slow
def test_a_worker_that_is_killed_takes_nothing_with_it(local: Any) -> None:
    with Cluster(0.15, local.scheduler_address) as crew:
        results = []
        for task, pid in in_order(slow_pid, crew, range(24)):
            results.append(task)
            if task == 2:
                os.kill(pid, signal.SIGKILL)
    assert results == list(range(24))


def test_a_task_that_never_works_ends_the_run(local: Any) -> None:
    with (
        Cluster(None, local.scheduler_address) as crew,
        pytest.raises(InputError, match=r"task \d never works.*tried 3"),
    ):
        list(in_order(never, crew, range(3)))


def test_versions_must_agree(local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = environment(torch=False)
    there = {**here, "versions": {**here["versions"], "numpy": "1.0"}}
    monkeypatch.setattr(module, "environment", lambda torch: there)
    with pytest.raises(InputError, match=r"has numpy \d.*, but this machine has 1\.0: install the same"):
        Cluster(None, local.scheduler_address)


def test_workers_with_another_cpu_are_named(local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(None, local.scheduler_address) as same:
        assert same.other_cpus == {}
    here = environment(torch=False)
    other = {**here, "cpu": {**here["cpu"], "features": [*here["cpu"]["features"], "AVX1024"]}}
    monkeypatch.setattr(module, "environment", lambda torch: other)
    with Cluster(None, local.scheduler_address) as mixed:
        line = "CPU features (AVX1024): there on this machine, absent on that one"
        assert mixed.other_cpus
        assert all(differs == [line] for differs in mixed.other_cpus.values())


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_one_line_within_ten_seconds() -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match=r"there is no answer from a dask scheduler at tcp://127\.0\.0\.1:1 "):
        Cluster(None, "tcp://127.0.0.1:1")
    assert time.monotonic() - began < 10


def test_an_address_that_is_none_is_one_line() -> None:
    with pytest.raises(InputError, match="there is no answer from a dask scheduler at nonsense"):
        Cluster(None, "nonsense")


def test_a_cluster_without_workers_is_one_line() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another dashboard has its usual port
        with (
            distributed.LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1") as empty,
            pytest.raises(InputError, match="has no workers: start some with `dask worker"),
        ):
            Cluster(None, empty.scheduler_address)
