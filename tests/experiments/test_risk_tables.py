from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icl_estimators.api import Comparison, compare
from icl_estimators.estimators import get, get_all
from icl_estimators.experiments.compare import run_study
from icl_estimators.experiments.decomposition import decomposition_block
from icl_estimators.experiments.risk import risk_block
from icl_estimators.experiments.risk_tables import (
    context_labels,
    decomposition_table,
    difference_table,
    risk_table,
)
from icl_estimators.experiments.study import Study
from icl_estimators.inference import (
    BIN_EDGES,
    FEWEST_CHAINS,
    mean_intervals,
    simultaneous_band,
    squared_bias_intervals,
    training_variance_intervals,
    two_way_intervals,
)
from icl_estimators.metrics import DECOMPOSITION_METRICS, METRICS
from icl_estimators.notes import Code, Note
from icl_estimators.sources import ChainLaw, sample_chains
from strange_rules import Leaning

LIMITS = ["se", "ci_low", "ci_high", "band_low", "band_high"]


def pooled_study(chains: int) -> Study:
    runs = (Leaning("transformer:a", 0.1, "transformer"), Leaning("transformer:b", 0.4, "transformer"))
    made = (*runs, get("bigram"), get("add-one"))
    return Study(made, length=5, seed=3, chains=chains, sequences_per_chain=2)


@pytest.fixture(scope="module")
def pooled() -> Comparison:
    runs = [Leaning("transformer:a", 0.1, "transformer"), Leaning("transformer:b", 0.4, "transformer")]
    options = {"chains": 70, "sequences_per_chain": 2, "decomposition_chains": 50, "decomposition_sequences": 6}
    return compare([*runs, "bigram", "add-one"], length=5, seed=3, **options)


def of(table: pd.DataFrame, name: str, metric: str) -> pd.DataFrame:
    return table[(table.estimator == name) & (table.metric == metric)].reset_index(drop=True)


