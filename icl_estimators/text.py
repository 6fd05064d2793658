"""Plain-text tables for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["columns_of", "exactly", "gamma_text", "number", "text_table"]


def number(value: float, digits: int = 4) -> str:
    """Spell a number for reading: fixed decimals, `inf` and `nan` in words.

    Examples
    --------
    >>> number(0.26527), number(float("inf")), number(0.0000012), number(-0.0)
    ('0.2653', 'inf', '1.2e-06', '0.0000')
    """
    value = float(value) + 0.0  # −0.0 reads as a number below 0
    if value != 0 and abs(value) < 0.5 * 10**-digits:
        return f"{value:.1e}"
    return f"{value:.{digits}f}"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Align a table; the first `left` columns to the left, the others to the right.

    Examples
    --------
    >>> print(text_table(["rule", "A"], [["bigram", "0.5"], ["add-one", "0.4"]]))
    rule       A
    -------  ---
    bigram   0.5
    add-one  0.4
    """
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(columns_of, column)) for column in columns]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            _pad(cell, width, to_left=index < left)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def exactly(value: float) -> str:
    """Spell a number so that reading it gives the same one, as short as that allows.

    Examples
    --------
    >>> exactly(2.0), exactly(0.1), exactly(0.1 + 0.2)
    ('2', '0.1', '0.30000000000000004')
    """
    short = f"{value:.15g}"
    return short if float(short) == value else repr(float(value))


def gamma_text(default: Mapping[str, float], tuned: Iterable[str] = ()) -> str:
    """Say which read-out scale γ was used where the name does not, and which were tuned; empty if neither.

    Examples
    --------
    >>> print(gamma_text({"construction-softmax": 0.645}, ["construction-softmax:0.325"]))
    construction-softmax: γ = 0.645, the default
    construction-softmax:0.325: γ tuned to this law and length
    """
    lines = [f"{name}: γ = {exactly(gamma)}, the default" for name, gamma in default.items()]
    return "\n".join([*lines, *(f"{name}: γ tuned to this law and length" for name in tuned)])


def _pad(cell: str, width: int, *, to_left: bool) -> str:
    space = " " * (width - columns_of(cell))
    return cell + space if to_left else space + cell


def columns_of(text: str) -> int:
    """Count the terminal columns of `text`: wide characters take two, combining marks none.

    Examples
    --------
    >>> columns_of("AB"), columns_of("日本")
    (2, 4)
    """
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
