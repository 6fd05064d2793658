"""A compact table for a paper: the estimators in ranked order, their mean and a few context lengths, in any markup."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_estimators.files import write_whole
from icl_estimators.metrics import METRICS
from icl_estimators.reporting.markdown import escape
from icl_estimators.reporting.markup import html_text, latex_text, typst_string
from icl_estimators.reporting.numbers import percent_interval
from icl_estimators.reporting.results import Results, records
from icl_estimators.text import columns_of
from icl_estimators.validation import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CompactTable", "compact_table", "remove_tables", "rounded", "write_tables"]

BY_DEFINITION = "0, by definition"
INFINITE = "∞"
_MARK = "a"
_MOST_DECIMALS = 6  # beyond, numbers have an exponent
_WITHOUT_ERROR = 4  # significant digits of a number that has no standard error


def rounded(estimate: float, se: float, low: float = math.nan, high: float = math.nan) -> str:
    """Spell a number, and its interval if there is one, with the digits that its standard error supports.

    The standard error is rounded to two significant digits. The estimate and both ends of the interval are rounded to
    the decimal place of the second digit, and have one notation. A number without a standard error above 0 has four
    significant digits and no interval.

    Examples
    --------
    >>> rounded(0.0310412, 0.000181, 0.030687, 0.031396)
    '0.03104 [0.03069, 0.03140]'
    >>> rounded(0.0310412, 0.000996, 0.0291, 0.0330), rounded(12.3, 4.2), rounded(1234.5, 321.0)
    ('0.0310 [0.0291, 0.0330]', '12.3', '1230')
    >>> rounded(-2.34e-9, 1.2e-10, -2.6e-9, -2.1e-9), rounded(0.0, 0.0), rounded(0.26527, 0.0)
    ('−2.34e−9 [−2.60e−9, −2.10e−9]', '0', '0.2653')
    >>> rounded(float("inf"), float("nan")), rounded(float("nan"), float("nan"))
    ('∞', '–')
    """
    if math.isnan(estimate):
        return "–"
    if math.isinf(estimate):
        return INFINITE if estimate > 0 else f"−{INFINITE}"
    if math.isfinite(se) and se > 0:
        place = _exponent(se, 2) - 1  # of the second digit: 10^place
    elif estimate == 0:
        return "0"
    else:
        place, low, high = _exponent(estimate, _WITHOUT_ERROR) - (_WITHOUT_ERROR - 1), math.nan, math.nan
    if place < -_MOST_DECIMALS:
        scale = max(_exponent(value, 2) for value in (estimate, low, high) if math.isfinite(value) and value)
        values = [_decimals(value / 10.0**scale, max(0, scale - place)) for value in (estimate, low, high)]
        numbers = [f"{value}e{'−' if scale < 0 else ''}{abs(scale)}" for value in values]
    else:
        numbers = [_decimals(value, -place) for value in (estimate, low, high)]
    return numbers[0] if math.isnan(low) or math.isnan(high) else f"{numbers[0]} [{numbers[1]}, {numbers[2]}]"


def _exponent(value: float, digits: int) -> int:
    """Return the exponent of a number that is rounded to some significant digits."""
    return int(f"{abs(value):.{digits - 1}e}".partition("e")[2])


def _decimals(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return "–" if math.isnan(value) else INFINITE if value > 0 else f"−{INFINITE}"
    text = f"{round(value, decimals) + 0.0:.{max(0, decimals)}f}"
    return text.replace("-", "−")


@dataclass(frozen=True)
class CompactTable:
    """A small table in words, to be written in any markup.

    Attributes
    ----------
    caption : str
        What it shows, without markup.
    header : tuple of str
    rows : tuple of tuples of str
        Cells without markup; the first of each row is the estimator.
    note : str
        What belongs to the cells that are ∞; empty if there are none.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def __str__(self) -> str:
        from icl_estimators.text import text_table

        return text_table(self.header, self._cells(str, f" ({_MARK})")) + (
            f"\n({_MARK}) {self.note}" if self.note else ""
        )

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_frame(self) -> pd.DataFrame:
        """Return the cells as they are shown, as a DataFrame by estimator. ``result.risk`` has the numbers."""
        import pandas as pd

        names = pd.Index([row[0] for row in self.rows], name=self.header[0], dtype="str")
        return pd.DataFrame([row[1:] for row in self.rows], index=names, columns=list(self.header[1:]), dtype="str")

    def to_markdown(self) -> str:
        """Return a table of GitHub's or pandoc's Markdown, the caption above and the note below."""
        cells = self._cells(escape, "ᵃ")
        header = [escape(title) for title in self.header]
        widths = [max(3, *map(columns_of, column)) for column in zip(header, *cells, strict=True)]
        rules = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
        lines = [_markdown_row(row, widths) for row in (header, rules, *cells)]
        note = [f"ᵃ {escape(self.note)}"] if self.note else []
        return "\n\n".join([escape(self.caption), "\n".join(lines), *note]) + "\n"

    def to_latex(self, label: str = "tab:headline") -> str:
        """Return a floating table of LaTeX; it needs the package ``booktabs``.

        Parameters
        ----------
        label : str
            What ``\\ref`` refers to.
        """
        mark = rf"\textsuperscript{{{_MARK}}}"
        lines = [
            r"% \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(self.caption)}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.header) - 1)}}}",
            r"\toprule",
            " & ".join(map(latex_text, self.header)) + r" \\",
            r"\midrule",
            # A line that began with [ would be an argument of the \\ above it.
            *("{}" + " & ".join(row) + r" \\" for row in self._cells(latex_text, mark)),
            r"\bottomrule",
            r"\end{tabular}",
            *([rf"\par\smallskip\footnotesize {mark}~{latex_text(self.note)}"] if self.note else []),
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """Return a table of HTML whose headers say what they are headers of."""
        mark = f"<sup>{_MARK}</sup>"
        head = "".join(f'<th scope="col">{html_text(title)}</th>' for title in self.header)
        lines = [
            "<table>",
            f"<caption>{html_text(self.caption)}</caption>",
            f"<thead><tr>{head}</tr></thead>",
            "<tbody>",
        ]
        for name, *cells in self._cells(html_text, mark):
            data = "".join(f"<td>{cell}</td>" for cell in cells)
            lines.append(f'<tr><th scope="row">{name}</th>{data}</tr>')
        lines.append("</tbody>")
        if self.note:
            note = f"{mark} {html_text(self.note)}"
            lines.append(f'<tfoot><tr><td colspan="{len(self.header)}">{note}</td></tr></tfoot>')
        return "\n".join([*lines, "</table>"]) + "\n"

    def to_typst(self) -> str:
        """Return a figure of Typst with a table in it."""
        columns, mark = len(self.header), f'super("{_MARK}")'
        lines = [
            "#figure(",
            "  [",
            "    #table(",
            f"      columns: {columns},",
            f"      align: (left,{' right,' * (columns - 1)}),",
            "      stroke: none,",
            "      table.hline(),",
            f"      table.header({', '.join(map(typst_string, self.header))}),",
            "      table.hline(stroke: 0.5pt),",
            *(f"      {', '.join(row)}," for row in self._cells(typst_string, f" + {mark}")),
            "      table.hline(),",
            "    )",
            *([f"    #text(0.85em, {mark} + [ ] + {typst_string(self.note)})"] if self.note else []),
            "  ],",
            f"  caption: {typst_string(self.caption)},",
            "  kind: table,",
            ")",
        ]
        return "\n".join(lines) + "\n"

    def _cells(self, write: Callable[[str], str], mark: str) -> list[list[str]]:
        """Return the cells in a markup; the infinite ones refer to the note."""
        return [
            [write(name), *(write(cell) + (mark if cell == INFINITE and self.note else "") for cell in cells)]
            for name, *cells in self.rows
        ]


def _markdown_row(cells: Sequence[str], widths: Sequence[int]) -> str:
    spaces = [" " * (width - columns_of(cell)) for cell, width in zip(cells, widths, strict=True)]
    return (
        "| " + " | ".join([cells[0] + spaces[0], *(s + c for s, c in zip(spaces[1:], cells[1:], strict=True))]) + " |"
    )


def compact_table(
    results: Results, lengths: Iterable[int] | None = None, metric: str | None = None, *, specs: bool = False
) -> CompactTable:
    """Return the compact table of a comparison.

    The smallest mean comes first; infinite and undefined means come last. Of several training runs only their mean
    has a row. Every number is rounded by :func:`rounded`; those at single context lengths are shown without interval.

    Parameters
    ----------
    results : Results
    lengths : iterable of int, optional
        Context lengths that have a column beside the mean over all; by default a few up to T.
    metric : str, optional
        A metric of risk.csv; by default the one that the report ranks by.
    specs : bool
        Name estimators as in the tables, not as in the report.

    Raises
    ------
    InputError
        If the study has no risk.csv, or not this metric or context length; or if a length is given twice.
    """
    if "risk" not in results:
        raise InputError(f"a study of the kind {results.kind} has no risk.csv to make a table of")
    risk = results.tables["risk"]
    metric = results.headline_metric if metric is None else metric
    known = [name for name in METRICS if name in set(risk["metric"])]
    if metric not in known:
        raise InputError(f"risk.csv has no metric {metric!r}: choose from {', '.join(known)}")
    shown = _lengths(results, lengths)
    rows = {(row["estimator"], row["context_length"]): row for row in records(risk[risk["metric"] == metric])}

    def mean(name: str) -> float:
        value = float(rows[name, "mean"]["estimate"])
        return value if math.isfinite(value) else math.inf

    names = sorted(results.curves, key=mean)
    title = METRICS[metric].title
    unit = METRICS[metric].unit
    average = "mean" if results.observed else "mean over n"
    return CompactTable(
        _caption(results, title, unit),
        ("estimator", f"{average} [{results.level_text}]", *(f"n = {n}" for n in shown)),
        tuple(
            (
                name if specs else results.display(name),
                _cell(results, name, metric, rows[name, "mean"], whole=True),
                *(_cell(results, name, metric, rows[name, str(n)]) for n in shown),
            )
            for name in names
        ),
        _infinite_note(
            results, [name for name in names if _is_infinite(rows, name, ("mean", *map(str, shown)))], specs
        ),
    )


def _is_infinite(rows: dict[tuple[str, str], dict[str, Any]], name: str, where: Sequence[str]) -> bool:
    return any(math.isinf(rows[name, n]["estimate"]) for n in where)


def _lengths(results: Results, lengths: Iterable[int] | None) -> list[int]:
    if lengths is None:
        return [] if results.observed else results.shown_lengths((3, 12, 50))
    wanted = list(lengths)
    there = set(results.tables["risk"]["context_length"])
    for n in wanted:
        if isinstance(n, bool) or str(n) not in there or n == "mean":
            what = "the mean over predictions only" if results.observed else f"1 to {results.length}, and the mean"
            raise InputError(f"risk.csv has no context length {n!r}: it has {what}")
        if wanted.count(n) > 1:
            raise InputError(f"the context length {n} is given twice: give each once")
    return [int(n) for n in wanted]


def _cell(results: Results, name: str, metric: str, row: dict[str, Any], *, whole: bool = False) -> str:
    if metric == "regret_nats" and name in results.bayes:
        return BY_DEFINITION if whole else "0"
    if metric == "p_infinite" and name in results.positive:
        return "never"
    ends = (float(row["ci_low"]), float(row["ci_high"])) if whole else ()
    return rounded(float(row["estimate"]), float(row["se"]), *ends)


def _caption(results: Results, title: str, unit: str) -> str:
    options = results.options
    of = f"{title[0].upper()}{title[1:]}" + (f", {unit}" if unit else "")
    if results.observed:
        return f"{of}, per prediction; {options['data']}, {options['n_predictions']:,} predictions."
    return (
        f"{of}, over n = 1 to {results.length} tokens read; {options['chains']:,} chains with "
        f"{options['sequences_per_chain']} sequences each, K = {options['states']}, α = {options['concentration']:g}."
    )


def _infinite_note(results: Results, names: Sequence[str], specs: bool) -> str:
    """Say how often the KL of those estimators is infinite."""
    if not names:
        return ""
    if results.observed:
        return "Infinite, because probability 0 was given to a state that came next."
    shares = []
    for name in names:
        row = results.at("risk", name, "mean", metric="p_infinite")
        share = percent_interval(*(float(row[key]) for key in ("estimate", "ci_low", "ci_high")))
        shares.append(f"{name if specs else results.display(name)} in {share}")
    listed = "; ".join(shares)
    return f"Infinite, because probability 0 is given to a state that can come next: {listed} of predictions."


_WRITERS: dict[str, Callable[[CompactTable], str]] = {
    "tex": CompactTable.to_latex,
    "md": CompactTable.to_markdown,
    "html": CompactTable.to_html,
    "typ": CompactTable.to_typst,
}


def write_tables(folder: Path, results: Results) -> list[Path]:
    """Write the headline as ``tables/headline.*`` in every markup, if the study has one; return the paths."""
    if "risk" not in results:
        return []
    table, paths = compact_table(results), []
    for suffix, write in _WRITERS.items():
        paths.append(folder / "tables" / f"headline.{suffix}")
        with write_whole(paths[-1]) as temporary:
            temporary.write_text(write(table), encoding="utf-8", newline="\n")
    return paths


def remove_tables(folder: Path) -> None:
    """Remove what :func:`write_tables` writes, so that no table of an earlier study is left beside new ones."""
    for suffix in _WRITERS:
        (folder / "tables" / f"headline.{suffix}").unlink(missing_ok=True)
    with suppress(OSError):  # another's file is in it, or it is not there
        (folder / "tables").rmdir()
