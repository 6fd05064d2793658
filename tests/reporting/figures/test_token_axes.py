from __future__ import annotations

from matplotlib.figure import Figure

from icl_estimators.reporting.figures.token_axes import token_axes


def test_every_so_many_tokens_are_written_as_they_are() -> None:
    axes = Figure().subplots()
    token_axes(axes, ["$a$", "b", "c", "$d$", "e"], size=7, every=3)
    for ticks, text in ((axes.get_xticks(), axes.get_xticklabels()), (axes.get_yticks(), axes.get_yticklabels())):
        assert list(ticks) == [0.5, 3.5]
        assert [label.get_text() for label in text] == ["$a$", "$d$"]
        assert not any(label.get_parse_math() for label in text)
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {90.0}
