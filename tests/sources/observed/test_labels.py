from __future__ import annotations

import pytest

from icl_estimators.sources.observed.labels import cells_of, find_separator, in_order, outside_quotes, split_labels
from icl_estimators.validation import InputError


def test_a_text_has_one_separator() -> None:
    assert [find_separator(text, "here") for text in ("ab", " a b ", "a,b c", "a\tb", "a;")] == [
        None,
        " ",
        ",",
        "\t",
        ";",
    ]
    with pytest.raises(InputError, match="here: commas and tabs both occur"):
        find_separator("a,b\tc", "here")
    with pytest.raises(InputError, match="here has an empty label"):
        split_labels("a;", ";", "here")
    with pytest.raises(InputError, match='here: "a" is quoted: write labels without quotes'):
        split_labels('b,"a"', ",", "here")
    with pytest.raises(InputError, match=r"here: \(a looks like a part of a list"):
        split_labels("(a,b)", ",", "here")
    with pytest.raises(InputError, match=r"here starts with \[1\], as in R's output: remove it"):
        split_labels("[1] a b", " ", "here")
    with pytest.raises(InputError, match="here has commas, but elsewhere semicolons separate labels"):
        split_labels("a,b", ";", "here")


def test_cells_may_be_quoted_as_in_csv() -> None:
    assert cells_of('"a, ""b""", c ,"d"', ",", "here") == ['a, "b"', "c", "d"]
    assert cells_of("'a', b", ",", "here") == ["'a'", "b"]
    assert outside_quotes('"a;b",c;"d"') == '"",c;""'
    for text in ('"a', 'b,"a"c'):
        with pytest.raises(InputError, match=r"here: .*: close each quote"):
            cells_of(text, ",", "here")


def test_labels_are_sorted_by_number_only_if_all_are_numbers() -> None:
    assert in_order({"10", "9", "-1"}) == ["-1", "9", "10"]
    assert in_order({"10", "9", "nan"}) == ["10", "9", "nan"]
    assert in_order({"b", "a"}) == ["a", "b"]
