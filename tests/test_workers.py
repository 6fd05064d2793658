"""A worker never starts workers, whatever module it is made to import."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from icl_estimators import compare, effective_smoothing
from icl_estimators.engine.cluster import Cluster
from icl_estimators.engine.executors import Processes
from icl_estimators.options import command
from icl_estimators.transformer.config import ModelConfig
from icl_estimators.transformer.training.processes import train_many
from icl_estimators.transformer.training.runs import Run
from icl_estimators.transformer.training.trainer import Recipe
from icl_estimators.validation import InputError
from icl_estimators.workers import (
    NestedWorkers,
    at_work,
    refuse_command_in_worker,
    refuse_in_worker,
    require_main_file,
)

ROOT = Path(__file__).parents[1]
RULE = """
import numpy as np
import icl_estimators as icl

class Rule:
    name, n_states = "mine", 3

    def predict_proba(self, tokens):
        return np.full((*np.shape(tokens), 3), 1 / 3)

"""
STUDY = "icl.compare([Rule(), 'add-one'], jobs=2, chains=1000, length=8, decomposition_chains=0)\n"
PSEUDO_COUNTS = "icl.effective_smoothing([Rule()], jobs=2, chains=1000, length=8, families=[])\n"
TRAINING = """
import sys
from icl_estimators.train import main
sys.exit(main("--seed 0..1 --steps 20 --batch 4 --length 8 --jobs 2".split()))
"""
UNDER_GUARD = 'put the call under `if __name__ == "__main__":`'


def run(folder: Path, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, input=given, capture_output=True, text=True, timeout=60, check=False
    )


def no_orphans(folder: Path) -> bool:
    """Say whether no process is left whose working folder is `folder`; where there is no /proc, believe it."""
    limit = time.monotonic() + 10
    while time.monotonic() < limit:
        left = []
        for entry in Path("/proc").glob("[0-9]*/cwd"):
            try:
                left += [entry] * (os.readlink(entry) == str(folder))
            except OSError:
                continue
        if not left:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "how"),
    [(STUDY, ("-c", "import boom")), (STUDY, ("boom.py",)), (PSEUDO_COUNTS, ("-c", "import boom"))],
    ids=["compare imported", "compare as a script", "effective_smoothing imported"],
)
def test_a_module_that_runs_a_study_when_imported_is_one_error(
    tmp_path: Path, study: str, how: tuple[str, ...]
) -> None:
    (tmp_path / "boom.py").write_text(RULE + study, encoding="utf-8")
    done = run(tmp_path, *how)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[-1].startswith("icl_estimators.workers.NestedWorkers: a worker process tried")
    assert UNDER_GUARD in done.stderr
    assert "jobs=1" in done.stderr
    assert no_orphans(tmp_path)


@pytest.mark.slow
def test_a_program_from_standard_input_has_nothing_that_workers_could_import(tmp_path: Path) -> None:
    done = run(tmp_path, "-", given=RULE + STUDY)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    last = done.stderr.splitlines()[-1]
    assert "worker processes cannot start: this program is not in a file that they could import (<stdin>)" in last
    assert UNDER_GUARD in last
    (told,) = run(tmp_path, "-", given=RULE + STUDY.replace("jobs=2", "jobs=1")).stderr.splitlines()
    assert "UserWarning: mine: about" in told


@pytest.mark.slow
def test_a_script_that_trains_without_a_guard_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "boom.py").write_text(TRAINING, encoding="utf-8")
    done = run(tmp_path, "boom.py")
    assert done.returncode == 2
    assert done.stderr.startswith("train: a worker process tried to start workers of its own: put the call under")
    assert done.stderr.count("\n") == 1
    assert not list((tmp_path / "training-runs").glob("*.safetensors"))
    assert no_orphans(tmp_path)


def test_with_a_guard_all_is_well(tmp_path: Path) -> None:
    (tmp_path / "well.py").write_text(f"{RULE}\nif __name__ == '__main__':\n    {STUDY}", encoding="utf-8")
    done = run(tmp_path, "well.py")
    warned, *rest = done.stderr.splitlines()
    assert (done.returncode, len(rest)) == (0, 1)  # the line of the program that is warned about
    assert "UserWarning: mine: about" in warned


def test_nothing_that_starts_workers_does_so_at_work(tmp_path: Path) -> None:
    runs = [Run(ModelConfig(d_model=8), Recipe(steps=1, length=4, batch=1), seed) for seed in (0, 1)]
    refuse_in_worker(2)
    refuse_command_in_worker()
    with at_work():
        refuse_in_worker(1)
        for call in (
            lambda: refuse_in_worker(2),
            refuse_command_in_worker,
            lambda: Processes(None, 2),
            lambda: Cluster(None, "tcp://127.0.0.1:1"),
            lambda: compare("add-one", jobs=2),
            lambda: effective_smoothing("add-one", jobs=2),
            lambda: list(
                train_many(
                    runs,
                    tmp_path,
                    jobs=2,
                    report=lambda run, step, row: None,
                    should_stop=lambda: False,
                    save_every=1.0,
                    force=False,
                )
            ),
        ):
            with pytest.raises(NestedWorkers, match="a worker process tried to start workers of its own"):
                call()
    assert list(tmp_path.iterdir()) == []


def test_a_command_in_a_worker_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    @command
    def main(argv: object = None) -> int:
        return 0

    with at_work():
        assert main([]) == 2
    assert "a worker process tried" in capsys.readouterr().err
    assert main([]) == 0


def test_a_main_module_without_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    require_main_file()
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", None, raising=False)
    monkeypatch.setattr(main, "__file__", "<stdin>", raising=False)
    with pytest.raises(InputError, match="not in a file that they could import"):
        require_main_file()
    with pytest.raises(InputError, match="not in a file that they could import"):
        Processes(None, 2)
