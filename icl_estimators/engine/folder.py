"""The output folder of a study: it holds one study, and each file is written completely or not at all."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from icl_estimators.engine.same_study import differences
from icl_estimators.engine.tables import Table
from icl_estimators.files import require_writable, write_whole
from icl_estimators.locking import sole_writer
from icl_estimators.provenance import THERE
from icl_estimators.reading import PIECE_FILE, ROWS
from icl_estimators.schemas import SCHEMAS
from icl_estimators.validation import InputError

__all__ = ["check_folder", "save_tables", "write_json"]


def check_folder(folder: Path, run: dict[str, Any] | None, *, force: bool = False) -> None:
    """Check that a study may be written to `folder`, before it is run.

    Parameters
    ----------
    folder : Path
    run : dict, optional
        The study, as in run.json, where `options` and `identity` identify it; a folder that holds the same study
        may be written again.
    force : bool
        Overwrite another study.

    Raises
    ------
    InputError
        If the folder cannot be written to, or holds tables of another study, or a piece of one, and `force` is false.
    """
    require_writable(folder)
    record = folder / "run.json"
    for path in (record, *(folder / f"{name}.csv" for name in SCHEMAS)):
        if path.is_dir():
            raise InputError(f"{path} is a folder, but a file must be written there: name another folder with --out")
    if force:
        return
    if (folder / PIECE_FILE).exists():
        raise InputError(
            f"{folder} holds a piece of a study: name another folder with --out, or overwrite it with --force"
        )
    if record.exists():
        try:
            earlier = _decisive(json.loads(record.read_text(encoding="utf-8")))
            known = True
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            known = False
        if not known:
            raise InputError(
                f"{folder} holds a run.json that is not the record of a study: name another folder with --out, or "
                "overwrite it with --force"
            )
        differs = differences(earlier, json.loads(json.dumps(_decisive(run or {"options": {}}))), THERE)
        if not differs:
            return
        raise InputError(
            f"{folder} holds the results of another study ({_listed(differs)}): name another folder with --out, or "
            "overwrite it with --force"
        )
    present = [name for name in SCHEMAS if (folder / f"{name}.csv").exists()]
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
        As :func:`check_folder`, or if another process is writing to the folder.
    """
    with sole_writer(folder):
        return _save(folder, tables, run, force)


def _save(folder: Path, tables: dict[str, Table], run: dict[str, Any], force: bool) -> list[Path]:
    check_folder(folder, run, force=force)
    paths = [folder / f"{name}.csv" for name in tables]
    # All are written before the first takes its place, so that a full disk leaves the earlier study as it was; what is
    # entered first takes its place last.
    with ExitStack() as together:
        record = together.enter_context(write_whole(folder / "run.json"))
        for table, path in zip(tables.values(), paths, strict=True):
            table.write(together.enter_context(write_whole(path)))
        write_json(record, {**run, ROWS: {name: len(table.rows) for name, table in tables.items()}})
    if (folder / PIECE_FILE).exists():
        (folder / PIECE_FILE).unlink()
        shutil.rmtree(folder / "blocks", ignore_errors=True)
    for name in SCHEMAS:
        if name not in tables:
            (folder / f"{name}.csv").unlink(missing_ok=True)
    return [*paths, folder / "run.json"]


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write readable JSON, completely or not at all."""
    with write_whole(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _decisive(run: dict[str, Any]) -> dict[str, Any]:
    """Return what decides a study's numbers; the command, time and workers do not."""
    return {**run["options"], **run.get("identity", {})}


def _listed(differs: list[str]) -> str:
    return "; ".join(differs[:3]) + (f"; and {len(differs) - 3} more" if len(differs) > 3 else "")
