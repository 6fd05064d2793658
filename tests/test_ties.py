from __future__ import annotations

import math

import pytest

from icl_estimators.ties import Pairs, verdict

NAN = math.nan


def row(estimator: str, other: str, difference: float, low: float, high: float, note: str = "") -> dict[str, object]:
    numbers = {"difference": difference, "ci_low": low, "ci_high": high}
    return {"estimator": estimator, "other": other, "metric": "kl_nats", "note": note, **numbers}


ROWS = [
    row("b", "a", 0.1, -0.1, 0.3),
    row("c", "a", 0.5, 0.4, 0.6),
    row("d", "a", 0.0, 0.0, 0.0),
    row("e", "a", 0.2, NAN, NAN, "no interval"),
    row("f", "a", NAN, NAN, NAN, "infinite"),
    row("y", "x", 0.5, 0.4, 0.6),
    {**row("c", "b", 0.5, -1.0, 1.0), "metric": "squared_error"},
]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0.1, 0.05, 0.2), "worse"),
        ((-0.1, -0.2, -0.05), "better"),
        ((0.1, 0.0, 0.2), "not distinguishable"),
        ((0.0, -1e-16, 1e-16), "identical"),
        ((0.1, NAN, NAN), "–"),
    ],
)
def test_a_verdict_follows_the_interval(numbers: tuple[float, float, float], said: str) -> None:
    assert verdict(*numbers) == said


def test_tied_are_those_whose_interval_holds_0_and_twins() -> None:
    pairs = Pairs(ROWS, "kl_nats")
    assert len(pairs) == 6
    assert pairs.tied("a", list("bcdef")) == ["b", "d"]
    assert pairs.undecided("a", list("bcdef")) == ["e"]
    assert pairs.compared("a", list("bxyc")) == ["b", "c"]
    assert pairs.of("b", "c") is None, "another metric"
    turned = pairs.of("a", "c")
    assert turned is not None
    assert (turned.difference, turned.low, turned.high, turned.verdict) == (-0.5, -0.6, -0.4, "better")


def test_groups_are_those_that_were_compared() -> None:
    assert Pairs(ROWS, "kl_nats").groups(["a", "x", "b", "y", "z"]) == [["a", "b"], ["x", "y"], ["z"]]
