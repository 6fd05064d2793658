from __future__ import annotations

import sys

import pytest

from icl_estimators import progress as module
from icl_estimators.progress import progress_reports


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_reports(quiet=True) as (report, notice):
        report("risk", 10, 10, "loss 1.0")
        notice("a worker was lost")
    assert capsys.readouterr() == ("", "")


def test_lines_come_at_intervals_and_say_how_long_it_takes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    with progress_reports(quiet=False) as (report, notice):
        report("risk", 200, 2000)  # an earlier run's
        now = 9.0
        report("risk", 400, 2000)
        assert capsys.readouterr().err == ""
        now = 10.0
        report("risk", 700, 2000)
        assert capsys.readouterr().err == "risk: 700 of 2,000 chains, about 26 s left\n"
        notice("a worker was lost")
        assert capsys.readouterr().err == "a worker was lost\n"
        now = 20.0
        report("risk", 2000, 2000)
        assert capsys.readouterr().err == "risk: 2,000 of 2,000 chains, 1 lost and repeated\n"
        report("risk", 2000, 2000)
        assert capsys.readouterr().err == ""


def test_what_was_measured_at_the_end_is_always_said(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_reports(quiet=False, unit="step", together=60) as (report, _):
        report("one", 10, 30, "loss 1.2")
        report("one", 30, 30, "loss 1.1")
    assert capsys.readouterr().err == "one: 30 of 30 steps, loss 1.1\n"


@pytest.mark.parametrize(("together", "totals"), [(None, ["100/100", "50/50"]), (150, ["150/150"])])
def test_on_a_terminal_there_are_bars(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, together: int | None, totals: list[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("tqdm.std.tqdm.monitor_interval", 0)
    with progress_reports(quiet=False, together=together) as (report, notice):
        for what, total in (("risk", 100), ("decomposition", 50)):
            report(what, 20, total)
            report(what, total, total, "loss 1.2")
        notice("a worker was lost")
    shown = capsys.readouterr().err
    assert all(total in shown for total in totals)
    assert "decomposition: 100%" in shown
    assert "a worker was lost" in shown
    assert "lost and repeated=1" in shown
