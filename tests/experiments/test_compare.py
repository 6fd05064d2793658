from __future__ import annotations

import copy
import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import __main__
from icl_estimators import estimators as module_of_estimators
from icl_estimators.api import Comparison, compare, effective_smoothing
from icl_estimators.engine import running
from icl_estimators.engine.blocks import blocks
from icl_estimators.estimators import DEFAULT_SPECS, ContractError, get, get_all
from icl_estimators.estimators.training_runs import pooled_runs
from icl_estimators.evaluate import main as evaluate
from icl_estimators.experiments import assembly
from icl_estimators.experiments.assembly import weight_files
from icl_estimators.experiments.risk import risk_block
from icl_estimators.experiments.study import Study
from icl_estimators.experiments.tuning import gamma_tuner
from icl_estimators.inference import merge_in_order
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import ChainLaw, sample_chains
from icl_estimators.validation import InputError
from strange_rules import Changed, Flat, Foreseeing, Leaning, Secretive, Unhappy

SHIPPED: list[Any] = [shipped_checkpoint(3, seed) for seed in (0, 1)]
several = pytest.mark.skipif(None in SHIPPED, reason="fewer than two trained models ship for three states")

QUICK: dict[str, Any] = {"chains": 60, "sequences_per_chain": 2, "length": 5, "decomposition_chains": 0}


def saved(result: Comparison, folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in result.save(folder) if path.suffix == ".csv"}


