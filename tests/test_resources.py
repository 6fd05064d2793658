from __future__ import annotations

from pathlib import Path

import pytest

from icl_estimators import resources
from icl_estimators.resources import checkpoint_folder, shipped_checkpoint, shipped_states


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree with a package in it and checkpoints beside it."""
    (tmp_path / "icl_estimators").mkdir()
    (tmp_path / "data" / "checkpoints").mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "icl_estimators")
    return tmp_path


def test_in_a_source_tree_checkpoints_lie_beside_the_package(tree: Path) -> None:
    assert checkpoint_folder() == tree / "data" / "checkpoints"


def test_in_an_installed_package_they_lie_inside_it(tree: Path) -> None:
    (tree / "icl_estimators" / "_data" / "checkpoints").mkdir(parents=True)
    assert checkpoint_folder() == tree / "icl_estimators" / "_data" / "checkpoints"


def test_a_checkpoint_is_found_by_states_and_seed(tree: Path) -> None:
    assert shipped_checkpoint(3) is None
    for name in ("k3-seed0", "k3-seed4", "k12-seed0"):
        (tree / "data" / "checkpoints" / f"{name}.safetensors").touch()
    assert shipped_checkpoint(3) == tree / "data" / "checkpoints" / "k3-seed0.safetensors"
    assert shipped_checkpoint(3, seed=4) == tree / "data" / "checkpoints" / "k3-seed4.safetensors"
    assert shipped_checkpoint(3, seed=1) is None
    assert shipped_checkpoint(4) is None
    assert shipped_states() == [3, 12]


def test_files_of_other_names_are_no_checkpoints(tree: Path) -> None:
    for name in ("k3-small-seed0", "kx-seed0", "k-seed0", "k4-seed0.old", "k5-seed1"):
        (tree / "data" / "checkpoints" / f"{name}.safetensors").touch()
    assert shipped_states() == []
    (tree / "data" / "checkpoints" / "k7-seed0.safetensors").mkdir()
    assert shipped_checkpoint(7) is None


def test_without_a_folder_nothing_ships(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tree / "elsewhere" / "icl_estimators")
    assert shipped_checkpoint(3) is None
    assert shipped_states() == []


def test_what_ships_is_there() -> None:
    for states in shipped_states():
        path = shipped_checkpoint(states)
        assert path is not None
        assert path.with_suffix(".json").is_file()
