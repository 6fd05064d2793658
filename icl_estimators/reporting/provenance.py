"""Where numbers come from: versions, commit, command, machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from icl_estimators.files import sha256

__all__ = ["provenance"]

_LIBRARIES = ("numpy", "scipy", "pandas", "statsmodels", "torch", "matplotlib")


def provenance(module: str, argv: Sequence[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> dict[str, Any]:
    """Return what it takes to run a command again.

    Parameters
    ----------
    module : str
        What was run with ``python -m``.
    argv : sequence of str
        Its arguments.
    inputs : iterable of paths
        Files that were read; their SHA-256 is recorded.
    """
    return {
        "version": _version("icl-estimators"),
        "commit": _commit(),
        "command": shlex.join(["python", "-m", module, *argv]),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "inputs": {Path(path).name: sha256(path) for path in inputs},
    }


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Return the commit of the source tree the package is run from, if it is one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        shown = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return shown.stdout.strip() or None
