from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from icl_estimators.estimators import get_all
from icl_estimators.estimators.training_runs import Trained, TrainingRecord, pool_runs, pooled_runs
from icl_estimators.resources import shipped_checkpoint


@dataclass
class Record:
    seed: int
    sha256: str
    step: int = 8000
    config: dict[str, Any] = field(default_factory=lambda: {"d_model": 64, "n_layers": 2})
    recipe: dict[str, Any] = field(default_factory=lambda: {"peak_lr": 0.003, "batch": 64})


class Run:
    recipe: str | None = None

    def __init__(self, name: str, info: Record) -> None:
        self.name, self.info = f"m:{name}", info


def pooled(**records: Record) -> tuple[list[str], list[str]]:
    """Return the names of those that are pooled, and what was said."""
    runs = {name: Run(name, record) for name, record in records.items()}
    said: list[str] = []
    pool_runs(runs, "m", said.append)
    assert all(run.recipe in (None, "m") for run in runs.values())
    assert all("\n" not in line for line in said)
    return [name for name, run in runs.items() if run.recipe], said


ONE, TWO, THREE = Record(0, "aa"), Record(1, "bb"), Record(2, "cc")


def test_the_protocols_are_what_they_say() -> None:
    assert isinstance(ONE, TrainingRecord)
    assert isinstance(Run("a", ONE), Trained)


def test_runs_with_seeds_and_weights_of_their_own_are_pooled_without_a_word() -> None:
    assert pooled(a=ONE, b=TWO, c=THREE) == (["a", "b", "c"], [])


def test_a_copy_is_not_counted_again() -> None:
    names, (line,) = pooled(a=ONE, b=ONE)
    assert names == []
    assert line.startswith("m: b has the same weights as a (SHA-256 aa…), so it is not a second training run")
    assert pooled(a=ONE, b=replace(ONE, seed=9), c=TWO)[0] == ["a", "c"]  # whatever its sidecar says of the seed


def test_a_second_result_of_the_same_seed_is_not_counted() -> None:
    names, (line,) = pooled(a=ONE, b=replace(ONE, sha256="other"), c=TWO)
    assert names == ["a", "c"]
    assert line.startswith("m: b has the same seed, 0, as a, so it is not a second training run")


def test_snapshots_of_one_run_are_not_pooled() -> None:
    names, (line,) = pooled(early=replace(ONE, step=4000, sha256="early"), late=ONE)
    assert names == []
    assert line == (
        "m: early, late are not pooled as training runs of one recipe, snapshots of one training run (seed 0): "
        "step is 4000 in early and 8000 in late"
    )


@pytest.mark.parametrize(
    ("other", "option"),
    [
        (replace(TWO, config={"d_model": 32, "n_layers": 2}), "d_model is 64 in a, c and 32 in b"),
        (replace(TWO, config={"d_model": 64}), "n_layers is 2 in a, c and not given in b"),
        (replace(TWO, recipe={"peak_lr": 0.01, "batch": 64}), "recipe peak_lr is 0.003 in a, c and 0.01 in b"),
        (replace(TWO, recipe={"peak_lr": 0.01, "batch": 8}), "0.01 in b; recipe batch is 64 in a, c and 8 in b"),
        (replace(TWO, step=100), "step is 8000 in a, c and 100 in b"),
    ],
)
def test_the_option_that_differs_is_named(other: Record, option: str) -> None:
    names, (line,) = pooled(a=ONE, b=other, c=THREE)
    assert names == []
    assert line.startswith("m: a, b, c are not pooled as training runs of one recipe: ")
    assert line.endswith(option)


def test_the_shipped_runs_are_of_one_recipe() -> None:
    paths = [path for path in (shipped_checkpoint(3, seed) for seed in range(10)) if path is not None]
    if len(paths) < 2:
        pytest.skip("fewer than two trained models ship for three states")
    said: list[str] = []
    made = get_all(["transformer"], n_states=3, checkpoints=paths, warn=said.append)
    assert pooled_runs(made) == {"transformer": tuple(f"transformer:{path.stem}" for path in paths)}
    assert not said


def test_a_named_file_gives_its_row_the_name() -> None:
    path = shipped_checkpoint(3)
    if path is None:
        pytest.skip("no trained model ships for three states")
    (made,) = get_all(["transformer:far=last"], n_states=3, checkpoints=[f"best={path}"], warn=print)
    assert made.name == "transformer:far=last:best"
    assert pooled_runs([made]) == {}