@pytest.mark.slow
def test_tables_are_the_same_bytes_for_any_number_of_processes(
    rules: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_WORTH_PROCESSES", 100)
    processes: list[int] = []

    class Counted(running.Processes):
        def __init__(self, shared: Any, jobs: int) -> None:
            processes.append(jobs)
            super().__init__(shared, jobs)

    monkeypatch.setattr(running, "Processes", Counted)
    options: dict[str, Any] = {
        "chains": 230,  # a last unit of 30 chains, a last block of one unit and a part
        "sequences_per_chain": 12,
        "decomposition_chains": 110,
        "decomposition_sequences": 30,
        "length": 9,
        "seed": 3,
    }
    names = [name for name in rules if name in ("transformer", "construction-softmax", "bigram", "add-one")]
    one, two = (saved(compare(names, jobs=jobs, **options), tmp_path / str(jobs)) for jobs in (1, 2))
    assert processes == [2]
    assert one == two
    expected = {"risk.csv", "decomposition.csv", "signed_bias.csv", "differences.csv", "checks.csv"}
    assert expected < set(one)


def test_small_studies_stay_in_this_process() -> None:
    result = compare([Secretive(), "add-one"], jobs=8, **QUICK)
    assert result.run["jobs"] == 8


def test_more_chains_and_longer_sequences_keep_what_was_there() -> None:
    options = {"seed": 9, "law": ChainLaw(3, 0.7, "stationary")}
    few = sample_chains(range(4), sequences_per_chain=2, length=6, **options)  # type: ignore[arg-type]
    many = sample_chains(range(7), sequences_per_chain=5, length=11, **options)  # type: ignore[arg-type]
    np.testing.assert_array_equal(many.transition[:4], few.transition)
    np.testing.assert_array_equal(many.tokens[:4, :2, :7], few.tokens)


def test_a_longer_study_has_the_same_first_rows() -> None:
    names = ["bigram", "add-one", "unigram"]
    short, long = (compare(names, **{**QUICK, "length": length}).risk for length in (5, 9))
    keep = long[long.context_length.isin(range(1, 6))].reset_index(drop=True)
    short = short[short.context_length != "mean"].reset_index(drop=True)
    columns = ["estimator", "context_length", "metric", "estimate", "n_chains"]
    pd.testing.assert_frame_equal(keep[columns], short[columns], check_exact=True)
    np.testing.assert_allclose(keep.se, short.se, rtol=1e-12)  # products of another shape


def test_another_seed_is_another_study() -> None:
    first, again, other = (compare(["add-one"], seed=seed, **QUICK).risk.estimate[1] for seed in (0, 0, 1))
    assert first == again != other


def test_tables_are_frames_by_their_names(small: Comparison) -> None:
    assert list(small.tables)[:4] == ["risk", "decomposition", "signed_bias", "differences"]
    for name in small.tables:
        assert isinstance(getattr(small, name), pd.DataFrame)
    with pytest.raises(AttributeError, match="the result has no table 'interventions': it has risk, decomposition, "):
        _ = small.interventions
    assert not hasattr(small, "_repr_markdown_")


def test_it_shows_itself(small: Comparison) -> None:
    assert repr(small).startswith("<Comparison: risk (")
    html = small._repr_html_()
    assert html.startswith("<pre>230 chains × 3 sequences")
    assert "<" not in html.removeprefix("<pre>").removesuffix("</pre>")
    assert small.summary() in pd.Series([html]).str.replace("&#x27;", "'").str.removeprefix("<pre>")[0]


def test_it_can_be_copied_and_pickled(small: Comparison) -> None:
    for twin in (copy.copy(small), copy.deepcopy(small), pickle.loads(pickle.dumps(small))):
        pd.testing.assert_frame_equal(twin.risk, small.risk)
    with pytest.raises(AttributeError):
        small.run = {}  # type: ignore[misc]


def test_it_saves_itself_and_refuses_to_overwrite_another_study(small: Comparison, tmp_path: Path) -> None:
    paths = small.save(str(tmp_path / "out"))
    assert [path.name for path in paths] == [f"{name}.csv" for name in small.tables] + ["run.json"]
    assert small.save(tmp_path / "out") == paths
    other = compare(["add-one"], **QUICK)
    with pytest.raises(InputError, match="holds the results of another study"):
        other.save(tmp_path / "out")
    other.save(tmp_path / "out", force=True)
    assert not (tmp_path / "out" / "decomposition.csv").exists()


def test_the_record_says_what_was_run(small: Comparison, rules: tuple[str, ...], tmp_path: Path) -> None:
    small.save(tmp_path)
    run = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    options = run["options"]
    assert options["estimators"] == list(rules)
    expected = {
        "reference": "add-one",
        "chains": 230,
        "sequences_per_chain": 3,
        "decomposition_chains": 120,
        "decomposition_sequences": 8,
        "length": 12,
        "states": 3,
        "concentration": 1.0,
        "start": "uniform",
        "seed": 5,
        "level": 0.95,
        "checkpoints": [],
    }
    assert {key: options[key] for key in expected} == expected
    assert run["gamma"] == {"construction-softmax": 0.645, "construction-softmax:direct_path=false": 2.21}
    assert {"version", "commit", "libraries", "threads", "jobs", "wall_time_s", "streams"} < set(run)
    assert {"python", "numpy", "scipy", "torch", "pandas", "statsmodels", "matplotlib"} < set(run["libraries"])
    assert run["threads"] == 1
    checkpoint = shipped_checkpoint(3)
    if checkpoint is not None:
        assert options["weights"] == {"transformer": hashlib.sha256(checkpoint.read_bytes()).hexdigest()}


def test_the_chains_that_a_target_needs_follow_from_the_standard_error(small: Comparison) -> None:
    needed = small.run["chains_for_target_se"]
    for name, metric in (("add-one", "kl_nats"), ("unigram", "regret_nats")):
        row = small.risk.query("estimator == @name and metric == @metric and context_length == 'mean'").iloc[0]
        for target in (1e-3, 1e-4):
            assert needed[name][metric][f"{target:g}"] == pytest.approx(230 * (row.se / target) ** 2, abs=1.0)
    assert needed["bigram"]["kl_nats"] == {"0.001": None, "0.0001": None}


def test_progress_is_reported_block_by_block() -> None:
    seen: list[tuple[str, int, int]] = []
    options = {**QUICK, "chains": 500, "sequences_per_chain": 10, "decomposition_chains": 100}
    compare(["add-one"], progress=lambda *report: seen.append(report), **options)
    assert seen == [("risk", n, 500) for n in (200, 400, 500)] + [("decomposition", n, 100) for n in (50, 100)]


def test_an_exception_in_the_callback_stops_the_study() -> None:
    def stop(what: str, done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        compare(["add-one"], progress=stop, **QUICK)


@pytest.mark.parametrize(
    ("estimators", "names"),
    [
        (["bigram", "add-one"], ["bigram", "add-one"]),
        ("bigram,add-one", ["bigram", "add-one"]),
        ("unigram", ["unigram", "add-one"]),
        ((spec for spec in ["uniform"]), ["uniform", "add-one"]),
        ([Flat(), "add-constant:0.50"], ["mine", "add-constant:0.5", "add-one"]),
    ],
)
def test_estimators_may_be_named_in_several_ways_and_the_reference_is_added(estimators: Any, names: list[str]) -> None:
    study = Study.build(estimators, length=5, warn=print)
    assert [estimator.name for estimator in study.estimators] == names
    assert study.reference == "add-one"


@pytest.mark.parametrize("spelling", ["add-constant:0.5", "add-constant:0.50", "add-constant:5e-1", " add-constant:.5"])
def test_a_reference_may_be_spelled_in_another_way(spelling: str) -> None:
    result = compare(["bigram", "add-constant:0.5"], reference=spelling, **QUICK)
    assert result.run["options"]["estimators"] == ["bigram", "add-constant:0.5"]
    assert set(result.differences.reference) == {"add-constant:0.5"}


def test_an_object_of_ones_own_may_be_the_reference() -> None:
    result = compare([Flat(), "bigram"], reference="mine", **QUICK)
    assert set(result.differences.estimator) == {"bigram"}


@several
def test_several_checkpoints_are_runs_of_one_recipe_even_as_the_reference() -> None:
    paths = [SHIPPED[0], SHIPPED[1]]
    names = ["transformer:k3-seed0", "transformer:k3-seed1"]
    named = compare(["transformer", "add-one"], checkpoints=paths, reference="transformer", **QUICK)
    assert named.run["options"]["checkpoints"] == names
    assert named.run["options"]["recipes"] == {"transformer": names}
    assert set(named.run["options"]["weights"]) == set(names)
    assert set(named.differences.reference) == {"transformer"}
    added = compare(["add-one"], checkpoints=paths, reference="transformer", **QUICK)
    assert added.run["options"]["estimators"] == ["add-one", *names]
    one = compare(["add-one"], checkpoints=paths[0], reference="transformer", **QUICK)
    assert one.run["options"]["estimators"] == ["add-one", "transformer"]
    far = compare(["transformer", "transformer:far=last"], checkpoints=paths, **QUICK)
    assert [name for name in far.risk.estimator.unique() if name.endswith(":recipe")] == [
        "transformer:recipe",
        "transformer:far=last:recipe",
    ]


@pytest.mark.slow
@several
def test_a_byte_copy_is_no_second_training_run(tmp_path: Path) -> None:
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(SHIPPED[0].read_bytes())
    copy.with_suffix(".json").write_bytes(SHIPPED[0].with_suffix(".json").read_bytes())
    with pytest.warns(UserWarning, match="copy has the same weights as k3-seed0"):
        found = compare(["transformer", "add-one"], checkpoints=[SHIPPED[0], copy], **QUICK)
    assert list(found.risk.estimator.unique()) == ["transformer:k3-seed0", "transformer:copy", "add-one"]
    assert found.run["options"]["recipes"] == {}
    ambiguous = "the reference transformer could be any of transformer:k3-seed0, trans"
    with pytest.warns(UserWarning, match="same weights"), pytest.raises(InputError, match=ambiguous):
        compare(["add-one"], checkpoints=[SHIPPED[0], copy], reference="transformer", **QUICK)
    # Beside two runs, it has rows of its own, and the mean is that of the two.
    with pytest.warns(UserWarning, match="same weights"):
        three = compare(["transformer", "add-one"], checkpoints=[SHIPPED[0], copy, SHIPPED[1]], **QUICK)
    assert three.run["options"]["recipes"] == {"transformer": ["transformer:k3-seed0", "transformer:k3-seed1"]}
    rows = three.risk.query("metric == 'regret_nats' and context_length == 'mean'").set_index("estimator").estimate
    assert rows["transformer"] == pytest.approx((rows["transformer:k3-seed0"] + rows["transformer:k3-seed1"]) / 2)


def test_only_runs_with_a_sibling_are_pooled_and_their_recipe_is_a_field() -> None:
    recipes: dict[str, Any] = {"a": "m", "m:b": "m", "n:a": "n", "k:a": None, "k:b": None, "o": {"m": 1}}
    runs = [Leaning(name, 0.1, recipe) for name, recipe in recipes.items()]
    assert pooled_runs(runs) == {"m": ("a", "m:b")}


@pytest.mark.slow
def test_files_are_weights_only_where_they_are_files(tmp_path: Path) -> None:
    class Wrapper(Flat):
        def __init__(self, name: str, checkpoint: Any) -> None:
            self.name, self.checkpoint = name, checkpoint

    path = tmp_path / "weights.bin"
    path.write_bytes(b"x")
    wrappers = [
        Wrapper("path", path),
        Wrapper("text", str(path)),
        Wrapper("none", None),
        Wrapper("hub", "organisation/model"),
        Wrapper("object", object()),
        Flat(),
    ]
    assert weight_files(wrappers) == {"path": path, "text": path}
    result = compare([*wrappers, "add-one"], **QUICK)
    assert set(result.run["options"]["weights"]) == {"path", "text"}


@pytest.mark.parametrize(
    ("estimators", "options", "complaint"),
    [
        ([], {}, "no estimators to compare"),
        ("", {}, "no estimator is given"),
        (["bigrm"], {}, r"unknown estimator 'bigrm' \(did you mean bigram\?\)"),
        (["bigram", "bigram"], {}, "two estimators are called bigram"),
        ([Flat(), Flat()], {}, "two estimators are called mine"),
        (["bigram"], {"reference": "nobody"}, "unknown estimator 'nobody'"),
        (["bigram"], {"reference": ""}, "empty estimator name"),
        (["bigram"], {"states": 1}, "n_states must be an integer of at least 2, not 1"),
        (["bigram"], {"concentration": 0.0}, "concentration must be a finite number above 0"),
        (["bigram"], {"start": "middle"}, "start must be one of uniform, stationary, not 'middle'"),
        (["bigram"], {"jobs": 0}, "jobs must be an integer of at least 1"),
        (["bigram"], {"level": 1.5}, "level must lie strictly between 0 and 1"),
        (["bigram"], {"chains": 1}, "chains must be at least 2"),
        (["bigram"], {"device": "nonsense"}, "device must be cpu or cuda, not 'nonsense'"),
        (
            ["bigram"],
            {"checkpoints": __file__},
            r"checkpoints are for transformer, which is not among the named",
        ),
        ([Flat()], {"checkpoints": [__file__]}, r"not among the named estimators \(add-one\)"),
        ([object()], {}, "has no name"),
        ([3], {}, "3 has no name"),
        ([Flat()], {"states": 4}, "mine: n_states is 3, but 4 states were asked for"),
        (["transformer"], {"states": 5}, "transformer: no checkpoint ships for 5 states"),
    ],
)
def test_bad_input_is_refused_in_one_line(estimators: Any, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        compare(estimators, **{**QUICK, **options})
    assert "\n" not in str(caught.value)


def negative(tokens: np.ndarray, out: np.ndarray) -> np.ndarray:
    out[1, 2] = [1.5, -0.5, 0.0]
    return out


def ahead(tokens: np.ndarray, out: np.ndarray) -> np.ndarray:
    later = np.concatenate([tokens[:, 1:], tokens[:, -1:]], axis=1) == 0
    out[later] = [0.5, 0.25, 0.25]
    return out


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda tokens, out: out[:, :-1], r"wrong: predict_proba returned shape \(6, 4, 3\) for 6 sequences"),
        (lambda tokens, out: out[..., :2], r"wrong: predict_proba returned shape \(6, 5, 2\)"),
        (negative, "wrong: the prediction for sequence 1 at context length 3 has a negative entry"),
        (lambda tokens, out: 2 * out, "wrong: the prediction for sequence 0 at context length 1 sums to 2, not 1"),
        (lambda tokens, out: np.nan * out, "wrong: the prediction for sequence 0 at context length 1 has a NaN"),
        (ahead, "wrong: not causal: its prediction at context length 1 changes"),
        (lambda tokens, out: out.astype(np.float32), "wrong: predict_proba returned float32, not float64"),
        (lambda tokens, out: 1 / 0, "wrong: predict_proba failed on read-only tokens of shape .*ZeroDivisionError"),
    ],
)
def test_an_estimator_that_breaks_the_contract_is_named_before_the_work(change: Any, complaint: str) -> None:
    for estimators in ([Changed(change), "add-one"], ["add-one", Changed(change)]):
        with pytest.raises(ContractError, match=complaint):
            compare(estimators, progress=never, **QUICK)


