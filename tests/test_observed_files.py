"""The log losses of four kinds of files, against a plain loop over what was written."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icl_estimators.evaluate import main

Sequences = list[list[str]]
RNG = np.random.default_rng(4)


def drawn(states: str, count: int, longest: int) -> Sequences:
    law = RNG.dirichlet(np.full(len(states), 0.5), size=len(states))
    made = []
    for length in RNG.integers(2, longest, size=count):
        tokens = [int(RNG.integers(len(states)))]
        for _ in range(length - 1):
            tokens.append(int(RNG.choice(len(states), p=law[tokens[-1]])))
        made.append([states[token] for token in tokens])
    return made


def lines(folder: Path, data: Sequences) -> list[str]:
    (folder / "data.txt").write_text("\n".join(" ".join(sequence) for sequence in data))
    return ["--sequences", str(folder / "data.txt")]


def characters(folder: Path, data: Sequences) -> list[str]:
    (folder / "data.txt").write_text("\r\n".join("".join(sequence) for sequence in data))
    return ["--sequences", str(folder / "data.txt"), "--characters"]


def fasta(folder: Path, data: Sequences) -> list[str]:
    text = "".join(f">s{number}\n{''.join(sequence)}\n" for number, sequence in enumerate(data))
    (folder / "data.fa").write_text(text)
    return ["--sequences", str(folder / "data.fa")]


def table(folder: Path, data: Sequences) -> list[str]:
    rows = [(f"p{n}", place, state) for n, sequence in enumerate(data) for place, state in enumerate(sequence)]
    frame = pd.DataFrame(rows, columns=["person", "day", "state"]).sort_values("day", kind="stable")
    frame.to_csv(folder / "data.csv", index=False)
    columns = ["--state-column", "state", "--id-column", "person", "--order-column", "day"]
    return ["--sequences", str(folder / "data.csv"), *columns]


def losses(data: Sequences, states: list[str], *, order: int, alpha: float, pooled: bool) -> float:
    """Predict every token after the first of each sequence, one after another."""
    total, number, counts = 0.0, 0, {}
    for sequence in data:
        if not pooled:
            counts = {}
        for place, state in enumerate(sequence):
            context = tuple(sequence[place - order : place])
            row = counts.setdefault(context, dict.fromkeys(states, 0)) if place >= order else None
            if place > 0:
                chance = (
                    1 / len(states) if row is None else (row[state] + alpha) / (sum(row.values()) + alpha * len(states))
                )
                total, number = total - math.log(chance), number + 1
            if row is not None:
                row[state] += 1
    return total / number


@pytest.mark.parametrize("write", [lines, characters, fasta, table])
def test_log_losses_are_those_of_a_plain_loop(write: Callable[[Path, Sequences], list[str]], tmp_path: Path) -> None:
    data = drawn("abcd", 25, 12)
    states = sorted({state for sequence in data for state in sequence})
    rules = {"add-one": (1, 1.0), "krichevsky-trofimov": (1, 0.5), "unigram": (0, 1.0), "add-one:order=2": (2, 1.0)}
    out = tmp_path / "out"
    arguments = ["--estimators", ",".join(rules), "--pool", "--out", str(out), "--no-report", "--quiet"]
    assert main([*write(tmp_path, data), *arguments]) == 0
    found = pd.read_csv(out / "risk.csv").set_index("estimator").estimate
    for name, (order, alpha) in rules.items():
        for suffix, pooled in (("", False), (":pooled", True)):
            expected = losses(data, states, order=order, alpha=alpha, pooled=pooled)
            assert found[name + suffix] == pytest.approx(expected, rel=1e-12), name + suffix


def test_a_gap_is_no_transition_and_no_state(tmp_path: Path) -> None:
    (tmp_path / "gap.txt").write_text("a b b NA b a c a\n")
    out = tmp_path / "out"
    flags = ["--missing", "NA", "--estimators", "add-one", "--out", str(out), "--no-report", "--quiet"]
    assert main(["--sequences", str(tmp_path / "gap.txt"), *flags]) == 0
    transitions = pd.read_csv(out / "transitions.csv")
    assert transitions["count"].sum() == 5
    row = transitions[transitions.source == "b"]
    assert row.target.tolist() == ["a", "b", "c"]
    assert row.estimate.tolist() == [0.4, 0.4, 0.2]
