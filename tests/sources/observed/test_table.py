from __future__ import annotations

from pathlib import Path

import pytest

from icl_estimators.sources import ObservedSequences, read_sequences
from icl_estimators.validation import InputError


def read(folder: Path, text: str, **options: object) -> ObservedSequences:
    path = folder / "weather.csv"
    path.write_bytes(text.encode())
    return read_sequences(path, dashes="--", **options)  # type: ignore[arg-type]


def in_words(data: ObservedSequences) -> dict[str, list[str]]:
    names = data.ids or [str(k) for k in range(len(data.sequences))]
    return {name: [data.labels[k] for k in tokens] for name, tokens in zip(names, data.sequences, strict=True)}


LONG = "id,when,state\nb,10,sun\na,2,rain\nb,9,fog\na,1,sun\nb,100,sun\n"
COLUMNS = {"state_column": "state", "id_column": "id"}


def test_rows_of_one_id_are_a_sequence_in_the_order_of_the_file_or_of_a_column(tmp_path: Path) -> None:
    data = read(tmp_path, LONG, **COLUMNS)
    assert in_words(data) == {"b": ["sun", "fog", "sun"], "a": ["rain", "sun"]}
    assert data.form == "a table with the states in column state, one sequence for each id"
    ordered = read(tmp_path, LONG, **COLUMNS, order_column="when")
    assert in_words(ordered) == {"b": ["fog", "sun", "sun"], "a": ["sun", "rain"]}  # by number, not by text
    assert ordered.form.endswith("one sequence for each id, in the order of when (by number)")
    assert in_words(read(tmp_path, LONG, state_column="state")) == {"0": ["sun", "rain", "fog", "sun", "sun"]}


def test_columns_have_numbers_from_1_without_a_header(tmp_path: Path) -> None:
    text = LONG.partition("\n")[2]
    data = read(tmp_path, text, state_column="3", id_column="1", order_column="2")
    assert in_words(data) == {"b": ["fog", "sun", "sun"], "a": ["sun", "rain"]}
    numbers = {"state_column": "3", "id_column": "1", "order_column": "2", "header": True}
    assert in_words(read(tmp_path, LONG, **numbers)) == in_words(data)


