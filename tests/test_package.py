from __future__ import annotations

import importlib
import pkgutil
import subprocess
from collections.abc import Callable

import pytest

import icl_estimators

Python = Callable[..., subprocess.CompletedProcess[str]]

COMMANDS = ("evaluate", "exact", "predict", "smoothing", "train")
HEAVY = ("numpy", "scipy", "pandas", "torch", "matplotlib", "statsmodels", "tqdm")


def loaded(python: Python, code: str) -> set[str]:
    """Return the heavy packages that are loaded after `code`."""
    listing = f"{code}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = python("-W", "error", "-c", listing)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_every_public_name_is_there_and_is_the_one_of_its_home() -> None:
    for name in icl_estimators.__all__:
        home = importlib.import_module(icl_estimators._HOMES[name])
        assert getattr(icl_estimators, name) is getattr(home, name)
        assert name in dir(icl_estimators)
    assert set(icl_estimators._HOMES) == set(icl_estimators.__all__)


def test_unknown_names_are_unknown() -> None:
    with pytest.raises(AttributeError, match="module 'icl_estimators' has no attribute 'nonsense'"):
        _ = icl_estimators.nonsense  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec("from icl_estimators import nonsense")


def test_no_public_function_shares_a_commands_name() -> None:
    assert not set(COMMANDS) & set(icl_estimators.__all__)


def test_importing_the_package_loads_nothing_heavy(python: Python) -> None:
    assert loaded(python, "import icl_estimators; dir(icl_estimators)") == set()


@pytest.mark.slow
def test_a_comparison_of_counting_rules_loads_no_torch_and_no_figures(python: Python) -> None:
    code = "\n".join(
        [
            "import icl_estimators as icl",
            "icl.compare(['bigram', 'add-one'], chains=4, sequences_per_chain=1, length=3, decomposition_chains=0)",
        ]
    )
    assert loaded(python, code) == {"numpy", "scipy"}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_quick_to_load_and_says_what_the_command_is_for(python: Python, command: str) -> None:
    done = python("-W", "error", "-m", f"icl_estimators.{command}", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: python -m icl_estimators.{command}")
    code = (
        f"import runpy, sys\nsys.argv = ['x', '--help']\n"
        f"try:\n    runpy.run_module('icl_estimators.{command}', run_name='__main__')\n"
        "except SystemExit:\n    pass"
    )
    assert loaded(python, code) & {"torch", "pandas", "matplotlib", "statsmodels", "scipy"} == set()


def test_every_module_says_what_it_is_and_what_it_offers() -> None:
    for found in pkgutil.walk_packages(icl_estimators.__path__, "icl_estimators."):
        module = importlib.import_module(found.name)
        assert module.__doc__, found.name
        for name in module.__all__:
            assert hasattr(module, name), f"{found.name}.{name}"
