from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.sources import ObservedSequences, read_sequences
from icl_estimators.sources.observed.missing import split_at_gaps
from icl_estimators.validation import InputError


def read(folder: Path, text: str, **options: object) -> ObservedSequences:
    path = folder / "x.txt"
    path.write_text(text, encoding="utf-8")
    return read_sequences(path, dashes="--", **options)  # type: ignore[arg-type]


def test_a_gap_is_no_transition_and_no_state(tmp_path: Path) -> None:
    data = read(tmp_path, "a b b NA b a c a\n", missing=("NA",))
    assert (data.labels, data.n_predictions, data.missing) == (("a", "b", "c"), 5, 1)
    assert [tokens.tolist() for tokens in data.sequences] == [[0, 1, 1], [1, 0, 2, 0]]
    assert data.groups == (0, 0)
    assert read(tmp_path, "a b b NA b a c a\n").n_states == 4  # a state like any other
    with pytest.raises(InputError, match=r"x\.txt, line 1 has a missing value"):
        read(tmp_path, "a b b NA b a c a\n", missing=("NA",), missing_action="error")
    none = read(tmp_path, "a b\n", missing=("NA",))
    assert (none.groups, none.missing) == ((), 0)


def test_empty_cells_may_be_missing(tmp_path: Path) -> None:
    data = read(tmp_path, "a,b,,a,b,NA,\nb,b,,,\n", missing=("NA", ""))
    assert [tokens.tolist() for tokens in data.sequences] == [[0, 1], [0, 1], [1, 1]]
    assert (data.groups, data.missing) == ((0, 0, 1), 6)


def test_missing_values_are_no_evidence_of_a_table(tmp_path: Path) -> None:
    assert read(tmp_path, "NA a b\nb a NA\nNA b b\n", missing=("NA",)).n_states == 2


def test_nothing_between_gaps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sequence of two or more tokens without a gap, so there is nothing"):
        read(tmp_path, "a NA b\n", missing=("NA",))
    with pytest.raises(InputError, match="no sequence of two or more tokens without a gap"):
        read(tmp_path, "NA NA\n", missing=("NA",))


def test_declared_states_keep_their_order_and_stay(tmp_path: Path) -> None:
    data = read(tmp_path, "b a b\n", states_order=("c", "b", "a"))
    assert (data.labels, data.n_states, data.sequences[0].tolist()) == (("c", "b", "a"), 3, [1, 2, 1])
    with pytest.raises(InputError, match=r"x\.txt, line 2 has 'd', which --states-order lacks: add it .* --missing"):
        read(tmp_path, "a b a\na d\n", states_order=("a", "b"))
    looks_like_a_table = "a b\nc d\n"
    with pytest.raises(InputError, match="looks like the header"):
        read(tmp_path, looks_like_a_table)
    assert read(tmp_path, looks_like_a_table, states_order=tuple("abcd")).n_states == 4


def test_more_than_a_thousand_labels_are_a_mistake_unless_declared(tmp_path: Path) -> None:
    names = tuple(f"s{k}" for k in range(1001))
    with pytest.raises(InputError, match=r"x\.txt has 1,001 different labels \(s0, s1, s2, …\): .* --states-order"):
        read(tmp_path, " ".join(names))
    assert read(tmp_path, " ".join(names), states_order=names).n_states == 1001
    assert read(tmp_path, " ".join(names[:1000])).n_states == 1000


@given(st.lists(st.lists(st.sampled_from("ab-"), min_size=1, max_size=8), min_size=1, max_size=5))
def test_pieces_are_what_stands_between_gaps(sequences: list[list[str]]) -> None:
    flat = np.array([token == "-" for sequence in sequences for token in sequence], dtype=bool)
    pieces = split_at_gaps(flat, np.array([len(sequence) for sequence in sequences]))
    text = "".join(token for sequence in sequences for token in sequence)
    ends = np.cumsum(pieces.lengths)
    found = [
        "".join(text[k] for k in pieces.tokens[end - n : end]) for end, n in zip(ends, pieces.lengths, strict=True)
    ]
    expected = [(k, piece) for k, sequence in enumerate(sequences) for piece in "".join(sequence).split("-") if piece]
    assert list(zip(pieces.groups.tolist(), found, strict=True)) == expected