def never(what: str, done: int, total: int) -> None:
    raise AssertionError("the work has begun")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_on_some_chain_names_estimator_and_chain(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_WORTH_PROCESSES", 10)
    options = {**QUICK, "chains": 3000, "sequences_per_chain": 1, "length": 15}
    culprit = sample_chains([2345], sequences_per_chain=1, length=15).inputs[0]
    with (
        pytest.warns(UserWarning, match="unhappy: about"),
        pytest.raises(InputError, match="unhappy failed on chain 2345: ArithmeticError: not this one"),
    ):
        compare([Unhappy(culprit, 15), "add-one"], jobs=jobs, **options)


def test_an_estimator_that_does_not_travel_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_WORTH_PROCESSES", 10)
    options = {**QUICK, "chains": 300, "sequences_per_chain": 20}
    estimators = [Secretive("secretive"), "add-one"]
    with pytest.raises(
        InputError, match=r"cannot be sent to worker processes \(TypeError: I do not travel\): use --jobs 1"
    ):
        compare(estimators, jobs=2, **options)
    assert compare(estimators, jobs=1, **options).risk.notna().any(axis=None)


def test_a_class_of_a_notebook_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_WORTH_PROCESSES", 10)
    notebook = type("Notebook", (Flat,), {"__module__": "__main__"})
    monkeypatch.setattr(__main__, "Notebook", notebook, raising=False)
    options = {**QUICK, "chains": 300, "sequences_per_chain": 20}
    with pytest.raises(InputError, match=r"cannot be sent to worker processes .*define its class at the top level"):
        compare([notebook("mine"), "add-one"], jobs=2, **options)


def test_a_chain_without_a_stationary_law_is_named() -> None:
    with pytest.raises(InputError, match=r"chain \d+ has no unique stationary law .*start='uniform'"):
        compare(["add-one"], start="stationary", concentration=0.0005, **{**QUICK, "chains": 2000})


def test_the_default_list_leaves_out_what_cannot_take_the_states() -> None:
    warnings: list[str] = []
    study = Study.build(states=5, length=5, warn=warnings.append)
    assert "transformer" not in study.names
    assert len(study.estimators) == 7
    assert len(warnings) == 1
    assert warnings[0].startswith("left out: transformer: no checkpoint ships for 5 states")


@pytest.mark.parametrize("face", [compare, effective_smoothing])
def test_whoever_calls_is_warned_of_what_is_left_out(face: Any) -> None:
    small = {"chains": 4, "sequences_per_chain": 1, "length": 4}
    options = {"by": ["overall"], "families": []} if face is effective_smoothing else {"decomposition_chains": 0}
    with pytest.warns(UserWarning, match="^left out: transformer: no checkpoint ships for 5 states") as caught:
        result = face(states=5, **small, **options)
    assert [warning.filename for warning in caught] == [__file__]  # where it was called
    assert "transformer" not in result.run["options"]["estimators"]


def test_the_default_list_is_everyone() -> None:
    rules = get_all(None, n_states=3, warn=print, tune=gamma_tuner(ChainLaw(), 12))
    assert list(Study.build(warn=print, length=12).names) == [rule.name for rule in rules]
    assert len(rules) == len(DEFAULT_SPECS)


def test_memory_does_not_grow_with_chains() -> None:
    """What is kept of 3,000 chains is as large as what is kept of 300."""
    sizes = []
    for chains in (300, 3000):
        design = Study((get("add-one"),), chains=chains, length=5, decomposition_chains=0)
        parts = (risk_block(design, block) for block in blocks(chains, 10, design.cells))
        sizes.append(len(pickle.dumps(merge_in_order(parts))))
    assert abs(sizes[0] - sizes[1]) < 200


def test_a_look_ahead_at_long_contexts_is_found_at_the_studys_length() -> None:
    late = Foreseeing(after=30)
    compare([late], **QUICK)  # of five tokens, it looks at none
    for study in (compare, effective_smoothing):
        options = {key: value for key, value in QUICK.items() if study is compare or "decomposition" not in key}
        with pytest.raises(ContractError, match="foreseeing: not causal: its prediction at context length"):
            study([late], **{**options, "length": 100})  # type: ignore[operator]


@pytest.mark.filterwarnings("ignore:BuiltinImporter")
def test_a_stated_tolerance_is_recorded_and_said() -> None:
    half: Any = Changed(lambda tokens, out: out + 0.001 / len(tokens) * np.array([1.0, -1.0, 0.0]), "half")
    half.tolerance = 0.01
    said: list[str] = []
    Study.build([half], length=5, warn=said.append)
    line = "half: its predictions are checked to 0.01 only, the tolerance that it states (float32: 1e-06)"
    assert said == [line]
    with pytest.warns(UserWarning, match="predictions are checked to"):
        found = compare([half], **QUICK)
    assert found.run["options"]["tolerances"] == {"half": 0.01}
    assert line in found.summary()
    assert "tolerances" not in compare(["bigram"], **QUICK).run["options"]


def test_each_estimator_is_checked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checked: list[tuple[str, int]] = []

    def note(rule: Any, n_states: int, *, length: int) -> None:
        checked.append((rule.name, length))

    monkeypatch.setattr(assembly, "check_estimator", note)
    monkeypatch.setattr(module_of_estimators, "check_estimator", note)  # which the command lines would call
    compare(["bigram", "add-one"], **QUICK)
    assert checked == [("bigram", 5), ("add-one", 5)]
    checked.clear()
    arguments = ["--estimators", "bigram", "--chains", "20", "--length", "6", "--decomposition-chains", "0"]
    assert evaluate([*arguments, "--jobs", "1", "--out", str(tmp_path), "--quiet", "--no-report"]) == 0
    assert checked == [("bigram", 6), ("add-one", 6)]


def test_how_many_chains_reach_a_standard_error_is_said() -> None:
    found = compare(
        "bigram,unigram,add-one", chains=60, length=4, sequences_per_chain=1, decomposition_chains=0, target_se=5e-4
    )
    needed = found.run["chains_for_target_se"]
    assert needed["bigram"]["kl_nats"]["0.0005"] is None
    half, whole = (needed["unigram"]["regret_nats"][target] for target in ("0.0005", "0.001"))
    assert half == pytest.approx(4 * whole, rel=0.01)
    text = found.summary()
    assert "Chains for a standard error of 0.0005 nats (–: the mean is infinite or undefined)" in text
    assert f"{half:,.0f}" in text
    with pytest.raises(InputError, match="target_se must be"):
        compare("add-one", target_se=0.0)
