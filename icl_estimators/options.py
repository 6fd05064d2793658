"""What the command lines share: parsing without usage dumps, errors as one line, exit codes, estimators."""

from __future__ import annotations

import argparse
import errno
import functools
import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from icl_estimators.validation import InputError, positive_int, positive_real, probability_level

if TYPE_CHECKING:
    from icl_estimators.estimators import Estimator

__all__ = [
    "Interrupted",
    "Parser",
    "command",
    "concentration",
    "count",
    "decomposition_parent",
    "estimator_parent",
    "level",
    "make_estimators",
    "natural",
    "progress_reports",
    "report_formats",
    "sampling_parent",
]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a line that says what is kept and how to go on."""


class Main(Protocol):
    """A command line: arguments (the process's own by default) in, exit status out."""

    __module__: str

    def __call__(self, argv: Sequence[str] | None = None) -> int: ...


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
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal that has no α still gets its table
                stream.reconfigure(errors="backslashreplace")
        try:
            status = body(argv)
            sys.stdout.flush()  # here, where a full disk or a closed pipe can still be answered
            return status
        except InputError as error:
            print(f"{program}: {' '.join(str(error).split())}", file=sys.stderr)
            return 2
        except KeyboardInterrupt as interruption:
            print(f"{program}: {str(interruption) or 'interrupted'}", file=sys.stderr)
            return 130
        except BrokenPipeError:  # the reader of a pipe has seen enough, as in `… | head`
            _drop_output()
            return 0
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            print(f"{program}: {error.strerror}: make room and run it again", file=sys.stderr)
            _drop_output()
            return 2

    return main


def _drop_output() -> None:
    """Keep the interpreter from failing once more when it flushes standard output at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _number(text: str, convert: Callable[[str], float], check: Callable[..., float], name: str) -> float:
    try:
        value = convert(text)
    except ValueError:
        kind = "an integer" if convert is int else "a number"
        raise argparse.ArgumentTypeError(f"{text!r} is not {kind}") from None
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


def report_formats(text: str) -> tuple[str, ...]:
    """Parse the formats of a report, separated by commas.

    Examples
    --------
    >>> report_formats("pdf,html")
    ('pdf', 'html')
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in ("html", "pdf"):
            raise argparse.ArgumentTypeError(f"{name!r} is not a format of the report: html or pdf")
    return names


def estimator_parent() -> Parser:
    """Return the flags that choose estimators, for ``parents=[…]``."""
    parent = Parser(add_help=False)
    parent.add_argument(
        "--estimators",
        metavar="A,B,C",
        help="comma-separated specs, such as transformer,bigram,add-constant:0.5,my.module:rule "
        "(default: all that take this many states)",
    )
    parent.add_argument(
        "--checkpoint",
        action="append",
        metavar="FILE",
        help="a trained transformer (.safetensors); may be repeated (default: the shipped one)",
    )
    return parent


def sampling_parent() -> Parser:
    """Return the flags that say which chains are drawn, for ``parents=[…]``."""
    parent = Parser(add_help=False)
    parent.add_argument("--chains", type=count, default=2000, metavar="R", help="independent chains (default 2000)")
    parent.add_argument(
        "--sequences-per-chain", type=count, default=10, metavar="S", help="sequences of each chain (default 10)"
    )
    parent.add_argument(
        "--length",
        type=count,
        default=100,
        metavar="T",
        help="tokens read; the window on observed data (default 100)",
    )
    parent.add_argument("--states", type=count, metavar="K", help="number of states (default 3)")
    parent.add_argument("--concentration", type=concentration, metavar="A", help="α of the Dirichlet prior (default 1)")
    parent.add_argument("--start", choices=["uniform", "stationary"], default="uniform", help="law of the first token")
    parent.add_argument("--seed", type=natural, default=0, metavar="N", help="seed of the study (default 0)")
    parent.add_argument("--device", default="cpu", help="where a transformer runs: cpu (default) or cuda")
    return parent


def decomposition_parent() -> Parser:
    """Return the flags of the nested design for bias and variance, for ``parents=[…]``."""
    parent = Parser(add_help=False)
    parent.add_argument(
        "--decomposition-chains",
        type=natural,
        default=500,
        metavar="R",
        help="chains of the nested design for bias and variance; 0 leaves it out (default 500)",
    )
    parent.add_argument(
        "--decomposition-sequences",
        type=count,
        default=64,
        metavar="S",
        help="sequences of each of them, at least 2 (default 64)",
    )
    return parent


def make_estimators(
    options: argparse.Namespace,
    *,
    n_states: int,
    concentration: float,
    tune: Callable[[bool], float] | None = None,
) -> list[Estimator]:
    """Make what ``--estimators`` and ``--checkpoint`` ask for; a default that cannot take K is left out aloud.

    `tune` is what ``construction-softmax:tuned`` asks for its γ, where chains have a law and a length.

    Raises
    ------
    InputError
        As :func:`icl_estimators.estimators.get_all`, or if a checkpoint or the device is not there.
    ContractError
        If an estimator breaks the contract.
    """
    from icl_estimators.estimators import check_estimator, get_all, split_specs

    specs = None if options.estimators is None else split_specs(options.estimators)
    for checkpoint in options.checkpoint or ():
        if not Path(checkpoint).is_file():
            raise InputError(f"no such checkpoint: {checkpoint} (give a .safetensors file)")
    device = getattr(options, "device", "cpu")
    if device != "cpu":  # asked for, even if no transformer is
        from icl_estimators.transformer.training import require_device

        require_device(device)
    made = get_all(
        specs,
        n_states=n_states,
        concentration=concentration,
        checkpoints=options.checkpoint or (),
        warn=lambda line: print(line, file=sys.stderr),
        device=device,
        tune=tune,
    )
    for estimator in made:
        check_estimator(estimator, n_states)
    return made


@contextmanager
def progress_reports(*, quiet: bool) -> Iterator[tuple[Callable[[str, int, int], None], Callable[[str], None]]]:
    """Give two callbacks: (what, done, total) for progress, and one that takes a line for each loss made good.

    Progress is a bar on a terminal, a line now and then otherwise, and nothing if quiet; losses are counted beside it.
    """
    if quiet:
        yield lambda what, done, total: None, lambda line: None
    elif sys.stderr.isatty():
        yield from _bars()
    else:
        yield from _lines()


def _bars() -> Iterator[tuple[Callable[[str, int, int], None], Callable[[str], None]]]:
    from tqdm import tqdm

    bars: dict[str, tqdm] = {}
    losses = 0

    def show(what: str, done: int, total: int) -> None:
        if what not in bars:  # what an earlier run had finished says nothing about the speed of this one
            bars[what] = tqdm(total=total, desc=what, unit="chain", leave=False, initial=done if done < total else 0)
        bars[what].update(done - bars[what].n)

    def say(line: str) -> None:
        nonlocal losses
        losses += 1
        tqdm.write(line, file=sys.stderr)
        for bar in bars.values():
            bar.set_postfix({"lost and made good": losses})

    try:
        yield show, say
    finally:
        for bar in bars.values():
            bar.close()


def _lines() -> Iterator[tuple[Callable[[str, int, int], None], Callable[[str], None]]]:
    began: dict[str, tuple[float, int]] = {}
    last = time.monotonic()
    losses = 0

    def log(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        start, before = began.setdefault(what, (now, done))
        if now - last >= 10:
            last = now
            left = f", about {(now - start) / (done - before) * (total - done):.0f} s left" if done > before else ""
            lost = f", {losses} lost and made good" if losses else ""
            print(f"{what}: {done:,} of {total:,} chains{lost}{left}", file=sys.stderr)

    def say(line: str) -> None:
        nonlocal losses
        losses += 1
        print(line, file=sys.stderr)

    yield log, say
