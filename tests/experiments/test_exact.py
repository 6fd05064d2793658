from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import roots_jacobi

from icl_estimators.divergences import kl_divergence, log_loss, squared_error, total_variation
from icl_estimators.estimators import ContractError, Estimator, get
from icl_estimators.estimators.construction import ConstructionSoftmax
from icl_estimators.experiments import exact
from icl_estimators.experiments.exact import EXACT_METRICS, exact_risk
from icl_estimators.sources import (
    ChainLaw,
    posterior_kl_floor,
    sample_chains,
    transition_counts,
)
from icl_estimators.validation import InputError

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "exact_risk.json").read_text(encoding="utf-8"))["values"]

RULES = ["add-one", "bigram", "unigram", "construction", "construction:2", "construction-softmax", "uniform"]


class Always:
    """Says the same whatever it reads."""

    name = "always"

    def __init__(self, law: list[float]) -> None:
        self.law = np.array(law)
        self.n_states = len(law)

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.law, (*tokens.shape, self.n_states)).copy()


def of_oracle(oracle: dict) -> Estimator:
    options = oracle.get("options", {})
    if oracle["estimator"] == "construction-softmax":
        return ConstructionSoftmax(oracle["n_states"], options["gamma"], direct_path=options["direct_path"])
    return get(oracle["estimator"], n_states=oracle["n_states"], concentration=oracle["concentration"])


@pytest.mark.parametrize(
    "oracle",
    ORACLES,
    ids=lambda o: "-".join(str(o[key]) for key in ("estimator", "metric", "n_states", "context_length")),
)
def test_every_known_value_is_met(oracle: dict) -> None:
    law = ChainLaw(oracle["n_states"], oracle["concentration"], oracle["start"])
    n = oracle["context_length"]
    metrics = exact_risk(of_oracle(oracle), n, law).metrics
    assert metrics[oracle["metric"]].shape == (n,)
    assert metrics[oracle["metric"]][-1] == pytest.approx(oracle["value"], abs=1e-9)


@pytest.mark.slow
def test_the_bayes_risk_is_known() -> None:
    kl = exact_risk(get("bayes"), 12).metrics["kl_nats"]
    assert kl[0] == pytest.approx(math.log(3) - 5 / 6, abs=1e-14)
    known = {1: 0.2653, 2: 0.2456, 3: 0.2227, 6: 0.1779}
    assert {n: round(kl[n - 1], 4) for n in known} == known
    assert round(kl[11], 3) == 0.128
    assert (np.diff(kl) < 0).all()


def by_quadrature(estimator: Estimator, length: int, concentration: float, nodes: int = 60) -> dict[str, float]:
    """Risk of a two-state estimator at context length `length`, with no posterior in sight.

    The chain is (a, b), a = P(0 → 0), b = P(1 → 0), each Beta(α, α): Gauss–Jacobi quadrature over both, and
    for each chain a sum over all prefixes with their probability given the chain.
    """
    x, weight = roots_jacobi(nodes, concentration - 1, concentration - 1)
    p, weight = (x + 1) / 2, weight / weight.sum()
    risk = dict.fromkeys(("kl_nats", "squared_error", "log_loss_nats", "total_variation"), 0.0)
    for line in itertools.product((0, 1), repeat=length):
        prediction = estimator.predict_proba(np.array([line]))[0, -1]
        for (i, a), (j, b) in itertools.product(enumerate(p), enumerate(p)):
            rows = np.array([[a, 1 - a], [b, 1 - b]])
            probability = weight[i] * weight[j] * 0.5 * math.prod(rows[v, w] for v, w in itertools.pairwise(line))
            truth = rows[line[-1]]
            risk["kl_nats"] += probability * kl_divergence(truth, prediction)
            risk["squared_error"] += probability * squared_error(truth, prediction)
            risk["log_loss_nats"] -= probability * truth @ np.log(prediction)
            risk["total_variation"] += probability * total_variation(truth, prediction)
    return risk


@pytest.mark.parametrize("concentration", [1.0, 2.5])
@pytest.mark.parametrize("spec", ["add-one", "construction-softmax:2"])
def test_it_is_what_integrating_over_chains_gives(spec: str, concentration: float) -> None:
    rule = get(spec, n_states=2)
    metrics = exact_risk(rule, 3, ChainLaw(2, concentration)).metrics
    expected = by_quadrature(rule, 3, concentration, nodes=40)
    assert metrics["squared_error"][-1] == pytest.approx(expected["squared_error"], abs=1e-13)  # a polynomial
    assert metrics["log_loss_nats"][-1] == pytest.approx(expected["log_loss_nats"], abs=1e-13)  # linear in P
    assert metrics["kl_nats"][-1] == pytest.approx(expected["kl_nats"], abs=1e-6)  # p log p at the edges
    assert metrics["total_variation"][-1] == pytest.approx(expected["total_variation"], abs=2e-4)  # kinks
    assert metrics["p_infinite"][-1] == 0.0
    assert metrics["kl_finite_nats"][-1] == metrics["kl_nats"][-1]


