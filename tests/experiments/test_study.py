from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icl_estimators.estimators import get
from icl_estimators.experiments.study import UNIT, Study, blocks, unit_size
from icl_estimators.sources import ChainLaw
from icl_estimators.validation import InputError
from strange_rules import Flat, Leaning


def study(**options: Any) -> Study:
    return Study(**{"estimators": (get("bigram"), get("add-one")), **options})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"chains": 1}, "chains must be at least 2: one chain has no standard error"),
        ({"chains": 0}, "chains must be an integer of at least 1, not 0"),
        ({"chains": 2.0}, "chains must be an integer, not 2.0"),
        ({"chains": True}, "chains must be an integer of at least 1, not True"),
        ({"sequences_per_chain": 0}, "sequences_per_chain must be an integer of at least 1, not 0"),
        ({"length": 0}, "length must be an integer of at least 1, not 0"),
        ({"seed": -1}, "seed must be an integer of at least 0, not -1"),
        ({"level": 1.5}, "level must lie strictly between 0 and 1, not 1.5"),
        ({"level": "0.9"}, "level must be a number above 0, not '0.9'"),
        ({"decomposition_chains": 1}, "decomposition_chains must be 0 .left out. or at least 2"),
        ({"decomposition_sequences": 1}, "decomposition_sequences must be at least 2: .*; 64 keeps"),
        ({"decomposition_sequences": -1}, "decomposition_sequences must be an integer of at least 0, not -1"),
        ({"estimators": ()}, "no estimators to compare"),
        ({"estimators": (Flat("a"), Flat("a")), "reference": "a"}, "two estimators are called a"),
        ({"reference": "unigram"}, "the reference unigram is not among the estimators: bigram, add-one"),
        ({"law": ChainLaw(4)}, "bigram is for 3 states, but the chains have 4"),
        (
            {"estimators": (Leaning("m:a", 0.1, "m"), Leaning("m:b", 0.1, "m"), Flat("m")), "reference": "m"},
            "two estimators are called m",
        ),
        (
            {"estimators": (Leaning("a", 0.1, "m"), Leaning("b", 0.1, "m"), Flat("m:recipe")), "reference": "m"},
            "two estimators are called m:recipe",
        ),
    ],
)
def test_a_design_that_cannot_be_run_says_why(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        study(**options)


def test_the_nested_design_may_be_left_out() -> None:
    assert study(decomposition_chains=0, decomposition_sequences=1).decomposition_chains == 0


def test_any_kind_of_integer_becomes_a_plain_one() -> None:
    made = study(chains=np.int64(7), length=np.int32(3), seed=np.uint8(1), level=np.float64(0.9))
    kinds = [type(value) for value in (made.chains, made.length, made.seed, made.level)]
    assert kinds == [int, int, int, float]
    assert (made.cells, made.n_states, made.exact_posterior) == (9, 3, True)


def test_the_mean_over_training_runs_has_a_row_after_the_last_of_them() -> None:
    runs = ("model:a", "model:b", "model:far=last:a", "model:far=last:b")
    made = study(
        estimators=(
            *(Leaning(name, 0.1, "model") for name in runs[:2]),
            get("add-one"),
            *(Leaning(name, 0.1, "model:far=last") for name in runs[2:]),
        ),
        reference="model",
    )
    assert made.checkpoints == runs
    assert made.recipes == {"model": runs[:2], "model:far=last": runs[2:]}
    assert made.names == ("model:a", "model:b", "model", "add-one", *runs[2:], "model:far=last")


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
