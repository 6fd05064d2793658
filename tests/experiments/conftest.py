"""What several tests of this room share: one small study of every rule, and estimators that misbehave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from icl_estimators.experiments.compare import Comparison, compare
from icl_estimators.experiments.executors import one_thread
from icl_estimators.resources import shipped_checkpoint

SMALL = {
    "chains": 230,  # four units and a part of one
    "sequences_per_chain": 3,
    "decomposition_chains": 120,
    "decomposition_sequences": 8,
    "length": 12,
    "seed": 5,
}


@pytest.fixture(scope="session", autouse=True)
def threads() -> Iterator[None]:
    """Compute as a study does: a trained model's small products are far slower on several threads."""
    with one_thread():
        yield


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
