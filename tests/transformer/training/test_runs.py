from __future__ import annotations

import csv
import math
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from icl_estimators.provenance import environment
from icl_estimators.transformer import ModelConfig, load_checkpoint
from icl_estimators.transformer.training import Recipe, runs
from icl_estimators.transformer.training.recipe import row_steps, snapshot_steps
from icl_estimators.transformer.training.runs import Run, RunFiles, check_space, prepare, train
from icl_estimators.validation import InputError

CONFIG = ModelConfig(length=8, d_model=4)


def small(steps: int = 25, *, seed: int = 0, **changed) -> Run:
    recipe = Recipe(**{"steps": steps, "batch": 4, "length": 8, **changed})
    return Run(CONFIG, recipe, seed)


@pytest.fixture(autouse=True)
def _short_final_measurement(monkeypatch):
    monkeypatch.setattr("icl_estimators.transformer.training.measuring._FINAL_BATCHES", 2)


def stop_after(count: int):
    """Answer yes from the `count`-th question on."""
    asked = iter(range(10**9))
    return lambda: next(asked) >= count


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def deterministic(path: Path) -> list[tuple[str, ...]]:
    """Rows without the speed, which is the machine's."""
    return [tuple(value for name, value in row.items() if name != "tokens_per_second") for row in table(path)]


def test_what_a_run_leaves(tmp_path):
    run = small()
    info = train(run, tmp_path)
    assert info is not None
    files = RunFiles(tmp_path, "k3-seed0")
    kept = {f"step-{step:08d}" for step in snapshot_steps(25)}
    names = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert names == sorted(
        [f"k3-seed0.{kind}" for kind in ("csv", "json", "safetensors")]
        + [f"k3-seed0/{name}.{kind}" for name in kept for kind in ("json", "safetensors")]
    )
    model, read = load_checkpoint(files.checkpoint)
    assert read == info
    assert (info.seed, info.step, info.threads, info.device) == (0, 25, 1, "cpu")
    assert info.recipe == run.recipe.to_dict()
    assert model.config == CONFIG
    assert info.metrics["regret_nats"] > 0
    rows = table(files.metrics)
    assert list(rows[0]) == ["step", "loss_nats", "regret_nats", "learning_rate", "tokens_per_second"]
    assert [int(row["step"]) for row in rows] == row_steps(25)
    assert rows[0]["loss_nats"] == "nan"
    last, final = load_file(files.snapshot(25)), load_file(files.checkpoint)
    assert all(torch.equal(last[name], final[name]) for name in final)
    first = load_checkpoint(files.snapshot(0))
    assert (first[1].step, first[1].metrics["loss_nats"]) == (0, None)


@pytest.mark.parametrize("stops", [(0,), (1, 5), (2, 2, 9)])
def test_a_stopped_run_goes_on_to_the_same_weights(tmp_path, stops):
    train(small(), tmp_path / "whole")
    whole, parts = RunFiles(tmp_path / "whole", "k3-seed0"), RunFiles(tmp_path / "parts", "k3-seed0")
    for count in stops:
        assert train(small(), parts.out, should_stop=stop_after(count)) is None
        assert parts.state.exists()
        assert not parts.checkpoint.exists()
    assert train(small(), parts.out) is not None
    assert parts.checkpoint.read_bytes() == whole.checkpoint.read_bytes()
    assert deterministic(parts.metrics) == deterministic(whole.metrics)
    assert not parts.state.exists()


def test_a_run_that_was_killed_between_two_saves(tmp_path):
    """Snapshots and metrics past the state are made again, and are the same."""
    train(small(), tmp_path / "whole")
    out = tmp_path / "killed"
    train(small(), out, should_stop=stop_after(8))
    files = RunFiles(out, "k3-seed0")
    earlier = files.state.read_bytes()
    train(small(), out, should_stop=stop_after(11))
    files.state.write_bytes(earlier)
    (files.folder / ".state.safetensors.1.tmp").write_bytes(b"half")
    (out / ".k3-seed0.csv.1.tmp").write_bytes(b"half")
    train(small(), out)
    whole = RunFiles(tmp_path / "whole", "k3-seed0")
    assert deterministic(files.metrics) == deterministic(whole.metrics)
    for path in whole.folder.glob("*.safetensors"):
        assert (files.folder / path.name).read_bytes() == path.read_bytes()
    assert not list(out.rglob("*.tmp"))


def test_progress(tmp_path):
    seen = []
    train(small(45), tmp_path, report=lambda step, row: seen.append((step, row.step)))
    assert seen[0] == (0, 0)
    assert seen[-1] == (45, 45)
    assert all(row <= step for step, row in seen)


def test_state_is_saved_by_time(tmp_path):
    files = RunFiles(tmp_path, "k3-seed0")
    states = []

    def look(step: int, row: object) -> None:
        states.append(files.state.read_bytes() if files.state.exists() else b"")

    train(small(45), tmp_path, report=look, save_every=1e-9)
    assert len(set(states)) == len(states)
    states.clear()
    train(small(45, seed=1), tmp_path, report=look, save_every=1e9)
    assert len(set(states)) == 1


