"""Every command holds a stranger's estimator to the contract before it prints a number."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from icl_estimators import evaluate, exact, predict

COMMANDS = {
    "exact": (exact.main, ["--context-length", "3"]),
    "predict": (predict.main, ["ABC"]),
    "evaluate": (evaluate.main, ["--chains", "2", "--decomposition-chains", "0"]),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("rule", "says"),
    [("Writes", "writes: .*read-only"), ("Foreseeing", "foreseeing: not causal"), ("Raises", "raises: .*out of order")],
)
def test_a_rule_that_breaks_the_contract_is_named(
    command: str, rule: str, says: str, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main, arguments = COMMANDS[command]
    line = refused(main, *arguments, "--estimators", f"strange_rules:{rule},uniform")
    assert re.search(says, line), line


def test_more_states_than_can_be_enumerated_is_one_line(refused: Callable[..., str]) -> None:
    line = refused(exact.main, "--states", "100000", "--context-length", "1", "--estimators", "bigram")
    assert "100000 states are too many for exact risk: at most 1000" in line
