"""From the moments of a study to the rows of risk.csv and differences.csv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from icl_estimators.band_coverage import band_note
from icl_estimators.engine.tables import Cell, Table
from icl_estimators.experiments.decomposition import DecompositionMoments
from icl_estimators.experiments.risk import RiskMoments
from icl_estimators.experiments.study import Study
from icl_estimators.inference import (
    BIN_EDGES,
    FEWEST_CHAINS,
    Intervals,
    Moments,
    mean_intervals,
    mean_ratio_intervals,
    paired_differences,
    proportion_intervals,
    rao_blackwell_factors,
    ratio_intervals,
    simultaneous_band,
    squared_bias_intervals,
    training_variance_intervals,
    two_way_intervals,
)
from icl_estimators.metrics import DECOMPOSITION_METRICS, KL_METRICS, METRICS, Metric
from icl_estimators.notes import Code, Note, join

__all__ = [
    "context_labels",
    "decomposition_table",
    "difference_table",
    "interval_rows",
    "risk_table",
    "signed_bias_table",
]

Array = NDArray[np.float64]


def context_labels(length: int) -> list[Cell]:
    """Return 1 … T and `mean`, the labels of a summary's coordinates."""
    return [*range(1, length + 1), "mean"]


def risk_table(study: Study, moments: RiskMoments) -> Table:
    """Return risk.csv: per estimator, metric and context length, and averaged over context lengths (`mean`)."""
    rows: list[tuple[Cell, ...]] = []
    for name in study.names:
        for metric in METRICS.values():
            rows += _metric_rows(study, moments, name, metric)
        if name in study.recipes:
            rows += _recipe_rows(study, moments, name)
    return Table.of("risk", rows)


def _recipe_rows(study: Study, moments: RiskMoments, recipe: str) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of `transformer:recipe`: the mean over training runs, with runs and chains both as samples."""
    names = study.recipes[recipe]
    for metric, entry in METRICS.items():
        if (recipe, metric) not in moments.risk:
            continue
        runs = [moments.risk[name, metric] for name in names]
        intervals = two_way_intervals(runs, moments.risk[recipe, metric], level=study.level)
        why = Note(Code.NO_BAND_TWO_WAY)
        if entry.summary == "share":  # its spread over runs is 0 where no run ever errs: that is no certainty
            nothing = np.full(study.length + 1, np.nan)
            intervals = replace(intervals, se=nothing, low=nothing, high=nothing, notes=("",) * (study.length + 1))
            why = Note(Code.NO_TWO_WAY_SHARE)
        yield from interval_rows(study, f"{recipe}:recipe", metric, intervals, why)


def _metric_rows(study: Study, moments: RiskMoments, name: str, entry: Metric) -> Iterator[tuple[Cell, ...]]:
    metric = entry.name
    if entry.summary == "finite mean":
        finite = mean_ratio_intervals(moments.finite[name], level=study.level, empty=Note(Code.ALL_INFINITE))
        return interval_rows(study, name, metric, finite, join(Note(Code.FINITE_KL_ONLY), Note(Code.NO_BAND_OF_RATIO)))
    if entry.needs_posterior and not study.exact_posterior:
        size = study.length + 1
        nothing = np.full(size, np.nan)
        return interval_rows(
            study,
            name,
            metric,
            Intervals(nothing, nothing, nothing, nothing, study.chains, (Note(Code.NO_POSTERIOR),) * size),
            "",
        )
    summary = moments.risk[name, metric]
    if entry.summary == "share":
        averaged = np.full(summary.size, name in study.recipes)
        averaged[-1] = study.length > 1 or averaged[-1]
        shares = proportion_intervals(
            summary, sequences_per_chain=study.sequences_per_chain, averaged=averaged, level=study.level
        )
        return interval_rows(study, name, metric, shares, Note(Code.NO_BAND_OF_SHARE))
    return interval_rows(study, name, metric, mean_intervals(summary, level=study.level), summary)


def interval_rows(
    study: Study,
    name: str,
    metric: str,
    intervals: Intervals,
    band: Moments | str,
    *,
    n_chains: int | None = None,
    sequences_per_chain: int | None = None,
) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of one estimator and metric, context lengths 1 … T and their mean.

    `band` is what the band along context length is made of, or the reason why there is none.
    """
    chains = study.chains if n_chains is None else n_chains
    sequences = study.sequences_per_chain if sequences_per_chain is None else sequences_per_chain
    size = study.length + 1
    band_low, band_high = np.full(size, np.nan), np.full(size, np.nan)
    band_notes = [band if isinstance(band, str) else Note(Code.NO_BAND_OF_MEAN)] * size
    if isinstance(band, Moments):
        curve = simultaneous_band(band.select(slice(0, study.length)), level=study.level)
        band_low[:-1], band_high[:-1] = curve.low, curve.high
        caution = band_note(metric, length=study.length, chains=chains, sequences_per_chain=sequences)
        band_notes[:-1] = [
            caution if np.isfinite(low) else ""  # the interval's note says why there is none
            for low in curve.low
        ]
    for column, label in enumerate(context_labels(study.length)):
        finite = np.isfinite(intervals.estimate[column])
        yield (
            name,
            label,
            metric,
            float(intervals.estimate[column]),
            float(intervals.se[column]),
            float(intervals.low[column]),
            float(intervals.high[column]),
            float(band_low[column]),
            float(band_high[column]),
            chains,
            chains * sequences,
            join(intervals.notes[column], band_notes[column] if finite else ""),
        )


