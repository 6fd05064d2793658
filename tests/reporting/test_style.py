"""The look of figures: the same for an estimator wherever it is drawn, readable, without the user's own settings."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from icl_estimators.reporting.style import (
    DARK_GROUND,
    LIGHT_GROUND,
    LineEnd,
    contrast,
    figure_style,
    heat_map,
    label_line_ends,
    line_looks,
    on_dark,
    on_light,
    plain_log_axis,
    readable,
    wrap_name,
)

DEFAULTS = (
    "transformer",
    "construction",
    "construction-softmax",
    "construction-softmax:direct_path=false",
    "bigram",
    "add-one",
    "unigram",
    "uniform",
)


def test_an_estimator_looks_the_same_in_any_company() -> None:
    everyone = line_looks(DEFAULTS)
    for name in DEFAULTS:
        assert line_looks([name, "mine"])[name] == everyone[name]


def test_a_construction_looks_the_same_whatever_its_gamma() -> None:
    for name in ("construction-softmax", "construction-softmax:direct_path=false"):
        head, colon, rest = name.partition(":")
        numbered = f"{head}:0.3246{colon}{rest}"
        other = f"{head}:2{colon}{rest}"
        families = dict.fromkeys([numbered, name, other], name)
        assert line_looks([numbered], families)[numbered] == line_looks([name])[name]
        looks = line_looks([numbered, name, other], families)
        assert looks[name] == line_looks([name])[name]
        assert len(set(looks.values())) == 3


def test_no_two_estimators_look_the_same() -> None:
    names = [*DEFAULTS, *(f"mine-{i}" for i in range(6))]
    looks = line_looks(names)
    assert len({looks[name] for name in names}) == len(names)


@pytest.mark.parametrize("count", [1, 8, 32, 100])
def test_any_number_of_lines_has_looks(count: int) -> None:
    assert len(line_looks([f"rule-{number}" for number in range(count)])) == count


@pytest.mark.parametrize("name", DEFAULTS)
def test_names_on_lines_have_enough_contrast(name: str) -> None:
    rgb = np.array(to_rgb(readable(line_looks([name])[name].colour)))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) > 4.4


def test_the_users_settings_are_left_alone_and_have_no_say() -> None:
    with mpl.rc_context({"lines.linewidth": 9.0, "axes.grid": False}):
        with figure_style():
            assert mpl.rcParams["lines.linewidth"] == 1.6
            assert mpl.rcParams["axes.grid"]
        assert mpl.rcParams["lines.linewidth"] == 9.0


@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0], [1.0, 1.01, 5.0], [0.1, 9.0, 9.0, 9.0], np.linspace(1, 2, 9)])
def test_labels_do_not_overlap(values: list[float]) -> None:
    with figure_style():
        figure = Figure(figsize=(5, 3))
        axes = figure.add_subplot()
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 10)
        names = ["construction-softmax:direct_path=false", *(f"line {i}" for i in range(len(values) - 1))]
        label_line_ends(axes, [LineEnd(1, y, name, "#000000") for y, name in zip(values, names, strict=True)])
        figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == len(values)
    for a, b in itertools.combinations(boxes, 2):
        assert a.y1 <= b.y0 + 0.5 or b.y1 <= a.y0 + 0.5
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in boxes), "a label is cut off"


@pytest.mark.parametrize("heights", [[1.0, 1.0, 1.0], [1.0, 1.0001, 50.0], [3.0], [1e-9, 1.0, 1.0, 1e3, 1e3, 1e3]])
def test_labels_stand_in_the_lines_order(heights: list[float]) -> None:
    axes = Figure().add_subplot()
    axes.set_yscale("log")
    axes.set_ylim(0.1, 100)
    label_line_ends(axes, [LineEnd(1.0, y, f"line {number}", "black") for number, y in enumerate(heights)])
    texts = [(text.get_position()[1], text.get_text()) for text in axes.texts]
    assert [name for _, name in sorted(texts)] == [f"line {number}" for number in np.argsort(heights, kind="stable")]


def test_no_lines_have_no_labels() -> None:
    axes = Figure().add_subplot()
    label_line_ends(axes, [])
    assert not axes.texts


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("add-one (Bayes)", ["add-one (Bayes)"]),
        ("construction (where finite)", ["construction", "(where finite)"]),
        ("x" * 60, ["x" * 22, "x" * 22, "x" * 16]),
        ("a-rather-long-name:with=an-option", ["a-rather-long-name", ":with=an-option"]),
    ],
)
def test_long_names_are_wrapped_and_whole(name: str, lines: list[str]) -> None:
    assert wrap_name(name).split("\n") == lines
    assert wrap_name(name).replace("\n", "").replace(" ", "") == name.replace(" ", "")


def test_log_axes_have_plain_numbers() -> None:
    with figure_style():
        axes = Figure().add_subplot()
        axes.set_xscale("log")
        axes.set_xlim(1, 100)
        plain_log_axis(axes.xaxis)
        labels = [label.get_text() for label in axes.get_xticklabels()]
    assert [label for label in labels if 1 <= float(label) <= 100] == ["1", "2", "5", "10", "20", "50", "100"]


def test_a_heat_map_has_its_first_row_on_top_and_nothing_where_undefined() -> None:
    values = np.array([[1.0, np.nan], [0.5, 0.25]])
    with figure_style():
        axes = Figure().add_subplot()
        mesh = heat_map(axes, values, "Blues", 0.0, 1.0)
    np.testing.assert_array_equal(mesh.get_array().mask, np.isnan(values))
    assert axes.get_ylim() == (2, 0)
    assert mesh.get_clim() == (0.0, 1.0)


@pytest.mark.parametrize("name", [*DEFAULTS, *(f"mine-{i}" for i in range(8))])
def test_lines_and_their_names_stand_out_on_either_page(name: str) -> None:
    colour = line_looks([*DEFAULTS, *(f"mine-{i}" for i in range(8))])[name].colour
    assert contrast(on_light(colour), LIGHT_GROUND) >= 3
    assert contrast(on_dark(colour), DARK_GROUND) >= 3
    assert contrast(on_light(readable(colour), 4.5), LIGHT_GROUND) >= 4.5
    assert contrast(on_dark(readable(colour), 4.5), DARK_GROUND) >= 4.5
