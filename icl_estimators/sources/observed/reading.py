"""Sequences from a text file: one way of separating labels for the whole file, or a refusal.

A file of sequences does not describe itself. So anything that is not clearly one sequence per line is refused, with its
line number. A wrong reading would give a plausible number about other data.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from icl_estimators.sources.observed.sequences import ObservedSequences
from icl_estimators.validation import InputError

__all__ = ["SEPARATORS", "find_separator", "read_sequences", "split_labels"]

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", " ": "white space"}
"""What may separate labels without being given, and what it is called."""

_NO_LABELS = {"#", "%", "//", "|", "->", "=>", "→"}
_MARKS = {">": "a header of FASTA", "#": "a comment", "%": "a comment", "//": "a comment"}
_R_INDEX = re.compile(r"\[\d+\]")
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
_HARD = tuple(mark for mark in SEPARATORS if mark != " ")  # white space may also be a part of labels
_MANY = 12  # labels beyond which numbers with decimals that hardly recur are measurements

Row = tuple[int, list[str]]
"""Number of a line, from 1, and its labels."""


def read_sequences(path: str | Path, *, delimiter: str | None = None, characters: bool = False) -> ObservedSequences:
    """Read one sequence a line from a UTF-8 text file.

    The separator is decided once for the file: commas, semicolons or tabs if one of them occurs, else white space.
    White space around labels is dropped, and labels may contain it if the separator is another. Labels stay text as
    written: ``01`` is not ``1``. Empty lines are skipped. States are numbered in the labels' sorted order (by number
    where all are numbers).

    Refused, with the line: a second separator, an empty or quoted label, a bracket without its partner, a line that
    starts like a FASTA header or a comment (``>``, ``#``, ``%``, ``//``), and what looks like a table:

    - the labels of the first line differ from each other and occur nowhere else (a header);
    - in three lines or more, the labels of the first column, or of any where all lines are equally long, differ from
      each other and occur nowhere else (names of rows, dates, measurements);
    - all lines are equally long, and some columns that vary hold numbers alone, others none; or in three lines or more,
      a first line without numbers is above a column of them;
    - there are more than a dozen labels, all numbers, some with decimals, and most occur once (measurements).

    Parameters
    ----------
    path : str or Path
        The file, or a named pipe.
    delimiter : str, optional
        What separates labels; a space is any white space.
    characters : bool
        Each character of a line is a label.

    Raises
    ------
    InputError
        If the file is missing, empty, no UTF-8 text, or refused as above; if every line is one word, so that only
        `delimiter` or `characters` can say what a label is; if both are given; if `delimiter` is empty, spans lines
        or does not occur; with `characters`, if a line has a separator; or if no sequence has two tokens.
    """
    path = Path(path)
    if characters and delimiter is not None:
        raise InputError("each character is a label with --characters, so --delimiter does not apply: give one of them")
    if delimiter is not None and (not delimiter or re.search(r"[\r\n]", delimiter)):
        raise InputError(f"the delimiter {delimiter!r} cannot separate labels: give a character such as , or |")
    lines = _lines(path)
    if characters:
        rows = [(number, _characters(line, f"{path}, line {number}")) for number, line in lines]
        form = "each character a label"
    else:
        if delimiter is None:
            separator = _separator(path, lines)
        else:
            separator = " " if delimiter.isspace() and delimiter != "\t" else delimiter
            if not any(_holds(line, separator) for _, line in lines):
                raise InputError(f"{path}: the delimiter {delimiter!r} occurs in no line: give what separates labels")
        rows = [(number, split_labels(line, separator, f"{path}, line {number}")) for number, line in lines]
        if delimiter is None:
            _refuse_inner_separator(path, rows)
        _refuse_tables(path, rows)
        form = f"labels separated by {SEPARATORS.get(separator, repr(separator))}"
    if all(len(row) < 2 for _, row in rows):
        raise InputError(
            f"{path} has no sequence of two or more tokens, so there is nothing to predict: write each sequence on one "
            "line"
        )
    labels = _in_order({label for _, row in rows for label in row})
    index = {label: k for k, label in enumerate(labels)}
    sequences = tuple(np.array([index[label] for label in row], dtype=np.int64) for _, row in rows)
    return ObservedSequences(path.name, tuple(labels), sequences, form)


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
    found = [mark for mark in _HARD if mark in text]
    if len(found) > 1:
        raise InputError(
            f"{place}: {SEPARATORS[found[0]]} and {SEPARATORS[found[1]]} both occur: separate all labels in the same "
            "way"
        )
    return found[0] if found else " " if len(text.split()) > 1 else None


def split_labels(text: str, separator: str, place: str) -> list[str]:
    """Split a text at `separator`; white space around labels is dropped.

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
    if not _holds(text, separator):
        other = next((name for mark, name in SEPARATORS.items() if _holds(text.strip(), mark)), None)
        if other is not None:
            called = SEPARATORS.get(separator, repr(separator))
            raise InputError(
                f"{place} has {other}, but elsewhere {called} separate labels: separate all labels in the same way"
            )
    labels = text.split() if separator == " " else [label.strip() for label in text.split(separator)]
    for label in labels:
        if not label:
            called = SEPARATORS.get(separator, "delimiters")
            raise InputError(f"{place} has an empty label: put one label between {called}")
        if label[0] == '"' or (len(label) > 1 and label[0] == label[-1] == "'"):
            raise InputError(f"{place}: {label} is quoted: write labels without quotes")
        for opening, closing in _BRACKETS.items():
            if label.count(opening) != label.count(closing) and len(label) > 1:
                raise InputError(f"{place}: {label} looks like a part of a list: write labels without brackets")
    if _R_INDEX.fullmatch(labels[0]) and len(labels) > 1:
        raise InputError(f"{place} starts with {labels[0]}, as in R's output: remove it")
    return labels


def _lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines that are not empty, with their numbers from 1."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"no such file: {path} (give a text file with one sequence per line)") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder: give a text file with one sequence per line") from None
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot read {path}: {reason}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text: save it as UTF-8, one sequence per line") from None
    lines = []
    # Not splitlines, which also breaks at characters that an editor shows within a line.
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        place = f"{path}, line {number}"
        odd = next((c for c in line if unicodedata.category(c) == "Cc" and c != "\t"), None)
        if odd is not None:
            raise InputError(
                f"{place} has the control character {odd!r}: give a plain text file, one sequence per line"
            )
        line = line.strip(" ") if line.strip() else ""  # tabs at an end hold an empty label
        if not line:
            continue
        for mark, kind in _MARKS.items():
            if line.lstrip().startswith(mark):
                raise InputError(
                    f"{place} starts with {mark}, as {kind} does: remove such lines (a state with that name "
                    "needs another name)"
                )
        lines.append((number, line))
    if not lines:
        raise InputError(f"{path} is empty: give a text file with one sequence per line")
    return lines


