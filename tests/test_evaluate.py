from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_estimators.api import compare
from icl_estimators.engine import running
from icl_estimators.engine.executors import one_thread
from icl_estimators.evaluate import main
from icl_estimators.experiments import compare as module_of_compare
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.schemas import SCHEMAS

Refused = Callable[..., str]
Python = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[1]
RULES = "construction,construction-softmax,bigram,add-one"
DESIGN = (
    *("--estimators", RULES, "--chains", "60", "--sequences-per-chain", "2", "--length", "6"),
    *("--decomposition-chains", "10", "--decomposition-sequences", "4"),
)
QUICK = (*DESIGN, "--no-report")  # tests of the report are in test_report.py
ELNINO = ("--dataset", "elnino", "--no-report", "--estimators", RULES)
trained = pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no trained model ships for three states")


@pytest.fixture(scope="session", autouse=True)
def threads() -> Iterator[None]:
    with one_thread():
        yield


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_it_writes_its_folder_and_ends_with_the_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main([*QUICK, "--out", str(out), "--jobs", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    head, _, listing = printed.out.partition("\n\nWrote\n")
    assert head.startswith("60 chains × 2 sequences × 6 tokens; K = 3, α = 1, uniform start, seed 0")
    paths = [Path(line.strip()) for line in listing.splitlines()]
    tables = ["risk", "decomposition", "signed_bias", "differences", "pairs", "likeness"]
    tables += ["budget", "regret_by_visits", "regret_by_entropy", "smoothing", "attention"]
    expected = [*(f"{name}.csv" for name in (*tables, "attention_example", "checks")), "run.json"]
    assert paths == [out / name for name in expected]
    assert sorted(contents(out)) == sorted(expected)


def test_its_tables_are_those_of_the_python_face(tmp_path: Path) -> None:
    assert main([*QUICK, "--out", str(tmp_path), "--quiet", "--seed", "3", "--concentration", "0.7"]) == 0
    result = compare(
        RULES,
        chains=60,
        sequences_per_chain=2,
        length=6,
        decomposition_chains=10,
        decomposition_sequences=4,
        seed=3,
        concentration=0.7,
    )
    for path in result.save(tmp_path / "face"):
        if path.suffix == ".csv":
            assert path.read_bytes() == (tmp_path / path.name).read_bytes()
            header = path.read_text(encoding="utf-8").split("\n", 1)[0]
            assert header == ",".join(SCHEMAS[path.stem].names)


def test_the_record_is_complete(tmp_path: Path) -> None:
    arguments = [*QUICK, "--out", str(tmp_path), "--quiet", "--jobs", "2", "--level", "0.9"]
    assert main(arguments) == 0
    run = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    expected = {"version", "commit", "command", "options", "tuned_gamma", "chains_for_target_se", "libraries"}
    expected |= {"platform", "inputs", "device", "jobs", "threads", "wall_time_s", "streams"}
    assert expected <= set(run)
    assert shlex.split(run["command"]) == ["python", "-m", "icl_estimators.evaluate", *arguments]
    assert (run["device"], run["jobs"], run["threads"], run["inputs"]) == ("cpu", 2, 1, {})
    assert run["wall_time_s"] > 0
    assert run["options"]["level"] == 0.9
    assert run["options"]["estimators"] == RULES.split(",")
    assert (run["default_gamma"], run["tuned_gamma"]) == ({"construction-softmax": 0.645}, {})


@trained
def test_checkpoints_are_recorded_by_their_digest(tmp_path: Path) -> None:
    checkpoint = shipped_checkpoint(3)
    assert checkpoint is not None
    arguments = ["--estimators", "transformer,add-one", *QUICK[2:], "--out", str(tmp_path), "--quiet"]
    assert main([*arguments, "--checkpoint", str(checkpoint)]) == 0
    run = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    assert run["inputs"] == {checkpoint.name: digest}
    assert run["options"]["weights"] == {"transformer": digest}
    assert (tmp_path / "circuit.csv").is_file()


def test_any_number_of_jobs_writes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_WORTH_PROCESSES", 100)
    options = [*QUICK, "--chains", "230", "--sequences-per-chain", "12", "--decomposition-chains", "120", "--quiet"]
    for jobs in ("1", "2"):
        assert main([*options, "--out", str(tmp_path / jobs), "--jobs", jobs]) == 0
    one, two = (contents(tmp_path / jobs) for jobs in ("1", "2"))
    records = [json.loads(folder.pop("run.json")) for folder in (one, two)]
    assert one == two
    for record in records:
        for key in ("command", "jobs", "wall_time_s"):
            del record[key]
    assert records[0] == records[1]


def test_quiet_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--out", str(tmp_path), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_default_that_cannot_take_the_states_is_left_out_with_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*QUICK[2:], "--states", "5", "--out", str(tmp_path)]
    assert main(options) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("left out: transformer: no checkpoint ships for 5 states")
    assert printed.err.count("\n") == 1
    names = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["options"]["estimators"]
    assert len(names) == 7


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--chains", "1"], "chains must be at least 2: one chain has no standard error"),
        (["--chains", "0"], "argument --chains: the value must be an integer of at least 1, not 0"),
        (["--chains", "many"], "argument --chains: 'many' is not an integer"),
        (["--sequences-per-chain", "0"], "argument --sequences-per-chain: the value must be an integer of at least 1"),
        (["--decomposition-sequences", "1"], "decomposition_sequences must be at least 2: bias and variance"),
        (["--decomposition-sequences", "1"], "64 keeps the share of cells with a single sequence small"),
        (["--decomposition-chains", "1"], "decomposition_chains must be 0 (left out) or at least 2"),
        (["--length", "0"], "argument --length: the value must be an integer of at least 1, not 0"),
        (["--states", "1"], "n_states must be an integer of at least 2, not 1"),
        (["--concentration", "0"], "argument --concentration: the value must be a finite number above 0"),
        (["--concentration", "nan"], "argument --concentration: the value must be a finite number above 0"),
        (["--start", "middle"], "argument --start: invalid choice: 'middle'"),
        (["--seed", "-1"], "argument --seed: the value must be an integer of at least 0, not -1"),
        (["--level", "1.5"], "argument --level: the level must lie strictly between 0 and 1, not 1.5"),
        (["--jobs", "0"], "argument --jobs: the value must be an integer of at least 1"),
        (["--estimators", "bigrm"], "unknown estimator 'bigrm' (did you mean bigram?): choose from transformer, "),
        (["--estimators", "bigram,bigram"], "bigram is given twice"),
        (["--estimators", ","], "no estimator is given"),
        (["--estimators", "add-constant:-1"], "the constant of add-constant must be a finite number above 0"),
        (["--estimators", "no_such_module:rule"], "unknown estimator 'no_such_module'"),
        (["--reference", "nobody"], "unknown estimator 'nobody'"),
        (["--device", "nonsense"], "device must be cpu or cuda, not 'nonsense'"),
        (["--device", "cuda:99"], "there is no device cuda:99 on this machine"),
        (["--checkpoint", "nowhere.safetensors"], "no such checkpoint: nowhere.safetensors"),
        (["--nonsense"], "unrecognized arguments: --nonsense (--help lists the options)"),
        (["--chain", "5"], "unrecognized arguments: --chain 5"),
        (["positional"], "unrecognized arguments: positional"),
        (["--delimiter", ";"], "--delimiter does not apply to anything but --sequences: leave it out"),
        (["--characters"], "--characters does not apply to anything but --sequences: leave it out"),
        (["--delimiter", ";", "--characters"], "argument --characters: not allowed with argument --delimiter"),
        (
            ["--decomposition-chains", "0"],
            "--decomposition-sequences does not apply to --decomposition-chains 0: leave it out",
        ),
    ],
)
def test_bad_input_is_one_line_and_2(refused: Refused, options: list[str], complaint: str, tmp_path: Path) -> None:
    line = refused(main, *QUICK, "--out", str(tmp_path / "out"), *options)
    assert line.startswith("evaluate: ")
    assert complaint in line
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--sequences", "x"], "argument --sequences: not allowed with argument --dataset"),
        (["--dataset", "la-nina"], "unknown dataset 'la-nina': choose from elnino"),
        (["--states", "4"], "elnino has 3 states, not 4: leave --states out"),
        (["--estimators", "bayes"], "bayes needs --concentration on observed sequences"),
        (["--estimators", "add-one, bayes"], "bayes needs --concentration on observed sequences"),
        (
            ["--concentration", "1"],
            "--concentration does not apply to observed sequences without bayes among the",
        ),
        (["--characters"], "--characters does not apply to anything but --sequences: leave it out"),
        (["--chains", "2000"], "--chains does not apply to observed sequences: leave it out"),  # the default, but said
        (["--sequences-per-chain", "5"], "--sequences-per-chain does not apply to observed sequences"),
        (["--decomposition-chains", "9"], "--decomposition-chains does not apply to observed sequences"),
        (["--decomposition-sequences", "9"], "--decomposition-sequences does not apply to observed sequences"),
        (["--start", "uniform"], "--start does not apply to observed sequences"),
        (["--seed", "0"], "--seed does not apply to observed sequences"),
        (["--jobs", "2"], "--jobs does not apply to observed sequences"),
        (["--dask", "tcp://x:1"], "--dask does not apply to observed sequences"),
        (["--resume"], "--resume does not apply to observed sequences"),
        (
            ["--seed", "1", "--chains=5", "--jobs", "2"],
            "--chains, --seed and --jobs do not apply to observed sequences",
        ),
    ],
)
def test_what_says_nothing_about_observed_data_is_refused(
    refused: Refused, options: list[str], complaint: str, tmp_path: Path
) -> None:
    assert complaint in refused(main, *ELNINO, "--out", str(tmp_path / "out"), *options)
    assert contents(tmp_path) == {}


