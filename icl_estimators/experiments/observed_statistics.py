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
from icl_estimators.experiments.observed import ObservedLosses, observed_losses_of
from icl_estimators.experiments.observed_losses import History, Kind
from icl_estimators.inference.dirichlet_multinomial import ConcentrationFit, DirichletMultinomial
from icl_estimators.inference.predictive_constant import best_constant
from icl_estimators.notes import Code, Note, join
from icl_estimators.sources import ObservedSequences
from icl_estimators.sources.observed.corpus import Corpus

__all__ = ["ORDERS", "statistics_tables"]

Array = NDArray[np.float64]

ORDERS = (0, 1, 2)
_PROFILE_POINTS = 61
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
    """Return transitions.csv, concentration.csv, concentration_profile.csv, orders.csv and likelihood_ratio.csv.

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
    [4, 3, 61, 6, 2]
    """
    corpus = Corpus.of(data.sequences, data.n_states)
    names = [*data.labels, *(f"state {k + 1}" for k in range(len(data.labels), data.n_states))]
    rules = [get(f"add-one:order={order}", n_states=data.n_states) for order in ORDERS]
    rows = _rows(observed_losses_of(rules, data, window=window, pooled=pooled), window)
    evidence: dict[Kind, _Evidence] = {"alone": _Evidence.of(corpus, level, pooled=False)}
    if pooled:
        evidence["pooled"] = _Evidence.of(corpus, level, pooled=True)
    return {
        "transitions": Table.of("transitions", _transitions(corpus, names, concentration, level)),
        "concentration": Table.of("concentration", _concentrations(corpus, evidence, rows, level)),
        "concentration_profile": Table.of("concentration_profile", _profiles(evidence)),
        "orders": Table.of("orders", _orders(evidence, rows, level)),
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


@dataclass(frozen=True, eq=False)
class _Evidence:
    """The marginal likelihoods of one history, by order.

    Attributes
    ----------
    likelihoods : dict of int to DirichletMultinomial
    fits : dict of int to ConcentrationFit
    uniform : dict of int to float
        Log probability of the tokens that have no whole context, in nats.
    """

    likelihoods: dict[int, DirichletMultinomial]
    fits: dict[int, ConcentrationFit]
    uniform: dict[int, float]

    @classmethod
    def of(cls, corpus: Corpus, level: float, *, pooled: bool) -> _Evidence:
        def likelihood(order: int) -> DirichletMultinomial:
            found = DirichletMultinomial.of(*corpus.totals(order, pooled=pooled), corpus.n_states)
            if order:
                return found
            firsts = corpus.totals(0, pooled=pooled, first_tokens=True)  # which are given
            return found.given(DirichletMultinomial.of(*firsts, corpus.n_states))

        likelihoods = {order: likelihood(order) for order in ORDERS}
        n = len(corpus.targets)
        return cls(
            likelihoods,
            {order: found.fit(level) for order, found in likelihoods.items()},
            {order: (found.n_tokens - n) * math.log(corpus.n_states) for order, found in likelihoods.items()},
        )

    def cells(self, order: int, *, fitted: bool) -> tuple[float, float, float]:
        """Return the log marginal likelihood, the log Bayes factor against order 1, and the posterior probability."""
        values = {
            k: (self.fits[k].log_likelihood if fitted else self.likelihoods[k].log_likelihood(1.0)) + self.uniform[k]
            for k in ORDERS
        }
        share = math.exp(values[order] - float(logsumexp(list(values.values()))))
        return values[order], values[order] - values[1], share


@dataclass(frozen=True, eq=False)
class _Rows:
    """The losses of the add-one rules of all orders, with one history."""

    history: History
    group: LossGroup


def _rows(losses: ObservedLosses, window: int) -> list[_Rows]:
    found = []
    for kind in dict.fromkeys(row.history.kind for row in losses.rows):
        rows = [row for row in losses.rows if row.history.kind == kind]
        found.append(_Rows(rows[0].history, LossGroup.of(losses, rows, window)))
    return found


def _concentrations(
    corpus: Corpus, evidence: dict[Kind, _Evidence], rows: list[_Rows], level: float
) -> Iterator[tuple[Cell, ...]]:
    n = len(corpus.targets)
    for kind, found in evidence.items():
        for order, fit in found.fits.items():
            loss = -(fit.log_likelihood + found.uniform[order]) / n
            numbers = (fit.estimate, fit.low, fit.high, loss)
            yield (kind, order, "marginal_likelihood", *numbers, _limit_note(fit.estimate))
    for item in rows:
        history, group = item.history, item.group
        if history.kind not in ("window", "folds"):
            continue
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


def _profiles(evidence: dict[Kind, _Evidence]) -> Iterator[tuple[Cell, ...]]:
    for kind, found in evidence.items():
        likelihood, fit = found.likelihoods[1], found.fits[1]
        for alpha in np.geomspace(1e-3, 1e3, _PROFILE_POINTS).tolist():
            yield (kind, 1, alpha, likelihood.log_likelihood(alpha) - fit.log_likelihood)


def _limit_note(estimate: float) -> str:
    if math.isnan(estimate):
        return Note(Code.NO_CONCENTRATION)
    return "" if 0 < estimate < math.inf else Note(Code.AT_A_LIMIT)


def _orders(evidence: dict[Kind, _Evidence], rows: list[_Rows], level: float) -> Iterator[tuple[Cell, ...]]:
    undefined = (math.nan,) * 3
    for item in rows:
        kind = item.history.kind
        found = evidence.get(kind)
        for column, order in enumerate(ORDERS):
            loss = float(item.group.losses[:, column].mean())
            cells = undefined if found is None else found.cells(order, fitted=False)
            *compared, note = item.group.compared(column, ORDERS.index(1), level)
            if found is None:
                note = join(str(note), Note(Code.NO_MARGINAL_LIKELIHOOD))
            yield (kind, order, 1.0, False, *cells, loss, *compared, note)
        for order in ORDERS if found is not None else ():
            assert found is not None
            cells = found.cells(order, fitted=True)
            yield (kind, order, found.fits[order].estimate, True, *cells, *(math.nan,) * 5, Note(Code.FITTED_TO_THESE))


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
