"""The Markdown of a report: built of paragraphs, tables and figures, with labels escaped and pieces numbered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icl_estimators.text import columns_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MARKDOWN", "Page", "Picture", "code", "escape", "prose"]

MARKDOWN = "markdown-smart"
"""The dialect of pandoc: quotes and dashes are left as they were typed."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>$~^@|#&!])")
_REFERENCE = re.compile(r"\{(fig|tbl):([a-z0-9-]+)\}")
_EQUATION = re.compile(r"\b([nKαβγ]) = (?=\d)")  # stays on one line, as does
_PERCENT = re.compile(r"(?<=\d) %")
_KINDS = {"fig": "Figure", "tbl": "Table"}


def escape(label: str) -> str:
    """Write a label so that it is read as it is, in text, in a table cell and in a caption.

    Examples
    --------
    >>> print(escape("a|b"), escape("$x$"), escape("<b>"), escape("add-constant:0.5"))
    a\\|b \\$x\\$ \\<b\\> add-constant:0.5
    """
    return _SPECIAL.sub(r"\\\1", " ".join(label.split()))


def prose(text: str) -> str:
    """Write a sentence of ours so that nothing in it but `code` is marked up.

    Examples
    --------
    >>> print(prose("`mean`: ½ Σ|p − P|"))
    `mean`: ½ Σ\\|p − P\\|
    """
    return "`".join(part if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(text.split("`")))


def code(text: str) -> str:
    """Write text as code, whatever backticks it has.

    Examples
    --------
    >>> code("risk.csv"), code("a`b")
    ('`risk.csv`', '`` a`b ``')
    """
    text = " ".join(text.split())
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    if not longest:
        return f"`{text}`"
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}"


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of a report.

    Attributes
    ----------
    stem : str
        Name of its files in ``figures/``.
    figure : Figure
    number, alt : str
        As in "Figure 3", and what it shows in words.
    """

    stem: str
    figure: Figure
    number: str = ""
    alt: str = ""


@dataclass
class Page:
    """A report under construction.

    Text may refer to a piece as ``{fig:stem}`` or ``{tbl:name}``, before or after it; that becomes its number.

    Attributes
    ----------
    pictures : list of Picture
        The figures, in order.
    """

    pictures: list[Picture] = field(default_factory=list)
    _blocks: list[str] = field(default_factory=list)
    _numbers: dict[str, str] = field(default_factory=dict)

    def heading(self, text: str, identifier: str, level: int = 2) -> None:
        """Begin a section."""
        self._blocks.append(f"{'#' * level} {text} {{#{identifier}}}")

    def has(self, identifier: str) -> bool:
        """Whether a section with this identifier has begun."""
        return any(block.startswith("#") and block.endswith(f"{{#{identifier}}}") for block in self._blocks)

    def text(self, *paragraphs: str) -> None:
        """Add paragraphs, already Markdown."""
        self._blocks.extend(paragraphs)

    def items(self, items: Sequence[str]) -> None:
        """Add a list."""
        self._blocks.append("\n".join(f"- {item}" for item in items))

    def figure(self, stem: str, figure: Figure, caption: str, alt: str) -> None:
        """Add a figure; `alt` says in words what it shows."""
        number = self._number("fig", stem)
        self.pictures.append(Picture(stem, figure, number, " ".join(alt.split())))
        quoted = " ".join(alt.split()).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
        self._blocks.append(f'![{number}. {caption}](figures/{stem}.svg){{#fig-{stem} alt="{quoted}"}}')

    def table(
        self,
        name: str,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        caption: str,
        *,
        left: int = 1,
        folded: bool = False,
    ) -> None:
        """Add a table of cells that are already Markdown.

        Parameters
        ----------
        name : str
            For references.
        header, rows : sequences of str
        caption : str
        left : int
            How many of the first columns are aligned to the left; the others are numbers.
        folded : bool
            For reference only: in HTML it opens on a click, in PDF it goes to an appendix.
        """
        widths = [max(3, *map(columns_of, column)) for column in zip(header, *rows, strict=True)]
        rules = [
            (":" + "-" * (width - 1)) if index < left else ("-" * (width - 1) + ":")
            for index, width in enumerate(widths)
        ]
        lines = [
            _row(header, widths, left),
            "| " + " | ".join(rules) + " |",
            *(_row(row, widths, left) for row in rows),
        ]
        number = self._number("tbl", name)
        blocks = ["\n".join(lines), f": {number}. {caption} {{#tbl-{name}}}"]
        self._blocks += ["::: folded", *blocks, ":::"] if folded else blocks

    def markdown(self) -> str:
        """Return the whole text, references filled in.

        Raises
        ------
        KeyError
            If the text refers to a piece that is not there.
        """

        def link(match: re.Match[str]) -> str:
            kind, name = match.groups()
            return f"[{self._numbers[f'{kind}-{name}']}](#{kind}-{name})"

        text = _REFERENCE.sub(link, "\n\n".join(self._blocks)) + "\n"
        text = _EQUATION.sub("\\1\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}", text)
        return _PERCENT.sub("\N{NO-BREAK SPACE}%", text)

    def _number(self, kind: str, name: str) -> str:
        key = f"{kind}-{name}"
        if key in self._numbers:
            raise ValueError(f"two pieces are called {key}")
        count = sum(other.startswith(f"{kind}-") for other in self._numbers) + 1
        self._numbers[key] = f"{_KINDS[kind]} {count}"
        return self._numbers[key]


def _row(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    padded = (
        cell + " " * (width - columns_of(cell)) if index < left else " " * (width - columns_of(cell)) + cell
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "| " + " | ".join(padded) + " |"
