from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from icl_estimators.estimators import get_all
from icl_estimators.experiments.checks import exact_risks
from icl_estimators.experiments.exact import ExactRisk, exact_risk
from icl_estimators.experiments.risk import RiskMoments, risk_block
from icl_estimators.experiments.study import Study
from icl_estimators.inference import mean_intervals, ratio_intervals, zero_mean_check
from icl_estimators.metrics import METRICS
from icl_estimators.sources import ChainLaw, Sample, sample_chains
from strange_rules import Leaning

LOSSES = [metric.name for metric in METRICS.values() if metric.summary != "finite mean"]


def study(rules: Iterable[str], **options: Any) -> Study:
    law = options.get("source", ChainLaw())
    made = get_all(rules, n_states=law.n_states, concentration=law.concentration, warn=print)
    return Study(tuple(made), **{"length": 8, "decomposition_chains": 0, **options})


def whole(design: Study) -> RiskMoments:
    return risk_block(design, range(design.chains))


def plainly(design: Study, name: str) -> dict[str, np.ndarray]:
    """Per-chain losses by loops over chains, sequences and positions, with nothing but the definitions."""
    rule = next(rule for rule in design.estimators if rule.name == name)
    k, alpha, length = design.n_states, design.source.concentration, design.length
    out = {metric: np.zeros((design.chains, length)) for metric in LOSSES}
    sample = sample_chains(
        range(design.chains),
        sequences_per_chain=design.sequences_per_chain,
        length=length,
        law=design.source,
        seed=design.seed,
    )
    for chain, (matrix, lines) in enumerate(zip(sample.transition, sample.tokens.tolist(), strict=True)):
        for line, predictions in zip(lines, rule.predict_proba(np.array(lines)[:, :-1]), strict=True):
            for n in range(1, length + 1):
                now, estimate = line[n - 1], predictions[n - 1].tolist()
                truth = matrix[now].tolist()
                counts = [sum(line[i : i + 2] == [now, w] for i in range(n - 1)) for w in range(k)]
                a = [count + alpha for count in counts]
                bayes = [value / sum(a) for value in a]
                rho = sum(
                    q * (special.psi(v + 1) - special.psi(sum(a) + 1) - math.log(q))
                    for q, v in zip(bayes, a, strict=True)
                )

                def kl(p: list[float], q: list[float]) -> float:
                    return sum(x * math.log(x / y) if y else math.inf for x, y in zip(p, q, strict=True) if x)

                values = {
                    "kl_nats": kl(truth, estimate),
                    "kl_rb_nats": rho + kl(bayes, estimate),
                    "regret_nats": kl(bayes, estimate),
                    "p_infinite": float(math.isinf(kl(truth, estimate))),
                    "total_variation": sum(abs(x - y) for x, y in zip(truth, estimate, strict=True)) / 2,
                    "squared_error": sum((x - y) ** 2 for x, y in zip(truth, estimate, strict=True)),
                    "hellinger": math.sqrt(
                        sum((math.sqrt(x) - math.sqrt(y)) ** 2 for x, y in zip(truth, estimate, strict=True)) / 2
                    ),
                    "log_loss_nats": -math.log(estimate[line[n]]) if estimate[line[n]] else math.inf,
                }
                for metric, value in values.items():
                    out[metric][chain, n - 1] += value / design.sequences_per_chain
    return out


