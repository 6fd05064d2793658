from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.estimators import get
from icl_estimators.text import columns_of, exactly, gamma_text, number, text_table


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (0, "0.0000"),
        (-0.0, "0.0000"),
        (0.26527, "0.2653"),
        (-1.5, "-1.5000"),
        (0.00005, "0.0001"),
        (0.0000499, "5.0e-05"),
        (-1e-17, "-1.0e-17"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_numbers_are_spelled_for_reading_and_never_vanish(value: float, spelled: str) -> None:
    assert number(value) == spelled


def test_digits_are_a_choice() -> None:
    assert number(2 / 3, digits=2) == "0.67"
    assert number(0.004, digits=2) == "4.0e-03"


def test_columns_align_by_what_a_terminal_shows() -> None:
    table = text_table(["規則", "A"], [["e\u0301té", "0.5"], ["bigram", "inf"]])
    assert table.splitlines() == ["規則      A", "------  ---", "e\u0301té     0.5", "bigram  inf"]
    assert [columns_of(line) for line in table.splitlines()] == [11] * 4


def test_left_chooses_the_columns_that_read_as_text() -> None:
    assert text_table(["a", "bb"], [["xxx", "y"]], left=2).splitlines() == ["a    bb", "---  --", "xxx  y"]


def test_rows_of_another_length_are_a_fault() -> None:
    with pytest.raises(ValueError, match="argument"):
        text_table(["a", "b"], [["only one"]])


def test_numbers_round_where_they_should() -> None:
    assert number(0.99999) == "1.0000"
    assert number(123456.7, digits=1) == "123456.7"
    assert number(0, digits=0) == "0"


def test_a_table_without_rows_is_its_header() -> None:
    assert text_table(["estimator", "n = 1"], []) == "estimator  n = 1\n---------  -----"


def test_no_line_ends_in_blanks() -> None:
    lines = text_table(["a", "b"], [["x", ""], ["", "long"]], left=2).splitlines()
    assert lines == [line.rstrip() for line in lines]


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_number_in_a_name_reads_as_the_same_number(value: float) -> None:
    assert float(exactly(value)) == value
    assert float(get(f"add-constant:{value!r}").name.partition(":")[2]) == value


def test_gamma_is_said_where_the_name_does_not() -> None:
    assert gamma_text({}) == ""
    assert gamma_text({"a": 0.645}, ["b:0.3"]) == "a: γ = 0.645, the default\nb:0.3: γ tuned to this law and length"
