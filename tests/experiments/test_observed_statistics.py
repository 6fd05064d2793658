from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from icl_estimators.estimators import get
from icl_estimators.experiments.observed import pooled_histories
from icl_estimators.experiments.observed_losses import History, corpus_losses, observed_losses
from icl_estimators.experiments.observed_statistics import ORDERS, statistics_tables
from icl_estimators.sources import ObservedSequences, elnino
from icl_estimators.sources.observed.corpus import Corpus

RNG = np.random.default_rng(0)
LAW = RNG.dirichlet(np.full(4, 0.4), size=4)


def session(length: int) -> np.ndarray:
    tokens = [int(RNG.integers(4))]
    for _ in range(length - 1):
        tokens.append(int(RNG.choice(4, p=LAW[tokens[-1]])))
    return np.array(tokens)


SESSIONS = ObservedSequences(
    "sessions", ("a", "b", "c", "d"), tuple(session(int(length)) for length in RNG.integers(1, 9, size=80))
)
POOLED = pooled_histories(SESSIONS, 5)


@pytest.fixture(scope="module")
def tables() -> dict[str, object]:
    return {name: table.frame() for name, table in statistics_tables(SESSIONS, window=20, pooled=POOLED).items()}


def test_transitions_have_beta_intervals(tables: dict[str, object]) -> None:
    frame = tables["transitions"]
    counts = Corpus.of(SESSIONS.sequences, 4).transition_matrix()
    assert frame["count"].tolist() == counts.ravel().tolist()
    for row in frame.itertuples():
        law = beta(row[3] + 1, row.visits - row[3] + 3)  # a tuple has a method `count`
        assert row.estimate == pytest.approx(law.mean())
        assert (row.ci_low, row.ci_high) == pytest.approx(law.interval(0.95))


def test_a_state_that_was_never_left_has_the_prior_and_says_so() -> None:
    data = ObservedSequences("short", ("a", "b"), (np.array([0, 0, 1]),))
    frame = statistics_tables(data, window=5, concentration=0.5)["transitions"].frame()
    rows = frame[frame.source == "b"]
    assert rows.note.tolist() == ["never left: the prior alone"] * 2
    assert rows.estimate.tolist() == [0.5, 0.5]
    assert rows.ci_low.iloc[0] == pytest.approx(beta(0.5, 0.5).ppf(0.025))


@pytest.mark.parametrize("history", ["alone", "pooled"])
@pytest.mark.parametrize("order", [1, 2])
def test_the_marginal_likelihood_is_the_product_of_the_predictions(
    tables: dict[str, object], history: str, order: int
) -> None:
    rows = tables["orders"].query("history == @history and order == @order and fitted == False")
    n = SESSIONS.n_predictions
    assert rows.log_marginal_likelihood.item() == pytest.approx(-n * rows.log_loss_nats.item(), rel=1e-12)


def test_so_it_is_for_order_0_where_each_sequence_stands_alone(tables: dict[str, object]) -> None:
    row = tables["orders"].query("history == 'alone' and order == 0 and fitted == False")
    assert row.log_marginal_likelihood.item() == pytest.approx(-SESSIONS.n_predictions * row.log_loss_nats.item())


def test_pooled_order_0_is_given_the_first_tokens_whatever_the_order_of_the_file(tables: dict[str, object]) -> None:
    turned = ObservedSequences("turned", SESSIONS.labels, SESSIONS.sequences[::-1])
    other = statistics_tables(turned, window=20, pooled=pooled_histories(turned, 5))["orders"].frame()
    ours = tables["orders"]
    chosen = (ours.history == "pooled") & ~ours.fitted.astype(bool)
    np.testing.assert_allclose(
        other[chosen].log_marginal_likelihood.to_numpy(float), ours[chosen].log_marginal_likelihood.to_numpy(float)
    )


def test_bayes_factors_and_posterior_probabilities_follow(tables: dict[str, object]) -> None:
    frame = tables["orders"].dropna(subset="log_marginal_likelihood")
    for _, rows in frame.groupby(["history", "fitted"]):
        values = rows.log_marginal_likelihood.to_numpy(float)
        np.testing.assert_allclose(rows.log_bayes_factor.to_numpy(float), values - values[ORDERS.index(1)])
        np.testing.assert_allclose(rows.posterior_probability, np.exp(values - np.logaddexp.reduce(values)))


