"""What the tests share: a Hypothesis profile that draws the same examples every time, and how to run commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]

settings.register_profile("same-every-time", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("same-every-time")


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must refuse its input as the contract says; return its one line."""

    def run(main: Callable[[Sequence[str]], int], *arguments: str) -> str:
        status = main(list(arguments))
        out, err = capsys.readouterr()
        assert (status, out) == (2, "")
        assert err.count("\n") == 1, err
        assert err.endswith("\n")
        return err

    return run


def hear_ctrl_c() -> None:
    """Restore, in a child, what a background job's parent has it ignore; for ``preexec_fn``."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session")
def hearing() -> dict[str, Callable[[], None]]:
    """Options for Popen that let a child hear Ctrl-C and SIGTERM, whatever this process ignores."""
    return {"preexec_fn": hear_ctrl_c} if hasattr(signal, "pthread_sigmask") else {}


@pytest.fixture(scope="session")
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the interpreter in a process of its own, from the project's folder."""

    def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8", **options.pop("env", {})}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            text=True,
            encoding="utf-8",
            timeout=120,
            **{"capture_output": True, **options},
        )

    return run
