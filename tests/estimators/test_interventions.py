from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from icl_estimators.estimators import check_estimator, get
from icl_estimators.estimators.capabilities import attention_of
from icl_estimators.estimators.construction import Construction, ConstructionSoftmax
from icl_estimators.estimators.induction_matrices import InductionMatrices
from icl_estimators.estimators.interventions import intervene
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import occurrence_counts
from icl_estimators.validation import InputError

HEADS = ("previous", "match", "uniform", "zero")
TOKENS = np.random.default_rng(0).integers(0, 3, size=(7, 30))
TOKENS[0] = 0
trained = pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no checkpoint ships")

SPECS = [
    *(f"construction:layer1={head}" for head in HEADS),
    *(f"construction:2:layer2={head}" for head in HEADS[:3]),
    *(f"construction-softmax:2.2:layer1={one}:layer2={two}" for one in HEADS for two in HEADS),
    "construction-softmax:2.2:beta=5:direct_path=false",
    "construction:30:gamma=2.2",
    *(pytest.param(f"transformer:layer1={one}:layer2={two}", marks=trained) for one in HEADS for two in HEADS),
    pytest.param("transformer:direct_path=false:read_out_scale=0.5", marks=trained),
]


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_changed_is_an_estimator_whose_name_makes_it_again(spec: str) -> None:
    rule = get(spec)
    check_estimator(rule, 3)
    again = get(rule.name)
    assert again.name == rule.name
    np.testing.assert_array_equal(again.predict_proba(TOKENS), rule.predict_proba(TOKENS))


def agree(one: object, other: object, within: float) -> None:
    np.testing.assert_allclose(one.predict_proba(TOKENS), other.predict_proba(TOKENS), rtol=0, atol=within)  # type: ignore[attr-defined]


@pytest.mark.parametrize("base", ["construction", "construction:60", "construction-softmax:2.2"])
@pytest.mark.parametrize(
    "change", [{"layer1": "previous"}, {"layer2": "match"}, {"layer1": "previous", "layer2": "match"}]
)
def test_the_constructions_own_heads_change_nothing(base: str, change: dict[str, str]) -> None:
    intact = get(base)
    changed = intervene(intact, **change)  # type: ignore[arg-type]
    agree(changed, intact, 1e-12)
    for own, shown in zip(attention_of(get("construction"), TOKENS), attention_of(changed, TOKENS), strict=True):  # type: ignore[arg-type]
        np.testing.assert_allclose(shown, own, rtol=0, atol=1e-12)


@trained
def test_what_is_as_it_was_changes_nothing() -> None:
    model = get("transformer")
    np.testing.assert_array_equal(
        intervene(model, read_out_scale=1.0).predict_proba(TOKENS), model.predict_proba(TOKENS)
    )
    np.testing.assert_array_equal(intervene(model, direct_path=True).predict_proba(TOKENS), model.predict_proba(TOKENS))
    exact = intervene(model, layer1="previous")
    agree(intervene(exact, layer1="previous"), exact, 0)


@trained
def test_without_layer_two_the_model_is_its_direct_path() -> None:
    model = get("transformer")
    folded, (first, _) = model.folded, attention_of(model, TOKENS)  # type: ignore[attr-defined, misc]
    one_hot = np.eye(3)[TOKENS]
    features = np.concatenate([one_hot, first @ one_hot], axis=-1)
    expected = torch.softmax(torch.from_numpy(features @ folded.direct.double().numpy()), dim=-1).numpy()
    np.testing.assert_allclose(intervene(model, layer2="zero").predict_proba(TOKENS), expected, rtol=0, atol=1e-5)
    agree(intervene(model, layer2="zero"), intervene(model, read_out_scale=0.0), 0)


def test_without_layer_two_the_construction_is_its_direct_path() -> None:
    found = intervene(get("construction"), gamma=2.2, layer2="zero").predict_proba(TOKENS)
    weights = np.exp(2.2 * np.eye(3)[TOKENS])
    np.testing.assert_allclose(found, weights / weights.sum(axis=-1, keepdims=True), rtol=1e-12)
    without = intervene(get("construction-softmax:2.2"), layer2="zero", direct_path=False)
    np.testing.assert_allclose(without.predict_proba(TOKENS), 1 / 3, rtol=1e-12)


def test_without_layer_one_or_with_uniform_attention_the_construction_is_the_frequencies() -> None:
    frequencies = occurrence_counts(TOKENS, 3) / np.arange(1, 31)[:, None]
    for change in ({"layer1": "zero"}, {"layer2": "uniform"}):
        found = intervene(get("construction:8"), **change).predict_proba(TOKENS)  # type: ignore[arg-type]
        np.testing.assert_allclose(found, frequencies, rtol=0, atol=1e-12)


