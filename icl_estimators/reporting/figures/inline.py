"""Figures within a page: SVG with real text, colours that follow the page's, and the numbers that were drawn."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from icl_estimators.reporting.figures.variants import has_log_axis, is_laid_out, laid_out, linear, make_narrow
from icl_estimators.reporting.marks import Mark, mark, mark_of
from icl_estimators.reporting.style import figure_style, on_dark, on_light

__all__ = ["COLUMNS", "Drawings", "draw_inline"]

COLUMNS = ("panel", "series", "x", "estimate", "low", "high")
"""The columns of a figure's CSV."""

_HEX = re.compile(r"#[0-9a-f]{6}\b")
_SPACE = re.compile(r"\s*\n\s*")
_COMMAND = re.compile(r"([MLQCZz]) ")
_DECIMALS = re.compile(r"(\.\d)\d+")
_TRAILING = re.compile(r"\.0\b")
_TURNED = re.compile(r"rotate\(-?0(?:\.0*)? [^)]*\)")
_TITLED_AT = 5  # points of a line that its <title> tells, for readers without scripts


@dataclass
class Drawings:
    """The figures of one page and the style sheet that they share.

    Attributes
    ----------
    by_stem : dict of str to str
        HTML of each figure.
    """

    by_stem: dict[str, str] = field(default_factory=dict)
    _styles: dict[str, str] = field(default_factory=dict)
    _colours: dict[str, tuple[str, float]] = field(default_factory=dict)

    def css(self) -> str:
        """Return the rules: a class for each way of drawing, a custom property for each colour, twice."""
        light = "".join(f"--{key}:{on_light(c, least).lower()};" for key, (c, least) in self._colours.items())
        dark = "".join(f"--{key}:{on_dark(c, least).lower()};" for key, (c, least) in self._colours.items())
        rules = "".join(f".{name}{{{style}}}\n" for style, name in self._styles.items())
        return f".plot{{{light}}}\n@media screen and (prefers-color-scheme:dark){{.plot{{{dark}}}}}\n{rules}"

    def class_of(self, style: str, *, text: bool, fixed: bool) -> str:
        """Return the class of a style attribute; unless `fixed`, its colours follow the page."""
        parts = [part.strip() for part in style.split(";")]
        parts = [part.replace(": ", ":") for part in parts if part and not part.startswith("font-family")]
        shown = ";".join(parts)
        if not fixed:
            shown = _HEX.sub(lambda found: f"var(--{self._colour(found.group(), text)})", shown)
        elif text and "fill:" not in shown:
            shown += ";fill:#000"
        return self._styles.setdefault(shown, f"p{len(self._styles)}")

    def _colour(self, colour: str, text: bool) -> str:
        key = f"{'t' if text else 'g'}{colour[1:]}"
        self._colours.setdefault(key, (colour, 4.5 if text else 3.0))
        return key


def draw_inline(drawings: Drawings, stem: str, figure: Figure, number: str, alt: str) -> None:
    """Add a figure to the drawings of a page, wide and narrow, and on linear axes beside logarithmic ones.

    The figure is changed: save it before.

    Parameters
    ----------
    drawings : Drawings
    stem : str
        Its name; every id begins with it.
    figure : Figure
    number : str
        As in "Figure 3".
    alt : str
        What it shows, in words.
    """
    _mark_what_has_a_label(figure)
    series = _series(figure)
    rows = list(_rows(figure))
    pieces = []
    with figure_style():
        mpl.rcParams["svg.fonttype"] = "none"
        for width in ("wide", "narrow"):
            if width == "narrow":
                make_narrow(figure)
                laid_out(figure)
            elif not is_laid_out(figure):  # saving it alone has done so already
                laid_out(figure)
            pieces.append(_drawn(drawings, figure, (stem, width, "as-is"), number, alt, series))
            if has_log_axis(figure):
                with linear(figure):
                    pieces.append(_drawn(drawings, figure, (stem, width, "linear"), number, alt, series))
    links = [f'<a href="figures/{stem}.svg" data-save="{stem}.svg" download>SVG</a>']
    if rows:
        links.insert(0, f'<a href="{_csv(rows)}" download="{stem}.csv">CSV of the numbers drawn</a>')
    drawings.by_stem[stem] = (
        f'<div class="plot" data-name="{html.escape(number)}" data-x="{html.escape(_x_name(figure))}">'
        f'<div class="drawn">{"".join(pieces)}</div>'
        f'<p class="tools">{" ".join(links)}</p></div>'
    )


