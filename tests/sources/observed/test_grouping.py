from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.sources.observed.columns import column_number
from icl_estimators.sources.observed.grouping import in_sequences, ranks_of_text
from icl_estimators.validation import InputError


def test_ranks_are_by_number_only_if_all_are_numbers() -> None:
    assert ranks_of_text(["10", "9", " 9.0", "-1e1"])[0].tolist() == [2, 1, 1, 0]
    assert ranks_of_text(["10", "9", "x"])[0].tolist() == [0, 1, 2]
    assert ranks_of_text(["10", "9", "nan"])[1] == "text"
    near = ["9007199254740993", "9007199254740992"]  # equal as floats
    assert ranks_of_text(near)[0].tolist() == [1, 0]


def test_rows_come_in_sequences() -> None:
    order, lengths = in_sequences(None, None, 3, str)
    assert (order.tolist(), lengths.tolist()) == ([0, 1, 2], [3])
    with pytest.raises(InputError, match="1 and 2 have the same place in the order of one sequence"):
        in_sequences(np.array([0, 1, 1]), np.array([7, 7, 7]), 3, str)


def test_a_column_has_a_name_or_a_number() -> None:
    assert column_number("2", ["2", "x"], 2, "x.csv") == 0  # a name first
    assert column_number("2", ["a", "b"], 2, "x.csv") == 1
    with pytest.raises(InputError, match=r"x.csv has no column 'c': its columns are a, b"):
        column_number("c", ["a", "b"], 2, "x.csv")
    with pytest.raises(InputError, match=r"x.csv has 2 columns 'a' \(numbers 1, 2\)"):
        column_number("a", ["a", "a"], 2, "x.csv")
