from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from icl_estimators.estimators import get
from icl_estimators.estimators.registry import TUNED_SPECS
from icl_estimators.exact import main
from icl_estimators.experiments.exact import EXACT_METRICS, exact_risk
from icl_estimators.experiments.tuning import gamma_tuner
from icl_estimators.sources import ChainLaw

RULES = "bigram,add-constant:0.1,construction:3"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_the_csv_has_every_value_at_full_precision(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--states", "2", "--concentration", "0.3", "--context-length", "4", "--estimators", RULES, "--csv"]
    table = list(csv.DictReader(io.StringIO(run(capsys, *arguments))))
    assert list(table[0]) == ["estimator", "context_length", "metric", "estimate"]
    expected = []
    for spec in RULES.split(","):
        risk = exact_risk(get(spec, n_states=2, concentration=0.3), 4, ChainLaw(2, 0.3))
        expected += [(spec, str(n + 1), m, float(risk.metrics[m][n])) for n in range(4) for m in EXACT_METRICS]
    # repr of the float that was read: equal digits are equal bits, and inf and nan are spelled so.
    assert [(*list(row.values())[:3], row["estimate"]) for row in table] == [(*e[:3], repr(e[3])) for e in expected]
    assert {"inf", "nan"} <= {row["estimate"] for row in table}


def test_the_table_is_readable(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "--context-length", "10", "--estimators", "add-one,bigram")
    assert out.startswith(
        "Exact risk, no Monte Carlo error: all 59,049 prefixes of 10 tokens; K = 3, α = 1, uniform start"
    )
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith(("estimator", "add-one"))}
    assert re.search(r"estimator +n=1 +n=2 +n=3 +n=4 +n=6 +n=8 +n=10\n", out)
    assert re.search(r"add-one +0\.2653 +0\.2456 +0\.2227 ", out)
    assert re.search(r"bigram +0\.2653 +inf ", out)
    assert "Every metric at n = 10" in out
    assert rows
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize("n_states", ["2", "5", "8"])
def test_any_number_of_states(capsys: pytest.CaptureFixture[str], n_states: str) -> None:
    out = run(capsys, "--states", n_states, "--context-length", "1", "--estimators", "uniform,bayes", "--csv")
    assert "uniform,1,regret_nats,0.0\n" in out


