from __future__ import annotations

import datetime
import enum
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import icl_estimators as icl
from icl_estimators.sources import ObservedSequences
from icl_estimators.validation import InputError


def in_words(data: ObservedSequences) -> list[list[str]]:
    return [[data.labels[k] for k in tokens] for tokens in data.sequences]


class Weather(enum.Enum):
    SUN = 1


ABBA = ["a", "b", "b", "a"]
DAY = datetime.date(2020, 1, 2)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (ABBA, [ABBA]),
        (tuple(ABBA), [ABBA]),
        (iter(ABBA), [ABBA]),
        ([ABBA, ("b",)], [ABBA, ["b"]]),
        ([np.array(ABBA), pd.Series(["b"])], [ABBA, ["b"]]),
        ([1, 2, 1], [["1", "2", "1"]]),
        (["1", 2, "007", "NA"], [["1", "2", "007", "NA"]]),
        ([False, True], [["False", "True"]]),
        ([2.0, 1.0], [["2", "1"]]),
        ([DAY, Weather.SUN], [["2020-01-02", "Weather.SUN"]]),
        (np.array([3, 1, 3]), [["3", "1", "3"]]),
        (np.array([[0, 1], [1, 1]], dtype=np.uint8), [["0", "1"], ["1", "1"]]),
        (np.array(ABBA), [ABBA]),
        (np.array([["a", "b"], ["b", "b"]]), [["a", "b"], ["b", "b"]]),
        (np.array([["a"], ["b", "a"]], dtype=object), [["a"], ["b", "a"]]),
        (pd.Series(ABBA, index=[3, 1, 2, 0]), [ABBA]),
        (pd.Series([1, 2, 1], dtype="Int64"), [["1", "2", "1"]]),
        (pd.Series(ABBA, dtype="string"), [ABBA]),
        (pd.Index(ABBA), [ABBA]),
        (pd.Categorical(ABBA), [ABBA]),
        ([range(3), range(2)], [["0", "1", "2"], ["0", "1"]]),
    ],
)
def test_sequences_of_many_types(data: Any, expected: list[list[str]]) -> None:
    assert in_words(icl.observed(data)) == expected


def test_a_mapping_has_names() -> None:
    data = icl.observed({"p1": ABBA, 2: ["b", "b"]})
    assert (data.ids, in_words(data), data.name) == (("p1", "2"), [ABBA, ["b", "b"]], "data")


def test_characters_of_texts() -> None:
    assert in_words(icl.observed(["ABA", "BB"], characters=True)) == [["A", "B", "A"], ["B", "B"]]
    assert in_words(icl.observed(["ABA", "BB"])) == [["ABA", "BB"]]
    assert in_words(icl.observed(np.array(["ABA", "BB"]), characters=True)) == [["A", "B", "A"], ["B", "B"]]
    assert in_words(icl.observed({"p": "AB"}, characters=True)) == [["A", "B"]]
    with pytest.raises(InputError, match="data, sequence 1 is no text, and with characters=True each sequence is"):
        icl.observed(["ABA", 3], characters=True)


