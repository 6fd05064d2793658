"""Where estimators look while they read a prompt: one row of heat maps for each, a panel for each head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icl_estimators.reporting.figures.token_axes import token_axes
from icl_estimators.reporting.style import MUTED, SEQUENTIAL, figure_style, heat_map

if TYPE_CHECKING:
    from icl_estimators.reporting.prompt_attention import PromptAttention

__all__ = ["prompt_attention_figure"]

_WITH_VALUES = 10
"""Positions up to which the cells hold their numbers."""

_WITH_TOKENS = 40
"""Positions up to which every token is written; beyond, every so many."""

_LONGEST_LABEL = 14  # letters; the rest is cut off
_PER_LINE = 4  # panels side by side
_PANEL = 2.9  # inches: a panel of a few tokens


def prompt_attention_figure(groups: Sequence[tuple[Sequence[str], PromptAttention]]) -> Figure:
    """Draw the weights of every layer and head, queries from top to bottom and keys from left to right.

    Cells that causality masks are grey. Small prompts have the numbers in the cells. A label that the font lacks is
    written as #1, #2, …, in the order of occurrence.

    Parameters
    ----------
    groups : sequence of (names, PromptAttention)
        At least one; each has a row of panels, with the names of the estimators that look so.

    Returns
    -------
    Figure
    """
    numbers = [sum(map(len, one.layers)) for _, one in groups]
    columns = min(max(numbers), _PER_LINE)
    lines = [-(-number // columns) for number in numbers]
    positions = max(len(one.tokens) for _, one in groups)
    side = _PANEL + 0.02 * max(0, min(positions, 60) - _WITH_VALUES)
    titles = [_title(names, columns * side) for names, _ in groups]
    heights = [
        count * (side + 0.25) + 0.2 * (title.count("\n") + 1) for count, title in zip(lines, titles, strict=True)
    ]
    with figure_style():
        figure = Figure(figsize=(columns * side + 1.0, sum(heights) + 0.25))
        strips = np.atleast_1d(np.asarray(figure.subfigures(len(groups), 1, height_ratios=heights), dtype=object))
        mesh: Any = None
        for strip, title, count, (_, one) in zip(strips, titles, lines, groups, strict=True):
            strip.suptitle(title, x=0.01, ha="left", fontsize=10, weight="bold", parse_math=False)
            grid = np.asarray(strip.subplots(count, columns, squeeze=False), dtype=object)
            places = list(grid.flat)
            for axes in places[sum(map(len, one.layers)) :]:
                axes.set_axis_off()
            for axes, (layer, head, weights) in zip(places, one.heads(), strict=False):
                mesh = _panel(axes, weights, one.tokens)
                axes.set_title(one.title(layer, head))
                axes.set_xlabel("key: the token attended to")
            for axes in grid[:, 0]:
                axes.set_ylabel("query: the token that attends")
            bar = strip.colorbar(mesh, ax=places, shrink=0.75, aspect=25, pad=0.02)
            bar.set_label("share of the query\u2019s attention")
            bar.outline.set_visible(False)
        legend = ["grey: later tokens, which causality masks"]
        legend += sorted({f"{one.tokens[0]}: sentinel" for _, one in groups if one.has_sentinel})
        strips[-1].supxlabel("; ".join(legend), x=0.01, ha="left", fontsize=8, color=MUTED, parse_math=False)
    return figure


def _title(names: Sequence[str], inches: float) -> str:
    """Return the names, separated by commas, in lines that fit."""
    room = int(inches * 13)
    lines = [""]
    for index, name in enumerate(names):
        part = name + ("," if index < len(names) - 1 else "")
        if lines[-1] and len(lines[-1]) + 1 + len(part) > room:
            lines.append(part)
        else:
            lines[-1] = f"{lines[-1]} {part}".strip()
    return "\n".join(lines)


def _panel(axes: Axes, weights: np.ndarray[Any, Any], tokens: Sequence[str]) -> Any:
    size = len(tokens)
    shown = np.where(np.tri(size, dtype=bool), weights, np.nan)
    mesh = heat_map(axes, shown, SEQUENTIAL, 0.0, 1.0)
    if size > _WITH_TOKENS:
        for lines in list(axes.collections):
            if lines is not mesh:
                lines.remove()  # the white lines between small cells would cover them
    if size <= _WITH_VALUES:
        for query, key in zip(*np.tril_indices(size), strict=True):
            weight = float(weights[query, key])
            colour = "white" if weight > 0.55 else "black"
            text = "0" if weight < 5e-7 else f"{weight:.2f}" if weight >= 0.005 else "<.01"
            axes.text(key + 0.5, query + 0.5, text, ha="center", va="center", fontsize=7.5, color=colour)
    step = 1 if size <= _WITH_TOKENS else int(np.ceil(size / 20))
    labels = _drawable(tokens)
    letters = 9 if max(map(len, labels)) <= 2 and size <= 20 else 7 if size <= 30 else 5.5
    token_axes(axes, labels, size=letters, every=step)
    return mesh


def _drawable(tokens: Sequence[str]) -> list[str]:
    """Return the labels, cut to a few letters; those with a letter that the font lacks as #1, #2, …"""
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    numbers = {token: number for number, token in enumerate(dict.fromkeys(tokens), start=1)}
    short = {token: token if len(token) <= _LONGEST_LABEL else f"{token[: _LONGEST_LABEL - 1]}…" for token in numbers}
    return [
        short[token] if all(font.get_char_index(ord(letter)) for letter in short[token]) else f"#{numbers[token]}"
        for token in tokens
    ]