def test_torch_threads_are_put_back(tmp_path):
    before = torch.get_num_threads()
    train(Run(CONFIG, Recipe(steps=2, batch=4, length=8), threads=2), tmp_path)
    assert torch.get_num_threads() == before


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    train(small(), tmp_path)
    return tmp_path


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    train(small(), tmp_path, should_stop=stop_after(3))
    return tmp_path


def refused(run: Run, out: Path, says: str, **how: bool) -> None:
    with pytest.raises(InputError, match=says) as caught:
        prepare(run, out, **{"resume": False, "force": False, **how})
    assert "\n" not in str(caught.value)


def test_finished_run(finished):
    refused(small(), finished, "k3-seed0 in .* has finished: --resume continues .* --force starts again")
    info = prepare(small(), finished, resume=True, force=False)
    assert info == load_checkpoint(finished / "k3-seed0.safetensors")[1]
    assert prepare(small(), finished, resume=False, force=True) is None
    assert prepare(small(seed=1), finished, resume=False, force=False) is None


def test_unfinished_run(unfinished):
    refused(small(), unfinished, "is unfinished: --resume continues")
    assert prepare(small(), unfinished, resume=True, force=False) is None


@pytest.mark.parametrize("state", ["finished", "unfinished"])
def test_other_options(request, state):
    out = request.getfixturevalue(state)
    other = small(26)
    refused(other, out, r"holds another run k3-seed0 \(--steps was 25 and is now 26\): name another --out")
    refused(other, out, "cannot be resumed: --steps was 25 and is now 26", resume=True)
    refused(small(peak_lr=0.1), out, r"--peak-lr was 0\.003 and is now 0\.1", resume=True)
    threads = Run(CONFIG, small().recipe, threads=2)
    refused(threads, out, "--threads was 1 and is now 2", resume=True)
    assert prepare(other, out, resume=False, force=True) is None


def test_force_starts_again(finished):
    before = (finished / "k3-seed0.safetensors").read_bytes()
    stray = finished / "k3-seed0" / "step-00000999.safetensors"
    stray.write_bytes(b"of a longer run")
    other = finished / "k3-seed1.csv"
    other.write_text("of another seed", encoding="utf-8")
    assert train(small(26), finished, force=True) is not None
    assert (finished / "k3-seed0.safetensors").read_bytes() != before
    assert not stray.exists()
    assert other.exists()


@pytest.mark.parametrize("name", ["k3-seed0.csv", "k3-seed0.safetensors"])
def test_files_of_an_unknown_run(tmp_path, name):
    (tmp_path / name).write_text("mine", encoding="utf-8")
    refused(small(), tmp_path, "unknown run")
    refused(small(), tmp_path, "unknown run", resume=True)


def test_other_versions_or_another_cpu(unfinished, monkeypatch):
    here = environment(torch=True)
    there = {**here, "versions": {**here["versions"], "torch": "1.0"}}
    monkeypatch.setattr("icl_estimators.transformer.training.runs.environment", lambda torch: there)
    versions = f'cannot be resumed: version of torch was "{torch.__version__.partition("+")[0]}.*" and is now "1.0"'
    refused(small(), unfinished, versions, resume=True)
    monkeypatch.setattr(
        "icl_estimators.transformer.training.runs.environment", lambda torch: {**here, "cpu": {"machine": "m68k"}}
    )
    refused(small(), unfinished, 'CPU machine was ".*" and is now "m68k"; .* start again with --force', resume=True)
    assert prepare(small(), unfinished, resume=False, force=True) is None


def test_damaged_state(unfinished):
    state = unfinished / "k3-seed0" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-5])
    refused(small(), unfinished, r"state\.safetensors is damaged: start again with --force", resume=True)
    with pytest.raises(InputError, match="is damaged"):
        train(small(), unfinished)


def test_damaged_checkpoint(finished):
    path = finished / "k3-seed0.safetensors"
    path.write_bytes(path.read_bytes()[:-5])
    refused(small(), finished, "is incomplete", resume=True)


def test_out_is_a_file(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    refused(small(), tmp_path / "file", "is a file, not a folder")
    refused(small(), tmp_path / "file" / "below", "cannot write to")


def test_absent_device(tmp_path):
    absent = f"cuda:{torch.cuda.device_count()}"
    refused(Run(CONFIG, small().recipe, device=absent), tmp_path, "there is no device")


def test_no_space(tmp_path, monkeypatch):
    check_space([small()], tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 10**5))
    with pytest.raises(InputError, match="0 MiB left on its disk, but the runs need 1 MiB: free some space"):
        check_space([small()], tmp_path)


def test_disk_that_fills_up(unfinished, monkeypatch):
    """One line; what had been saved stays good, and the run goes on when there is room."""

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "save", full)
        with pytest.raises(InputError, match=r"No space left on device; fix that and continue with --resume"):
            train(small(), unfinished, save_every=1e-9)
    assert train(small(), unfinished) is not None


def test_divergence(tmp_path):
    with pytest.raises(InputError, match="diverged before step"):
        train(small(peak_lr=1e30), tmp_path)


def test_options_name_the_flags():
    options = small().options
    assert options["peak-lr"] == 3e-3
    assert options["d-model"] == 4
    assert options["steps"] == 25
    assert not any(isinstance(value, float) and math.isnan(value) for value in options.values())
