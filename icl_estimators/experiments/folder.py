"""The output folder of a study: never another study's, and each file whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from icl_estimators.experiments.tables import COLUMNS, Table
from icl_estimators.files import require_writable, write_whole
from icl_estimators.validation import InputError

__all__ = ["check_folder", "save_tables", "write_json"]

# What decides the numbers; the command, time and workers do not.
_IDENTITY = ("options",)


def check_folder(folder: Path, run: dict[str, Any] | None, *, force: bool = False) -> None:
    """Find out whether a study may be written to `folder`, before it is run.

    Parameters
    ----------
    folder : Path
    run : dict, optional
        The study, as in run.json; a folder that holds the very same one may be written again.
    force : bool
        Overwrite another study.

    Raises
    ------
    InputError
        If the folder cannot be written to, or holds tables of another study and `force` is false.
    """
    require_writable(folder)
    if force:
        return
    record = folder / "run.json"
    if record.exists():
        try:
            earlier = json.loads(record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            earlier = {}
        if run is not None and _identity(earlier) == _identity(run):
            return
        differs = _first_difference(earlier.get("options", {}), (run or {}).get("options", {}))
        raise InputError(
            f"{folder} holds the results of another study{differs}: name another folder with --out, or overwrite "
            "it with --force"
        )
    present = [name for name in COLUMNS if (folder / f"{name}.csv").exists()]
    if present:
        raise InputError(
            f"{folder} holds {present[0]}.csv of an unknown study: name another folder with --out, or overwrite "
            "it with --force"
        )


def save_tables(folder: Path, tables: dict[str, Table], run: dict[str, Any], *, force: bool = False) -> list[Path]:
    """Write the tables and run.json; tables of an earlier study that this one does not make are removed.

    Raises
    ------
    InputError
        As :func:`check_folder`.
    """
    check_folder(folder, run, force=force)
    for name in COLUMNS:
        if name not in tables:
            (folder / f"{name}.csv").unlink(missing_ok=True)
    paths = []
    for name, table in tables.items():
        paths.append(folder / f"{name}.csv")
        table.write(paths[-1])
    paths.append(folder / "run.json")
    write_json(paths[-1], run)
    return paths


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write readable JSON, whole or not at all."""
    with write_whole(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _identity(run: dict[str, Any]) -> str:
    """Return what two runs of the same study have in common, in a canonical form."""
    return json.dumps({key: run.get(key) for key in _IDENTITY}, sort_keys=True)


def _first_difference(earlier: dict[str, Any], now: dict[str, Any]) -> str:
    for key in sorted(set(earlier) | set(now)):
        if json.dumps(earlier.get(key)) != json.dumps(now.get(key)):
            return f" ({key}: {earlier.get(key)} there, {now.get(key)} here)"
    return ""
