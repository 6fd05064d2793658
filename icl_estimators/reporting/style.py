"""One look for every figure: colours that colour-blind readers can tell apart, labels on the lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.colors import to_hex, to_rgb
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from icl_estimators.reporting.marks import mark

__all__ = [
    "DARK_GROUND",
    "DIVERGING",
    "LIGHT_GROUND",
    "MUTED",
    "SEQUENTIAL",
    "WIDTH",
    "LineEnd",
    "Look",
    "contrast",
    "figure_style",
    "heat_map",
    "label_line_ends",
    "line_looks",
    "on_dark",
    "on_light",
    "plain_log_axis",
    "readable",
    "relabel",
    "wrap_name",
]

WIDTH = 6.5
"""Inches: a figure fills the text block of an A4 page at its natural size."""

MUTED = "#5F5F5F"
"""For what is drawn to compare with: floors, chance, zero."""

SEQUENTIAL = "Blues"
DIVERGING = "RdBu_r"
"""Colour maps that colour-blind readers can order."""

LIGHT_GROUND, DARK_GROUND = "#FFFFFF", "#15171B"
"""What figures are drawn on: paper and a light page, a dark page."""

_DARK_TEXT = "#E7E7E7"

# Okabe & Ito (2008); yellow is left out, too faint on white.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B4C9A", "#7F7F7F")
_FIXED = {
    "transformer": "#0072B2",
    "add-one": "#000000",
    "bayes": "#000000",
    "bigram": "#E69F00",
    "construction": "#D55E00",
    "construction-softmax": "#CC79A7",
    "construction-softmax:direct_path=false": "#009E73",
    "unigram": "#56B4E9",
    "uniform": "#7F7F7F",
}
_STYLES = ("-", "--", ":", "-.")
_RC: Any = {
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "svg.fonttype": "path",
    "svg.hashsalt": "icl-estimators",
    "pdf.fonttype": 42,
    "axes.unicode_minus": True,
}
_LABEL_SIZE = 9.0
_LABEL_X = 1.035  # in the axes' width
_LABEL_COLUMNS = 22


class Look(NamedTuple):
    """How a line is drawn."""

    colour: str
    style: str = "-"


class LineEnd(NamedTuple):
    """Where a line ends, in data coordinates, and what it is called."""

    x: float
    y: float
    name: str
    colour: str


class _Labels(NamedTuple):
    """The names beside the ends of a panel's lines, as they were asked for and as they were drawn."""

    ends: tuple[LineEnd, ...]
    size: float
    width: int
    drawn: list[Artist]


_LABELS: WeakKeyDictionary[Axes, list[_Labels]] = WeakKeyDictionary()


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw without a display in the project's style, and leave matplotlib as it was."""
    with mpl.rc_context():
        mpl.rcdefaults()  # whatever the user's own style says
        mpl.rcParams.update(_RC)
        yield


def line_looks(names: Sequence[str], families: Mapping[str, str] | None = None) -> dict[str, Look]:
    """Return the look of each estimator's line; the known ones always look the same.

    Parameters
    ----------
    names : sequence of str
    families : mapping of str to str, optional
        The family of each rule: those that differ in a fitted number alone look alike.

    Examples
    --------
    >>> line_looks(["add-one", "mine"])["add-one"]
    Look(colour='#000000', style='-')
    """
    looks: dict[str, Look] = {}
    fixed: dict[str, str] = {}  # by name: the first of a kind has the kind's colour
    for name in names:
        kind = name if name in _FIXED else (families or {}).get(name, name)
        if kind in _FIXED and (kind == name or (kind not in names and kind not in fixed)):
            fixed.setdefault(kind, name)
    known = {name: Look(_FIXED[kind]) for kind, name in fixed.items()}
    taken = set(known.values())
    free = (Look(colour, style) for style in _STYLES for colour in _PALETTE)
    spare = cycle(look for look in free if look not in taken)
    for name in names:
        looks[name] = known[name] if name in known else next(spare)
    return looks


def heat_map(axes: Axes, values: np.ndarray[Any, Any], colours: str, low: float, high: float) -> QuadMesh:
    """Draw a matrix, the first row on top, with white lines between its cells; NaN stays empty."""
    n_rows, n_columns = values.shape
    steps = mpl.colormaps[colours].resampled(64)  # a colour bar has a rectangle for each
    mesh = axes.pcolormesh(np.ma.masked_invalid(values), cmap=steps, vmin=low, vmax=high)
    axes.hlines(np.arange(1, n_rows), 0, n_columns, colors="white", linewidth=0.7)
    axes.vlines(np.arange(1, n_columns), 0, n_rows, colors="white", linewidth=0.7)
    axes.set_xlim(0, n_columns)
    axes.set_ylim(n_rows, 0)
    axes.set_aspect("equal")
    axes.tick_params(length=0)
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return mesh


