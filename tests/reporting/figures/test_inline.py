"""Figures within a page: text is text, colours follow the page, the numbers are those drawn, panels fit a phone."""

from __future__ import annotations

import csv
import html
import json
import re
from urllib.parse import unquote

import numpy as np
import pytest

from icl_estimators.reporting.figures.circuit import circuit_figure
from icl_estimators.reporting.figures.inline import COLUMNS, Drawings, draw_inline
from icl_estimators.reporting.figures.risk import kl_figure
from icl_estimators.reporting.figures.variants import NARROW, linear, make_narrow
from icl_estimators.reporting.results import Results


@pytest.fixture(scope="module")
def drawings(results: Results) -> Drawings:
    drawn = Drawings()
    draw_inline(drawn, "kl", kl_figure(results), "Figure 1", "What it shows")
    draw_inline(drawn, "circuit", circuit_figure(results, "transformer"), "Figure 2", "Matrices")
    return drawn


def test_the_names_of_lines_are_text_that_can_be_found(drawings: Drawings) -> None:
    assert re.search(r"<text[^>]*>transformer</text>", drawings.by_stem["kl"])
    assert re.findall(r'<svg [^>]*class="([^"]*)"', drawings.by_stem["kl"]) == [
        "wide as-is",
        "wide linear",
        "narrow as-is",
        "narrow linear",
    ]


def test_no_id_is_there_twice_and_every_reference_leads_somewhere(drawings: Drawings) -> None:
    text = "".join(drawings.by_stem.values())
    identifiers = re.findall(r' id="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))
    assert {a or b for a, b in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text)} <= set(identifiers)


def test_colours_come_from_the_page_except_those_of_cells(drawings: Drawings) -> None:
    assert not re.search(r'(?:fill|stroke)="#|style="', "".join(drawings.by_stem.values()))
    used = set(re.findall(r"var\(--(\w+)\)", drawings.css()))
    light, dark = (set(re.findall(r"--(\w+):", block)) for block in drawings.css().split("\n")[:2])
    assert used == light == dark


def test_the_csv_has_the_numbers_of_the_table(drawings: Drawings, results: Results) -> None:
    found = re.search(r'href="data:text/csv;charset=utf-8,([^"]*)"', drawings.by_stem["kl"])
    assert found is not None
    header, *rows = csv.reader(unquote(html.unescape(found.group(1))).splitlines())
    assert tuple(header) == COLUMNS
    mine = [row for row in rows if row[1] == "transformer"]
    table = results.curve("risk", "transformer", metric="kl_nats")
    np.testing.assert_allclose([float(row[3]) for row in mine], table["estimate"], rtol=1e-5)
    np.testing.assert_allclose([float(row[4]) for row in mine], table["band_low"], rtol=1e-5)


def test_a_panel_says_where_its_numbers_are(drawings: Drawings) -> None:
    maps = [json.loads(html.unescape(text)) for text in re.findall(r'data-map="([^"]*)"', drawings.by_stem["kl"])]
    assert [(where["x"][0], where["y"][0]) for where in maps] == [("log", "log"), ("log", "linear")] * 2
    left, _, width, _ = maps[0]["box"]
    start, slope = maps[0]["x"][1:]
    assert start == pytest.approx(left, abs=0.1)
    assert start + slope * np.log(24) == pytest.approx(left + width, abs=0.1)
    _, top, _, height = maps[1]["box"]
    assert maps[1]["y"][1] == pytest.approx(top + height, abs=0.1), "linear axes begin at 0"


def test_a_narrow_figure_is_that_of_a_phone_and_its_letters_are_10_pixels(results: Results) -> None:
    from matplotlib.text import Text

    for figure in (kl_figure(results), circuit_figure(results, "transformer")):
        make_narrow(figure)
        assert figure.get_size_inches()[0] == NARROW
        sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text()]
        assert min(sizes) * 96 / 72 >= 10


def test_linear_axes_are_left_as_they_were(results: Results) -> None:
    figure = kl_figure(results)
    axes = figure.axes[0]
    before = axes.get_ylim()
    with linear(figure):
        assert axes.get_yscale() == "linear"
        assert axes.get_ylim()[0] == 0
    assert (axes.get_yscale(), axes.get_ylim()) == ("log", before)