@pytest.mark.parametrize("spec", RULES)
def test_it_is_a_plain_sum_over_prefixes(spec: str) -> None:
    law = ChainLaw(3, 0.7)
    rule = get(spec)
    metrics = exact_risk(rule, 5, law).metrics
    for n in range(1, 6):
        kl, p_infinite, finite = 0.0, 0.0, 0.0
        for line in itertools.product(range(3), repeat=n):
            tokens = np.array([line])
            probability = law.prefix_probabilities(tokens)[0, -1]
            counts = transition_counts(tokens, 3)[0, -1]
            q = (counts + 0.7) / (counts.sum() + 2.1)
            prediction = rule.predict_proba(tokens)[0, -1]  # read alone: no later token is there
            value = posterior_kl_floor(counts, 0.7) + kl_divergence(q, prediction)
            kl += probability * value
            if math.isinf(value):
                p_infinite += probability
            else:
                finite += probability * value
        assert metrics["kl_nats"][n - 1] == pytest.approx(kl, rel=1e-12)
        assert metrics["p_infinite"][n - 1] == pytest.approx(p_infinite, abs=1e-12)
        if p_infinite < 1 - 1e-12:
            assert metrics["kl_finite_nats"][n - 1] == pytest.approx(finite / (1 - p_infinite), rel=1e-10)


