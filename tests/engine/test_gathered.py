"""Blocks of pieces are read where they are, and a missing one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from icl_estimators.engine.block_store import StudyBlocks
from icl_estimators.engine.designs import Design, done_so_far
from icl_estimators.engine.gathered import GatheredBlocks
from icl_estimators.engine.pieces import FinishedPiece, Piece
from icl_estimators.experiments.decomposition import DecompositionMoments
from icl_estimators.inference import Moments
from icl_estimators.validation import InputError

IDENTITY = {"seed": 0}


def part(value: float) -> DecompositionMoments:
    return DecompositionMoments({("add-one", "mse"): Moments.of([[value], [value + 1.0]])}, {})


def mean(found: DecompositionMoments | None) -> float:
    assert found is not None
    return float(found.parts["add-one", "mse"].mean[0])


def piece(folder: Path, start: int, stop: int) -> FinishedPiece:
    kept = StudyBlocks(folder, IDENTITY, piece={"chains_from": start, "chains_to": stop})
    store = kept.design("risk", DecompositionMoments)
    for first in range(start, stop, 50):
        store.save(range(first, first + 50), part(float(first)))
    return FinishedPiece(folder, Piece(start, stop, 200), {"options": IDENTITY, "identity": {}})


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_block_is_found_and_nothing_is_written(tmp_path: Path) -> None:
    pieces = [piece(tmp_path / "a", 0, 100), piece(tmp_path / "b", 100, 200)]
    before = files(tmp_path)
    store = GatheredBlocks(pieces).design("risk", DecompositionMoments)
    assert store.merged() == (0, None)
    for first in range(0, 200, 50):
        chains = range(first, first + 50)
        assert store.has(chains)
        assert mean(store.load(chains)) == first + 0.5
        store.save(chains, part(9.0))
        store.passed(chains, part(9.0))
    assert files(tmp_path) == before
    with pytest.raises(InputError, match="block of chains 0 to 49 of the design budget is missing or cannot be read: "):
        GatheredBlocks(pieces).design("budget", DecompositionMoments).load(range(50))
    assert files(tmp_path).keys() == before.keys()
    assert not (tmp_path / "a" / "blocks" / "budget").exists()


def test_a_damaged_block_is_named_with_its_folder(tmp_path: Path) -> None:
    pieces = [piece(tmp_path / "a", 0, 100), piece(tmp_path / "b", 100, 200)]
    (damaged, _) = sorted((tmp_path / "b" / "blocks" / "risk").glob("*.npz"))
    damaged.write_bytes(damaged.read_bytes()[:50])
    with pytest.raises(InputError, match=f"chains 100 to 149 .* in {tmp_path / 'b'}: compute that piece again"):
        GatheredBlocks(pieces).design("risk", DecompositionMoments).load(range(100, 150))


def test_blocks_of_another_study_are_not_taken(tmp_path: Path) -> None:
    found = piece(tmp_path / "a", 0, 100)
    found.run["options"] = {"seed": 1}
    with pytest.raises(InputError, match="is missing or cannot be read"):
        GatheredBlocks([found]).design("risk", DecompositionMoments).load(range(50))


def test_what_is_done_is_counted_by_design(tmp_path: Path) -> None:
    designs = [Design(name, DecompositionMoments, print, 2000, 10, 300) for name in ("risk", "maps")]
    designs.append(Design("budget", DecompositionMoments, print, 0, 2, 300))
    kept = StudyBlocks(tmp_path, IDENTITY)
    kept.design("risk", DecompositionMoments).save(range(200, 400), part(0.0))
    assert done_so_far(designs, kept) == {"risk": (200, 2000), "maps": (0, 2000)}
    assert done_so_far(designs, kept, Piece(0, 300, 2000)) == {"risk": (200, 400), "maps": (0, 400)}
    store = kept.design("risk", DecompositionMoments)
    for first in range(0, 1600, 200):
        store.passed(range(first, first + 200), part(0.0))
    assert done_so_far(designs, kept) == {"risk": (1600, 2000), "maps": (0, 2000)}
