from __future__ import annotations

import pytest

from icl_estimators.engine.blocks import UNIT, blocks, unit_size


@pytest.mark.parametrize("sequences", [1, 3, 10, 40, 64, 250, 100_000])
@pytest.mark.parametrize("cells", [2, 300, 3000, 10**8])
def test_blocks_are_whole_units_in_order_and_fit_in_memory(sequences: int, cells: int) -> None:
    unit = unit_size(sequences, cells)
    cut = list(blocks(1234, sequences, cells))
    assert [chain for block in cut for chain in block] == list(range(1234))
    assert all(len(block) % unit == 0 for block in cut[:-1])
    assert 1 <= unit <= UNIT
    assert len(cut[0]) == unit or len(cut[0]) * sequences <= 2000
    assert unit == 1 or unit * sequences * cells <= 6_000_000


def test_the_default_designs_are_cut_into_units_of_50() -> None:
    assert [len(block) for block in blocks(2000, 10)] == [200] * 10
    assert [len(block) for block in blocks(500, 64)] == [50] * 10
    assert [len(block) for block in blocks(50_000, 1)] == [2000] * 25
