"""What the commands share: options, one-line errors, exit codes, and making the estimators."""

from __future__ import annotations

import argparse
import errno
import functools
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from icl_estimators.validation import InputError, positive_int, positive_real, probability_level
from icl_estimators.workers import refuse_command_in_worker

if TYPE_CHECKING:
    from icl_estimators.estimators import Estimator

__all__ = [
    "Interrupted",
    "Parser",
    "STOPPED",
    "Stopped",
    "Terminated",
    "add_report_flags",
    "command",
    "concentration",
    "count",
    "decomposition_parent",
    "estimator_parent",
    "exact_parent",
    "flags_of",
    "kept",
    "level",
    "make_estimators",
    "minutes",
    "natural",
    "refuse_flags",
    "report_formats",
    "sampling_parent",
    "warn",
]


STOPPED = 75
"""Exit status of a run that ``--max-time`` stopped; BSD's EX_TEMPFAIL, "try again later"."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, with a line that says what is kept and how to continue.

    Parameters
    ----------
    text : str
        The line.
    cause : KeyboardInterrupt, optional
        What was caught; by default Ctrl-C.
    """

    def __init__(self, text: str = "interrupted", cause: KeyboardInterrupt | None = None) -> None:
        super().__init__(text)
        self.status: int = getattr(cause, "status", 128 + signal.SIGINT)


class Terminated(Interrupted):
    """SIGTERM."""

    def __init__(self, text: str = "stopped by SIGTERM") -> None:
        super().__init__(text)
        self.status = 128 + signal.SIGTERM


