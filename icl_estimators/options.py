"""What the command lines share: parsing without usage dumps, errors as one line, exit codes, estimators."""

from __future__ import annotations

import argparse
import errno
import functools
import io
import os
import signal
import sys
import threading
import time
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
    "Terminated",
    "command",
    "concentration",
    "count",
    "decomposition_parent",
    "estimator_parent",
    "level",
    "make_estimators",
    "natural",
    "progress_reports",
    "refuse_flags",
    "report_formats",
    "sampling_parent",
]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, with a line that says what is kept and how to go on.

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
    """An argument parser whose complaints are one line, raised as :class:`InputError`.

    What it returns has an attribute ``given``, the names of the options that were written on the command line with
    the flag of each, so that a command can tell ``--seed 0`` from no seed and refuse what does not apply.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        if self.add_help:  # not a parent of other parsers
            self.add_argument("--version", action=_Version, help="print the version and leave")

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """Parse, and note in ``given`` which options were written."""
        namespace = argparse.Namespace() if namespace is None else namespace
        flags: dict[str, str] = {}
        for action in self._actions:
            if action.option_strings and action.default is not argparse.SUPPRESS:
                flags.setdefault(action.dest, max(action.option_strings, key=len))
                if not hasattr(namespace, action.dest):  # None, which a repeated option begins a list from
                    setattr(namespace, action.dest, None)
        parsed: Any = super().parse_args(args, namespace)
        # No option of ours takes None for a value, so that what still is None was not written.
        parsed.given = {name: flag for name, flag in flags.items() if getattr(parsed, name) is not None}
        for name in flags:
            if name not in parsed.given:
                setattr(parsed, name, self.get_default(name))
        return parsed

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving the process."""
        raise InputError(f"{message} (--help lists the options)")


def command(body: Main) -> Main:
    """Give a command line its exit codes: 0 done, 2 the user can mend it, 130 Ctrl-C, 143 SIGTERM, 1 a fault of ours.

    The user's errors are one line on standard error, without a traceback. Faults of ours keep theirs.
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
            sys.stdout.flush()  # here, where a full disk or a closed pipe can still be answered
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
            print(f"{program}: {error.strerror}: make room and run it again", file=sys.stderr)
            _drop_output()
            return 2

    return main


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, unless whoever started this process has it ignored."""
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
    """Keep the interpreter from failing once more when it flushes standard output at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refuse_flags(options: argparse.Namespace, names: Iterable[str], what: str) -> None:
    """Refuse options that were written on the command line but would not be looked at.

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
        metavar="[NAME=]FILE",
        help="a trained transformer (.safetensors), and what its rows are called; may be repeated (default: the "
        "shipped one)",
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
    check_length: int | None = None,
    tune: Callable[[bool], float] | None = None,
) -> list[Estimator]:
    """Make what ``--estimators`` and ``--checkpoint`` ask for. A default that cannot take K is left out with a line.

    With `check_length`, each is held to the contract on sequences of so many tokens; a study does that by itself.
    `tune` is what ``construction-softmax:tuned`` asks for its γ, where chains have a law and a length.

    Raises
    ------
    InputError
        As :func:`icl_estimators.estimators.get_all`, or if a checkpoint or the device is not there, or no estimator
        uses it.
    ContractError
        If an estimator breaks the contract.
    """
    from icl_estimators.estimators import DEFAULT_SPECS, get_all, split_specs
    from icl_estimators.estimators.accepted_options import require_use
    from icl_estimators.estimators.checkpoint_labels import label_checkpoints

    specs = None if options.estimators is None else split_specs(options.estimators)
    for checkpoint in label_checkpoints(options.checkpoint or ()):
        if not checkpoint.path.is_file():
            raise InputError(f"no such checkpoint: {checkpoint.path} (give a .safetensors file)")
    device = getattr(options, "device", "cpu")
    if device != "cpu":  # asked for, even if no transformer is
        from icl_estimators.transformer.device import require_device

        require_device(device)
    reference = getattr(options, "reference", None)  # it is computed too
    named = [*(DEFAULT_SPECS if specs is None else specs), *(() if reference is None else (reference,))]
    require_use(named, checkpoints=bool(options.checkpoint), device=device, dashes="--")
    made = get_all(
        specs,
        n_states=n_states,
        concentration=concentration,
        checkpoints=options.checkpoint or (),
        warn=lambda line: print(line, file=sys.stderr),
        device=device,
        tune=tune,
    )
    if check_length is not None:
        _check(made, n_states, check_length)
    return made


def _check(estimators: Sequence[Estimator], n_states: int, length: int) -> None:
    from icl_estimators.engine.executors import one_thread
    from icl_estimators.estimators import check_estimator, stated_tolerances, tolerance_lines

    with one_thread():
        for estimator in estimators:
            check_estimator(estimator, n_states, length=length)
    for line in tolerance_lines(stated_tolerances(estimators)):
        print(line, file=sys.stderr)


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
