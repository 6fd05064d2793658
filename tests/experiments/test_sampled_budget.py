from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators import get
from icl_estimators.experiments.regret_budget import PARTS, exact_budget
from icl_estimators.experiments.sampled_budget import sampled_budget
from icl_estimators.sources import ChainLaw
from icl_estimators.validation import InputError


def z_scores(spec: str, n: int, seeds: range, chains: int) -> dict[str, list[float]]:
    """Return how many standard errors each part is from the exact one, by seed, where it varies."""
    exact = exact_budget(get(spec), n)
    truth = {"regret": exact.regret, **exact.parts}
    scores: dict[str, list[float]] = {}
    for seed in seeds:
        found = sampled_budget(get(spec), n, chains=chains, reorderings=5, seed=seed)
        for part, value in truth.items():
            if found.se[part] > 1e-9:
                scores.setdefault(part, []).append((found.estimates[part] - value) / found.se[part])
    return scores


@pytest.mark.parametrize("spec", ["unigram", "construction-softmax:2.2:direct_path=false"])
def test_it_agrees_with_enumeration(spec: str) -> None:
    for part, scores in z_scores(spec, 5, range(4), chains=2000).items():
        assert np.abs(scores).max() < 4.5, part


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "n"), [("unigram", 6), ("transformer", 6), ("transformer", 10)])
def test_its_errors_are_standard_normal_over_forty_seeds(spec: str, n: int) -> None:
    for part, scores in z_scores(spec, n, range(40), chains=4000).items():
        z = np.array(scores)
        # A t with 19 degrees of freedom has standard deviation 1.06.
        # A part that is 0 is a degenerate U-statistic: the jackknife's variance is then twice too large (Efron & Stein
        # 1981), and the z-scores have standard deviation 0.71.
        assert abs(z.mean()) < 4.0 / np.sqrt(len(z)), part
        assert 0.55 < z.std() < 1.4, part


def test_parts_sum_to_the_regret_and_intervals_lie_around_them() -> None:
    budget = sampled_budget(get("unigram"), 12, chains=1000, seed=3)
    assert sum(budget.estimates[part] for part in PARTS) == pytest.approx(budget.estimates["regret"], abs=1e-12)
    for part, value in budget.estimates.items():
        assert budget.low[part] <= value <= budget.high[part]
    assert 0.5 < budget.covered < 1.0


def test_what_a_rule_does_not_depend_on_is_0() -> None:
    budget = sampled_budget(get("add-constant:3"), 10, chains=400)
    for part in PARTS[:5]:
        assert budget.estimates[part] == pytest.approx(0.0, abs=1e-12)
    assert budget.estimates["amount"] == pytest.approx(budget.estimates["regret"], abs=1e-12)
    assert max(map(abs, sampled_budget(get("add-one"), 10, chains=400).estimates.values())) < 1e-12


def test_an_infinite_regret_is_not_divided() -> None:
    budget = sampled_budget(get("bigram"), 6, chains=400)
    assert budget.estimates["regret"] == np.inf
    assert np.isnan([budget.estimates[part] for part in PARTS]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, "length"),
        ({"chains": 5}, "chains"),
        ({"reorderings": 0}, "reorderings"),
        ({"groups": 1}, "groups"),
        ({"level": 1.0}, "level"),
        ({"seed": -1}, "seed"),
        ({"law": ChainLaw(start="stationary")}, "start='uniform'"),
        ({"law": ChainLaw(4)}, "is for 3 states, the chains have 4"),
    ],
)
def test_bad_input_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sampled_budget(get("add-one"), **{"length": 5, **options})  # type: ignore[arg-type]
