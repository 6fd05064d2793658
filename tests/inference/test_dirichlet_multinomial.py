from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import chi2, dirichlet_multinomial, multinomial

from icl_estimators.inference.dirichlet_multinomial import DirichletMultinomial
from icl_estimators.sources import elnino
from icl_estimators.sources.observed.corpus import Corpus
from icl_estimators.validation import InputError

COUNTS = arrays(np.int64, (3, 4), elements=st.integers(0, 30)).filter(lambda counts: counts.sum() > 0)


def of(counts: np.ndarray) -> DirichletMultinomial:
    return DirichletMultinomial.of(counts, counts.sum(axis=1), counts.shape[1])


def by_gamma_functions(counts: np.ndarray, alpha: float) -> float:
    k = counts.shape[1]
    cells = gammaln(alpha + counts) - gammaln(alpha)
    rows = gammaln(k * alpha) - gammaln(k * alpha + counts.sum(axis=1))
    return float(cells.sum() + rows.sum())


@given(COUNTS, st.floats(0.01, 100))
def test_the_likelihood_is_that_of_gamma_functions(counts: np.ndarray, alpha: float) -> None:
    assert of(counts).log_likelihood(alpha) == pytest.approx(by_gamma_functions(counts, alpha), rel=1e-10, abs=1e-10)


def test_the_likelihood_is_scipys_without_the_number_of_orders() -> None:
    counts = np.array([[3, 0, 2]])
    orders = multinomial.logpmf(counts[0], 5, np.full(3, 1 / 3)) + 5 * math.log(3)
    expected = dirichlet_multinomial.logpmf(counts[0], np.full(3, 0.7), 5) - orders
    assert of(counts).log_likelihood(0.7) == pytest.approx(expected, rel=1e-12)


@given(COUNTS)
def test_0_and_infinity_are_limits(counts: np.ndarray) -> None:
    found = of(counts)
    assert found.log_likelihood(math.inf) == pytest.approx(found.log_likelihood(1e12), rel=1e-6)
    at_zero = found.log_likelihood(0.0)
    if math.isinf(at_zero):
        assert ((counts > 0).sum(axis=1) > 1).any()
    else:
        assert at_zero == pytest.approx(found.log_likelihood(1e-12), rel=1e-6, abs=1e-9)


@given(COUNTS, st.floats(-5, 5))
def test_the_score_is_the_slope(counts: np.ndarray, theta: float) -> None:
    found, step = of(counts), 1e-5
    slope = (found.log_likelihood(math.exp(theta + step)) - found.log_likelihood(math.exp(theta - step))) / (2 * step)
    assert found.score(theta) == pytest.approx(slope, rel=1e-4, abs=1e-5)


@given(COUNTS)
def test_no_concentration_is_likelier_and_the_interval_ends_where_it_is_too_unlikely(counts: np.ndarray) -> None:
    found = of(counts)
    fit = found.fit()
    if math.isnan(fit.estimate):
        assert counts.max() <= 1
        return
    grid = np.exp(np.linspace(-15, 15, 200))
    assert max(found.log_likelihood(alpha) for alpha in grid) <= fit.log_likelihood + 1e-7
    assert fit.low <= fit.estimate <= fit.high
    for end in (fit.low, fit.high):
        drop = 2 * (fit.log_likelihood - found.log_likelihood(end))
        at_limit = end in (0.0, math.inf)
        assert drop <= chi2.ppf(0.95, 1) + 1e-6 if at_limit else drop == pytest.approx(chi2.ppf(0.95, 1), rel=1e-5)


def test_el_nino_has_the_maximum_that_direct_maximisation_finds() -> None:
    counts = Corpus.of(elnino().sequences, 3).transition_matrix()
    direct = minimize_scalar(
        lambda theta: -by_gamma_functions(counts, math.exp(theta)), bounds=(-6, 6), method="bounded"
    )
    fit = of(counts).fit()
    assert fit.estimate == pytest.approx(math.exp(direct.x), abs=1e-4)
    assert fit.log_likelihood == pytest.approx(-direct.fun, abs=1e-9)
    assert (fit.low, fit.high) == (pytest.approx(0.07758, abs=1e-5), pytest.approx(0.74134, abs=1e-5))


def test_rows_of_one_state_have_no_concentration_and_even_rows_an_infinite_one() -> None:
    certain = of(np.array([[5, 0], [0, 3]])).fit()
    assert (certain.estimate, certain.low) == (0.0, 0.0)
    assert 0 < certain.high < math.inf
    even = of(np.array([[50, 50], [30, 30]])).fit()
    assert (even.estimate, even.high) == (math.inf, math.inf)
    assert math.isnan(of(np.array([[1, 0], [0, 1]])).fit().estimate)  # nothing was seen twice


def test_a_part_that_is_given_is_taken_away() -> None:
    whole, part = np.array([[4, 1, 2]]), np.array([[1, 0, 1]])
    rest = of(whole).given(of(part))
    assert rest.log_likelihood(0.4) == pytest.approx(by_gamma_functions(whole, 0.4) - by_gamma_functions(part, 0.4))
    assert rest.n_tokens == 5


def test_the_rows_of_known_chains_give_their_concentration_back() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(100):
        rows = rng.dirichlet(np.full(4, 0.6), size=40)
        fit = of(np.array([rng.multinomial(30, row) for row in rows])).fit()
        inside += fit.low <= 0.6 <= fit.high
    assert 88 <= inside <= 99


def test_what_cannot_be_counts_is_refused() -> None:
    with pytest.raises(InputError, match="counts must not be negative"):
        DirichletMultinomial.of([-1, 2], [1], 2)
    with pytest.raises(InputError, match="the cells hold 3 counts, but the rows 4"):
        DirichletMultinomial.of([1, 2], [4], 2)
    with pytest.raises(InputError, match="n_states"):
        DirichletMultinomial.of([1], [1], 1)
    found = of(np.array([[1, 2]]))
    for wrong in (-1.0, math.nan):
        with pytest.raises(InputError, match="the concentration must be at least 0"):
            found.log_likelihood(wrong)
    with pytest.raises(InputError, match="level"):
        found.fit(level=1.0)
