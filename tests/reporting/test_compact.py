"""Compact tables: rounded to what the standard error supports, and the same words in every markup."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators import evaluate, read_results
from icl_estimators.reporting.build import build_report, remove_report
from icl_estimators.reporting.compact import CompactTable, compact_table, rounded
from icl_estimators.reporting.results import Results
from icl_estimators.validation import InputError

STRANGE = (
    "construction-softmax:2.2:direct_path=false",
    "a_b&c%",
    "<x>",
    "$x$",
    "#1",
    "a|b",
    "back\\slash",
    "{braces}",
    "x^2~y",
    'say "no"',
    "`code`",
    "*star*",
    "a--b",
    "[link](url)",
    "@someone",
    "1. item",
    "- item",
    "![x](y)",
    "γ = 2.2",
    "&lt;",
    "// no comment",
    "naïve",
)
TABLE = CompactTable(
    "Regret of a_b & <x>, 95 % intervals",
    ("estimator", "mean [95 %]", "n = 3"),
    tuple((name, "−0.25 [−0.30, −0.20]", "∞") for name in STRANGE),
    "infinite in 37 % of $x$",
)


@given(st.floats(1e-12, 1e6), st.floats(1e-5, 1.0))
def test_a_number_is_rounded_to_the_second_digit_of_its_standard_error(value: float, share: float) -> None:
    se = value * share
    shown = rounded(value, se, value - 2 * se, value + 2 * se)
    numbers = [float(text.strip("[],").replace("−", "-")) for text in shown.split()]
    unit = 10.0 ** (int(f"{se:.1e}".partition("e")[2]) - 1)
    for number, exact in zip(numbers, (value, value - 2 * se, value + 2 * se), strict=True):
        assert abs(number - exact) <= 0.5001 * unit * (1 + 1e-9)
        assert math.isclose(number / unit, round(number / unit), abs_tol=1e-6 * max(1, abs(number / unit)))
    notations = {("e" in text) for text in shown.split()}
    assert len(notations) == 1


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ((0.02900, 0.00018, 0.0286, 0.0294), "0.02900 [0.02860, 0.02940]"),
        ((0.5, 0.0999, 0.3, 0.7), "0.50 [0.30, 0.70]"),  # the error is 0.10, not 0.099
        ((0.0, 0.001, -0.002, 0.002), "0.0000 [−0.0020, 0.0020]"),
        ((2e-9, 1e-9, -1e-10, 4e-9), "2.0e−9 [−0.1e−9, 4.0e−9]"),
        ((1.0, math.nan, math.nan, math.nan), "1.000"),
        ((math.inf, math.nan, math.nan, math.nan), "∞"),
        ((0.25, 0.01, math.nan, math.nan), "0.250"),
    ],
)
def test_numbers_are_spelled_as_stated(numbers: tuple[float, float, float, float], shown: str) -> None:
    assert rounded(*numbers) == shown


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.scopes: list[str] = []
        self.inside = self.raised = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        self.raised = tag == "sup"
        if tag in ("th", "td"):
            self.inside = True
            self.rows[-1].append("")
            self.scopes += [str(value) for key, value in attributes if key == "scope"]

    def handle_endtag(self, tag: str) -> None:
        self.raised = False
        self.inside = self.inside and tag not in ("th", "td")

    def handle_data(self, data: str) -> None:
        if self.inside and not self.raised:
            self.rows[-1][-1] += data


def cells_of(html: str) -> Cells:
    parsed = Cells()
    parsed.feed(html)
    return parsed


def test_html_shows_every_name_and_says_what_headers_are_for() -> None:
    parsed = cells_of(TABLE.to_html())
    assert [row[0] for row in parsed.rows[1 : 1 + len(STRANGE)]] == list(STRANGE)
    assert parsed.scopes == ["col"] * 3 + ["row"] * len(STRANGE)


@pytest.mark.parametrize("source", ["markdown-smart", "gfm", "latex"])
def test_pandoc_reads_every_name_back(source: str) -> None:
    pypandoc = pytest.importorskip("pypandoc")
    text = TABLE.to_latex() if source == "latex" else TABLE.to_markdown()
    read = pypandoc.convert_text(text, "html", format=source, extra_args=["--wrap=none"])
    rows = cells_of(read).rows
    names = [row[0] for row in rows[1 : 1 + len(STRANGE)]]
    unknown = "`" if source == "latex" else ""  # pandoc has no \\textasciigrave, which LaTeX has
    assert names == [name.replace(unknown, "") if unknown else name for name in STRANGE]
    assert rows[1][1].replace("\xa0", " ") == "−0.25 [−0.30, −0.20]"


def test_typst_reads_every_name_back(tmp_path: Path) -> None:
    typst = pytest.importorskip("typst")
    source = tmp_path / "table.typ"
    source.write_text(TABLE.to_typst(), encoding="utf-8")
    assert typst.compile(str(source))[:4] == b"%PDF"
    collected = tmp_path / "names.typ"
    names = ", ".join(
        line.split(", ")[0].strip() for line in TABLE.to_typst().splitlines() if line.count('"∞" + ') == 1
    )
    collected.write_text(f"#metadata(({names},)) <names>\n", encoding="utf-8")
    assert json.loads(typst.query(str(collected), "<names>", field="value", one=True)) == list(STRANGE)


def test_a_frame_and_a_screen_have_the_same_cells() -> None:
    frame = TABLE.to_frame()
    assert frame.index.tolist() == list(STRANGE)
    assert frame.iloc[0].tolist() == ["−0.25 [−0.30, −0.20]", "∞"]
    assert "∞ (a)" in str(TABLE)
    assert str(TABLE).endswith("(a) infinite in 37 % of $x$")
    assert TABLE._repr_html_() == TABLE.to_html()


def test_the_estimators_are_ranked_and_the_bayes_rule_is_zero_by_definition(results: Results) -> None:
    table = compact_table(results, specs=True)
    names = [row[0] for row in table.rows]
    rows = {row[0]: row for row in table.rows}
    assert names[:2] == ["add-one", "transformer"]
    assert set(names[-2:]) == {"bigram", "construction"}
    assert rows["add-one"][1:] == ("0, by definition", "0", "0", "0")
    assert set(rows["bigram"][1:]) == {"∞"}
    assert table.header[2:] == ("n = 3", "n = 12", "n = 24")
    risk = results.tables["risk"]
    at = risk[(risk.metric == "p_infinite") & (risk.context_length == "mean") & (risk.estimator == "bigram")]
    assert f"bigram in {100 * at.estimate.item():.1f}\xa0%" in table.note
    row = results.at("risk", "transformer", "mean", metric="regret_nats")
    assert rows["transformer"][1] == rounded(row["estimate"], row["se"], row["ci_low"], row["ci_high"])
    assert compact_table(results).rows[0][0] == "add-one (Bayes)"


def test_metrics_and_lengths_are_chosen(results: Results) -> None:
    table = compact_table(results, lengths=[24, 2], metric="kl_nats", specs=True)
    assert table.header[2:] == ("n = 24", "n = 2")
    row = results.at("risk", "uniform", 2, metric="kl_nats")
    assert next(cells for cells in table.rows if cells[0] == "uniform")[3] == rounded(row["estimate"], row["se"])
    shares = compact_table(results, lengths=[], metric="p_infinite", specs=True)
    assert shares.note == ""
    assert dict(shares.rows)["add-one"] == "never"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"metric": "accuracy"}, "risk.csv has no metric 'accuracy': choose from kl_nats, "),
        ({"lengths": [0]}, "no context length 0: it has 1 to 24, and the mean"),
        ({"lengths": [25]}, "no context length 25"),
        ({"lengths": [True]}, "no context length True"),
        ({"lengths": ["mean"]}, "no context length 'mean'"),
        ({"lengths": [3, 3]}, "the context length 3 is given twice"),
    ],
)
def test_what_the_study_lacks_is_refused(results: Results, options: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match="^[^\n]*" + complaint):
        compact_table(results, **options)  # type: ignore[arg-type]


def test_a_study_without_risk_has_no_table(results: Results) -> None:
    with pytest.raises(InputError, match=r"of the kind smoothing has no risk\.csv"):
        compact_table(Results({}, {**results.run, "kind": "smoothing"}))


@pytest.mark.slow
def test_the_report_has_the_tables_beside_its_figures(folder: Path, changed: Callable[..., Results]) -> None:
    paths = build_report(folder, [])
    written = sorted(path.name for path in paths if path.parent.name == "tables")
    assert written == ["headline.html", "headline.md", "headline.tex", "headline.typ"]
    again = read_results(folder).table()
    assert (folder / "tables" / "headline.tex").read_text(encoding="utf-8") == again.to_latex()
    (folder / "tables" / "mine.tex").write_text("mine", encoding="utf-8")
    remove_report(folder)
    assert [path.name for path in (folder / "tables").iterdir()] == ["mine.tex"]
    (folder / "tables" / "mine.tex").unlink()
    build_report(folder, [])
    remove_report(folder)
    assert not (folder / "tables").exists()


def test_observed_sequences_have_a_table_too(tmp_path: Path) -> None:
    assert (
        evaluate.main(
            ["--dataset", "elnino", "--estimators", "bigram,add-one", "--out", str(tmp_path), "--quiet", "--no-report"]
        )
        == 0
    )
    result = read_results(tmp_path)
    table = result.table(specs=True)
    assert table.rows[0][0] in {"add-one", "add-one:window=100"}
    assert table.header == ("estimator", "mean [95\xa0%]")
    assert "∞" in {row[1] for row in table.rows}
    assert table.note.startswith("Infinite, because probability 0 was given to a state that came next")
    with pytest.raises(InputError, match="no context length 3: it has the mean over predictions only"):
        result.table(lengths=[3])
