from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from icl_estimators.reporting.figures.prompt_attention import prompt_attention_figure
from icl_estimators.reporting.figures.saving import save_figure_as
from icl_estimators.reporting.prompt_attention import PromptAttention


def weights(heads: int, positions: int) -> np.ndarray:
    drawn = np.tril(np.random.default_rng(0).random((heads, positions, positions)))
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))


def panels(figure: object) -> list[object]:
    return [axes for axes in figure.get_axes() if axes.get_title(loc="left")]  # type: ignore[attr-defined]


def test_each_group_has_a_panel_for_each_head_with_tokens_on_both_axes() -> None:
    two = PromptAttention("two", tuple("ABA"), [weights(2, 3), weights(2, 3)], False)
    one = PromptAttention("one", tuple("^ABA"), [weights(1, 4)], True)
    figure = prompt_attention_figure([(["two", "also"], two), (["one"], one)])
    drawn = panels(figure)
    assert [axes.get_title(loc="left") for axes in drawn] == [  # type: ignore[attr-defined]
        "layer 1, head 1", "layer 1, head 2", "layer 2, head 1", "layer 2, head 2", "layer 1",
    ]  # fmt: skip
    for axes, labels in zip(drawn, ["ABA"] * 4 + ["^ABA"], strict=True):
        for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):  # type: ignore[attr-defined]
            assert [text.get_text() for text in ticks] == list(labels)
    assert [strip.get_suptitle() for strip in figure.subfigs] == ["two, also", "one"]


def test_the_numbers_are_those_of_the_cells() -> None:
    layer = np.array([[[1.0, 0.0], [0.25, 0.75]]])
    (axes,) = panels(prompt_attention_figure([(["mine"], PromptAttention("mine", ("A", "B"), [layer], False))]))
    texts = {(text.get_position(), text.get_text()) for text in axes.texts}  # type: ignore[attr-defined]
    assert texts == {((0.5, 0.5), "1.00"), ((0.5, 1.5), "0.25"), ((1.5, 1.5), "0.75")}
    mesh = axes.collections[0].get_array()  # type: ignore[attr-defined]
    assert mesh.mask.ravel().tolist() == [False, True, False, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tokens", "layers"),
    [
        (tuple("A"), 2),
        (("a" * 60, "$x$", "日本", "🌧", "b" * 40), 2),
        (tuple("AB" * 10), 2),
        (tuple("AB" * 100), 1),
        (tuple("AB"), 9),
    ],
)
def test_any_prompt_and_any_number_of_heads_is_drawn_without_a_warning(
    tmp_path: Path, tokens: tuple[str, ...], layers: int
) -> None:
    found = PromptAttention("mine", tokens, [weights(1, len(tokens))] * layers, False)
    figure = prompt_attention_figure([(["mine", "other" * 30], found)])
    file = tmp_path / "drawn.png"
    save_figure_as(figure, file)
    assert file.stat().st_size > 1000
    assert len(panels(figure)) == layers


def test_a_label_that_the_font_lacks_has_a_number() -> None:
    found = PromptAttention("mine", ("A", "日", "A", "日"), [weights(1, 4)], False)
    (axes,) = panels(prompt_attention_figure([(["mine"], found)]))
    assert [text.get_text() for text in axes.get_xticklabels()] == ["A", "#2", "A", "#2"]  # type: ignore[attr-defined]
