"""What the tests of this room share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from icl_estimators.engine.executors import one_thread


@pytest.fixture(scope="session", autouse=True)
def threads() -> Iterator[None]:
    """Compute as a study does: a trained model's small products are far slower on several threads."""
    with one_thread():
        yield
