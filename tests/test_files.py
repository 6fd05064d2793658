from __future__ import annotations

import re
from pathlib import Path

import pytest

from icl_estimators.files import require_writable, sha256, write_whole
from icl_estimators.validation import InputError


def test_a_folder_is_made_and_left_empty(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    require_writable(folder)
    require_writable(folder)
    assert folder.is_dir()
    assert list(folder.iterdir()) == []


def test_a_file_in_the_folders_place_is_named(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    with pytest.raises(InputError, match=re.escape(f"{taken} is a file, not a folder: name another with --out")):
        require_writable(taken)
    assert taken.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    below = tmp_path / "taken" / "below"
    with pytest.raises(InputError, match=re.escape(f"cannot write to {below}: Not a directory; name another")):
        require_writable(below)


def test_a_file_appears_whole_and_alone(tmp_path: Path) -> None:
    target = tmp_path / "new" / "table.csv"
    with write_whole(target) as temporary:
        temporary.write_text("one")
        assert not target.exists()
        assert temporary.parent == target.parent  # so that the move cannot cross file systems
    assert target.read_text() == "one"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failed_write_keeps_what_was_there(tmp_path: Path, failure: type[BaseException]) -> None:
    target = tmp_path / "table.csv"
    target.write_text("old")

    def write_half() -> None:
        with write_whole(target) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(failure):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_digest_is_the_known_one(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
