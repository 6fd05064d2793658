"""--checkpoint [NAME=]FILE, repeated, of every command that takes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from icl_estimators.evaluate import main as evaluate
from icl_estimators.exact import main as exact
from icl_estimators.predict import main as predict
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.smoothing import main as smoothing

SHIPPED: list[Any] = [shipped_checkpoint(3, seed) for seed in (0, 1)]
pytestmark = pytest.mark.skipif(None in SHIPPED, reason="fewer than two trained models ship for three states")

RULES = ["--estimators", "transformer,add-one"]
STUDY = [*RULES, "--chains", "20", "--sequences-per-chain", "2", "--length", "6", "--jobs", "1"]
COMMANDS: dict[str, tuple[Callable[[Sequence[str]], int], list[str]]] = {
    "evaluate": (evaluate, [*STUDY, "--decomposition-chains", "0", "--no-report"]),
    "smoothing": (smoothing, [*STUDY, "--families", "none", "--no-interventions"]),
    "exact": (exact, [*RULES, "--context-length", "3", "--csv"]),
    "predict": (predict, ["ABCA", *RULES, "--csv"]),
}


def run(command: str, folder: Path, capsys: pytest.CaptureFixture[str], *checkpoints: str) -> tuple[list[str], str]:
    """Return the rows' names in order, and what was said on standard error."""
    main, arguments = COMMANDS[command]
    table = {"evaluate": "risk", "smoothing": "smoothing"}.get(command)
    out = ["--out", str(folder / "out"), "--quiet"] if table else []
    files = [part for checkpoint in checkpoints for part in ("--checkpoint", checkpoint)]
    assert main([*arguments, *files, *out]) == 0
    said = capsys.readouterr()
    text = (folder / "out" / f"{table}.csv").read_text(encoding="utf-8") if table else said.out
    return list(dict.fromkeys(line.split(",")[0] for line in text.splitlines()[1:])), said.err


def copy(folder: Path, **changes: Any) -> str:
    """Copy the first shipped checkpoint, with another sidecar."""
    folder.mkdir()
    path = folder / "model.safetensors"
    path.write_bytes(SHIPPED[0].read_bytes())
    sidecar = json.loads(SHIPPED[0].with_suffix(".json").read_text(encoding="utf-8"))
    path.with_suffix(".json").write_text(json.dumps(sidecar | changes), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_is_the_rows_name(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names, said = run(command, tmp_path, capsys, f"best={SHIPPED[0]}")
    assert names == ["transformer:best", "add-one"]
    assert said == ""


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_two_runs_of_one_recipe_are_pooled_without_a_word(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, said = run(command, tmp_path, capsys, str(SHIPPED[0]), f"b={SHIPPED[1]}")
    together = ["transformer", "transformer:recipe"] if command in ("evaluate", "smoothing") else []
    assert names == ["transformer:k3-seed0", "transformer:b", *together, "add-one"]
    assert said == ""


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_byte_copy_is_named_by_its_folder_and_is_no_second_run(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = copy(tmp_path / "one"), copy(tmp_path / "two")
    names, said = run(command, tmp_path, capsys, one, two)
    assert names == ["transformer:one/model", "transformer:two/model", "add-one"]
    assert said.count("\n") == 1
    assert said.startswith("transformer: two/model has the same weights as one/model (SHA-256 a6d04d671951…)")
    if command in ("evaluate", "smoothing"):
        record = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
        assert set(record["inputs"]) == {one, two}  # two files of one name


@pytest.mark.parametrize("command", COMMANDS)
def test_the_option_that_differs_is_said(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    path = Path(copy(other))
    path.write_bytes(SHIPPED[1].read_bytes())
    sidecar = json.loads(SHIPPED[1].with_suffix(".json").read_text(encoding="utf-8"))
    sidecar["recipe"]["concentration"] = 0.3
    path.with_suffix(".json").write_text(json.dumps(sidecar), encoding="utf-8")
    names, said = run(command, tmp_path, capsys, str(SHIPPED[0]), str(path))
    assert names == ["transformer:k3-seed0", "transformer:model", "add-one"]
    assert said == (
        "transformer: k3-seed0, model are not pooled as training runs of one recipe: recipe concentration is 1.0 in "
        "k3-seed0 and 0.3 in model\n"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_file_is_named_without_its_label(command: str, tmp_path: Path, refused: Callable[..., str]) -> None:
    main, arguments = COMMANDS[command]
    said = refused(main, *arguments, "--checkpoint", f"best={tmp_path / 'none.safetensors'}")
    assert f"no such checkpoint: {tmp_path / 'none.safetensors'} (give a .safetensors file)" in said
