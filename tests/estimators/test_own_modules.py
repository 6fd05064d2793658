from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from icl_estimators.api import compare
from icl_estimators.estimators import ContractError, get
from icl_estimators.estimators.identity import Sealed
from icl_estimators.estimators.own_modules import files_of, import_own, is_file
from icl_estimators.validation import InputError

RULE = """
import numpy as np

from {sibling} import constant


class Rule:
    def __init__(self, n_states, name="mine"):
        self.n_states, self.name = n_states, name

    def predict_proba(self, tokens):
        shape = np.shape(tokens)
        return np.full((*shape, self.n_states), constant / self.n_states)


def make(n_states):
    return Rule(n_states, "made")
"""
NET = """
import torch

net = torch.nn.GRU(3, 4)
"""


@pytest.fixture
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    sibling = f"sibling_{request.node.name.replace('[', '_').replace(']', '')[:40]}"
    (tmp_path / f"{sibling}.py").write_text("constant = 1.0\n")
    path = tmp_path / "own model.py"
    path.write_text(RULE.format(sibling=sibling))
    return path


def test_a_file_makes_an_estimator_by_its_class_and_by_its_factory(file: Path) -> None:
    assert get(f"{file}:Rule", n_states=2).name == "mine"
    made = get(f"{file}:make", n_states=4)
    assert (made.name, made.n_states) == ("made", 4)
    assert made.predict_proba([[0, 1]]).shape == (1, 2, 4)


def test_a_file_hides_no_module_and_the_same_content_is_the_same_module(file: Path, tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("Rule = None")
    with pytest.raises(Exception, match=r"numpy\.py:Rule"):
        get(f"{tmp_path / 'numpy.py'}:Rule")
    import numpy

    assert hasattr(numpy, "ndarray")
    first = import_own(str(file), "spec")
    assert first is import_own(str(file), "spec")
    assert first is not None
    assert files_of([first.__name__, "numpy"]) == {first.__name__: str(file)}


def test_a_worker_finds_the_file_again(file: Path) -> None:
    rule = get(f"{file}:make", n_states=3)
    package = file.with_suffix(".pickle")
    package.write_bytes(pickle.dumps(Sealed(rule, [rule])))
    program = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).name)"
    done = subprocess.run([sys.executable, "-c", program, package], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "made"


@pytest.mark.slow
def test_two_processes_give_what_one_gives(file: Path) -> None:
    options = {"chains": 1000, "sequences_per_chain": 6, "length": 3, "decomposition_chains": 0}
    one, two = (compare([f"{file}:make", "add-one"], jobs=jobs, **options) for jobs in (1, 2))
    assert one.risk.equals(two.risk)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{folder}/absent.py:make", "no such file: .*absent.py .give a Python file, as in model.py:make"),
        ("{folder}.py:make", "is a folder: give a Python file, as in model.py:make"),
        ("{file}:absent", "own model.py has no attribute absent: it has Rule, make"),
        ("{file}", "name what makes the estimator too, as in .*own model.py:make"),
        ("{folder}/broken.py:make", "importing .*broken.py failed: ValueError: no luck today"),
        ("{folder}/lacking.py:make", "importing .*lacking.py failed: No module named 'nowhere'"),
        ("{folder}/leaving.py:make", "importing .*leaving.py failed: SystemExit: 3"),
        ("{folder}/typo.py:make", "importing .*typo.py failed: SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_one_line(file: Path, tmp_path: Path, spec: str, message: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "folder.py").mkdir()
    (folder / "broken.py").write_text('raise ValueError("no luck\\ntoday")')
    (folder / "lacking.py").write_text("import nowhere")
    (folder / "leaving.py").write_text("raise SystemExit(3)")
    (folder / "typo.py").write_text("def make(:")
    with pytest.raises(InputError, match=message) as refused:
        get(spec.format(folder=folder, file=file))
    assert "\n" not in str(refused.value)


def test_a_torch_module_in_a_file_is_to_be_wrapped(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    with pytest.raises(
        ContractError, match=r"net\.py:net is a plain torch module: wrap it, icl_estimators\.from_torch"
    ):
        get(f"{tmp_path / 'net.py'}:net")


def test_a_module_by_name_is_no_file() -> None:
    assert not is_file("package.module")
    assert import_own("json", "spec") is sys.modules["json"]
    assert import_own("no_such_module_anywhere", "spec") is None