def difference_table(study: Study, moments: RiskMoments) -> Table:
    """Return differences.csv: each estimator minus the reference, paired on the same draws.

    After the mean over several training runs `<recipe>:recipe`, with runs and chains both as samples.
    """
    rows: list[tuple[Cell, ...]] = []
    labels = context_labels(study.length)
    for name in study.names:
        for metric, entry in METRICS.items():
            key = (name, metric)
            if key not in moments.differences:
                if entry.needs_posterior and name != study.reference:
                    why = Note(Code.NO_POSTERIOR)
                    rows += [(*_head(study, name, label, metric), *(np.nan,) * 7, why) for label in labels]
                continue
            result = paired_differences(moments.differences[key], level=study.level)
            factor = np.full(len(labels), np.nan)
            if metric == "regret_nats":
                realised = moments.differences[name, "kl_nats"]
                factor = rao_blackwell_factors(realised, moments.differences[key])
            for column, label in enumerate(labels):
                rows.append(
                    (
                        *_head(study, name, label, metric),
                        float(result.difference[column]),
                        float(result.se[column]),
                        float(result.low[column]),
                        float(result.high[column]),
                        float(result.correlation[column]),
                        float(result.variance_reduction[column]),
                        float(factor[column]),
                        result.notes[column],
                    )
                )
        if name in study.recipes and name != study.reference:
            rows += _recipe_difference_rows(study, moments, name)
    return Table.of("differences", rows)


