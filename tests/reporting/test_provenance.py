from __future__ import annotations

import hashlib
import json
import platform
import shlex
from pathlib import Path

import numpy as np

from icl_estimators.reporting.provenance import provenance


def test_it_says_what_was_run_with_what(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ABBA\n")
    argv = ["--sequences", str(tmp_path / "a.txt"), "--out", "a folder; rm -rf"]
    found = provenance("icl_estimators.evaluate", argv, [tmp_path / "a.txt"])
    assert set(found) == {"version", "commit", "command", "libraries", "platform", "inputs"}
    assert shlex.split(found["command"]) == ["python", "-m", "icl_estimators.evaluate", *argv]
    assert found["inputs"] == {"a.txt": hashlib.sha256(b"ABBA\n").hexdigest()}
    assert found["libraries"]["numpy"] == np.__version__
    assert found["libraries"]["python"] == platform.python_version()
    assert {"scipy", "torch", "pandas", "statsmodels", "matplotlib", "safetensors"} < set(found["libraries"])


def test_it_is_plain_enough_for_json_and_names_no_folder() -> None:
    found = provenance("icl_estimators.evaluate", [])
    assert json.loads(json.dumps(found)) == found
    assert str(Path(__file__).parents[2]) not in json.dumps(found)


def test_the_commit_is_one() -> None:
    commit = provenance("icl_estimators.evaluate", [])["commit"]
    if (Path(__file__).parents[2] / ".git").exists():
        assert commit is not None
        assert len(commit.removesuffix("-dirty")) == 40
