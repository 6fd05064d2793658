"""The report of a study: from its tables alone, the same bytes twice, and only what its tables tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from icl_estimators.reporting.build import build_report, remove_report, report_page
from icl_estimators.reporting.results import Results, read_results
from icl_estimators.validation import InputError

HEADINGS = [
    "answer",
    "rules",
    "distance",
    "likeness",
    "budget",
    "design",
    "kl",
    "regret",
    "infinite",
    "differences",
    "pairs",
    "smoothing",
    "entropy",
    "decomposition",
    "signed-bias",
    "attention",
    "circuit",
    "read-out",
    "training",
    "checks",
    "provenance",
    "definitions",
    "references",
]


def headings(markdown: str) -> list[str]:
    return re.findall(r"^## .*\{#(.*)\}$", markdown, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def report(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the whole report once, in a folder that holds the tables alone."""
    folder = tmp_path_factory.mktemp("report")
    for path in pristine.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    build_report(folder)
    return folder


def test_every_section_is_there_in_order(pristine: Path) -> None:
    assert headings(report_page(read_results(pristine))[1].markdown()) == HEADINGS


@pytest.mark.slow
def test_the_answer_is_at_the_top(report: Path) -> None:
    text = (report / "report.md").read_text(encoding="utf-8")
    first = text[: text.index("{#rules}")]
    assert first.count("\n- **") == 4
    assert "figures/forest.svg" in first
    for sentence in re.findall(r"^- (.*)$", first, flags=re.MULTILINE):
        plain = re.sub(r"\[[^]]*\]|n.=.\d+|(?:α|γ|d).=.[\d.]+", "", sentence)  # intervals, places and names of rules
        assert len(re.findall(r"\d+(?:\.\d+)?", plain)) <= 5, sentence
    assert "| add-one (Bayes)" in text[: text.index("{#design}")]


@pytest.mark.slow
def test_html_is_small_and_has_every_figure(report: Path) -> None:
    page = (report / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 2_000_000
    figures = sorted(path.stem for path in (report / "figures").glob("*.svg"))
    assert len(figures) == 19
    assert "<img" not in page
    assert "[[drawing" not in page
    assert page.count('<div class="plot"') == 19
    assert all(page.count(f'id="{stem}-wa-t"') == page.count(f'id="{stem}-na-t"') == 1 for stem in figures)
    assert "{fig:" not in page
    assert "{tbl:" not in page
    identifiers = re.findall(r'\sid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers)), "no id is there twice"
    assert all(len(alt) > 60 for alt in re.findall(r"<desc [^>]*>([^<]*)</desc>", page)), "alt text says what is shown"


@pytest.mark.slow
def test_every_figure_is_saved_alone(report: Path) -> None:
    names = {path.name for path in (report / "figures").iterdir()}
    stems = {path.stem for path in (report / "figures").glob("*.svg")}
    assert names == {f"{stem}.{suffix}" for stem in stems for suffix in ("svg", "pdf")}


@pytest.mark.slow
def test_a_rebuild_gives_the_same_bytes(report: Path) -> None:
    before = {path: path.read_bytes() for path in report.rglob("*") if path.is_file()}
    build_report(report)
    after = {path: path.read_bytes() for path in report.rglob("*") if path.is_file()}
    assert after == before


@pytest.fixture
def quick(pristine: Path, tmp_path: Path) -> Path:
    """Return a folder whose report is made quickly: of the risk table alone."""
    for name in ("risk.csv", "run.json"):
        (tmp_path / name).write_bytes((pristine / name).read_bytes())
    return tmp_path


def test_only_what_is_asked_for_is_made(quick: Path) -> None:
    (quick / "report.html").write_text("an earlier one", encoding="utf-8")
    paths = build_report(quick, ())
    assert {path.suffix for path in paths if path.parent.name != "tables"} == {".md", ".svg", ".pdf"}
    assert not (quick / "report.html").exists(), "a stale page would contradict the tables"


@pytest.mark.slow
def test_figures_of_an_earlier_report_go_and_other_files_stay(quick: Path) -> None:
    build_report(quick, ())
    mine = quick / "figures" / "mine.svg"
    mine.write_text("mine", encoding="utf-8")
    remove_report(quick)
    assert [path.name for path in (quick / "figures").iterdir()] == ["mine.svg"]
    assert not list(quick.glob("report.*"))
    assert not (quick / "figures.json").exists()


@pytest.mark.parametrize("text", ['{"figures": ["../mine"]}', '{"figures": 3}', "[]", "no JSON"])
def test_a_list_of_figures_that_was_changed_removes_no_other_file(tmp_path: Path, text: str) -> None:
    mine = tmp_path / "mine.svg"
    mine.write_text("mine", encoding="utf-8")
    (tmp_path / "figures.json").write_text(text, encoding="utf-8")
    remove_report(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.svg"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "gone"),
    [
        ({"smoothing"}, {"smoothing"}),
        ({"attention", "attention_example", "circuit"}, {"attention", "circuit"}),
        (
            {"decomposition", "signed_bias", "checks", "differences", "pairs"},
            {"decomposition", "signed-bias", "checks", "differences", "pairs"},
        ),
        ({"attention_example"}, set()),
    ],
)
def test_only_pieces_whose_tables_exist_are_shown(results: Results, missing: set[str], gone: set[str]) -> None:
    tables = {name: table for name, table in results.tables.items() if name not in missing}
    _, page = report_page(Results(tables, results.run))
    assert headings(page.markdown()) == [name for name in HEADINGS if name not in gone]


def test_with_risk_alone_there_is_a_report(results: Results) -> None:
    _, page = report_page(Results({"risk": results.tables["risk"]}, {"options": results.options}))
    expected = ["answer", "distance", "design", "kl", "regret", "infinite", "provenance", "definitions", "references"]
    assert headings(page.markdown()) == expected


@pytest.mark.slow
def test_few_chains_are_said_to_cover_less(results: Results) -> None:
    _, page = report_page(results)
    text = page.markdown()
    assert "Caveat: in simulations of studies like this one, for " in text
    assert "fewer than 200 chains" in text


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no run\.json"):
        build_report(tmp_path)
    assert not list(tmp_path.iterdir())
