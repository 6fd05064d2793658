"""What decides a number is known, compared and named."""

from __future__ import annotations

import hashlib
import importlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from icl_estimators.engine.same_study import differences, digest
from icl_estimators.estimators import get
from icl_estimators.estimators.counting import AddConstant
from icl_estimators.estimators.identity import Sealed, own_sources, study_identity
from icl_estimators.provenance import environment, environment_differences
from icl_estimators.validation import InputError

ROOT = Path(__file__).parents[2]
MODULES = {
    "base_of_mine": "class Base:\n    n_states = 3\n",
    "helper_of_mine": "from constant_of_mine import CONSTANT\n\ndef constant():\n    return CONSTANT\n",
    "constant_of_mine": "CONSTANT = 0.5\n",
    "class_of_mine": """
import numpy as np
from base_of_mine import Base
from helper_of_mine import constant

class Rule(Base):
    def __init__(self, name="mine", alpha=1.0):
        self.name, self.alpha = name, alpha

    def predict_proba(self, tokens):
        return np.full((*np.shape(tokens), 3), 1 / 3)

class Outer(Rule):
    def __init__(self, inner):
        super().__init__("outer")
        self.inner = inner
""",
    "factory_of_mine": "import class_of_mine\n\ndef make():\n    return class_of_mine.Rule()\n\nmade = make()\n",
    "stranger_of_mine": "1\n",
}

RULE = ("base_of_mine", "class_of_mine", "constant_of_mine", "helper_of_mine")


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Write a user's modules, and import one."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.import_module("stranger_of_mine")
    yield importlib.import_module  # type: ignore[misc]
    for name in MODULES:
        sys.modules.pop(name, None)


def sha(name: str) -> str:
    return hashlib.sha256(MODULES[name].encode()).hexdigest()


def test_sources_are_those_of_the_class_its_bases_and_what_they_import(modules: Callable[[str], ModuleType]) -> None:
    rule = modules("class_of_mine").Rule()  # type: ignore[attr-defined]
    assert own_sources(rule) == {name: sha(name) for name in RULE}


@pytest.mark.parametrize("attribute", ["make", "made"])
def test_the_module_that_a_spec_names_belongs_to_it(modules: Callable[[str], ModuleType], attribute: str) -> None:
    rule = get(f"factory_of_mine:{attribute}")
    assert set(own_sources(rule)) == {*RULE, "factory_of_mine"}


def test_what_a_rule_holds_belongs_to_it(modules: Callable[[str], ModuleType], tmp_path: Path) -> None:
    class_of_mine: Any = modules("class_of_mine")
    (tmp_path / "inner_of_mine.py").write_text("class Inner:\n    pass\n", encoding="utf-8")
    inner: Any = importlib.import_module("inner_of_mine")
    assert "inner_of_mine" in own_sources(class_of_mine.Outer({"some": [inner.Inner()]}))
    first, second = (study_identity([class_of_mine.Rule(alpha=alpha)])["states"] for alpha in (1.0, 2.0))
    assert differences({"states": first}, {"states": second})[0].startswith("what mine holds was ")


def test_this_packages_rules_have_no_own_source_but_a_state() -> None:
    assert own_sources(get("add-one")) == {}
    one, two = (study_identity([AddConstant(3, beta, name="mine")]) for beta in (0.5, 1.5))  # the name hides it
    assert one["sources"] == {}
    assert one["states"] != two["states"]


def test_an_object_without_a_file_is_unknown_and_never_the_same() -> None:
    module = ModuleType("nowhere_of_mine")
    exec("class Rule:\n    name, n_states = 'mine', 3\n", module.__dict__)
    sys.modules["nowhere_of_mine"] = module
    try:
        identity = study_identity([module.Rule()])
    finally:
        del sys.modules["nowhere_of_mine"]
    assert identity["sources"] == {"mine": {"nowhere_of_mine": None}}
    unknown = "the source of mine (module nowhere_of_mine) is not known, so nothing shows that it is the same"
    assert differences(identity, identity)[0] == unknown


def test_a_state_that_cannot_be_pickled_is_unknown() -> None:
    rule: Any = get("add-one")
    rule.held = lambda: None
    identity = study_identity([rule])
    assert identity["states"] == {"add-one": None}
    assert "what add-one holds is not known" in differences(identity, identity)[0]


MAIN = """
import json, sys
import numpy as np
from icl_estimators.estimators.identity import own_sources, study_identity

class Rule:
    name, n_states = "mine", 3

    def __init__(self):
        self.weights, self.words = np.arange(3.0), {"a", "b", "c", "d"}

print(json.dumps(study_identity([Rule()]), sort_keys=True))
"""


@pytest.mark.slow
def test_a_program_s_own_rule_has_its_file_and_the_same_identity_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MAIN, encoding="utf-8")
    environment = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    found = []
    for hashing in ("1", "2"):
        command = [sys.executable, str(tmp_path / "program.py")]
        done = subprocess.run(
            command, env={**environment, "PYTHONHASHSEED": hashing}, capture_output=True, text=True, check=True
        )
        found.append(done.stdout)
    assert found[0] == found[1]
    assert f'"__main__": "{hashlib.sha256(MAIN.encode()).hexdigest()}"' in found[0]
    piped = subprocess.run(
        [sys.executable, "-"], input=MAIN, env=environment, capture_output=True, text=True, check=True
    )
    assert '"sources": {"mine": {"__main__": null}}' in piped.stdout


def test_versions_and_the_processor_are_compared_one_by_one() -> None:
    here = study_identity([get("add-one")])
    assert differences(here, here) == []
    assert {"python", "icl-estimators", "icl-estimators source", "numpy", "scipy", "torch", "numba"} < {
        *here["versions"]
    }
    assert here["versions"]["numpy"] == np.__version__
    there = {**here, "versions": {**here["versions"], "numpy": "1.0"}}
    there["cpu"] = {**here["cpu"], "features": [*here["cpu"]["features"], "AVX1024"]}
    assert differences(there, here) == [
        "CPU features (AVX1024) was there and is now absent",
        f'version of numpy was "1.0" and is now "{np.__version__}"',
    ]
    without = {key: value for key, value in here.items() if key not in ("versions", "cpu")}
    assert [line.partition(" was ")[0] for line in differences(without, here)] == [
        "the kind of CPU",
        "the versions of libraries",
    ]


def test_torch_is_asked_only_where_it_computes() -> None:
    assert "torch" not in study_identity([get("add-one")])["cpu"]
    assert study_identity([get("transformer"), get("add-one")])["cpu"]["torch"]
    assert environment_differences(environment(torch=False), environment(torch=False)) == []


def test_the_digest_is_of_all_of_it() -> None:
    here = study_identity([get("add-one")])
    assert digest(here) == digest(dict(reversed(here.items())))
    assert digest(here) != digest({**here, "seed": 1})


def test_a_worker_with_another_source_refuses(modules: Callable[[str], ModuleType], tmp_path: Path) -> None:
    rule = modules("class_of_mine").Rule()  # type: ignore[attr-defined]
    package = pickle.dumps(Sealed((rule, 7), [rule]))
    assert pickle.loads(package)[1] == 7
    (tmp_path / "class_of_mine.py").write_text(MODULES["class_of_mine"] + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"the source of mine \(module class_of_mine\) in a worker differs"):
        pickle.loads(package)
