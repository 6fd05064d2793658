"""Writing figures: SVG for the report and the web, PDF for a paper; the same bytes for the same figure."""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from icl_estimators.files import write_whole
from icl_estimators.reporting.style import figure_style
from icl_estimators.validation import InputError

__all__ = ["FORMATS", "figure_format", "save_figure", "save_figure_as"]

FORMATS = ("svg", "png", "pdf")
"""The kinds of file that a figure can be written to, by the ending of the name."""

_PNG_DPI = 200

_COORDINATES = re.compile(r'(?<= d=")[^"]*|(?<= [xy]=")[^"]*|(?<=translate\()[^)]*')
_DECIMALS = re.compile(r"(\.\d)\d+")
_COMMENT = re.compile(r" *<!--.*?-->\n?")


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as SVG and PDF; return the paths."""
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("svg", "pdf")]
    for path in paths:
        save_figure_as(figure, path)
    return paths


def figure_format(path: Path) -> str:
    """Return the kind of file that a name asks for.

    Raises
    ------
    InputError
        If its ending is none of :data:`FORMATS`.

    Examples
    --------
    >>> figure_format(Path("abaca.SVG"))
    'svg'
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise InputError(f"{path} has no ending that says how to draw it: name it .svg, .png or .pdf")
    return kind


def save_figure_as(figure: Figure, path: Path) -> None:
    """Write a figure to one file, whose ending says the kind: .svg, .png or .pdf.

    Raises
    ------
    InputError
        If the ending is another.
    """
    kind = figure_format(path)
    with figure_style():
        layout = figure.get_layout_engine()
        if layout is not None:
            for _ in range(1 + any(axes.get_aspect() != "auto" for axes in figure.axes)):
                layout.execute(figure)  # for all files; squares move once they have their size
            figure.set_layout_engine("none")
        with write_whole(path) as temporary:
            if kind == "svg":
                FigureCanvasSVG(figure).print_svg(temporary, metadata={"Date": None, "Creator": None})
                text = _COORDINATES.sub(_shorter, _COMMENT.sub("", temporary.read_text(encoding="utf-8")))
                temporary.write_text(text, encoding="utf-8", newline="\n")
            elif kind == "pdf":
                nothing = {"CreationDate": None, "Producer": None, "Creator": None}
                FigureCanvasPdf(figure).print_pdf(temporary, metadata=nothing)
            else:
                figure.set_dpi(_PNG_DPI)
                FigureCanvasAgg(figure).print_png(temporary, metadata={"Software": None})


def _shorter(found: re.Match[str]) -> str:
    """Round coordinates to a tenth of a point: half the size, and no eye sees it."""
    return " ".join(_DECIMALS.sub(r"\1", found.group()).split())