def _mark_what_has_a_label(figure: Figure) -> None:
    """Mark what a figure function named but did not mark: labelled lines and bars, and the entries of legends."""
    for axes in figure.axes:
        for line in axes.get_lines():
            label = str(line.get_label())
            if mark_of(line) is None and label and not label.startswith("_"):
                x, y = (np.asarray(values, float) for values in line.get_data())
                on_axes = line.get_transform().contains_branch(axes.transData) and not _is_level(line, axes)
                shown = on_axes and len(x) <= 400
                mark(line, label, x=x if shown else None, estimate=y if shown else None)
        for container in axes.containers:
            label = str(container.get_label())
            if isinstance(container, BarContainer) and not label.startswith("_"):
                for patch in container.patches:
                    if mark_of(patch) is None:
                        mark(patch, label, "bar")
    for legend in [*figure.legends, *(own for axes in figure.axes if (own := axes.get_legend()) is not None)]:
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            for part in (text, handle):
                if part is not None and mark_of(part) is None and part.get_figure() is not None:
                    mark(part, text.get_text(), "label")


def _is_level(line: Line2D, axes: Axes) -> bool:
    """Whether a line spans the panel at one height or depth."""
    return line.get_transform() in (axes.get_xaxis_transform(), axes.get_yaxis_transform())


def _marked(axes: Axes) -> Iterator[tuple[Any, Mark]]:
    for artist in [*axes.lines, *axes.collections, *axes.patches, *axes.texts]:
        found = mark_of(artist)
        if found is not None:
            yield artist, found


def _series(figure: Figure) -> list[str]:
    return list(dict.fromkeys(found.series for axes in figure.axes for _, found in _marked(axes)))


def _panel_name(axes: Axes, place: int) -> str:
    return " ".join(axes.get_title(loc="left").split()) or " ".join(axes.get_title().split()) or f"panel {place + 1}"


def _rows(figure: Figure) -> Iterator[tuple[str, ...]]:
    """Yield the numbers that are drawn, a row each."""
    for place, axes in enumerate(figure.axes):
        name = _panel_name(axes, place) if len(figure.axes) > 1 else ""
        for _, found in _marked(axes):
            if found.x is None or found.estimate is None:
                continue
            nothing = np.full(len(found.x), np.nan)
            low, high = (nothing if end is None else end for end in (found.low, found.high))
            for values in zip(found.x, found.estimate, low, high, strict=True):
                if np.isfinite(values[0]) and np.isfinite(values[1]):
                    x, y = (values[1], values[0]) if found.kind == "dot" else values[:2]
                    yield (name, found.series, *map(_number, (x, y, *values[2:])))
        for mesh in (drawn for drawn in axes.collections if isinstance(drawn, QuadMesh)):
            if hasattr(axes, "_colorbar"):
                continue
            cells: Any = np.ma.filled(np.ma.asarray(mesh.get_array(), dtype=float), np.nan)
            across, down = ([t.get_text() for t in axis.get_ticklabels()] for axis in (axes.xaxis, axes.yaxis))
            if cells.ndim == 2 and cells.shape == (len(down), len(across)):
                for (row, column), value in np.ndenumerate(cells):
                    if np.isfinite(value):
                        key = f"{row + 1} {down[row]}".replace("\n", " ")
                        yield name, key, f"{column + 1} {across[column]}".replace("\n", " "), _number(value), "", ""


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6g}"


