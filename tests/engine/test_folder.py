from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from icl_estimators.engine.folder import check_folder, save_tables, write_json
from icl_estimators.engine.tables import Table
from icl_estimators.schemas import SCHEMAS
from icl_estimators.validation import InputError

RUN = {"options": {"seed": 0, "level": 0.95, "estimators": ["bigram"]}, "wall_time_s": 1.0}
TABLES = {
    "attention_example": Table.of("attention_example", [("a", 1, 1, 1, "0", "0", 1.0)]),
    "circuit": Table.of("circuit", [("a", "G", 0, 0, 0.5)]),
}


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.is_file()}


def with_options(**changes: Any) -> dict[str, Any]:
    return {"options": {**RUN["options"], **changes}}  # type: ignore[dict-item]


def test_tables_and_the_record_are_written_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    paths = save_tables(folder, TABLES, RUN)
    assert [path.name for path in paths] == ["attention_example.csv", "circuit.csv", "run.json"]
    assert sorted(contents(folder)) == ["attention_example.csv", "circuit.csv", "run.json"]
    assert json.loads((folder / "run.json").read_text(encoding="utf-8")) == {**RUN, "rows": dict.fromkeys(TABLES, 1)}


def test_the_same_study_may_be_written_again(tmp_path: Path) -> None:
    save_tables(tmp_path, TABLES, RUN)
    save_tables(tmp_path, TABLES, {**RUN, "wall_time_s": 2.0, "command": "another"})
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["wall_time_s"] == 2.0


def test_another_study_is_never_overwritten_unasked(tmp_path: Path) -> None:
    save_tables(tmp_path, TABLES, RUN)
    before = contents(tmp_path)
    for options, difference in (
        ({"seed": 1}, r"\(seed: 0 there, 1 here\)"),
        ({"level": 0.9}, r"\(level: 0.95 there, 0.9 here\)"),
        ({"new": True}, r"\(new: absent there, true here\)"),
        ({"estimators": ["bigram", "add-one"]}, "estimators: "),
    ):
        with pytest.raises(InputError, match=f"holds the results of another study.*{difference}.*--force"):
            save_tables(tmp_path, {}, with_options(**options))
        assert contents(tmp_path) == before
    with pytest.raises(InputError, match="another study"):
        check_folder(tmp_path, None)


def test_force_overwrites_and_removes_what_the_new_study_does_not_have(tmp_path: Path) -> None:
    save_tables(tmp_path, TABLES, RUN)
    (tmp_path / "notes.txt").write_text("mine")
    save_tables(tmp_path, {"circuit": TABLES["circuit"]}, with_options(seed=1), force=True)
    assert sorted(contents(tmp_path)) == ["circuit.csv", "notes.txt", "run.json"]
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["options"]["seed"] == 1


@pytest.mark.parametrize(
    "record", ["", "garbage", "[1, 2]", "3", "null", '{"options": 3}', "{}", '"options"', "\udce9", "[" * 100_000]
)
def test_a_record_that_cannot_be_read_is_another_study(tmp_path: Path, record: str) -> None:
    (tmp_path / "run.json").write_bytes(record.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"holds a run\.json that is not the record of a study: .* --force"):
        check_folder(tmp_path, RUN)
    check_folder(tmp_path, RUN, force=True)


def test_tables_without_a_record_are_of_an_unknown_study(tmp_path: Path) -> None:
    (tmp_path / "checks.csv").write_text("")
    with pytest.raises(InputError, match=r"holds checks\.csv of an unknown study"):
        check_folder(tmp_path, RUN)
    check_folder(tmp_path, RUN, force=True)


def test_other_peoples_files_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("mine")
    check_folder(tmp_path, RUN)
    save_tables(tmp_path, TABLES, RUN)
    assert (tmp_path / "data.csv").read_text() == "mine"


@pytest.mark.parametrize("name", ["run.json", "risk.csv"])
@pytest.mark.parametrize("force", [False, True])
def test_a_folder_where_a_file_is_to_be_written_is_found_before(tmp_path: Path, name: str, force: bool) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=f"{name} is a folder, but a file must be written there"):
        check_folder(tmp_path, RUN, force=force)


def test_a_folder_that_cannot_be_made_or_written_to_is_found_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file, not a folder: name another with --out"):
        check_folder(tmp_path / "file", RUN)
    with pytest.raises(InputError, match=r"cannot write to .*; name another with --out"):
        check_folder(tmp_path / "file" / "below", RUN)
    if hasattr(os, "geteuid") and os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(InputError, match=r"cannot write to .*: Permission denied"):
            check_folder(tmp_path / "locked", RUN)


def test_a_fault_on_the_way_leaves_the_earlier_study_as_it_was(tmp_path: Path) -> None:
    save_tables(tmp_path, TABLES, RUN)
    before = contents(tmp_path)
    bad = {"circuit": TABLES["circuit"], "checks": Table(SCHEMAS["checks"].names, (("\ud800",) * 7,))}
    with pytest.raises(UnicodeEncodeError):
        save_tables(tmp_path, bad, with_options(seed=1), force=True)
    with pytest.raises(TypeError, match="not JSON serializable"):
        save_tables(tmp_path, TABLES, {**RUN, "odd": object()}, force=True)
    assert contents(tmp_path) == before


def test_json_is_readable_and_keeps_its_letters(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"α": "¹", "n": 1 / 3})
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == '{\n  "α": "¹",\n  "n": 0.3333333333333333\n}\n'
