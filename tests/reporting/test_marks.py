"""Marks: what an artist stands for, under an id of its own."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from icl_estimators.reporting.marks import mark, mark_of


def test_a_mark_is_found_again_and_each_has_its_own_id() -> None:
    axes = Figure().add_subplot()
    lines = [axes.plot([1, 2], [3, 4])[0] for _ in range(2)]
    for line in lines:
        assert mark_of(line) is None
        assert mark(line, "add-one (Bayes)", x=[1, 2], estimate=[3, 4]) is line
    assert [line.get_gid() for line in lines] == ["line-add-one-bayes-1", "line-add-one-bayes-2"]
    found = mark_of(lines[0])
    assert found is not None
    assert (found.series, found.kind, list(found.x), found.low) == ("add-one (Bayes)", "line", [1.0, 2.0], None)


def test_what_is_in_no_figure_cannot_be_marked() -> None:
    with pytest.raises(ValueError, match="part of a figure"):
        mark(Line2D([0], [0]), "a")
