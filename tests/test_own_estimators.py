"""Every command holds a stranger's estimator to the contract before it prints a number."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from icl_estimators import evaluate, exact, predict

RULES = """
import numpy as np

class Writes:
    name = "writes"
    def __init__(self, n_states):
        self.n_states = n_states
    def predict_proba(self, tokens):
        tokens[...] = 0
        return np.full((*tokens.shape, self.n_states), 1 / self.n_states)

class Looks(Writes):
    name = "looks"
    def predict_proba(self, tokens):
        out = np.full((*tokens.shape, self.n_states), 0.1 / (self.n_states - 1))
        np.put_along_axis(out, np.roll(tokens, -1, axis=1)[..., None], 0.9, axis=2)
        return out

class Raises(Writes):
    name = "raises"
    def predict_proba(self, tokens):
        raise RuntimeError("out of order")
"""
COMMANDS = {
    "exact": (exact.main, ["--context-length", "3"]),
    "predict": (predict.main, ["ABC"]),
    "evaluate": (evaluate.main, ["--chains", "2", "--decomposition-chains", "0"]),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("rule", "says"),
    [("Writes", "writes: .*read-only"), ("Looks", "looks: not causal"), ("Raises", "raises: .*out of order")],
)
def test_a_rule_that_breaks_the_contract_is_named(
    command: str, rule: str, says: str, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strange_rules.py").write_text(RULES, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    main, arguments = COMMANDS[command]
    line = refused(main, *arguments, "--estimators", f"strange_rules:{rule},uniform")
    assert re.search(says, line), line


def test_more_states_than_can_be_enumerated_is_one_line(refused: Callable[..., str]) -> None:
    line = refused(exact.main, "--states", "100000", "--context-length", "1", "--estimators", "bigram")
    assert "100000 states are too many for exact risk: at most 1000" in line
