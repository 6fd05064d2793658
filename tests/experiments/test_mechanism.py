from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from icl_estimators import compare, effective_smoothing, get
from icl_estimators.divergences import kl_divergence
from icl_estimators.estimators.intervened import Intervened
from icl_estimators.experiments.mechanism import (
    AS_TRAINED,
    UNMATCHED,
    exact_frequencies,
    fit_read_out,
    mechanism_tables,
    read_out_law,
)
from icl_estimators.experiments.study import Study
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.schemas import SCHEMAS
from icl_estimators.sources import ChainLaw, posterior_predictive, sample_chains, transition_counts
from icl_estimators.transformer import INTERVENTIONS

TINY = {"chains": 30, "sequences_per_chain": 2, "length": 8}


def tables_of(study: Study, **options: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    found = mechanism_tables(study, **options)
    return found["mechanism"].frame(), found["mechanism_shares"].frame()


@pytest.fixture(scope="module")
def study() -> Study:
    return Study((get("transformer"), get("add-one")), decomposition_chains=0, **TINY)


@pytest.fixture(scope="module")
def tables(study: Study) -> tuple[pd.DataFrame, pd.DataFrame]:
    return tables_of(study)


def cell(mechanism: pd.DataFrame, attention: str, read_out: str, unmatched: str = "") -> pd.Series:
    rows = mechanism.query("attention == @attention and read_out == @read_out")
    rows = rows[rows.unmatched == unmatched]
    (index,) = rows.index
    return rows.loc[index]


@pytest.mark.parametrize("unmatched", UNMATCHED)
def test_exact_attention_copies_frequencies(unmatched: str) -> None:
    tokens = np.random.default_rng(0).integers(0, 3, size=(5, 12))
    found = exact_frequencies(tokens, 3, unmatched)
    for line, rows in zip(tokens.tolist(), found, strict=True):
        for n in range(1, len(line) + 1):
            followed = [line[i] for i in range(1, n) if line[i - 1] == line[n - 1]]
            share = {"0": 0.0, "n_w/(n + 1)": 1 / (n + 1), "n_w/n": 1 / n}[unmatched]
            expected = [followed.count(w) / len(followed) if followed else share * line[:n].count(w) for w in range(3)]
            np.testing.assert_allclose(rows[n - 1], expected, rtol=1e-14)


def test_a_read_out_is_found_again_and_nothing_near_it_is_better() -> None:
    tokens = sample_chains(range(100), sequences_per_chain=1, length=15, seed=3, purpose="tuning").inputs
    copied = exact_frequencies(tokens, 3, "0")
    own = (tokens[:, :, None] == np.arange(3)).astype(float)
    known = fit_read_out(tokens, copied, softmax(1.7 * copied - 0.4 * own, axis=-1))
    assert known == pytest.approx((1.7, -0.4), abs=1e-5)
    bayes = posterior_predictive(transition_counts(tokens, 3), 1.0)

    def regret(parameters: np.ndarray) -> float:
        law = softmax(parameters[0] * copied + parameters[1] * own, axis=-1)
        return float(kl_divergence(bayes, law).mean())

    other = minimize(regret, [1.0, 0.5], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-14})
    assert fit_read_out(tokens, copied, bayes) == pytest.approx(tuple(other.x), abs=1e-5)
    np.testing.assert_allclose(
        read_out_law(tokens, copied, known), softmax(known.gamma * copied + known.bonus * own, axis=-1)
    )


