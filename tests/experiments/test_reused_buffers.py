"""An estimator may fill one buffer again and again: no analysis keeps its output by reference."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest

import strange_rules
from icl_estimators.api import compare, effective_smoothing
from icl_estimators.estimators import check_estimator
from icl_estimators.experiments import observed_losses as losses_module
from icl_estimators.experiments.exact import exact_risk
from icl_estimators.experiments.observed import observed_risk
from icl_estimators.experiments.observed_losses import observed_losses
from icl_estimators.experiments.prediction import ask
from icl_estimators.predict import main as predict_main
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import ObservedSequences
from strange_rules import Plain, Reusing, refill


def estimators(kind: type[Plain]) -> list[Plain]:
    runs = [kind(f"add-constant:{value}", f"m:{value}", "m") for value in (0.4, 2)]
    return [*runs, kind("construction:30"), kind("unigram"), kind("add-one")]


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert set(first) == set(second)
    for name, table in first.items():
        pd.testing.assert_frame_equal(table.frame(), second[name].frame())


@pytest.mark.slow
def test_every_table_of_a_comparison_is_the_same() -> None:
    options: dict[str, Any] = {"chains": 60, "sequences_per_chain": 2, "length": 9, "seed": 2}
    options |= {"decomposition_chains": 20, "decomposition_sequences": 6}
    plain, reusing = (compare(estimators(kind), **options).tables for kind in (Plain, Reusing))
    assert {"risk", "decomposition", "attention", "attention_example", "checks", "smoothing"} <= set(plain)
    assert_same(plain, reusing)


@pytest.mark.slow
def test_effective_smoothing_is_the_same() -> None:
    options: dict[str, Any] = {"chains": 30, "sequences_per_chain": 2, "length": 7}
    plain, reusing = (effective_smoothing(estimators(kind), **options).tables for kind in (Plain, Reusing))
    assert_same(plain, reusing)


@pytest.mark.slow
@pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no trained model ships for three states")
def test_interventions_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from icl_estimators.estimators.intervened import Intervened
    from icl_estimators.estimators.transformer import Transformer

    options: dict[str, Any] = {"chains": 10, "sequences_per_chain": 2, "length": 6, "families": ()}
    plain = effective_smoothing(["transformer"], **options).tables
    for kind in (Transformer, Intervened):
        whole = kind.predict_proba
        monkeypatch.setattr(kind, "predict_proba", lambda self, tokens, whole=whole: refill(whole(self, tokens)))
    assert_same(plain, effective_smoothing(["transformer"], **options).tables)


def test_exact_risk_is_the_same() -> None:
    plain, reusing = (exact_risk(kind("bigram"), 6).metrics for kind in (Plain, Reusing))
    for metric, values in plain.items():
        np.testing.assert_array_equal(values, reusing[metric])


@pytest.mark.parametrize("window", [3, 10, 500])
def test_observed_losses_are_the_same(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses_module, "_BATCH", 16)
    rng = np.random.default_rng(0)
    lines = tuple(rng.integers(0, 3, size=size) for size in (100, 12, 60))
    data = ObservedSequences("lines", ("A", "B", "C"), lines)
    plain, reusing = (observed_risk(estimators(kind), data, window=window).frame() for kind in (Plain, Reusing))
    pd.testing.assert_frame_equal(plain, reusing)


def test_the_prompt_command_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    own = "strange_rules:reusing_add_one,strange_rules:reusing_unigram,add-one,unigram"
    assert predict_main(["ABACABABAC", "--estimators", own, "--csv"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    found = {(name, token): value for name, token, value in rows}
    for name in ("add-one", "unigram"):
        for token in "ABC":
            assert found[f"own {name}", token] == found[name, token]


def test_the_contract_is_checked_on_copies() -> None:
    check_estimator(Reusing("add-one"), 3, length=50)


def test_what_is_returned_is_the_callers_own() -> None:
    rule = Reusing("add-one")
    tokens = np.zeros((2, 4), dtype=np.int64)
    first = ask(rule, tokens, place=str, where=lambda given: "here")
    kept = first.copy()
    ask(rule, 1 + tokens, place=str, where=lambda given: "here")
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first, strange_rules._buffer)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length_of_an_observed_sequence() -> None:
    """Predictions of L windows are L·W·K numbers: 138 and 413 MB here."""

    class Sparse:
        name, n_states = "flat", 40

        def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
            return np.full((*tokens.shape, 40), 1 / 40)

    peaks = []
    for length in (3_000, 9_000):
        sequence = np.arange(length) % 40
        tracemalloc.start()
        losses = observed_losses(Sparse(), sequence, 144)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        np.testing.assert_allclose(losses, np.log(40))
    assert peaks[1] < 80e6
    assert peaks[1] < 1.2 * peaks[0]
