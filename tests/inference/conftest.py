from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def oracles() -> dict[str, Any]:
    path = Path(__file__).parents[1] / "oracles" / "small_examples.json"
    return json.loads(path.read_text(encoding="utf-8"))
