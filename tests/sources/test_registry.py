from __future__ import annotations

import pytest

from icl_estimators.sources import SOURCES, ChainLaw, Source, get_source
from icl_estimators.validation import InputError


@pytest.mark.parametrize("name", SOURCES)
def test_every_name_makes_a_source_that_says_its_name(name: str) -> None:
    source = get_source(name, n_states=4, concentration=0.5)
    assert isinstance(source, Source)
    assert (source.spec, source.n_states, source.concentration) == (name, 4, 0.5)


def test_the_default_is_the_dirichlet_source() -> None:
    assert get_source() == ChainLaw()


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("dirichle", "unknown source 'dirichle': choose from dirichlet"),
        ("", "unknown source ''"),
        ("dirichlet:2", "dirichlet takes 0 values after its name, not 1"),
        ("with-value:x", "the value after with-value must be a number"),
    ],
)
def test_a_bad_spec_is_refused(spec: str, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "with-value", f"{__name__}:with_value")
    with pytest.raises(InputError, match=complaint):
        get_source(spec)


def with_value(rate: float, n_states: int = 3) -> ChainLaw:
    return ChainLaw(n_states, rate)


def test_values_are_a_sources_own_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "with-value", f"{__name__}:with_value")
    assert get_source("with-value:0.25", n_states=5, start="uniform") == ChainLaw(5, 0.25)
