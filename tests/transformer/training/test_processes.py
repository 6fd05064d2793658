from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

from icl_estimators.transformer import CheckpointInfo, ModelConfig
from icl_estimators.transformer.training import Recipe
from icl_estimators.transformer.training.processes import train_many
from icl_estimators.transformer.training.runs import Run
from icl_estimators.validation import InputError


def small(seed: int, steps: int = 15, **changed) -> Run:
    return Run(ModelConfig(length=8, d_model=4), Recipe(steps=steps, batch=4, length=8, **changed), seed)


def outcomes(runs, out, *, jobs, should_stop=lambda: False, report=lambda run, step, row: None):
    arguments = {"should_stop": should_stop, "report": report, "save_every": 10.0, "force": False}
    return dict(train_many(runs, out, jobs=jobs, **arguments))


@pytest.mark.slow
def test_processes_leave_what_one_after_the_other_does(tmp_path):
    runs = [small(0), small(1), small(2, peak_lr=1e30)]
    seen = {jobs: set() for jobs in (1, 2)}
    found = {
        jobs: outcomes(runs, tmp_path / str(jobs), jobs=jobs, report=lambda run, step, row, j=jobs: seen[j].add(run))
        for jobs in (1, 2)
    }
    for jobs in (1, 2):
        assert isinstance(found[jobs][runs[0]], CheckpointInfo)
        assert isinstance(found[jobs][runs[2]], InputError)  # and does not stop the others
        assert "diverged" in str(found[jobs][runs[2]])
        assert seen[jobs] == set(runs)
    for name in ("k3-seed0.safetensors", "k3-seed1.safetensors"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_stop(tmp_path, jobs):
    runs = [small(seed, steps=10**6) for seed in range(3)]
    begun = []
    found = outcomes(
        runs, tmp_path, jobs=jobs, should_stop=lambda: bool(begun), report=lambda run, step, row: begun.append(run)
    )
    assert list(found.values()) == [None, None, None]
    assert (tmp_path / begun[0].name / "state.safetensors").exists()


@pytest.mark.slow
def test_a_process_that_is_killed(tmp_path):
    def kill(run: Run, step: int, row: object) -> None:
        for child in multiprocessing.active_children():
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)

    runs = [small(seed, steps=10**6) for seed in range(2)]
    found = outcomes(runs, tmp_path, jobs=2, report=kill)
    for outcome in found.values():
        assert isinstance(outcome, InputError)
        assert "was killed" in str(outcome)
