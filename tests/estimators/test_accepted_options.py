from __future__ import annotations

import sys
from pathlib import Path

import pytest

from icl_estimators.estimators.accepted_options import require_use, takes
from icl_estimators.validation import InputError

MODULE = """
class Rule:
    name, n_states = "mine", 3

    def __init__(self, n_states, concentration, device="cpu"):
        pass

    def predict_proba(self, tokens):
        raise NotImplementedError

made = Rule(3, 1.0)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "rule_that_takes.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rule_that_takes", raising=False)
    return "rule_that_takes"


def test_what_a_factory_takes_is_read_off_its_signature(module: str) -> None:
    assert takes("bayes", "concentration")
    assert not takes("add-constant:2", "concentration")
    assert takes("transformer:far=last", "device")
    assert takes(f"{module}:Rule", "concentration")
    assert takes(f"{module}:Rule", "device")
    assert not takes(f"{module}:made", "device")  # it is there already
    assert takes("no_such_module:rule", "device")  # what is wrong is said where it is made
    assert not takes("builtins:print", "device")


def test_a_checkpoint_is_for_a_transformer() -> None:
    require_use(None, checkpoints=True, device="cpu")
    require_use(["transformer:far=last"], checkpoints=True, device="cpu")
    require_use(["bigram"], checkpoints=False, device="cpu")
    with pytest.raises(
        InputError, match=r"^checkpoints are for .*\(bigram, unigram\): name it too, or leave checkpoints out"
    ):
        require_use(["bigram", "unigram"], checkpoints=True, device="cpu")
    with pytest.raises(InputError, match=r"^--checkpoint is for transformer, .* or leave --checkpoint out$"):
        require_use(["bigram"], checkpoints=True, device="cpu", dashes="--")


def test_a_device_is_for_what_takes_one(module: str) -> None:
    require_use(["bigram", f"{module}:Rule"], checkpoints=False, device="cuda")
    require_use(None, checkpoints=False, device="cuda")
    with pytest.raises(InputError, match=r"^device cuda is for transformer, which is not among"):
        require_use(["bigram"], checkpoints=False, device="cuda")
    with pytest.raises(InputError, match=r"^--device cuda is for .* leave --device out"):
        require_use([], checkpoints=False, device="cuda", dashes="--")
