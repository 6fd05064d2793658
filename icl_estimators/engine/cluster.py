"""The same tasks on a dask.distributed cluster (extra ``icl-estimators[cluster]``)."""

from __future__ import annotations

import gc
import hashlib
import pickle
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from icl_estimators.engine.executors import cannot_travel, one_thread
from icl_estimators.provenance import environment, environment_differences, spelled
from icl_estimators.validation import InputError
from icl_estimators.workers import at_work, refuse_in_worker

__all__ = ["Cluster"]

Task = TypeVar("Task")
Result = TypeVar("Result")

ANSWER_WITHIN_S = 8
_MUST_AGREE = ("icl-estimators", "icl-estimators source", "numpy", "scipy", "torch")
_ELSEWHERE = "{}: {} on this machine, {} on that one"


class Cluster:
    """The workers of a dask.distributed scheduler, as a context manager.

    What every task needs, the model's weights included, is sent to each worker once; a task is a function's name and a
    range of chains.

    Parameters
    ----------
    shared : object
        What every task needs.
    address : str
        The scheduler's, as in ``tcp://10.0.0.1:8786``.

    Attributes
    ----------
    other_cpus : dict of str to list of str
        Workers with another kind of processor than this machine's, and in what it differs: with them, numbers agree to
        1e-6 and not to the last bit.

    Raises
    ------
    InputError
        If dask.distributed is not installed, the scheduler does not answer within 8 s, it has no workers, a worker
        lacks this package or has another version of it, NumPy, SciPy or torch, `shared` cannot be pickled, or this is a
        worker itself.
    """

    def __init__(self, shared: Any, address: str) -> None:
        refuse_in_worker(2)
        self.other_cpus: dict[str, list[str]] = {}
        try:
            from distributed import Client
        except ImportError:
            raise InputError(
                "--dask needs dask.distributed: install it with pip install 'icl-estimators[cluster]'"
            ) from None
        try:
            package = pickle.dumps(shared)
        except Exception as error:
            raise cannot_travel(error) from error
        refusal = ""
        try:
            self._client = Client(address, timeout=ANSWER_WITHIN_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            refusal = _first_line(error)
        if refusal:
            gc.collect()  # the client that did not connect is closed now; closed later, in a new thread, it can hang
            raise InputError(
                f"there is no answer from a dask scheduler at {address} ({refusal}): start one with `dask scheduler` "
                "and give the tcp:// address that it prints"
            )
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            if not workers:
                raise InputError(
                    f"the dask scheduler at {address} has no workers: start some with `dask worker {address}`"
                )
            self._check_versions()
            key = f"icl-estimators-{hashlib.sha256(package).hexdigest()[:16]}"
            self._package = self._client.scatter({key: package}, broadcast=True)[key]
            self._executor = self._client.get_executor(pure=False, retries=0)
        except BaseException:
            self._client.close()
            raise
        self.in_flight = 2 * max(1, sum(worker["nthreads"] for worker in workers.values()))

    def _check_versions(self) -> None:
        def versions() -> dict[str, Any]:  # nested, so that it travels by value to a worker without the package
            try:
                from icl_estimators.provenance import environment
            except ImportError:
                return {}
            made_by = environment(torch=False)
            return {**made_by["versions"], "cpu": made_by["cpu"]}

        here = environment(torch=False)
        for worker, there in self._client.run(versions).items():
            if not there:
                raise InputError(f"the dask worker {worker} cannot import icl_estimators: install it there")
            for name in _MUST_AGREE:
                if there.get(name) != here["versions"][name]:
                    raise InputError(
                        f"the dask worker {worker} has {name} {_plain(there.get(name))}, but this machine has "
                        f"{_plain(here['versions'][name])}: install the same version on both machines"
                    )
            differs = environment_differences({"cpu": here["cpu"]}, {"cpu": there["cpu"]}, _ELSEWHERE)
            if differs:
                self.other_cpus[worker] = differs

    def submit(self, work: Callable[[Any, Task], Result], task: Task) -> Future[Result]:
        """Start the work on some worker."""
        future: Future[Result] = self._executor.submit(_on_worker, work, self._package, task)
        return future

    def worker_lost(self, error: BaseException) -> bool:
        """Dask moves a task from a lost worker to another by itself; this task was lost with several workers."""
        return False

    def explain(self) -> None:
        """Nothing to explain: the scheduler knows."""

    def renew(self) -> None:
        """Nothing to do: the scheduler knows which workers it has."""

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of futures that are given up
            self._executor.shutdown(wait=kind is None)
            self._client.close()


_unpacked: dict[bytes, Any] = {}  # on a worker: the latest study that it has unpacked


def _on_worker(work: Callable[[Any, Task], Result], package: bytes, task: Task) -> Result:
    digest = hashlib.sha256(package).digest()
    with at_work():
        if digest not in _unpacked:
            shared = pickle.loads(package)
            _unpacked.clear()
            _unpacked[digest] = shared
        with one_thread():
            return work(_unpacked[digest], task)


def _plain(version: str | None) -> str:
    return spelled(version).strip('"')


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
