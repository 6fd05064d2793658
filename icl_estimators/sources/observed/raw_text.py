"""The text of a file or of standard input, with the lines that cannot be text refused."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from icl_estimators.validation import InputError

__all__ = ["STANDARD_INPUT", "RawText", "read_text"]

STANDARD_INPUT = "-"
"""What stands for standard input in place of a file."""

# Not str.splitlines, which also breaks at characters that an editor shows within a line.
_LINE_END = re.compile(r"\r\n|\n|\r")
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # control characters but tabs and line ends


@dataclass(frozen=True)
class RawText:
    """A text and where it is from.

    Attributes
    ----------
    name : str
        What the data are called: a file without its folder.
    place : str
        What errors call it: the path as given.
    text : str
        Without a byte-order mark.
    """

    name: str
    place: str
    text: str

    def lines(self) -> list[tuple[int, str]]:
        """Return the lines that are not empty, with their numbers from 1 and without spaces at their ends.

        Tabs at an end stay, because they hold an empty label.
        """
        numbered = enumerate(_LINE_END.split(self.text), start=1)
        return [(number, line.strip(" ")) for number, line in numbered if line and not line.isspace()]

    def first_line(self) -> str:
        """Return the first line that is not empty."""
        start = re.search(r"\S", self.text)
        if start is None:
            return ""
        begin = max(self.text.rfind("\n", 0, start.start()), self.text.rfind("\r", 0, start.start())) + 1
        end = _LINE_END.search(self.text, start.start())
        return self.text[begin : end.start() if end else None].strip(" ")


def read_text(path: str | Path) -> RawText:
    """Read a UTF-8 text file, a named pipe, or standard input for ``-``.

    Raises
    ------
    InputError
        If it cannot be read, is empty, is not UTF-8 text, or has control characters.
    """
    standard = str(path) == STANDARD_INPUT
    place = "standard input" if standard else str(Path(path))
    content = _standard_input() if standard else _content(Path(path))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = _line_number(content[: error.start].decode("utf-8", "replace"))
        raise InputError(f"{place}, line {number} is not UTF-8 text: save it as UTF-8, one sequence per line") from None
    odd = _ODD.search(text)
    if odd is not None:
        raise InputError(
            f"{place}, line {_line_number(text[: odd.start()])} has the control character {odd[0]!r}: give a plain "
            "text file, one sequence per line"
        )
    if not text or text.isspace():
        raise InputError(f"{place} is empty: give a text file with one sequence per line")
    return RawText(place if standard else Path(path).name, place, text)


def _line_number(before: str) -> int:
    return len(_LINE_END.findall(before)) + 1


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise InputError("there is no standard input: give a text file with one sequence per line")
    return sys.stdin.buffer.read()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"no such file: {path} (give a text file with one sequence per line)") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder: give a text file with one sequence per line") from None
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot read {path}: {reason}") from None