class Stopped(Interrupted):
    """A run that its own ``--max-time`` stopped, in an orderly way."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.status = STOPPED


class Main(Protocol):
    """A command line: arguments (the process's own by default) in, exit status out."""

    __module__: str

    def __call__(self, argv: Sequence[str] | None = None) -> int: ...


class _Version(argparse.Action):
    """Print the version, and the commit where it is known, and leave."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> NoReturn:
        from icl_estimators import __version__
        from icl_estimators.provenance import code_commit

        commit = code_commit()
        print(f"icl-estimators {__version__}" + (f" (commit {commit})" if commit else ""))
        parser.exit()


class Parser(argparse.ArgumentParser):
    """An argument parser whose error messages are one line, raised as :class:`InputError`.

    What it returns has an attribute ``given``, the names of the options that were written on the command line with
    the flag of each, so that a command can tell ``--seed 0`` from no seed and refuse what does not apply.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        if self.add_help:  # not a parent of other parsers
            self.add_argument("--version", action=_Version, help="print the version and exit")

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """Parse, and record in ``given`` which options were written."""
        namespace = argparse.Namespace() if namespace is None else namespace
        flags: dict[str, str] = {}
        for action in self._actions:
            if action.option_strings and action.default is not argparse.SUPPRESS:
                both = isinstance(action, argparse.BooleanOptionalAction)  # --flag and --no-flag
                names = action.option_strings[:1] if both else action.option_strings
                flags.setdefault(action.dest, max(names, key=len))
                if not hasattr(namespace, action.dest):  # None: a repeated option starts its list from it
                    setattr(namespace, action.dest, None)
        parsed: Any = super().parse_args(args, namespace)
        # None is no valid value of our options, so an option that is still None was not written.
        parsed.given = {name: flag for name, flag in flags.items() if getattr(parsed, name) is not None}
        for name in flags:
            if name not in parsed.given:
                setattr(parsed, name, self.get_default(name))
        return parsed

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving the process."""
        raise InputError(f"{message} (--help lists the options)")


def command(body: Main) -> Main:
    """Give a command line its exit codes: 0 done, 2 the user can fix it, 130 Ctrl-C, 143 SIGTERM, 1 a bug of ours.

    A run that ``--max-time`` stops ends with :data:`STOPPED`.

    Errors that the user can fix are one line on standard error, without a traceback. Bugs keep their traceback.
    """

    @functools.wraps(body)
    def main(argv: Sequence[str] | None = None) -> int:
        program = body.__module__.rpartition(".")[2] if body.__module__ != "__main__" else Path(sys.argv[0]).stem
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal that has no α still gets its table
                stream.reconfigure(errors="backslashreplace")
        try:
            refuse_command_in_worker()
            with _terminable():
                status = body(argv)
            sys.stdout.flush()  # here, where a full disk or a closed pipe can still be handled
            return status
        except InputError as error:
            print(f"{program}: {' '.join(str(error).split())}", file=sys.stderr)
            return 2
        except KeyboardInterrupt as interruption:
            print(f"{program}: {str(interruption) or 'interrupted'}", file=sys.stderr)
            return getattr(interruption, "status", 128 + signal.SIGINT)
        except BrokenPipeError:  # the reader of a pipe has seen enough, as in `… | head`
            _drop_output()
            return 0
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            print(f"{program}: {error.strerror}: free some space and run it again", file=sys.stderr)
            _drop_output()
            return 2

    return main


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, unless the parent process set it to be ignored."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def stop(number: int, frame: object) -> NoReturn:
        raise Terminated

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _drop_output() -> None:
    """Keep the interpreter from failing again when it flushes standard output at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refuse_flags(options: argparse.Namespace, names: Iterable[str], what: str) -> None:
    """Refuse options that were written on the command line but would be ignored.

    Parameters
    ----------
    options : argparse.Namespace
        As a :class:`Parser` returns it.
    names : iterable of str
        Those that do not apply, by their attribute.
    what : str
        What they do not apply to.

    Raises
    ------
    InputError
        If any of them was written, even with its default value.
    """
    unused = set(names)
    flags = [flag for name, flag in options.given.items() if name in unused]
    if flags:
        several = len(flags) > 1
        named = f"{', '.join(flags[:-1])} and {flags[-1]}" if several else flags[0]
        raise InputError(
            f"{named} {'do' if several else 'does'} not apply to {what}: leave {'them' if several else 'it'} out"
        )


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


def minutes(text: str) -> float:
    """Parse a finite number of minutes above 0."""
    return _number(text, float, positive_real, "the number of minutes")


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


def kept(text: str) -> tuple[str, ...]:
    """Parse what a study is to keep besides its tables, separated by commas; the study knows the names.

    Examples
    --------
    >>> kept("chains")
    ('chains',)
    """
    return tuple(name.strip() for name in text.split(","))


def estimator_parent() -> Parser:
    """Return the flags that choose estimators, for ``parents=[…]``."""
    parent = Parser(add_help=False)
    parent.add_argument(
        "--estimators",
        metavar="A,B,C",
        help="comma-separated estimators, such as transformer,bigram,add-constant:0.5,my.module:rule "
        "(default: all that work with this number of states)",
    )
    parent.add_argument(
        "--checkpoint",
        dest="checkpoints",
        action="append",
        metavar="[NAME=]FILE",
        help="a trained transformer (.safetensors), and a name for its rows; may be repeated (default: the "
        "shipped one)",
    )
    return parent


def sampling_parent() -> Parser:
    """Return the flags that say which chains are drawn, for ``parents=[…]``."""
    from icl_estimators.sources.start import START_LAWS

    parent = Parser(add_help=False)
    parent.add_argument(
        "--chains", type=count, default=2000, metavar="R", help="number of independent chains (default 2000)"
    )
    parent.add_argument(
        "--sequences-per-chain",
        type=count,
        default=10,
        metavar="S",
        help="sequences drawn from each chain (default 10)",
    )
    parent.add_argument(
        "--length",
        type=count,
        default=100,
        metavar="T",
        help="tokens read from each sequence; the window on observed data (default 100)",
    )
    parent.add_argument("--states", type=count, metavar="K", help="number of states (default 3)")
    parent.add_argument("--concentration", type=concentration, metavar="A", help="α of the Dirichlet prior (default 1)")
    parent.add_argument(
        "--start", choices=list(START_LAWS), default="uniform", help="distribution of the first token (default uniform)"
    )
    parent.add_argument("--seed", type=natural, default=0, metavar="N", help="random seed of the study (default 0)")
    parent.add_argument("--device", default="cpu", help="where transformers run: cpu (default) or cuda")
    return parent


def decomposition_parent() -> Parser:
    """Return the flags of the nested design for bias and variance, for ``parents=[…]``."""
    parent = Parser(add_help=False)
    parent.add_argument(
        "--decomposition-chains",
        type=natural,
        metavar="R",
        help="number of chains in the nested design for bias and variance; 0 omits it (default 500; with an estimator "
        "of your own, in proportion to --chains)",
    )
    parent.add_argument(
        "--decomposition-sequences",
        type=count,
        default=64,
        metavar="S",
        help="sequences of each of these chains, at least 2 (default 64)",
    )
    return parent


def add_report_flags(parser: Parser) -> None:
    """Add the flags that say which report is made of a folder, if any."""
    report = parser.add_mutually_exclusive_group()
    report.add_argument(
        "--report",
        type=report_formats,
        metavar="html,pdf",
        help="formats of the report (default: both, if the extra `report` is installed)",
    )
    report.add_argument("--no-report", action="store_true", help="write the tables only, without a report")


def exact_parent() -> Parser:
    """Return the flag that switches exact checks off, for ``parents=[…]``."""
    parent = Parser(add_help=False)
    parent.add_argument(
        "--no-exact-checks",
        dest="exact_checks",
        action="store_const",
        const=False,
        help="do not ask for all prefixes of short lengths, which check the risk and give the exact part of the budget",
    )
    return parent


def flags_of(options: argparse.Namespace, names: type) -> dict[str, Any]:
    """Return the flags that are options of a study, by the same names; a flag without a value is left out.

    Parameters
    ----------
    options : argparse.Namespace
        As a :class:`Parser` returns it.
    names : TypedDict
        The options, such as :class:`icl_estimators.experiments.study.StudyOptions`.
    """
    found = {name: getattr(options, name, None) for name in names.__annotations__}
    return {name: value for name, value in found.items() if value is not None}


def warn(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr)


def make_estimators(
    options: argparse.Namespace,
    *,
    n_states: int,
    concentration: float,
    check_length: int | None = None,
    tune: Callable[[bool], float] | None = None,
) -> list[Estimator]:
    """Make the estimators of ``--estimators`` and ``--checkpoint``, without a study.

    Parameters are those of :func:`icl_estimators.experiments.assembly.assemble`.

    Raises
    ------
    InputError, ContractError
        As :func:`icl_estimators.experiments.assembly.assemble`.
    """
    from icl_estimators.experiments.assembly import assemble

    made, _ = assemble(
        options.estimators,
        n_states=n_states,
        concentration=concentration,
        warn=warn,
        checkpoints=options.checkpoints or (),
        tune=tune,
        check_length=check_length,
        dashes="--",
    )
    return list(made)
