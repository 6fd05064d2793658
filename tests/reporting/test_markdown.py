"""The Markdown of a report: labels read as they are, pieces numbered, references filled in."""

from __future__ import annotations

import pypandoc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from icl_estimators.reporting.markdown import MARKDOWN, Page, code, escape, prose

LABELS = [
    "a|b",
    "$x$",
    "*s*",
    "_s_",
    "<b>",
    "ü",
    "x" * 60,
    "inf",
    "NaN",
    "−0.0",
    "1e-12",
    "`tick`",
    "a\\b",
    "[link](there)",
    "![image](there)",
    "@nobody",
    "[@nobody]",
    "# 1",
    "~~gone~~",
    "H~2~O^2^",
    "&amp;",
    "<!-- gone -->",
    "{.class}",
    '"quoted"',
    "it's -- so...",
    "https://example.org",
    "{fig:kl}",
]


def plain(markdown: str) -> str:
    return pypandoc.convert_text(markdown, "plain", format=MARKDOWN, extra_args=["--wrap=none"]).strip()


@pytest.mark.parametrize("label", LABELS)
def test_a_label_in_text_reads_as_it_is(label: str) -> None:
    assert plain(f"Label {escape(label)} here.") == f"Label {label} here."


@pytest.mark.parametrize("label", LABELS)
def test_a_label_as_code_reads_as_it_is(label: str) -> None:
    html = pypandoc.convert_text(f"x {code(label)} y", "json", format=MARKDOWN)
    assert f'"{label}"'.replace("\\", "\\\\").replace('"quoted"', '\\"quoted\\"') in html


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12))
def test_nothing_is_markup_after_escaping(label: str) -> None:
    escaped = escape(label)
    assert escaped.replace("\\\\", "\0").replace("\\", "").replace("\0", "\\") == label


def test_a_label_is_on_one_line() -> None:
    assert escape("a\n\n b") == "a b"
    assert code("a\n b") == "`a b`"


def test_prose_keeps_its_code_and_its_spaces() -> None:
    assert prose("n, or `mean`: |x|") == "n, or `mean`: \\|x\\|"


def test_pieces_are_numbered_in_order_and_referred_to_before_and_after() -> None:
    page = Page()
    page.text("See {fig:two} and {tbl:one}.")
    page.figure("one", Figure(), "First.", "an alt text")
    page.figure("two", Figure(), "Second.", 'with "quotes" & <b>')
    page.table("one", ["a", "b"], [["x", "1"]], "A table.")
    page.text("Again {fig:one}.")
    text = page.markdown()
    assert "See [Figure 2](#fig-two) and [Table 1](#tbl-one)." in text
    assert "Again [Figure 1](#fig-one)." in text
    assert '![Figure 1. First.](figures/one.svg){#fig-one alt="an alt text"}' in text
    assert ": Table 1. A table. {#tbl-one}" in text
    assert [picture.stem for picture in page.pictures] == ["one", "two"]
    html = pypandoc.convert_text(text, "html5", format=MARKDOWN)
    assert 'alt="with &quot;quotes&quot; &amp; &lt;b&gt;"' in html


def test_a_reference_to_nothing_is_an_error() -> None:
    page = Page()
    page.text("See {fig:nothing}.")
    with pytest.raises(KeyError):
        page.markdown()


def test_two_pieces_of_one_name_are_an_error() -> None:
    page = Page()
    page.table("one", ["a"], [["x"]], "")
    with pytest.raises(ValueError, match="tbl-one"):
        page.table("one", ["a"], [["x"]], "")


def test_a_table_is_aligned_so_that_it_reads_without_pandoc() -> None:
    page = Page()
    page.table("one", ["rule", "KL"], [["bigram", "inf"], ["ü", "0.1"]], "Caption.")
    lines = page.markdown().split("\n")
    assert lines[:4] == [
        "| rule   |  KL |",
        "| :----- | --: |",
        "| bigram | inf |",
        "| ü      | 0.1 |",
    ]


def test_an_equation_stays_on_one_line() -> None:
    page = Page()
    page.text("at n = 100, K = 3, mean = 4")
    assert (
        page.markdown()
        == "at n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}100, K\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}3, mean = 4\n"
    )