def readable(colour: str, contrast: float = 4.5) -> str:
    """Darken a colour until text in it has enough contrast with white (WCAG 2.2).

    Examples
    --------
    >>> readable("#000000"), readable("#56B4E9")
    ('#000000', '#3C7DA2')
    """
    rgb = np.array(to_rgb(colour))
    while 1.05 / (_luminance(rgb) + 0.05) < contrast:
        rgb = rgb * 0.97
    return to_hex((float(rgb[0]), float(rgb[1]), float(rgb[2]))).upper()


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2.2).

    Examples
    --------
    >>> round(contrast("#000000", "#ffffff"), 6)
    21.0
    """
    dark, light = sorted(_luminance(np.array(to_rgb(colour))) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def on_light(colour: str, least: float = 3.0) -> str:
    """Return the colour of a line, or with `least` = 4.5 of a text, on a light page; greys stay as they are.

    Examples
    --------
    >>> on_light("#0072B2"), on_light("#b0b0b0"), contrast(on_light("#E69F00"), LIGHT_GROUND) >= 3
    ('#0072B2', '#B0B0B0', True)
    """
    return to_hex(to_rgb(colour)).upper() if _is_grey(colour) else readable(colour, least)


def on_dark(colour: str, least: float = 3.0) -> str:
    """Return what a colour of a light page becomes on a dark one: greys change ends, colours are lightened.

    Examples
    --------
    >>> on_dark("#FFFFFF"), on_dark("#000000"), on_dark("#E69F00")
    ('#15171B', '#E7E7E7', '#E69F00')
    """
    rgb = np.array(to_rgb(colour))
    ground, text = (np.array(to_rgb(end)) for end in (DARK_GROUND, _DARK_TEXT))
    if _is_grey(colour):
        turned = ground + (1.0 - rgb.mean()) * (text - ground)
        return to_hex((float(turned[0]), float(turned[1]), float(turned[2]))).upper()
    while contrast(shown := to_hex((float(rgb[0]), float(rgb[1]), float(rgb[2]))), DARK_GROUND) < least:
        rgb = rgb + 0.03 * (1.0 - rgb)
    return shown.upper()


def _is_grey(colour: str) -> bool:
    return float(np.ptp(to_rgb(colour))) < 0.06


def _luminance(rgb: np.ndarray[Any, Any]) -> float:
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def wrap_name(name: str, width: int = 22) -> str:
    """Break a long name into lines, at its punctuation where it can.

    Examples
    --------
    >>> wrap_name("construction-softmax:direct_path=false").split("\\n")
    ['construction-softmax', ':direct_path=false']
    """
    head, bracket, rest = name.partition(" (")
    if bracket and len(name) > width:
        return f"{wrap_name(head, width)}\n{wrap_name(f'({rest}', width)}"
    lines: list[str] = []
    for part in re.split(
        r"(?<=[ \n-])|(?=[:/])|(?<![ \u00a0])(?==)", name.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    ):
        if lines and len(lines[-1]) + len(part.rstrip()) <= width:
            lines[-1] += part
        else:
            lines += textwrap.wrap(part, width, drop_whitespace=False) if part.strip() else []
    return "\n".join(line.strip() for line in lines)


def plain_log_axis(axis: Axis, *, minor: bool = True) -> None:
    """Label a logarithmic axis with plain numbers, at 1, 2 and 5 of each decade unless it spans many."""
    low, high = sorted(axis.get_view_interval())
    subs = (1.0, 2.0, 5.0) if high / low < 2e3 else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axis.set_minor_locator(LogLocator(subs=tuple(range(1, 10)), numticks=40) if minor else NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def label_line_ends(
    axes: Axes, ends: Sequence[LineEnd], *, size: float = _LABEL_SIZE, width: int = _LABEL_COLUMNS
) -> None:
    """Write each line's name beside its end, pushed apart so that none overlaps.

    Parameters
    ----------
    axes : Axes
        With its final limits and scales.
    ends : sequence of LineEnd
    size : float
        Font size in points.
    width : int
        Letters a line, of longer names.
    """
    if not ends:
        return
    given = tuple(ends)
    to_axes = axes.transData + axes.transAxes.inverted()
    bottom, top = axes.get_ylim()
    ends = [end._replace(y=min(max(end.y, bottom), top)) for end in ends]
    placed = sorted(ends, key=lambda end: to_axes.transform((end.x, end.y))[1])
    names = [wrap_name(end.name, width) for end in placed]
    points = axes.get_window_extent().height * 72.0 / axes.figure.dpi
    tall = np.array([1.25 * size * (name.count("\n") + 1) for name in names]) / points
    heights = np.array([float(to_axes.transform((end.x, end.y))[1]) for end in placed])
    heights = _pushed_apart(heights, tall)
    drawn: list[Artist] = []
    for end, name, height in zip(placed, names, heights, strict=True):
        text = axes.text(
            _LABEL_X,
            height,
            name,
            transform=axes.transAxes,
            color=readable(end.colour),
            va="center",
            fontsize=size,
            linespacing=1.05,
        )
        start = to_axes.transform((end.x, end.y))
        leader = LineCollection(
            [[(float(start[0]), float(start[1])), (_LABEL_X - 0.006, float(height))]],
            colors=[end.colour],
            linewidths=0.6,
            alpha=0.6,
            transform=axes.transAxes,
            clip_on=False,
        )
        axes.add_collection(leader, autolim=False)
        drawn += [mark(text, end.name, "label"), mark(leader, end.name, "label")]
    _LABELS.setdefault(axes, []).append(_Labels(given, size, width, drawn))


def relabel(axes: Axes, *, size: float | None = None, width: int | None = None) -> None:
    """Write the names beside the lines' ends again, after the scale or the size of the panel has changed."""
    for old in _LABELS.pop(axes, []):
        for artist in old.drawn:
            artist.remove()
        label_line_ends(axes, old.ends, size=size or old.size, width=width or old.width)


def _pushed_apart(centres: np.ndarray[Any, Any], tall: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Move sorted centres as little as possible, so that boxes of these heights do not overlap."""
    centres = centres.copy()
    for _ in range(500):
        gaps = centres[1:] - centres[:-1] - (tall[1:] + tall[:-1]) / 2
        if (gaps >= -1e-6).all():
            break
        for low in np.flatnonzero(gaps < -1e-6):
            lack = (tall[low + 1] + tall[low]) / 2 - (centres[low + 1] - centres[low])
            centres[low] -= lack / 2
            centres[low + 1] += lack / 2
    return centres
