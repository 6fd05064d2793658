from __future__ import annotations

from pathlib import Path

import pytest

from icl_estimators.sources import ObservedSequences, read_sequences
from icl_estimators.validation import InputError


def read(folder: Path, text: str, **options: object) -> ObservedSequences:
    path = folder / "genes.fa"
    path.write_bytes(text.encode())
    return read_sequences(path, dashes="--", **options)  # type: ignore[arg-type]


def test_records_are_sequences_of_characters_with_their_names(tmp_path: Path) -> None:
    data = read(tmp_path, "\ufeff\n>g1 a gene\r\nACG\r\nTA\r\n\r\n> g2\r\nCa\r\n", characters=True)
    assert data.ids == ("g1", "g2")
    assert data.labels == ("A", "C", "G", "T", "a")  # upper and lower case differ
    assert [tokens.tolist() for tokens in data.sequences] == [[0, 1, 2, 3, 0], [1, 4]]
    assert data.form == "FASTA, each character a label"
    assert read(tmp_path, ">g1\nAC\n").labels == ("A", "C")


def test_declared_states_and_gaps(tmp_path: Path) -> None:
    data = read(tmp_path, ">g1\nACN\nNCA\n>g2\nAA\n", missing=("N",), states_order=tuple("ACGT"))
    assert (data.n_states, data.missing, data.ids, data.groups) == (4, 2, ("g1", "g1", "g2"), (0, 0, 1))
    assert [tokens.tolist() for tokens in data.sequences] == [[0, 1], [1, 0], [0, 0]]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (">g1\n>g2\nAC\n", {}, r"genes\.fa, line 1 starts a record without states"),
        (">g1\nAC\n>g2\n", {}, "line 3 starts a record without states"),
        (">\nAC\n", {}, "line 1 has no name after >"),
        (">g\nAC\n>g\nAC\n", {}, "line 3 has the name 'g', as line 1 has"),
        (">g\nA C\n", {}, "line 2 has white space, but each character of FASTA is a state"),
        (">g\nA\n", {}, "no sequence of two or more tokens"),
        (">g\nAC\n", {"header": True}, "starts with >, as FASTA does, so --header does not apply"),
        (">g\nAC\n", {"id_column": "1"}, "so --id-column does not apply"),
        (">g\nAC\n", {"missing": ("NA",)}, "--missing has 'NA', but each character is a label"),
        (">g\nAC\nAX", {"states_order": ("A", "C")}, "line 3 has 'X', which --states-order lacks: add it there"),
    ],
)
def test_what_is_no_fasta_is_refused(tmp_path: Path, text: str, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text, **options)
