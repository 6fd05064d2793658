from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import icl_estimators
from icl_estimators.train import main
from icl_estimators.transformer import load_checkpoint

SMALL = ["--steps", "30", "--batch", "4", "--length", "8", "--d-model", "8"]
# Long enough to be killed in the middle, short enough to be run to its end.
LONGER = ["--steps", "400", "--batch", "8", "--length", "30", "--save-every", "0.02", "--quiet"]


@pytest.fixture(autouse=True)
def _short_final_measurement(monkeypatch):
    monkeypatch.setattr("icl_estimators.transformer.training.measuring._FINAL_BATCHES", 2)


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    root = Path(icl_estimators.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-m", "icl_estimators.train", *arguments],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def wait_for(path: Path, changes: int, process: subprocess.Popen[str]) -> None:
    """Wait until a file has been written that many times."""
    seen: set[int] = set()
    deadline = time.monotonic() + 120
    while len(seen) < changes:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        if path.exists():
            seen.add(path.stat().st_ino)
        time.sleep(0.005)


def rows_without_speed(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [row[:-1] for row in csv.reader(file)]


def test_run_writes_what_it_says(tmp_path, capsys):
    assert main([*SMALL, "--seed", "3", "5..6", "3", "--jobs", "1", "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    for seed in (3, 5, 6):
        assert sum(line.startswith(f"k3-seed{seed}: regret 0.") for line in lines) == 1
        assert f"k3-seed{seed}: 30 of 30 steps, loss " in err
    paths = [Path(line.strip()) for line in lines[lines.index("Wrote") + 1 :]]
    assert len(paths) == 12
    assert all(path.exists() for path in paths)
    assert {path.parent for path in paths} == {tmp_path}
    model, info = load_checkpoint(tmp_path / "k3-seed5.safetensors")
    assert (info.seed, info.step, info.recipe["batch"], model.config.d_model) == (5, 30, 4, 8)


def test_other_shapes(tmp_path):
    shape = ["--states", "4", "--n-layers", "3", "--n-heads", "2", "--sentinel", "--start", "stationary"]
    assert main([*SMALL, *shape, "--out", str(tmp_path), "--quiet"]) == 0
    _, info = load_checkpoint(tmp_path / "k4-seed0.safetensors")
    assert info.config["sentinel"]
    assert info.metrics["regret_nats"] is None


def test_summary_where_regret_is_not_defined(tmp_path, capsys):
    assert main([*SMALL, "--start", "stationary", "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "k3-seed0: log loss 1." in out
    assert "regret not defined" in err


def test_quiet(tmp_path, capsys):
    assert main([*SMALL, "--out", str(tmp_path), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_bar_on_a_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main([*SMALL, "--seed", "0..1", "--jobs", "1", "--out", str(tmp_path)]) == 0
    err = capsys.readouterr().err
    assert "60/60" in err
    assert "k3-seed1: 100%" in err
    assert ", loss 1." in err


def test_resume_of_a_finished_run_says_so(tmp_path, capsys):
    command = [*SMALL, "--out", str(tmp_path)]
    assert main([*command, "--quiet"]) == 0
    before = (tmp_path / "k3-seed0.safetensors").stat().st_mtime_ns
    assert main([*command, "--resume"]) == 0
    out, err = capsys.readouterr()
    assert "k3-seed0: regret" in out
    assert "already finished" in out
    assert "nothing was trained" in out
    assert err == ""
    assert (tmp_path / "k3-seed0.safetensors").stat().st_mtime_ns == before
    # More seeds may join the folder; what is finished stays.
    assert main([*command, "--resume", "--seed", "0", "1", "--quiet"]) == 0
    assert (tmp_path / "k3-seed1.safetensors").exists()
    assert (tmp_path / "k3-seed0.safetensors").stat().st_mtime_ns == before


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], says: str) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("train: ")
    assert err.count("\n") == 1
    assert says in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--steps", "0"], "argument --steps: the value must be an integer of at least 1"),
        (["--steps", "many"], "--steps"),
        (["--batch", "0"], "--batch"),
        (["--length", "0"], "--length"),
        (["--states", "1"], "n_states must be an integer of at least 2"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "3..1"], "write the smaller seed first"),
        (["--seed", "x"], "--seed"),
        (["--peak-lr", "0"], "--peak-lr"),
        (["--concentration", "-1"], "--concentration"),
        (["--schedule", "linear"], "--schedule"),
        (["--n-heads", "7"], "n_heads must divide d_model"),
        (["--jobs", "0"], "--jobs"),
        (["--threads", "0"], "--threads"),
        (["--device", "cuda:99"], "there is no device cuda:99 on this machine"),
        (["--device", "abacus"], "device must be cpu or cuda"),
        (["--engine", "steam"], "--engine"),
        (["--engine", "kernel", "--n-heads", "2"], "the engine kernel needs two layers of one head"),
        (["--resume", "--force"], "not allowed with argument"),
        (["--step", "5"], "unrecognized arguments"),
    ],
)
def test_bad_options(tmp_path, capsys, arguments, says):
    refused([*arguments, "--out", str(tmp_path / "out")], capsys, says)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_folder_that_holds_another_run(tmp_path, capsys):
    command = [*SMALL, "--out", str(tmp_path)]
    assert main([*command, "--quiet"]) == 0
    before = (tmp_path / "k3-seed0.safetensors").read_bytes()
    refused(command, capsys, "has finished: --resume continues from what is there, --force starts again")
    refused([*command, "--batch", "5"], capsys, "holds another run k3-seed0 (--batch was 4 and is now 5)")
    refused([*command, "--batch", "5", "--resume"], capsys, "cannot be resumed: --batch was 4 and is now 5")
    refused([*command, "--sentinel", "--resume"], capsys, "--sentinel was False and is now True")
    assert (tmp_path / "k3-seed0.safetensors").read_bytes() == before
    assert main([*command, "--batch", "5", "--force", "--quiet"]) == 0
    assert (tmp_path / "k3-seed0.safetensors").read_bytes() != before


def test_the_engine_is_part_of_a_run(tmp_path, capsys, monkeypatch):
    pytest.importorskip("numba")
    command = [*SMALL, "--out", str(tmp_path)]
    assert main([*command, "--engine", "kernel", "--quiet"]) == 0
    assert load_checkpoint(tmp_path / "k3-seed0.safetensors")[1].engine == "kernel"
    assert main([*command, "--resume", "--quiet"]) == 0  # it has finished, by whatever engine
    refused(command, capsys, "has finished: --resume continues from what is there")
    refused([*command, "--engine", "torch", "--resume"], capsys, "resumed: --engine was kernel and is now torch")
    monkeypatch.setattr("icl_estimators.transformer.engines.numba_is_there", lambda: False)
    refused([*command, "--engine", "kernel", "--force"], capsys, "the engine kernel needs numba")
    assert main([*command, "--resume", "--quiet"]) == 0  # to show what has finished takes no numba


def test_folder_that_cannot_be_written_to(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    refused([*SMALL, "--out", str(tmp_path / "file")], capsys, "is a file, not a folder: name another with --out")
    refused([*SMALL, "--out", str(tmp_path / "file" / "below")], capsys, "cannot write to")


def test_no_space(tmp_path, capsys, monkeypatch):
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 10**5))
    refused([*SMALL, "--out", str(tmp_path)], capsys, "MiB left on its disk")


@pytest.mark.parametrize("engine", ["torch", "kernel"])
def test_divergence(tmp_path, capsys, engine):
    if engine == "kernel":
        pytest.importorskip("numba")
    assert main([*SMALL, "--peak-lr", "1e30", "--engine", engine, "--out", str(tmp_path), "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("train: seed 0 diverged before step")
    assert err.count("\n") == 1


def test_help_is_quick_and_loads_no_heavy_library():
    code = (
        "import sys\nfrom icl_estimators.train import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'pandas', 'scipy', 'statsmodels', 'matplotlib', 'tqdm'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    root = Path(icl_estimators.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--resume" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("engine", [pytest.param("torch", marks=pytest.mark.slow), "kernel"])
def test_killed_in_the_middle_and_resumed(tmp_path, engine):
    """Kill −9, twice, then resume: the weights are those of a run that was left alone, bit for bit."""
    if engine == "kernel":
        pytest.importorskip("numba")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    # Several seeds by the kernel are trained side by side; the run that is left alone is one of them.
    several = ["--seed", "0..2", "--jobs", "1"] if engine == "kernel" else []
    alone = start(*LONGER, "--engine", engine, "--out", str(whole))
    state = parts / "k3-seed0" / "state.safetensors"
    for again in ([], ["--resume"]):
        process = start(*LONGER, *several, "--engine", engine, *again, "--out", str(parts))
        wait_for(state, 6, process)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not (parts / "k3-seed0.safetensors").exists()
    process = start(*LONGER, *several, "--resume", "--out", str(parts))  # by the engine that it started with
    for finishing in (process, alone):
        out, err = finishing.communicate()
        assert (finishing.returncode, out, err) == (0, "", "")
    for name in ("k3-seed0.safetensors", "k3-seed0/step-00000100.safetensors", "k3-seed0/step-00000400.safetensors"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()
    assert rows_without_speed(parts / "k3-seed0.csv") == rows_without_speed(whole / "k3-seed0.csv")
    sidecars = [json.loads((folder / "k3-seed0.json").read_text(encoding="utf-8")) for folder in (parts, whole)]
    assert sidecars[0] == sidecars[1]
    assert sidecars[0]["engine"] == engine
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "engine", "number", "status"),
    [
        ("1", "torch", signal.SIGINT, 130),
        ("2", "kernel", signal.SIGTERM, 143),
        pytest.param("1", "torch", signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param("2", "torch", signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param("2", "torch", signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param("2", "kernel", signal.SIGINT, 130, marks=pytest.mark.slow),
    ],
)
def test_interrupt_leaves_a_state_to_resume(tmp_path, hearing, jobs, engine, number, status):
    """Ctrl-C and SIGTERM, to the workers too: one line that says what to do, nothing lost. Saving by time is off."""
    if engine == "kernel":
        pytest.importorskip("numba")
    arguments = ["--steps", "1000000", "--batch", "4", "--length", "8", "--d-model", "8", "--save-every", "1000"]
    process = start(
        *arguments,
        "--engine",
        engine,
        "--seed",
        "0..1",
        "--jobs",
        jobs,
        "--out",
        str(tmp_path),
        start_new_session=True,
        **hearing,
    )
    wait_for(tmp_path / "k3-seed0" / "step-00000020.safetensors", 1, process)
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert "stopped; continue with --resume" in err
    assert "Traceback" not in err
    from icl_estimators.transformer.training.runs import _read_state

    _, rows, state = _read_state(tmp_path / "k3-seed0" / "state.safetensors")
    assert state.step >= 20
    assert rows[-1].step >= 20
