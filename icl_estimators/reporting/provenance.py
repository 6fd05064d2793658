"""Where numbers come from: versions, commit, command, machine."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from icl_estimators.files import sha256
from icl_estimators.provenance import made_with

__all__ = ["provenance"]


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
    files = list(dict.fromkeys(map(Path, inputs)))
    names = [path.name for path in files]
    return {
        **made_with(),
        "command": shlex.join(["python", "-m", module, *argv]),
        "platform": platform.platform(),
        # Files of one name in two folders are two inputs.
        "inputs": {path.name if names.count(path.name) == 1 else str(path): sha256(path) for path in files},
    }
