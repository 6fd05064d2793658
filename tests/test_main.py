from __future__ import annotations

import importlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import icl_estimators
from icl_estimators.__main__ import COMMANDS, main

Python = Callable[..., subprocess.CompletedProcess[str]]


def test_the_commands_are_the_modules_that_are_run() -> None:
    folder = Path(icl_estimators.__path__[0])
    found = {path.stem for path in folder.glob("[!_]*.py") if '\nif __name__ == "__main__":' in path.read_text("utf-8")}
    assert found == set(COMMANDS)


def test_without_a_command_they_are_listed(python: Python) -> None:
    done = python("-W", "error", "-m", "icl_estimators")
    assert (done.returncode, done.stderr) == (0, "")
    for name, text in COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert text in done.stdout


def test_a_command_is_run_with_its_own_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "ABA", "--estimators", "add-one", "--csv"]) == 0
    printed = capsys.readouterr().out
    assert importlib.import_module("icl_estimators.predict").main(["ABA", "--estimators", "add-one", "--csv"]) == 0
    assert printed == capsys.readouterr().out


def test_an_unknown_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evalute"]) == 2
    assert "unknown command 'evalute': choose from evaluate" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", *(f".{name}" for name in COMMANDS)])
def test_every_command_says_its_version(python: Python, name: str) -> None:
    done = python("-W", "error", "-m", f"icl_estimators{name}", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"icl-estimators {icl_estimators.__version__}")
