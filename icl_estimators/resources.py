"""Where the data files of the package are."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["checkpoint_folder", "shipped_checkpoint", "shipped_states"]

_PACKAGE = Path(__file__).resolve().parent


def checkpoint_folder() -> Path:
    """Return the folder of shipped checkpoints: inside an installed package, or beside it in a source tree."""
    installed = _PACKAGE / "_data" / "checkpoints"
    return installed if installed.is_dir() else _PACKAGE.parent / "data" / "checkpoints"


def shipped_checkpoint(n_states: int, seed: int = 0) -> Path | None:
    """Return the checkpoint that ships for K states and a training seed, if one does."""
    path = checkpoint_folder() / f"k{n_states}-seed{seed}.safetensors"
    return path if path.is_file() else None


def shipped_states() -> list[int]:
    """Return the K for which a checkpoint with training seed 0 ships, in increasing order."""
    names = (path.name for path in checkpoint_folder().glob("k*-seed0.safetensors"))
    return sorted(int(found[1]) for name in names if (found := re.fullmatch(r"k(\d+)-seed0\.safetensors", name)))