def _csv(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    return "data:text/csv;charset=utf-8," + quote(text.getvalue(), safe=",.:()=/;-")


def _x_name(figure: Figure) -> str:
    """Return the letter of the x-axis, or its name in full."""
    labels = [axes.get_xlabel() for axes in figure.axes if axes.get_xlabel() and not hasattr(axes, "_colorbar")]
    label = " ".join((labels[0] if labels else figure.get_supxlabel()).split())
    label = re.split(r" \(|: ", label)[0]
    last = label.rpartition(" ")[2]
    return last if 0 < len(last) <= 3 else label


def _map(figure: Figure, axes: Axes) -> str:
    """Return where a panel is, and the places of its data: px = a + b·f(v) along each axis."""
    scale = 72.0 / figure.dpi
    height = figure.get_size_inches()[1] * 72.0
    box = axes.get_window_extent()
    ends = np.array([axes.get_xlim(), axes.get_ylim()]).T
    places = axes.transData.transform(ends) * scale
    places[:, 1] = height - places[:, 1]
    axis = []
    for column, name in enumerate((axes.get_xscale(), axes.get_yscale())):
        v = np.log(ends[:, column]) if name == "log" else ends[:, column]
        slope = (places[1, column] - places[0, column]) / (v[1] - v[0])
        axis.append([name, round(places[0, column] - slope * v[0], 3), round(slope, 5)])
    where = [round(v, 1) for v in (box.x0 * scale, height - box.y1 * scale, box.width * scale, box.height * scale)]
    kind = "cells" if any(isinstance(drawn, QuadMesh) for drawn in axes.collections) else "lines"
    if any(found.kind == "dot" for _, found in _marked(axes)):
        kind = "dots"
    return json.dumps({"box": where, "x": axis[0], "y": axis[1], "kind": kind}, separators=(",", ":"))


def _drawn(
    drawings: Drawings, figure: Figure, key: tuple[str, str, str], number: str, alt: str, series: list[str]
) -> str:
    """Return the figure as it stands now as one <svg>."""
    stem, width, scale = key
    on_cells = {text for axes in figure.axes for text in axes.texts if _on_cell(axes, text)}
    for count, text in enumerate(on_cells):
        text.set_gid(f"cell-{count}")
    buffer = io.StringIO()
    FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(buffer.getvalue())
    marks = {
        str(artist.get_gid()): found
        for artist in figure.findobj()
        if (found := mark_of(artist)) is not None and artist.get_gid() is not None
    }
    writer = _Writer(drawings, f"{stem}-{width[0]}{scale[0]}", marks, series, _x_name(figure))
    body = writer.children(root)
    maps = "".join(
        f'<g data-panel="{html.escape(_panel_name(axes, place) if len(figure.axes) > 1 else "")}" '
        f'data-map="{html.escape(_map(figure, axes))}"></g>'
        for place, axes in enumerate(figure.axes)
        if axes.get_visible() and not hasattr(axes, "_colorbar")
    )
    name = f"{stem}-{width[0]}{scale[0]}"
    _, _, w, h = root.attrib["viewBox"].split()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{width} {scale}" viewBox="0 0 {w} {h}" role="img" '
        f'aria-labelledby="{name}-t" aria-describedby="{name}-d"><title id="{name}-t">{html.escape(number)}</title>'
        f'<desc id="{name}-d">{html.escape(alt)}</desc>{body}{maps}</svg>'
    )


def _on_cell(axes: Axes, text: Any) -> bool:
    """Whether a text stands on a cell of a heat map, whose colour is the same on any page."""
    return text.get_transform() is axes.transData and any(isinstance(drawn, QuadMesh) for drawn in axes.collections)


