from __future__ import annotations

from pathlib import Path

import pytest

from icl_estimators.estimators.checkpoint_labels import label_checkpoints
from icl_estimators.validation import InputError


def labels(*given: str | Path) -> list[str | None]:
    return [checkpoint.label for checkpoint in label_checkpoints(given)]


def test_one_file_needs_no_label_and_several_have_their_stems() -> None:
    assert labels("a.safetensors") == [None]
    assert labels("best=a.safetensors") == ["best"]
    assert labels("x/a.safetensors", Path("b.safetensors")) == ["a", "b"]
    assert labels("x/a.safetensors", "first=y/a.safetensors") == ["a", "first"]


def test_equal_stems_are_told_apart_by_their_folders() -> None:
    assert labels("x/m.safetensors", "y/m.safetensors", "y/n.safetensors") == ["x/m", "y/m", "n"]
    assert labels("1/x/m.safetensors", "2/x/m.safetensors") == ["1/x/m", "2/x/m"]


def test_an_equals_sign_may_be_part_of_a_path(tmp_path: Path) -> None:
    path = tmp_path / "lr=3.safetensors"
    path.touch()
    assert label_checkpoints([str(path)])[0].path == path
    assert label_checkpoints(["lr=1/m.safetensors"])[0].label == "lr"  # as it is written: a name and a file
    assert label_checkpoints(["x/lr=1/m.safetensors"])[0].label is None


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["=a"], "--checkpoint =a: write NAME=FILE"),
        (["a="], "--checkpoint a=: write NAME=FILE"),
        (["a:b=c"], "--checkpoint a:b=c: write NAME=FILE, with a name that has no colon"),
        (["recipe=a"], "a checkpoint cannot be called recipe, the name of its recipe's rows"),
        (["x/recipe.safetensors", "y/a.safetensors"], "a checkpoint cannot be called recipe"),
        (["n=a", "n=b"], "two checkpoints are called n"),
        (["a", "./a"], "the checkpoint a is given twice"),
        (["a.safetensors", "a.bin"], "two checkpoints are called .*a: name them with --checkpoint NAME=FILE"),
    ],
)
def test_names_that_will_not_do(given: list[str], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        label_checkpoints(given)
