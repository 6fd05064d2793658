"""Where estimators look while they read a prompt, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from icl_estimators.reporting.prompt_attention import PromptAttention, grouped
from icl_estimators.text import columns_of

__all__ = ["attention_text", "row_text"]

_WIDTH = 76


def attention_text(found: Sequence[PromptAttention]) -> str:
    """Return every head's weights: whole matrices if they fit the screen, else where the last token looks.

    Estimators that look at the same places come together.

    Parameters
    ----------
    found : sequence of PromptAttention

    Examples
    --------
    >>> import numpy as np
    >>> layers = [np.array([[[1.0, 0.0], [0.25, 0.75]]])]
    >>> print(attention_text([PromptAttention("mine", ("A", "B"), layers, False)]))
    Attention of mine
    layer 1
             A     B
       A  1.00
       B  0.25  0.75
    <BLANKLINE>
    Rows: the token that attends. Columns: the token attended to. Each row sums to 1.
    """
    blocks, matrices = [], False
    sentinels = {one.tokens[0] for one in found if one.has_sentinel}
    for names, one in grouped(list(found)):
        lines = textwrap.wrap(f"Attention of {', '.join(names)}", 100, break_long_words=False, break_on_hyphens=False)
        label = max(4, *map(columns_of, one.tokens))
        fits = label + (label + 2) * len(one.tokens) <= _WIDTH
        matrices |= fits
        for layer, head, weights in one.heads():
            title = one.title(layer, head)
            if fits:
                lines += [title, _line("", one.tokens, label)]
                for query, token in enumerate(one.tokens):
                    lines.append(
                        _line(token, [_cell(weight) for weight in weights[query, : query + 1].tolist()], label)
                    )
            else:
                lines.append(f"{title}: where the last {one.tokens[-1]} looks")
                lines.append(row_text(one.tokens, weights[-1].tolist()))
        blocks.append("\n".join(lines))
    legend = ["Rows: the token that attends. Columns: the token attended to. Each row sums to 1."] if matrices else []
    legend += [f"{name}: sentinel, before the first token." for name in sorted(sentinels)]
    if legend:
        blocks.append(" ".join(legend))
    return "\n\n".join(blocks)


def row_text(tokens: Sequence[str], weights: Sequence[float]) -> str:
    """Return the weights of one query below their tokens, in lines that fit the screen.

    Examples
    --------
    >>> print(row_text(["^", "A"], [0.25, 0.75]))
    token         ^     A
    weight     0.25  0.75
    """
    cells = [_cell(weight) for weight in weights]
    column = max(map(columns_of, (*tokens, *cells))) + 2
    per_line = max(1, (_WIDTH - 9) // column)
    lines = []
    for first in range(0, len(cells), per_line):
        for title, row in (("token    ", tokens), ("weight   ", cells)):
            lines.append(title + "".join(_right(cell, column) for cell in row[first : first + per_line]))
    return "\n".join(lines)


def _cell(weight: float) -> str:
    return "·" if weight < 1e-6 else f"{weight:.2f}" if weight >= 0.005 else f"{weight:.0e}"


def _line(name: str, cells: Sequence[str], width: int) -> str:
    return (_right(name, width) + "".join(_right(cell, width + 2) for cell in cells)).rstrip()


def _right(text: str, width: int) -> str:
    return " " * (width - columns_of(text)) + text