@dataclass
class _Writer:
    """From matplotlib's SVG to that of a page: no ids but those referred to, styles as classes, series named."""

    drawings: Drawings
    prefix: str
    marks: dict[str, Mark]
    series: list[str]
    x_name: str
    _ids: dict[str, str] = field(default_factory=dict)

    def children(self, parent: ElementTree.Element, *, fixed: bool = False) -> str:
        if not self._ids:
            texts = [value for element in parent.iter() for value in element.attrib.values()]
            used = {name for text in texts for name in re.findall(r"^#(\S+)$|url\(#([^)]+)\)", text)}
            names = sorted({a or b for a, b in used})
            self._ids = {name: f"{self.prefix}-{index}" for index, name in enumerate(names)} or {"": ""}
        return "".join(self._element(child, fixed) for child in parent)

    def _element(self, element: ElementTree.Element, fixed: bool) -> str:
        tag = element.tag.rpartition("}")[2]
        identity = element.attrib.get("id", "")
        if tag in ("metadata", "style") or self._is_ground(element):
            return ""
        fixed = fixed or identity.startswith(("QuadMesh", "cell-"))
        attributes = self._attributes(element, tag, fixed)
        body = self.children(element, fixed=fixed)
        text = html.escape(element.text or "", quote=False) if tag in ("text", "tspan") else ""
        found = self.marks.get(identity)
        if found is not None and found.series in self.series:
            attributes = f' class="of k-{found.kind}" data-s="{self.series.index(found.series)}"{attributes}'
            text = f"<title>{html.escape(_told(found, self.x_name))}</title>" + text
        if not (text or body) and tag in ("g", "defs"):
            return ""
        if tag == "g" and not attributes:
            return body
        return f"<{tag}{attributes}>{text}{body}</{tag}>" if text or body else f"<{tag}{attributes}/>"

    def _is_ground(self, element: ElementTree.Element) -> bool:
        """Whether this is the white plate behind a figure or a panel."""
        identity = element.attrib.get("id", "")
        styles = [child.attrib.get("style", "") for child in element]
        return identity.startswith("patch_") and styles == ["fill: #ffffff"]

    def _attributes(self, element: ElementTree.Element, tag: str, fixed: bool) -> str:
        parts = []
        for name, value in element.attrib.items():
            key = name.rpartition("}")[2]
            if key == "id":
                if value in self._ids:
                    parts.append(f'id="{self._ids[value]}"')
                continue
            if key == "style":
                text = tag in ("text", "tspan")
                parts.append(f'class="{self.drawings.class_of(value, text=text, fixed=fixed)}"')
                continue
            if key == "transform" and _TURNED.fullmatch(value):
                continue
            if key in ("href", "clip-path"):
                value = re.sub(r"#([^)]+)", lambda found: f"#{self._ids[found.group(1)]}", value)
            elif key in ("d", "x", "y", "width", "height", "transform"):
                if "scale" not in value and "matrix" not in value:
                    value = _DECIMALS.sub(r"\1", value)
                value = _TRAILING.sub("", _COMMAND.sub(r"\1", _SPACE.sub("", value.strip()) if key == "d" else value))
            parts.append(f'{key}="{html.escape(value)}"')
        return "".join(f" {part}" for part in parts)


def _told(found: Mark, x_name: str) -> str:
    """Return a series' name and a few of its numbers."""
    if found.x is None or found.estimate is None:
        return found.series
    texts = []
    shown = np.unique(np.linspace(0, len(found.x) - 1, min(_TITLED_AT, len(found.x))).round().astype(int))
    for place in shown:
        x, estimate = found.x[place], found.estimate[place]
        interval = ""
        if found.low is not None and found.high is not None and np.isfinite(found.low[place]):
            interval = f" [{found.low[place]:.3g}, {found.high[place]:.3g}]"
        start = f"{x:.3g}" if found.kind == "dot" else f"{x_name} = {x:g}: {estimate:.3g}"
        texts.append(start + interval)
    return f"{found.series}. {'; '.join(texts)}"