@trained
@pytest.mark.parametrize("data", [QUICK[2:], ("--dataset", "elnino", "--no-report")], ids=["chains", "observed"])
def test_a_checkpoint_without_a_transformer_is_refused(refused: Refused, data: list[str], tmp_path: Path) -> None:
    weights = ["--checkpoint", str(shipped_checkpoint(3)), "--out", str(tmp_path / "out")]
    line = refused(main, *data, *weights, "--estimators", "add-one,bigram")
    assert "--checkpoint is for transformer, which is not among the named estimators (add-one, bigram)" in line
    assert not (tmp_path / "out").exists()


SUN = "sun rain sun\nrain\nsun sun rain\n"


def test_what_was_read_is_said_before_the_work_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sun.txt").write_text(SUN)
    options = ["--sequences", str(tmp_path / "sun.txt"), "--estimators", "add-one", "--no-report"]
    assert main([*options, "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == (
        "read sun.txt: 2 states (rain, sun), 3 sequences of 1 to 3 tokens, 4 predictions (1 of one token has nothing "
        "to predict); labels separated by white space\n"
    )
    risk = pd.read_csv(tmp_path / "out" / "risk.csv").set_index("estimator")
    assert risk.estimate["add-one"] == pytest.approx(0.794513, abs=5e-7)
    data = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))["data"]
    assert (data["n_states"], data["labels"], data["n_sequences"]) == (2, ["rain", "sun"], 3)
    assert (data["shortest"], data["longest"], data["n_predictions"]) == (1, 3, 4)
    assert main([*options, "--out", str(tmp_path / "quiet"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("flags", [[], ["--delimiter", "space"]])
def test_a_line_of_one_label_is_no_list_of_letters(tmp_path: Path, flags: list[str]) -> None:
    (tmp_path / "sun.txt").write_text(SUN)
    options = ["--sequences", str(tmp_path / "sun.txt"), "--estimators", "add-one", "--no-report", "--quiet"]
    assert main([*options, *flags, "--out", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))["options"]["states"] == 2


def test_tabs_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "sun.txt").write_text("hot sun\train\thot sun\nrain\train\thot sun\n")
    for delimiter in ("tab", r"\t", "\t"):
        options = ["--sequences", str(tmp_path / "sun.txt"), "--estimators", "add-one", "--no-report", "--quiet"]
        assert main([*options, "--delimiter", delimiter, "--out", str(tmp_path / "out")]) == 0
        run = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
        assert run["data"]["labels"] == ["hot sun", "rain"]
        assert run["data"]["form"] == "labels separated by tabs"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ABACABA\nABBA\n", "is one word: give --characters if each character is a state, or --delimiter with what"),
        ("date,state\n2020,sun\n2021,rain\n", "line 1 looks like the header of a table (date, state occur nowhere"),
        (">s1\nACGT\n>s1\nA\n", "line 3 has the name 's1', as line 1 has: give each record a name of its own"),
        ("", "is empty: give a text file with one sequence per line"),
    ],
)
def test_a_file_that_is_no_list_of_sequences_is_one_line_and_2(
    refused: Refused, text: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "lines.txt").write_text(text)
    line = refused(main, "--sequences", str(tmp_path / "lines.txt"), "--out", str(tmp_path / "out"))
    assert complaint in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["nowhere.txt", ""])