@pytest.mark.parametrize("law", [ChainLaw(), ChainLaw(2, 0.4)])
def test_every_number_is_that_of_a_plain_loop(rules: tuple[str, ...], law: ChainLaw) -> None:
    named = ["construction", "construction-softmax", "bigram", "add-one"]
    named += ["transformer"] if law.n_states == 3 and "transformer" in rules else []
    design = study(named, source=law, chains=55, sequences_per_chain=2, length=5, seed=3)
    moments = whole(design)
    for name in named:
        for metric, per_chain in plainly(design, name).items():
            values = np.concatenate([per_chain, per_chain.mean(axis=1, keepdims=True)], axis=1)
            found = mean_intervals(moments.risk[name, metric])
            exact = 1e-6 if name == "transformer" else 1e-10  # float32 logits
            np.testing.assert_allclose(found.estimate, values.mean(axis=0), rtol=exact, atol=1e-14, err_msg=metric)
            finite = np.isfinite(values).all(axis=0)
            spread = values[:, finite].std(axis=0, ddof=1) / math.sqrt(55)
            np.testing.assert_allclose(found.se[finite], spread, rtol=1e-6, atol=1e-14, err_msg=metric)
            assert np.isnan(found.se[~finite]).all()


def test_chains_can_be_cut_anywhere_at_a_unit(rules: tuple[str, ...]) -> None:
    design = study(rules, chains=130, sequences_per_chain=2)
    parts = [risk_block(design, chains) for chains in (range(50), range(50, 100), range(100, 130))]
    merged, once = parts[0].merge(parts[1]).merge(parts[2]), whole(design)
    for key, moments in once.risk.items():
        for field in ("centre", "scatter", "n_infinite", "n_undefined"):
            np.testing.assert_array_equal(getattr(merged.risk[key], field), getattr(moments, field))
    assert merged.risk["add-one", "kl_nats"].count == 130


def test_more_chains_leave_the_first_ones_as_they_were(rules: tuple[str, ...]) -> None:
    few, many = study(rules, chains=50), study(rules, chains=500)
    before, after = risk_block(few, range(50)), risk_block(many, range(50))
    for key in before.risk:
        np.testing.assert_array_equal(before.risk[key].scatter, after.risk[key].scatter)
        np.testing.assert_array_equal(before.risk[key].centre, after.risk[key].centre)


def test_longer_sequences_keep_their_beginnings(rules: tuple[str, ...]) -> None:
    short, long = whole(study(rules, chains=50, length=8)), whole(study(rules, chains=50, length=13))
    for key in short.risk:
        np.testing.assert_allclose(long.risk[key].mean[:8], short.risk[key].mean[:8], rtol=1e-6)
        if key[0] != "transformer":  # its products depend on the length they run over, by rounding
            np.testing.assert_array_equal(long.risk[key].mean[:8], short.risk[key].mean[:8])


def test_the_mean_over_context_lengths_is_one_number_a_chain_first() -> None:
    moments = whole(study(["unigram", "add-one"], chains=60))
    values = moments.risk["unigram", "kl_nats"]
    assert values.mean[-1] == pytest.approx(values.mean[:-1].mean(), rel=1e-12)
    covariance = values.covariance[:-1, :-1]
    assert values.variance[-1] == pytest.approx(covariance.mean(), rel=1e-9)


def zs(design: Study, truth: dict[str, ExactRisk] | None = None) -> dict[tuple[str, str, int], float]:
    """Return z of Monte Carlo less exact risk by rule, metric and context length, where there is an error at all."""
    moments, found = whole(design), {}
    for name, exact in (truth or exact_risks(design)).items():
        for metric in ("kl_nats", "regret_nats", "p_infinite", "total_variation", "squared_error", "log_loss_nats"):
            mean, se = moments.risk[name, metric].mean, moments.risk[name, metric].standard_error
            for n in range(design.length):
                if se[n] > 1e-12:
                    found[name, metric, n + 1] = (mean[n] - exact.metrics[metric][n]) / se[n]
                else:  # constant, or infinite: then the same, not nearly
                    assert mean[n] == pytest.approx(exact.metrics[metric][n], rel=1e-7, abs=1e-12)
    return found


@pytest.mark.parametrize("seed", [11, 12])
def test_monte_carlo_agrees_with_exact_risk(rules: tuple[str, ...], seed: int) -> None:
    found = zs(study(rules, chains=400, sequences_per_chain=2, seed=seed))
    assert {name for name, _, _ in found} == set(rules)
    assert max(map(abs, found.values())) < 4.5, max(found, key=lambda key: abs(found[key]))
    assert np.mean(np.square(list(found.values()))) < 2.5


