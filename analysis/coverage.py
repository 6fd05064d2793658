"""Do 95 % intervals cover? Every kind of row, against the truth: ``python -m analysis.coverage``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import binom

from analysis.coverage_base import AT_OPTIMUM, CHAINS_OF_STUDY, LIMITS, NOMINAL, SKEWED, Design, Key, Seen
from analysis.coverage_recipes import Recipe
from analysis.coverage_risk import Risk
from analysis.coverage_smoothing import Families, Interventions, PseudoCounts
from analysis.coverage_truth import CHAINS
from analysis.questions import Answer, Drawing, Grid, write_frame
from icl_estimators.engine.executors import InProcess, Processes, in_order, one_thread
from icl_estimators.reporting.markdown import code
from icl_estimators.reporting.style import WIDTH, figure_style, line_looks

__all__ = [
    "BAND",
    "COLUMNS",
    "Tallies",
    "Tally",
    "added",
    "answer",
    "by_kind",
    "coverage_table",
    "designs",
    "main",
    "outside",
    "read",
    "tabulate",
]

BAND = (0.92, 0.98)
STUDIES = 300
COLUMNS = (
    "kind",
    "design",
    "estimator",
    "metric",
    "at",
    "chains",
    "sequences",
    "runs",
    "nominal",
    "coverage",
    "mc_se",
    "studies",
    "undefined",
    "below",
    "above",
    "mean_width",
    "truth",
    "truth_method",
)
_COUNTS = ("chains", "sequences", "runs", "studies", "undefined")
ROOT = Path(__file__).resolve().parents[1]

_BLOCK = 2
_ROUNDING = 1e-7  # of float32 predictions, and of a minimiser


@dataclass
class Tally:
    """How often the intervals of one row held the truth.

    Attributes
    ----------
    held : int
        Intervals with the truth inside.
    below, above : int
        Intervals that lie wholly below the truth, and above it.
    undefined : int
        Studies without an interval (NaN).
    exact : int
        Intervals of no width, on the truth.
    width, truth : float
        Sums over studies with an interval.
    """

    held: int = 0
    below: int = 0
    above: int = 0
    undefined: int = 0
    exact: int = 0
    width: float = 0.0
    truth: float = 0.0

    @property
    def studies(self) -> int:
        """Studies with an interval."""
        return self.held + self.below + self.above

    def add(self, low: float, high: float, truth: float) -> None:
        """Count one interval.

        Rounding is not a miss: an interval of zero width at the truth covers it.
        """
        if np.isnan(low) or np.isnan(high):
            self.undefined += 1
            return
        slack = _ROUNDING * max(abs(truth), 1e-3) if np.isfinite(truth) else 0.0
        if high < truth - slack:
            self.below += 1
        elif low > truth + slack:
            self.above += 1
        else:
            self.held += 1
            self.exact += bool(high - low <= slack)
        self.width += high - low
        self.truth += truth

    def merge(self, other: Tally) -> None:
        """Add another's counts."""
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Tallies:
    """Tallies by row."""

    rows: dict[Key, Tally] = field(default_factory=dict)

    def add(self, seen: Iterable[Seen]) -> None:
        """Count the intervals of one small study; those whose truth is undefined or infinite say nothing."""
        for one in seen:
            if np.isfinite(one.truth):
                self.rows.setdefault(one.key, Tally()).add(one.low, one.high, one.truth)

    def merge(self, other: Tallies) -> None:
        """Add another's tallies."""
        for key, tally in other.rows.items():
            self.rows.setdefault(key, Tally()).merge(tally)


def _block(shared: Sequence[Design], task: tuple[int, int, int]) -> Tallies:
    """Draw studies `first` … `stop` − 1 of one design."""
    which, first, stop = task
    tallies = Tallies()
    with one_thread():
        for seed in range(first, stop):
            tallies.add(shared[which].draw(seed))
    return tallies


def coverage_table(
    made: Sequence[Design],
    studies: int = STUDIES,
    *,
    first: int = 0,
    jobs: int = 1,
    keep: Callable[[pd.DataFrame, str], None] = lambda table, done: None,
) -> pd.DataFrame:
    """Draw every design `studies` times and count how often its intervals hold the truth.

    Parameters
    ----------
    made : sequence of Design
    studies : int
        Small studies of each design.
    first : int
        The number of the first; each number is a seed.
    jobs : int
        Processes; they change no number.
    keep : callable
        Takes the table so far, and a line about it, after every few studies of all designs.

    Returns
    -------
    DataFrame
        Columns :data:`COLUMNS`, one row for each row of a table of each design. `coverage` is the share of `studies`
        that have an interval; `undefined` have none. `below` and `above`: shares of intervals wholly below the truth
        and above it. Rows whose intervals never have a width, because nothing varies, are left out.
    """
    stop = first + studies
    blocks = [
        (which, at, min(at + _BLOCK, stop)) for at in range(first, stop, _BLOCK) for which in range(len(made))
    ]  # all designs advance together, so that a table that was stopped early has all of them
    found = [Tallies() for _ in made]
    began = time.perf_counter()
    with InProcess(tuple(made)) if jobs == 1 else Processes(tuple(made), jobs) as crew:
        for (which, _, done), tallies in zip(blocks, in_order(_block, crew, blocks), strict=True):
            found[which].merge(tallies)
            if which == len(made) - 1:
                keep(
                    tabulate(made, found), f"{done - first} studies of each design: {time.perf_counter() - began:.0f} s"
                )
    return tabulate(made, found)


