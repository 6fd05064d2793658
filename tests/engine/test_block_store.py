"""Blocks on disk: bit for bit, and never those of another study."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from icl_estimators.engine.block_store import StudyBlocks
from icl_estimators.estimators import get
from icl_estimators.experiments.decomposition import DecompositionMoments, decomposition_block
from icl_estimators.experiments.risk import RiskMoments, risk_block
from icl_estimators.experiments.study import Study
from icl_estimators.inference import Moments
from icl_estimators.inference.trees import from_arrays, to_arrays
from icl_estimators.validation import InputError


def study(**options: object) -> Study:
    return Study(
        (get("bigram"), get("add-one")),
        length=6,
        chains=100,
        sequences_per_chain=2,
        decomposition_chains=50,
        decomposition_sequences=4,
        **options,  # type: ignore[arg-type]
    )


def part(value: float) -> DecompositionMoments:
    return DecompositionMoments({("add-one", "mse"): Moments.of([[value], [value + 1.0]])}, {})


def same(first: object, second: object) -> bool:
    one, other = to_arrays(first), to_arrays(second)
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k], equal_nan=k != "skeleton") for k in one)


@pytest.mark.parametrize(
    ("kind", "block", "chains"),
    [(RiskMoments, risk_block, range(100)), (DecompositionMoments, decomposition_block, range(50))],
)
def test_a_block_comes_back_bit_for_bit(kind, block, chains, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    made = block(study(), chains)
    store = StudyBlocks(tmp_path, {"seed": 0}).design("some", kind)
    store.save(chains, made)
    back = store.load(chains)
    assert same(made, back)
    assert same(made.merge(made), back.merge(back))


def test_a_stationary_start_has_no_martingale_and_comes_back_so() -> None:
    from icl_estimators.sources import ChainLaw

    made = risk_block(study(source=ChainLaw(start="stationary")), range(50))
    assert from_arrays(RiskMoments, to_arrays(made)).martingale is None


def test_nothing_is_pickled(tmp_path: Path) -> None:
    store = StudyBlocks(tmp_path, {}).design("risk", DecompositionMoments)
    store.save(range(50), part(1.0))
    (path,) = (tmp_path / "blocks" / "risk").glob("*.npz")
    with np.load(path, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays)


def test_a_block_that_cannot_be_read_counts_as_missing(tmp_path: Path) -> None:
    store = StudyBlocks(tmp_path, {}).design("risk", DecompositionMoments)
    store.save(range(50), part(1.0))
    (path,) = (tmp_path / "blocks" / "risk").glob("*.npz")
    path.write_bytes(path.read_bytes()[:100])
    assert store.has(range(50))
    assert store.load(range(50)) is None


def test_blocks_are_folded_so_that_the_folder_does_not_grow(tmp_path: Path) -> None:
    store = StudyBlocks(tmp_path, {}).design("risk", DecompositionMoments)
    whole = None
    for first in range(0, 40 * 50, 50):
        chains = range(first, first + 50)
        store.save(chains, part(float(first)))
        whole = part(float(first)) if whole is None else whole.merge(part(float(first)))
        store.passed(chains, whole)
    assert len(list((tmp_path / "blocks" / "risk").iterdir())) <= 9
    count, merged = store.merged()
    assert count == 2000
    assert same(merged, whole)


def test_another_studys_blocks_are_refused_by_the_option_that_differs(tmp_path: Path) -> None:
    first = StudyBlocks(tmp_path, {"seed": 0, "chains": 100})
    first.design("risk", DecompositionMoments).save(range(50), part(1.0))
    with pytest.raises(InputError, match="chains was 100 and is now 200"):
        StudyBlocks(tmp_path, {"seed": 0, "chains": 200}, resume=True)
    StudyBlocks(tmp_path, {"seed": 0, "chains": 100}, resume=True)


def test_a_folder_holds_one_piece_whose_blocks_are_those_of_the_study(tmp_path: Path) -> None:
    first = StudyBlocks(tmp_path, {"seed": 0}, piece={"chains_from": 0, "chains_to": 50})
    first.design("risk", DecompositionMoments).save(range(50), part(1.0))
    with pytest.raises(InputError, match="chains_to was 50 and is now 100"):
        StudyBlocks(tmp_path, {"seed": 0}, resume=True, piece={"chains_from": 0, "chains_to": 100})
    with pytest.raises(InputError, match="chains_from was 0 and is now absent"):
        StudyBlocks(tmp_path, {"seed": 0}, resume=True)
    StudyBlocks(tmp_path, {"seed": 0}, resume=True, piece={"chains_from": 0, "chains_to": 50})
    (tmp_path / "whole").mkdir()
    whole = StudyBlocks(tmp_path / "whole", {"seed": 0}).design("risk", DecompositionMoments)
    (path,) = (tmp_path / "blocks" / "risk").glob("*.npz")
    path.replace(tmp_path / "whole" / "blocks" / "risk" / path.name)
    assert same(whole.load(range(50)), part(1.0))


def test_a_block_of_another_study_is_never_merged(tmp_path: Path) -> None:
    for number, seed in enumerate((0, 1)):
        store = StudyBlocks(tmp_path / str(seed), {"seed": seed}).design("risk", DecompositionMoments)
        for first in range(0, 400, 50):
            store.save(range(first, first + 50), part(float(number)))
        store.save(range(400, 450), part(float(number)))
        if number == 0:
            continue
        for first in range(0, 400, 50):
            store.passed(range(first, first + 50), part(1.0))  # folded into one file at the end
    mine = StudyBlocks(tmp_path / "0", {"seed": 0}, resume=True).design("risk", DecompositionMoments)
    for path in (tmp_path / "1" / "blocks" / "risk").iterdir():
        path.replace(tmp_path / "0" / "blocks" / "risk" / path.name)
    assert mine.load(range(400, 450)) is None
    assert mine.merged() == (0, None)
    assert same(mine.load(range(50)), part(0.0))


def test_blocks_without_a_record_are_not_thrown_away_unasked(tmp_path: Path) -> None:
    StudyBlocks(tmp_path, {"seed": 0}).design("risk", DecompositionMoments).save(range(50), part(1.0))
    (tmp_path / "blocks" / "study.json").unlink()
    with pytest.raises(InputError, match="not readable: start again with --force"):
        StudyBlocks(tmp_path, {"seed": 0}, resume=True)
    with pytest.raises(InputError, match="continue with --resume"):
        StudyBlocks(tmp_path, {"seed": 0})


def test_blocks_of_a_stopped_run_are_not_thrown_away_unasked(tmp_path: Path) -> None:
    StudyBlocks(tmp_path, {"seed": 0}).design("risk", DecompositionMoments).save(range(50), part(1.0))
    with pytest.raises(InputError, match="continue with --resume, or start again with --force"):
        StudyBlocks(tmp_path, {"seed": 0})
    StudyBlocks(tmp_path, {"seed": 0}, force=True)
    assert not list((tmp_path / "blocks").glob("*/*.npz"))


def test_an_unreadable_record_is_said(tmp_path: Path) -> None:
    StudyBlocks(tmp_path, {"seed": 0}).design("risk", DecompositionMoments).save(range(50), part(1.0))
    (tmp_path / "blocks" / "study.json").write_text("{")
    with pytest.raises(InputError, match="not readable: start again with --force"):
        StudyBlocks(tmp_path, {"seed": 0}, resume=True)


def test_the_record_is_plain_json(tmp_path: Path) -> None:
    StudyBlocks(tmp_path, {"seed": 0, "estimators": ("a", "b")})
    assert json.loads((tmp_path / "blocks" / "study.json").read_text()) == {"seed": 0, "estimators": ["a", "b"]}
