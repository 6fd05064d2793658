"""The flags with which a person's own sequences are read, for every command that takes them."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from icl_estimators.options import Parser, refuse_flags, warn

if TYPE_CHECKING:
    from icl_estimators.sources import ObservedSequences

__all__ = ["DATA_FLAGS", "data_files", "data_parent", "has_data", "read_data", "refuse_data_flags"]

_OF_A_FILE = (
    *("delimiter", "characters", "header", "state_column", "id_column", "order_column"),
    *("missing", "missing_action", "states_order"),
)
DATA_FLAGS = frozenset({"sequences", "dataset", *_OF_A_FILE})
"""The flags of :func:`data_parent`, by their attributes."""


def data_parent() -> Parser:
    """Return the flags that say which observed sequences are read, for ``parents=[…]``."""
    parent = Parser(add_help=False)
    data = parent.add_mutually_exclusive_group()
    data.add_argument(
        "--sequences",
        metavar="FILE",
        help="analyse observed sequences instead of chains: a text file with one sequence per line, FASTA, or with "
        "--state-column a table with one observation per row; - is standard input",
    )
    data.add_argument("--dataset", metavar="NAME", help="analyse an observed series that comes with a library: elnino")
    labels = parent.add_mutually_exclusive_group()
    labels.add_argument(
        "--delimiter",
        type=_delimiter,
        metavar="CHAR",
        help="the character between the labels of --sequences, or the word tab or space (default: commas, semicolons, "
        "tabs or white space, whichever the file uses)",
    )
    labels.add_argument(
        "--characters",
        action="store_true",
        help="each character of --sequences is a state, as in ABACABA (FASTA needs no flag)",
    )
    parent.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first line of --sequences holds the names of columns, or does not (default: it does if a column is "
        "given by name)",
    )
    parent.add_argument(
        "--state-column",
        metavar="NAME",
        help="--sequences is a table, and this column has the states (a number from 1 where columns have no names)",
    )
    parent.add_argument(
        "--id-column",
        metavar="NAME",
        help="the rows of a table with the same entry here are one sequence (default: all "
        "rows are one); without --state-column, the names of the sequences, one per line",
    )
    parent.add_argument(
        "--order-column",
        metavar="NAME",
        help="the order of the rows of one sequence: by number if all entries are "
        "numbers, else by text, as fits ISO dates (default: as in the file)",
    )
    parent.add_argument(
        "--missing",
        type=_labels,
        metavar="NA,…",
        help="values of --sequences that are missing; an empty item is an empty cell, as in --missing NA, or "
        "--missing= (default: none; NA is a state like any other)",
    )
    parent.add_argument(
        "--missing-action",
        choices=["split", "error"],
        help="a missing value ends a piece of its sequence (split, the default), or is an error",
    )
    parent.add_argument(
        "--states-order",
        type=_labels,
        metavar="A,B,C",
        help="all states of --sequences in their order, also those that do not occur (default: those "
        "that occur, sorted)",
    )
    return parent


def _delimiter(text: str) -> str:
    return {"tab": "\t", r"\t": "\t", "space": " "}.get(text, text)


def _labels(text: str) -> tuple[str, ...]:
    """Parse labels separated by commas; one that holds a comma is quoted, as in CSV.

    Examples
    --------
    >>> _labels("NA,"), _labels(""), _labels('"a, b",c')
    (('NA', ''), ('',), ('a, b', 'c'))
    """
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True)) or [[""]]
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}: close each quote") from None
    return tuple(cell.strip() for cell in rows[0] or [""])


def has_data(options: argparse.Namespace) -> bool:
    """Say whether observed sequences are to be read."""
    return options.sequences is not None or options.dataset is not None


def refuse_data_flags(options: argparse.Namespace) -> None:
    """Refuse flags about a file where there is none, and an action for missing values where none are named.

    Raises
    ------
    InputError
        If such a flag was written.
    """
    if options.sequences is None:
        refuse_flags(options, _OF_A_FILE, "anything but --sequences")
    if options.missing is None:
        refuse_flags(options, ["missing_action"], "data without --missing")


def read_data(options: argparse.Namespace, warn: Callable[[str], None] = warn) -> ObservedSequences | None:
    """Read the sequences that the flags name; None if they name none.

    Parameters
    ----------
    options : argparse.Namespace
        As a parser with :func:`data_parent` returns it.
    warn : callable
        Takes lines about what may be wrong with the labels.

    Raises
    ------
    InputError
        If a flag does not apply; or as :func:`icl_estimators.sources.read_sequences` and
        :func:`icl_estimators.sources.observed.dataset`.
    """
    from icl_estimators.sources.observed import dataset, read_sequences

    refuse_data_flags(options)
    if options.dataset is not None:
        return dataset(options.dataset)
    if options.sequences is None:
        return None
    return read_sequences(
        options.sequences,
        warn=warn,
        dashes="--",
        delimiter=options.delimiter,
        characters=options.characters,
        header=options.header,
        state_column=options.state_column,
        id_column=options.id_column,
        order_column=options.order_column,
        missing=options.missing or (),
        missing_action=options.missing_action or "split",
        states_order=options.states_order,
    )


def data_files(options: argparse.Namespace) -> list[Path]:
    """Return the file that the sequences came from, for the record of a run: none for a pipe or standard input."""
    name = options.sequences
    return [Path(name)] if name not in (None, "-") and Path(name).is_file() else []
