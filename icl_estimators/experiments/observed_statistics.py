"""What the data themselves say: transitions, the best pseudo-count, the order, and likelihood-ratio tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, logsumexp

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import get
from icl_estimators.experiments.likelihood_ratio import LikelihoodRatio, order_tests, stated_matrix_test
from icl_estimators.experiments.loss_groups import LossGroup
from icl_estimators.experiments.observed import observed_losses_of
from icl_estimators.experiments.observed_losses import History, Kind
from icl_estimators.inference.dirichlet_multinomial import DirichletMultinomial
from icl_estimators.inference.predictive_constant import best_constant
from icl_estimators.notes import Code, Note
from icl_estimators.sources import ObservedSequences
from icl_estimators.sources.observed.corpus import Corpus

__all__ = ["ORDERS", "statistics_tables"]

Array = NDArray[np.float64]

ORDERS = (0, 1, 2)
_ALL_PAIRS = 200  # states up to which transitions that never occurred are listed too


def statistics_tables(
    data: ObservedSequences,
    *,
    window: int,
    level: float = 0.95,
    concentration: float = 1.0,
    pooled: Sequence[History] = (),
    matrix: Array | None = None,
) -> dict[str, Table]:
    """Return transitions.csv, concentration.csv, orders.csv and likelihood_ratio.csv.

    Parameters
    ----------
    data : ObservedSequences
    window : int
        W ≥ 1.
    level : float
        Of intervals.
    concentration : float
        α of the prior that transition probabilities have.
    pooled : sequence of History
        Of :func:`icl_estimators.experiments.observed.pooled_histories`.
    matrix : ndarray of float64, shape (K, K), optional
        A transition matrix to test, rows and columns in the order of the labels.

    Examples
    --------
    >>> data = ObservedSequences("coin", ("a", "b"), (np.array([0, 1, 1, 0, 1, 0, 0]),))
    >>> [len(table.rows) for table in statistics_tables(data, window=10).values()]
    [4, 3, 6, 2]
    """
    corpus = Corpus.of(data.sequences, data.n_states)
    names = [*data.labels, *(f"state {k + 1}" for k in range(len(data.labels), data.n_states))]
    several = len(corpus.starts) > 2
    return {
        "transitions": Table.of("transitions", _transitions(corpus, names, concentration, level)),
        "concentration": Table.of("concentration", _concentrations(data, corpus, window, level, pooled)),
        "orders": Table.of("orders", _orders(data, corpus, window, level, pooled, several)),
        "likelihood_ratio": Table.of("likelihood_ratio", _tests(corpus, names, matrix)),
    }


def _transitions(corpus: Corpus, names: list[str], alpha: float, level: float) -> Iterator[tuple[Cell, ...]]:
    counts = corpus.transition_matrix()
    n_states = corpus.n_states
    shown = np.ones_like(counts, dtype=bool) if n_states <= _ALL_PAIRS else counts > 0
    visits = counts.sum(axis=1)
    tails = 0.5 - 0.5 * level, 0.5 + 0.5 * level
    for v, w in np.argwhere(shown).tolist():
        count, total = int(counts[v, w]), int(visits[v])
        a, b = count + alpha, total - count + (n_states - 1) * alpha
        low, high = (float(betaincinv(a, b, tail)) for tail in tails)
        note = "" if total else Note(Code.PRIOR_ALONE)
        yield (names[v], names[w], count, total, a / (a + b), low, high, note)


def _likelihood(corpus: Corpus, order: int, *, pooled: bool) -> DirichletMultinomial:
    """Return the likelihood of all tokens after the first of each sequence, those without a whole context aside."""
    found = DirichletMultinomial.of(*corpus.totals(order, pooled=pooled), corpus.n_states)
    if order == 0:  # its counts hold the first tokens, which are given
        found = found.given(
            DirichletMultinomial.of(*corpus.totals(0, pooled=pooled, first_tokens=True), corpus.n_states)
        )
    return found


def _concentrations(
    data: ObservedSequences, corpus: Corpus, window: int, level: float, pooled: Sequence[History]
) -> Iterator[tuple[Cell, ...]]:
    n = len(corpus.targets)
    kinds: list[Kind] = ["alone", *(["pooled"] if pooled else [])]  # type: ignore[list-item]
    for kind in kinds:
        for order in ORDERS:
            likelihood = _likelihood(corpus, order, pooled=kind == "pooled")
            found = likelihood.fit(level)
            loss = (math.log(corpus.n_states) * (n - likelihood.n_tokens) - found.log_likelihood) / n
            yield (
                *(kind, order, "marginal_likelihood", found.estimate, found.low, found.high, loss),
                _limit_note(found.estimate),
            )
    histories = [history for history in pooled if history.kind == "folds"]
    if int(corpus.lengths.max()) - 1 > window:
        histories.insert(0, History("window", window))
    for history in histories:
        losses = observed_losses_of([get("add-one", n_states=data.n_states)], data, window=window, pooled=pooled)
        rows = [row for row in losses.rows if row.history.kind == history.kind]
        group = LossGroup.of(losses, rows, window)
        counts = corpus.before(1, window=history.window, folds=history.folds)
        best = best_constant(
            counts.followed,
            counts.visits,
            corpus.n_states,
            variance=None if group.why_not else group.variance,
            degrees_of_freedom=group.degrees_of_freedom,
            level=level,
        )
        note = _limit_note(best.estimate) or group.why_not or group.method
        yield (history.kind, 1, "log_loss", best.estimate, best.low, best.high, best.log_loss, note)


def _limit_note(estimate: float) -> str:
    if math.isnan(estimate):
        return Note(Code.NO_CONCENTRATION)
    return "" if 0 < estimate < math.inf else Note(Code.AT_A_LIMIT)


@dataclass(frozen=True)
class _Evidence:
    """Log marginal likelihoods by order, and what follows from them."""

    values: dict[int, float]

    def cells(self, order: int) -> tuple[float, float, float]:
        value = self.values[order]
        share = math.exp(value - float(logsumexp(list(self.values.values()))))
        return value, value - self.values[1], share


def _orders(
    data: ObservedSequences,
    corpus: Corpus,
    window: int,
    level: float,
    pooled: Sequence[History],
    several: bool,
) -> Iterator[tuple[Cell, ...]]:
    rules = {order: get(f"add-one:order={order}", n_states=data.n_states) for order in ORDERS}
    losses = observed_losses_of(list(rules.values()), data, window=window, pooled=pooled)
    incomplete = {order: len(corpus.targets) - (corpus.places >= max(order, 1)).sum() for order in ORDERS}
    nothing = (math.nan,) * 3
    for key in dict.fromkeys((row.history.kind, *row.group) for row in losses.rows):
        rows = [row for row in losses.rows if (row.history.kind, *row.group) == key]
        group = LossGroup.of(losses, rows, window)
        kind: Kind = key[0]
        evidence: _Evidence | None = None
        fits: dict[int, float] = {}
        if kind in ("alone", "pooled"):
            uniform = {order: int(count) * -math.log(data.n_states) for order, count in incomplete.items()}
            likelihoods = {order: _likelihood(corpus, order, pooled=kind == "pooled") for order in ORDERS}
            evidence = _Evidence({k: found.log_likelihood(1.0) + uniform[k] for k, found in likelihoods.items()})
            best = {k: found.fit(level) for k, found in likelihoods.items()}
            fits = {k: found.estimate for k, found in best.items()}
            fitted = _Evidence({k: found.log_likelihood + uniform[k] for k, found in best.items()})
        for column, order in enumerate(ORDERS):
            head = (kind, order, 1.0, False, *(nothing if evidence is None else evidence.cells(order)))
            yield (*head, float(rows[column].losses.mean()), *group.compared(column, ORDERS.index(1), level))
        for order in ORDERS if evidence is not None else ():
            head = (kind, order, fits[order], True, *fitted.cells(order))
            yield (*head, *(math.nan,) * 5, Note(Code.FITTED_TO_THESE))


def _tests(corpus: Corpus, names: list[str], matrix: Array | None) -> Iterator[tuple[Cell, ...]]:
    for name, found in order_tests(corpus):
        yield _test_row(name, found)
    if matrix is not None:
        found = stated_matrix_test(corpus.transition_matrix(), matrix)
        note = ""
        if found.impossible is not None:
            v, w, count = found.impossible
            note = Note(Code.IMPOSSIBLE_TRANSITION, source=names[v], target=names[w], count=count)
        yield _test_row("stated_matrix", found, note)


def _test_row(name: str, found: LikelihoodRatio, note: str = "") -> tuple[Cell, ...]:
    if not note and found.degrees_of_freedom == 0:
        note = Note(Code.NOTHING_TO_TEST)
    if not note and found.small_expected > 0.2:
        note = Note(Code.SMALL_EXPECTED)
    numbers = (found.statistic, float(found.degrees_of_freedom), found.p_value)
    return (name, *numbers, found.n_transitions, found.small_expected, note)
