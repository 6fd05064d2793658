from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_estimators.api import Comparison, compare
from icl_estimators.estimators import get, get_all
from icl_estimators.experiments.decomposition import decomposition_block
from icl_estimators.experiments.risk import risk_block
from icl_estimators.experiments.study import Study
from icl_estimators.inference import Moments, agreement_check, with_mean
from icl_estimators.metrics import DECOMPOSITION_METRICS
from icl_estimators.sources import ChainLaw, sample_chains

RULES = ["construction-softmax", "bigram", "add-one", "unigram"]


def study(**options: Any) -> Study:
    return Study(tuple(get_all(RULES, n_states=3, warn=print)), **options)


def wide(table: pd.DataFrame, name: str) -> pd.DataFrame:
    rows = table[table.estimator == name]
    return rows.pivot_table(index="context_length", columns="metric", values="estimate", sort=False, dropna=False)


def test_bias_and_variance_add_up_in_every_row(small: Comparison, rules: tuple[str, ...]) -> None:
    assert small.decomposition.estimator.drop_duplicates().tolist() == list(rules)
    for name in rules:
        parts = wide(small.decomposition, name)
        np.testing.assert_allclose(parts.bias_squared + parts.variance, parts.mse, rtol=0, atol=1e-12)
        assert (parts.split_weight > 0.8).all()
        assert (parts.split_weight <= 1).all()


def test_rows_and_counts_are_those_of_the_nested_design(small: Comparison) -> None:
    table = small.decomposition
    assert table.metric.drop_duplicates().tolist() == [m for m in DECOMPOSITION_METRICS if m != "training_variance"]
    assert (table.n_chains == 120).all()
    assert (table.n_sequences == 960).all()
    assert table[table.estimator == "add-one"].context_length.tolist() == [*range(1, 13), "mean"] * 6


@pytest.mark.parametrize(("sequences", "chains"), [(2, 1000), (4, 600), (16, 200), (64, 60)])
def test_its_mse_is_the_squared_error_of_the_risk_design_for_any_number_of_sequences(
    sequences: int, chains: int
) -> None:
    design = study(
        length=15,
        chains=1000,
        sequences_per_chain=4,
        decomposition_chains=chains,
        decomposition_sequences=sequences,
        seed=8,
    )
    nested = decomposition_block(design, range(chains))
    plain = risk_block(design, range(1000))
    for name in RULES:
        check = agreement_check(nested.parts[name, "mse"], plain.risk[name, "squared_error"])
        assert np.abs(check.z).max() < 4, (name, check.z)
    # What m < 2 drops is missed without the weight 1/(1 − (1 − π)^(S−1)): up to a third of the error at S = 2.
    if sequences < 16:
        check = agreement_check(unweighted(design, "unigram", chains), plain.risk["unigram", "squared_error"])
        assert np.abs(check.z).max() > 6


def unweighted(design: Study, name: str, chains: int) -> Moments:
    """Return the moments of Σ_v (m/S)·1[m ≥ 2]·mse_v: cells as they come."""
    sample = sample_chains(
        range(chains),
        sequences_per_chain=design.decomposition_sequences,
        length=design.length,
        seed=design.seed,
        purpose="decomposition",
    )
    shape = (chains, design.decomposition_sequences, design.length)
    error = ((get(name).predict_proba(sample.inputs) - sample.truth) ** 2).sum(axis=-1).reshape(shape)
    tokens = sample.inputs.reshape(shape)
    companions = (tokens[:, :, None] == tokens[:, None]).sum(axis=2)
    return Moments.of(with_mean(np.where(companions >= 2, error, 0.0).mean(axis=1)))


def test_it_is_a_plain_sum_over_cells() -> None:
    design = study(length=6, decomposition_chains=20, decomposition_sequences=5, seed=4)
    sample = sample_chains(range(20), sequences_per_chain=5, length=6, seed=4, purpose="decomposition")
    visits = ChainLaw().visits(sample)
    prediction = get("unigram").predict_proba(sample.inputs).reshape(20, 5, 6, 3)
    tokens = sample.inputs.reshape(20, 5, 6)
    expected = {"bias_squared": np.zeros((20, 6)), "variance": np.zeros((20, 6))}
    for chain in range(20):
        for n in range(6):
            for v in range(3):
                cell = prediction[chain, tokens[chain, :, n] == v, n]
                m = len(cell)
                if m < 2:
                    continue
                spread = cell.var(axis=0, ddof=1).sum()
                weight = m / 5 / (1 - (1 - visits[chain, n, v]) ** 4)
                bias = ((cell.mean(axis=0) - sample.transition[chain, v]) ** 2).sum() - spread / m
                expected["bias_squared"][chain, n] += weight * bias
                expected["variance"][chain, n] += weight * spread
    parts = decomposition_block(design, range(20)).parts
    for metric, values in expected.items():
        np.testing.assert_allclose(parts["unigram", metric].mean[:6], values.mean(axis=0), rtol=1e-10)
        spread = values.std(axis=0, ddof=1) / np.sqrt(20)
        np.testing.assert_allclose(parts["unigram", metric].standard_error[:6], spread, rtol=1e-9)


