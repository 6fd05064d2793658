"""What every question of the study has: a table or two, a figure, a paragraph, and claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.claims import Claim
from icl_estimators.engine.tables import Table
from icl_estimators.reporting.markdown import Page

__all__ = ["LEVEL", "Answer", "Drawing", "Grid", "Sizes", "write_frame"]

LEVEL = 0.95


@dataclass(frozen=True)
class Sizes:
    """How much is drawn; the defaults are the study's.

    Attributes
    ----------
    few, many : int
        Sequences, each of a chain of its own, for KL against context length.
    attention : int
        Sequences, each of a chain of its own, for attention masses.
    attention_runs : int
        The first of them, which every training run reads.
    smoothing_chains, smoothing_sequences : int
        For pseudo-counts and interventions.
    length : int
        T.
    seed : int
        Of all draws.
    jobs : int
        Processes; they change no number.
    """

    few: int = 200
    many: int = 20_000
    attention: int = 20_000
    attention_runs: int = 2_000
    smoothing_chains: int = 2_000
    smoothing_sequences: int = 10
    length: int = 100
    seed: int = 0
    jobs: int = 2


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure with what is said of it."""

    stem: str
    figure: Figure
    caption: str
    alt: str


@dataclass(frozen=True, eq=False)
class Grid:
    """A table of the report; cells are Markdown, the first `left` columns text."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    left: int = 1


@dataclass(frozen=True, eq=False)
class Answer:
    """What a question found.

    Attributes
    ----------
    title : str
    tables : mapping of file stem to DataFrame
        The data behind figure and paragraph.
    paragraphs : tuple of str
        Markdown.
    drawings : tuple of Drawing
    claims : tuple of Claim
    grids : tuple of Grid
    """

    title: str
    tables: Mapping[str, pd.DataFrame]
    paragraphs: tuple[str, ...]
    drawings: tuple[Drawing, ...] = ()
    claims: tuple[Claim, ...] = field(default=())
    grids: tuple[Grid, ...] = ()

    def add_to(self, page: Page, identifier: str) -> None:
        """Add the section to a page."""
        page.heading(self.title, identifier)
        page.text(*self.paragraphs)
        for drawing in self.drawings:
            page.figure(drawing.stem, drawing.figure, drawing.caption, drawing.alt)
        for grid in self.grids:
            page.table(grid.name, grid.header, grid.rows, grid.caption, left=grid.left)

    def write(self, folder: Path) -> None:
        """Write the tables."""
        for name, frame in self.tables.items():
            write_frame(frame, folder / f"{name}.csv")


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as the package writes its own: full precision, inf as inf, undefined numbers empty."""
    Table(tuple(frame.columns), tuple(frame.itertuples(index=False, name=None))).write(path)
