"""The methods say which read-out scale each construction used, and which were tuned."""

from __future__ import annotations

from dataclasses import replace

from icl_estimators.reporting.results import Results
from icl_estimators.reporting.sections.design import _gamma
from icl_estimators.reporting.sections.mechanism import _scales


def test_a_default_gamma_is_told_with_its_number(results: Results) -> None:
    assert results.run["gamma"] == {"construction-softmax": 0.645}
    assert _gamma(results) == " Read-out scales γ: construction-softmax 0.645."


def test_tuned_ones_are_told_apart(results: Results) -> None:
    used = {"construction-softmax": 0.645, "a:0.3246": 0.3246, "b:0.8037": 0.8037}
    tuned = {name: used[name] for name in ("a:0.3246", "b:0.8037")}
    text = _gamma(replace(results, run={**results.run, "gamma": used, "tuned_gamma": tuned}))
    assert "a:0.3246 0.3246" in text
    assert text.endswith("Of these, a:0.3246 and b:0.8037 were tuned to this law and length, on separate chains.")
    assert _gamma(replace(results, run={**results.run, "gamma": {}, "tuned_gamma": {}})) == ""


def test_the_nearest_construction_has_a_scale_for_each_matrix(results: Results) -> None:
    text = _scales(results, "transformer")
    fitted = results.run["nearest_construction"]["transformer"]
    assert f"β = {fitted['beta_r1']:.2f} in layer 1" in text
    assert f"β = {fitted['beta']:.2f} in layer 2" in text
