"""Whatever goes wrong on the way, the tables are those of an undisturbed run."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DESIGN = ["--estimators", "construction-softmax,bigram,add-one", "--chains", "1200", "--sequences-per-chain", "10"]
DESIGN += ["--length", "20", "--decomposition-chains", "100", "--decomposition-sequences", "16", "--no-report"]


def start(out: Path, *more: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "icl_estimators.evaluate", *DESIGN, "--out", str(out), *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    return subprocess.Popen(command, text=True, **{"cwd": ROOT, **pipes, **options})


def finish(out: Path, *more: str, **options: Any) -> tuple[int, str, str]:
    process = start(out, *more, **options)
    printed, complained = process.communicate(timeout=300)
    return process.returncode, printed, complained


def tables(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.glob("*.csv")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    status, _, complained = finish(out, "--jobs", "1")
    assert status == 0, complained
    return out


def wait_for_blocks(out: Path, process: subprocess.Popen[str], count: int = 1) -> None:
    deadline = time.monotonic() + 120
    while len(list((out / "blocks").glob("*/*.npz"))) < count and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def worker_of(process: subprocess.Popen[str]) -> int:
    """Wait for a worker process and return its number."""
    while process.poll() is None:
        command = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process.pid)]
        children = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        workers = [int(line.split()[0]) for line in children.splitlines() if "spawn_main" in line]
        if workers:
            return workers[-1]
        time.sleep(0.02)
    raise AssertionError("the run ended without a worker")


def kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_a_killed_run_resumed_gives_the_same_tables(undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(out, "--jobs", "2")
    wait_for_blocks(out, process, 2)
    assert process.poll() is None, "it ended before it could be killed"
    kill(process)
    status, _, complained = finish(out, "--jobs", "2")
    assert status == 2
    assert "continue with --resume, or start again with --force" in complained
    status, _, complained = finish(out, "--resume", "--seed", "7")
    assert (status, "seed was 0 and is now 7" in complained) == (2, True)
    status, _, complained = finish(out, "--jobs", "2", "--resume")
    assert status == 0, complained
    assert tables(out) == tables(undisturbed)
    assert not (out / "blocks").exists()
    status, printed, _ = finish(out, "--resume")
    assert (status, "finished: there is nothing left to do" in printed) == (0, True)


@pytest.mark.slow
def test_a_killed_pool_worker_is_made_good(undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(out, "--jobs", "2")
    os.kill(worker_of(process), signal.SIGKILL)
    _, complained = process.communicate(timeout=300)
    assert process.returncode == 0, complained
    assert "a worker was lost" in complained
    assert tables(out) == tables(undisturbed)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_blocks_and_one_line_that_says_how_to_go_on(
    tmp_path: Path, hearing: dict[str, Any], number: int, status: int
) -> None:
    out = tmp_path / "out"
    process = start(out, "--jobs", "2", **hearing)
    wait_for_blocks(out, process)
    os.kill(process.pid, number)
    _, complained = process.communicate(timeout=60)
    assert process.returncode == status
    assert complained.count("\n") == 1
    assert complained.strip().splitlines()[-1].endswith("continue with --resume")
    assert list((out / "blocks").glob("*/*.npz"))


RULE = """
import numpy as np
from constant_of_mine import CONSTANT

class Slow:
    name, n_states = "slow", 3

    def predict_proba(self, tokens):
        import time
        time.sleep(0.3 if len(tokens) > 100 else 0)
        out = np.full((*tokens.shape, 3), (1 - CONSTANT) / 2)
        np.put_along_axis(out, tokens[:, :, None], CONSTANT, axis=2)
        return out
