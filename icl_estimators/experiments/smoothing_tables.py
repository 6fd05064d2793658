"""From moments and fits to the rows of smoothing.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.inference import RatioMoments, ratio_intervals
from icl_estimators.inference.trees import merged
from icl_estimators.notes import Code, Note, join
from icl_estimators.pseudo_counts import Estimate, FamilyFit, PseudoCount, fit_pseudo_count, pseudo_count_seeds
from icl_estimators.pseudo_counts.fit import FEW_CHAINS
from icl_estimators.pseudo_counts.streaming import SmoothingMoments
from icl_estimators.row_names import prediction_at_count

__all__ = ["few_chains", "smoothing_table"]

Row = tuple[Cell, ...]


def few_chains(moments: Mapping[str, SmoothingMoments]) -> dict[str, list[int]]:
    """Return the groups of prefixes, by grouping, to which too few chains contribute for an interval to be trusted.

    They are the same for every estimator. ``overall`` has one group, 0.
    """
    first = next(iter(moments.values()))
    few: dict[str, list[int]] = {}
    for (by, value), halves in first.halves.items():
        whole = merged(*halves)
        if whole is None or whole.n_chains < FEW_CHAINS:
            few.setdefault(by, []).append(value)
    return few


class Pooled(Protocol):
    """What a table of pseudo-counts says of its study."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of everything that has rows, the mean over training runs of a recipe after its runs."""
        ...

    @property
    def recipes(self) -> dict[str, tuple[str, ...]]:
        """The names of the training runs by recipe."""
        ...

    @property
    def length(self) -> int:
        """T, the longest prefix."""
        ...

    @property
    def level(self) -> float:
        """Of intervals."""
        ...


def smoothing_table(
    study: Pooled,
    moments: Mapping[str, SmoothingMoments],
    families: Mapping[str, Sequence[FamilyFit]] | None = None,
    *,
    family_note: str = "",
) -> Table:
    """Return smoothing.csv.

    Rows of an estimator, by grouping and value: family `add-constant` with parameters `pseudo_count` and `explained`;
    at visits 0 family `uniform`, parameter `kl_nats`; family `empirical`, the mean prediction by count; then the
    families. After several training runs of one recipe, those of their pooled objective and, as `<recipe>:recipe`, of
    the recipe.
    """
    rows: list[Row] = []
    fits: dict[str, dict[tuple[str, int], PseudoCount]] = {}
    for name in study.names:
        fits[name] = {
            key: fit_pseudo_count(merged(*halves), level=study.level, halves=halves)
            for key, halves in moments[name].halves.items()
        }
        for (by, value), fit in fits[name].items():
            rows += _pseudo_count_rows(name, by, value, fit, study.length)
        rows.append(_unseen_row(name, moments[name].unseen, study.level))
        for visits, panel in moments[name].panels.items():
            rows += _panel_rows(name, visits, panel, study.level)
        for found in (families or {}).get(name, ()):
            rows += _family_rows(name, found, family_note)
        if name in study.recipes:
            rows += _recipe_rows(name, [fits[run] for run in study.recipes[name]], fits[name], study.level)
    return Table.of("smoothing", rows)


def _row(
    head: tuple[Cell, ...],
    family: str,
    parameter: str,
    numbers: tuple[float, float, float, float],
    rest: tuple[float, float, float] = (np.nan,) * 3,
    flags: tuple[bool, bool] = (True, False),
    note: str = "",
) -> Row:
    return (*head, family, parameter, *map(float, numbers), *map(float, rest), *map(bool, flags), note)


