"""Every example runs and prints what its page says, up to rounding."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
PRINTED = dict(re.findall(r"    python examples/(\w+)\.py\n\n```text\n(.*?)\n```", PAGE, re.DOTALL))
NUMBER = re.compile(r"-?\d+\.\d+|NaN")
TOLERANCE = {"gru": 0.05, "transformer_lens_model": 0.05}  # training and weights depend on the machine's arithmetic
PACKAGES = {"transformer_lens_model": "transformer_lens"}


def test_every_example_is_on_the_page() -> None:
    assert sorted(PRINTED) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize(
    "name",
    ["sessions", *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(PRINTED) if name != "sessions")],
)
def test_an_example_prints_what_its_page_says(name: str) -> None:
    if name in PACKAGES and importlib.util.find_spec(PACKAGES[name]) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{name}.py"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    found, expected = (re.sub(r"[ \t]+", " ", text).strip() for text in (done.stdout, PRINTED[name]))
    found, expected = ("\n".join(line.strip() for line in text.splitlines()) for text in (found, expected))
    if name == "gru":  # which rule is nearest may change with the network
        found, expected = (text.split("\nestimator rule")[0] for text in (found, expected))
    assert NUMBER.sub("·", found) == NUMBER.sub("·", expected)
    tolerance = TOLERANCE.get(name, 1.5e-4)
    for one, other in zip(NUMBER.findall(found), NUMBER.findall(expected), strict=True):
        assert (one == other) if "NaN" in (one, other) else float(one) == pytest.approx(float(other), abs=tolerance)
