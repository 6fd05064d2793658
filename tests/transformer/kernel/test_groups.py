"""The cache on disk: paid once, and dispensable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import icl_estimators

COMPUTE = (
    "import sys, torch\n"
    "from icl_estimators.transformer.kernel import compile_logits, groups\n"
    "compile_logits(2)\n"
    "stats = groups.logits_groups.stats()\n"
    "print('none' if stats is None else [sum(stats.cache_hits.values()), sum(stats.cache_misses.values())])\n"
)


def run(root: Path, home: Path, code: str = "", **environment: str) -> str:
    places = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "PYTHONPATH": str(root)}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code + COMPUTE],
        env=inherited | places | environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout.strip()


@pytest.fixture
def copy(tmp_path):
    """The package, without what numba has kept in it."""
    root = tmp_path / "site"
    source = Path(icl_estimators.__file__).parent
    shutil.copytree(source, root / "icl_estimators", ignore=shutil.ignore_patterns("__pycache__", "_data"))
    home = tmp_path / "home"
    home.mkdir()
    return root, home


HIT, MISSED, UNKEPT = "[1, 0]", "[0, 1]", "none"


@pytest.mark.slow
def test_compiled_once_until_a_file_of_the_kernel_changes(copy):
    root, home = copy
    kernel = root / "icl_estimators" / "transformer" / "kernel"
    assert run(root, home) == MISSED
    assert list((kernel / "__pycache__").glob("*.nbc"))
    assert run(root, home) == HIT
    with (kernel / "lane_algebra.py").open("a", encoding="utf-8") as file:
        file.write("\n# another version\n")
    assert run(root, home) == MISSED


FULL_DISK = """
from numba.core.caching import IndexDataCacheFile
def save(self, key, data):
    raise OSError(28, "No space left on device")
IndexDataCacheFile.save = save
"""


@pytest.mark.slow
def test_without_a_place_to_keep_it(copy):
    root, home = copy
    assert run(root, home, NUMBA_CACHE_LOCATOR_CLASSES="IPythonCacheLocator") == UNKEPT
    assert run(root, home, FULL_DISK) == UNKEPT
    assert run(root, home) == MISSED
    for file in root.rglob("*.nbi"):
        file.write_bytes(file.read_bytes()[:-20])
    assert run(root, home) == UNKEPT
