"""Labels of states: what separates them in a text, which words are none, and their order."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence

from icl_estimators.validation import InputError

__all__ = [
    "HARD",
    "SEPARATORS",
    "cells_of",
    "check_label",
    "few",
    "find_separator",
    "holds",
    "in_order",
    "is_number",
    "outside_quotes",
    "refuse_r_index",
    "split_labels",
]

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", " ": "white space"}
"""What may separate labels without being given, and what it is called."""

HARD = tuple(mark for mark in SEPARATORS if mark != " ")
"""Separators that are not white space, which may also be a part of labels."""

_R_INDEX = re.compile(r"\[\d+\]")
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
_LONGEST = 40  # characters of a label in a list
_QUOTED = re.compile(r'"[^"]*"')


def outside_quotes(text: str) -> str:
    """Return a text without what stands in double quotes.

    Examples
    --------
    >>> outside_quotes('"a,b";c')
    '"";c'
    """
    return _QUOTED.sub('""', text) if '"' in text else text


def find_separator(text: str, place: str) -> str | None:
    """Return the one separator of a text, or None if it is a single word.

    Raises
    ------
    InputError
        If there are two of commas, semicolons and tabs.

    Examples
    --------
    >>> find_separator("sun, rain, sun", "the prompt"), find_separator("ABBA", "the prompt")
    (',', None)
    """
    text = text.strip()
    found = [mark for mark in HARD if mark in text]
    if len(found) > 1:
        raise InputError(
            f"{place}: {SEPARATORS[found[0]]} and {SEPARATORS[found[1]]} both occur: separate all labels in the same "
            "way"
        )
    return found[0] if found else " " if len(text.split()) > 1 else None


def holds(text: str, separator: str) -> bool:
    """Say whether a separator occurs in a text; a space stands for any white space."""
    return len(text.split()) > 1 if separator == " " else separator in text


def cells_of(text: str, separator: str, place: str) -> list[str]:
    """Split a line at `separator`, which need not occur; white space around cells is dropped.

    Cells may be in double quotes, as in CSV, where the separator is one character and not white space (tabs are
    allowed).

    Raises
    ------
    InputError
        If a quote is not closed, or text follows a closing quote; or if `separator` does not occur but another does.

    Examples
    --------
    >>> cells_of('"sun, then rain", sun', ",", "line 1")
    ['sun, then rain', 'sun']
    """
    if not holds(text, separator):
        bare = outside_quotes(text).strip()
        other = next((name for mark, name in SEPARATORS.items() if holds(bare, mark)), None)
        if other is not None:
            called = SEPARATORS.get(separator, repr(separator))
            raise InputError(
                f"{place} has {other}, but elsewhere {called} separate labels: separate all labels in the same way"
            )
    if separator == " ":
        return text.split()
    if '"' in text and len(separator) == 1:
        try:
            (cells,) = csv.reader([text], delimiter=separator, skipinitialspace=True, strict=True)
        except csv.Error as error:
            raise InputError(f'{place}: {error}: close each quote, and write " within quotes as ""') from None
    else:
        cells = text.split(separator)
    return [cell.strip() for cell in cells]


def check_label(label: str, place: str, separator: str | None = None) -> None:
    """Refuse what a label of a text cannot be.

    Parameters
    ----------
    label, place : str
    separator : str, optional
        What separates labels; None where a label may be anything but empty.

    Raises
    ------
    InputError
        If a label is empty, quoted or has a bracket without its partner.
    """
    if not label:
        called = SEPARATORS.get(separator or "", "delimiters")
        raise InputError(f"{place} has an empty label: put one label between {called}")
    if separator is None:
        return
    if (label[0] == '"' and separator == " ") or (len(label) > 1 and label[0] == label[-1] == "'"):
        remedy = "write labels without quotes" + (", separated by commas" if separator == " " else "")
        raise InputError(f"{place}: {label} is quoted: {remedy}")
    for opening, closing in _BRACKETS.items():
        if label.count(opening) != label.count(closing) and len(label) > 1:
            raise InputError(f"{place}: {label} looks like a part of a list: write labels without brackets")


def refuse_r_index(labels: Sequence[str], place: str) -> None:
    """Refuse a line that starts with an index, as R prints vectors.

    Raises
    ------
    InputError
        If the first of several labels is such an index.
    """
    if len(labels) > 1 and _R_INDEX.fullmatch(labels[0]):
        raise InputError(f"{place} starts with {labels[0]}, as in R's output: remove it")


def split_labels(text: str, separator: str, place: str) -> list[str]:
    """Split a text without quotes at `separator`; white space around labels is dropped.

    Raises
    ------
    InputError
        If a label is empty, quoted or has a bracket without its partner; or if `separator` does not occur but
        another does.

    Examples
    --------
    >>> split_labels("La Niña, El Niño", ",", "line 1")
    ['La Niña', 'El Niño']
    """
    quoted = next((word for word in text.split(separator) if word.strip()[:1] == '"'), None)
    if quoted is not None:
        raise InputError(f"{place}: {quoted.strip()} is quoted: write labels without quotes")
    labels = cells_of(text, separator, place)
    for label in labels:
        check_label(label, place, separator)
    refuse_r_index(labels, place)
    return labels


def is_number(label: str) -> bool:
    """Say whether a label reads as a number (``nan`` and ``inf`` do)."""
    try:
        float(label)
    except ValueError:
        return False
    return True


def in_order(labels: Iterable[str]) -> list[str]:
    """Return labels sorted: by number where all are numbers, else by text.

    Examples
    --------
    >>> in_order(["10", "9"]), in_order(["b", "10", "9"])
    (['9', '10'], ['10', '9', 'b'])
    """
    by_text = sorted(labels)  # first, so that the order never hangs on that of a set
    if not all(map(is_number, by_text)):
        return by_text
    numbers = {label: float(label) for label in by_text}
    return by_text if any(map(math.isnan, numbers.values())) else sorted(by_text, key=numbers.__getitem__)


def few(labels: Sequence[str], n_shown: int = 3) -> str:
    """Return the first labels as a list in words.

    Examples
    --------
    >>> few(["a", "b", "c", "d"])
    'a, b, c, …'
    """
    shown = (" ".join(label[:_LONGEST].split()) for label in labels[:n_shown])  # a message is one line
    return ", ".join(shown) + (", …" if len(labels) > n_shown else "")
