"""What the tests share: a Hypothesis profile that draws the same examples every time, oracles, one small study."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from icl_estimators.api import Comparison, compare
from icl_estimators.engine.executors import one_thread
from icl_estimators.inference import Cells
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import ChainLaw, Sample, posterior_predictive, sample_chains, transition_counts

ROOT = Path(__file__).parents[1]
SMALL = {
    "chains": 230,  # four units and a part of one
    "sequences_per_chain": 3,
    "decomposition_chains": 120,
    "decomposition_sequences": 8,
    "length": 12,
    "seed": 5,
}

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


@pytest.fixture(scope="session")
def oracles() -> dict[str, Any]:
    path = Path(__file__).parent / "oracles" / "small_examples.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def nested() -> Callable[[int, int, int], Nested]:
    """Give the function that draws chains, sequences of each, and a length."""
    return draw_nested


@dataclass(frozen=True)
class Nested:
    sample: Sample
    cells: Cells
    add_one: NDArray[np.float64]  # (R, S, T, K)

    @property
    def tokens(self) -> NDArray[np.int64]:
        return self.sample.tokens[:, :, :-1]

    @property
    def truth(self) -> NDArray[np.float64]:
        return self.sample.truth.reshape(self.add_one.shape)


def draw_nested(n_chains: int, n_sequences: int, length: int) -> Nested:
    sample = sample_chains(range(n_chains), sequences_per_chain=n_sequences, length=length, purpose="test")
    visits = ChainLaw().visits(sample)
    predictions = posterior_predictive(transition_counts(sample.inputs, 3), 1.0)
    tokens = sample.tokens[:, :, :-1]
    return Nested(sample, Cells.of(tokens, sample.transition, visits), predictions.reshape(*tokens.shape, 3))


@pytest.fixture(scope="session")
def rules() -> tuple[str, ...]:
    """Name every kind of estimator; the trained model where it ships."""
    trained = ("transformer",) if shipped_checkpoint(3) else ()
    counting = ("bigram", "add-one", "krichevsky-trofimov", "unigram", "uniform")
    constructions = (
        "construction",
        "construction:30",
        "construction-softmax",
        "construction-softmax:direct_path=false",
    )
    return (*trained, *constructions, *counting)


@pytest.fixture(scope="session")
def small(rules: tuple[str, ...]) -> Comparison:
    with one_thread():
        return compare(rules, **SMALL)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Write a module that this process and its workers can import."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)

    def write(name: str, source: str) -> None:
        (folder / f"{name}.py").write_text(source, encoding="utf-8")

    return write
