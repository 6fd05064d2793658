from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from icl_estimators.reporting.prompt_attention import COLUMNS, PromptAttention, grouped

ONE = np.array([[[1.0, 0.0], [0.25, 0.75]]])
TWO = np.concatenate([ONE, ONE[:, :, ::-1]])


def test_the_frame_has_every_head_and_what_causality_leaves() -> None:
    frame = PromptAttention("mine", ("A", "B"), [TWO, ONE], False).frame()
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == 3 * 3
    row = frame.query("layer == 1 and head == 2 and query == 2 and key == 1").iloc[0]
    assert (row.query_token, row.key_token, row.weight) == ("B", "A", 0.75)
    assert frame.groupby(["layer", "head"]).size().index.tolist() == [(1, 1), (1, 2), (2, 1)]


def test_a_sentinel_is_position_0() -> None:
    frame = PromptAttention("mine", ("^", "B"), [ONE], True).frame()
    assert frame[["query", "key"]].to_numpy().tolist() == [[0, 0], [1, 0], [1, 1]]


def test_a_head_is_named_where_there_are_several() -> None:
    found = PromptAttention("mine", ("A", "B"), [TWO, ONE], False)
    assert [found.title(layer, head) for layer, head, _ in found.heads()] == [
        "layer 1, head 1",
        "layer 1, head 2",
        "layer 2",
    ]


def test_only_the_same_attention_on_the_same_tokens_is_grouped() -> None:
    def found(name: str, layers: list[np.ndarray], tokens: str = "AB") -> PromptAttention:
        return PromptAttention(name, tuple(tokens), layers, False)

    groups = grouped([found("a", [ONE]), found("b", [TWO]), found("c", [ONE, ONE]), found("d", [ONE], "^B"),
                      found("e", [ONE.copy()])])  # fmt: skip
    assert [names for names, _ in groups] == [["a", "e"], ["b"], ["c"], ["d"]]


def test_it_draws_itself() -> None:
    figure = PromptAttention("mine", ("A", "B"), [TWO, ONE], False).figure()
    assert isinstance(figure, Figure)
