from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from icl_estimators.inference.mixture import _Problem, fit_mixture, mixture_kl
from icl_estimators.validation import InputError

TRUTH = np.array([0.5, 0.3, 0.2, 0.0])


def draw(seed: int, chains: int = 60, near: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw laws, and chains whose weights have the mean TRUTH, which then is the minimum: scores have mean 0 there.

    `near` mixes the third component into the fourth, whose true weight is 0.
    """
    rng = np.random.default_rng(seed)
    r = 0.94 * rng.dirichlet(np.ones(3), size=(4, chains, 8)) + 0.02
    r[3] = near * r[2] + (1.0 - near) * r[3]
    z = rng.normal(size=(chains, 4)) * 0.03
    p = np.einsum("gs,sgmk->gmk", TRUTH + z - TRUTH * z.sum(axis=1, keepdims=True), r)
    keep = (p > 0).all(axis=(1, 2))
    return p[keep], r[:, keep]


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_those_of_a_general_solver(seed: int) -> None:
    p, r = draw(seed)
    fit = fit_mixture(p, r)

    def loss(w: np.ndarray) -> float:
        return float(mixture_kl(p, np.tensordot(w, r, axes=1)).mean())

    other = minimize(
        loss,
        np.full(4, 0.25),
        method="SLSQP",
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert loss(fit.weights) <= other.fun + 1e-12
    np.testing.assert_allclose(fit.weights, other.x, atol=2e-5)
    assert fit.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert (fit.weights >= 0).all()


def test_a_mixture_is_found_again_with_zero_width_at_its_weights() -> None:
    _, r = draw(0)
    fit = fit_mixture(np.tensordot(TRUTH, r, axes=1), r)
    np.testing.assert_allclose(fit.weights, TRUTH, atol=1e-6)
    assert fit.boundary.tolist() == [False, False, False, True]
    np.testing.assert_allclose([fit.low, fit.high], [TRUTH, TRUTH], atol=1e-4)


def test_a_component_itself_has_weight_1() -> None:
    _, r = draw(1)
    fit = fit_mixture(r[2], r)
    np.testing.assert_allclose(fit.weights, [0, 0, 1, 0], atol=1e-6)
    assert fit.boundary.all()
    assert np.isnan(fit.se).all()
    np.testing.assert_allclose(fit.low, [0, 0, 1, 0], atol=1e-4)
    np.testing.assert_allclose(fit.high, [0, 0, 1, 0], atol=1e-4)


def test_the_standard_error_is_that_of_a_bootstrap_over_chains() -> None:
    p, r = draw(3, chains=150)
    fit = fit_mixture(p, r)
    rng = np.random.default_rng(0)
    weights = []
    for _ in range(150):
        chosen = rng.integers(0, len(p), size=len(p))
        weights.append(_Problem(p[chosen], r[:, chosen]).solve(np.full(4, 0.25)))
    np.testing.assert_allclose(fit.se[:3], np.std(weights, axis=0)[:3], rtol=0.2)  # the fourth is cut off at 0
    np.testing.assert_allclose((fit.high - fit.low)[:3], 2 * 1.976 * fit.se[:3], rtol=0.3)


def test_chains_are_the_unit_not_prefixes() -> None:
    """The same prefixes in one chain each, or all of them twice in a chain: only the first has more chains."""
    p, r = draw(4)
    once = fit_mixture(p, r)
    twice = fit_mixture(np.concatenate([p, p], axis=1), np.concatenate([r, r], axis=2))
    np.testing.assert_allclose(twice.weights, once.weights, atol=1e-7)
    np.testing.assert_allclose(twice.se[:3], once.se[:3], rtol=1e-4)


def test_equal_components_are_not_identified_but_others_are() -> None:
    p, r = draw(5)
    doubled = np.concatenate([r, r[:1]])
    fit = fit_mixture(p, doubled)
    assert fit.identified.tolist() == [False, True, True, True, False]
    plain = fit_mixture(p, r)
    np.testing.assert_allclose(fit.weights[1:4], plain.weights[1:], atol=1e-4)
    np.testing.assert_allclose(fit.high[1:4], plain.high[1:], atol=1e-3)
    assert np.isnan(fit.low[[0, 4]]).all()
    assert fit.notes[0] == "not identified: other weights give the same mixture"


def test_equal_components_that_are_not_used_are_identified_as_0() -> None:
    rng = np.random.default_rng(0)
    r = 0.9 * rng.dirichlet(np.ones(3), size=(2, 40, 4)) + 0.1 / 3
    far = np.full((1, 40, 4, 3), 1 / 3)
    sharp = 1.08 * r[0] - 0.08 / 3  # sharper than any mixture with the uniform law
    assert (sharp > 0).all()
    fit = fit_mixture(sharp, np.concatenate([r[:1], far, far]))
    assert fit.identified.all()
    np.testing.assert_allclose(fit.weights, [1, 0, 0], atol=1e-6)


def test_one_chain_has_weights_but_no_interval() -> None:
    p, r = draw(6)
    fit = fit_mixture(p[:1], r[:, :1])
    assert fit.weights.sum() == pytest.approx(1)
    assert np.isnan([fit.se, fit.low, fit.high]).all()
    assert fit.notes[0] == "fewer than 2 chains: no standard error"


def test_what_is_no_dictionary_is_refused() -> None:
    p, r = draw(7)
    with pytest.raises(InputError, match="components must have shape"):
        fit_mixture(p, r[:, :-1])
    with pytest.raises(InputError, match="components must have shape"):
        fit_mixture(p, r[:0])
    zero = r.copy()
    zero[0, 0, 0, 0] = 0.0
    with pytest.raises(InputError, match="above 0 everywhere"):
        fit_mixture(p, zero)
    with pytest.raises(InputError, match="level"):
        fit_mixture(p, r, level=1.0)


def test_zeros_of_the_target_are_no_trouble() -> None:
    _, r = draw(8)
    p = np.eye(3)[np.random.default_rng(0).integers(0, 3, size=r.shape[1:3])]
    fit = fit_mixture(p, r)
    assert np.isfinite([fit.weights, fit.low, fit.high]).all()
    assert mixture_kl(p, p).max() == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("near", "chains"), [(0.0, 60), (0.7, 60), (0.0, 200)])
def test_coverage_also_of_a_weight_of_0(near: float, chains: int) -> None:
    hits = []
    for seed in range(400):
        fit = fit_mixture(*draw(1000 + seed, chains, near))
        hits.append((fit.low <= TRUTH + 1e-12) & (fit.high >= TRUTH - 1e-12))
    covered = np.mean(hits, axis=0)
    assert (covered[:3] > 0.915).all()  # 0.95 less 3.2 standard errors
    assert (covered[:3] < 0.985).all()
    assert 0.95 < covered[3] <= 1.0  # one-sided: 0.975
