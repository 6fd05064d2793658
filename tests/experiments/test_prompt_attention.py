from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators import ContractError, get
from icl_estimators.experiments.prompt_attention import layers_of, position_labels
from strange_rules import Rule, good

TOKENS = np.array([0, 1, 0, 2, 0])


def test_the_softmax_form_looks_where_the_construction_does() -> None:
    for spec, head in (("construction-softmax:2", "construction"), ("construction-softmax:2:beta=3", "construction:3")):
        shown, own = layers_of(get(spec), TOKENS), layers_of(get(head), TOKENS)
        assert shown is not None
        assert own is not None
        assert [layer.shape for layer in shown] == [(1, 6, 6)] * 2
        for one, other in zip(shown, own, strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_shows_no_attention_has_no_layers() -> None:
    assert layers_of(get("add-one"), TOKENS) is None
    silent = Rule(good)
    silent.attention = lambda tokens: None  # type: ignore[attr-defined]
    assert layers_of(silent, TOKENS) is None  # type: ignore[arg-type]


def test_layers_of_unequal_size_are_refused() -> None:
    odd = Rule(good)
    odd.attention = lambda tokens: (np.zeros((1, 5, 5)), np.zeros((1, 6, 6)))  # type: ignore[attr-defined]
    with pytest.raises(ContractError, match=r"mine: attention\(tokens\) returned arrays of shapes"):
        layers_of(odd, TOKENS)  # type: ignore[arg-type]


def test_positions_are_named_by_their_tokens() -> None:
    assert position_labels(["A", "B"], 2) == ("A", "B")
    assert position_labels(["A", "B"], 3) == ("^", "A", "B")
    assert position_labels(["^", "B"], 3) == ("start", "^", "B")
