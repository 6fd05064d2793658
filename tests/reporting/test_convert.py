"""Markdown to HTML and PDF: nothing fetched, tagged without a warning, long tables whole, odd labels as they are."""

from __future__ import annotations

import html
import importlib.util
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from pypdf import PdfReader

from icl_estimators.reporting import convert
from icl_estimators.reporting.build import write_report
from icl_estimators.reporting.convert import missing_packages, require_packages
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import spell
from icl_estimators.reporting.style import figure_style
from icl_estimators.validation import InputError

LABELS = [
    "a|b",
    "$x$",
    "*s*",
    "<b>",
    "ü",
    "n" * 60,
    "a_b",
    "`t`",
    "[x](y)",
    "@who",
    "\\alpha",
    "#1",
    "x^2^",
    "it's -- so",
]
NUMBERS = {float("inf"): "inf", float("nan"): "–", -0.0: "0.0000", 1e-12: "1.0e−12", -0.5: "−0.5000"}


def small_page(rows: int = 3) -> Page:
    """Make a page with a formula, a figure, odd labels everywhere and a table of so many rows."""
    with figure_style():
        figure = Figure(figsize=(6.5, 2.0))
        figure.add_subplot().plot([0, 1], [0, 1])
    page = Page()
    page.text("# A report")
    page.heading("First", "first")
    page.text("A formula, $\\hat p_w = \\frac{n_{vw} + 1}{n_v + K}$, a citation [@heskes1998], {fig:line}, {tbl:long}.")
    page.text("```sh\npython -m something --out 'a b'\n```")
    page.figure("line", figure, f"A line: {escape(LABELS[0])}.", 'A rising line, "a|b", <b>')
    cells = [[escape(label), code(label), spell(value)] for label, value in zip(LABELS, [*NUMBERS] * 3, strict=False)]
    cells += [[f"row {i} of many", "x", str(i)] for i in range(rows)]
    page.table("long", ["label", "as code", "number"], cells, "Odd labels.", left=2)
    page.heading("References", "references")
    page.text("::: {#refs}\n:::")
    return page


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    write_report(small_page(200), "A title with <b> & ü", folder / "report.md", ("html", "pdf"))
    return folder


