from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.reporting.prompt_attention import PromptAttention
from icl_estimators.reporting.terminal.prompt_attention import attention_text
from icl_estimators.text import columns_of


def uniform(heads: int, positions: int) -> np.ndarray:
    weights = np.tri(positions) / np.arange(1, positions + 1)[:, None]
    return np.repeat(weights[None], heads, axis=0)


def test_every_head_has_a_title() -> None:
    text = attention_text([PromptAttention("mine", tuple("ABA"), [uniform(2, 3), uniform(1, 3)], False)])
    assert [line for line in text.splitlines() if line.startswith("layer")] == [
        "layer 1, head 1",
        "layer 1, head 2",
        "layer 2",
    ]
    assert "sentinel" not in text


@pytest.mark.parametrize("label", ["A", "sunshine", "日本"])
@pytest.mark.parametrize("positions", [1, 5, 11, 12, 60])
def test_no_line_is_wider_than_the_screen_and_columns_align(label: str, positions: int) -> None:
    found = PromptAttention("mine", (label,) * positions, [uniform(1, positions)], False)
    lines = attention_text([found]).splitlines()
    matrix = [line for line in lines[3:] if line and not line.startswith(("Rows", "layer", "token", "weight"))]
    assert max(map(columns_of, lines)) <= 90
    if "Rows: " in lines[-1]:
        assert len(matrix) == positions
        assert columns_of(lines[2]) == columns_of(matrix[-1])
        assert matrix[-1].split()[0] == label
    else:
        assert lines[1] == f"layer 1: where the last {label} looks"
