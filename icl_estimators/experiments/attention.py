"""Where the induction circuits look, on the sequences of the risk design and on one example."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.blocks import UNIT
from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator
from icl_estimators.estimators.capabilities import attends, attention_of
from icl_estimators.experiments.attention_quantities import (
    AttentionQuantities,
    attention_quantities,
)
from icl_estimators.experiments.study import Study
from icl_estimators.inference import Intervals, Moments, mean_intervals, merge_in_order, two_way_intervals, with_mean
from icl_estimators.metrics import ATTENTION_QUANTITIES
from icl_estimators.notes import Code, Note, join

__all__ = ["EXAMPLE_TOKENS", "attention_example_table", "attention_table"]

Array = NDArray[np.float64]

ATTENTION_CHAINS = 2000
_BATCH_WEIGHTS = 2**22  # of one layer that are held at once
EXAMPLE_TOKENS = 24
QUANTITIES = tuple(ATTENTION_QUANTITIES)


def attention_table(study: Study) -> Table | None:
    """Return attention.csv: masses by context length, on the first chains; None if no estimator shows its attention.

    After several training runs of one recipe that all attend, their mean (for these runs) and, as `<recipe>:recipe`,
    the recipe, with runs and chains both as samples.
    """
    rows: list[tuple[Cell, ...]] = []
    n_chains = min(study.chains, ATTENTION_CHAINS)
    units = [range(first, min(first + UNIT, n_chains)) for first in range(0, n_chains, UNIT)]
    values: dict[str, dict[str, list[Array]]] = {}  # of the training runs, unit by unit
    for name in study.names:
        if name in study.recipes:
            runs = [values[run] for run in study.recipes[name] if run in values]
            if len(runs) == len(study.recipes[name]):
                rows += _recipe_rows(study, name, runs, n_chains)
            continue
        estimator = next(one for one in study.estimators if one.name == name)
        if not attends(estimator):
            continue
        parts = [_unit_values(study, estimator, unit) for unit in units]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            continue
        for quantity in QUANTITIES:
            intervals = mean_intervals(
                _moments([part[quantity] for part in found]), level=study.level, undefined=Note(Code.NO_PREVIOUS_TOKEN)
            )
            rows += _rows(study, name, quantity, intervals, Note(Code.FIRST_SEQUENCES, chains=n_chains))
        if name in study.checkpoints:
            values[name] = {quantity: [part[quantity] for part in found] for quantity in QUANTITIES}
    return Table.of("attention", rows) if rows else None


def _recipe_rows(
    study: Study, recipe: str, runs: list[dict[str, list[Array]]], n_chains: int
) -> Iterator[tuple[Cell, ...]]:
    basis = join(Note(Code.FIRST_SEQUENCES, chains=n_chains), Note(Code.FOR_THESE_RUNS))
    average = {
        q: _moments([np.mean(unit, axis=0) for unit in zip(*(run[q] for run in runs), strict=True)]) for q in QUANTITIES
    }
    for quantity in QUANTITIES:
        intervals = mean_intervals(average[quantity], level=study.level, undefined=Note(Code.NO_PREVIOUS_TOKEN))
        yield from _rows(study, recipe, quantity, intervals, basis)
    for quantity in QUANTITIES:
        intervals = two_way_intervals(
            [_moments(run[quantity]) for run in runs],
            average[quantity],
            level=study.level,
            undefined=Note(Code.NO_PREVIOUS_TOKEN),
        )
        yield from _rows(study, f"{recipe}:recipe", quantity, intervals, Note(Code.FIRST_SEQUENCE), both=True)


def _rows(
    study: Study, name: str, quantity: str, intervals: Intervals, note: str, *, both: bool = False
) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of one quantity; `note` stands where the interval has none, or after it if `both`."""
    for column in range(study.length):
        why = intervals.notes[column]
        numbers = (intervals.estimate, intervals.se, intervals.low, intervals.high)
        whole = join(why, note) if both and np.isfinite(intervals.se[column]) else why or note
        yield (name, column + 1, quantity, *(float(values[column]) for values in numbers), whole)


def _moments(units: list[Array]) -> Moments:
    return merge_in_order(Moments.of(values, full=False) for values in units)


def attention_example_table(study: Study) -> Table | None:
    """Return attention_example.csv: both layers' weights on the start of a sequence; None if no estimator has any."""
    sample = study.source.sample(
        [0], sequences_per_chain=1, length=min(study.length, EXAMPLE_TOKENS), seed=study.seed, purpose="example"
    )
    rows: list[tuple[Cell, ...]] = []
    for estimator in study.estimators:
        layers = attention_of(estimator, sample.inputs)
        if layers is not None:
            for layer, weights in enumerate(layers, start=1):
                rows += _example_rows(estimator.name, layer, weights[0], sample.inputs[0].tolist())
    return Table.of("attention_example", rows) if rows else None


def _example_rows(name: str, layer: int, weights: Array, tokens: list[int]) -> Iterator[tuple[Cell, ...]]:
    """Yield one row for each query and key ≤ query; position 0 is the sentinel, where there is one."""
    has_sentinel = len(weights) > len(tokens)
    labels = [*(["^"] if has_sentinel else []), *map(str, tokens)]
    first = 0 if has_sentinel else 1
    for query in range(len(labels)):
        for key in range(query + 1):
            yield name, layer, query + first, key + first, labels[query], labels[key], float(weights[query, key])


def _unit_values(study: Study, estimator: Estimator, chains: range) -> dict[str, Array] | None:
    sample = study.source.sample(chains, sequences_per_chain=1, length=study.length, seed=study.seed, purpose="risk")
    batch = max(1, _BATCH_WEIGHTS // (study.length + 1) ** 2)
    parts: list[AttentionQuantities] = []
    for first in range(0, len(chains), batch):
        tokens = sample.inputs[first : first + batch]
        layers = attention_of(estimator, tokens)
        if layers is None:
            return None
        extra = layers[0].shape[1] - tokens.shape[1]  # a sentinel's row and column
        parts.append(attention_quantities(layers[0][:, extra:, extra:], layers[1][:, extra:, extra:], tokens))
    return {name: with_mean(np.concatenate([getattr(part, name) for part in parts])) for name in QUANTITIES}
