from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from icl_estimators.sources import ChainLaw, dirichlet_rows, sample_chains


def draw(n_rows: int, n_states: int, concentration: float, seed: int = 0) -> np.ndarray:
    uniforms = np.random.default_rng(seed).random((n_rows, n_states, 2)).clip(2.0**-54)
    return dirichlet_rows(uniforms, concentration)


@pytest.mark.parametrize("concentration", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("n_states", [2, 3, 5])
def test_means_variances_and_covariances_are_dirichlets(n_states: int, concentration: float) -> None:
    rows = draw(40_000, n_states, concentration)
    law = stats.dirichlet(np.full(n_states, concentration))
    centred = rows - law.mean()
    products = centred[:, :, None] * centred[:, None, :]
    for values, expected in ((rows, law.mean()), (products, law.cov())):
        standard_error = values.std(axis=0) / np.sqrt(len(rows))
        assert (np.abs(values.mean(axis=0) - expected) < 4.5 * standard_error).all()


@pytest.mark.parametrize("concentration", [0.1, 1.0, 5.0])
def test_an_entry_is_beta(concentration: float) -> None:
    rows = draw(20_000, 3, concentration)
    for state in range(3):
        entry = stats.beta(concentration, 2 * concentration)
        assert stats.kstest(rows[:, state], entry.cdf).pvalue > 1e-3
    wrong = stats.beta(concentration, concentration)  # the same check has the power to see another law
    assert stats.kstest(rows[:, 0], wrong.cdf).pvalue < 1e-9


@pytest.mark.parametrize("concentration", [0.1, 1.0, 5.0])
def test_the_rows_of_sampled_chains_have_this_law_and_are_independent(concentration: float) -> None:
    law = ChainLaw(3, concentration)
    transition = sample_chains(range(3000), sequences_per_chain=1, length=1, law=law, purpose="test").transition
    entry = stats.beta(concentration, 2 * concentration)
    assert stats.kstest(transition[:, 1, 2], entry.cdf).pvalue > 1e-3
    entries = transition[:, :, 0]  # one entry of each row: unrelated
    assert np.abs(np.corrcoef(entries.T) - np.eye(3)).max() < 4 / np.sqrt(3000)


def test_a_tiny_concentration_gives_rows_and_no_nan() -> None:
    rows = draw(20_000, 3, 0.001)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-15)
    assert (rows >= 0).all()
    largest = np.bincount(rows.argmax(axis=1), minlength=3)
    assert stats.chisquare(largest).pvalue > 1e-3
    # What plain gamma draws do, and why rows are drawn in log space: 0/0 in a tenth of them.
    plain = np.random.default_rng(0).gamma(0.001, size=(20_000, 3))
    assert 0.05 < (plain.sum(axis=1) == 0).mean() < 0.2


@pytest.mark.parametrize("concentration", [1e-300, 0.001, 1.0, 1e3, 1e6])
def test_the_extreme_uniforms_give_rows(concentration: float) -> None:
    edge = np.array([2.0**-54, 1 - 2.0**-53])
    uniforms = np.stack(np.meshgrid(edge, edge, edge, edge), axis=-1).reshape(-1, 2, 2)
    rows = dirichlet_rows(uniforms, concentration)
    np.testing.assert_allclose(rows.sum(axis=-1), 1.0, atol=1e-15)


def test_a_large_concentration_is_nearly_uniform() -> None:
    rows = draw(2000, 4, 1e6)
    assert np.abs(rows - 0.25).max() < 1e-3
    assert rows.std() == pytest.approx(np.sqrt(0.25 * 0.75 / 4e6), rel=0.05)
