from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from icl_estimators.api import Comparison, compare
from icl_estimators.estimators import ContractError, get
from icl_estimators.experiments import attention
from icl_estimators.experiments.attention import EXAMPLE_TOKENS, attention_example_table, attention_table
from icl_estimators.experiments.study import Study
from icl_estimators.sources import sample_chains

QUANTITIES = ["previous_token_mass", "self_mass", "match_mass", "match_mass_chance"]


class Attending:
    """Uniform predictions; `layers` says what its attention returns."""

    name = "attending"
    n_states = 3

    def __init__(self, layers: Any) -> None:
        self.layers = layers

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        return np.full((*tokens.shape, 3), 1 / 3)

    def attention(self, tokens: np.ndarray) -> Any:
        return self.layers(tokens)


def uniform(tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n, length = tokens.shape
    weights = np.broadcast_to(np.tri(length) / np.arange(1, length + 1)[:, None], (n, length, length))
    return weights, weights


def study(estimator: Any, **options: Any) -> Study:
    return Study((estimator, get("add-one")), **{"length": 6, "chains": 70, "decomposition_chains": 0, **options})


def test_rows_are_of_those_who_attend(small: Comparison, rules: tuple[str, ...]) -> None:
    attending = [name for name in rules if name in ("transformer", "construction", "construction:30")]
    assert small.attention.estimator.drop_duplicates().tolist() == attending
    assert small.attention_example.estimator.drop_duplicates().tolist() == attending
    keys = small.attention[["quantity", "context_length"]].values.tolist()
    assert keys == [[quantity, n] for quantity in QUANTITIES for n in range(1, 13)] * len(attending)


def test_the_saturated_construction_looks_where_it_should(small: Comparison) -> None:
    table = small.attention[small.attention.estimator == "construction"].set_index(["quantity", "context_length"])
    previous = table.loc["previous_token_mass"]
    assert np.isnan(previous.estimate[1])
    assert previous.note[1] == "undefined in 230 of 230 chains: at context length 1 there is no previous token"
    assert (previous.estimate[1:] == 1).all()
    assert (table.loc["self_mass"].estimate == 0).all()
    match, chance = table.loc["match_mass"], table.loc["match_mass_chance"]
    assert (match.estimate[1:] > chance.estimate[1:]).all()
    assert match.estimate[1] == 0
    assert match.note[2] == "230 chains, the first sequence of each"


def test_uniform_attention_is_at_its_chance_level() -> None:
    table = attention_table(study(Attending(uniform)))
    assert table is not None
    frame = table.frame().pivot_table(index="context_length", columns="quantity", values="estimate")
    np.testing.assert_allclose(frame.match_mass, frame.match_mass_chance, rtol=1e-12)
    np.testing.assert_allclose(frame.self_mass, 1 / np.arange(1, 7), rtol=1e-12)
    sample = sample_chains(range(70), sequences_per_chain=1, length=6)
    expected = np.mean([(line[:3] == line[3]).mean() * 3 / 4 for line in sample.inputs])
    assert frame.match_mass_chance[4] == pytest.approx(expected, rel=1e-12)


def test_it_is_the_first_sequences_of_the_risk_design_whatever_their_number() -> None:
    one, many = (attention_table(study(get("construction"), sequences_per_chain=s)) for s in (1, 9))
    assert one is not None
    assert many is not None
    pd.testing.assert_frame_equal(one.frame(), many.frame(), check_exact=True)


def test_long_sequences_go_in_small_batches_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = attention_table(study(get("construction")))
    sizes: list[int] = []

    def counted(tokens: np.ndarray) -> Any:
        sizes.append(len(tokens))
        return get("construction").attention(tokens)  # type: ignore[attr-defined]

    monkeypatch.setattr(attention, "_BATCH_WEIGHTS", 150)  # 49 weights a sequence
    estimator = Attending(counted)
    estimator.name = "construction"
    parts = attention_table(study(estimator))
    assert max(sizes) == 3
    assert whole is not None
    assert parts is not None
    pd.testing.assert_frame_equal(parts.frame(), whole.frame(), check_exact=True)


def test_the_example_is_the_lower_triangle_of_both_layers_with_the_tokens(small: Comparison) -> None:
    table = small.attention_example
    table = table[table.estimator == "construction"]
    line = sample_chains([0], sequences_per_chain=1, length=12, seed=5, purpose="example").inputs[0]
    labels = ["^", *map(str, line)]
    for layer, weights in enumerate(get("construction").attention(line[None]), start=1):  # type: ignore[attr-defined]
        rows = table[table.layer == layer]
        assert len(rows) == 13 * 14 // 2
        np.testing.assert_array_equal(rows.weight, weights[0][rows["query"], rows["key"]])
        assert rows.query_token.tolist() == [labels[i] for i in rows["query"]]
        assert rows.key_token.tolist() == [labels[i] for i in rows["key"]]
        np.testing.assert_allclose(rows.groupby("query").weight.sum(), 1.0, rtol=1e-12)


def test_without_a_sentinel_positions_start_at_1_and_a_long_sequence_is_cut() -> None:
    table = attention_example_table(study(Attending(uniform), length=100))
    assert table is not None
    frame = table.frame()
    assert (frame["key"].min(), frame["query"].max()) == (1, EXAMPLE_TOKENS)


def test_who_does_not_attend_or_has_another_form_has_no_table() -> None:
    for estimator in (get("bigram"), Attending(lambda tokens: None)):
        assert attention_table(study(estimator)) is None
        assert attention_example_table(study(estimator)) is None


@pytest.mark.parametrize(
    ("layers", "complaint"),
    [
        (lambda tokens: 1 / 0, "failed: ZeroDivisionError"),
        (lambda tokens: uniform(tokens)[0], "returned ndarray for tokens of shape"),
        (lambda tokens: (uniform(tokens)[0],), r"returned arrays of shapes \(1, 6, 6\) for tokens"),
        (lambda tokens: (np.ones((2, 2)), np.ones((2, 2))), r"returned arrays of shapes \(2, 2\), \(2, 2\)"),
        (lambda tokens: tokens.fill(0), "failed: ValueError"),
    ],
)
def test_an_attribute_of_that_name_with_another_meaning_is_named_before_the_work(
    layers: Any, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("icl_estimators.experiments.plan.risk_block", never)
    with pytest.raises(ContractError, match=rf"attending: attention\(tokens\) {complaint}.*rename the attribute"):
        compare([Attending(layers), "add-one"], chains=60, length=6, decomposition_chains=0)


@pytest.mark.parametrize("value", ["flash", True, torch.nn.Linear(3, 3)])
def test_an_attribute_that_is_no_method_is_no_attention(value: Any) -> None:
    estimator = Attending(uniform)
    estimator.attention = value  # type: ignore[method-assign,assignment]
    assert attention_example_table(study(estimator)) is None
    assert attention_table(study(estimator)) is None