def _recipe_difference_rows(study: Study, moments: RiskMoments, recipe: str) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of `<recipe>:recipe` minus the reference."""
    names = study.recipes[recipe]
    for metric in METRICS:
        if (recipe, metric) not in moments.differences:
            continue
        pair = moments.differences[recipe, metric]
        chains_only = paired_differences(pair, level=study.level)
        if study.reference in study.recipes or study.reference in names:
            nothing = np.full(study.length + 1, np.nan)
            notes = tuple(
                Note(Code.REFERENCE_VARIES) if defined else note
                for note, defined in zip(chains_only.notes, pair.difference.finite, strict=True)
            )
            found = Intervals(nothing, nothing, nothing, nothing, study.chains, notes)
        else:
            runs = [moments.differences[name, metric].difference for name in names]
            found = two_way_intervals(runs, pair.difference, level=study.level)
            notes = tuple(
                join(basis, Note(Code.GAIN_FOR_THESE_RUNS)) if defined else reason
                for basis, reason, defined in zip(found.notes, chains_only.notes, pair.difference.finite, strict=True)
            )
        for column, label in enumerate(context_labels(study.length)):
            numbers = (found.estimate, found.se, found.low, found.high)
            head = _head(study, f"{recipe}:recipe", label, metric)
            yield (*head, *(float(values[column]) for values in numbers), *(np.nan,) * 3, notes[column])


def signed_bias_table(study: Study, moments: RiskMoments) -> Table:
    """Return signed_bias.csv: mean of p̂_w − P_vw where P_vw lies in a bin, by context length and pooled (`mean`)."""
    rows: list[tuple[Cell, ...]] = []
    labels = context_labels(study.length)
    edges = list(pairwise(BIN_EDGES.tolist()))
    for name in study.names:
        result = ratio_intervals(
            moments.signed_bias[name],
            level=study.level,
            empty=Note(Code.EMPTY_BIN),
            fewest=min(FEWEST_CHAINS, study.chains),
        )
        for index, (label, (low, high)) in enumerate(product(labels, edges)):
            rows.append(
                (
                    name,
                    label,
                    low,
                    high,
                    float(result.estimate[index]),
                    float(result.se[index]),
                    float(result.low[index]),
                    float(result.high[index]),
                    study.chains,
                    result.notes[index] or (Note(Code.POOLED_LENGTHS) if label == "mean" else ""),
                )
            )
    return Table.of("signed_bias", rows)


def decomposition_table(study: Study, moments: DecompositionMoments) -> Table:
    """Return decomposition.csv: bias², variance and their sum, in squared error and in KL.

    After the mean over several training runs, whose intervals are conditional on them, `<recipe>:recipe`: the same
    with runs and chains both as samples. The training variance has that interval in both.
    """
    rows: list[tuple[Cell, ...]] = []
    for name in study.names:
        runs = study.recipes.get(name, ())
        for metric in DECOMPOSITION_METRICS:
            if (name, metric) not in moments.parts:
                continue
            if metric == "training_variance":
                rows += _decomposition_rows(study, name, moments, metric, runs)
                continue
            summary = moments.parts[name, metric]
            intervals = _with_tally(mean_intervals(summary, level=study.level), moments, name, metric)
            if runs:
                of_each = Note(Code.MEAN_OF_RUNS) if metric in KL_METRICS else ""
                notes = tuple(join(note, of_each, Note(Code.THESE_RUNS)) for note in intervals.notes)
                intervals = replace(intervals, notes=notes)
            rows += _nested_rows(study, name, metric, intervals, summary)
        if runs:
            for metric in DECOMPOSITION_METRICS:
                if (name, metric) in moments.parts:
                    rows += _decomposition_rows(study, f"{name}:recipe", moments, metric, runs, of=name)
    return Table.of("decomposition", rows)


def _decomposition_rows(
    study: Study,
    name: str,
    moments: DecompositionMoments,
    metric: str,
    runs: Sequence[str],
    *,
    of: str | None = None,
) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of one metric of a recipe `of`, called `name`, with runs and chains both as samples."""
    recipe = of or name
    average = moments.parts[recipe, metric]
    if metric in ("bias_squared", "training_variance"):
        pseudo = [moments.runs[run, metric] for run in runs if (run, metric) in moments.runs]
        made = squared_bias_intervals if metric == "bias_squared" else training_variance_intervals
        intervals = made(pseudo, average, level=study.level)
    elif metric == "split_weight":  # the same for every run
        intervals = mean_intervals(average, level=study.level)
    else:
        intervals = two_way_intervals([moments.parts[run, metric] for run in runs], average, level=study.level)
    return _nested_rows(
        study, name, metric, _with_tally(intervals, moments, recipe, metric), Note(Code.NO_BAND_TWO_WAY)
    )


def _with_tally(intervals: Intervals, moments: DecompositionMoments, name: str, metric: str) -> Intervals:
    if metric not in KL_METRICS:
        return intervals
    notes = zip(intervals.notes, moments.tallies[name].notes(), strict=True)
    return replace(intervals, notes=tuple(join(*pair) for pair in notes))


def _nested_rows(
    study: Study, name: str, metric: str, intervals: Intervals, band: Moments | str
) -> Iterator[tuple[Cell, ...]]:
    return interval_rows(
        study,
        name,
        metric,
        intervals,
        band,
        n_chains=study.decomposition_chains,
        sequences_per_chain=study.decomposition_sequences,
    )


def _head(study: Study, name: str, label: Cell, metric: str) -> tuple[Cell, ...]:
    return name, study.reference, label, metric
