"""A study read back from its folder: the tables and run.json, and the few things every section asks of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icl_estimators.reading import KINDS, kind_of, read_columns, read_record, rows_written
from icl_estimators.reporting.style import Look, line_looks
from icl_estimators.row_names import of_window
from icl_estimators.schemas import SCHEMAS, Type
from icl_estimators.ties import Pairs
from icl_estimators.validation import InputError

__all__ = ["Results", "read_results", "read_table", "records"]

_ZERO = 1e-12  # a regret that is 0 up to rounding


@dataclass(frozen=True, eq=False)
class Results:
    """What one study found.

    Attributes
    ----------
    tables : mapping of str to DataFrame
        By file stem; only those that the folder has, with the cells that :func:`read_table` makes.
    run : dict
        run.json.
    """

    tables: Mapping[str, pd.DataFrame]
    run: dict[str, Any]

    def __contains__(self, table: object) -> bool:
        return table in self.tables

    @property
    def options(self) -> dict[str, Any]:
        """The design, as run.json keeps it."""
        options: dict[str, Any] = self.run["options"]
        return options

    @property
    def kind(self) -> str:
        """What kind of study it is, one of :data:`icl_estimators.reading.KINDS`."""
        return kind_of(self.run)

    @property
    def observed(self) -> bool:
        """Whether the data are observed sequences, without a known truth."""
        return "data" in self.options

    @property
    def unit(self) -> str:
        """What is independent: a chain, or an observed sequence."""
        return "sequence" if self.observed else "chain"

    @property
    def length(self) -> int:
        """T."""
        return int(self.options["length"])

    @property
    def level_text(self) -> str:
        """The confidence level, as in "95 %", on one line."""
        return f"{100 * self.options['level']:g}\N{NO-BREAK SPACE}%"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Estimators in the order of the first table; of several training runs both the runs and their mean."""
        return tuple(dict.fromkeys(self.tables[_NEEDED[self.kind].removesuffix(".csv")]["estimator"]))

    @cached_property
    def curves(self) -> tuple[str, ...]:
        """Estimators that are drawn: of several training runs their mean alone."""
        runs = (run for of_recipe in self.recipes.values() for run in of_recipe)
        left_out = {*runs, *(f"{recipe}:recipe" for recipe in self.recipes)}
        return tuple(name for name in self.names if name not in left_out)

    @cached_property
    def recipes(self) -> dict[str, tuple[str, ...]]:
        """The training runs of each recipe of which there are several."""
        return {recipe: tuple(runs) for recipe, runs in self.options.get("recipes", {}).items()}

    @property
    def exact_posterior(self) -> bool:
        """Whether regret is defined: fresh chains of a source that knows its posterior given a prefix."""
        # Older folders do not say it; their only other start law is the stationary one.
        exact: bool = not self.observed and self.options.get("exact_posterior", self.options["start"] == "uniform")
        return exact

    @cached_property
    def bayes(self) -> tuple[str, ...]:
        """Estimators whose regret is 0 at every context length: they are the Bayes rule of this study."""
        table = next((name for name in ("risk", "exact") if name in self), None)
        if not self.exact_posterior or table is None:
            return ()
        regret = self.tables[table].query("metric == 'regret_nats'").groupby("estimator", sort=False)["estimate"]
        return tuple(str(name) for name, values in regret if (values.abs() <= _ZERO).all())

    @cached_property
    def subject(self) -> str | None:
        """Whom the report is about: the trained model (of several runs their mean), else your own one, else no one."""
        models = (*self.recipes, *self.options.get("weights", ()), *self.run.get("subjects", ()))
        return models[0] if models else None

    def display(self, name: str) -> str:
        """Return the name a reader sees: that of the rule; the Bayes rule is marked, the mean of training runs too.

        Specs stand in the section on methods only.
        """
        if name in self._histories:
            estimator, history = self._histories[name]
            return f"{self.display(estimator)}, {_HISTORY_NAMES[history].format(**self.options)}"
        shown = str(self.rules.get(name, {}).get("display", name))
        if name in self.bayes:
            return f"{shown} (Bayes)" if name != "bayes" else shown
        if name in self.recipes:
            return f"{name} (mean of {len(self.recipes[name])} training runs)"
        return shown

    def history_of(self, name: str) -> str:
        """Return what a row of observed data knows: `alone`, `window`, `pooled` or `folds`."""
        return self._histories.get(name, (name, "alone"))[1]

    def estimator_of(self, name: str) -> str:
        """Return the estimator that a row of observed data is of."""
        return self._histories.get(name, (name, "alone"))[0]

    @cached_property
    def _histories(self) -> dict[str, tuple[str, str]]:
        """Whose row it is, and what is known there, where that is not the whole history of an observed sequence."""
        if not self.observed:
            return {}
        recorded: dict[str, dict[str, str]] = self.run.get("histories", {})
        if not recorded:  # older folders
            return {of_window(name, self.length): (name, "window") for name in self.options["estimators"]}
        known = {row: (found["estimator"], found["history"]) for row, found in recorded.items()}
        return {row: found for row, found in known.items() if found[1] != "alone"}

    @cached_property
    def positive(self) -> frozenset[str]:
        """Rules that cannot give probability 0: their KL is never infinite."""
        return frozenset(name for name, rule in self.rules.items() if rule.get("positive"))

    @property
    def rules(self) -> dict[str, dict[str, Any]]:
        """Family and display name of the rules that the package knows, by name; empty in older folders."""
        found: dict[str, dict[str, Any]] = self.run.get("rules", {})
        return found

    def looks(self, names: Sequence[str] | None = None) -> dict[str, Look]:
        """Return how each estimator's line is drawn, the same in every figure."""
        families = {name: rule["family"] for name, rule in self.rules.items()}
        return line_looks(self.curves if names is None else names, families)

    @cached_property
    def alarms(self) -> tuple[dict[str, Any], ...]:
        """The rows of checks.csv of estimators that have seen tokens after the prefix; empty if all is well."""
        if "checks" not in self.tables:
            return ()
        return tuple(records(self.tables["checks"].query("check == 'saw_the_future'")))

    def few_chains(self, by: str, value: float = 0) -> bool:
        """Whether too few chains have prefixes of this group for the interval of a pseudo-count to be trusted.

        `value` is a context length or a number of visits; of all prefixes together it does not matter.
        """
        few = self.run.get("few_chains", {}).get(by, ())
        return bool(few) if by == "overall" else value in few

    def curve(self, table: str, name: str, **where: str) -> pd.DataFrame:
        """Return an estimator's rows by context length 1 … T, in that order; `where` narrows other columns."""
        frame = self.tables[table]
        keep = (frame["estimator"] == name) & (frame["context_length"] != "mean")
        for column, value in where.items():
            keep &= frame[column] == value
        rows = frame[keep]
        return rows.assign(n=rows["context_length"].astype(int)).sort_values("n")

    def at(self, table: str, name: str, n: int | str, **where: str) -> dict[str, Any]:
        """Return one row: an estimator at a context length or at `mean`.

        Raises
        ------
        KeyError
            If there is no such row.
        """
        frame = self.tables[table]
        keep = (frame["estimator"] == name) & (frame["context_length"] == str(n))
        for column, value in where.items():
            keep &= frame[column] == value
        rows = frame[keep]
        if rows.empty:
            raise KeyError((table, name, n, where))
        return records(rows)[0]

    def shown_lengths(self, wanted: tuple[int, ...] = (1, 3, 6, 12, 24, 50, 100)) -> list[int]:
        """Return the context lengths of a short table: those of `wanted` below T, and T.

        Examples
        --------
        >>> Results({}, {"options": {"length": 40}}).shown_lengths()
        [1, 3, 6, 12, 24, 40]
        """
        return [*(n for n in wanted if n < self.length), self.length]

    @property
    def slides(self) -> bool:
        """Whether an observed sequence is longer than the window, so that window and whole history differ."""
        return self.observed and float(self.options.get("longest_history", math.inf)) > self.length

    @property
    def headline_metric(self) -> str:
        """What the answer orders estimators by: regret, KL where no Bayes rule is exact, log loss on observed data."""
        return "log_loss_nats" if self.observed else "regret_nats" if self.exact_posterior else "kl_nats"

    @cached_property
    def pairs(self) -> Pairs:
        """All pairs by the metric of the headline; none if the folder has no pairs.csv."""
        rows = records(self.tables["pairs"]) if "pairs" in self else []
        return Pairs(rows, self.headline_metric)

    def bayes_curve(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
        """Return context lengths and the Bayes rule's expected KL there, from any estimator with a finite one."""
        if not self.exact_posterior:
            return None
        for name in (*self.bayes, *self.curves):
            posterior = self.curve("risk", name, metric="kl_rb_nats")
            regret = self.curve("risk", name, metric="regret_nats")
            if np.isfinite(posterior["estimate"]).all():  # regret is what lies above the Bayes rule
                return posterior["n"].to_numpy(), posterior["estimate"].to_numpy() - regret["estimate"].to_numpy()
        return None


def _number(cell: str) -> float:
    return float(cell or "nan")


def _boolean(cell: str) -> bool | None:
    if cell not in ("True", "False", ""):
        raise ValueError(f"neither True nor False: {cell!r}")
    return cell == "True" if cell else None


_READ: dict[Type, Callable[[str], Any]] = {Type.NUMBER: _number, Type.INTEGER: _number, Type.BOOLEAN: _boolean}


_NEEDED = dict.fromkeys(KINDS, "risk.csv") | {"smoothing": "smoothing.csv", "exact": "exact.csv"}
"""The table without which there is no study of a kind."""

_HISTORY_NAMES = {"window": "last {length}", "pooled": "pooled", "folds": "other folds"}
"""What a row is called that does not stand for the whole history of each sequence alone."""


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries by column."""
    return [{str(column): value for column, value in row.items()} for row in rows.to_dict("records")]


def read_results(folder: Path) -> Results:
    """Read the folder that ``evaluate``, ``smoothing``, ``identify`` or ``exact`` wrote.

    Raises
    ------
    InputError
        If the folder, run.json or the first table is missing, or one of them cannot be read.
    """
    run = read_record(folder)
    needed = _NEEDED[kind_of(run)]
    if not (folder / needed).is_file():
        raise InputError(f"{folder} has no {needed}: run the command in its run.json again")
    missing = [name for name in ("length", "level") if needed == "risk.csv" and name not in run["options"]]
    if missing:
        raise InputError(f"{folder / 'run.json'} is not the record of a study (its options lack {missing[0]})")
    paths = [folder / f"{name}.csv" for name in SCHEMAS]
    tables = {path.stem: read_table(path, rows_written(run, path.stem)) for path in paths if path.is_file()}
    return Results(tables, run)


def read_table(path: Path, n_rows: int | None = None) -> pd.DataFrame:
    """Read one table exactly, each column by the type that its schema gives it.

    Text and context lengths stay as they are, whatever they look like. Numbers and integers are float64, to the last
    bit, and NaN where they are empty. Booleans are True, False or None. A column that the schema lacks is text.

    Raises
    ------
    InputError
        If it is not a table of that name, or is cut off.
    """
    cells = read_columns(path, n_rows)
    wanted = {column.name: _READ.get(column.type, str) for column in SCHEMAS[path.stem].columns}
    try:
        columns = {name: list(map(wanted.get(name, str), column)) for name, column in cells.items()}
    except ValueError as error:
        raise InputError(f"cannot read {path}: {error}") from None
    return pd.DataFrame(columns)