def test_fitted_concentrations_are_at_least_as_likely(tables: dict[str, object]) -> None:
    frame = tables["orders"].dropna(subset="log_marginal_likelihood").set_index(["history", "order", "fitted"])
    for history in ("alone", "pooled"):
        for order in ORDERS:
            plain, best = (frame.loc[history, order, fitted].log_marginal_likelihood for fitted in (False, True))
            assert best >= plain
    fits = tables["concentration"].query("criterion == 'marginal_likelihood'").set_index(["history", "order"])
    for key, row in fits.iterrows():
        assert row.estimate == frame.loc[(*key, True)].concentration


def prequential(order: int, history: History) -> np.ndarray:
    """Predict by a plain loop over sequences and tokens."""
    losses = []
    for number, sequence in enumerate(SESSIONS.sequences):
        for place in range(1, len(sequence)):
            counts = np.ones(4)
            before = sequence[place - order : place].tolist() if place >= order else None
            if history.kind == "folds":
                assert history.folds is not None
                own = history.folds[number]
                texts = [s for s, fold in zip(SESSIONS.sequences, history.folds, strict=True) if fold != own]
            else:
                texts = [*SESSIONS.sequences[:number], sequence[:place]]
            for text in texts if before is not None else []:
                for at in range(order, len(text)):
                    if text[at - order : at].tolist() == before:
                        counts[text[at]] += 1
            losses.append(-math.log(counts[sequence[place]] / counts.sum()))
    return np.array(losses)


@pytest.mark.parametrize("history", POOLED, ids=["pooled", "folds"])
@pytest.mark.parametrize("order", ORDERS)
def test_pooled_losses_are_those_of_a_plain_loop(order: int, history: History) -> None:
    corpus = Corpus.of(SESSIONS.sequences, 4)
    rule = get(f"add-one:order={order}", n_states=4)
    np.testing.assert_allclose(corpus_losses(rule, corpus, history), prequential(order, history), rtol=1e-12)


def test_pooling_shows_a_strong_chain_that_short_sessions_alone_hide(tables: dict[str, object]) -> None:
    losses = tables["orders"].query("fitted == False").set_index(["history", "order"]).log_loss_nats
    assert losses["pooled", 1] < losses["pooled", 0] - 0.1
    assert losses["folds", 1] < losses["alone", 1] - 0.2


def test_an_estimator_that_needs_more_than_counts_cannot_be_pooled() -> None:
    corpus = Corpus.of(SESSIONS.sequences, 4)
    with pytest.raises(ValueError, match="needs more than counts"):
        corpus_losses(get("construction", n_states=4), corpus, History("pooled"))


@pytest.mark.parametrize("rule", ["add-one", "bigram", "unigram", "uniform", "krichevsky-trofimov", "add-one:order=3"])
@pytest.mark.parametrize("window", [None, 3])
def test_counts_give_what_predictions_give(rule: str, window: int | None) -> None:
    estimator, sequence = get(rule, n_states=3), elnino().sequences[0][:80]
    expected = []
    for place in range(1, len(sequence)):
        prefix = sequence[max(0, place - window) if window else 0 : place]
        expected.append(estimator.predict_proba(prefix[None])[0, -1, sequence[place]])
    np.testing.assert_allclose(np.exp(-observed_losses(estimator, sequence, window)), expected, rtol=1e-12)


def test_a_stated_matrix_is_tested_and_what_it_excludes_is_named() -> None:
    matrix = np.array([[0.8, 0.2, 0.0], [0.2, 0.7, 0.1], [0.0, 0.2, 0.8]])
    frame = statistics_tables(elnino(), window=100, matrix=matrix)["likelihood_ratio"].frame()
    assert frame.test.tolist() == ["order_0_against_1", "order_1_against_2", "stated_matrix"]
    assert frame.degrees_of_freedom.tolist() == [4, 6, 4]
    excluded = np.array([[1.0, 0.0, 0.0], [0.2, 0.7, 0.1], [0.0, 0.2, 0.8]])
    row = statistics_tables(elnino(), window=100, matrix=excluded)["likelihood_ratio"].frame().iloc[-1]
    assert (row.statistic, row.p_value) == (math.inf, 0.0)
    assert row.note == "La Niña → neutral occurred 56 times; the stated matrix excludes it"


def test_one_state_leaves_nothing_to_test() -> None:
    data = ObservedSequences("still", ("a",), (np.zeros(9, dtype=np.int64),))
    tables = statistics_tables(data, window=20)
    tests = tables["likelihood_ratio"].frame()
    assert tests.statistic.isna().all()
    assert tests.note.str.startswith("undefined").all()
    assert tables["transitions"].frame().source.unique().tolist() == ["a", "state 2"]
