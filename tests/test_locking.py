"""One writer to a folder: a living one is respected, a dead one is no obstacle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from icl_estimators.engine.folder import save_tables
from icl_estimators.locking import sole_writer
from icl_estimators.report import main as report
from icl_estimators.schemas import SCHEMAS
from icl_estimators.smoothing import main as smoothing
from icl_estimators.train import main as train
from icl_estimators.validation import InputError

ROOT = Path(__file__).parents[1]
HOLD = """
import sys, time
from pathlib import Path
from icl_estimators.locking import sole_writer

with sole_writer(Path(sys.argv[1]), *sys.argv[2:]):
    print("held", flush=True)
    time.sleep(120)
"""


def hold(folder: Path, *part: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), *part], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A folder that another process is writing to."""
    process = hold(tmp_path / "out")
    yield tmp_path / "out"
    process.kill()
    process.communicate()


def test_a_living_writer_is_respected_and_a_killed_one_is_no_obstacle(tmp_path: Path) -> None:
    process = hold(tmp_path)
    message = f"another process is writing to {tmp_path}: .*--force does not override"
    with pytest.raises(InputError, match=message), sole_writer(tmp_path):
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert (tmp_path / ".lock").exists()
    with sole_writer(tmp_path):
        pass
    assert not (tmp_path / ".lock").exists()


def test_the_same_thread_may_hold_it_several_times_over(tmp_path: Path) -> None:
    with sole_writer(tmp_path):
        with sole_writer(tmp_path / "." / ""):
            pass
        assert (tmp_path / ".lock").exists()
        found: list[str] = []

        def other() -> None:
            try:
                with sole_writer(tmp_path):
                    found.append("held")
            except InputError as error:
                found.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert "another process is writing to" in found[0]
    assert list(tmp_path.iterdir()) == []


def test_parts_are_held_one_by_one(tmp_path: Path) -> None:
    process = hold(tmp_path, "k3-seed0")
    with sole_writer(tmp_path, "k3-seed1"):
        pass
    message = f"another process is writing to k3-seed0 in {tmp_path}"
    with pytest.raises(InputError, match=message), sole_writer(tmp_path, "k3-seed0"):
        pass
    process.kill()
    process.communicate()


def test_a_folder_that_cannot_be_locked(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with pytest.raises(InputError, match="cannot lock"), sole_writer(tmp_path):
        pass
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file, not a folder"), sole_writer(tmp_path / "file"):
        pass


def test_every_command_that_writes_respects_it(held: Path, refused, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run = {"options": {"seed": 0}}
    with pytest.raises(InputError, match="another process is writing to"):
        save_tables(held, {}, run, force=True)
    small = ["--estimators", "add-one", "--chains", "2", "--families", "none", "--out", str(held), "--force"]
    assert "another process is writing to" in refused(smoothing, *small)
    options = '{"options": {"estimators": ["add-one"], "length": 3, "level": 0.95}}'
    (held / "run.json").write_text(options, encoding="utf-8")
    (held / "risk.csv").write_text(",".join(SCHEMAS["risk"].names) + "\n", encoding="utf-8")
    assert "another process is writing to" in refused(report, str(held), "--html")
    process = hold(tmp_path / "runs", "k3-seed1")
    arguments = ["--steps", "1", "--batch", "1", "--length", "4", "--out", str(tmp_path / "runs"), "--force"]
    line = refused(train, *arguments, "--seed", "0..1")
    process.kill()
    process.communicate()
    assert f"another process is writing to k3-seed1 in {tmp_path / 'runs'}" in line
