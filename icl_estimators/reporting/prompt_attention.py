"""Where an estimator looks while it reads a prompt: its attention as arrays, as a table and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "PromptAttention", "grouped"]

COLUMNS = ("estimator", "layer", "head", "query", "key", "query_token", "key_token", "weight")
"""Of the long table."""

Row = tuple[str, int, int, int, int, str, str, float]


@dataclass(frozen=True, eq=False)
class PromptAttention:
    """The attention of one estimator on one prompt.

    Attributes
    ----------
    estimator : str
        Its name.
    tokens : tuple of str
        What the P positions hold: the prompt's labels, and in front the sentinel if the estimator has one.
    layers : list of ndarray of float64, each of shape (H, P, P)
        The weights of every layer and head: rows are queries, columns keys; rows sum to 1, and key j > i has weight 0.
    has_sentinel : bool
        Whether position 0 is a sentinel. Without one, positions count from 1.
    """

    estimator: str
    tokens: tuple[str, ...]
    layers: list[NDArray[np.float64]]
    has_sentinel: bool

    @property
    def first(self) -> int:
        """The number of the first position: 0 is the sentinel."""
        return 0 if self.has_sentinel else 1

    def heads(self) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        """Yield layer and head, both from 1, and the weights, shape (P, P)."""
        for layer, heads in enumerate(self.layers, start=1):
            for head, weights in enumerate(heads, start=1):
                yield layer, head, weights

    def title(self, layer: int, head: int) -> str:
        """Return what a head is called: the head is named only if its layer has several."""
        return f"layer {layer}" + (f", head {head}" if len(self.layers[layer - 1]) > 1 else "")

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the long table, one for each query and key ≤ query of each head."""
        for layer, head, weights in self.heads():
            for query, asks in enumerate(self.tokens):
                for key, asked in enumerate(self.tokens[: query + 1]):
                    where = (query + self.first, key + self.first)
                    yield self.estimator, layer, head, *where, asks, asked, float(weights[query, key])

    def frame(self) -> pd.DataFrame:
        """Return the weights as a long table.

        Returns
        -------
        DataFrame
            `estimator`, `layer`, `head`, `query`, `key` (positions; 0 is a sentinel), `query_token`, `key_token`,
            `weight`: one row for each query and key ≤ query of each head.
        """
        import pandas as pd

        return pd.DataFrame(list(self.rows()), columns=list(COLUMNS))

    def figure(self) -> Figure:
        """Return a figure of all heads side by side; heat maps with the tokens on both axes."""
        from icl_estimators.reporting.figures.prompt_attention import prompt_attention_figure

        return prompt_attention_figure([([self.estimator], self)])


def grouped(found: list[PromptAttention]) -> list[tuple[list[str], PromptAttention]]:
    """Bring estimators that look at the same places together: the names of each group, and its attention.

    Examples
    --------
    >>> one, same, other = (PromptAttention(name, ("A",), [np.full((1, 1, 1), w)], False) for name, w in
    ...                     (("a", 1.0), ("b", 1.0), ("c", 0.5)))
    >>> [names for names, _ in grouped([one, other, same])]
    [['a', 'b'], ['c']]
    """
    groups: list[tuple[list[str], PromptAttention]] = []
    for one in found:
        for names, other in groups:
            if one.tokens == other.tokens and _same(one.layers, other.layers):
                names.append(one.estimator)
                break
        else:
            groups.append(([one.estimator], one))
    return groups


def _same(one: list[NDArray[np.float64]], other: list[NDArray[np.float64]]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))