@pytest.mark.parametrize("law", [ChainLaw(2, 0.3), ChainLaw(4, 5.0), ChainLaw(3, 0.001)])
def test_so_it_does_for_other_chains(law: ChainLaw) -> None:
    named = ["construction", "construction-softmax", "bigram", "add-one", "bayes", "unigram", "uniform"]
    # Tiny concentrations make KL rare and large: what is averaged is as good as binary, 1,000 chains are few.
    found = zs(study(named, source=law, length=4, chains=1000, sequences_per_chain=2, seed=21))
    assert max(map(abs, found.values())) < 4.5, max(found, key=lambda key: abs(found[key]))


@pytest.mark.slow
def test_z_is_standard_normal_over_seeds(rules: tuple[str, ...]) -> None:
    seeds = 40
    design = study(rules, chains=500, sequences_per_chain=2)
    truth = exact_risks(design)
    by_seed = [zs(replace(design, seed=100 + seed), truth) for seed in range(seeds)]
    keys = [key for key in by_seed[0] if all(key in found for found in by_seed)]
    assert {name for name, _, _ in keys} == set(rules)
    table = np.array([[found[key] for key in keys] for found in by_seed])  # (seeds, keys)
    level = 1e-3 / len(keys)
    mean, variance = table.mean(axis=0), table.var(axis=0, ddof=1)
    assert np.abs(mean).max() * math.sqrt(seeds) < stats.norm.isf(level / 2)
    low, high = stats.chi2.ppf([level / 2, 1 - level / 2], seeds - 1) / (seeds - 1)
    assert low < variance.min()
    assert variance.max() < high
    assert min(stats.kstest(column, "norm").pvalue for column in table.T) > level
    # Over all of them: correlated, so that a tenth of their number is taken to be independent.
    assert abs(table.mean()) < 3 / math.sqrt(seeds * len(keys) / 10)
    assert abs(table.var() - 1) < 0.1


@pytest.mark.slow
def test_intervals_cover_the_exact_value_as_often_as_they_say() -> None:
    named = ["construction-softmax", "bigram", "add-one", "unigram", "uniform"]
    studies, length = 400, 10
    design = study(named, chains=200, sequences_per_chain=1, length=length)
    truth = {rule.name: exact_risk(rule, length) for rule in design.estimators}
    covered: dict[tuple[str, str], list[np.ndarray]] = {}
    for seed in range(studies):
        moments = whole(replace(design, seed=1000 + seed))
        for name, exact in truth.items():
            for metric in ("kl_nats", "squared_error", "regret_nats"):
                if name == "bigram" and metric != "squared_error":
                    continue
                interval = mean_intervals(moments.risk[name, metric])
                expected = exact.metrics[metric]
                hit = (interval.low[:length] <= expected + 1e-12) & (expected - 1e-12 <= interval.high[:length])
                covered.setdefault((name, metric), []).append(hit)
            finite = ratio_intervals(moments.finite[name].ratios)
            expected = exact.metrics["kl_finite_nats"]
            hit = (finite.low[:length] <= expected) & (expected <= finite.high[:length])
            covered.setdefault((name, "kl_finite_nats"), []).append(hit)
    error = math.sqrt(0.95 * 0.05 / studies)
    for key, hits in covered.items():
        share = np.mean(hits, axis=0)
        varies = share < 1  # regret at n = 1 is one number
        assert (np.abs(share[varies] - 0.95) < 4 * error).all(), (key, share)


