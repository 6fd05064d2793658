from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from icl_estimators.estimators import DEFAULT_SPECS
from icl_estimators.reporting.style import figure_style, label_line_ends, line_looks


def test_known_estimators_always_look_the_same_and_differ() -> None:
    all_of_them = line_looks(DEFAULT_SPECS)
    assert len(set(all_of_them.values())) == len(DEFAULT_SPECS)
    for name in DEFAULT_SPECS:
        assert line_looks([name, "my:rule"])[name] == all_of_them[name]


def test_unknown_ones_take_what_is_left_and_differ() -> None:
    names = ["transformer", "bigram", *(f"rule-{number}" for number in range(20))]
    looks = line_looks(names)
    assert len({looks[name] for name in names}) == len(names)
    assert looks["rule-0"][0] not in {looks["transformer"][0], looks["bigram"][0]}
    assert list(looks) == names


@pytest.mark.parametrize("count", [1, 8, 32, 100])
def test_any_number_of_lines_has_looks(count: int) -> None:
    assert len(line_looks([f"rule-{number}" for number in range(count)])) == count


def test_the_style_is_left_behind() -> None:
    before = dict(mpl.rcParams)
    with figure_style():
        assert mpl.rcParams["svg.hashsalt"] == "icl-estimators"
        assert not mpl.rcParams["axes.spines.top"]
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("heights", [[1.0, 1.0, 1.0], [1.0, 1.0001, 50.0], [3.0], [1e-9, 1.0, 1.0, 1e3, 1e3, 1e3]])
def test_labels_stand_in_the_lines_order_and_never_overlap(heights: list[float]) -> None:
    axes = Figure().add_subplot()
    axes.set_yscale("log")
    axes.set_ylim(0.1, 100)
    ends = [(1.0, y, f"line {number}", "black") for number, y in enumerate(heights)]
    label_line_ends(axes, ends)
    texts = [(text.xyann[1], text.get_text()) for text in axes.texts]  # type: ignore[attr-defined]
    assert [name for _, name in sorted(texts)] == [f"line {number}" for number in np.argsort(heights, kind="stable")]
    assert (np.diff(sorted(y for y, _ in texts)) > 0.045 - 1e-6).all()


def test_no_lines_have_no_labels() -> None:
    axes = Figure().add_subplot()
    label_line_ends(axes, [])
    assert not axes.texts
