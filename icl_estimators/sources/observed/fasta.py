"""FASTA: records of a name after ``>`` and lines of characters, each of which is a state."""

from __future__ import annotations

import numpy as np

from icl_estimators.sources.observed.encoded import Encoded, Encoder, line_of
from icl_estimators.sources.observed.raw_text import RawText
from icl_estimators.sources.observed.reading_options import ReadingOptions
from icl_estimators.validation import InputError

__all__ = ["is_fasta", "read_fasta"]

_MARK = ">"


def is_fasta(text: RawText) -> bool:
    """Say whether the first line that is not empty starts with ``>``."""
    return text.first_line().lstrip().startswith(_MARK)


def read_fasta(text: RawText, options: ReadingOptions) -> Encoded:
    """Read the records; the first word after ``>`` is the name of a sequence. Upper and lower case differ.

    Raises
    ------
    InputError
        If an option is given that does not apply, a record has no name or no states, two have the same name, or a
        line has white space.
    """
    for name in ("delimiter", "header", "state_column", "id_column", "order_column"):
        if getattr(options, name) is not None:
            raise InputError(
                f"{text.place} starts with {_MARK}, as FASTA does, so {options.flag(name)} does not apply: leave it out"
            )
    options.check_characters()

    def check(label: str, place: str) -> None:
        if label.isspace():
            raise InputError(f"{place} has white space, but each character of FASTA is a state: remove it")

    encoder, ids, numbers, parts = Encoder(check), dict[str, int](), list[int](), list[int]()
    empty = False
    last = 0
    for number, line in text.lines():
        place = f"{text.place}, line {number}"
        line = line.strip()
        if not line.startswith(_MARK):
            encoder.add(line, place)
            numbers.append(number)
            parts.append(len(line))
            empty = False
            continue
        _refuse_empty(empty, f"{text.place}, line {last}")
        name = next(iter(line.removeprefix(_MARK).split()), "")
        if not name:
            raise InputError(f"{place} has no name after {_MARK}: give each record one")
        if name in ids:
            raise InputError(
                f"{place} has the name {name!r}, as line {ids[name]} has: give each record a name of its own"
            )
        if ids:
            encoder.end()
        ids[name] = last = number
        empty = True
    _refuse_empty(empty, f"{text.place}, line {last}")
    encoder.end()
    codes, lengths = encoder.result()
    where = line_of(text.place, np.array(parts, dtype=np.int64), numbers)
    return Encoded(
        name=text.name,
        place=text.place,
        labels=encoder.labels,
        codes=codes,
        lengths=lengths,
        where=where,
        form="FASTA, each character a label",
        ids=tuple(ids),
    )


def _refuse_empty(empty: bool, place: str) -> None:
    if empty:
        raise InputError(f"{place} starts a record without states: write them below its name, or remove it")
