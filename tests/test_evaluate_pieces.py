"""A study in parts: pieces of it, and runs that a time limit stops."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from icl_estimators.engine.executors import one_thread
from icl_estimators.engine.reading import read_folder
from icl_estimators.evaluate import main
from icl_estimators.identify import main as identify
from icl_estimators.options import STOPPED
from icl_estimators.validation import InputError

Refused = Callable[..., str]

STUDY = ["--estimators", "bigram,add-one", "--chains", "200", "--sequences-per-chain", "2", "--length", "8"]
STUDY += ["--decomposition-chains", "100", "--decomposition-sequences", "4", "--jobs", "1", "--no-report"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Blocks of one unit, so that a small study has several."""
    monkeypatch.setattr(sys.modules["icl_estimators.engine.blocks"], "_BLOCK_SEQUENCES", 100)
    with one_thread():
        yield


def blocks(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out / "blocks")) for path in out.glob("blocks/*/*.npz"))


def tables(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.glob("*.csv")}


def test_a_piece_holds_its_blocks_and_a_record_and_no_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main([*STUDY, "--chains-from", "50", "--chains-to", "150", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out == (
        f"chains 50 to 149 of 200 are in {out}; put all pieces together: python -m icl_estimators.merge {out} … --out "
        "WHOLE\n"
    )
    assert sorted(path.name for path in out.iterdir()) == ["blocks", "piece.json"]
    names = [
        f"{design}/chains-{first:08d}-{first + 50:08d}.npz" for design in ("likeness", "risk") for first in (50, 100)
    ]
    assert blocks(out) == ["decomposition/chains-00000050-00000100.npz", *names]
    run = json.loads((out / "piece.json").read_text("utf-8"))
    assert (run["kind"], run["chains_from"], run["chains_to"], run["options"]["chains"]) == ("piece", 50, 150, 200)
    assert run["designs"]["decomposition"] == {"blocks": 1, "chains": 50, "of_chains": 100}
    assert run["flags"]["estimators"] == "bigram,add-one"
    assert run["command"].startswith("python -m icl_estimators.evaluate --estimators bigram,add-one")
    with pytest.raises(InputError, match="holds a piece of a study, without tables: put it together with the other"):
        read_folder(out)


def test_one_end_is_enough(tmp_path: Path) -> None:
    for flag, ends in ((["--chains-to", "50"], (0, 50)), (["--chains-from", "150"], (150, 200))):
        out = tmp_path / flag[0]
        assert main([*STUDY, *flag, "--quiet", "--out", str(out)]) == 0
        run = json.loads((out / "piece.json").read_text("utf-8"))
        assert (run["chains_from"], run["chains_to"]) == ends


def test_a_piece_without_a_block_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*STUDY, "--chains-from", "10", "--chains-to", "20", "--quiet", "--out", str(tmp_path)]) == 0
    assert (
        capsys.readouterr().err == "no block of this study begins among chains 10 to 19: there was nothing to compute\n"
    )
    assert blocks(tmp_path) == []


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--chains-from", "200"], "--chains-from 200 leaves none of 200 chains: --chains says how many the whole"),
        (["--chains-to", "201"], "--chains-to 201 is beyond the 200 chains of the study"),
        (["--chains-from", "60", "--chains-to", "50"], "--chains-from 60 must be below --chains-to 50"),
        (["--chains-from", "-1"], "the value must be an integer of at least 0, not -1"),
        (["--max-time", "0"], "argument --max-time: the number of minutes must be a finite number above 0"),
        (["--max-time", "soon"], "argument --max-time: 'soon' is not a number"),
    ],
)
def test_what_is_no_piece_is_refused(tmp_path: Path, refused: Refused, flags: list[str], complaint: str) -> None:
    assert complaint in refused(main, *STUDY, *flags, "--out", str(tmp_path))


def test_flags_that_would_be_ignored_are_refused(tmp_path: Path, refused: Refused) -> None:
    line = refused(main, *STUDY[:-1], "--chains-from", "0", "--report", "html", "--out", str(tmp_path))
    assert "--report does not apply to a piece of a study, which has no tables: leave it out" in line
    for flags in (["--chains-from", "0"], ["--chains-to", "5"], ["--max-time", "5"]):
        line = refused(main, "--dataset", "elnino", *flags, "--out", str(tmp_path))
        assert f"{flags[0]} does not apply to observed sequences: leave it out" in line


