from __future__ import annotations

import argparse
import errno
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from icl_estimators import options
from icl_estimators.options import (
    Interrupted,
    Parser,
    Stopped,
    Terminated,
    command,
    estimator_parent,
    make_estimators,
    refuse_flags,
)
from icl_estimators.validation import InputError


def ending(outcome: object) -> Callable[[Sequence[str] | None], int]:
    """Make a command that ends with this status or this exception."""

    def main(argv: Sequence[str] | None = None) -> int:
        if isinstance(outcome, BaseException):
            raise outcome
        assert isinstance(outcome, int)
        return outcome

    main.__module__ = "icl_estimators.example"
    return command(main)


def test_done_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert ending(0)([]) == 0
    assert capsys.readouterr() == ("", "")


def test_what_the_user_can_mend_is_one_line_and_2(refused: Callable[..., str]) -> None:
    assert refused(ending(InputError("no such file: x"))) == "example: no such file: x\n"
    assert refused(ending(InputError("first\n  second\tthird"))) == "example: first second third\n"


def test_a_run_that_its_time_limit_stopped_is_75_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert ending(Stopped("stopped; continue with --resume"))([]) == options.STOPPED == 75
    assert capsys.readouterr() == ("", "example: stopped; continue with --resume\n")


def test_minutes_are_a_number_above_0() -> None:
    assert options.minutes("0.5") == 0.5
    for text in ("0", "-1", "nan", "inf", "long"):
        with pytest.raises(argparse.ArgumentTypeError):
            options.minutes(text)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="sends signals")
def test_sigterm_is_143_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    @command
    def main(argv: Sequence[str] | None = None) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)
        return 0

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        assert main([]) == 143
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert capsys.readouterr().err.endswith(": stopped by SIGTERM\n")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what the parent process ignores stays ignored
        assert ending(0)([]) == 0
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_interruption_keeps_what_it_came_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert ending(Interrupted("kept", Terminated()))([]) == 143
    assert ending(Interrupted("kept", KeyboardInterrupt()))([]) == 130
    assert capsys.readouterr().err == "example: kept\n" * 2


def test_control_c_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert ending(KeyboardInterrupt())([]) == 130
    assert capsys.readouterr() == ("", "example: interrupted\n")


@pytest.mark.parametrize("fault", [RuntimeError("ours"), ValueError("ours"), OSError(errno.EIO, "ours")])
def test_a_fault_of_ours_keeps_its_traceback(fault: Exception) -> None:
    with pytest.raises(type(fault), match="ours"):
        ending(fault)([])


def test_arguments_are_handed_on() -> None:
    seen: list[object] = []

    @command
    def main(argv: Sequence[str] | None = None) -> int:
        seen.append(argv)
        return 0

    main(["a"])
    main()
    assert seen == [["a"], None]
    assert main.__name__ == "main"


EXACT = ["-m", "icl_estimators.exact", "--context-length", "2", "--estimators", "bigram", "--csv"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_seen_enough_is_no_error(
    python: Callable[..., subprocess.CompletedProcess[str]], unbuffered: str
) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = python(
            *EXACT,
            capture_output=False,
            stdout=write_end,
            stderr=subprocess.PIPE,
            env={"PYTHONUNBUFFERED": unbuffered},
        )
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full on this system")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line_and_2(
    python: Callable[..., subprocess.CompletedProcess[str]], unbuffered: str
) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = python(
            *EXACT, capture_output=False, stdout=full, stderr=subprocess.PIPE, env={"PYTHONUNBUFFERED": unbuffered}
        )
    assert done.returncode == 2
    assert re.fullmatch(r"exact: .*: free some space and run it again\n", done.stderr)


def test_a_terminal_without_greek_still_gets_its_table(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = python(*EXACT[:-1], env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u03b1 = 1" in done.stdout
    assert re.search(r"^bigram +0\.2653 +inf$", done.stdout, flags=re.MULTILINE)


def test_streams_that_are_no_files_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert ending(0)([]) == 0


def parse(*arguments: str, kind: Callable[[str], object]) -> object:
    parser = Parser()
    parser.add_argument("--value", type=kind)
    return parser.parse_args([f"--value={argument}" for argument in arguments]).value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (options.count, "7", 7),
        (options.natural, "0", 0),
        (options.concentration, "1e-3", 0.001),
        (options.level, "0.95", 0.95),
    ],
)
def test_values_are_parsed(kind: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text, kind=kind) == value
    assert type(parse(text, kind=kind)) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (options.count, "0", "the value must be an integer of at least 1, not 0"),
        (options.count, "1e3", "'1e3' is not an integer"),
        (options.natural, "-1", "the value must be an integer of at least 0, not -1"),
        (options.natural, "x", "'x' is not an integer"),
        (options.concentration, "0", r"the value must be a finite number above 0, not 0\.0"),
        (options.concentration, "x", "'x' is not a number"),
        (options.level, "1.5", r"the level must lie strictly between 0 and 1, not 1\.5 \(0\.95 means 95 %\)"),
        (options.level, "0", r"the level must be a finite number above 0, not 0\.0"),
        (options.level, "nan", "the level must be a finite number above 0, not nan"),
        (options.level, "high", "'high' is not a number"),
    ],
)
def test_values_that_cannot_be_parsed_name_the_option(kind: Callable[[str], object], text: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"^argument --value: {message} \(--help lists the options\)$"):
        parse(text, kind=kind)


