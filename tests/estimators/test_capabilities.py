from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from icl_estimators import evaluate, exact, predict, smoothing
from icl_estimators.api import compare, effective_smoothing
from icl_estimators.engine.executors import one_thread
from icl_estimators.estimators import (
    ContractError,
    Expects,
    HasAttention,
    HasFolded,
    ReadFromFile,
    ReadsWindow,
    RunsOnDevice,
    RunsOnEngine,
    StatesTolerance,
    TrainingRun,
    check_estimator,
    expect,
    stated_tolerance,
    stated_tolerances,
)
from icl_estimators.estimators.capabilities import (
    attends,
    attention_of,
    device_of,
    engine_of,
    folded_of,
    reads_window,
    recipe_of,
    weights_of,
)
from icl_estimators.estimators.identity import study_identity
from icl_estimators.estimators.intervened import Intervened
from icl_estimators.estimators.transformer import Transformer
from icl_estimators.experiments.observed import observed_risk
from icl_estimators.files import sha256
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import ObservedSequences
from icl_estimators.transformer import INTERVENTIONS, Intervention, construction_folded, folded_logits
from strange_rules import SILLY, Flat, Leaning, Stranger

PROTOCOLS = [
    Expects,
    HasAttention,
    HasFolded,
    ReadFromFile,
    ReadsWindow,
    RunsOnDevice,
    RunsOnEngine,
    StatesTolerance,
    TrainingRun,
]
QUICK: dict[str, Any] = {"chains": 60, "sequences_per_chain": 2, "length": 5}
LINE = np.array([0, 1, 1, 2, 0, 0, 1, 2, 2, 1, 0, 1])
DATA = ObservedSequences("lines", ("A", "B", "C"), (LINE, LINE[:7]))
ASKED = (attends, folded_of, recipe_of, reads_window, weights_of, engine_of, device_of)
trained = pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no trained model ships for three states")


def with_attribute(attribute: str, value: Any, name: str = "mine") -> Any:
    rule = Flat(name)
    setattr(rule, attribute, value)
    return rule


# Strangers