def test_integrating_the_chain_out_is_less_noise_for_the_same_mean(rules: tuple[str, ...]) -> None:
    moments = whole(study(rules, chains=400, sequences_per_chain=2, length=12))
    for name in rules:
        realised, integrated = moments.risk[name, "kl_nats"], moments.risk[name, "kl_rb_nats"]
        finite = realised.finite & integrated.finite
        assert (integrated.standard_error[finite] < realised.standard_error[finite] + 1e-12).all()
        np.testing.assert_array_less(-1e-15, moments.risk[name, "regret_nats"].mean)
        if name != "add-one":
            pair_kl, pair_regret = moments.differences[name, "kl_nats"], moments.differences[name, "regret_nats"]
            finite &= pair_regret.difference.variance > 1e-20
            narrower = pair_regret.difference.standard_error[finite] < pair_kl.difference.standard_error[finite]
            assert narrower.all()
    rho = moments.risk["add-one", "kl_rb_nats"].mean
    for name in rules:
        np.testing.assert_allclose(
            moments.risk[name, "kl_rb_nats"].mean, rho + moments.risk[name, "regret_nats"].mean, rtol=1e-12
        )


def test_the_martingale_check_is_0_within_its_error_and_sees_a_wrong_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    design = study(["add-one", "bayes"], source=ChainLaw(3, 0.5), chains=600, sequences_per_chain=3)
    good = whole(design).martingale
    assert good is not None
    assert np.abs(zero_mean_check(good).z).max() < 4

    # Chains of another concentration than the one that ρ and the posterior are told.
    def wrong(transition: np.ndarray) -> np.ndarray:
        return transition**2 / (transition**2).sum(axis=-1, keepdims=True)

    def draw(source: ChainLaw, *arguments: Any, **options: Any) -> Sample:
        sample = sample_chains(*arguments, law=source, **options)
        return replace(sample, transition=wrong(sample.transition))

    monkeypatch.setattr(ChainLaw, "sample", draw)
    bad = whole(design).martingale
    assert bad is not None
    assert np.abs(zero_mean_check(bad).z).max() > 10


def test_with_a_stationary_start_only_what_needs_no_posterior_is_kept() -> None:
    moments = whole(study(["bigram", "add-one"], source=ChainLaw(3, 1.0, "stationary"), chains=60))
    assert moments.martingale is None
    assert {metric for _, metric in moments.risk} == set(LOSSES) - {"kl_rb_nats", "regret_nats"}


def test_a_probability_too_small_for_a_double_is_not_0() -> None:
    """At α = 0.001 half of a row's entries underflow; a prediction of 0 there is infinitely wrong all the same."""
    design = study(["bigram", "add-one"], source=ChainLaw(3, 0.001), length=4, chains=500)
    transition = sample_chains(range(500), sequences_per_chain=1, length=1, law=design.source).transition
    assert (transition == 0).mean() > 0.2
    moments = whole(design)
    exact = exact_risks(design)["bigram"].metrics["p_infinite"]
    np.testing.assert_allclose(moments.risk["bigram", "p_infinite"].mean[:4], exact, atol=0.03)
    assert not np.isnan(moments.risk["bigram", "kl_nats"].mean).any()


def test_training_runs_are_averaged_and_not_their_predictions() -> None:
    runs = (Leaning("m:a", 0.2), Leaning("m:b", 0.6))
    base = study(["add-one"], chains=60)
    design = replace(base, estimators=(*runs, *base.estimators))
    moments = whole(design)
    for metric in LOSSES:
        expected = (moments.risk["m:a", metric].mean + moments.risk["m:b", metric].mean) / 2
        np.testing.assert_allclose(moments.risk["m", metric].mean, expected, rtol=1e-12, atol=1e-15)
    together = kl_of_mean(design, runs)
    assert (moments.risk["m", "kl_nats"].mean[:-1] > together + 1e-3).all()


def kl_of_mean(design: Study, runs: tuple[Any, ...]) -> np.ndarray:
    sample = sample_chains(range(design.chains), sequences_per_chain=10, length=design.length, seed=design.seed)
    mean = np.mean([run.predict_proba(sample.inputs) for run in runs], axis=0)
    return special.rel_entr(sample.truth, mean).sum(axis=-1).mean(axis=0)