def test_a_folder_holds_one_thing(tmp_path: Path, refused: Refused, capsys: pytest.CaptureFixture[str]) -> None:
    piece = [*STUDY, "--chains-to", "50", "--out", str(tmp_path / "piece")]
    assert main([*piece, "--quiet"]) == 0
    assert "continue with --resume, or start again with --force" in refused(main, *piece)
    assert main([*piece, "--resume"]) == 0
    assert capsys.readouterr().out.startswith("chains 0 to 49 of 200 already are in ")
    other = [*STUDY, "--chains-to", "100", "--out", str(tmp_path / "piece")]
    assert "holds another piece (chains_to: 50 there, 100 here)" in refused(main, *other, "--resume")
    whole = [*STUDY, "--out", str(tmp_path / "piece")]
    for more in ([], ["--resume"]):
        assert "holds a piece of a study: name another folder with --out, or overwrite" in refused(main, *whole, *more)
    assert main([*other, "--force", "--quiet"]) == 0
    assert len([name for name in blocks(tmp_path / "piece") if name.startswith("risk")]) == 2
    quick = ["bigram", "--chains", "40", "--sequences-per-chain", "1", "--length", "4", "--jobs", "1", "--no-report"]
    assert identify([*quick, "--quiet", "--csv", "--out", str(tmp_path / "piece"), "--force"]) == 0
    assert not (tmp_path / "piece" / "piece.json").exists()
    assert blocks(tmp_path / "piece") == []
    capsys.readouterr()
    for more in ([], ["--force"]):
        line = refused(main, *piece, *more)
        assert "holds run.json of a study: a piece has no tables and needs a folder of its own" in line


def test_an_unfinished_piece_is_continued_as_that_piece(
    tmp_path: Path, refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    piece = [*STUDY, "--chains-to", "100", "--out", str(out)]
    assert main([*piece, "--max-time", "1e-6"]) == STOPPED
    assert "; 50 of 250 chains are done (risk 50 of 100, decomposition 0 of 50, likeness 0 of 100);" in (
        capsys.readouterr().err
    )
    assert not (out / "piece.json").exists()
    assert "chains_to was 100 and is now absent" in refused(main, *STUDY, "--out", str(out), "--resume")
    assert "chains_to was 100 and is now 150" in refused(main, *piece[:-3], "150", "--out", str(out), "--resume")
    first = (out / "blocks" / "risk" / "chains-00000000-00000050.npz").stat().st_mtime_ns
    assert main([*piece, "--resume", "--quiet"]) == 0
    assert (out / "blocks" / "risk" / "chains-00000000-00000050.npz").stat().st_mtime_ns == first
    assert len(blocks(out)) == 5


def test_a_run_out_of_time_keeps_its_blocks_and_is_continued_to_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = [*STUDY, "--chains", "100", "--decomposition-chains", "50", "--quiet"]
    assert main([*study, "--out", str(tmp_path / "whole")]) == 0
    out = tmp_path / "out"
    done = []
    for _ in range(9):
        status = main([*study, "--max-time", "1e-6", "--resume", "--out", str(out)])
        if status == 0:
            break
        assert status == STOPPED == 75
        printed, line = capsys.readouterr()
        assert (printed, line.count("\n")) == ("", 1)
        assert line.startswith("evaluate: stopped by --max-time 1e-06; ")
        assert line.endswith(f"finished blocks are kept in {out / 'blocks'}: continue with --resume\n")
        found = re.search(r"; (\d+) of 250 chains are done \(risk ", line)
        assert found is not None
        done.append(int(found[1]))
        assert tables(out) == {}
    assert done == [50, 100, 150, 200]  # one block for each run, however short; after the last come the tables
    assert tables(out) == tables(tmp_path / "whole")
    assert not (out / "blocks").exists()


def test_a_whole_run_that_overwrites_a_piece_can_be_continued(tmp_path: Path) -> None:
    assert main([*STUDY, "--quiet", "--chains-to", "100", "--out", str(tmp_path)]) == 0
    assert main([*STUDY, "--quiet", "--force", "--max-time", "1e-6", "--out", str(tmp_path)]) == STOPPED
    assert not (tmp_path / "piece.json").exists()
    assert main([*STUDY, "--quiet", "--resume", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "risk.csv").exists()


def test_enough_time_changes_nothing(tmp_path: Path) -> None:
    assert main([*STUDY, "--quiet", "--max-time", "60", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "run.json").exists()
