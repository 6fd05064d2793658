"""What made a result: versions of the libraries, and the commit of this code where it is known."""

from __future__ import annotations

import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from icl_estimators import __version__

__all__ = ["code_commit", "library_versions", "made_with"]


def library_versions(*others: str) -> dict[str, str | None]:
    """Return the versions that decide a result's numbers; None for a package that is not installed.

    Parameters
    ----------
    *others : str
        Distributions besides this package, numpy, scipy and torch.
    """
    found: dict[str, str | None] = {"python": platform.python_version(), "icl-estimators": __version__}
    return found | {distribution: _version(distribution) for distribution in ("numpy", "scipy", "torch", *others)}


@lru_cache(maxsize=64)  # reading a distribution's metadata takes milliseconds, and snapshots are many
def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@lru_cache(maxsize=1)
def code_commit() -> str | None:
    """Return the commit of this code, with "-dirty" where it was changed; None where it is not known.

    A source tree is asked through git. An installed package remembers what it was built from.
    """
    package = Path(__file__).resolve().parent
    root = package.parent
    if not (root / ".git").exists():
        remembered = package / "_data" / "commit.txt"
        return remembered.read_text(encoding="utf-8").strip() or None if remembered.is_file() else None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def made_with() -> dict[str, Any]:
    """Return what run.json says of the code: its version, its commit, and the libraries' versions."""
    versions = library_versions("pandas", "statsmodels", "matplotlib", "safetensors", "numba")
    return {"version": versions.pop("icl-estimators"), "commit": code_commit(), "libraries": versions}
