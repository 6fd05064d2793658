"""How a result was made: versions of the libraries, the kind of processor, and the commit of this code if known."""

from __future__ import annotations

import hashlib
import importlib
import json
import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from icl_estimators import __version__

__all__ = [
    "ENVIRONMENT",
    "RESUMED",
    "THERE",
    "code_commit",
    "environment",
    "environment_differences",
    "library_versions",
    "made_with",
    "spelled",
]

RESUMED = "{} was {} and is now {}"
THERE = "{}: {} there, {} here"
"""The wording of a difference: what differs, its earlier value, its value now."""

_LABELS = {"cpu": "CPU", "versions": "version of", "devices": "device of"}
_WHOLE = {"cpu": "the kind of CPU", "versions": "the versions of libraries", "devices": "the device"}
ENVIRONMENT = frozenset(_LABELS)
"""The parts of a study's identity in which single entries are compared."""


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


def environment(*, torch: bool) -> dict[str, Any]:
    """Return what decides the last bits of a number, the work itself apart: versions and the kind of processor.

    Parameters
    ----------
    torch : bool
        Whether torch computes anything; only then is it loaded and asked what it uses of the processor.

    Returns
    -------
    dict
        ``versions``: of Python, the C library, this package, numpy, scipy, torch and numba, and a digest of the
        package's own source. ``cpu``: the machine's architecture, the instruction sets that numpy has found, the BLAS
        kernels that numpy uses, and torch's own choice of vector instructions.
    """
    versions = library_versions("numba") | {
        "icl-estimators source": _own_source(),
        "libc": " ".join(platform.libc_ver()).strip(),
    }
    cpu: dict[str, Any] = {"machine": platform.machine(), "features": _cpu_features(), "blas": _blas()}
    if torch:
        from torch.backends.cpu import get_cpu_capability

        cpu["torch"] = get_cpu_capability()
    return {"versions": versions, "cpu": cpu}


@lru_cache(maxsize=1)
def _own_source() -> str:
    """Return a digest of the modules of this package that compute; those that make reports do not affect numbers."""
    root = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith("reporting/"):
            digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _cpu_features() -> list[str]:
    core = importlib.import_module("numpy._core._multiarray_umath")  # what numpy.show_config() asks
    return sorted(name for name, there in core.__cpu_features__.items() if there)


def _blas() -> str | None:
    """Return the BLAS that numpy loads, with the kernels that it has chosen for this processor."""
    import numpy  # noqa: F401 (loads it)
    from threadpoolctl import threadpool_info

    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    own = [library for library in found if "numpy" in library["filepath"]] or found
    return " ".join(str(own[0].get(key)) for key in ("internal_api", "version", "architecture")) if own else None


def environment_differences(earlier: dict[str, Any], now: dict[str, Any], wording: str = RESUMED) -> list[str]:
    """Return what differs between two environments.

    Parameters
    ----------
    earlier, now : dict
        As :func:`environment` returns them; other keys are not looked at.
    wording : str
        Takes what differs, its earlier value, and the one now.

    Examples
    --------
    >>> environment_differences({"cpu": {"features": ["AVX2"]}}, {"cpu": {"features": ["AVX2", "FMA3"]}})
    ['CPU features (FMA3) was absent and is now there']
    """
    found: list[str] = []
    for key, label in _LABELS.items():
        then, here = earlier.get(key), now.get(key)
        if then is None and here:
            found.append(wording.format(_WHOLE[key], "not recorded", "known"))
            continue
        for part in sorted({*(then or {}), *(here or {})}):
            before, after = (then or {}).get(part), (here or {}).get(part)
            name = f"{label} {part}"
            if isinstance(before, list) and isinstance(after, list):
                lost, new = sorted({*before} - {*after}), sorted({*after} - {*before})
                found += [wording.format(f"{name} ({_few(lost)})", "there", "absent")] * bool(lost)
                found += [wording.format(f"{name} ({_few(new)})", "absent", "there")] * bool(new)
            elif before != after:
                found.append(wording.format(name, spelled(before), spelled(after)))
    return found


def spelled(value: Any) -> str:
    """Return a value as text for a message: at most one line, digests shortened."""
    if isinstance(value, str) and len(value) in (40, 64) and set(value) <= set("0123456789abcdef"):
        return f"{value[:12]}…"
    text = "absent" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else text[:117] + "…"


def _few(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
