from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from icl_estimators.api import Comparison, compare
from icl_estimators.estimators import ContractError, get
from icl_estimators.experiments import checks, plan
from icl_estimators.experiments import compare as module_of_compare
from icl_estimators.experiments.checks import check_table, exact_length, exact_risks
from icl_estimators.experiments.exact import exact_risk
from icl_estimators.experiments.risk import risk_block
from icl_estimators.experiments.study import Study
from icl_estimators.notes import Code, Note
from icl_estimators.sources import ChainLaw
from strange_rules import Foreseeing, Unhappy


@pytest.mark.parametrize(
    ("states", "length", "longest"), [(3, 100, 8), (2, 100, 12), (3, 5, 5), (2, 1, 1), (6, 50, 4), (9000, 3, 1)]
)
def test_as_many_context_lengths_are_exact_as_can_be_enumerated_in_no_time(
    states: int, length: int, longest: int
) -> None:
    assert exact_length(states, length) == longest


def test_every_check_of_a_good_study_is_standard_normal(small: Comparison, rules: tuple[str, ...]) -> None:
    table = small.checks
    counts = table.groupby("check").size().to_dict()
    exact = {f"exact:{metric}": len(rules) * 8 for metric in ("kl_nats", "regret_nats", "p_infinite")}
    foresight = ("next_token", "bayes_bound:log_loss_nats", "bayes_bound:kl_nats")
    assert counts == {"martingale": 13, "mse": len(rules) * 13, **exact} | {name: len(rules) * 13 for name in foresight}
    bound = table.check.isin(foresight[1:])
    assert table[bound].z.min() > -4.5
    table = table[~bound]
    assert table.z.abs().max() < 4.5
    for check, rows in table.groupby("check"):
        # All rows of a check rest on the same draws, so that their mean square is spread like that of one or two.
        assert (rows.z**2).mean() < 4.0, check
    has_z = table.z.notna()
    np.testing.assert_allclose(table.z[has_z], table.estimate[has_z] / table.se[has_z], rtol=1e-12)
    assert (table.note[~has_z] != "").all()


def test_rows_are_differences_from_the_exact_risk(small: Comparison) -> None:
    exact = exact_risk(get("unigram"), 8)
    for metric in ("kl_nats", "regret_nats"):
        rows = small.checks[(small.checks.check == f"exact:{metric}") & (small.checks.estimator == "unigram")]
        risk = small.risk[(small.risk.metric == metric) & (small.risk.estimator == "unigram")][:8]
        found = risk.estimate.to_numpy() - exact.metrics[metric]
        np.testing.assert_allclose(rows.estimate.to_numpy()[:8], found, atol=1e-14)
        assert rows.context_length.tolist() == list(range(1, 9))


def test_both_infinite_is_agreement_and_says_so(small: Comparison) -> None:
    rows = small.checks[(small.checks.check == "exact:kl_nats") & (small.checks.estimator == "construction")]
    assert (rows.note == "both infinite").all()
    assert rows[["estimate", "se", "z"]].isna().all(axis=None)


def test_a_rule_that_is_not_the_one_that_was_run_is_found_out() -> None:
    design = Study((get("unigram"), get("add-one")), length=6, chains=400, decomposition_chains=0)
    moments = risk_block(design, range(400))
    exact = exact_risks(design)
    good = check_table(design, moments, None, exact).frame()
    assert good[~good.check.str.startswith("bayes_bound")].z.abs().max() < 4.5
    swapped = check_table(design, moments, None, {"unigram": exact["add-one"]}).frame()
    assert swapped[swapped.check == "exact:kl_nats"].z.abs().max() > 6
    biased = replace(moments, martingale=moments.risk["add-one", "kl_nats"])
    shifted = check_table(design, biased, None, {}).frame()
    assert shifted[shifted.check == "martingale"].z.abs().max() > 6


def test_infinite_on_one_side_alone_has_no_z_and_says_both() -> None:
    design = Study((get("bigram"), get("add-one")), length=2, chains=60, decomposition_chains=0)
    table = check_table(design, risk_block(design, range(60)), None, {"bigram": exact_risk(get("add-one"), 2)}).frame()
    rows = table[(table.check == "exact:kl_nats") & (table.context_length == 2)]
    assert rows.note.item() == f"exact {exact_risk(get('add-one'), 2).metrics['kl_nats'][1]}, Monte Carlo inf"
    assert np.isnan(rows.z.item())


def test_with_a_stationary_start_there_is_no_exact_posterior_to_check_against() -> None:
    result = compare(["bigram", "add-one"], start="stationary", chains=60, length=3, decomposition_chains=0)
    expected = {
        "check": ["martingale"],
        "estimator": ["bayes"],
        "context_length": ["mean"],
        "note": [Note(Code.NO_POSTERIOR)],
    }
    assert result.checks[list(expected)].to_dict("list") == expected
    assert exact_risks(Study((get("add-one"),), source=ChainLaw(start="stationary"))) == {}


