"""A figure drawn once more: on linear axes, and narrow enough for a phone with labels that can still be read."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import AutoLocator, FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from icl_estimators.reporting.style import relabel

__all__ = ["NARROW", "has_log_axis", "is_laid_out", "laid_out", "linear", "make_narrow"]

NARROW = 3.73
"""Inches: a figure at its natural size is as wide as a page at 390 CSS pixels, less its margins."""

_LEAST_SIZE = 7.6  # points: 10 CSS pixels
_LABEL_SIZE = 8.0
_LABEL_COLUMNS = 15
_TITLE_COLUMNS = 34
_TICK_COLUMNS = 20


def laid_out(figure: Figure) -> None:
    """Give every axes its place: squares move once they have their size."""
    figure.set_layout_engine("constrained")
    layout = figure.get_layout_engine()
    assert layout is not None
    for _ in range(1 + any(axes.get_aspect() != "auto" for axes in figure.axes)):
        layout.execute(figure)
    figure.set_layout_engine("none")


def is_laid_out(figure: Figure) -> bool:
    """Whether every axes has its place already."""
    return isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine)


def has_log_axis(figure: Figure) -> bool:
    """Whether a figure of at most two panels has a logarithmic y-axis: it then has a linear form too."""
    panels = _panels(figure)
    return len(panels) <= 2 and any(axes.get_yscale() == "log" for axes in panels)


@contextmanager
def linear(figure: Figure) -> Iterator[None]:
    """Make logarithmic y-axes linear, from 0 to the highest line, for as long as the block lasts."""
    changed = []
    for axes in _panels(figure):
        if axes.get_yscale() != "log":
            continue
        axis = axes.yaxis
        kept = (axis.get_major_locator(), axis.get_minor_locator(), axis.get_major_formatter())
        changed.append((axes, axes.get_ylim(), *kept, axis.get_minor_formatter()))
    highest = {axes: _highest(axes) for axes, *_ in changed}
    for axes, *_ in changed:
        siblings = [highest[other] for other in axes.get_shared_y_axes().get_siblings(axes) if other in highest]
        axes.set_yscale("linear")
        axes.set_ylim(0.0, max(siblings))
        axes.yaxis.set_major_locator(AutoLocator())
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:g}"))
    _relabel(figure)
    try:
        yield
    finally:
        for axes, limits, major, minor, formatter, minor_formatter in changed:
            axes.set_yscale("log")
            axes.set_ylim(limits)
            axes.yaxis.set_major_locator(major)
            axes.yaxis.set_minor_locator(minor)
            axes.yaxis.set_major_formatter(formatter)
            axes.yaxis.set_minor_formatter(minor_formatter)
        for axes in _panels(figure):
            relabel(axes)


def make_narrow(figure: Figure) -> None:
    """Redraw a figure at the width of a phone: panels below each other, long names broken, no small letters.

    The figure itself is changed.
    """
    panels = [axes for axes in _panels(figure) if axes.get_subplotspec() is not None and axes.get_visible()]
    rows, columns = _grid(panels)
    n_rows = _stack(panels, rows, columns)
    squares = any(_is_heat_map(axes) for axes in panels)
    height = figure.get_size_inches()[1] / max(rows, 1) * n_rows
    if squares:
        height = 0.6 + n_rows * (2.9 if columns == 2 and rows == 1 else 1.75)
    figure.set_size_inches(NARROW, max(height, 2.4))
    for axes in _panels(figure):
        axes.set_title(_wrapped(axes.get_title(loc="left"), _TITLE_COLUMNS), loc="left")
        axes.set_ylabel(_wrapped(axes.get_ylabel(), 30))
        axes.set_xlabel(_wrapped(axes.get_xlabel(), 38))
        _wrap_ticks(axes)
    for written in (figure._supxlabel, figure._supylabel, figure._suptitle):  # type: ignore[attr-defined]
        if written is not None:
            written.set_text(_wrapped(written.get_text(), 44))
    for legend in [*figure.legends, *(own for axes in figure.axes if (own := axes.get_legend()) is not None)]:
        legend.set_ncols(1)
    for text in figure.findobj(Text):
        if isinstance(text, Text) and float(text.get_fontsize()) < _LEAST_SIZE:
            text.set_fontsize(_LEAST_SIZE)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            size = min((float(label.get_fontsize()) for label in axis.get_ticklabels()), default=9.0)
            axis.set_tick_params(labelsize=max(size, _LEAST_SIZE))
    _relabel(figure, size=_LABEL_SIZE, width=_LABEL_COLUMNS)


def _panels(figure: Figure) -> list[Axes]:
    """Return the axes that are no colour bars."""
    return [axes for axes in figure.axes if not hasattr(axes, "_colorbar")]


def _is_heat_map(axes: Axes) -> bool:
    return any(isinstance(drawn, QuadMesh) for drawn in axes.collections)


def _grid(panels: list[Axes]) -> tuple[int, int]:
    """Return the rows and columns that the panels stand in."""
    if not panels:
        return 0, 0
    spec = panels[0].get_subplotspec()
    assert spec is not None
    geometry = spec.get_gridspec().get_geometry()
    return int(geometry[0]), int(geometry[1])


def _stack(panels: list[Axes], rows: int, columns: int) -> int:
    """Put panels that stand beside each other below each other; return the number of rows."""
    if columns < 2 or len(panels) < 2:
        return max(rows, 1)
    whole = panels[0].figure
    assert isinstance(whole, Figure)
    if rows == 2 and columns > 2 and all(map(_is_heat_map, panels)):  # pairs stay pairs: rows become columns
        grid = GridSpec(columns, rows, figure=whole)
        for axes in panels:
            spec = axes.get_subplotspec()
            assert spec is not None
            axes.set_subplotspec(grid[spec.colspan.start, spec.rowspan.start])
        return columns
    beside = 1 if columns == 2 else 2
    n_rows = -(-len(panels) // beside)
    grid = GridSpec(n_rows, beside, figure=whole)
    for place, axes in enumerate(panels):
        axes.set_subplotspec(grid[place // beside, place % beside])
        axes.tick_params(axis="y", labelleft=place % beside == 0 or not _shares_y(axes))
        axes.tick_params(axis="x", labelbottom=place + beside >= len(panels) or not _shares_x(axes))
    first = panels[0]
    for axes in panels[1:]:
        if not axes.get_ylabel() and _shares_y(axes) and beside == 1:
            axes.set_ylabel(first.get_ylabel())
    return n_rows


def _shares_x(axes: Axes) -> bool:
    return len(axes.get_shared_x_axes().get_siblings(axes)) > 1


def _shares_y(axes: Axes) -> bool:
    return len(axes.get_shared_y_axes().get_siblings(axes)) > 1


def _highest(axes: Axes) -> float:
    values = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    finite = np.concatenate([*values, np.zeros(1)])
    finite = finite[np.isfinite(finite)]
    return float(finite.max()) * 1.05 or 1.0


def _relabel(figure: Figure, *, size: float | None = None, width: int | None = None) -> None:
    """Write names beside lines anew; once the panels have their size they are moved once more."""
    for axes in _panels(figure):
        relabel(axes, size=size, width=width)
    laid_out(figure)
    for axes in _panels(figure):
        relabel(axes)


def _wrap_ticks(axes: Axes) -> None:
    """Break the long names of rows, and leave out every other number of an x-axis whose numbers would touch."""
    labels = [label.get_text() for label in axes.get_yticklabels()]
    if isinstance(axes.yaxis.get_major_locator(), FixedLocator) and max(map(len, labels), default=0) > _TICK_COLUMNS:
        axes.set_yticks(axes.get_yticks(), [_wrapped(label.replace("\n", " "), _TICK_COLUMNS) for label in labels])
    if isinstance(axes.xaxis.get_major_locator(), AutoLocator):
        axes.xaxis.set_major_locator(MaxNLocator(5))


def _wrapped(text: str, width: int) -> str:
    return "\n".join(line for part in text.split("\n") for line in textwrap.wrap(part, width) or [""])