def added(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the small studies of two tables together; they must not share any."""
    both = pd.concat([one, other], ignore_index=True)
    means = ["coverage", "below", "above", "mean_width", "truth"]
    both[means] = both[means].mul(both["studies"], axis=0)
    keys = [name for name in COLUMNS if name not in (*means, "mc_se", "studies", "undefined")]
    table = both.groupby(keys, sort=False, as_index=False)[[*means, "studies", "undefined"]].sum()
    table[means] = table[means].div(table["studies"], axis=0)
    table["mc_se"] = np.sqrt(table["nominal"] * (1.0 - table["nominal"]) / table["studies"])
    return table[list(COLUMNS)]


def tabulate(made: Sequence[Design], found: Sequence[Tallies]) -> pd.DataFrame:
    """Return the table of :func:`coverage_table` from the tallies of each design."""
    rows = []
    for design, tallies in zip(made, found, strict=True):
        for key, tally in tallies.rows.items():
            n = tally.studies
            if not n or tally.exact == n:
                continue
            share = tally.held / n
            nominal = design.nominal(key)
            rows.append(
                (
                    key[0],
                    design.name,
                    *key[1:],
                    CHAINS_OF_STUDY,
                    design.sequences,
                    design.runs,
                    nominal,
                    share,
                    float(np.sqrt(nominal * (1.0 - nominal) / n)),
                    n,
                    tally.undefined,
                    tally.below / n,
                    tally.above / n,
                    tally.width / n,
                    tally.truth / n,
                    design.method(key),
                )
            )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def outside(table: pd.DataFrame, *, error: float = 0.01) -> pd.DataFrame:
    """Return the rows whose coverage is further from :data:`BAND` than Monte Carlo error explains, known limits aside.

    Parameters
    ----------
    table : DataFrame
        As :func:`coverage_table` returns it.
    error : float
        Probability that any row at all is returned although every true coverage is within the band (Bonferroni).

    Returns
    -------
    DataFrame
    """
    table = table.loc[~table["kind"].isin(list(LIMITS))]
    if not len(table):
        return table
    each = error / len(table)
    held = np.rint(table["coverage"] * table["studies"])
    too_few = binom.cdf(held, table["studies"], BAND[0]) < each
    too_many = binom.sf(held - 1, table["studies"], BAND[1]) < each
    return table.loc[too_few | too_many]


def by_kind(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each kind and design: number of rows, least, mean and largest coverage, undefined share.

    Columns: kind, design, chains, sequences, runs, rows, studies, least, mean, largest, mc_se, undefined. `mc_se` is
    that of one row; rows of a study are dependent, so that the mean's is no larger, and seldom much smaller.
    """
    groups = table.groupby(["kind", "design", "chains", "sequences", "runs"], sort=False)
    return groups.agg(
        rows=("coverage", "size"),
        studies=("studies", "max"),
        least=("coverage", "min"),
        mean=("coverage", "mean"),
        largest=("coverage", "max"),
        mc_se=("mc_se", "min"),
        undefined=("undefined", "sum"),
    ).reset_index()


def read(path: Path) -> pd.DataFrame:
    """Return a table that was written before, to the last bit."""
    table = pd.read_csv(path, dtype=str)
    for column in COLUMNS[5:-1]:
        whole = column in _COUNTS
        table[column] = [int(cell) if whole else float(cell) for cell in table[column]]
    return table


def answer(table: pd.DataFrame) -> Answer:
    """Tabulate and plot."""
    kinds = by_kind(table)
    odd = outside(table)
    held = (kinds["mean"] >= BAND[0]) & (kinds["mean"] <= BAND[1])
    drawn = (table["studies"] + table["undefined"]).groupby(table["design"]).min()
    studies = f"{drawn.min():,}" if drawn.min() == drawn.max() else f"{drawn.min():,} to {drawn.max():,}"
    verdict = (
        "No row is further from that range than Monte Carlo error explains."
        if odd.empty
        else f"{len(odd)} rows are further from that range than Monte Carlo error explains. They are of these kinds: "
        f"{'; '.join(dict.fromkeys(odd['kind']))}."
    )
    paragraph = (
        f"Each kind of interval was tested in {studies} small studies of each design. Sequences have 6 tokens (4 for "
        "training runs), so the true value is known by enumeration of all prefixes. {fig:coverage} shows the share of "
        f"95 % intervals that contain it, for {len(table):,} rows of the tables; {{tbl:coverage}} is a summary. The "
        f"mean coverage of {int(held.sum())} of the {len(kinds)} kinds of row and design is between {BAND[0]:g} and "
        f"{BAND[1]:g}. {verdict} An interval can miss a parameter at the boundary of its range on one side only, so "
        "its nominal coverage is 0.975. Intervals of a mean over training runs are conditional on these runs; those of "
        "the recipe are not. Two training runs say little about a recipe: they give no interval for its bias and its "
        "training variance."
    )
    limits = "; ".join(
        f"*{kind}* ({shares.min():.3f} to {shares.max():.3f}): {why}"
        for kind, why in LIMITS.items()
        if len(shares := table.loc[table["kind"] == kind, "coverage"])
    )
    paragraphs = (
        paragraph,
        *([f"These kinds are shown but are not required to have nominal coverage: {limits}."] if limits else []),
    )
    grid = Grid(
        "coverage",
        ("kind of row", "design", "rows", "smallest", "mean", "largest"),
        tuple(
            (
                str(row.kind),
                str(row.design),
                str(row.rows),
                *(f"{share:.3f}" for share in (row.least, row.mean, row.largest)),
            )
            for row in kinds.itertuples(index=False)
        ),
        f"Coverage of 95 % intervals by kind of row and design, {CHAINS_OF_STUDY} chains each. Row by row "
        f"in {code('data/study/coverage.csv')}.",
        left=2,
    )
    drawing = Drawing(
        "coverage",
        _figure(table),
        f"Coverage of 95 % intervals by kind of row, one dot per row of a table; {studies} small studies each, so "
        f"one standard error is {table['mc_se'].min():.3f}. Shaded: {BAND[0]:g} to {BAND[1]:g}.",
        "A dot plot: for each kind of row the coverage of its rows on a horizontal axis, with the range from "
        f"{BAND[0]:g} to {BAND[1]:g} shaded and 0.95 marked.",
    )
    return Answer("Do the intervals cover?", {"coverage": table}, paragraphs, (drawing,), grids=(grid,))


def _figure(table: pd.DataFrame) -> Figure:
    kinds = list(dict.fromkeys(table["kind"]))
    with figure_style():
        blue = line_looks(["coverage"])["coverage"]
        figure = Figure(figsize=(WIDTH, 0.8 + 0.24 * len(kinds)))
        axes = figure.add_subplot()
        axes.axvspan(*BAND, color="0.92", linewidth=0)
        axes.axvline(NOMINAL, color="0.6", linewidth=0.8)
        for place, kind in enumerate(kinds):
            values = table.loc[table["kind"] == kind, "coverage"].to_numpy(float)
            spread = 0.28 * np.sin(2.4 * np.arange(len(values)))  # fixed jitter
            axes.plot(values, place + spread, ".", color=blue.colour, markersize=3, alpha=0.6)
        axes.set_yticks(range(len(kinds)), kinds)
        axes.invert_yaxis()
        axes.set_xlabel("share of intervals that contain the true value")
    return figure


def designs(n_chains: int = CHAINS) -> list[Design]:
    """Return every small study; `n_chains` for what is exact given the chain alone."""
    return [
        Risk(1, n_chains=n_chains),
        Risk(4, n_chains=n_chains),
        Risk(8, True, n_chains),
        PseudoCounts(1),
        PseudoCounts(4),
        Families(4),
        Interventions(),
        Recipe(2, n_chains=n_chains),
        Recipe(3, n_chains=n_chains),
        Recipe(5, n_chains=n_chains),
        Recipe(3, -1.0, 0.05, n_chains=n_chains),
        Recipe(3, -1.0, 0.5, SKEWED, n_chains=n_chains),
        Recipe(3, 0.0, 0.5, AT_OPTIMUM, n_chains=n_chains),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the coverage study and write its table; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m analysis.coverage", description=__doc__.split("\n")[0])
    parser.add_argument("--studies", type=int, default=STUDIES, metavar="N", help="small studies of each design")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    parser.add_argument("--data", type=Path, default=ROOT / "data" / "study", metavar="DIR", help="where it goes")
    parser.add_argument("--add", action="store_true", help="more studies, beside those of the table that is there")
    parser.add_argument("--only", default="", metavar="WORD", help="designs whose name contains it (writes no table)")
    options = parser.parse_args(argv)
    path = options.data / "coverage.csv"
    before = read(path) if options.add else None
    first = (
        0 if before is None else int((before["studies"] + before["undefined"]).groupby(before["design"]).min().max())
    )

    def keep(so_far: pd.DataFrame, done: str) -> None:
        if not options.only:
            write_frame(so_far if before is None else added(before, so_far), path)
        print(done, file=sys.stderr)

    chosen = [design for design in designs() if options.only in design.name]
    table = coverage_table(chosen, options.studies, first=first, jobs=options.jobs, keep=keep)
    table = table if before is None else added(before, table)
    print(by_kind(table).round(3).to_string(index=False))
    odd = outside(table)
    if len(odd):
        print(f"\nOutside {BAND[0]:g} to {BAND[1]:g} beyond Monte Carlo error:")
        print(odd[["kind", "design", "estimator", "metric", "at", "coverage"]].round(3).to_string(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
