"""Which pseudo-count does each estimator act like on observed sequences?

The prefixes are those that a transformer of length W would be given: each sequence from its beginning, and beyond W
tokens the last W of them as a fresh prefix. The independent sequence takes the place of the chain.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.executors import one_thread
from icl_estimators.engine.result import StudyResult
from icl_estimators.engine.running import Progress
from icl_estimators.estimators import Estimator, check_estimator, rules_record
from icl_estimators.estimators.identity import study_identity
from icl_estimators.experiments.assembly import gamma_record
from icl_estimators.experiments.observed_losses import predict_named
from icl_estimators.experiments.observed_study import ObservedStudy
from icl_estimators.experiments.smoothing import checked_families
from icl_estimators.experiments.smoothing_tables import few_chains, smoothing_table
from icl_estimators.inference import merge_in_order
from icl_estimators.provenance import made_with
from icl_estimators.pseudo_counts import FamilyFit, Grouping, Prefixes, fit_families, smoothing_family
from icl_estimators.pseudo_counts.streaming import PANEL_VISITS, SmoothingMoments, SmoothingPrefixes, SmoothingSums
from icl_estimators.sources import occurrence_counts, transition_counts
from icl_estimators.sources.observed.corpus import Corpus

__all__ = ["ObservedSmoothing", "run_observed_smoothing"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_CELLS = 1_000_000  # probabilities that are held at once
_ROWS = 256
_FAMILY_PREFIXES = 2_000_000


@dataclass(frozen=True)
class ObservedSmoothing:
    """What decides the numbers of a smoothing study of observed sequences.

    Attributes
    ----------
    study : ObservedStudy
        Estimators and data; without pooling.
    by : tuple of {"overall", "context-length", "visits"}
    families : tuple of str
        Compared with `add-constant` over all prefixes; empty for none.

    Raises
    ------
    InputError
        If a grouping or family is unknown or named twice, or no grouping is named.
    """

    study: ObservedStudy
    by: tuple[Grouping, ...]
    families: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "families", checked_families(self.by, self.families, self.study.data.n_states))

    @property
    def length(self) -> int:
        """T, the longest prefix that is asked about."""
        longest = max(len(sequence) for sequence in self.study.data.sequences) - 1
        return max(1, min(self.study.length, longest))

    @property
    def level(self) -> float:
        """Of intervals."""
        return self.study.level

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimators."""
        return tuple(rule.name for rule in self.study.estimators)

    @property
    def recipes(self) -> dict[str, tuple[str, ...]]:
        """None: training runs are not pooled on observed sequences."""
        return {}

    @property
    def n_units(self) -> int:
        """Independent sequences."""
        return len(np.unique(self.study.data.units))

    @property
    def no_families(self) -> str:
        """Why the families cannot be compared; empty if they can."""
        data = self.study.data
        if self.n_units < 2:
            return "one sequence: families are compared on sequences that they were not fitted to"
        windows = np.array([max(1, len(sequence) - self.length) for sequence in data.sequences])
        if np.bincount(data.units, weights=windows).max() > _batch(self.length, data.n_states):
            return f"a sequence has too many windows of {self.length} tokens: cut it, or give a longer --length"
        if data.n_predictions > _FAMILY_PREFIXES:
            return f"more than {_FAMILY_PREFIXES:,} prefixes: families are compared on fewer"
        return ""

    def record(self) -> dict[str, Any]:
        """Return everything that decides the study's numbers, as plain values: the `options` of run.json."""
        families = [] if self.no_families else list(self.families)
        own = {"by": list(self.by), "families": families, "interventions": False, "recipes": {}, "checkpoints": []}
        return {**self.study.record(), **own}