def test_by_default_everything_that_takes_k_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    for states, left_out in (("3", 0), ("2", 1)):
        assert main(["--states", states, "--context-length", "2", "--csv"]) == 0
        out, err = capsys.readouterr()
        names = list(dict.fromkeys(row["estimator"] for row in csv.DictReader(io.StringIO(out))))
        tune = gamma_tuner(ChainLaw(int(states)), 2)
        assert names == [get(spec, n_states=int(states), tune=tune).name for spec in TUNED_SPECS[left_out:]]
        assert err.count("\n") == left_out
    assert err.startswith("left out: transformer: no checkpoint ships for 2 states")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --context-length"),
        (["--context-length", "0"], "--context-length: the value must be an integer of at least 1, not 0"),
        (["--context-length", "-3"], "--context-length: the value must be an integer of at least 1, not -3"),
        (["--context-length", "2.5"], "argument --context-length: '2.5' is not an integer"),
        (["--context-length", "ten"], "argument --context-length: 'ten' is not an integer"),
        (["--context-length", ""], "argument --context-length: '' is not an integer"),
        (["--context-length"], "argument --context-length: expected one argument"),
        (["--states", "1"], "n_states must be an integer of at least 2, not 1"),
        (["--states", "0"], "argument --states: the value must be an integer of at least 1, not 0"),
        (["--states", "3.0"], "argument --states: '3.0' is not an integer"),
        (["--concentration", "0"], "--concentration: the value must be a finite number above 0, not 0.0"),
        (["--concentration", "-1"], "--concentration: the value must be a finite number above 0, not -1.0"),
        (["--concentration", "nan"], "--concentration: the value must be a finite number above 0, not nan"),
        (["--concentration", "inf"], "--concentration: the value must be a finite number above 0, not inf"),
        (["--concentration", "one"], "argument --concentration: 'one' is not a number"),
        (["--estimators", "bigrm"], "unknown estimator 'bigrm' (did you mean bigram?): choose from transformer, "),
        (["--estimators", "add-constant:-1"], "add-constant must be a finite number above 0, not -1"),
        (["--estimators", "add-constant:"], "has an empty part after a colon: write add-constant:0.5"),
        (["--estimators", "add-constant"], "add-constant needs a value for constant: write add-constant:0.5"),
        (["--estimators", "bigram,bigram"], "bigram is given twice"),
        (["--estimators", ","], "no estimator is given: choose from"),
        (["--estimators", "os:getcwd"], "lacks name, n_states or predict_proba"),
        (["--checkpoint", "absent.safetensors"], "no such checkpoint: absent.safetensors (give a .safe"),
        (["--checkpoint", "."], "no such checkpoint: . (give a .safetensors file)"),
        (["--checkpoint", __file__], "--checkpoint is for transformer, which is not among the named estimators (bigr"),
        (["--context-length", "13"], "has 1,594,323 prefixes, more than the 1,000,000 "),
        (["--context-length", "1000000"], "the largest context length that fits is 12"),
        (["--states", "1000001"], "too many for exact risk"),
        (["--start", "stationary"], "unrecognized arguments: --start stationary"),
        (["--state", "3"], "unrecognized arguments: --state 3"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_status_2(refused: Callable[..., str], arguments: list[str], message: str) -> None:
    defaults = [] if not arguments else ["--context-length", "1", "--estimators", "bigram"]
    line = refused(main, *defaults, *arguments)
    assert line.startswith("exact: ")
    assert message in line


def test_an_estimator_that_breaks_the_contract_is_one_line(refused: Callable[..., str]) -> None:
    line = refused(main, "--context-length", "1", "--estimators", "strange_rules:Half")
    assert "half: the prediction for sequence 0 at context length 1 sums to 0.5, not 1" in line
    line = refused(main, "--context-length", "1", "--states", "4", "--estimators", "bigram,strange_rules:Half")
    assert "strange_rules:Half is for 3 states, but 4 were asked for" in line


def test_it_runs_as_a_module_and_names_itself(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = python("-m", "icl_estimators.exact", "--context-length", "1", "--estimators", "bayes", "--csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "bayes,1,kl_nats,0.2652789553347" in done.stdout
    failed = python("-m", "icl_estimators.exact", "--context-length", "0")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert re.fullmatch(r"exact: argument --context-length: .*\n", failed.stderr)


HEAVY = ("torch", "pandas", "statsmodels", "matplotlib", "scipy")
WATCH = """
import atexit, sys
atexit.register(lambda: print("loaded:", *(m for m in {heavy} if m in sys.modules), file=sys.stderr))
import runpy
sys.argv = [{module!r}, *{arguments}]
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("module", ["icl_estimators.exact", "icl_estimators.predict"])
def test_help_loads_nothing_heavy(python: Callable[..., subprocess.CompletedProcess[str]], module: str) -> None:
    done = python("-c", WATCH.format(heavy=HEAVY, module=module, arguments=["--help"]))
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: python -m {module}")
    assert done.stderr == "loaded:\n"


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("icl_estimators.exact", ["--context-length", "2", "--estimators", "bigram,construction"]),
        ("icl_estimators.predict", ["ABACABADA", "--estimators", "bigram,construction"]),
    ],
)
def test_counting_rules_need_neither_torch_nor_pandas(
    python: Callable[..., subprocess.CompletedProcess[str]], module: str, arguments: list[str]
) -> None:
    done = python("-c", WATCH.format(heavy=HEAVY[:4], module=module, arguments=arguments))
    assert (done.returncode, done.stderr) == (0, "loaded:\n")


def test_ten_tokens_take_seconds_and_little_memory(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    counted = """
import resource, runpy, sys, time
began = time.perf_counter()
sys.argv = ["exact", "--states", "3", "--context-length", "10", "--csv", "--estimators",
            "construction,construction:30,construction-softmax,bigram,add-one,unigram,uniform"]
try:
    runpy.run_module("icl_estimators.exact", run_name="__main__", alter_sys=True)
finally:
    print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""
    pytest.importorskip("resource")
    done = python("-c", counted)
    seconds, kibibytes = map(float, done.stderr.split())
    assert done.stdout.count("\n") == 1 + 7 * 10 * len(EXACT_METRICS)
    assert seconds < 20
    assert kibibytes * (1 if sys.platform != "darwin" else 1 / 1024) < 2**20


def test_a_budget_is_printed_and_sums_to_the_regret(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--context-length", "4", "--estimators", "unigram,bigram,add-one", "--budget"]
    assert main(options) == 0
    shown = capsys.readouterr().out
    assert "Where each estimator loses at n = 4" in shown
    assert "other rows" in shown
    assert main([*options, "--csv"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["estimator", "context_length", "part", "estimate"]
    unigram = {part: float(value) for name, _, part, value in rows[1:] if name == "unigram"}
    assert sum(unigram.values()) == pytest.approx(2 * unigram["regret"], abs=1e-12)
    assert [value for name, _, _, value in rows[1:] if name == "bigram"] == ["inf", *[""] * 6]