@pytest.mark.parametrize("spec", RULES)
def test_the_size_of_a_block_does_not_matter(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = exact_risk(get(spec), 5).metrics
    for cells in (1, 1000):  # one prefix a block, and 66
        monkeypatch.setattr(exact, "BLOCK_CELLS", cells)
        metrics = exact_risk(get(spec), 5).metrics
        for metric in EXACT_METRICS:
            np.testing.assert_allclose(metrics[metric], expected[metric], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("spec", RULES)
def test_a_longer_run_begins_with_a_shorter_one(spec: str) -> None:
    short, long = exact_risk(get(spec), 3).metrics, exact_risk(get(spec), 6).metrics
    for metric in EXACT_METRICS:
        np.testing.assert_allclose(long[metric][:3], short[metric], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("concentration", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("law", [[0.2, 0.3, 0.5], [0.0, 0.1, 0.9], [0.0, 0.0, 1.0]])
def test_total_variation_is_its_integral(law: list[float], concentration: float) -> None:
    """At n = 1 an entry of the row is Beta(α, 2α), whatever the prefix: integrate |p − c| over it."""
    metrics = exact_risk(Always(law), 1, ChainLaw(3, concentration)).metrics
    entry = stats.beta(concentration, 2 * concentration)

    def expected_distance(c: float) -> float:
        # E|P − c| = ∫₀ᶜ F + ∫_c¹ (1 − F): the distribution function has no poles.
        return quad(entry.cdf, 0, c)[0] + quad(entry.sf, c, 1)[0]

    assert metrics["total_variation"][0] == pytest.approx(0.5 * sum(map(expected_distance, law)), abs=1e-7)


@pytest.mark.parametrize("spec", ["add-one", "unigram", "construction-softmax"])
def test_drawn_chains_agree(spec: str) -> None:
    law = ChainLaw(3, 0.5)
    rule = get(spec)
    metrics = exact_risk(rule, 6, law).metrics
    sample = sample_chains(range(4000), sequences_per_chain=1, length=6, law=law, purpose="test")
    prediction = rule.predict_proba(sample.inputs)
    drawn = {
        "kl_nats": kl_divergence(sample.truth, prediction),
        "total_variation": total_variation(sample.truth, prediction),
        "squared_error": squared_error(sample.truth, prediction),
        "log_loss_nats": log_loss(prediction, sample.targets),
    }
    for metric, values in drawn.items():
        standard_error = values.std(axis=0) / math.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - metrics[metric]) < 4 * standard_error + 1e-12).all(), metric


@pytest.mark.parametrize("spec", RULES)
def test_kl_is_the_bayes_risk_and_regret_and_regret_is_never_negative(spec: str) -> None:
    law = ChainLaw(3, 0.7)
    bayes = exact_risk(get("bayes", concentration=0.7), 6, law).metrics
    metrics = exact_risk(get(spec), 6, law).metrics
    np.testing.assert_allclose(metrics["kl_nats"], bayes["kl_nats"] + metrics["regret_nats"], rtol=1e-12)
    assert (metrics["regret_nats"] > 0).all() if spec != "uniform" else (metrics["regret_nats"][1:] > 0).all()
    assert (bayes["regret_nats"] == 0).all()


def test_the_construction_is_infinitely_wrong_at_its_first_token() -> None:
    metrics = exact_risk(get("construction"), 4).metrics
    assert metrics["p_infinite"][0] == pytest.approx(1.0, abs=1e-15)
    assert (metrics["kl_nats"] == np.inf).all()
    assert math.isnan(metrics["kl_finite_nats"][0])


def test_the_bigram_is_infinitely_wrong_with_positive_probability_from_2_on() -> None:
    metrics = exact_risk(get("bigram"), 6).metrics
    assert metrics["p_infinite"][0] == 0.0
    assert (metrics["p_infinite"][1:] > 0).all()
    assert (metrics["p_infinite"] < 1).all()
    assert np.isfinite(metrics["kl_finite_nats"]).all()
    assert not np.isnan(list(metrics.values())).any()


@pytest.mark.parametrize("beta", [1, 5, 30])
@pytest.mark.parametrize("n_states", [2, 3])
def test_at_finite_beta_kl_is_infinite_exactly_where_a_state_is_absent(n_states: int, beta: float) -> None:
    law = ChainLaw(n_states, 0.8)
    p_infinite = exact_risk(get(f"construction:{beta}", n_states=n_states), 6, law).metrics["p_infinite"]
    for n in range(1, 7):
        lines = np.array(list(itertools.product(range(n_states), repeat=n)))
        absent = np.array([len(set(line)) < n_states for line in lines.tolist()])
        probability = law.prefix_probabilities(lines)[:, -1]
        assert p_infinite[n - 1] == pytest.approx(probability[absent].sum(), abs=1e-12)


@pytest.mark.parametrize("n_states", [5, 8, 300])
def test_many_states_are_no_problem(n_states: int) -> None:
    metrics = exact_risk(get("bayes", n_states=n_states), 2 if n_states < 300 else 1, ChainLaw(n_states)).metrics
    expected = math.log(n_states) - sum(1 / k for k in range(2, n_states + 1))  # log K − (ψ(K + 1) − ψ(2))
    assert metrics["kl_nats"][0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("concentration", [1e-200, 1e-3])
@pytest.mark.parametrize("spec", ["bigram", "bayes", "add-one"])
def test_a_vanishing_concentration_gives_no_nan(spec: str, concentration: float) -> None:
    law = ChainLaw(3, concentration)
    metrics = exact_risk(get(spec, concentration=concentration), 5, law).metrics
    assert not np.isnan(list(metrics.values())).any()


def test_a_prediction_that_oversteps_1_by_rounding_has_a_total_variation() -> None:
    metrics = exact_risk(Always([1 + 5e-7, 0.0, 0.0]), 1).metrics
    assert metrics["total_variation"][0] == pytest.approx(2 / 3, abs=1e-6)  # E(1 − P₁)


def test_what_it_was_computed_for_is_kept() -> None:
    law = ChainLaw(2, 0.5)
    risk = exact_risk(get("bigram", n_states=2), 2, law)
    assert (risk.estimator, risk.source) == ("bigram", law)
    assert tuple(risk.metrics) == EXACT_METRICS


def test_what_cannot_be_exact_is_refused() -> None:
    with pytest.raises(
        InputError,
        match="needs an exact posterior given a prefix: the source dirichlet with start='stationary' has none",
    ):
        exact_risk(get("bigram"), 2, ChainLaw(start="stationary"))
    with pytest.raises(InputError, match="bigram is for 2 states, the chains have 3"):
        exact_risk(get("bigram", n_states=2), 2)
    with pytest.raises(InputError, match="has 1,594,323 prefixes"):
        exact_risk(get("bigram"), 13)
    with pytest.raises(InputError, match="context length must be an integer of at least 1, not 0"):
        exact_risk(get("bigram"), 0)
    with pytest.raises(ContractError, match=r"always: the prediction for sequence 0 at context length 1 sums to 0\.9"):
        exact_risk(Always([0.3, 0.3, 0.3]), 2)
