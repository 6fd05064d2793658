from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icl_estimators import effective_smoothing
from icl_estimators.engine.executors import one_thread
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.smoothing import main

Refused = Callable[..., str]

QUICK = (
    "--estimators",
    "unigram,bigram",
    "--chains",
    "40",
    "--sequences-per-chain",
    "2",
    "--length",
    "8",
    "--jobs",
    "1",
    "--no-report",
)
trained = pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no trained model ships for three states")


@pytest.fixture(autouse=True)
def threads():
    with one_thread():
        yield


def test_a_run_leaves_tables_figures_and_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results"
    assert main([*QUICK, "--out", str(out)]) == 0
    text, errors = capsys.readouterr()
    assert errors == ""
    assert "Effective pseudo-count α of each estimator" in text
    assert "Left over by a rule" in text
    for name in ("smoothing.csv", "run.json", "figures/pseudo_count.svg", "figures/prediction.pdf"):
        assert (out / name).is_file(), name
        assert str(out / name if "/" not in name else out / "figures" / "*.svg, *.pdf") in text
    assert not (out / "interventions.csv").exists()
    assert not (out / "figures" / "mechanism.svg").exists()
    table = pd.read_csv(out / "smoothing.csv")
    assert set(table.by) == {"overall", "context-length", "visits"}
    first = table[(table.estimator == "bigram") & (table.parameter == "pseudo_count")].iloc[0]
    assert (first.estimate, bool(first.boundary), bool(first.identified)) == (0.0, True, True)
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert record["command"].startswith("python -m icl_estimators.smoothing --estimators unigram,bigram")
    assert record["options"]["by"] == ["overall", "context-length", "visits"]
    assert record["options"]["estimators"] == ["unigram", "bigram", "add-one"]
    assert record["streams"] == ["smoothing", "tuning"]
    assert "decomposition_chains" not in record["options"]


def test_files_say_what_is_infinite_true_and_undefined(tmp_path: Path) -> None:
    assert main([*QUICK, "--out", str(tmp_path), "--quiet", "--estimators", "uniform", "--families", "none"]) == 0
    lines = (tmp_path / "smoothing.csv").read_text(encoding="utf-8").splitlines()
    overall = next(line for line in lines if line.startswith("uniform,overall,,add-constant,pseudo_count"))
    assert overall.split(",")[5:9] == ["inf", "", "inf", "inf"]
    assert ",True,True," in overall
    assert "at the boundary inf" in overall


@pytest.mark.slow
def test_groups_and_families_are_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--out", str(tmp_path), "--by", "overall", "--families", "affine"]) == 0
    table = pd.read_csv(tmp_path / "smoothing.csv")
    assert set(table.family) == {"add-constant", "affine", "uniform"}
    assert "n_v = 5" not in capsys.readouterr().out
    assert not (tmp_path / "figures" / "prediction.svg").exists()
    assert main([*QUICK, "--out", str(tmp_path), "--by", "visits", "--families", "none", "--force"]) == 0
    assert "Left over by a rule" not in capsys.readouterr().out
    assert (tmp_path / "figures" / "prediction.svg").exists()


@trained
def test_the_command_and_the_python_face_choose_one_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both tell the model how much is coming; the kernel's last bits are others than torch's."""
    pytest.importorskip("numba")
    monkeypatch.setattr("icl_estimators.transformer.engines._PAIRS", {"training": 1.0, "prediction": 1.0})
    small = ["--estimators", "transformer", "--families", "none", "--no-interventions", *QUICK[2:]]
    assert main([*small, "--out", str(tmp_path / "command"), "--quiet"]) == 0
    record = json.loads((tmp_path / "command" / "run.json").read_text(encoding="utf-8"))
    assert record["options"]["kernel"] == ["transformer"]
    design = {"chains": 40, "sequences_per_chain": 2, "length": 8}
    face = effective_smoothing("transformer", families=[], interventions=False, **design)
    assert (face.run["options"], face.run["identity"]) == (record["options"], record["identity"])
    face.save(tmp_path / "face")
    one, other = ((tmp_path / name / "smoothing.csv").read_bytes() for name in ("command", "face"))
    assert one == other


def test_quiet_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--out", str(tmp_path), "--quiet", "--by", "overall", "--families", "none"]) == 0
    assert capsys.readouterr() == ("", "")


def test_another_study_is_not_overwritten(tmp_path: Path, refused: Refused) -> None:
    short = [*QUICK, "--by", "overall", "--families", "none", "--quiet", "--out", str(tmp_path)]
    assert main(short) == 0
    assert main(short) == 0  # the very same one may be
    before = (tmp_path / "smoothing.csv").read_bytes()
    line = refused(main, *short, "--seed", "1")
    assert "another study (seed: 0 there, 1 here)" in line
    assert (tmp_path / "smoothing.csv").read_bytes() == before
    assert main([*short, "--seed", "1", "--force"]) == 0
    assert (tmp_path / "smoothing.csv").read_bytes() != before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "length"), "unknown grouping 'length': choose from overall, context-length, visits"),
        (("--by", ","), "no grouping is given"),
        (("--families", "lidstone"), "unknown family 'lidstone': choose from add-constant, affine"),
        (("--chains", "1"), "chains must be at least 2"),
        (("--estimators", "bigrm"), "unknown estimator 'bigrm' (did you mean bigram?)"),
        (("--level", "95"), "level"),
        (("--decomposition-chains", "10"), "unrecognized arguments"),
        (("--by", "visits", "--families", "affine"), "--families does not apply to --by visits, which omits overall"),
        (("--checkpoint", __file__), "--checkpoint is for transformer, which is not among the named estimators"),
    ],
)
def test_what_the_user_can_mend_is_one_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, refused: Refused
) -> None:
    line = refused(main, *QUICK, "--out", str(tmp_path), *arguments)
    assert line.startswith("smoothing: ")
    assert message in line


def test_a_file_in_the_way_is_named(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "results").write_text("")
    assert "is a file, not a folder" in refused(main, *QUICK, "--out", str(tmp_path / "results"))


@pytest.mark.slow
@trained
def test_a_trained_model_is_intervened_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = [*QUICK, "--estimators", "transformer", "--by", "visits", "--families", "none", "--out", str(tmp_path)]
    assert main(short) == 0
    text = capsys.readouterr().out
    assert "with parts of transformer replaced" in text
    assert "the effect of spread attention" in text
    table = pd.read_csv(tmp_path / "interventions.csv")
    assert table.intervention.iloc[0] == "intact"
    copied = table.intervention == "perfect-read-out"  # in so few chains its pseudo-count may be 0, its logarithm −inf
    assert np.isfinite(table.estimate[~copied]).all()
    assert np.isposinf(table.estimate[copied & table.quantity.str.startswith("regret")]).all()
    assert (tmp_path / "mechanism.csv").is_file()
    assert (tmp_path / "figures" / "mechanism.svg").is_file()
    assert main([*short, "--no-interventions", "--force"]) == 0
    assert not (tmp_path / "interventions.csv").exists()
    assert not (tmp_path / "mechanism.csv").exists()
    assert not (tmp_path / "figures" / "mechanism.svg").exists()


def test_help_says_what_it_does(python: Callable[..., object]) -> None:
    done = python("-m", "icl_estimators.smoothing", "--help")
    assert done.returncode == 0  # type: ignore[attr-defined]
    assert "Find which pseudo-count each estimator acts like" in done.stdout  # type: ignore[attr-defined]
