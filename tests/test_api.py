from __future__ import annotations

import inspect

import pytest

import icl_estimators as icl
from icl_estimators.experiments.study import ChainOptions, StudyOptions


def test_signatures_show_every_option_of_a_study_with_its_default() -> None:
    shown = inspect.signature(icl.compare).parameters
    assert set(shown) == {"estimators", "jobs", "progress", *StudyOptions.__annotations__}
    assert (shown["chains"].default, shown["reference"].default, shown["level"].default) == (2000, "add-one", 0.95)
    assert (shown["states"].default, shown["device"].default, shown["checkpoints"].default) == (3, "cpu", ())
    shown = inspect.signature(icl.effective_smoothing).parameters
    own = {"estimators", "by", "families", "interventions", "jobs", "progress"}
    assert set(shown) == own | set(ChainOptions.__annotations__)


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="'chain' is not an option of a study"):
        icl.compare("bigram", chain=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="reference"):
        icl.effective_smoothing("bigram", reference="bigram")  # type: ignore[call-arg]


def test_warnings_point_at_the_line_that_called() -> None:
    with pytest.warns(UserWarning, match="^left out: transformer") as caught:
        icl.compare(states=5, chains=2, sequences_per_chain=1, length=2, decomposition_chains=0)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_result_shows_itself() -> None:
    result = icl.compare("bigram", chains=3, sequences_per_chain=1, length=2, decomposition_chains=0)
    assert repr(result).startswith("<Comparison: risk (")
    assert result._repr_html_() == f"<pre>{result.summary()}</pre>".replace("'", "&#x27;")
