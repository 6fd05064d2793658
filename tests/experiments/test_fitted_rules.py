from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators import family_of, get
from icl_estimators.experiments.fitted_rules import fit_rules
from icl_estimators.sources import ChainLaw
from icl_estimators.sources.streams import Purpose


def named(spec: str, length: int = 15) -> dict[str | None, dict[str, float]]:
    found = fit_rules(ChainLaw(), length, 0, [get(spec)])
    return {family_of(rule): given for rule, given in zip(found.rules, found.parameters, strict=True)}


@pytest.mark.parametrize(
    ("spec", "family", "value"),
    [
        ("add-constant:0.37", "add-constant", {"alpha": 0.37}),
        ("construction-softmax:1.7", "construction-softmax", {"gamma": 1.7}),
        ("construction-softmax:2.4:direct_path=false", "construction-softmax:direct_path=false", {"gamma": 2.4}),
        ("recency:0.8", "recency", {"decay": 0.8}),
    ],
)
def test_a_rule_is_found_again(spec: str, family: str, value: dict[str, float]) -> None:
    assert named(spec)[family] == pytest.approx(value, rel=1e-3)


@pytest.mark.slow
def test_a_parameter_at_the_end_of_its_range_is_no_rule() -> None:
    assert "add-constant" not in named("bigram")
    assert "recency" not in named("add-one")
    assert named("uniform") == {}


@pytest.mark.slow
def test_runs_of_a_recipe_are_fitted_together() -> None:
    low, high = get("add-constant:0.5"), get("add-constant:2")
    both = fit_rules(ChainLaw(), 15, 0, [low, high], ["a", "b", "recipe"])
    alone = [fit_rules(ChainLaw(), 15, 0, [rule]).parameters[0]["alpha"] for rule in (low, high)]
    assert alone[0] < both.parameters[0]["alpha"] < alone[1]
    assert both.subjects == ("a", "b", "recipe")
    assert both.record()[0]["spec"] == both.rules[0].name


def test_the_chains_are_used_for_nothing_else() -> None:
    def drawn(purpose: Purpose) -> np.ndarray:
        return ChainLaw().sample(range(3), sequences_per_chain=1, length=9, seed=0, purpose=purpose).inputs

    others: tuple[Purpose, ...] = ("risk", "tuning", "smoothing", "decomposition")
    assert not any(np.array_equal(drawn("fitting"), drawn(purpose)) for purpose in others)