@pytest.mark.parametrize("glue", [",", ";", "\t", " ", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\r"])
def test_separators_line_ends_and_marks(tmp_path: Path, glue: str, end: str) -> None:
    text = "\ufeff" + LONG.replace(",", glue).replace("\n", end)
    options = {"delimiter": "|"} if glue == "|" else {}
    assert in_words(read(tmp_path, text, **COLUMNS, **options))["a"] == ["rain", "sun"]


def test_dates_sort_by_text(tmp_path: Path) -> None:
    text = "date,state\n2020-10-01,b\n2020-09-30,a\n2019-12-31,c\n"
    data = read(tmp_path, text, state_column="state", order_column="date")
    assert in_words(data) == {"0": ["c", "a", "b"]}
    assert data.form.endswith("in the order of date (by text)")


def test_cells_are_text_as_written(tmp_path: Path) -> None:
    text = 'id, state,note\n1,007,"two\nlines"\n1,NA,""\n1,"La Niña, weak",x\n1,"say ""a""",\n1,7,\n'
    data = read(tmp_path, text, **COLUMNS)
    assert in_words(data) == {"1": ["007", "NA", "La Niña, weak", 'say "a"', "7"]}


def test_one_column_is_one_series(tmp_path: Path) -> None:
    assert in_words(read(tmp_path, "state\nLa Niña\nneutral\nLa Niña\n", state_column="state"))["0"][0] == "La Niña"
    assert in_words(read(tmp_path, "sun\nrain\nsun\n\n", state_column="1")) == {"0": ["sun", "rain", "sun"]}
    gap = read(tmp_path, "sun\nsun\n\nrain\nrain\n\n\n", state_column="1", missing=("",))
    assert in_words(gap) == {"0": ["sun", "sun"], "1": ["rain", "rain"]}
    assert gap.missing == 1  # empty lines at the end are none


def test_missing_values_divide_the_sequences_of_a_table(tmp_path: Path) -> None:
    text = "id,state\na,x\nb,y\na,NA\nb,y\na,x\na,y\nc,NA\n"
    data = read(tmp_path, text, **COLUMNS, missing=("NA",))
    assert (data.ids, data.groups, data.missing) == (("a", "a", "b"), (0, 0, 1), 2)
    assert [tokens.tolist() for tokens in data.sequences] == [[0], [0, 1], [1, 1]]
    with pytest.raises(InputError, match=r"csv, line 4 has a missing value: .* with --missing-action split"):
        read(tmp_path, text, **COLUMNS, missing=("NA",), missing_action="error")


def test_a_header_that_was_not_announced_is_asked_about(tmp_path: Path) -> None:
    by_number = {"state_column": "3", "id_column": "1"}
    with pytest.raises(
        InputError, match=r"line 1 looks like a header \(no other row has state, id .*: give --header .*--no-header"
    ):
        read(tmp_path, LONG, **by_number)
    assert len(read(tmp_path, LONG, **by_number, header=True).labels) == 3
    assert "state" in read(tmp_path, LONG, **by_number, header=False).labels
    with pytest.raises(InputError, match=r"line 1 looks like a header \(no other row has state in"):
        read(tmp_path, "state\n0\n1\n0\n", state_column="1")
    dated = "date,state\n2020-01-01,a\n2020-01-02,a\n"
    with pytest.raises(InputError, match=r"line 1 looks like a header \(no other row has state, date"):
        read(tmp_path, dated, state_column="2", order_column="1")
    rows = "2020-01-01,b\n2020-01-02,a\n2020-01-03,a\n"  # b is rare, and no header
    assert read(tmp_path, rows, state_column="2", order_column="1").n_states == 2


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (LONG, {"state_column": "weather"}, "csv has no column 'weather': its columns are id, when, state"),
        (LONG, {"state_column": "4", "header": False}, "no column '4': its columns have the numbers 1 to 3"),
        (LONG, {"state_column": "0"}, "no column '0': its columns have the numbers 1 to 3"),
        (LONG, {"state_column": "state", "header": False}, "'state' is a name, and --no-header says .*: give its num"),
        (LONG, {"state_column": "state", "id_column": "3"}, "two of --state-column, --id-column are one column"),
        ("a,a\n1,2\n", {"state_column": "a"}, r"has 2 columns 'a' \(numbers 1, 2\): give its number"),
        ("id,state\na,x\na\n", COLUMNS, "line 3 has 1 cell, but line 1 has 2: give each row a cell for each column"),
        ("id,state\na,x,y\n", COLUMNS, "line 2 has 3 cells, but line 1 has 2"),
        ("id;state,x\na;x,y\n", COLUMNS, "commas and semicolons both occur in the first line: name .* --delimiter"),
        ("id,state\n", COLUMNS, "has a header only: write the rows below it"),
        ("id,state\na,x\n", COLUMNS, "has no sequence of two or more tokens, so there is nothing to predict"),
        ("id,state\na,x\nb,y\n", COLUMNS, "has no sequence of two or more tokens"),
        ("id,state\na,x\na,\n", COLUMNS, "line 3 has an empty label: .* that it is a missing value with --missing="),
        ("id,state\na,x\n ,x\n", COLUMNS, "line 3 has an empty cell in --id-column: fill it in"),
        ('id,state\na,"x\n', COLUMNS, "line 2: .*: close each quote"),
        ('id,state\na,"x\ny"\na,z\n', COLUMNS, r"line 2 has the character '\\n' in the label 'x\\ny'"),
        (
            "t,state\n1,x\n1.0,y\n",
            {"state_column": "state", "order_column": "t"},
            "line 2 and .*line 3 have the same place in the order of one sequence: give each row",
        ),
        ("t,state\n1,x\n,y\n", {"state_column": "state", "order_column": "t"}, "empty cell in --order-column"),
        (LONG, {"state_column": "state", "delimiter": "::"}, "the delimiter '::' of a table has several characters"),
        (LONG, {"state_column": "state", "delimiter": '"'}, 'the delimiter " quotes cells'),
        (
            "state\n" + "".join(f"s{k}\n" for k in range(1001)),
            {"state_column": "state"},
            r"1,001 different labels \(s0, s1, s2, …\): choose the column .* declare all of them with --states-order",
        ),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, text: str, options: dict, message: str
) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        read(tmp_path, text, **options)
    assert "\n" not in str(refusal.value)


def test_the_line_of_a_row_counts_lines_within_quotes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"weather\.csv, line 5 has an empty label"):
        read(tmp_path, 'note,state\n"a\nb",x\n\n"c",\n', state_column="state")


def test_many_declared_states_are_no_mistake(tmp_path: Path) -> None:
    names = tuple(f"s{k}" for k in range(1001))
    data = read(tmp_path, "\n".join(["state", *names]), state_column="state", states_order=names)
    assert data.labels == names


def test_labels_that_differ_by_case_or_white_space_are_warned_of(tmp_path: Path) -> None:
    warnings: list[str] = []
    read(tmp_path, "id,state\na,sun\na,sun \na,Sun\na,rain\n", **COLUMNS, warn=warnings.append)
    assert warnings == ["labels that differ only by case or white space are different: 'sun' and 'sun ' and 'Sun'"]
    read(tmp_path, "id,state\na,x\na,na\n", **COLUMNS, missing=("NA",), warn=warnings.append)
    assert warnings[1].endswith("are different: 'na' and 'NA'")
    read(tmp_path, "id,state\na,a b\na,a  b\n", **COLUMNS, warn=warnings.append)
    assert warnings[2].endswith("are different: 'a b' and 'a  b'")
