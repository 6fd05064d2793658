from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_estimators.estimators import ContractError, Estimator, get
from icl_estimators.experiments import assembly
from icl_estimators.experiments.assembly import assemble, estimators_record, gamma_record
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.validation import InputError
from strange_rules import Flat

OPTIONS: dict[str, Any] = {"n_states": 3, "concentration": 1.0, "warn": print}


class Own:
    name, n_states = "own", 3

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        return np.full((*tokens.shape, 3), 1 / 3)


class Peeking(Own):
    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.eye(3)[tokens[:, -1:]], (*tokens.shape, 3)).copy()


def test_the_reference_is_added_or_found() -> None:
    made = [get("unigram"), get("krichevsky-trofimov")]
    rules, name = assemble(made, reference="add-one", **OPTIONS)
    assert ([rule.name for rule in rules], name) == (["unigram", "krichevsky-trofimov", "add-one"], "add-one")
    assert assemble(made, reference="unigram", **OPTIONS) == (tuple(made), "unigram")
    assert assemble([Own(), "unigram"], reference="own", **OPTIONS)[1] == "own"
    assert assemble(made, reference="add-constant:0.50", **OPTIONS)[1] == "add-constant:0.5"
    assert assemble(made, **OPTIONS) == (tuple(made), "")
    with pytest.raises(InputError, match="unknown"):
        assemble(made, reference="nobody", **OPTIONS)


@pytest.mark.parametrize("pooled", [False, True])
def test_a_reference_that_could_be_several_rules_is_refused(monkeypatch: pytest.MonkeyPatch, pooled: bool) -> None:
    class Run(Own):
        recipe = "m"

        def __init__(self, name: str) -> None:
            self.name = name

    runs: list[Estimator] = [Run("m:a"), Run("m:b")]
    monkeypatch.setattr(assembly, "get_all", lambda specs, **options: list(runs))
    if pooled:
        rules, name = assemble([Own()], reference="transformer", **OPTIONS)
        assert ([rule.name for rule in rules], name) == (["own", "m:a", "m:b"], "m")
    else:
        with pytest.raises(InputError, match="transformer could be any of m:a, m:b, which are not pooled: name one"):
            assemble([Own()], reference="transformer", pooled=False, **OPTIONS)


@pytest.mark.parametrize(
    ("estimators", "options", "message"),
    [
        ([], {}, "no estimators to compare: give at least one"),
        ("", {}, "no estimator is given"),
        ("bigrm", {}, "unknown estimator 'bigrm'"),
        (["bigram", "bigram"], {}, "two estimators are called bigram: give each once"),
        ("transformer", {"checkpoints": "absent.safetensors"}, "no such checkpoint: absent.safetensors"),
        ("bigram", {"checkpoints": shipped_checkpoint(3)}, r"^checkpoints are for transformer, which is not among"),
        (
            "bigram",
            {"checkpoints": [shipped_checkpoint(3)], "dashes": "--"},
            r"^--checkpoint is for transformer, which",
        ),
        ("bigram", {"device": "warp"}, "warp"),
    ],
)
def test_what_cannot_be_used_is_refused(estimators: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        assemble(estimators, **OPTIONS, **options)


def test_a_checkpoint_is_used_by_a_reference_that_is_a_spec() -> None:
    shipped = shipped_checkpoint(3)
    assert assemble("bigram", reference="transformer", checkpoints=shipped, **OPTIONS)[1] == "transformer"
    with pytest.raises(InputError, match="checkpoints are for transformer"):  # the object already exists
        assemble([get("transformer")], reference="transformer", checkpoints=shipped, **OPTIONS)


def test_each_is_held_to_the_contract_where_a_length_is_given() -> None:
    assemble([Peeking()], **OPTIONS)
    with pytest.raises(ContractError, match="own: not causal"):
        assemble([Peeking()], check_length=6, **OPTIONS)


def test_training_runs_are_recorded_as_data() -> None:
    rules = [get("transformer"), get("add-one")]
    record = estimators_record(rules)
    assert set(record) == {"weights", "trained"}
    trained = record["trained"]["transformer"]
    assert trained["recipe"]["steps"] == trained["step"] == 8000
    assert (trained["config"]["n_states"], trained["seed"]) == (3, 0)

    class Misleading(Own):
        info, recipe = "a string", None

    assert estimators_record([Misleading(), get("add-one")]) == {"weights": {}}


def test_gamma_is_recorded_by_where_it_comes_from(tmp_path: Path) -> None:
    rules = [get("construction-softmax"), get("construction-softmax:2.5"), get("add-one")]
    record = gamma_record(rules)
    assert list(record["gamma"].values())[1] == 2.5
    assert list(record["default_gamma"]) == [rules[0].name]
    assert record["tuned_gamma"] == {}


@pytest.mark.parametrize("name", ["add-one", "bayes", "bigram"])
def test_no_estimator_of_your_own_takes_the_name_of_a_built_in_rule(name: str) -> None:
    with pytest.raises(InputError, match=f"is called {name}, the name of a built-in rule: rename it"):
        assemble([Flat(name)], n_states=3, concentration=1.0, warn=print)
