"""Figures on disk: the same bytes for the same figure, text as paths, no more digits than the eye has use for."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from icl_estimators.reporting.figures.attention import attention_example_figure
from icl_estimators.reporting.figures.circuit import circuit_figure
from icl_estimators.reporting.figures.risk import kl_figure
from icl_estimators.reporting.figures.saving import figure_format, save_figure, save_figure_as
from icl_estimators.reporting.results import Results
from icl_estimators.validation import InputError


def test_the_same_figure_is_the_same_bytes(results: Results, tmp_path: Path) -> None:
    first, second = (save_figure(kl_figure(results), tmp_path / name / "kl") for name in ("one", "two"))
    assert [path.name for path in first] == ["kl.svg", "kl.pdf"]
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()


def test_svg_is_whole_and_needs_no_font(results: Results, tmp_path: Path) -> None:
    path, _ = save_figure(kl_figure(results), tmp_path / "kl")
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.attrib["width"] == "468pt"  # as wide as the text block of an A4 page
    assert "<text" not in text
    assert "<!--" not in text
    assert not re.search(r' d="[^"]*\.\d\d', text)
    assert max(len(found) for found in re.findall(r"scale\(([^)]*)\)", text)) > 3, "scales keep their digits"


@pytest.mark.slow
def test_nothing_is_cut_off_of_what_is_saved(results: Results, tmp_path: Path) -> None:
    for figure in (attention_example_figure(results, "transformer"), circuit_figure(results, "transformer")):
        save_figure(figure, tmp_path / "figure")
        for axes in figure.axes:
            box = axes.get_tightbbox(FigureCanvasAgg(figure).get_renderer())
            assert box.y1 <= figure.bbox.height + 1
            assert box.x1 <= figure.bbox.width + 1
            assert min(box.x0, box.y0) >= -1


def test_a_name_with_dots_keeps_them(results: Results, tmp_path: Path) -> None:
    paths = save_figure(kl_figure(results), tmp_path / "kl-0.5")
    assert [path.name for path in paths] == ["kl-0.5.svg", "kl-0.5.pdf"]


@pytest.mark.slow
def test_the_ending_says_the_kind_of_file(tmp_path: Path) -> None:
    for kind, begins in (("svg", b"<?xml"), ("PNG", b"\x89PNG"), ("pdf", b"%PDF")):
        files = [tmp_path / f"{name}.{kind}" for name in ("one", "two")]
        for file in files:
            figure = Figure()
            figure.subplots().plot([0, 1])
            save_figure_as(figure, file)
        assert files[0].read_bytes().startswith(begins)
        assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("name", ["one", "one.jpg", "svg", ".svg"])
def test_another_ending_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="has no ending that says how to draw it"):
        figure_format(tmp_path / name)
    with pytest.raises(InputError, match="has no ending that says how to draw it"):
        save_figure_as(Figure(), tmp_path / name)
