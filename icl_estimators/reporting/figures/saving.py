"""Writing figures: SVG for the report and the web, PDF for a paper; the same bytes for the same figure."""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from icl_estimators.files import write_whole
from icl_estimators.reporting.style import figure_style

__all__ = ["save_figure"]

_COORDINATES = re.compile(r'(?<= d=")[^"]*|(?<= [xy]=")[^"]*|(?<=translate\()[^)]*')
_DECIMALS = re.compile(r"(\.\d)\d+")
_COMMENT = re.compile(r" *<!--.*?-->\n?")


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as SVG and PDF; return the paths."""
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("svg", "pdf")]
    with figure_style():
        layout = figure.get_layout_engine()
        if layout is not None:
            for _ in range(1 + any(axes.get_aspect() != "auto" for axes in figure.axes)):
                layout.execute(figure)  # for both files; squares move once they have their size
            figure.set_layout_engine("none")
        with write_whole(paths[0]) as temporary:
            FigureCanvasSVG(figure).print_svg(temporary, metadata={"Date": None, "Creator": None})
            text = _COORDINATES.sub(_shorter, _COMMENT.sub("", temporary.read_text(encoding="utf-8")))
            temporary.write_text(text, encoding="utf-8", newline="\n")
        with write_whole(paths[1]) as temporary:
            nothing = {"CreationDate": None, "Producer": None, "Creator": None}
            FigureCanvasPdf(figure).print_pdf(temporary, metadata=nothing)
    return paths


def _shorter(found: re.Match[str]) -> str:
    """Round coordinates to a tenth of a point: half the size, and no eye sees it."""
    return " ".join(_DECIMALS.sub(r"\1", found.group()).split())
