from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from icl_estimators.sources.observed.matrix import read_matrix, transition_matrix
from icl_estimators.validation import InputError


@pytest.mark.parametrize(
    "text",
    [
        "0.9 0.1\n0.4 0.6\n",
        "0.9,0.1\r\n0.4,0.6\r\n",
        ",sun,rain\nsun,0.6,0.4\nrain,0.1,0.9\n",
        "from\train\tsun\nrain\t0.9\t0.1\n\nsun\t0.4\t0.6\n",
        "\ufeff0.9;0.1\n0.4;0.6",
    ],
)
def test_a_matrix_is_read_in_the_order_of_the_labels(tmp_path: Path, text: str) -> None:
    file = tmp_path / "matrix.csv"
    file.write_text(text, encoding="utf-8")
    assert read_matrix(file, ["rain", "sun"]).tolist() == [[0.9, 0.1], [0.4, 0.6]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.9 0.1\n0.4\n", "the lines of a matrix must have equally many entries"),
        (",sun,snow\nsun,0.6,0.4\nsnow,0.1,0.9\n", "about the states sun, snow, the data about rain, sun"),
        ("0.9 x\n0.4 0.6\n", "could not convert string to float: 'x': write numbers"),
        ("1\n", "has shape 1 × 1, but the data have 2 states: give 2 rows of 2 numbers"),
        ("0.9 0.2\n0.4 0.6\n", "row 1 sums to 1.1, not to 1"),
        ("1.5 -0.5\n0.4 0.6\n", "has an entry that is not in \\[0, 1\\]"),
        ("nan 1\n0.4 0.6\n", "has an entry that is not in \\[0, 1\\]"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "matrix.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_matrix(file, ["rain", "sun"])


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the matrix .*nothing\.csv: No such file"):
        read_matrix(tmp_path / "nothing.csv", ["a", "b"])
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="binary: it is not UTF-8 text"):
        read_matrix(tmp_path / "binary", ["a", "b"])


def test_rounded_rows_are_brought_to_a_sum_of_one() -> None:
    third = 0.3333333
    matrix = transition_matrix(np.full((3, 3), third), 3)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-15)