def test_the_bias_correction_has_mean_0_where_there_is_no_bias() -> None:
    """Draws around the truth that do not depend on the path: bias² is 0 on average, the naive square is s²/m."""

    class Noisy:
        n_states = 2
        name = "noisy"

        def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
            first = np.random.default_rng(len(tokens)).uniform(0.2, 0.8, size=tokens.shape)
            return np.stack([first, 1 - first], axis=-1)

    law = ChainLaw(2, 1e4)  # chains whose rows are (½, ½) within 1 %: what Noisy says on average
    design = Study(
        (Noisy(), get("add-one", n_states=2)),
        source=law,
        length=10,
        chains=2,
        decomposition_chains=1500,
        decomposition_sequences=4,
    )
    parts = decomposition_block(design, range(1500)).parts
    bias, variance = parts["noisy", "bias_squared"], parts["noisy", "variance"]
    assert np.abs((bias.mean - 5e-5) / bias.standard_error).max() < 4  # 2·Var P = 5e-5
    np.testing.assert_allclose(variance.mean, 2 * 0.6**2 / 12, rtol=0.05)
    assert (bias.mean < 0).any()  # never clipped
    assert (variance.mean / 4 > 8 * bias.standard_error).all()  # the naive square would have been seen


def test_kl_parts_are_undefined_where_a_prediction_is_0_and_count_such_cells(small: Comparison) -> None:
    table = small.decomposition
    kl = table[table.metric.isin(["kl_bias_nats", "kl_variance_nats"])]
    bigram = kl[(kl.estimator == "bigram") & (kl.context_length != 1)]
    assert bigram.estimate.isna().all()
    pattern = r"undefined in \d+ of 120 chains; a predicted probability is 0 in [\d,]+ of [\d,]+ cells"
    assert bigram.note.str.fullmatch(pattern).all()
    smooth = kl[kl.estimator == "add-one"]
    assert smooth.estimate.notna().all()
    assert smooth.note.str.startswith("smallest cell: ").all()


def test_kl_parts_add_up_to_the_kl_of_the_risk_design() -> None:
    design = study(length=12, chains=1500, sequences_per_chain=4, decomposition_chains=300, decomposition_sequences=32)
    nested, plain = decomposition_block(design, range(300)), risk_block(design, range(1500))
    for name in ("add-one", "unigram", "construction-softmax"):
        bias, variance = (nested.parts[name, metric] for metric in ("kl_bias_nats", "kl_variance_nats"))
        total, kl = bias.mean + variance.mean, plain.risk[name, "kl_nats"]
        se = np.hypot(np.hypot(bias.standard_error, variance.standard_error), kl.standard_error)
        assert (np.abs(total - kl.mean) < 4 * se).all()


def test_it_has_a_stream_of_its_own() -> None:
    options = {"sequences_per_chain": 4, "length": 10, "seed": 0}
    risk, nested = (sample_chains(range(50), purpose=purpose, **options) for purpose in ("risk", "decomposition"))
    assert not np.isclose(risk.transition, nested.transition).any()


def test_merging_blocks_is_one_block() -> None:
    design = study(length=6, decomposition_chains=100, decomposition_sequences=4)
    parts = [decomposition_block(design, chains) for chains in (range(50), range(50, 100))]
    merged, whole = parts[0].merge(parts[1]), decomposition_block(design, range(100))
    for key, moments in whole.parts.items():
        np.testing.assert_allclose(merged.parts[key].mean, moments.mean, rtol=1e-10, atol=1e-15)
        np.testing.assert_allclose(merged.parts[key].variance, moments.variance, rtol=1e-8, atol=1e-15)
    assert merged.tallies["bigram"].notes() == whole.tallies["bigram"].notes()


def test_it_works_with_a_stationary_start() -> None:
    result = compare(
        ["bigram", "add-one"],
        start="stationary",
        chains=100,
        length=5,
        decomposition_chains=100,
        decomposition_sequences=4,
    )
    checks = result.checks[result.checks.check == "mse"]
    assert (checks.z.abs() < 4).all()
    assert len(checks) == 12


def test_left_out_there_is_no_table() -> None:
    result = compare(["bigram", "add-one"], chains=20, length=3, decomposition_chains=0)
    assert "decomposition" not in result.tables
    assert not (result.checks.check == "mse").any()