def test_rows_stand_in_the_order_of_estimators_metrics_and_context_lengths(
    small: Comparison, rules: tuple[str, ...]
) -> None:
    risk = small.risk
    keys = list(zip(risk.estimator, risk.metric, risk.context_length, strict=True))
    assert keys == list(product(rules, METRICS, [*range(1, 13), "mean"]))
    assert (risk.n_chains == 230).all()
    assert (risk.n_sequences == 690).all()
    differences = small.differences
    keys = list(zip(differences.estimator, differences.metric, differences.context_length, strict=True))
    others = [name for name in rules if name != "add-one"]
    paired = [metric for metric in METRICS if metric not in ("p_infinite", "kl_finite_nats")]
    assert keys == list(product(others, paired, [*range(1, 13), "mean"]))
    assert (differences.reference == "add-one").all()
    bias = small.signed_bias
    keys = list(zip(bias.estimator, bias.context_length, bias.bin_low, strict=True))
    assert keys == list(product(rules, [*range(1, 13), "mean"], BIN_EDGES[:-1].tolist()))
    np.testing.assert_array_equal(bias.bin_high, np.tile(BIN_EDGES[1:], len(bias) // 10))


def test_context_labels_end_with_the_mean() -> None:
    assert context_labels(3) == [1, 2, 3, "mean"]


def test_intervals_are_students_t_over_chains_and_bands_are_wider(small: Comparison) -> None:
    rows = small.risk[~small.risk.metric.isin(["kl_finite_nats", "p_infinite"])]
    rows = rows[np.isfinite(rows.estimate)]
    half = stats.t.ppf(0.975, 229) * rows.se
    np.testing.assert_allclose(rows.ci_high - rows.estimate, half, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(rows.estimate - rows.ci_low, half, rtol=1e-9, atol=1e-13)
    at_n = rows[rows.context_length != "mean"]
    assert (at_n.band_low <= at_n.ci_low + 1e-12).all()
    assert (at_n.band_high >= at_n.ci_high - 1e-12).all()
    varies = at_n[at_n.se > 1e-9]
    ratio = (varies.band_high - varies.estimate) / varies.se
    assert (ratio.groupby([varies.estimator, varies.metric]).std().dropna() < 1e-6).all()  # one multiple a curve
    assert rows[rows.context_length == "mean"][["band_low", "band_high"]].isna().all(axis=None)


def test_a_band_is_of_its_curve_without_the_mean() -> None:
    design = Study((get("unigram"), get("add-one")), chains=60, length=6, decomposition_chains=0, level=0.9)
    moments = risk_block(design, range(60))
    rows = of(risk_table(design, moments).frame(), "unigram", "hellinger")
    band = simultaneous_band(moments.risk["unigram", "hellinger"].select(range(6)), level=0.9)
    np.testing.assert_array_equal(rows.band_low[:6], band.low)
    np.testing.assert_array_equal(rows.band_high[:6], band.high)
    assert rows.note[0].startswith("95 % bands over 6 lengths from 50 chains × 1 have coverage 0.")
    assert rows.note[6] == "no band for a mean over n"


def test_every_empty_cell_has_its_reason(small: Comparison) -> None:
    for name in ("risk", "decomposition", "signed_bias", "checks", "attention"):
        table = getattr(small, name)
        numbers = table.select_dtypes("number").drop(columns=["n_chains", "n_sequences"], errors="ignore")
        unexplained = table[numbers.isna().any(axis=1) & (table.note == "")]
        assert unexplained.empty, f"{name}: {unexplained.head()}"
    differences = small.differences
    numbers = ["difference", "se", "ci_low", "ci_high", "correlation", "variance_reduction"]
    assert differences[differences[numbers].isna().any(axis=1) & (differences.note == "")].empty
    factors = differences[(differences.metric == "regret_nats") & (differences.note == "")]
    assert factors.rao_blackwell_factor.notna().all()
    assert differences[differences.metric != "regret_nats"].rao_blackwell_factor.isna().all()


def test_an_infinite_mean_is_inf_without_an_interval_and_says_in_how_many_chains(small: Comparison) -> None:
    for name, first in (("bigram", 2), ("construction", 1)):
        kl = of(small.risk, name, "kl_nats")
        infinite = kl[kl.context_length.isin([*range(first, 13), "mean"])]
        assert np.isposinf(infinite.estimate).all()
        assert infinite[LIMITS].isna().all(axis=None)
        assert infinite.note.str.fullmatch(r"infinite in \d+ of 230 chains").all()
    assert np.isfinite(of(small.risk, "bigram", "kl_nats").estimate[0])
    assert of(small.risk, "construction", "kl_nats").note[0] == "infinite in 230 of 230 chains"


def test_the_count_in_the_note_is_that_of_the_chains() -> None:
    result = compare(["bigram", "add-one"], chains=40, sequences_per_chain=3, length=4, decomposition_chains=0, seed=2)
    sample = sample_chains(range(40), sequences_per_chain=3, length=4, seed=2)
    zero = (get("bigram").predict_proba(sample.inputs) == 0).any(axis=-1).reshape(40, 3, 4)
    kl, share = of(result.risk, "bigram", "kl_nats"), of(result.risk, "bigram", "p_infinite")
    for n in range(1, 4):
        assert kl.note[n] == f"infinite in {zero[:, :, n].any(axis=1).sum()} of 40 chains"
        assert share.estimate[n] == pytest.approx(zero[:, :, n].mean(), abs=1e-15)


def test_where_kl_is_finite_its_mean_over_n_is_that_of_the_rows(small: Comparison) -> None:
    sample = sample_chains(range(230), sequences_per_chain=3, length=12, seed=5)
    prediction = get("bigram").predict_proba(sample.inputs)
    with np.errstate(divide="ignore"):
        kl = (sample.truth * np.log(sample.truth / prediction)).sum(axis=-1)
    rows = of(small.risk, "bigram", "kl_finite_nats")
    for n in range(12):
        finite = np.isfinite(kl[:, n])
        assert rows.estimate[n] == pytest.approx(kl[finite, n].mean(), rel=1e-12)
    assert rows.estimate[12] == pytest.approx(rows.estimate[:12].mean(), rel=1e-12)
    assert abs(rows.estimate[12] - kl[np.isfinite(kl)].mean()) > 0.005  # what the pooled ratio would be
    assert (rows.note == "conditional on a finite KL; no band for a ratio").all()
    nothing = of(small.risk, "construction", "kl_finite_nats")
    assert np.isnan(nothing.estimate[0])
    assert nothing.note[0] == "KL is infinite in every sequence"
    assert np.isnan(nothing.estimate[12])
    assert nothing.note[12] == "no mean over n: KL is infinite in every sequence at n = 1"
    always = of(small.risk, "add-one", "kl_finite_nats")
    kl_nats = of(small.risk, "add-one", "kl_nats")
    np.testing.assert_allclose(always.estimate, kl_nats.estimate, rtol=1e-12)
    np.testing.assert_allclose(always.se, kl_nats.se, rtol=1e-9)


def test_a_share_never_has_an_interval_of_no_width(small: Comparison, pooled: Comparison) -> None:
    for result in (small, pooled):
        shares = result.risk[(result.risk.metric == "p_infinite") & ~result.risk.estimator.str.endswith(":recipe")]
        assert (shares.ci_high - shares.ci_low > 1e-3).all()
        assert (shares.ci_low >= 0).all()
        assert (shares.ci_high <= 1).all()
        assert shares[["band_low", "band_high"]].isna().all(axis=None)
        assert (shares.note == "no band for a share: see its Wilson interval").all()


def test_a_difference_that_involves_inf_is_empty_and_says_which_side(small: Comparison) -> None:
    rows = of(small.differences, "bigram", "kl_nats")
    numbers = ["difference", "se", "ci_low", "ci_high", "correlation", "variance_reduction"]
    assert rows.loc[1:, numbers].isna().all(axis=None)
    assert rows.note[1:].str.fullmatch(r"no difference: the estimator is infinite in \d+ of 230 chains").all()
    assert np.isfinite(rows.difference[0])


def test_a_reference_that_is_infinite_is_named() -> None:
    result = compare(
        ["add-one", "construction"], reference="bigram", chains=40, length=3, decomposition_chains=0, seed=2
    )
    note = of(result.differences, "add-one", "kl_nats").note[2]
    assert note.startswith("no difference: the reference is infinite in ")
    both = of(result.differences, "construction", "kl_nats").note[2]
    assert both.startswith("no difference: the estimator is infinite in ")
    assert ", the reference is infinite in " in both


def test_differences_are_paired_on_the_same_draws(small: Comparison) -> None:
    sample = sample_chains(range(230), sequences_per_chain=3, length=12, seed=5)
    chain = {}
    for name in ("unigram", "add-one"):
        error = ((get(name).predict_proba(sample.inputs) - sample.truth) ** 2).sum(axis=-1)
        values = error.reshape(230, 3, 12).mean(axis=1)
        chain[name] = np.column_stack([values, values.mean(axis=1)])
    a, b = chain["unigram"], chain["add-one"]
    rows = of(small.differences, "unigram", "squared_error")
    np.testing.assert_allclose(rows.difference, (a - b).mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(rows.se, (a - b).std(axis=0, ddof=1) / np.sqrt(230), rtol=1e-9)
    half = stats.t.ppf(0.975, 229) * rows.se
    np.testing.assert_allclose(rows.ci_high - rows.difference, half, rtol=1e-9)
    correlation = [np.corrcoef(a[:, n], b[:, n])[0, 1] for n in range(13)]
    np.testing.assert_allclose(rows.correlation, correlation, rtol=1e-8)
    reduction = (a.var(axis=0) + b.var(axis=0)) / (a - b).var(axis=0)
    np.testing.assert_allclose(rows.variance_reduction, reduction, rtol=1e-8)
    assert (rows.note == "").all()


def test_the_rao_blackwell_factor_is_the_ratio_of_the_two_variances(small: Comparison) -> None:
    for name in small.differences.estimator.unique():
        kl, regret = (of(small.differences, name, metric) for metric in ("kl_nats", "regret_nats"))
        known = np.isfinite(regret.rao_blackwell_factor)
        np.testing.assert_allclose(
            regret.rao_blackwell_factor[known], (kl.se[known] / regret.se[known]) ** 2, rtol=1e-8
        )
        assert (regret.rao_blackwell_factor[known] > 1).all()
        assert (regret.se[known] < kl.se[known]).all()
        integrated = of(small.differences, name, "kl_rb_nats")
        np.testing.assert_allclose(integrated.difference[known], regret.difference[known], rtol=1e-9)


def test_signed_bias_is_a_plain_mean_in_each_bin(small: Comparison) -> None:
    sample = sample_chains(range(230), sequences_per_chain=3, length=12, seed=5)
    truth, error = sample.truth, get("unigram").predict_proba(sample.inputs) - sample.truth
    rows = small.signed_bias[small.signed_bias.estimator == "unigram"]
    for row in rows.itertuples():
        columns = slice(None) if row.context_length == "mean" else slice(row.context_length - 1, row.context_length)
        p, e = truth[:, columns], error[:, columns]
        inside = (row.bin_low <= p) & ((p < row.bin_high) if row.bin_high < 1 else (p <= 1))
        assert row.estimate == pytest.approx(e[inside].mean(), rel=1e-9, abs=1e-14)
        contributing = inside.reshape(230, -1).any(axis=1).sum()
        if contributing < FEWEST_CHAINS:  # their mean is skewed: 3 chains covered 0.51
            assert np.isnan([row.se, row.ci_low, row.ci_high]).all()
            assert row.note == f"only {contributing} chains contribute: an interval needs {FEWEST_CHAINS}"
        else:
            assert row.ci_low < row.estimate < row.ci_high
    assert 0 < rows.se.isna().sum() <= 13
    assert rows.estimate.iloc[-10] > 0 > rows.estimate.iloc[-1]  # shrinkage towards the middle


def test_a_stationary_start_leaves_what_needs_the_posterior_empty_with_the_reason() -> None:
    result = compare(
        ["bigram", "add-one", "unigram"], start="stationary", chains=60, length=4, decomposition_chains=0, seed=2
    )
    risk, differences = result.risk, result.differences
    for metric in ("kl_rb_nats", "regret_nats"):
        empty = risk[risk.metric == metric]
        assert len(empty) == 3 * 5
        assert empty[["estimate", *LIMITS]].isna().all(axis=None)
        assert (empty.note == Note(Code.NO_POSTERIOR)).all()
        empty = differences[differences.metric == metric]
        assert len(empty) == 2 * 5
        assert empty[["difference", "se", "rao_blackwell_factor"]].isna().all(axis=None)
        assert (empty.note == Note(Code.NO_POSTERIOR)).all()
    assert risk[risk.metric == "kl_nats"].estimate.notna().all()
    assert np.isfinite(of(risk, "add-one", "kl_nats").estimate).all()
    assert np.isfinite(of(differences, "unigram", "kl_nats").difference).all()


def test_the_first_token_of_a_stationary_start_tells_add_one_less_than_it_could_know() -> None:
    """At n = 1 add-one says uniform, whose risk is 0.2801 under a stationary first token and 0.2653 under a uniform."""
    options = {"chains": 4000, "sequences_per_chain": 1, "length": 1, "decomposition_chains": 0}
    uniform = of(compare(["add-one"], **options).risk, "add-one", "kl_nats").iloc[0]
    stationary = of(compare(["add-one"], start="stationary", **options).risk, "add-one", "kl_nats").iloc[0]
    assert abs(uniform.estimate - 0.26528) < 4 * uniform.se
    assert abs(stationary.estimate - 0.2801) < 4 * stationary.se


def test_several_training_runs_have_rows_of_their_own_of_their_mean_and_of_their_recipe(pooled: Comparison) -> None:
    names = ["transformer:a", "transformer:b", "transformer", "transformer:recipe", "bigram", "add-one"]
    assert pooled.risk.estimator.drop_duplicates().tolist() == names
    block = risk_block(pooled_study(70), range(70))
    for metric in METRICS.keys() - {"kl_finite_nats"}:
        a, b, mean, recipe = (of(pooled.risk, name, metric) for name in names[:4])
        np.testing.assert_allclose(mean.estimate, (a.estimate + b.estimate) / 2, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(recipe.estimate, mean.estimate, rtol=1e-12, atol=1e-15)
        if metric == "p_infinite":
            assert recipe[LIMITS].isna().all(axis=None)
            assert (recipe.note == "no two-way interval for a share: see the rows of the mean over training runs").all()
            continue
        assert recipe[["band_low", "band_high"]].isna().all(axis=None)
        assert recipe.note.str.startswith(
            "two-way over 2 training runs and 70 chains, t with 1 degree of freedom for the runs and 69 for the chains"
        ).all()
        assert recipe.note.str.endswith("; no band: the interval is two-way").all()
        made = two_way_intervals([block.risk[name, metric] for name in names[:2]], block.risk["transformer", metric])
        np.testing.assert_allclose(recipe.ci_high, made.high, rtol=1e-9)
        between = np.abs(a.estimate - b.estimate) / 2  # the standard error of a mean of two
        assert (recipe.se >= np.maximum(between, mean.se) * (1 - 1e-9)).all()
    compared = pooled.differences.estimator.drop_duplicates().tolist()
    assert compared == [*names[:4], "bigram"]
    for metric in ("regret_nats", "squared_error"):
        pairs = [block.differences[name, metric].difference for name in names[:3]]
        made, rows = two_way_intervals(pairs[:2], pairs[2]), of(pooled.differences, names[3], metric)
        np.testing.assert_allclose(rows.ci_low, made.low, rtol=1e-9)
        np.testing.assert_allclose(rows.difference, of(pooled.differences, "transformer", metric).difference)
        assert rows[["correlation", "variance_reduction"]].isna().all(axis=None)
        assert rows.note.str.endswith("the gain from pairing is given for these training runs only").all()


def test_the_mean_over_training_runs_may_be_the_reference() -> None:
    runs = (Leaning("m:a", 0.1), Leaning("m:b", 0.4))
    for run in runs:
        run.recipe = "m"
    result = compare([*runs, "add-one"], reference="m", chains=60, length=3, decomposition_chains=0)
    assert result.run["options"]["reference"] == "m"
    assert result.differences.estimator.drop_duplicates().tolist() == ["m:a", "m:b", "add-one"]
    a, b = (of(result.differences, name, "regret_nats").difference for name in ("m:a", "m:b"))
    np.testing.assert_allclose(a, -b, rtol=1e-10)


def test_a_recipe_less_one_of_its_runs_has_no_two_way_interval() -> None:
    runs = (Leaning("m:a", 0.1), Leaning("m:b", 0.4))
    result = compare([*runs, "add-one"], reference="m:a", chains=60, length=3, decomposition_chains=0)
    rows = of(result.differences, "m:recipe", "regret_nats")
    assert rows[["difference", "se", "ci_low", "ci_high"]].isna().all(axis=None)
    assert (rows.note == "no two-way interval: the reference itself consists of training runs, which vary").all()


def test_training_runs_share_out_their_error_over_bias_prompts_and_training(pooled: Comparison) -> None:
    parts = {
        metric: of(pooled.decomposition, "transformer", metric).estimate
        for metric in ("bias_squared", "variance", "training_variance", "mse")
    }
    np.testing.assert_allclose(
        parts["bias_squared"] + parts["variance"] + parts["training_variance"], parts["mse"], atol=1e-12
    )
    # Two laws that do not depend on the prompt: Σ_w var_j = ((0.2)² + 2 (0.1)²)/2, on chains with any cell at all.
    assert (parts["variance"].abs() < 1e-15).all()
    np.testing.assert_allclose(parts["training_variance"], 0.03, atol=2e-3)
    assert of(pooled.decomposition, "transformer:a", "training_variance").empty


def test_the_recipe_has_rows_of_its_own_in_the_decomposition() -> None:
    runs = tuple(Leaning(f"m:{name}", weight, "m") for name, weight in zip("abcd", (0.1, 0.15, 0.4, 0.3), strict=True))
    study = Study(
        (*runs, get("add-one")),
        length=3,
        decomposition_chains=40,
        decomposition_sequences=6,
    )
    moments = decomposition_block(study, range(40))
    table = decomposition_table(study, moments).frame()
    for metric in DECOMPOSITION_METRICS:
        mean, recipe = of(table, "m", metric), of(table, "m:recipe", metric)
        np.testing.assert_array_equal(mean.estimate, recipe.estimate)
        average = moments.parts["m", metric]
        each = [moments.parts.get((run.name, metric)) for run in runs]
        pseudo = [moments.runs.get((run.name, metric)) for run in runs]
        if metric == "training_variance":
            made = training_variance_intervals(pseudo, average)
            np.testing.assert_array_equal(mean.ci_low, recipe.ci_low)
            assert recipe.note.str.startswith("from the spread of 4 training runs, and 40 chains").all()
        elif metric == "bias_squared":
            made = squared_bias_intervals(pseudo, average)
        elif metric == "split_weight":
            made = mean_intervals(average)
        else:
            made = two_way_intervals(each, average)
        np.testing.assert_array_equal(recipe.ci_low, made.low)
        np.testing.assert_array_equal(recipe.ci_high, made.high)
        assert recipe[["band_low", "band_high"]].isna().all(axis=None)
        if metric != "training_variance":
            assert mean.note.str.contains("for these training runs only: the rows of the recipe generalise").all()
    kl = of(table, "m", "kl_bias_nats").estimate
    np.testing.assert_allclose(kl, np.mean([of(table, run.name, "kl_bias_nats").estimate for run in runs], axis=0))


def test_two_runs_have_no_interval_for_what_rests_on_pairs_of_runs(pooled: Comparison) -> None:
    for name, metric in (
        ("transformer", "training_variance"),
        ("transformer:recipe", "training_variance"),
        ("transformer:recipe", "bias_squared"),
    ):
        rows = of(pooled.decomposition, name, metric)
        assert rows.estimate.notna().all()
        assert rows[LIMITS].isna().all(axis=None)
        assert rows.note.str.startswith("two training runs give only one difference: ").all()
    assert of(pooled.decomposition, "transformer:recipe", "mse").ci_low.notna().all()


def test_the_table_of_differences_is_that_of_the_moments_whatever_the_order_of_estimators() -> None:
    made = tuple(get_all(["unigram", "add-one", "uniform"], n_states=3, warn=print))
    design = Study(made, chains=50, length=3, decomposition_chains=0)
    turned = replace(design, estimators=made[::-1])
    straight, reverse = (difference_table(d, risk_block(d, range(50))).frame() for d in (design, turned))
    pd.testing.assert_frame_equal(of(straight, "unigram", "kl_nats"), of(reverse, "unigram", "kl_nats"))
    assert reverse.estimator.drop_duplicates().tolist() == ["uniform", "unigram"]


def test_two_names_of_one_rule_differ_by_0_and_say_that_nothing_varies() -> None:
    result = compare(["bayes", "add-one"], chains=50, length=3, decomposition_chains=0)
    rows = result.differences
    assert (rows.difference == 0).all()
    assert (rows.se == 0).all()
    kl = of(rows, "bayes", "kl_nats")
    np.testing.assert_allclose(kl.correlation, 1.0, rtol=1e-12)
    assert np.isposinf(kl.variance_reduction).all()
    assert not rows[rows.metric == "regret_nats"].note.eq("").any()


def test_a_prior_shift_makes_add_one_the_rule_that_was_trained_and_bayes_the_true_one() -> None:
    result = compare(["bayes", "add-one"], concentration=0.2, chains=200, length=6, decomposition_chains=0)
    regret = of(result.risk, "bayes", "regret_nats")
    assert (regret.estimate == 0).all()
    assert (of(result.risk, "add-one", "regret_nats").ci_low[1:] > 0).all()


@pytest.mark.parametrize("law", [ChainLaw(2), ChainLaw(6, 0.3), ChainLaw(3, 0.001), ChainLaw(3, 100.0)])
@pytest.mark.parametrize("length", [1, 4])
def test_extreme_designs_leave_no_number_unexplained(law: ChainLaw, length: int) -> None:
    made = tuple(get_all(["construction", "bigram", "add-one", "uniform"], n_states=law.n_states, warn=print))
    result = run_study(
        Study(
            made,
            source=law,
            length=length,
            chains=2,
            sequences_per_chain=1,
            decomposition_chains=2,
            decomposition_sequences=2,
        )
    )
    for name in result.tables:
        table = getattr(result, name)
        if name == "smoothing":  # a mean prediction by count is no fit, and leaves nothing over
            table = table[table.family != "empirical"]
        numbers = table.select_dtypes("number")
        assert not np.isneginf(numbers.to_numpy(dtype=float)).any()
        if "note" in table:
            numbers = numbers.drop(columns="rao_blackwell_factor", errors="ignore")  # of the rows of regret
            assert table[numbers.isna().any(axis=1) & (table.note == "")].empty, name
