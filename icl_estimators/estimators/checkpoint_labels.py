"""Several checkpoints in one study: what the rows of each are called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from icl_estimators.validation import InputError

__all__ = ["Checkpoint", "label_checkpoints"]

RECIPE_ROWS = "recipe"
"""``transformer:recipe`` are the rows of the recipe itself."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A file with weights, and what its rows are called.

    Attributes
    ----------
    path : Path
    label : str or None
        What follows ``transformer:`` in the name of its rows; None for ``transformer`` alone.
    """

    path: Path
    label: str | None


def label_checkpoints(given: Sequence[str | os.PathLike[str]]) -> list[Checkpoint]:
    """Determine the files and the names of their rows.

    Parameters
    ----------
    given : sequence of paths
        FILE or, as a str, NAME=FILE. Several files without a name are distinguished by their stems, and where
        these are equal by their folders.

    Raises
    ------
    InputError
        If a name is empty, has a colon, is "recipe" or comes twice, or a file comes twice.

    Examples
    --------
    >>> [checkpoint.label for checkpoint in label_checkpoints(["one/model.safetensors", "two/model.safetensors"])]
    ['one/model', 'two/model']
    >>> label_checkpoints(["best=model.safetensors"])[0].label
    'best'
    """
    split = [_split(item) for item in given]
    whole = [path.resolve() for _, path in split]
    for position, (_, path) in enumerate(split):
        if whole[position] in whole[:position]:
            raise InputError(f"the checkpoint {path} is given twice: give each file once")
    if len(split) == 1 and split[0][0] is None:
        return [Checkpoint(split[0][1], None)]
    unnamed = [path.with_suffix("") for (name, _), path in zip(split, whole, strict=True) if name is None]
    labels = [name or _shortest(path.with_suffix(""), unnamed) for (name, _), path in zip(split, whole, strict=True)]
    for label in labels:
        if label == RECIPE_ROWS:
            raise InputError(
                f"a checkpoint cannot be called {label}, the name of its recipe's rows: give it another with "
                "--checkpoint NAME=FILE"
            )
        if labels.count(label) > 1:
            raise InputError(f"two checkpoints are called {label}: name them with --checkpoint NAME=FILE")
    return [Checkpoint(path, label) for (_, path), label in zip(split, labels, strict=True)]


def _split(item: str | os.PathLike[str]) -> tuple[str | None, Path]:
    """Return the name, if one is given, and the file; a file whose own name has an equals sign is a file."""
    if not isinstance(item, str) or "=" not in item or Path(item).is_file():
        return None, Path(item)
    name, _, path = item.partition("=")
    if os.sep in name:  # a folder with an equals sign, and no such file in it
        return None, Path(item)
    if not name or not path or ":" in name:
        raise InputError(f"--checkpoint {item}: write NAME=FILE, with a name that has no colon")
    return name, Path(path)


def _shortest(path: Path, among: Sequence[Path]) -> str:
    """Return the shortest end of a path that distinguishes it from the others."""
    for size in range(1, len(path.parts) + 1):
        end = path.parts[-size:]
        if sum(other.parts[-size:] == end for other in among) == 1:
            return "/".join(end)
    return str(path)  # two endings of one file: refused as two of the same name