def test_columns_and_every_combination_once(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    mechanism, shares = tables
    assert tuple(mechanism.columns) == SCHEMAS["mechanism"].names
    assert tuple(shares.columns) == SCHEMAS["mechanism_shares"].names
    assert len(mechanism) == 10
    assert len(shares) == 36
    assert not mechanism.duplicated(["attention", "read_out", "unmatched"]).any()
    refitted = mechanism.read_out == "refitted"
    assert mechanism[refitted][["gamma", "bonus"]].notna().all(axis=None)
    assert mechanism[~refitted][["gamma", "bonus"]].isna().all(axis=None)


def test_regrets_are_those_of_the_predictions(study: Study, tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    mechanism, _ = tables
    tokens = study.source.sample(range(30), sequences_per_chain=1, length=8, seed=0, purpose="risk").inputs
    bayes = posterior_predictive(transition_counts(tokens, 3), 1.0)
    model = get("transformer")
    exact = Intervened(model, next(one for one in INTERVENTIONS if one.name == "exact-attention"))
    layer_two = model.attention(tokens)[1]
    own = tokens[:, :, None] == np.arange(3)
    laws = {("model", "trained", ""): model.predict_proba(tokens)}
    laws["exact", "trained", AS_TRAINED] = exact.predict_proba(tokens)
    row = cell(mechanism, "model", "refitted")
    laws["model", "refitted", ""] = softmax(row.gamma * (layer_two @ own) + row.bonus * own, axis=-1)
    for unmatched in UNMATCHED:
        row = cell(mechanism, "exact", "refitted", unmatched)
        copied = exact_frequencies(tokens, 3, unmatched)
        laws["exact", "refitted", unmatched] = softmax(row.gamma * copied + row.bonus * own, axis=-1)
    for part, law in laws.items():
        by_chain = kl_divergence(bayes, law).mean(axis=1)
        row = cell(mechanism, *part)
        assert row.estimate == pytest.approx(by_chain.mean(), rel=1e-5)
        assert row.se == pytest.approx(by_chain.std(ddof=1) / np.sqrt(30), rel=1e-4)


def test_perfect_read_outs_are_infinite_or_undefined_and_say_why(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    mechanism, shares = tables
    for part in (("model", "perfect", ""), *(("exact", "perfect", unmatched) for unmatched in UNMATCHED[1:])):
        row = cell(mechanism, *part)
        assert row.estimate == np.inf
        assert row.note.startswith("infinite: states that have not occurred have probability 0")
    nothing = cell(mechanism, "exact", "perfect", "0")
    assert np.isnan(nothing.estimate)
    assert nothing.note.startswith("undefined: where the current token was not left before")
    perfect = shares[shares.read_out == "perfect"]
    assert perfect[["estimate", "se", "ci_low", "ci_high"]].isna().all(axis=None)
    assert perfect.note.str.startswith("no share: the regret with the model's attention and the perfect").all()


def test_both_orders_lead_to_the_same_end_and_shapley_adds_up(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    mechanism, shares = tables
    start = cell(mechanism, "model", "trained").estimate
    for unmatched in UNMATCHED:
        end = cell(mechanism, "exact", "refitted", unmatched).estimate
        chosen = shares[(shares.read_out == "refitted") & (shares.unmatched == unmatched)]
        drop = chosen.set_index(["part", "replaced"]).estimate
        for first, second in (("attention", "read_out"), ("read_out", "attention")):
            assert drop[first, "first"] + drop[second, "second"] == pytest.approx(start - end, abs=1e-12)
        assert drop["attention", "average"] + drop["read_out", "average"] == pytest.approx(start - end, abs=1e-12)
        exact = cell(mechanism, "exact", "trained", AS_TRAINED).estimate
        assert drop["attention", "first"] == pytest.approx(start - exact, abs=1e-12)


def test_a_stationary_start_has_no_regret() -> None:
    study = Study((get("transformer"), get("add-one")), source=ChainLaw(start="stationary"), **TINY)
    for table in tables_of(study):
        assert table.estimate.isna().all()
        assert table.note.str.startswith("undefined: the posterior").all()


def test_counting_rules_have_no_mechanism() -> None:
    assert mechanism_tables(Study((get("add-one"), get("bigram")), **TINY)) == {}


@pytest.mark.skipif(shipped_checkpoint(3, seed=1) is None, reason="one checkpoint ships")
def test_the_mean_of_training_runs_has_rows() -> None:
    paths = [shipped_checkpoint(3, seed=seed) for seed in (0, 1)]
    study = Study.build(["transformer"], checkpoints=paths, warn=pytest.fail, **{**TINY, "length": 6})
    mechanism, _ = tables_of(study)
    regret = mechanism[mechanism.attention == "exact"].query("read_out == 'trained'").set_index("estimator").estimate
    assert regret["transformer"] == pytest.approx(regret.drop("transformer").mean())
    pooled = mechanism[mechanism.estimator == "transformer"]
    assert pooled.note.str.endswith("for these training runs").all()


def test_both_commands_write_it() -> None:
    compared = compare(["transformer"], decomposition_chains=0, **TINY)
    smoothed = effective_smoothing(["transformer"], families=(), by=["overall"], **TINY)
    for result in (compared, smoothed):
        assert {"mechanism", "mechanism_shares"} <= result.tables.keys()
    left_alone = effective_smoothing(["transformer"], families=(), by=["overall"], interventions=False, **TINY)
    assert list(left_alone.tables) == ["smoothing"]


@pytest.mark.slow
def test_the_shipped_models_values() -> None:
    mechanism, shares = tables_of(Study((get("transformer"), get("add-one"))))
    known = {("exact", "trained", AS_TRAINED): 0.04695, ("model", "trained", ""): 0.0311}
    known |= {("exact", "refitted", u): v for u, v in zip(UNMATCHED, (0.0256, 0.0287, 0.0337), strict=True)}
    for part, value in known.items():
        row = cell(mechanism, *part)
        assert row.ci_low - 1e-4 < value < row.ci_high + 1e-4
    for unmatched in UNMATCHED:
        row = cell(mechanism, "exact", "refitted", unmatched)
        assert (row.gamma, row.bonus) == pytest.approx((2.2, 0.06), abs=0.08)
    attention = shares[(shares.part == "attention") & (shares.read_out == "refitted")].set_index(
        ["unmatched", "replaced"]
    )
    # Exact attention costs regret under the trained read-out, and saves regret under a refitted one.
    assert (attention.ci_high.xs("first", level="replaced") < 0).all()
    assert (attention.ci_low.xs("second", level="replaced") > 0).all()
