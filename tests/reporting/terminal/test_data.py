from __future__ import annotations

from icl_estimators.api import compare_observed
from icl_estimators.reporting.terminal.data import data_text
from icl_estimators.sources import elnino


def test_the_summary_of_el_nino_has_its_known_numbers() -> None:
    found = compare_observed(elnino(), "add-one", matrix=[[0.8, 0.2, 0.0], [0.2, 0.7, 0.1], [0.0, 0.2, 0.8]])
    text = data_text(found.records, found.run)
    assert "0.775 [0.722, 0.824]" in text
    assert "by marginal likelihood, the whole history: α = 0.276 [0.0776, 0.741]" in text
    assert "by log loss, the last 100 tokens: β = 0.194 [0.064, 0.59]" in text
    assert "order 0 against 1): G² = 665.88, 4 degrees of freedom, p < 0.0001" in text
    assert "the stated matrix: G² = " in text
    assert text in found.summary()


def test_a_study_of_chains_has_no_such_text() -> None:
    assert data_text({"risk": []}, {"options": {}}) == ""