def test_categories_are_the_order_and_stay() -> None:
    series = pd.Series(pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"]))
    for data in (series, [series, series]):
        found = icl.observed(data)
        assert (found.labels, found.sequences[0].tolist()) == (("c", "b", "a"), [1, 2, 1])
    assert icl.observed(series, states_order=["a", "b"]).labels == ("a", "b")
    frame = pd.DataFrame({"state": series})
    assert icl.observed(frame, state_column="state").labels == ("c", "b", "a")
    gaps = pd.Series(pd.Categorical(["b", None, "b", "a"], categories=["c", "b", "a", "NA"]))
    assert icl.observed(gaps, missing=[None, "NA"]).labels == ("c", "b", "a")


def test_declared_states() -> None:
    assert icl.observed([0, 1, 0], states_order=range(3)).labels == ("0", "1", "2")
    with pytest.raises(InputError, match=r"data, sequence 1, position 1 has '5', which states_order lacks"):
        icl.observed([[0, 1], [0, 5]], states_order=[0, 1])


@pytest.mark.parametrize("nothing", [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT")])
def test_no_value_is_missing_only_if_it_is_said(nothing: Any) -> None:
    with pytest.raises(InputError, match=r"sequence 1, position 0 has no value \(None or NaN\): .*missing=\[None\]"):
        icl.observed([["a"], [nothing, "a"]])
    for missing in (nothing, [nothing], [None, "x"]):
        data = icl.observed([["a", "a", nothing, "b", "b"], ["a"]], missing=missing)
        assert (in_words(data), data.groups, data.missing) == ([["a", "a"], ["b", "b"], ["a"]], (0, 0, 1), 1)
    with pytest.raises(InputError, match=r"sequence 0, position 2 has a missing value: .* missing_action split"):
        icl.observed(["a", "a", nothing], missing=nothing, missing_action="error")


def test_missing_labels_and_masked_arrays() -> None:
    assert in_words(icl.observed(["a", "a", "NA", "b"], missing="NA")) == [["a", "a"], ["b"]]
    assert in_words(icl.observed([1, 1, -1, 2], missing=-1)) == [["1", "1"], ["2"]]
    masked = np.ma.masked_array([1, 1, 7, 2], mask=[0, 0, 1, 0])
    assert in_words(icl.observed(masked, missing=None)) == [["1", "1"], ["2"]]
    whole = pd.Series([1, 1, None, 2])  # floats, for NaN's sake
    assert in_words(icl.observed(whole, missing=None)) == [["1", "1"], ["2"]]


FRAME = pd.DataFrame({"id": ["b", "a", "b", "a", "b"], "t": [10, 2, 9, 1, 100], "s": ["x", "y", "z", "x", "x"]})


def test_a_frame_has_an_observation_a_row() -> None:
    data = icl.observed(FRAME, state_column="s", id_column="id")
    assert (data.ids, in_words(data)) == (("b", "a"), [["x", "z", "x"], ["y", "x"]])
    ordered = [["z", "x", "x"], ["x", "y"]]
    for times in (
        FRAME.t,
        FRAME.t.astype(str),
        pd.to_datetime(FRAME.t, unit="D"),
        [datetime.date(2020, 1, 1) + datetime.timedelta(int(t)) for t in FRAME.t],
        pd.Categorical(FRAME.t, ordered=True),
    ):
        frame = FRAME.assign(t=times)
        assert in_words(icl.observed(frame, state_column="s", id_column="id", order_column="t")) == ordered
    assert in_words(icl.observed(FRAME.set_axis([1, 2, 3], axis=1), state_column=3))[0] == list(FRAME.s)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("ABAB", {}, r"no such file: 'ABAB' \(text is a path; .* list\('ABAB'\), or \[text\] with characters=True\)"),
        ("A B\nA B", {}, r"no such file: 'A B\\nA B' .* give list\(text\)"),
        ({"p": "ABAB"}, {}, r"sequence 'p' is text: .* list\(text\), or give characters=True"),
        ({"p": 3}, {}, "data is a int"),
        (np.array([["AB"]]), {"characters": True}, "sequence 0 is no text, and with characters=True"),
        (b"ABAB", {}, "data is a bytes: give a path, a list"),
        ({"a", "b"}, {}, "data is a set: give"),
        (3, {}, "data is a int: give"),
        ([], {}, "data is empty: give at least one sequence"),
        ([["a", "b"], []], {}, "data, sequence 1 is empty"),
        (np.zeros((2, 0), int), {}, "data, sequence 0 is empty"),
        (np.zeros((2, 2, 2), int), {}, r"data has 3 dimensions: give an array of shape \(T,\)"),
        (np.array(3), {}, "data has 0 dimensions"),
        ([np.zeros((2, 2))], {}, "sequence 0 has 2 dimensions"),
        ([["a"], "b"], {}, r"data mixes labels and sequences \(items 1 and 0\)"),
        ([["a", ["b"]]], {}, "sequence 0, position 1 has a list, which cannot be a label"),
        ([["a", b"b"]], {}, "sequence 0, position 1 has b'b', of type bytes"),
        ([1, "x", True], {}, "position 2 has true or false beside numbers"),
        ([0.5, 1.0], {}, "sequence 0, position 0 has the number 0.5, and states are labels: divide measurements"),
        ([float("inf"), 1.0], {}, "has the number inf"),
        ([1, 2, "1"], {}, "position 2 has '1', and .*position 0 has 1: both would be the label '1'"),
        (["a", ""], {}, r"position 1 has an empty label: .* with missing=\[\"\"\]"),
        (["a", "b\n"], {}, r"position 1 has the character '\\n' in the label"),
        (["a", "\ud800"], {}, r"position 1 has the character '\\ud800'"),
        ([["a"], ["b"]], {}, "data has no sequence of two or more tokens"),
        (ABBA, {"delimiter": ","}, "delimiter applies to files, not to a list: leave it out"),
        (ABBA, {"header": True}, "header applies to files"),
        (ABBA, {"state_column": "s"}, "state_column applies to tables, not to a list"),
        (ABBA, {"missing_action": "drop"}, "missing_action must be split or error"),
        (ABBA, {"states_order": "aab"}, "states_order is empty or has an empty or repeated label"),
        ({1: ABBA, "1": ABBA}, {}, "two names of sequences are the same text"),
        (FRAME, {}, r"data is a DataFrame: name the column of the states with state_column \(it has id, t, s\)"),
        (FRAME, {"state_column": "x"}, "data has no column 'x': its columns are id, t, s"),
        (FRAME[["s", "s"]], {"state_column": "s"}, "data has 2 columns 's'"),
        (FRAME.iloc[:0], {"state_column": "s"}, "data has no rows"),
        (FRAME.assign(id=None), {"state_column": "s", "id_column": "id"}, "data, row 0 has no value in 'id'"),
        (
            FRAME.assign(t=1),
            {"state_column": "s", "order_column": "t"},
            "row 0 and data, row 1 have the same place",
        ),
        (FRAME.assign(t=[1, 2, 3, 4, None]), {"state_column": "s", "order_column": "t"}, "row 4 has no value in 't'"),
        (FRAME.assign(t=[1, "b", 3, 4, 5]), {"state_column": "s", "order_column": "t"}, "values of 't' cannot be ord"),
    ],
)
def test_data_that_cannot_be_read_are_refused_in_one_line(data: Any, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        icl.observed(data, **options)
    assert "\n" not in str(refusal.value)


def test_a_path_is_read_as_the_commands_read_it(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,state\na,x\na,y\nb,NA\n")
    data = icl.observed(path, state_column="state", id_column="id", missing=["NA"])
    assert (data.name, data.ids, data.missing) == ("x.csv", ("a",), 1)
    assert icl.observed(str(path), state_column=2, header=True, name="weather").name == "weather"
    with pytest.raises(InputError, match="a file holds text only: give missing values as they are written there"):
        icl.observed(path, state_column="state", missing=[None])
    with pytest.raises(InputError, match="give header=True if it is one"):
        icl.observed(path, state_column=2)
    (tmp_path / "y.txt").write_text("ABAB\n")
    with pytest.raises(InputError, match="give characters=True if each character is a state, or delimiter with"):
        icl.observed(tmp_path / "y.txt")
    assert icl.observed(tmp_path / "y.txt", characters=True).n_states == 2


def test_labels_that_differ_only_by_case_are_warned_of_where_the_caller_is() -> None:
    with pytest.warns(UserWarning, match="differ only by case or white space are different: 'a' and 'A'") as caught:
        icl.observed(["a", "A", "b"])
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        icl.observed(["a", "b"])


LABELS = st.one_of(st.integers(-5, 12), st.text("aB 0é,\"'", min_size=1, max_size=3).filter(lambda text: text.strip()))


@given(st.lists(st.lists(LABELS, min_size=2, max_size=6), min_size=1, max_size=5))
@pytest.mark.filterwarnings("ignore:labels that differ only")
def test_lists_come_back_as_text(sequences: list[list[Any]]) -> None:
    words = [[str(label) for label in sequence] for sequence in sequences]
    assert in_words(icl.observed(words)) == words
    if len({label for sequence in sequences for label in sequence}) == len({w for line in words for w in line}):
        assert in_words(icl.observed(sequences)) == words
