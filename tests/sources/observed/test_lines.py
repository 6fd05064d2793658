from __future__ import annotations

from pathlib import Path

import pytest

from icl_estimators.sources import ObservedSequences, read_sequences
from icl_estimators.validation import InputError


def read(folder: Path, text: str, **options: object) -> ObservedSequences:
    path = folder / "x.csv"
    path.write_text(text, encoding="utf-8")
    return read_sequences(path, dashes="--", **options)  # type: ignore[arg-type]


WIDE = "id,t1,t2,t3\np1,a,b,a\np2,b,b,b\n"


def test_lines_may_have_names_and_a_header(tmp_path: Path) -> None:
    for options in ({"id_column": "id"}, {"id_column": "1", "header": True}):
        data = read(tmp_path, WIDE, **options)
        assert (data.ids, [tokens.tolist() for tokens in data.sequences]) == (("p1", "p2"), [[0, 1, 0], [1, 1, 1]])
    assert read(tmp_path, "a,b,p1\nb,a,b,p2\n".replace("p1", "a"), header=True).labels == ("a", "b", "p2")
    ragged = read(tmp_path, "p1 a b a\np2 b\n", id_column="1")
    assert (ragged.ids, ragged.n_predictions) == (("p1", "p2"), 2)


def test_a_first_line_may_be_said_to_be_data(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1 looks like the header .*: give --header if it is one .*--no-header"):
        read(tmp_path, "x y\na b a b\n")
    assert read(tmp_path, "x y\na b a b\n", header=False).n_states == 4
    assert read(tmp_path, "x y\na b a b\n", header=True).n_states == 2


def test_a_table_is_refused_with_the_flags_that_read_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"looks like a table: .* name the columns with --state-column"):
        read(tmp_path, "s1 A B A\ns2 B B\ns3 A\n")
    with pytest.raises(InputError, match=r"header of a table .*with --state-column for a table with a row for each"):
        read(tmp_path, "date,state\n2020-01-01,sun\n2020-01-02,rain\n")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("id,t1\n", {"id_column": "id"}, "has a header only: write each sequence on a line below it"),
        (WIDE, {"id_column": "name"}, "no column 'name': its columns are id, t1, t2, t3"),
        (WIDE, {"id_column": "id", "header": False}, "--id-column id needs names of columns: give its number"),
        ("a b\nc\n", {"id_column": "2"}, "line 2 has no column 2, where its name should be"),
        ("p a b\np b a\n", {"id_column": "1"}, "line 2 has the name 'p', as line 1 has"),
        ("p,a,b\n,b,a\n", {"id_column": "1"}, "line 2 has no name in column 1"),
        ("p a b\nq\n", {"id_column": "1"}, "line 2 has a name but no states"),
        ("p a b\n", {"id_column": "0"}, "no column '0': its columns have numbers from 1"),
    ],
)
def test_names_of_lines_that_cannot_be_read_are_refused(tmp_path: Path, text: str, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text, **options)
