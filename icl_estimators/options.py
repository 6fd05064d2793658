"""What the command lines share: parsing without usage dumps, errors as one line, exit codes."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from icl_estimators.validation import InputError, positive_int, positive_real, probability_level

__all__ = [
    "Parser",
    "command",
    "concentration",
    "count",
    "level",
    "natural",
]

Main = Callable[[Sequence[str] | None], int]


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, raised as :class:`InputError`."""

    def __init__(self, **options: object) -> None:
        super().__init__(
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **options,  # type: ignore[arg-type]
        )

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving the process."""
        raise InputError(f"{message} (--help lists the options)")


def command(body: Main) -> Main:
    """Give a command line its exit codes: 0 done, 2 the user can mend it, 130 Ctrl-C, 1 a fault of ours.

    The user's errors are one line on standard error, without a traceback. Faults of ours keep theirs.
    """

    @functools.wraps(body)
    def main(argv: Sequence[str] | None = None) -> int:
        program = body.__module__.rpartition(".")[2] if body.__module__ != "__main__" else Path(sys.argv[0]).stem
        try:
            return body(argv)
        except InputError as error:
            print(f"{program}: {' '.join(str(error).split())}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print(f"{program}: interrupted", file=sys.stderr)
            return 130
        except BrokenPipeError:  # the reader of a pipe has seen enough, as in `… | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    return main


def _number(text: str, convert: Callable[[str], float], check: Callable[..., float], name: str) -> float:
    try:
        value = convert(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    try:
        return check(value, name)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def count(text: str) -> int:
    """Parse an integer of at least 1."""
    return int(_number(text, int, positive_int, "the value"))


def natural(text: str) -> int:
    """Parse an integer of at least 0."""
    return int(_number(text, int, functools.partial(positive_int, at_least=0), "the value"))


def concentration(text: str) -> float:
    """Parse a finite number above 0."""
    return _number(text, float, positive_real, "the value")


def level(text: str) -> float:
    """Parse a confidence level strictly between 0 and 1."""
    return _number(text, float, probability_level, "the level")
