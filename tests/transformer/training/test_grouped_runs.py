from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

pytest.importorskip("numba")

from icl_estimators.files import write_whole
from icl_estimators.transformer import CheckpointInfo, ModelConfig, load_checkpoint
from icl_estimators.transformer.training import Recipe
from icl_estimators.transformer.training.grouped_runs import train_group
from icl_estimators.transformer.training.processes import _tasks, train_many
from icl_estimators.transformer.training.runs import Run, train
from icl_estimators.validation import InputError

CONFIG = ModelConfig(length=8, d_model=16)


def small(seed: int, **changed) -> Run:
    return Run(CONFIG, Recipe(steps=45, batch=4, length=8, **changed), seed, engine="kernel")


@pytest.fixture(autouse=True)
def _short_final_measurement(monkeypatch):
    monkeypatch.setattr("icl_estimators.transformer.training.measuring._FINAL_BATCHES", 2)


def lockstep(runs, out, *, report=lambda run, step, row: None, should_stop=lambda: False, **how):
    return train_group(
        runs, out, report=report, should_stop=should_stop, **{"save_every": 1000.0, "force": False, **how}
    )


def files_of(out: Path, run: Run) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.rglob("*.safetensors") if run.name in str(path)}


def test_each_run_leaves_what_it_leaves_alone(tmp_path):
    runs = [small(seed) for seed in range(3)]
    found = lockstep(runs, tmp_path / "together")
    for run in runs:
        info = found[run]
        assert isinstance(info, CheckpointInfo)
        assert train(run, tmp_path / "alone") == info
        assert files_of(tmp_path / "together", run) == files_of(tmp_path / "alone", run)
        assert load_checkpoint(tmp_path / "together" / f"{run.name}.safetensors")[1] == info
        assert (info.engine, info.versions["numba"] is not None) == ("kernel", True)
        assert not (tmp_path / "together" / run.name / "state.safetensors").exists()


@pytest.mark.slow
def test_runs_that_were_stopped_at_different_steps_catch_up(tmp_path):
    runs = [small(seed) for seed in range(3)]
    for run, stop in zip(runs, (7, 30, None), strict=True):
        if stop is not None:
            seen: list[int] = []
            train(
                run,
                tmp_path / "parts",
                report=lambda step, row, seen=seen: seen.append(step),
                should_stop=lambda seen=seen, stop=stop: bool(seen) and seen[-1] >= stop,
            )
    steps: dict[Run, list[int]] = {run: [] for run in runs}
    found = lockstep(runs, tmp_path / "parts", report=lambda run, step, row: steps[run].append(step))
    assert len({seen[0] for seen in steps.values()}) == 3
    assert all(seen[-1] == 45 for seen in steps.values())
    for run in runs:
        assert isinstance(found[run], CheckpointInfo)
        train(run, tmp_path / "whole")
        assert files_of(tmp_path / "parts", run) == files_of(tmp_path / "whole", run)


def test_a_stop_is_kept_and_gone_on_from(tmp_path):
    runs = [small(seed) for seed in range(2)]
    seen: list[int] = []
    found = lockstep(
        runs,
        tmp_path / "parts",
        report=lambda run, step, row: seen.append(step),
        should_stop=lambda: len(seen) > 10,
    )
    assert found == dict.fromkeys(runs)
    assert all((tmp_path / "parts" / run.name / "state.safetensors").exists() for run in runs)
    lockstep(runs, tmp_path / "parts", save_every=0.0)
    lockstep(runs, tmp_path / "whole")
    for run in runs:
        assert files_of(tmp_path / "parts", run) == files_of(tmp_path / "whole", run)


def test_a_run_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    runs = [small(seed) for seed in range(3)]

    def full(path):
        if "k3-seed1" in str(path) and "step-00000020" in str(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_whole(path)

    monkeypatch.setattr("icl_estimators.transformer.checkpoint.write_whole", full)
    found = lockstep(runs, tmp_path)
    assert isinstance(found[runs[0]], CheckpointInfo)
    assert isinstance(found[runs[2]], CheckpointInfo)
    assert "No space left on device" in str(found[runs[1]])
    assert (tmp_path / "k3-seed1" / "state.safetensors").exists()


def test_divergence_is_an_error_of_each_run(tmp_path):
    runs = [small(seed, peak_lr=1e30) for seed in range(2)]
    for outcome in lockstep(runs, tmp_path).values():
        assert isinstance(outcome, InputError)
        assert "diverged before step" in str(outcome)


def test_damage_is_found_before_the_others_begin(tmp_path):
    runs = [small(seed) for seed in range(2)]
    state = tmp_path / "k3-seed0" / "state.safetensors"
    state.parent.mkdir()
    state.write_bytes(b"nothing of the kind")
    found = lockstep(runs, tmp_path)
    assert "is damaged" in str(found[runs[0]])
    assert isinstance(found[runs[1]], CheckpointInfo)
    assert isinstance(lockstep(runs, tmp_path, force=True)[runs[0]], CheckpointInfo)


def test_how_runs_are_shared_out():
    alike = [small(seed) for seed in range(25)]
    assert [len(task) for task in _tasks(alike, jobs=2)] == [10, 10, 5]
    assert [len(task) for task in _tasks(alike[:5], jobs=2)] == [3, 2]
    assert [len(task) for task in _tasks(alike[:5], jobs=8)] == [1] * 5
    other_recipe = Run(CONFIG, Recipe(steps=9, length=8), 30, engine="kernel")
    by_torch = Run(CONFIG, Recipe(steps=9, length=8), 31)
    odd = Run(ModelConfig(length=8, d_model=10), Recipe(steps=9, length=8), 32, engine="kernel")
    odd_too = Run(ModelConfig(length=8, d_model=10), Recipe(steps=9, length=8), 33, engine="kernel")
    tasks = _tasks([*alike[:2], other_recipe, by_torch, odd, odd_too], jobs=1)
    assert tasks == [alike[:2], [other_recipe], [by_torch], [odd], [odd_too]]


@pytest.mark.slow
def test_processes_leave_what_one_does(tmp_path):
    runs = [small(seed) for seed in range(4)]
    how = {"report": lambda run, step, row: None, "should_stop": lambda: False, "save_every": 10.0, "force": False}
    for jobs in (1, 3):
        found = dict(train_many(runs, tmp_path / str(jobs), jobs=jobs, **how))
        assert all(isinstance(outcome, CheckpointInfo) for outcome in found.values())
    for run in runs:
        assert (tmp_path / "1" / f"{run.name}.safetensors").read_bytes() == (
            tmp_path / "3" / f"{run.name}.safetensors"
        ).read_bytes()