def test_an_estimator_that_fails_on_some_short_prefix_is_found_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("icl_estimators.experiments.plan.risk_block", never)
    with (
        pytest.warns(UserWarning, match="sequences of up to 20 tokens will be asked for"),
        pytest.raises(ContractError, match="unhappy failed on prefixes of 8 tokens: ArithmeticError: not this one"),
    ):
        compare([Unhappy([2, 2, 1, 1, 0, 0, 2, 2], 8), "add-one"], chains=700, length=20, decomposition_chains=0)


def test_a_value_that_does_not_vary_has_no_z() -> None:
    result = compare(["add-one", "uniform"], chains=60, length=2, decomposition_chains=0)
    table = result.checks[(result.checks.check == "exact:regret_nats") & (result.checks.context_length == 1)]
    assert (table.note == "no z: the value does not vary").all()
    assert (table.estimate.abs() < 1e-14).all()
    assert isinstance(table, pd.DataFrame)
    assert checks.exact_length(3, 2) == 2


def checked(rule: object, chains: int = 300, length: int = 12) -> pd.DataFrame:
    design = Study((rule, get("add-one")), length=length, chains=chains, decomposition_chains=0)  # type: ignore[arg-type]
    return check_table(design, risk_block(design, range(chains)), None, {}).frame()


def test_a_log_loss_below_that_of_the_bayes_rule_is_reported() -> None:
    table = checked(Foreseeing(0.05, after=5, spec="add-one"))
    rows = table[(table.estimator == "foreseeing") & (table.check == "bayes_bound:log_loss_nats")]
    rows = rows.set_index("context_length")
    assert rows.loc["mean", "estimate"] < 0
    assert rows.loc["mean", "z"] < -10
    assert rows.loc["mean", "note"].startswith("below that of the Bayes rule, which is impossible for")
    assert (rows.loc[[1, 5], "note"] == "no z: the value does not vary").all()
    assert rows.loc[8, "note"].startswith("below that of the Bayes rule")
    alarms = table[table.check == "saw_the_future"]
    assert set(alarms.estimator) == {"foreseeing"}
    assert alarms.note.str.startswith("the mean log loss is below that of the Bayes rule").any()


def test_a_look_ahead_that_is_still_worse_than_bayes_is_found_by_the_token_that_came() -> None:
    table = checked(Foreseeing(0.02))
    mean = table[(table.estimator == "foreseeing") & (table.context_length == "mean")].set_index("check")
    assert mean.loc["bayes_bound:log_loss_nats", "estimate"] > 0
    # Of the two hundredths that it gives to the token that comes, Bayes expects Σ q² already.
    assert mean.loc["next_token", "z"] > 10
    assert table[table.check == "saw_the_future"].check.count() >= 1


def test_the_excess_over_bayes_is_that_of_the_risk_table(small: Comparison) -> None:
    for metric in ("log_loss_nats", "kl_nats"):
        rows = small.checks[(small.checks.check == f"bayes_bound:{metric}") & (small.checks.estimator == "unigram")]
        differences = small.differences[
            (small.differences.metric == metric) & (small.differences.estimator == "unigram")
        ]
        np.testing.assert_allclose(rows.estimate, differences.difference, atol=1e-12)  # the reference is Bayes here
        np.testing.assert_allclose(rows.se, differences.se, atol=1e-12)


def test_no_honest_rule_is_suspected() -> None:
    found = []
    for seed in range(20):
        rules = tuple(get(spec) for spec in ("bigram", "construction", "add-constant:0.9", "uniform", "add-one"))
        design = Study(rules, length=6, chains=30, sequences_per_chain=2, decomposition_chains=0, seed=seed)
        table = check_table(design, risk_block(design, range(30)), None, {}).frame()
        assert not (table.check == "saw_the_future").any()
        found.append(table[(table.check == "next_token") & (table.context_length == "mean")].set_index("estimator").z)
    z = pd.DataFrame(found)
    assert z["uniform"].isna().all()  # which gives every token the same
    spread = (z.drop(columns="uniform") ** 2).mean()
    assert spread.between(0.4, 1.9).all()  # 20 draws of a χ² with 1 degree of freedom, over 20


def test_the_terminal_says_it_too() -> None:
    rules = (Foreseeing(0.1, after=5, spec="add-one"), get("add-one"))
    design = Study(rules, length=10, chains=100, decomposition_chains=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "exact_risks", lambda study: {})
        text = Comparison.of(module_of_compare.run_study(design)).summary()
    assert "Self-check failed: foreseeing has seen the future. Averaged over n, the mean log loss is below that" in text
    assert "seen the future" not in compare(["unigram"], chains=60, length=5, decomposition_chains=0).summary()
