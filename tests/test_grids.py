from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import icl_estimators as icl
from icl_estimators.validation import InputError

SMALL: dict[str, Any] = {"chains": 12, "sequences_per_chain": 1, "decomposition_chains": 0}


def test_every_cell_is_the_comparison_of_its_settings() -> None:
    found = icl.grid("add-one,bigram", states=[2, 3], concentration=(0.5, 1.0), length=3, **SMALL)
    assert list(found)[:3] == ["states", "concentration", "estimator"]
    for (k, alpha), rows in found.groupby(["states", "concentration"]):
        alone = icl.compare("add-one,bigram", states=int(k), concentration=float(alpha), length=3, **SMALL).risk
        got = rows.drop(columns=["states", "concentration"]).reset_index(drop=True)
        assert got.equals(alone)


def test_another_table_and_other_settings() -> None:
    told: list[str] = []
    found = icl.grid(
        ["add-one", "uniform"],
        table="differences",
        seed=range(2),
        length=np.array([2, 3]),
        progress=lambda what, done, total: told.append(what),
        **SMALL,
    )
    assert found[["seed", "length"]].drop_duplicates().to_numpy().tolist() == [[0, 2], [0, 3], [1, 2], [1, 3]]
    assert any(what.startswith("4 of 4, ") for what in told)


def test_without_lists_it_is_one_comparison() -> None:
    found = icl.grid("add-one", length=2, **SMALL)
    assert found.equals(icl.compare("add-one", length=2, **SMALL).risk)


def test_an_estimator_of_the_default_list_that_does_not_take_k_is_left_out() -> None:
    with pytest.warns(UserWarning, match="left out: transformer: no checkpoint ships for 2 states"):
        found = icl.grid(states=[2, 3], length=2, **SMALL)
    assert "transformer" in set(found[found.states == 3].estimator)
    assert "transformer" not in set(found[found.states == 2].estimator)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": []}, "states has no value: give one or more"),
        ({"length": [3, 3]}, "length has 3 twice: give each value once"),
        ({"length": [2], "table": "nothing"}, "length = 2 has no table 'nothing': choose from risk, "),
        ({"states": [3, 1]}, "states = 1: "),
        ({"table": "smoothing", "length": [0]}, "length = 0: length must be"),
    ],
)
def test_what_makes_no_grid_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        icl.grid("add-one", **{**SMALL, **options})


def test_an_option_that_is_not_there_is_named() -> None:
    with pytest.raises(TypeError, match="'alpha' is not an option of a comparison: choose from"):
        icl.grid("add-one", alpha=[1.0])