def test_a_second_head_on_the_previous_token_predicts_that_token() -> None:
    found = get("construction:layer2=previous").predict_proba(TOKENS)
    np.testing.assert_array_equal(found[:, 1:], np.eye(3)[TOKENS[:, :-1]])
    np.testing.assert_array_equal(found[:, 0], 1 / 3)  # the sentinel is before the first token


@pytest.mark.parametrize("direct_path", [True, False])
@pytest.mark.parametrize("beta", [0.5, 2.0, 30.0])
def test_beta_and_gamma_together_are_the_matrices(beta: float, direct_path: bool) -> None:
    trace = InductionMatrices(3, 30, beta, 2.2).run(TOKENS)
    logits = (trace.logits if direct_path else trace.induction_path)[:, 1:, :3]
    weights = np.exp(logits)
    rule = intervene(get("construction"), beta=beta, gamma=2.2, direct_path=direct_path)
    np.testing.assert_allclose(
        rule.predict_proba(TOKENS), weights / weights.sum(axis=-1, keepdims=True), rtol=0, atol=1e-12
    )
    agree(get(f"construction:{beta:g}:gamma=2.2:direct_path={direct_path}"), rule, 0)


def test_at_a_large_beta_it_is_the_softmax_of_frequencies() -> None:
    agree(get("construction:30:gamma=2.2"), get("construction-softmax:2.2"), 1e-9)
    agree(intervene(get("construction:30"), beta=math.inf), get("construction"), 0)
    assert intervene(get("construction-softmax:2.2:beta=30"), beta=math.inf).name == "construction-softmax:2.2"


def test_heads_in_the_limit_are_those_at_a_large_beta() -> None:
    for change in ({"layer1": "uniform"}, {"layer1": "match"}):
        limit = intervene(get("construction"), **change)  # type: ignore[arg-type]
        agree(limit, intervene(get("construction:100000"), **change), 1e-9)  # type: ignore[arg-type]


def test_changes_add_up_and_leave_the_estimator_alone() -> None:
    rule = get("construction-softmax")
    once = intervene(rule, layer1="uniform")
    twice = intervene(once, layer2="zero", gamma=3.0)
    assert (rule.name, once.name) == ("construction-softmax", "construction-softmax:0.645:layer1=uniform")
    assert twice.name == "construction-softmax:3:layer1=uniform:layer2=zero"
    assert isinstance(intervene(get("construction"), gamma=1.0), ConstructionSoftmax)
    assert isinstance(intervene(get("construction"), beta=1.0), Construction)


@trained
def test_changes_of_a_model_add_up_and_keep_what_it_offers() -> None:
    model = get("transformer:far=60")
    rule = intervene(intervene(model, layer1="previous"), layer2="match", read_out_scale=0.5)
    assert rule.name == "transformer:far=60:layer1=previous:layer2=match:read_out_scale=0.5"
    assert (rule.windowed, rule.checkpoint, rule.recipe) == (True, model.checkpoint, None)  # type: ignore[attr-defined]


BAD = [
    ("construction", {}, "nothing of construction is to be changed: give one of layer1, layer2, direct_path"),
    ("add-one", {"layer1": "previous"}, "add-one has no heads to change: interventions need the constructions, or"),
    ("construction", {"layer1": "exact"}, "layer1 must be one of previous, match, uniform, zero, not 'exact'"),
    ("construction", {"direct_path": "no"}, "direct_path must be true or false, not 'no'"),
    ("construction", {"direct_path": False}, "construction has no read-out, so no direct path: give gamma as well"),
    ("construction", {"layer2": "zero"}, "construction:layer2=zero: the prediction is what layer 2 adds"),
    ("construction", {"beta": 0}, "beta of construction must be a finite number above 0"),
    ("construction", {"gamma": -1}, "gamma of construction-softmax must be a finite number above 0"),
    ("construction", {"read_out_scale": 2}, "construction: read_out_scale is a part of a trained model: leave it out"),
    pytest.param("transformer", {"beta": 2.0}, "transformer: beta is a part of the constructions", marks=trained),
    pytest.param("transformer", {"layer2": "even"}, "layer2 must be one of previous, match", marks=trained),
    pytest.param("transformer", {"read_out_scale": -1}, "read_out_scale must be a finite number", marks=trained),
]


@pytest.mark.parametrize(("spec", "change", "message"), BAD)
def test_what_cannot_be_changed_is_named(spec: str, change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        intervene(get(spec), **change)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_a_spec_is_no_estimator() -> None:
    with pytest.raises(InputError, match="intervene takes an estimator, not 'transformer': make it with"):
        intervene("transformer", layer1="zero")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("add-one:layer1=zero", r"add-one:layer1=zero: unknown option 'layer1' \(options: order\)"),
        ("construction:colour=red", r"unknown option 'colour' \(options: beta, layer1, layer2, direct_path"),
        ("construction-softmax:tuned:beta=3", "γ is tuned for the limit β → ∞ only"),
    ],
)
def test_specs_that_change_what_is_not_there_are_named(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        get(spec)