"""


@pytest.fixture
def stopped(tmp_path: Path) -> tuple[Path, dict[str, Any], tuple[str, ...]]:
    """Kill a study of a rule that takes a constant from another module; return its folder and how to start it."""
    (tmp_path / "rule_of_mine.py").write_text(RULE, encoding="utf-8")
    (tmp_path / "constant_of_mine.py").write_text("CONSTANT = 0.5\n", encoding="utf-8")
    out = tmp_path / "out"
    options = {"env": {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}, "cwd": tmp_path}
    estimators = ("--estimators", "rule_of_mine:Slow,add-one", "--jobs", "1")
    process = start(out, *estimators, **options)
    wait_for_blocks(out, process, 1)
    assert process.poll() is None, "it ended before it could be killed"
    kill(process)
    return out, options, estimators


@pytest.mark.slow
def test_a_rule_that_was_edited_is_another_study(
    stopped: tuple[Path, dict[str, Any], tuple[str, ...]], tmp_path: Path
) -> None:
    out, options, estimators = stopped
    blocks = sorted((out / "blocks").rglob("*.npz"))
    (tmp_path / "constant_of_mine.py").write_text("CONSTANT = 0.6\n", encoding="utf-8")
    status, printed, complained = finish(out, *estimators, "--resume", **options)
    assert (status, printed, complained.count("\n")) == (2, "", 1)
    assert "the source of slow (module constant_of_mine) was " in complained
    assert complained.endswith("restore what differs, or start again with --force\n")
    assert sorted((out / "blocks").rglob("*.npz")) == blocks
    (tmp_path / "constant_of_mine.py").write_text("CONSTANT = 0.5\n", encoding="utf-8")
    status, _, complained = finish(out, *estimators, "--resume", **options)
    assert status == 0
    # It says what the rule will be asked for and, on a slow machine, how far it is.
    known = r"\w+: [\d,]+ of [\d,]+ chains(, about \d+ s left)?|slow: about [\d,]+ sequences .*"
    assert [line for line in complained.splitlines() if not re.fullmatch(known, line)] == []
    (tmp_path / "rule_of_mine.py").write_text(RULE + "\n", encoding="utf-8")
    for again in ("--resume", "--quiet"):  # finished, but not this very study
        status, printed, complained = finish(out, *estimators, again, **options)
        assert (status, printed) == (2, "")
        assert "holds the results of another study (the source of slow (module rule_of_mine): " in complained


@pytest.mark.slow
def test_a_folder_has_one_writer(undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(out, "--jobs", "1")
    wait_for_blocks(out, process)
    os.kill(process.pid, signal.SIGSTOP)  # it lives, and does not end in the meantime
    for more in (["--resume"], ["--seed", "1", "--force"]):
        status, printed, complained = finish(out, *more)
        assert (status, printed, complained.count("\n")) == (2, "", 1), complained
        assert f"another process is writing to {out}: wait until it ends, stop it, or name another" in complained
    os.kill(process.pid, signal.SIGCONT)
    _, complained = process.communicate(timeout=300)
    assert process.returncode == 0, complained
    assert tables(out) == tables(undisturbed)
    assert not list(out.glob(".*"))


@pytest.mark.slow
def test_killed_at_ten_random_moments_and_resumed(undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    moments = random.Random(0)
    for _ in range(10):
        process = start(out, "--jobs", "2", *(["--resume"] if out.exists() else []))
        try:
            process.wait(timeout=1.5 + 4 * moments.random())
        except subprocess.TimeoutExpired:
            kill(process)
        else:
            process.communicate()
    if not (out / "run.json").exists():
        status, _, complained = finish(out, "--jobs", "2", "--resume")
        assert status == 0, complained
    assert tables(out) == tables(undisturbed)


@pytest.mark.slow
def test_a_cluster_gives_the_same_tables_though_a_worker_is_killed(undisturbed: Path, tmp_path: Path) -> None:
    if shutil.which("dask", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("dask.distributed is not installed")
    dask = str(Path(sys.executable).parent / "dask")
    address = "tcp://127.0.0.1:18793"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT, "start_new_session": True}
    helpers = [
        subprocess.Popen([dask, "scheduler", "--host", "127.0.0.1", "--port", "18793", "--no-dashboard"], **quiet)
    ]
    try:
        for _ in range(2):
            worker = [dask, "worker", address, "--nworkers", "1", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            helpers.append(subprocess.Popen(worker, **quiet))
        time.sleep(6)
        out = tmp_path / "out"
        process = start(out, "--dask", address)
        wait_for_blocks(out, process)
        os.killpg(helpers[-1].pid, signal.SIGKILL)
        _, complained = process.communicate(timeout=300)
        assert process.returncode == 0, complained
        assert tables(out) == tables(undisturbed)
    finally:
        for helper in helpers:
            if helper.poll() is None:
                os.killpg(helper.pid, signal.SIGKILL)
            helper.wait()
