from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.chains import ChainLaw, sample_chains
from icl_estimators.estimators.construction import DEFAULT_GAMMA, ConstructionSoftmax
from icl_estimators.experiments.compare import compare
from icl_estimators.experiments.exact import exact_risk
from icl_estimators.experiments.tuning import TUNING_CHAINS, tune_gamma


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


def test_a_study_tunes_what_was_not_given_and_says_so() -> None:
    names = ["construction-softmax", "construction-softmax:direct_path=false", "construction-softmax:2"]
    options = {"chains": 20, "length": 12, "decomposition_chains": 0, "seed": 7}
    result = compare([*names, "add-one"], **options)
    expected = {name: tune_gamma(ChainLaw(), 12, direct_path=not name.endswith("false"), seed=7) for name in names[:2]}
    assert result.run["tuned_gamma"] == expected
    assert result.run["options"]["estimators"] == [*names, "add-one"]
    given = compare([f"construction-softmax:{expected[names[0]]!r}", "add-one"], **options)
    tuned, same = (r.risk[r.risk.estimator.str.startswith("construction-softmax")] for r in (result, given))
    np.testing.assert_array_equal(tuned.estimate[: len(same)], same.estimate)
    assert given.run["tuned_gamma"] == {}
