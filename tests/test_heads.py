from __future__ import annotations

from typing import get_args

import pytest

from icl_estimators.heads import Head, require_head
from icl_estimators.validation import InputError


@pytest.mark.parametrize("head", [None, *get_args(Head)])
def test_every_head_and_none_is_taken(head: str | None) -> None:
    require_head(head, "layer1")


@pytest.mark.parametrize("head", ["", "exact", "Zero", 0, False])
def test_anything_else_is_named(head: object) -> None:
    with pytest.raises(InputError, match=f"layer2 must be one of previous, match, uniform, zero, not {head!r}"):
        require_head(head, "layer2")
