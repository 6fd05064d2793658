"""Pieces of a study: every block is in exactly one, and what does not fit together is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.engine.blocks import blocks
from icl_estimators.engine.pieces import (
    FinishedPiece,
    Piece,
    check_one_study,
    check_piece_folder,
    check_whole,
    read_piece,
)
from icl_estimators.validation import InputError


@given(st.integers(2, 3000), st.data(), st.integers(0, 12_000), st.integers(1, 70))
def test_every_block_of_every_design_is_in_exactly_one_piece(
    total: int, data: st.DataObject, chains: int, sequences: int
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, total - 1), max_size=5)))
    pieces = [Piece(start, stop, total) for start, stop in zip([0, *cuts], [*cuts, total], strict=True)]
    every = list(blocks(chains, sequences))
    assert [block for piece in pieces for block in piece.of(every, chains)] == every


def test_half_of_the_chains_is_half_of_every_design() -> None:
    for chains in (2000, 500, 8000):
        mine = Piece(1000, 2000, 2000).of(blocks(chains, 10), chains)
        assert mine[0].start >= chains / 2
        assert sum(map(len, mine)) == pytest.approx(chains / 2, abs=200)


@pytest.mark.parametrize(
    ("start", "stop", "complaint"),
    [
        (200, 200, "--chains-from 200 leaves none of 200 chains: --chains says how many the whole study has"),
        (0, 201, "--chains-to 201 is beyond the 200 chains of the study"),
        (100, 100, "--chains-from 100 must be below --chains-to 100"),
        (-1, 100, "--chains-from -1 must be below"),
    ],
)
def test_a_piece_is_a_part_of_its_study(start: int, stop: int, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Piece(start, stop, 200)


def finished(folder: str, start: int, stop: int, /, **options: Any) -> FinishedPiece:
    run = {"options": {"chains": 200, "seed": 0, **options}, "identity": {"versions": {"numpy": "2"}}}
    return FinishedPiece(Path(folder), Piece(start, stop, 200), run)


def test_pieces_come_in_the_order_of_their_chains() -> None:
    one, two, three = finished("a", 0, 50), finished("b", 50, 150), finished("c", 150, 200)
    assert check_whole([three, one, two]) == [one, two, three]


@pytest.mark.parametrize(
    ("ranges", "complaint"),
    [
        ([(0, 100), (90, 200)], "chains 90 to 99 are in both a and b: give pieces that do not overlap"),
        ([(0, 100), (99, 200)], "chain 99 is in both a and b"),
        ([(0, 200), (50, 60)], "chains 50 to 59 are in both a and b"),
        ([(0, 100), (0, 100)], "chains 0 to 99 are in both a and b"),
        ([(0, 100)], "chains 100 to 199 of 200 are missing: run evaluate with --chains-from 100 --chains-to 200"),
        ([(0, 50), (60, 190)], "chains 50 to 59, 190 to 199 of 200 are missing"),
        ([(10, 200)], "chains 0 to 9 of 200 are missing: run evaluate with --chains-from 0 --chains-to 10"),
    ],
)
def test_chains_twice_or_never_are_named(ranges: list[tuple[int, int]], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        check_whole([finished(name, *ends) for name, ends in zip("ab", ranges, strict=False)])


def test_pieces_of_different_studies_are_named_by_what_differs() -> None:
    one, other = finished("a", 0, 100), finished("b{}", 100, 200, seed=1)
    with pytest.raises(InputError, match=r"different studies: seed is 0 in a and 1 in b\{\}"):
        check_one_study([one, other])
    other = finished("b", 100, 200)
    other.run["identity"] = {"versions": {"numpy": "3"}}
    with pytest.raises(InputError, match='version of numpy is "2" in a and "3" in b'):
        check_one_study([one, other])
    other = finished("b", 100, 200, length=1, seed=2, start="x", level=3)
    with pytest.raises(InputError, match=r"level is absent in a and 3 in b; .*; and 1 more"):
        check_one_study([one, other])
    check_one_study([one, finished("b", 100, 200)])


def written(folder: Path, **changes: Any) -> Path:
    run = finished("", 0, 100).run | {"kind": "piece", "chains_from": 0, "chains_to": 100, "flags": {}} | changes
    folder.mkdir(exist_ok=True)
    (folder / "piece.json").write_text(json.dumps(run), encoding="utf-8")
    return folder


def test_a_record_comes_back(tmp_path: Path) -> None:
    found = read_piece(written(tmp_path))
    assert (found.folder, found.piece) == (tmp_path, Piece(0, 100, 200))
    assert found.decisive == {"chains": 200, "seed": 0, "versions": {"numpy": "2"}}


def test_what_is_no_finished_piece_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder: "):
        read_piece(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no piece of a study: make one with evaluate --chains-from"):
        read_piece(tmp_path)
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "study.json").write_text("{}")
    with pytest.raises(InputError, match="is not finished: continue its run with --resume"):
        read_piece(tmp_path)
    for changes in ({"kind": "comparison"}, {"options": 3}, {"chains_to": 300}, {"chains_from": "x"}):
        with pytest.raises(InputError, match=r"piece\.json is not the record of a piece"):
            read_piece(written(tmp_path, **changes))
    (tmp_path / "piece.json").write_text("{")
    with pytest.raises(InputError, match=r"piece\.json is not the record of a piece \(JSONDecodeError"):
        read_piece(tmp_path)


def test_a_folder_holds_one_piece_and_no_tables(tmp_path: Path) -> None:
    decisive = finished("", 0, 100).decisive
    assert not check_piece_folder(tmp_path, Piece(0, 100, 200), decisive)
    written(tmp_path)
    assert check_piece_folder(tmp_path, Piece(0, 100, 200), decisive)
    with pytest.raises(InputError, match=r"another piece \(chains_to: 100 there, 90 here\): name another folder"):
        check_piece_folder(tmp_path, Piece(0, 90, 200), decisive)
    with pytest.raises(InputError, match=r"another piece \(seed: 0 there, 5 here\)"):
        check_piece_folder(tmp_path, Piece(0, 100, 200), {**decisive, "seed": 5})
    assert not check_piece_folder(tmp_path, Piece(0, 90, 200), decisive, force=True)
    (tmp_path / "risk.csv").touch()
    with pytest.raises(InputError, match=r"holds risk\.csv of a study: a piece has no tables and needs a folder"):
        check_piece_folder(tmp_path, Piece(0, 100, 200), decisive, force=True)
