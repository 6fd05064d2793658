"""What each attention head looks at: the previous token, and positions after earlier occurrences of the current one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator
from icl_estimators.estimators.heads import heads_of
from icl_estimators.experiments.attention_quantities import attention_quantities
from icl_estimators.experiments.study import Study
from icl_estimators.inference import Moments, mean_intervals
from icl_estimators.notes import Code, Note

__all__ = ["HEAD_CHAINS", "heads_table"]

Array = NDArray[np.float64]

HEAD_CHAINS = 200
"""Chains whose first sequence is looked at: a large model has many heads."""

_LENGTHS = (3, 6, 12, 24, 50)
_SEQUENCES = 8  # that are held at once


def heads_table(study: Study) -> Table | None:
    """Return heads.csv: for each layer and head the attention to previous tokens and to matches, beside chance.

    Of every estimator that shows its heads, except those of two layers with one head each, which `attention.csv` has.
    None if there are no others. At some context lengths, and as `mean` over n = 2 … T.
    """
    rows = [row for estimator in study.estimators for row in _rows(study, estimator)]
    return Table.of("heads", rows) if rows else None


def _rows(study: Study, estimator: Estimator) -> Iterator[tuple[Cell, ...]]:
    longest = getattr(estimator, "max_length", None)
    length = study.length if not isinstance(longest, int) else min(study.length, longest)
    if length < 2:
        return
    probe = np.zeros((1, 2), dtype=np.int64)
    layers = heads_of(estimator, probe)
    if layers is None or [layer.shape[1] for layer in layers] == [1, 1]:
        return
    n_chains = min(study.chains, HEAD_CHAINS)
    tokens = study.source.sample(
        range(n_chains), sequences_per_chain=1, length=study.length, seed=study.seed, purpose="risk"
    ).inputs[:, :length]
    values = _values(estimator, tokens)  # (layers and heads) → quantity → (N, T)
    lengths = [n for n in _LENGTHS if n < length] + [length]
    columns = [n - 1 for n in lengths]
    labels: list[Cell] = ["mean", *lengths]
    found: dict[tuple[int, int, str], list[tuple[Cell, ...]]] = {}
    above: dict[str, dict[tuple[int, int], float]] = {}
    note = Note(Code.FIRST_SEQUENCES, chains=n_chains)
    for (layer, head), quantities in values.items():
        for quantity, (mass, chance) in quantities.items():
            whole = np.column_stack([mass[:, 1:].mean(axis=1), mass[:, columns]])
            expected = np.concatenate([[chance[:, 1:].mean()], chance[:, columns].mean(axis=0)])
            intervals = mean_intervals(Moments.of(whole, full=False), level=study.level)
            numbers = (intervals.estimate, intervals.se, intervals.low, intervals.high, expected)
            found[layer, head, quantity] = [
                (estimator.name, layer, head, label, quantity, *(float(column[place]) for column in numbers), note)
                for place, label in enumerate(labels)
            ]
            above.setdefault(quantity, {})[layer, head] = float(intervals.estimate[0] - expected[0])
    best = {quantity: max(heads, key=heads.__getitem__) for quantity, heads in above.items()}
    for (layer, head, quantity), rows in found.items():
        for row in rows:
            yield (*row[:-1], best[quantity] == (layer, head), row[-1])


def _values(estimator: Estimator, tokens: NDArray[np.int64]) -> dict[tuple[int, int], dict[str, tuple[Array, Array]]]:
    """Return mass and chance of each quantity, each of shape (N, T), by layer and head from 1."""
    parts: dict[tuple[int, int], list[dict[str, tuple[Array, Array]]]] = {}
    positions = np.arange(1, tokens.shape[1] + 1)
    for first in range(0, len(tokens), _SEQUENCES):
        batch = tokens[first : first + _SEQUENCES]
        layers = heads_of(estimator, batch)
        assert layers is not None  # it showed them for the probe
        extra = layers[0].shape[-1] - batch.shape[1]  # a sentinel's row and column
        for layer, weights in enumerate(layers, start=1):
            for head in range(weights.shape[1]):
                own = weights[:, head, extra:, extra:]
                masses = attention_quantities(own, own, batch)
                previous = np.broadcast_to(1.0 / positions, masses.match_mass.shape)
                parts.setdefault((layer, head + 1), []).append(
                    {
                        "previous_token_mass": (masses.previous_token_mass, previous),
                        "match_mass": (masses.match_mass, masses.match_mass_chance),
                    }
                )
    return {
        key: {
            quantity: (
                np.concatenate([part[quantity][0] for part in found]),
                np.concatenate([part[quantity][1] for part in found]),
            )
            for quantity in found[0]
        }
        for key, found in parts.items()
    }