def test_options_are_not_abbreviated() -> None:
    parser = Parser()
    parser.add_argument("--value")
    with pytest.raises(InputError, match=r"unrecognized arguments: --val=3 \(--help lists the options\)"):
        parser.parse_args(["--val=3"])


def test_it_is_known_what_was_written() -> None:
    parser = Parser()
    parser.add_argument("--seed", type=options.natural, default=0)
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--file", action="append")
    parser.add_argument("--few", nargs="+", default=[1])
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--start", choices=["a", "b"], default="a")
    parser.add_argument("prompt", nargs="?", default="none")
    nothing = parser.parse_args([])
    assert nothing.given == {}
    defaults = (nothing.seed, nothing.jobs, nothing.file, nothing.few, nothing.quiet, nothing.start, nothing.prompt)
    assert defaults == (0, 2, None, [1], False, "a", "none")
    written = parser.parse_args(["--seed", "0", "--file", "x", "--file", "y", "--quiet", "--start", "a", "p"])
    assert written.given == {"seed": "--seed", "file": "--file", "quiet": "--quiet", "start": "--start"}
    assert (written.file, written.jobs, written.few) == (["x", "y"], 2, [1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "0"], "--seed does not apply to toys: leave it out"),
        (["--seed=1", "--jobs=1"], "--seed and --jobs do not apply to toys: leave them out"),
        (["--quiet", "--jobs=1", "--seed=1"], "--seed, --jobs and --quiet do not apply to toys: leave them out"),
    ],
)
def test_what_does_not_apply_is_refused_if_it_was_written(arguments: list[str], message: str) -> None:
    parser = Parser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--quiet", action="store_true")
    refuse_flags(parser.parse_args([]), ["seed", "jobs", "quiet"], "toys")
    refuse_flags(parser.parse_args(arguments), [], "toys")
    with pytest.raises(InputError, match=f"^{message}$"):
        refuse_flags(parser.parse_args(arguments), ["jobs", "seed", "quiet", "other"], "toys")


def chosen(*arguments: str) -> argparse.Namespace:
    return Parser(parents=[estimator_parent()]).parse_args(arguments)


def test_named_estimators_are_made_for_the_study() -> None:
    rules = make_estimators(chosen("--estimators", "bayes, bigram"), n_states=4, concentration=0.5)
    assert [(rule.name, rule.n_states) for rule in rules] == [("bayes", 4), ("bigram", 4)]
    assert rules[0].constant == 0.5


def test_a_checkpoint_that_is_not_there_is_named_whatever_else_is_asked(tmp_path: Path) -> None:
    there = tmp_path / "there.safetensors"
    there.touch()
    arguments = ["--estimators", "bigram", "--checkpoint", str(there), "--checkpoint", str(tmp_path / "absent")]
    with pytest.raises(InputError, match=re.escape(f"no such checkpoint: {tmp_path / 'absent'} (give a .safe")):
        make_estimators(chosen(*arguments), n_states=3, concentration=1.0)
    assert chosen(*arguments).checkpoints == [str(there), str(tmp_path / "absent")]


def test_a_default_that_cannot_take_k_is_left_out_with_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from icl_estimators.estimators import UnsupportedStates, registry

    def only_three(n_states: int) -> object:
        if n_states != 3:
            raise UnsupportedStates(f"onlythree is for 3 states, not {n_states}")
        return registry.get("uniform")

    monkeypatch.setattr(registry, "DEFAULT_SPECS", ("bigram", "onlythree"))
    monkeypatch.setitem(registry.REGISTRY, "onlythree", "icl_estimators.estimators.uniform:only_three")
    monkeypatch.setattr("icl_estimators.estimators.uniform.only_three", only_three, raising=False)
    assert [rule.name for rule in make_estimators(chosen(), n_states=3, concentration=1.0)] == ["bigram", "uniform"]
    assert capsys.readouterr().err == ""
    assert [rule.name for rule in make_estimators(chosen(), n_states=2, concentration=1.0)] == ["bigram"]
    assert capsys.readouterr() == ("", "left out: onlythree is for 3 states, not 2\n")
    with pytest.raises(InputError, match="onlythree is for 3 states, not 2"):
        make_estimators(chosen("--estimators", "bigram,onlythree"), n_states=2, concentration=1.0)