@dataclass(frozen=True, eq=False)
class _Rows:
    """Prefixes of some independent sequences, an equal number of rows S of each of R.

    Attributes
    ----------
    tokens : ndarray of int64, shape (R, S, T)
        0 after the end of a row.
    lengths : ndarray of int64, shape (R, S)
    since : ndarray of int64, shape (R, S)
        The first position of each row that counts, from 0: the last one of a window.
    names : list of str
        Of each row, for messages.
    first : int
        The first of the independent sequences, from 0 in all.
    """

    tokens: Integers
    lengths: Integers
    since: Integers
    names: list[str]
    first: int

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which prefixes count, shape (R, S, T)."""
        at = np.arange(self.tokens.shape[-1])
        return np.asarray((at >= self.since[..., None]) & (at < self.lengths[..., None]))

    def counts(self, n_states: int) -> NDArray[np.int32]:
        """Return n_vw of the prefixes that count, 0 elsewhere, shape (R, S, T, K)."""
        r, s, t = self.tokens.shape
        counts = transition_counts(self.tokens.reshape(r * s, t), n_states).reshape(r, s, t, n_states)
        return np.where(self.counted[..., None], counts, 0).astype(np.int32)

    def ask(self, estimator: Estimator) -> Array:
        """Return checked predictions, uniform after the end of a row, shape (R, S, T, K); none is padded."""
        r, s, t = self.tokens.shape
        flat, lengths = self.tokens.reshape(r * s, t), self.lengths.ravel()
        found = np.full((r * s, t, estimator.n_states), 1.0 / estimator.n_states)
        for length in np.unique(lengths[lengths > 0]).tolist():
            alike = np.flatnonzero(lengths == length)
            names = [self.names[row] for row in alike.tolist()]
            found[alike, :length] = predict_named(estimator, flat[alike, :length], names)
        return found.reshape(r, s, t, -1)


def _batch(length: int, n_states: int) -> int:
    """Return how many rows are held at once."""
    return max(1, min(_ROWS, _CELLS // (length * n_states)))


def _rows(design: ObservedSmoothing) -> Iterator[_Rows]:
    """Yield all prefixes, independent sequence by independent sequence."""
    data, length = design.study.data, design.length
    corpus = Corpus.of(data.sequences, data.n_states)
    units, place = np.unique(data.units, return_inverse=True)
    by_unit = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[by_unit], np.arange(len(units) + 1))
    size = _batch(length, data.n_states)
    waiting: list[tuple[Integers, Integers, Integers]] = []
    first = 0

    def of(parts: list[tuple[Integers, Integers, Integers]]) -> _Rows:
        starts, lengths, since = (np.stack(column) for column in zip(*parts, strict=True))
        inside = np.arange(length) < lengths[..., None]
        at = np.where(inside, starts[..., None] + np.arange(length), 0)
        whose = np.searchsorted(corpus.starts, starts.ravel(), side="right") - 1
        names = [f"sequence {number + 1} of {data.name}" for number in whose.tolist()]
        return _Rows(np.where(inside, corpus.tokens[at], 0), lengths, since, names, first)

    for unit in range(len(units)):
        mine = by_unit[ends[unit] : ends[unit + 1]]
        starts, lengths, since = _prefixes_of(corpus, mine, length)
        if waiting and (len(waiting[0][0]) != len(starts) or (len(waiting) + 1) * len(starts) > size):
            yield of(waiting)
            first, waiting = unit, []
        if len(starts) <= size:
            waiting.append((starts, lengths, since))
            continue
        for cut in range(0, len(starts), size):
            part = slice(cut, cut + size)
            yield of([(starts[part], lengths[part], since[part])])
        first = unit + 1
    if waiting:
        yield of(waiting)


def _prefixes_of(corpus: Corpus, sequences: Integers, length: int) -> tuple[Integers, Integers, Integers]:
    """Return where the rows of some sequences start, how long they are, and where in them predictions count."""
    starts, lengths, since = [], [], []
    for sequence in sequences.tolist():
        start = int(corpus.starts[sequence])
        history = int(corpus.starts[sequence + 1]) - start - 1
        windows = max(0, history - length)
        starts.append(start + np.arange(windows + 1))
        lengths.append(np.full(windows + 1, min(history, length)))
        since.append(np.concatenate([[0], np.full(windows, length - 1)]))
    found = (np.concatenate(parts).astype(np.int64) for parts in (starts, lengths, since))
    return tuple(found)  # type: ignore[return-value]


def run_observed_smoothing(design: ObservedSmoothing, *, progress: Progress | None = None) -> StudyResult:
    """Run a smoothing study of observed sequences and make its table.

    Parameters
    ----------
    design : ObservedSmoothing
    progress : callable, optional
        Called with (what, done, total) after each estimator.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    """
    began = time.perf_counter()
    study = design.study
    identity = study_identity(study.estimators)  # before they are asked for anything
    moments: dict[str, SmoothingMoments] = {}
    families: dict[str, tuple[FamilyFit, ...]] = {}
    with one_thread():
        for rule in study.estimators:
            check_estimator(rule, study.data.n_states, length=design.length)
        for done, rule in enumerate(study.estimators, start=1):
            moments[rule.name] = _moments(design, rule)
            if design.families and "overall" in design.by and not design.no_families:
                families[rule.name] = _family_fits(design, rule)
            if progress is not None:
                progress("smoothing", done, len(study.estimators))
        table = smoothing_table(design, moments, families)
    record = {
        "kind": "smoothing",
        "options": design.record(),
        "identity": identity,
        "data": study.data.record,
        "rules": rules_record(study.estimators),
        **gamma_record(study.estimators),
        "intervened_on": [],
        "family_formulas": {name: smoothing_family(name, study.data.n_states).formula for name in design.families},
        "few_chains": few_chains(moments),
        "threads": 1,
        **made_with(),
        "wall_time_s": time.perf_counter() - began,
    }
    return StudyResult({"smoothing": table}, record)


def _moments(design: ObservedSmoothing, rule: Estimator) -> SmoothingMoments:
    panels = [visits for visits in PANEL_VISITS if visits < design.length] if "visits" in design.by else []
    parts: list[SmoothingMoments] = []
    open_: tuple[int, SmoothingSums] | None = None  # a long sequence comes in several parts

    def close() -> None:
        nonlocal open_
        if open_ is not None:
            first, sums = open_
            parts.extend(sums.moments([slice(0, len(sums.unseen[0]))], design.n_units // 2 - first))
            open_ = None

    for rows in _rows(design):
        counts = rows.counts(rule.n_states)
        prefixes = SmoothingPrefixes(counts, design.by, panels, counted=rows.counted)
        sums = prefixes.sums(rows.ask(rule))
        if open_ is not None and open_[0] == rows.first:
            open_ = (rows.first, open_[1].plus(sums))
        else:
            close()
            open_ = (rows.first, sums)
    close()
    return merge_in_order(parts)


def _family_fits(design: ObservedSmoothing, rule: Estimator) -> tuple[FamilyFit, ...]:
    """Fit every family to one estimator; none without prefixes in both halves of the sequences."""
    middle = design.n_units // 2
    halves: list[list[Prefixes]] = [[], []]
    for rows in _rows(design):
        counts = rows.counts(rule.n_states)
        r, s, t = rows.tokens.shape
        occurrences = occurrence_counts(rows.tokens.reshape(r * s, t), rule.n_states).reshape(counts.shape)
        predictions = rows.ask(rule)
        cut = min(max(middle - rows.first, 0), r)
        for half, part in ((0, slice(0, cut)), (1, slice(cut, r))):
            if len(rows.tokens[part]):
                mine = predictions[part]
                halves[half].append(Prefixes.of([mine], rows.tokens[part], counts[part], occurrences[part]))
    first, second = (Prefixes.join(half) for half in halves)
    if not first.number.sum() or not second.number.sum():
        return ()
    return fit_families(first, second, families=design.families, level=design.level)