def _holds(text: str, separator: str) -> bool:
    return len(text.split()) > 1 if separator == " " else separator in text


def _separator(path: Path, lines: list[tuple[int, str]]) -> str:
    """Return what separates labels in all lines."""
    found: dict[str, int] = {}
    for number, line in lines:
        odd_label = next((word for word in line.split() if word in _NO_LABELS), None)
        if odd_label is not None:
            raise InputError(
                f"{path}, line {number} has {odd_label} among its labels, as a comment or an arrow does: separate "
                "labels by commas, semicolons, tabs or white space alone, and remove comments"
            )
        separator = find_separator(line, f"{path}, line {number}")
        if separator is None:
            continue
        for before, where in found.items():
            if separator != before:
                raise InputError(
                    f"{path}, line {number} has {SEPARATORS[separator]}, but line {where} has {SEPARATORS[before]}: "
                    "separate all labels in the same way, or name the separator with --delimiter"
                )
        found.setdefault(separator, number)
    if not found:
        raise InputError(
            f"every line of {path} is one word: give --characters if each character is a state, or --delimiter with "
            "what separates the states; put a series with one state per line on one line"
        )
    return next(iter(found))


def _characters(line: str, place: str) -> list[str]:
    odd = next((c for c in line if c.isspace() or c in SEPARATORS), None)
    if odd is not None:
        raise InputError(
            f"{place} has {SEPARATORS.get(odd, 'white space')}, but --characters treats each character as a state: "
            "omit --characters, or remove it from the line"
        )
    return list(line)


def _refuse_inner_separator(path: Path, rows: list[Row]) -> None:
    """Refuse ``sun rain`` where ``sun`` is a label too: white space is a second separator there."""
    labels = {label for _, row in rows for label in row}
    for number, row in rows:
        for label in row:
            words = label.split()
            known = next((word for word in words if word in labels), None) if len(words) > 1 else None
            if known is not None:
                raise InputError(
                    f"{path}, line {number}: {label!r} contains white space, and {known!r} is a label too: separate "
                    "all labels in the same way, or name the separator with --delimiter"
                )


def _refuse_tables(path: Path, rows: list[Row]) -> None:
    """Refuse what looks like rows of a table, by the rules that :func:`read_sequences` states."""
    remedy = "keep only the states, and put each sequence on one line"
    counts = Counter(label for _, row in rows for label in row)
    number, first = rows[0]
    if len(rows) > 1 and all(counts[label] == 1 for label in first):
        raise InputError(
            f"{path}, line {number} looks like the header of a table ({_few(first)} occur nowhere else): {remedy} (a "
            "first sequence of such states may be put last)"
        )
    rectangular = len({len(row) for _, row in rows}) == 1
    columns = list(zip(*(row for _, row in rows), strict=True)) if rectangular else [[row[0] for _, row in rows]]
    if len(rows) >= 3:
        for position, column in enumerate(columns, start=1):
            if all(counts[label] == 1 for label in column):
                raise InputError(
                    f"{path} looks like a table: the labels of column {position} ({_few(column)}) occur nowhere "
                    f"else: {remedy}"
                )
    varying = [(position, column) for position, column in enumerate(columns, start=1) if len(set(column)) > 1]
    numbers = [position for position, column in varying if all(map(_is_number, column))]
    words = [position for position, column in varying if not any(map(_is_number, column))]
    titled = [column for column in columns if len(rows) >= 3 and all(map(_is_number, column[1:]))]
    if rectangular and titled and not any(map(_is_number, first)):
        raise InputError(
            f"{path}, line {number} looks like the header of a table ({titled[0][0]} above numbers): {remedy}"
        )
    if rectangular and numbers and words:
        raise InputError(
            f"{path} looks like a table: column {numbers[0]} has numbers, column {words[0]} words: {remedy}"
        )
    once = sum(count == 1 for count in counts.values())
    measured = all(map(_is_number, counts)) and any("." in label for label in counts)
    if measured and len(counts) > _MANY and once > len(counts) / 2:
        raise InputError(
            f"{path} looks like measurements, not states: {len(counts)} different numbers ({_few(list(counts))}), "
            f"{once} of which occur once: divide them into a few states"
        )


def _few(labels: Sequence[str]) -> str:
    return ", ".join(labels[:3]) + (", …" if len(labels) > 3 else "")


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _in_order(labels: set[str]) -> list[str]:
    by_text = sorted(labels)  # first, so that the order never hangs on the set's
    if not all(map(_is_number, labels)):
        return by_text
    numbers = {label: float(label) for label in labels}
    return by_text if any(map(math.isnan, numbers.values())) else sorted(by_text, key=numbers.__getitem__)