@pytest.mark.parametrize("value", SILLY, ids=lambda value: repr(value)[:20])
def test_attributes_that_mean_something_else_are_no_offers(value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    stranger = Stranger(value)
    assert all(isinstance(stranger, protocol) for protocol in PROTOCOLS)  # by name
    for ask in ASKED:
        offered = ask(stranger)
        if value is True and ask is reads_window:
            assert offered is True  # a flag of that name is the flag
        elif isinstance(value, str) and value and ask in (recipe_of, engine_of, device_of):
            assert offered == value  # words are recorded
        else:
            assert not offered
    assert attention_of(stranger, LINE[None]) is None
    assert stated_tolerance(stranger) == 1e-6
    assert stated_tolerances([stranger]) == {}
    expect([stranger], 10, 10)
    check_estimator(stranger, 3)
    assert capsys.readouterr().err == ""


def same_but_for_the_name(table: pd.DataFrame, name: str, other: str) -> None:
    own, plain = (
        table[table.estimator == one].drop(columns="estimator").reset_index(drop=True) for one in (name, other)
    )
    assert len(own) > 0
    pd.testing.assert_frame_equal(own, plain)


@pytest.mark.filterwarnings("ignore:BuiltinImporter")
def test_strangers_go_through_every_study_like_any_rule() -> None:
    strangers = [Stranger(True, "yes"), Stranger("pasta", "word"), Stranger(torch.nn.Linear(3, 3), "module")]
    rules: list[Any] = [*strangers, Flat("plain")]
    with one_thread():
        result = compare([*rules, "add-one"], decomposition_chains=20, decomposition_sequences=4, **QUICK)
        found = effective_smoothing(rules, families=(), **QUICK)
        observed = observed_risk(rules, DATA, window=5).frame().set_index("estimator").estimate
    assert {"attention", "attention_example", "circuit"}.isdisjoint(result.tables)
    assert (result.run["options"]["weights"], result.run["options"]["recipes"]) == ({}, {})
    assert "interventions" not in found.tables
    for stranger in ("yes", "word", "module"):
        for name in ("risk", "decomposition", "signed_bias"):
            same_but_for_the_name(result.tables[name].frame(), stranger, "plain")
        same_but_for_the_name(found.smoothing, stranger, "plain")
        assert observed[f"{stranger}:window=5"] == observed["plain:window=5"]
        assert (stranger in observed.index) == (stranger != "yes")  # which says that it reads no more


@pytest.mark.slow
def test_strangers_go_through_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    specs = ["--estimators", "strange_rules:silly_yes,strange_rules:silly_word,uniform"]
    for main, arguments in ((exact.main, ["--context-length", "3"]), (predict.main, ["ABCA"])):
        assert main([*arguments, *specs, "--csv"]) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        lines = printed.out.splitlines()[1:]
        first, second, uniform = (
            [line.partition(",")[2] for line in lines if line.startswith(f"{name},")]
            for name in ("yes", "word", "uniform")
        )
        assert first == second == uniform != []
    (tmp_path / "lines.txt").write_text("ABCABBA\nCABA\n")
    small = ["--chains", "20", "--sequences-per-chain", "2", "--length", "4", "--jobs", "1"]
    observed = ["--sequences", str(tmp_path / "lines.txt"), "--characters", "--length", "3"]
    for number, design in enumerate(([*small, "--decomposition-chains", "0"], observed)):
        out = ["--out", str(tmp_path / str(number)), "--no-report"]
        assert evaluate.main([*design, *specs, *out, "--quiet"]) == 0
    assert smoothing.main([*small, *specs, "--by", "visits", "--out", str(tmp_path / "smoothing"), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_a_property_that_fails_is_one_line() -> None:
    class Broken(Flat):
        @property
        def folded(self) -> Any:
            raise RuntimeError("not trained yet")

    with pytest.raises(ContractError, match="mine: its attribute `folded` cannot be read: RuntimeError: not trained"):
        folded_of(Broken())


# Each capability, offered by a person's own estimator


@pytest.mark.slow
def test_own_attention_of_two_single_heads_is_tabulated() -> None:
    class Heads(Flat):
        """The first head looks at the token before, the second at itself."""

        def attention(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            n, length = tokens.shape
            first = np.eye(length, k=-1)
            first[0, 0] = 1
            return np.tile(first, (n, 1, 1)), np.tile(np.eye(length), (n, 1, 1))

    result = compare([Heads(), "add-one"], decomposition_chains=0, **QUICK)
    table = result.attention.set_index(["quantity", "context_length"]).estimate
    assert (table["previous_token_mass"][1:] == 1).all()
    assert (table["self_mass"] == [1, 0, 0, 0, 0]).all()
    assert result.attention_example.estimator.unique().tolist() == ["mine"]


class Folding(Flat):
    """A model of one's own that acts through folded numbers."""

    def __init__(self, name: str = "mine") -> None:
        super().__init__(name)
        self.folded = construction_folded(3, 20, beta=4.0, gamma=1.5)

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        logits = folded_logits(self.folded, torch.from_numpy(np.array(tokens)))
        return torch.softmax(logits.double(), dim=-1).numpy()


def test_own_folded_numbers_are_tabulated_and_intervened_on() -> None:
    rule = Folding()
    with one_thread():
        result = compare([rule, "add-one"], decomposition_chains=0, **QUICK)
        found = effective_smoothing([rule], families=(), **QUICK)
    assert result.circuit.estimator.unique().tolist() == ["mine", "construction nearest mine"]
    assert result.run["nearest_construction"]["mine"] == pytest.approx({"beta": 4, "beta_r1": 4, "gamma": 1.5})
    assert found.run["intervened_on"] == ["mine"]
    assert {item.name for item in INTERVENTIONS} <= set(found.interventions.intervention)
    intact = Intervened(rule, Intervention())
    np.testing.assert_allclose(intact.predict_proba(LINE[None]), rule.predict_proba(LINE[None]), atol=1e-6)


def test_folded_numbers_that_do_not_predict_are_not_intervened_on() -> None:
    rule = with_attribute("folded", construction_folded(3, 20, beta=4.0, gamma=1.5))
    with pytest.raises(ContractError, match=r"mine: its attribute `folded` gives predictions 0\.\d+ apart"):
        effective_smoothing([rule], families=(), **QUICK)


def test_folded_numbers_for_other_states_are_refused() -> None:
    rule = with_attribute("folded", construction_folded(4, 20, beta=4.0, gamma=1.5))
    with pytest.raises(ContractError, match="mine: its attribute `folded` is for 4 states, not for 3"):
        compare([rule, "add-one"], decomposition_chains=0, **QUICK)


def test_own_training_runs_are_pooled() -> None:
    result = compare([Leaning("m:a", 0.1), Leaning("m:b", 0.4), "add-one"], decomposition_chains=0, **QUICK)
    assert result.run["options"]["recipes"] == {"m": ["m:a", "m:b"]}
    assert {"m", "m:recipe"} < set(result.risk.estimator)


def test_own_window_is_the_only_one() -> None:
    longest: list[int] = []

    class Windowed(Flat):
        windowed = True

        def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
            longest.append(tokens.shape[1])
            return super().predict_proba(tokens)

    assert observed_risk([Windowed()], DATA, window=5).frame().estimator.tolist() == ["mine:window=5"]
    assert max(longest) == 5


def test_own_expect_is_told_the_size_of_the_study() -> None:
    class Prepares(Flat):
        told: tuple[int, int] | None = None

        def expect(self, sequences: int, length: int) -> None:
            self.told = sequences, length

    rule = Prepares()
    compare([rule, "add-one"], decomposition_chains=20, decomposition_sequences=4, **QUICK)
    assert rule.told == (60 * 2 + 20 * 4, 5)
    rule.expect = lambda sequences: None  # type: ignore[method-assign,assignment,misc]
    with pytest.raises(ContractError, match=r"mine: expect\(sequences, length\) failed: TypeError: .*: take two integ"):
        compare([rule, "add-one"], decomposition_chains=0, **QUICK)


@pytest.mark.filterwarnings("ignore:mine. its predictions are checked")
def test_own_tolerance_is_recorded() -> None:
    rule = with_attribute("tolerance", np.float32(0.01))
    result = compare([rule, "add-one"], decomposition_chains=0, **QUICK)
    assert result.run["options"]["tolerances"] == {"mine": pytest.approx(0.01)}


def test_own_weights_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"x")
    result = compare([with_attribute("checkpoint", path), "add-one"], decomposition_chains=0, **QUICK)
    assert result.run["options"]["weights"] == {"mine": sha256(path)}


def test_own_engine_and_device_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    result = compare([with_attribute("engine", "kernel"), "add-one"], decomposition_chains=0, **QUICK)
    assert result.run["options"]["kernel"] == ["mine"]
    assert study_identity([with_attribute("device", torch.device("meta"))])["devices"] == {"mine": "meta"}
    assert study_identity([with_attribute("device", torch.device("cpu"))])["devices"] == {}
    for device in ("cuda:99", torch.device("cuda", 99)):  # there is none of that number
        assert device_of(with_attribute("device", device)) == "cuda:99"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a large GPU")
    for device in ("cuda", torch.device("cuda", 0)):
        assert device_of(with_attribute("device", device)) == "a large GPU"


@trained
def test_the_trained_model_offers_every_one_but_a_tolerance() -> None:
    rule = Transformer(3)
    assert [one for one in PROTOCOLS if not isinstance(rule, one)] == [StatesTolerance]
    assert attends(rule)
    assert reads_window(rule)
    assert folded_of(rule) is rule.folded
    assert (weights_of(rule), engine_of(rule)) == (rule.checkpoint, "torch")
    assert recipe_of(rule) is None
    assert device_of(rule) is None