@pytest.fixture(scope="module")
def page(built: Path) -> str:
    return (built / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pdf(built: Path) -> Iterator[PdfReader]:
    with open(built / "report.pdf", "rb") as file:
        yield PdfReader(file)


class Tags(HTMLParser):
    """Collect (tag, attributes) and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def of(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in names]


def test_nothing_is_fetched(page: str) -> None:
    tags = Tags(page)
    for attributes in tags.of("img", "script", "source", "iframe", "audio", "video", "object", "embed"):
        assert (attributes.get("src") or "data:").startswith("data:")
    assert not tags.of("link", "base")
    assert "@import" not in page
    assert not re.findall(r"url\((?!['\"]?(?:data:|#))", page)
    for a in tags.of("a"):
        assert (a.get("href") or "").startswith(("#", "https://doi.org", "data:text/csv", "figures/line.svg"))


def test_the_page_says_what_it_is(page: str) -> None:
    tags = Tags(page)
    assert tags.of("html")[0]["lang"] == "en"
    assert "<title>A title with &lt;b&gt; &amp; ü</title>" in page
    assert any(meta.get("name") == "viewport" for meta in tags.of("meta"))
    assert len(tags.of("h1")) == len(tags.of("main")) == 1
    assert tags.of("math")


def test_figures_say_what_they_show(page: str) -> None:
    tags = Tags(page)
    assert not tags.of("img")
    drawings = tags.of("svg")
    assert [drawing["class"] for drawing in drawings] == ["wide as-is", "narrow as-is"]
    identifiers = {attributes.get("id") for _, attributes in tags.tags}
    for drawing in drawings:
        assert drawing["role"] == "img"
        assert {drawing["aria-labelledby"], drawing["aria-describedby"]} <= identifiers
    assert html.unescape(page).count('A rising line, "a|b", <b></desc>') == 2
    assert "<text" in page, "its words are text"


def test_headings_of_rows_and_columns_say_so(page: str) -> None:
    cells = Tags(page).of("th")
    assert {cell["scope"] for cell in cells} == {"col", "row"}
    assert len([cell for cell in cells if cell["scope"] == "col"]) == 3


def test_commands_can_be_reached_and_scroll_alone(page: str) -> None:
    (region,) = Tags(page).of("pre")
    assert (region["tabindex"], region["role"], region["aria-label"]) == ("0", "region", "Command 1")


def test_tables_can_be_reached_and_scroll_alone(page: str) -> None:
    (region,) = [a for a in Tags(page).of("div") if a.get("class") == "table-wrap"]
    assert region["tabindex"] == "0"
    assert region["role"] == "region"
    assert region["aria-label"] == "Table 1"
    assert "aria-sort" in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_links_lead_somewhere(page: str) -> None:
    tags = Tags(page)
    identifiers = {attributes.get("id") for _, attributes in tags.tags}
    for a in tags.of("a"):
        if (a.get("href") or "").startswith("#"):
            assert str(a["href"])[1:] in identifiers


@pytest.mark.parametrize("label", LABELS)
def test_labels_come_out_right_in_the_page(page: str, label: str) -> None:
    assert re.search(rf'<th [^>]*scope="row"[^>]*>{re.escape(label)}</th>', html.unescape(page))
    assert f"<code>{label}</code>" in html.unescape(page)


@pytest.mark.parametrize("shown", NUMBERS.values())
def test_numbers_come_out_right_in_both(page: str, pdf: PdfReader, shown: str) -> None:
    assert f">{shown}</td>" in page
    assert shown in pdf.pages[0].extract_text() + pdf.pages[1].extract_text()


@pytest.mark.parametrize("label", LABELS)
def test_labels_come_out_right_in_print(pdf: PdfReader, label: str) -> None:
    text = pdf.pages[0].extract_text() + pdf.pages[1].extract_text()
    flat = re.sub(r"[\s\u200b]", "", text)
    assert flat.count(re.sub(r"\s", "", label)) >= 2, "in text and as code"


def test_the_pdf_is_tagged(pdf: PdfReader) -> None:
    root = pdf.trailer["/Root"].get_object()
    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"] == "en"
    assert b"pdfuaid:part" in root["/Metadata"].get_object().get_data()
    assert pdf.metadata is not None
    assert pdf.metadata.title == "A title with <b> & ü"


def test_a_long_table_breaks_over_pages_and_loses_no_row(pdf: PdfReader) -> None:
    found: dict[int, tuple[int, float]] = {}

    def visit(number: int, text: str, matrix: list[float]) -> None:
        for row in re.findall(r"row (\d+) of many", text):
            found[int(row)] = (number, matrix[5])

    for number, page in enumerate(pdf.pages):
        page.extract_text(visitor_text=lambda text, cm, tm, font, size, n=number: visit(n, text, tm))
        for row in re.findall(r"row (\d+) of many", page.extract_text()):
            found.setdefault(int(row), (number, float("nan")))
    assert sorted(found) == list(range(200))
    assert len({number for number, _ in found.values()}) >= 3, "the rows lie on several pages"
    assert len(pdf.pages) >= 4


def test_running_heads(pdf: PdfReader) -> None:
    for page in list(pdf.pages)[1:]:
        text = page.extract_text()
        assert text.startswith("A title with <b> & ü")
        assert "First" in text.split("\n")[0] + text.split("\n")[1]


def test_a_missing_alt_text_would_be_found(tmp_path: Path) -> None:
    """The standard's check is on: an image without a description does not compile."""
    import typst

    (tmp_path / "dot.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', encoding="utf-8"
    )
    source = '#set document(title: "T")\n#set text(lang: "en")\n= T\n#image("dot.svg")'
    with pytest.raises(typst.TypstError, match="alt"):
        convert._compile(source, tmp_path, [], only_ours=True, tagged=True)
    assert [path.name for path in tmp_path.iterdir()] == ["dot.svg"], "no scratch file is left"


def test_letters_that_no_font_has_do_not_stop_the_pdf(tmp_path: Path) -> None:
    page = Page()
    page.text("# A report")
    page.heading("Odd letters", "odd")
    page.text("A tag character: \U000e0041\U0010fffd.")
    (_, path) = write_report(page, "T", tmp_path / "report.md", ("pdf",))
    assert path.read_bytes().startswith(b"%PDF")


def test_the_same_page_is_the_same_bytes(built: Path, tmp_path: Path) -> None:
    for path in write_report(small_page(200), "A title with <b> & ü", tmp_path / "report.md", ("html", "pdf")):
        assert path.read_bytes() == (built / path.relative_to(tmp_path)).read_bytes(), path.name


def test_what_is_missing_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_packages(["html", "pdf"]) == []
    require_packages(["html", "pdf"])
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("pypandoc", "typst") else find(name))
    assert missing_packages(["html"]) == ["pypandoc_binary"]
    assert missing_packages(["html", "pdf"]) == ["pypandoc_binary", "typst"]
    with pytest.raises(InputError, match=r"needs pypandoc_binary and typst: pip install 'icl-estimators\[report\]'$"):
        require_packages(["html", "pdf"])
    require_packages([])


@pytest.mark.slow
def test_pandoc_and_typst_are_loaded_on_use() -> None:
    code = "import icl_estimators.reporting.build, sys; print({'pypandoc', 'typst'} & set(sys.modules))"
    import subprocess

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "set()"