def test_a_file_that_is_not_there_is_named(refused: Refused, name: str, tmp_path: Path) -> None:
    line = refused(main, "--sequences", name, "--out", str(tmp_path / "out"))
    assert (
        "no such file: nowhere.txt (give a text file with one sequence per line)" if name else "is a folder"
    ) in line


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("Half", "half: the prediction for sequence 0 at context length 1 sums to 0.5, not 1: [0.166667"),
        ("NotANumber", "nan: the prediction for sequence 0 at context length 1 has a NaN"),
        ("Negative", "negative: the prediction for sequence 0 at context length 1 has a negative entry"),
        ("Short", "short: predict_proba returned shape (6, "),
        ("Peeking", "peeking: not causal: its prediction at context length 1 changes when only tokens after"),
        ("NoSuchThing", "module strange_rules has no attribute NoSuchThing"),
    ],
)
@pytest.mark.parametrize("data", [QUICK, ELNINO], ids=["chains", "observed"])
def test_a_broken_estimator_is_named_with_its_first_row(
    refused: Refused, rule: str, complaint: str, data: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    line = refused(main, *data, "--out", str(out), "--estimators", f"add-one,strange_rules:{rule}", "--quiet")
    assert complaint in line
    assert not out.exists() or contents(out) == {}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_exception_on_a_chain_names_it_and_loses_nothing(
    refused: Refused, jobs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_WORTH_PROCESSES", 100)
    assert main([*QUICK, "--out", str(tmp_path / "out"), "--quiet"]) == 0
    before = contents(tmp_path / "out")
    design = ["--chains", "4000", "--sequences-per-chain", "1", "--length", "13", "--decomposition-chains", "0"]
    estimators = ["--estimators", "add-one,strange_rules:Unhappy"]
    out = ["--out", str(tmp_path / "out"), "--force", "--quiet"]
    line = refused(main, *design, *estimators, "--jobs", jobs, *out)
    assert line.startswith("evaluate: unhappy failed on chain ")
    assert "ArithmeticError: not this one (fix the estimator, or leave it out with --estimators)" in line
    kept = {name: data for name, data in contents(tmp_path / "out").items() if not name.startswith("blocks")}
    assert kept == before


def test_where_it_cannot_write_is_found_before_the_work(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(module_of_compare, "run_study", never)
    monkeypatch.setattr("icl_estimators.experiments.observed_tables.observed_tables", never)
    (tmp_path / "file").write_text("mine")
    for data in (QUICK, ELNINO):
        line = refused(main, *data, "--out", str(tmp_path / "file"))
        assert line == f"evaluate: {tmp_path / 'file'} is a file, not a folder: name another with --out\n"
        assert "cannot write to" in refused(main, *data, "--out", str(tmp_path / "file" / "below"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures").write_text("mine")
    assert "is a file, not a folder" in refused(main, *DESIGN, "--out", str(tmp_path / "out"))
    assert (tmp_path / "file").read_text() == (tmp_path / "out" / "figures").read_text() == "mine"


def test_another_study_is_overwritten_only_by_force(refused: Refused, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path), "--quiet"]
    assert main([*QUICK, *out]) == 0
    before = contents(tmp_path)
    line = refused(main, *QUICK, *out, "--seed", "1")
    assert f"{tmp_path} holds the results of another study (seed: 0 there, 1 here)" in line
    assert "another study" in refused(main, *ELNINO, *out)
    assert contents(tmp_path) == before
    assert main([*QUICK, *out]) == 0  # the same study
    assert main([*QUICK, *out, "--seed", "1", "--force"]) == 0
    assert contents(tmp_path)["risk.csv"] != before["risk.csv"]


def test_a_broken_record_is_another_study(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    line = refused(main, *QUICK, "--out", str(tmp_path), "--quiet")
    assert "holds a run.json that is not the record of a study" in line
    assert (tmp_path / "run.json").read_text() == "{"


def test_observed_series_leave_nothing_of_an_overwritten_study(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path), "--quiet"]
    assert main([*DESIGN, "--no-report", *out]) == 0
    (tmp_path / "figures").mkdir(exist_ok=True)
    (tmp_path / "figures" / "mine.svg").write_text("mine")
    assert main(["--dataset", "elnino", "--estimators", "add-one", "--no-report", *out, "--force"]) == 0
    assert sorted(contents(tmp_path)) == [
        *("concentration.csv", "concentration_profile.csv", "cumulative.csv", "differences.csv", "figures/mine.svg"),
        *("likelihood_ratio.csv", "orders.csv", "pairs.csv", "risk.csv", "run.json", "series.csv", "transitions.csv"),
    ]


def test_el_nino_has_its_known_losses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    losses = {
        "add-constant:0.1": 0.65776,
        "add-constant:0.5": 0.65685,
        "add-one": 0.66077,
        "add-constant:2": 0.66946,
    }
    assert main(["--dataset", "elnino", "--estimators", ",".join(losses), "--out", str(tmp_path), "--no-report"]) == 0
    risk = pd.read_csv(tmp_path / "risk.csv").set_index("estimator")
    for name, loss in losses.items():
        assert risk.estimate[name] == pytest.approx(loss, abs=5e-6)
    printed = capsys.readouterr().out
    assert "elnino, 731 predictions, states La Niña, neutral, El Niño" in printed
    assert "add-constant:0.5              0.65685" in printed
    differences = pd.read_csv(tmp_path / "differences.csv")
    whole = differences[differences.reference == "add-one"].set_index("estimator")
    for name, loss in losses.items():
        if name != "add-one":
            assert whole.difference[name] == pytest.approx(loss - 0.66077, abs=1e-5)
    assert len(pd.read_csv(tmp_path / "pairs.csv")) == 12
    run = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert run["options"]["data"] == "elnino"
    assert run["options"]["n_predictions"] == 731


def test_observed_sequences_are_compared_with_the_reference_that_was_named(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("ABBA\nABAB\nBBABBAB\n")
    data = ["--sequences", str(tmp_path / "lines.txt"), "--characters"]
    options = [*data, "--estimators", "bigram,unigram", "--quiet", "--no-report"]
    for named, reference in [([], "add-one"), (["--reference", "uniform"], "uniform")]:
        assert main([*options, *named, "--out", str(tmp_path / reference)]) == 0
        differences = pd.read_csv(tmp_path / reference / "differences.csv")
        assert differences.estimator.tolist() == ["bigram", "unigram"]  # no window rows: they would be the same
        assert (differences.reference == reference).all()
        run = json.loads((tmp_path / reference / "run.json").read_text(encoding="utf-8"))
        assert run["options"]["reference"] == reference
    line = refused(main, *options, "--reference", "uniform", "--out", str(tmp_path / "add-one"))
    assert "another study" in line
    assert "bayes needs --concentration" in refused(
        main, *options, "--reference", "bayes", "--out", str(tmp_path / "o")
    )


def test_bayes_on_observed_sequences_is_what_concentration_says(tmp_path: Path) -> None:
    options = ["--dataset", "elnino", "--estimators", "bayes,add-constant:0.3", "--concentration", "0.3"]
    assert main([*options, "--out", str(tmp_path), "--quiet", "--no-report"]) == 0
    risk = pd.read_csv(tmp_path / "risk.csv").set_index("estimator")
    assert risk.estimate["bayes"] == risk.estimate["add-constant:0.3"]


def test_a_file_of_sequences_has_clustered_intervals(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["".join(rng.choice(list("ABC"), size=size)) for size in (20, 35, 28, 40)]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ["--sequences", str(tmp_path / "lines.txt"), "--characters", "--estimators", "add-one", "--length", "10"]
    assert main([*options, "--out", str(tmp_path / "out"), "--quiet", "--no-report"]) == 0
    risk = pd.read_csv(tmp_path / "out" / "risk.csv", keep_default_na=False, na_values={"se": [""]})
    assert risk.estimator.tolist() == ["add-one", "add-one:window=10"]
    assert (risk.se > 0).all()
    assert (risk.n_sequences == 4).all()
    run = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256((tmp_path / "lines.txt").read_bytes()).hexdigest()
    assert run["inputs"] == {"lines.txt": digest}


def test_another_file_of_the_same_name_is_another_study(refused: Refused, tmp_path: Path) -> None:
    for folder, text in (("a", "ABBA\nABAB\n"), ("b", "ABAA\nABAB\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "lines.txt").write_text(text)
    options = ["--characters", "--estimators", "add-one", "--out", str(tmp_path / "out"), "--quiet", "--no-report"]
    assert main(["--sequences", str(tmp_path / "a" / "lines.txt"), *options]) == 0
    line = refused(main, "--sequences", str(tmp_path / "b" / "lines.txt"), *options)
    assert "another study (data_sha256: " in line


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_sequences_may_come_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text("A B B A\nB A B A\n"))
    writer.start()
    options = ["--sequences", str(tmp_path / "pipe"), "--estimators", "add-one", "--out", str(tmp_path / "out")]
    assert main([*options, "--quiet", "--no-report"]) == 0
    writer.join()
    run = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert run["inputs"] == {}
    assert run["options"]["n_predictions"] == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["--length", "1", "--chains", "2", "--sequences-per-chain", "1"],
        ["--states", "2", "--chains", "2", "--sequences-per-chain", "1", "--decomposition-chains", "0"],
        ["--states", "6", "--concentration", "0.001"],
        ["--concentration", "100", "--decomposition-chains", "2", "--decomposition-sequences", "2"],
        ["--start", "stationary", "--concentration", "0.01"],
        ["--length", "300", "--chains", "4", "--decomposition-chains", "2", "--decomposition-sequences", "4"],
        ["--reference", "construction"],
        ["--reference", "add-constant:1.50", "--level", "0.999999"],
        ["--seed", str(2**64)],
    ],
    ids=lambda options: " ".join(options),
)
def test_hostile_designs_end_well(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nested = "--decomposition-chains"
    design = QUICK if nested not in options else (*QUICK[: QUICK.index(nested)], "--no-report")
    assert main([*design, *options, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "nan" not in printed.out.replace("nano", "")
    for path in tmp_path.glob("*.csv"):
        assert len(pd.read_csv(path)) > 0


@pytest.mark.slow
def test_it_runs_as_a_module_without_warnings(python: Python, tmp_path: Path) -> None:
    done = python("-W", "error", "-m", "icl_estimators.evaluate", *QUICK, "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("run.json\n")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_are_one_line_and_leave_no_process(
    tmp_path: Path, hearing: dict[str, Any], number: int, status: int
) -> None:
    """As in a terminal, the signal goes to the workers too; they are in the middle of slow blocks."""
    estimators = ["--estimators", "strange_rules:Slow,add-one"]
    command = [
        sys.executable,
        "-m",
        "icl_estimators.evaluate",
        *estimators,
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)])}
    running = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **hearing,
    )
    try:
        assert wait(lambda: len(in_session(running.pid)) >= 3)  # both workers live
        time.sleep(1.0)
        os.killpg(running.pid, number)
        printed, complaints = running.communicate(timeout=20)
    finally:
        running.kill()
    assert (running.returncode, printed) == (status, "")
    told, line = complaints.splitlines()
    assert told.startswith("slow: about ")  # sequences that it will be asked for
    assert line.startswith("evaluate: stopped; finished blocks are kept in ")
    assert wait(lambda: not in_session(running.pid))
    assert not list((tmp_path / "out").glob("*.*"))


def in_session(session: int) -> list[str]:
    """Return the command lines of the living processes of a session."""
    listing = subprocess.run(["ps", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()]
    return [row[2] for row in rows if len(row) == 3 and row[0] == str(session) and not row[1].startswith("Z")]


def wait(done: Callable[[], bool], seconds: float = 30) -> bool:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if done():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_memory_does_not_grow_with_chains_nor_pass_its_budget(tmp_path: Path) -> None:
    """The seed's question at 50,000 chains, in well under 1.5 GiB."""
    options = [
        "--estimators",
        "construction,construction-softmax,bigram,add-one,unigram,uniform",
        "--quiet",
        "--no-report",
    ]
    code = (
        "import resource, sys\nfrom icl_estimators.evaluate import main\nmain(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    peaks = []
    for chains in ("2000", "50000"):
        design = ["--chains", chains, "--sequences-per-chain", "1", "--decomposition-chains", "0", "--jobs", "1"]
        done = subprocess.run(
            [sys.executable, "-c", code, *options, *design, "--out", str(tmp_path / chains)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(done.stdout))
    assert peaks[1] < 1536
    assert peaks[1] < peaks[0] + 200