def _pseudo_count_rows(name: str, by: str, value: int, fit: PseudoCount, length: int) -> Iterator[Row]:
    head: tuple[Cell, ...] = (name, by, None if by == "overall" else value)
    rest = (fit.residual_kl_nats, fit.heldout_kl_nats, fit.explained)
    note = join(*fit.notes, Note(Code.EVERY_PREFIX, length=length) if by == "overall" else "")
    flags = (fit.identified, fit.boundary)
    numbers = (fit.estimate, fit.se, fit.low, fit.high)
    yield _row(head, "add-constant", "pseudo_count", numbers, rest, flags, note)
    share = (fit.explained, fit.explained_se, fit.explained_low, fit.explained_high)
    yield _row(head, "add-constant", "explained", share, rest, (not np.isnan(fit.explained), False), note)


def _unseen_row(name: str, unseen: RatioMoments, level: float) -> Row:
    found = ratio_intervals(unseen, level=level, empty=Note(Code.NEVER_UNSEEN))
    numbers = (found.estimate[0], found.se[0], found.low[0], found.high[0])
    note = found.notes[0] or Note(Code.NOTHING_AT_ZERO_VISITS)
    return _row((name, "visits", 0), "uniform", "kl_nats", numbers, note=note)


def _panel_rows(name: str, visits: int, panel: RatioMoments, level: float) -> Iterator[Row]:
    found = ratio_intervals(panel, level=level, empty=Note(Code.NO_SUCH_COUNT))
    for count in range(visits + 1):
        numbers = (found.estimate[count], found.se[count], found.low[count], found.high[count])
        head: tuple[Cell, ...] = (name, "visits", visits)
        yield _row(head, "empirical", prediction_at_count(count), numbers, note=found.notes[count])


def _family_rows(name: str, fit: FamilyFit, note: str) -> Iterator[Row]:
    head: tuple[Cell, ...] = (name, "overall", None)
    rest = (fit.residual_kl_nats, fit.heldout.estimate, fit.explained.estimate)
    if fit.family != "add-constant":  # whose own rows come from all chains
        for parameter in fit.parameters:
            numbers = (parameter.estimate, parameter.se, parameter.low, parameter.high)
            flags = (parameter.identified, parameter.boundary)
            why = join(parameter.note, note)
            yield _row(head, fit.family, parameter.name, numbers, rest, flags, why)
        yield _estimate_row(head, fit.family, "explained", fit.explained, rest, note)
    yield _estimate_row(head, fit.family, "residual_kl_heldout_nats", fit.heldout, rest, note)
    if fit.family != "add-constant":
        gain = join(Note(Code.GAIN_IS_CONDITIONAL), note)
        yield _estimate_row(head, fit.family, "heldout_gain_nats", fit.heldout_gain, rest, gain)


def _estimate_row(
    head: tuple[Cell, ...], family: str, parameter: str, found: Estimate, rest: tuple[float, float, float], note: str
) -> Row:
    numbers = (found.estimate, found.se, found.low, found.high)
    why = join(found.note, note)
    return _row(head, family, parameter, numbers, rest, (not np.isnan(found.estimate), False), why)


def _recipe_rows(
    recipe: str,
    runs: Sequence[Mapping[tuple[str, int], PseudoCount]],
    pooled: Mapping[tuple[str, int], PseudoCount],
    level: float,
) -> Iterator[Row]:
    """Yield the rows of `<recipe>:recipe`: training runs and chains both as samples, and how much the runs differ."""
    for (by, value), fit in pooled.items():
        spread = pseudo_count_seeds([run[by, value] for run in runs], fit, level=level)
        head: tuple[Cell, ...] = (f"{recipe}:recipe", by, None if by == "overall" else value)
        known = (not np.isnan(spread.estimate), False)
        numbers = (spread.estimate, spread.se, spread.low, spread.high)
        note = join(spread.note, Note(Code.GEOMETRIC_MEAN) if known[0] else "")
        yield _row(head, "add-constant", "pseudo_count", numbers, flags=known, note=note)
        numbers = (spread.sd_log, spread.sd_se, spread.sd_low, spread.sd_high)
        note = join(spread.note, Note(Code.SD_OF_LOG) if known[0] else "")
        yield _row(head, "add-constant", "between_seed_sd_log", numbers, flags=known, note=note)
