from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.validation import InputError, as_tokens, positive_int, positive_real, probability_level


@pytest.mark.parametrize("value", [1, 7, np.int64(3), np.uint8(2)])
def test_positive_int_returns_a_plain_int(value: int) -> None:
    assert type(positive_int(value, "n")) is int
    assert positive_int(value, "n") == value


@pytest.mark.parametrize("value", [2.0, "3", None, [1], np.float64(1), np.array([1, 2])])
def test_positive_int_refuses_what_is_no_integer(value: object) -> None:
    with pytest.raises(InputError, match=re.escape(f"n must be an integer, not {value!r}")):
        positive_int(value, "n")


@pytest.mark.parametrize(("value", "at_least"), [(0, 1), (-1, 0), (1, 2), (True, 1)])
def test_positive_int_refuses_what_is_too_small(value: int, at_least: int) -> None:
    with pytest.raises(InputError, match=f"n must be an integer of at least {at_least}, not {value!r}"):
        positive_int(value, "n", at_least=at_least)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.25), np.int64(2), 5e-324, 1e308])
def test_positive_real_returns_a_plain_float(value: float) -> None:
    assert type(positive_real(value, "x")) is float
    assert positive_real(value, "x") == value


@pytest.mark.parametrize("value", ["a", "0.5", b"1", None, True, np.True_, [1.0], 1j])
def test_positive_real_refuses_what_is_no_number(value: object) -> None:
    with pytest.raises(InputError, match=re.escape(f"x must be a number above 0, not {value!r}")):
        positive_real(value, "x")


@pytest.mark.parametrize("value", [0, -1, -0.0, math.nan, math.inf, -math.inf])
def test_positive_real_refuses_what_is_not_finite_and_above_0(value: float) -> None:
    with pytest.raises(InputError, match=re.escape(f"x must be a finite number above 0, not {value!r}")):
        positive_real(value, "x")


def test_probability_level_lies_strictly_between_0_and_1() -> None:
    assert probability_level(0.95) == 0.95
    with pytest.raises(InputError, match=r"level must be a finite number above 0, not 0"):
        probability_level(0)
    for value in (1, 1.5, 95):
        with pytest.raises(InputError, match=r"strictly between 0 and 1, not .*0\.95 means 95 %"):
            probability_level(value)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint64, ">i8", np.int64])
def test_as_tokens_takes_every_integer_type(dtype: str) -> None:
    tokens = as_tokens(np.array([[0, 1], [2, 0]], dtype=dtype), 3)
    assert tokens.dtype == np.int64
    assert tokens.tolist() == [[0, 1], [2, 0]]


def test_as_tokens_takes_lists_views_and_read_only_arrays() -> None:
    whole = np.array([[0, 9, 1], [1, 9, 0]])
    whole.setflags(write=False)
    assert as_tokens(whole[:, ::2], 2).tolist() == [[0, 1], [1, 0]]
    assert as_tokens(whole.T[:1], 2).tolist() == [[0, 1]]
    assert as_tokens([(0, 1)], 2).tolist() == [[0, 1]]


def test_as_tokens_does_not_copy_int64() -> None:
    tokens = np.zeros((2, 3), dtype=np.int64)
    assert as_tokens(tokens, 2) is tokens


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], r"tokens are empty \(shape \(0,\)\): give at least one sequence of one token"),
        ([[]], r"tokens are empty \(shape \(1, 0\)\)"),
        (np.zeros((0, 5), dtype=int), r"tokens are empty \(shape \(0, 5\)\)"),
        ([0, 1], r"tokens must have shape \(N, T\), not \(2,\): wrap one sequence as tokens\[None, :\]"),
        ([[[0]]], r"tokens must have shape \(N, T\), not \(1, 1, 1\)"),
        (1, r"tokens must have shape \(N, T\), not \(\)"),
        ([[0, 1], [0]], r"tokens must be a rectangular \(N, T\) array: the sequences differ in length"),
        ([[0.0, 1.0]], r"tokens must be integers in \[0, 3\), not float64"),
        ([[0.0, math.nan]], r"tokens must be integers in \[0, 3\), not float64"),
        ([[True, False]], r"tokens must be integers in \[0, 3\), not bool"),
        ([["0", "1"]], r"tokens must be integers in \[0, 3\), not <U1"),
        ([[0, None]], r"tokens must be integers in \[0, 3\), not object"),
        ([[0, 2**70]], r"tokens must be integers in \[0, 3\), not object"),
        ([[0, 1], [2, 3]], r"token 3 at sequence 1, position 1 is outside \[0, 3\): label states 0 to 2"),
        ([[0, 1], [-1, 3]], r"token -1 at sequence 1, position 0 is outside \[0, 3\)"),
        (np.array([[255]], dtype=np.uint8), r"token 255 at sequence 0, position 0"),
        (np.array([[2**63]], dtype=np.uint64), r"token 9223372036854775808 at sequence 0, position 0"),
    ],
)
def test_as_tokens_names_what_is_wrong(tokens: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        as_tokens(tokens, 3)
    assert "\n" not in str(caught.value)


@given(st.lists(st.lists(st.integers(-3, 9), min_size=4, max_size=4), min_size=1, max_size=5), st.integers(2, 8))
def test_as_tokens_takes_exactly_the_states(tokens: list[list[int]], n_states: int) -> None:
    if all(0 <= token < n_states for row in tokens for token in row):
        assert as_tokens(tokens, n_states).tolist() == tokens
    else:
        with pytest.raises(InputError, match="is outside"):
            as_tokens(tokens, n_states)
