"""Pieces put together are one run of all chains, byte for byte, and nothing is computed again."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from icl_estimators import merge, read_results
from icl_estimators.engine.executors import one_thread
from icl_estimators.evaluate import main as evaluate
from icl_estimators.experiments import plan
from icl_estimators.locking import sole_writer
from icl_estimators.resources import shipped_checkpoint

Refused = Callable[..., str]

STUDY = ["--estimators", "bigram,add-one", "--chains", "200", "--sequences-per-chain", "2", "--length", "8"]
STUDY += ["--decomposition-chains", "100", "--decomposition-sequences", "4", "--jobs", "1", "--quiet"]
CUTS = ((0, 70), (70, 110), (110, 200))
QUIET = ("--no-report", "--quiet")
TRAINED = shipped_checkpoint(3)


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Blocks of one unit, so that a small study has several."""
    with pytest.MonkeyPatch.context() as patch, one_thread():
        patch.setattr(sys.modules["icl_estimators.engine.blocks"], "_BLOCK_SEQUENCES", 100)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study in one run, `whole`, and in three pieces, `0`, `1` and `2`."""
    folder = tmp_path_factory.mktemp("made")
    assert evaluate([*STUDY, "--no-report", "--out", str(folder / "whole")]) == 0
    for number, (start, stop) in enumerate(CUTS):
        ends = ["--chains-from", str(start), "--chains-to", str(stop)]
        assert evaluate([*STUDY, *ends, "--out", str(folder / str(number))]) == 0
    return folder


@pytest.fixture
def pieces(made: Path) -> list[str]:
    return [str(made / str(number)) for number in range(len(CUTS))]


def contents(folder: Path, but: tuple[str, ...] = ("run.json",)) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in but)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_tables_are_those_of_one_run_and_no_block_is_computed(
    made: Path, pieces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> NoReturn:
        raise AssertionError("a block was computed again")

    for work in ("_risk", "_decomposition", "_likeness", "_maps", "_budget"):
        monkeypatch.setattr(plan, work, never)
    before = [contents(Path(piece), ()) for piece in pieces]
    for number, order in enumerate((pieces, pieces[::-1])):
        out = tmp_path / str(number)
        assert merge.main([*order, "--out", str(out), *QUIET]) == 0
        assert contents(out) == contents(made / "whole")
    assert [contents(Path(piece), ()) for piece in pieces] == before


def test_the_record_is_that_of_one_run_with_its_pieces(
    made: Path, pieces: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert merge.main([*pieces, "--out", str(tmp_path), "--no-report"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("200 chains × 2 sequences × 8 tokens; K = 3, α = 1, uniform start, seed 0")
    assert printed.out.endswith(f"  {tmp_path / 'run.json'}\n")
    whole, run = (json.loads((folder / "run.json").read_text("utf-8")) for folder in (made / "whole", tmp_path))
    found = run.pop("pieces")
    assert [(piece["chains_from"], piece["chains_to"]) for piece in found] == list(CUTS)
    assert all(piece["command"].startswith("python -m icl_estimators.evaluate ") for piece in found)
    assert run.pop("command").startswith("python -m icl_estimators.merge ")
    for name in ("command", "dask", "wall_time_s"):
        del whole[name]
    del run["wall_time_s"]
    assert run == whole
    assert read_results(tmp_path).summary() in printed.out
    assert evaluate([*STUDY, "--no-report", "--resume", "--out", str(tmp_path)]) == 0  # it is that study, finished


@pytest.mark.slow
@pytest.mark.skipif(TRAINED is None, reason="no trained model ships for three states")
def test_a_trained_model_its_maps_budget_and_report_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = [*STUDY, "--estimators", "transformer,bigram,add-one", "--length", "12", "--keep", "chains"]
    whole, parts, out = tmp_path / "whole", [str(tmp_path / name) for name in "ab"], tmp_path / "out"
    assert evaluate([*study, "--report", "html", "--out", str(whole)]) == 0
    assert evaluate([*study, "--chains-to", "100", "--out", parts[0]]) == 0
    assert evaluate([*study, "--chains-from", "100", "--out", parts[1]]) == 0
    assert merge.main([*parts, "--out", str(out), "--report", "html", "--quiet"]) == 0
    provenance = ("run.json", "report.md", "report.html")
    assert contents(out, provenance) == contents(whole, provenance)
    assert "figures/budget.svg" in contents(out) or any(name.startswith("figures/") for name in contents(out))

    def page(folder: Path) -> list[str]:
        text = (folder / "report.md").read_text("utf-8")
        return re.sub(r"python -m icl_estimators\.\w+ .*|\| *\d+ s *\|", "", text).splitlines()

    assert page(out) == page(whole)  # but for the command and the time


def test_chains_twice_or_never_are_refused_by_name(pieces: list[str], tmp_path: Path, refused: Refused) -> None:
    out = ["--out", str(tmp_path / "out"), *QUIET]
    line = refused(merge.main, pieces[0], pieces[2], *out)
    assert "chains 70 to 109 of 200 are missing: run evaluate with --chains-from 70 --chains-to 110" in line
    line = refused(merge.main, *pieces, pieces[1], *out)
    assert f"chains 70 to 109 are in both {pieces[1]} and {pieces[1]}: give pieces that do not overlap" in line
    assert not (tmp_path / "out").exists()


def test_pieces_of_another_study_are_refused_by_what_differs(
    pieces: list[str], tmp_path: Path, refused: Refused
) -> None:
    for flag, value, named in (("--seed", "3", "seed is 0"), ("--length", "9", "length is 8")):
        other = str(tmp_path / value)
        assert evaluate([*STUDY, flag, value, "--chains-from", "110", "--out", other]) == 0
        line = refused(merge.main, *pieces[:2], other, "--out", str(tmp_path / "out"), *QUIET)
        assert line == f"merge: these are pieces of different studies: {named} in {pieces[0]} and {value} in {other}\n"


def edited(piece: str, folder: Path, change: Callable[[dict[str, Any]], object]) -> str:
    """Copy a piece as another machine would have written it."""
    shutil.copytree(piece, folder)
    path = folder / "piece.json"
    run = json.loads(path.read_text("utf-8"))
    change(run)
    path.write_text(json.dumps(run), encoding="utf-8")
    return str(folder)


def test_another_version_or_kind_of_cpu_is_refused(pieces: list[str], tmp_path: Path, refused: Refused) -> None:
    out = ["--out", str(tmp_path / "out"), *QUIET]
    other = edited(pieces[2], tmp_path / "b", lambda run: run["identity"]["versions"].update(numpy="1.0"))
    line = refused(merge.main, *pieces[:2], other, *out)
    assert re.search(r'version of numpy is "[\d.]+" in \S+ and "1\.0" in \S+', line)
    other = edited(pieces[2], tmp_path / "c", lambda run: run["identity"]["cpu"]["features"].append("AVX9000"))
    line = refused(merge.main, *pieces[:2], other, *out)
    assert f"CPU features (AVX9000) is absent in {pieces[0]} and there in {other}" in line


def test_this_machine_must_be_one_of_theirs(pieces: list[str], tmp_path: Path, refused: Refused) -> None:
    def elsewhere(run: dict[str, Any]) -> None:
        run["identity"]["cpu"]["machine"] = "another"

    parts = [edited(piece, tmp_path / str(number), elsewhere) for number, piece in enumerate(pieces)]
    line = refused(merge.main, *parts, "--out", str(tmp_path / "out"), *QUIET)
    assert 'the study of the pieces is another one here: CPU machine is "another" in the pieces and "' in line
    assert "merge them where they were computed, or restore what differs" in line


def test_a_missing_or_damaged_block_is_named(pieces: list[str], tmp_path: Path, refused: Refused) -> None:
    part = tmp_path / "part"
    shutil.copytree(pieces[1], part)
    block = next((part / "blocks" / "likeness").glob("*.npz"))
    out = ["--out", str(tmp_path / "out"), *QUIET]
    block.write_bytes(b"nonsense")
    line = refused(merge.main, pieces[0], str(part), pieces[2], *out)
    assert f"the block of chains 100 to 149 of the design likeness is missing or cannot be read in {part}" in line
    block.unlink()
    line = refused(merge.main, pieces[0], str(part), pieces[2], *out)
    assert "of the design likeness is missing or cannot be read: compute that piece again, with --force" in line
    assert list((tmp_path / "out").iterdir()) == []


def test_an_unfinished_piece_and_a_whole_study_are_no_pieces(
    made: Path, pieces: list[str], tmp_path: Path, refused: Refused
) -> None:
    part = tmp_path / "part"
    shutil.copytree(pieces[1], part)
    (part / "piece.json").unlink()
    out = ["--out", str(tmp_path / "out"), *QUIET]
    line = refused(merge.main, pieces[0], str(part), pieces[2], *out)
    assert f"{part} is not finished: continue its run with --resume" in line
    assert "holds no piece of a study" in refused(merge.main, str(made / "whole"), *out)


def test_another_study_is_never_overwritten_unasked(pieces: list[str], tmp_path: Path, refused: Refused) -> None:
    out = tmp_path / "out"
    assert evaluate([*STUDY, "--seed", "9", "--no-report", "--out", str(out)]) == 0
    before = contents(out, ())
    line = refused(merge.main, *pieces, "--out", str(out), *QUIET)
    assert f"{out} holds the results of another study (seed: 9 there, 0 here): name another folder" in line
    assert contents(out, ()) == before
    assert "is one of the pieces: name another folder" in refused(merge.main, *pieces, "--out", pieces[0], "--force")
    copy = tmp_path / "copy"
    shutil.copytree(pieces[0], copy)
    line = refused(merge.main, *pieces, "--out", str(copy), *QUIET)
    assert f"{copy} holds a piece of a study: name another folder" in line
    (copy / "piece.json").unlink()
    line = refused(merge.main, *pieces, "--out", str(copy), *QUIET)
    assert f"{copy / 'blocks'} holds finished blocks of a run that was stopped: name another folder" in line
    for folder in (out, copy):
        assert merge.main([*pieces, "--out", str(folder), "--force", *QUIET]) == 0
        assert not (folder / "blocks").exists()
    assert contents(out) == contents(copy)


def test_a_folder_has_one_writer(pieces: list[str], tmp_path: Path, refused: Refused) -> None:
    import threading

    taken, free = threading.Event(), threading.Event()

    def hold() -> None:
        with sole_writer(tmp_path / "out"):
            taken.set()
            free.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert taken.wait(60)
        assert "another process is writing to" in refused(merge.main, *pieces, "--out", str(tmp_path / "out"), *QUIET)
    finally:
        free.set()
        other.join()


@pytest.mark.skipif(TRAINED is None, reason="no trained model ships for three states")
def test_checkpoints_may_lie_elsewhere_but_must_be_the_same(tmp_path: Path, refused: Refused) -> None:
    assert TRAINED is not None
    first = tmp_path / "first" / TRAINED.name
    first.parent.mkdir()
    for path in (TRAINED, TRAINED.with_suffix(".json")):
        shutil.copy(path, first.parent)
    study = [*STUDY, "--estimators", "transformer,add-one", "--length", "4"]
    part, out = str(tmp_path / "part"), ["--out", str(tmp_path / "out"), *QUIET]
    assert evaluate([*study, "--checkpoint", str(first), "--chains-from", "0", "--out", part]) == 0
    first.parent.rename(tmp_path / "second")
    assert f"no such checkpoint: {first}" in refused(merge.main, part, *out)
    another = shipped_checkpoint(3, 1)
    if another is not None:
        line = refused(merge.main, part, "--checkpoint", str(another), *out)
        assert "the study of the pieces is another one here: trained is " in line
        assert "merge them where they were computed, or restore what differs" in line
    assert merge.main([part, "--checkpoint", str(tmp_path / "second" / TRAINED.name), *out]) == 0
    assert (tmp_path / "out" / "risk.csv").exists()
