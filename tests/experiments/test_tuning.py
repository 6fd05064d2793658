from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.api import compare, effective_smoothing
from icl_estimators.estimators import DEFAULT_SPECS, get
from icl_estimators.estimators.construction import DEFAULT_GAMMA, ConstructionSoftmax
from icl_estimators.exact import main as exact_main
from icl_estimators.experiments.exact import exact_risk
from icl_estimators.experiments.tuning import TUNING_CHAINS, gamma_tuner, tune_gamma
from icl_estimators.sources import ChainLaw, sample_chains
from icl_estimators.validation import InputError


@pytest.mark.parametrize("direct_path", [True, False])
def test_it_finds_the_documented_minimum(direct_path: bool) -> None:
    assert tune_gamma(ChainLaw(), 100, direct_path=direct_path) == pytest.approx(DEFAULT_GAMMA[direct_path], rel=0.03)


@pytest.mark.parametrize("direct_path", [True, False])
@pytest.mark.parametrize("law", [ChainLaw(), ChainLaw(2, 0.5)])
def test_no_other_gamma_has_less_exact_risk(direct_path: bool, law: ChainLaw) -> None:
    def risk(gamma: float) -> float:
        rule = ConstructionSoftmax(law.n_states, gamma, direct_path=direct_path)
        return float(exact_risk(rule, 6, law).metrics["kl_nats"].mean())

    found = tune_gamma(law, 6, direct_path=direct_path)
    best = min(map(risk, found * np.linspace(0.5, 2.0, 31)))
    assert risk(found) < best + 1e-3  # tuned on 2,000 sequences


def test_with_a_stationary_start_it_uses_the_true_rows() -> None:
    gamma = tune_gamma(ChainLaw(start="stationary"), 100, direct_path=False)
    assert gamma == pytest.approx(DEFAULT_GAMMA[False], rel=0.15)


def test_it_is_the_same_every_time_and_has_a_stream_of_its_own() -> None:
    first, again, other = (tune_gamma(ChainLaw(), 20, direct_path=False, seed=seed) for seed in (0, 0, 1))
    assert first == again != other
    options = {"sequences_per_chain": 1, "length": 20}
    tuning, risk = (
        sample_chains(range(TUNING_CHAINS), purpose=purpose, **options).transition for purpose in ("tuning", "risk")
    )
    assert not np.isclose(tuning, risk).all(axis=(1, 2)).any()


OPTIONS = {"chains": 20, "length": 12, "decomposition_chains": 0}
TUNED = ["construction-softmax:tuned", "construction-softmax:tuned:direct_path=false"]


@pytest.mark.slow
def test_a_tuned_gamma_is_part_of_the_name_and_the_name_is_a_spec_of_the_same_estimator() -> None:
    result = compare([*TUNED, "add-one"], **OPTIONS)
    expected = {
        get(spec, tune=gamma_tuner(ChainLaw(), 12)).name: tune_gamma(ChainLaw(), 12, direct_path=direct)
        for spec, direct in zip(TUNED, (True, False), strict=True)
    }
    assert result.run["tuned_gamma"] == result.run["gamma"] == expected
    assert result.run["default_gamma"] == {}
    assert result.run["options"]["estimators"] == [*expected, "add-one"]
    for name, gamma in expected.items():
        assert f"{gamma:g}" in name
        assert get(name).gamma == gamma  # type: ignore[attr-defined]
        assert f"{name}: γ tuned to this law and length" in result.summary()
    given = compare([*expected, "add-one"], **OPTIONS)
    assert given.run["tuned_gamma"] == {}
    assert given.run["gamma"] == expected
    assert given.risk.equals(result.risk)


def test_the_plain_name_stands_for_one_gamma_whatever_the_chains() -> None:
    for options in ({}, {"length": 6}, {"states": 4, "concentration": 0.5, "seed": 3}):
        result = compare(["construction-softmax", "add-one"], **(OPTIONS | options))
        assert result.run["gamma"] == result.run["default_gamma"] == {"construction-softmax": DEFAULT_GAMMA[True]}
        assert result.run["tuned_gamma"] == {}
        assert f"construction-softmax: γ = {DEFAULT_GAMMA[True]}, the default" in result.summary()


def test_every_command_finds_the_same_gamma_for_a_law_and_a_length(capsys: pytest.CaptureFixture[str]) -> None:
    specs = ",".join(TUNED)
    assert exact_main(["--context-length", "6", "--csv", "--estimators", specs]) == 0
    out = capsys.readouterr().out
    exact = list(dict.fromkeys(line.split(",")[0] for line in out.splitlines()[1:]))
    options = {"chains": 20, "length": 6, "seed": 9}
    studies = [
        compare(specs, decomposition_chains=0, **options),
        effective_smoothing(specs, by=["overall"], families=[], **options),
    ]
    for study in studies:
        assert study.run["options"]["estimators"] == [*exact, "add-one"]
        assert list(study.run["tuned_gamma"]) == exact


@pytest.mark.slow
def test_exact_and_monte_carlo_agree_on_an_estimator_of_one_name() -> None:
    result = compare([*TUNED, "construction-softmax", "add-one"], **(OPTIONS | {"length": 6, "chains": 4000}))
    for name in result.run["gamma"]:
        row = result.risk.query("estimator == @name and metric == 'regret_nats' and context_length == 6").iloc[0]
        exact = exact_risk(get(name), 6).metrics["regret_nats"][-1]
        assert abs(row.estimate - exact) < 4 * row.se
        assert row.se < 0.001


def test_the_default_list_is_tuned_where_chains_have_a_law_and_says_its_numbers_elsewhere() -> None:
    study = compare(length=6, chains=20, decomposition_chains=0)
    assert len(study.run["tuned_gamma"]) == 2
    assert study.run["default_gamma"] == {}
    softmax = [get(spec) for spec in DEFAULT_SPECS if spec.startswith("construction-softmax")]
    assert {rule.direct_path: rule.gamma for rule in softmax} == DEFAULT_GAMMA  # type: ignore[attr-defined]
    assert [rule.gamma_from for rule in softmax] == ["given", "given"]  # type: ignore[attr-defined]


def test_without_a_law_there_is_nothing_to_tune_to() -> None:
    with pytest.raises(InputError, match="construction-softmax:tuned needs chains and a length to tune γ on"):
        get("construction-softmax:tuned")
    with pytest.raises(InputError, match="unknown option 'tune'"):
        get("construction-softmax:tune=3")
    with pytest.raises(InputError, match="length must be an integer of at least 1, not 0"):
        gamma_tuner(ChainLaw(), 0)


def test_the_end_of_the_search_is_no_estimate() -> None:
    assert tune_gamma(ChainLaw(), 1, direct_path=False) == 0.0  # after one token the uniform rule is Bayes
    rule = get("construction-softmax:tuned", tune=gamma_tuner(ChainLaw(), 1))
    assert rule.name == "construction-softmax:0"
    assert get(rule.name).predict_proba([[0]]).tolist() == [[[1 / 3] * 3]]
