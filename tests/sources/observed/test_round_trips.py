"""Any sequences, written in each form that is read, come back the same; damaged files are refused or read."""

from __future__ import annotations

import csv
import io
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.sources import ObservedSequences, read_sequences
from icl_estimators.validation import InputError

WORDS = ["sun", "rain", "La Niña", "NA", "007", "7", "a,b", "a;b", 'say "a"', "日本", "None", "#1", "x->y"]
PLAIN = ["sun", "rain", "Schnee", "NA", "日本", "a.b", "x_1", "A"]


def sequences_of(labels: list[str]) -> st.SearchStrategy[list[list[str]]]:
    """Sequences, one of two tokens at least."""
    line = st.lists(st.sampled_from(labels), min_size=1, max_size=6)
    return st.lists(line, min_size=1, max_size=5).filter(lambda lines: max(map(len, lines)) > 1)


def read(text: str | bytes, **options: object) -> ObservedSequences:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_sequences(path, **options)  # type: ignore[arg-type]


def in_words(data: ObservedSequences) -> list[list[str]]:
    return [[data.labels[k] for k in tokens] for tokens in data.sequences]


def as_csv(rows: list[list[str]], glue: str, quoting: int = csv.QUOTE_ALL) -> str:
    target = io.StringIO(newline="")
    csv.writer(target, delimiter=glue, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    return target.getvalue()


def check(data: ObservedSequences, lines: list[list[str]]) -> None:
    assert in_words(data) == lines
    assert set(data.labels) == {label for line in lines for label in line}


@given(sequences_of(PLAIN))
def test_text(lines: list[list[str]]) -> None:
    states = tuple(dict.fromkeys(label for line in lines for label in line))
    data = read("\n".join(map(" ".join, lines)), states_order=states)
    assert in_words(data) == lines
    assert data.labels == states


@given(sequences_of(WORDS), st.sampled_from([",", ";", "\t", "|"]))
def test_quoted_cells(lines: list[list[str]], glue: str) -> None:
    states = tuple(dict.fromkeys(label for line in lines for label in line))
    check(read(as_csv(lines, glue), delimiter=glue, states_order=states), lines)


@given(
    st.lists(st.text("ABCx01|é日.\"'[->", min_size=1, max_size=8), min_size=1).filter(lambda x: max(map(len, x)) > 1)
)
def test_characters_and_fasta(lines: list[str]) -> None:
    safe = [line.lstrip(">") or "A" for line in lines]
    if max(map(len, safe)) > 1:
        words = [list(line) for line in safe]
        check(read("\n".join(safe), characters=True), words)
        records = "".join(f">s{k} x\n{line[:3]}\n{line[3:]}\n" for k, line in enumerate(safe) if ">" not in line)
        kept = [list(line) for line in safe if ">" not in line]
        if kept and max(map(len, kept)) > 1:
            check(read(records), kept)


@given(
    lines=sequences_of(WORDS),
    glue=st.sampled_from([",", ";", "\t"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    by_name=st.booleans(),
    seed=st.integers(0, 9),
)
def test_a_long_table_in_any_order_of_rows(
    lines: list[list[str]], glue: str, quoting: int, by_name: bool, seed: int
) -> None:
    rows = [[f"p {k}", str(3 * n - 7), label] for k, line in enumerate(lines) for n, label in enumerate(line)]
    random.Random(seed).shuffle(rows)
    columns = ["who", "when", "what"]
    names = dict(
        zip(("id_column", "order_column", "state_column"), columns if by_name else ["1", "2", "3"], strict=True)
    )
    text = as_csv([columns, *rows] if by_name else rows, glue, quoting)
    data = read(text, **names, delimiter=glue, header=None if by_name else False)
    order = list(dict.fromkeys(row[0] for row in rows))
    assert data.ids == tuple(order)
    check(data, [lines[int(name.split()[1])] for name in order])


VALID: list[tuple[bytes, dict[str, object]]] = [
    (b"sun rain sun\nrain sun\nsun sun\n", {}),
    (b'"a","b, c","a"\r\nb,a,"b, c"\r\n', {}),
    (b"ABACABA\nABBA\n", {"characters": True}),
    (b">g1 x\nACGT\nAC\n>g2\nGG\n", {}),
    (b">g1\nACNT\n", {"missing": ("N",)}),
    (b"id,when,state\na,1,x\nb,2,y\na,2,y\nb,1,NA\n", {"state_column": "state", "id_column": "id"}),
    (b'id,when,state\na,1,"x"\nb,2,y\n', {"state_column": "3", "order_column": "2", "missing": ("NA", "")}),
    (b"a b NA b\n\xc3\xa9 b b a\n", {"missing": ("NA",), "states_order": ("a", "b", "\xe9")}),
    (b"p1,a,b\np2,b,a\n", {"id_column": "1"}),
]
MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "delete", "cut"]),
        st.integers(0, 60),
        st.one_of(st.integers(0, 255), st.sampled_from(list(b"\n\r\t ,;\"'>#\x00\xff"))),
    ),
    min_size=1,
    max_size=4,
)


@given(st.sampled_from(VALID), MUTATIONS)
def test_a_damaged_file_is_read_or_refused(valid: tuple[bytes, dict[str, object]], mutations: list) -> None:
    content, options = bytearray(valid[0]), valid[1]
    for kind, position, byte in mutations:
        place = position % (len(content) + 1)
        if kind == "insert":
            content.insert(place, byte)
        elif kind == "cut":
            del content[place:]
        elif place < len(content):
            if kind == "delete":
                del content[place]
            else:
                content[place] = byte
    try:
        data = read(bytes(content), **options)
    except InputError as error:
        if len(str(error).splitlines()) > 1:
            raise
        return
    assert data.n_predictions >= 1
    assert all(0 <= k < len(data.labels) for tokens in data.sequences for k in tokens.tolist())


@pytest.mark.parametrize(("content", "options"), VALID)
def test_the_files_that_are_damaged_are_valid(content: bytes, options: dict[str, object]) -> None:
    if options.get("state_column") == "3":
        options = {**options, "header": True}
    assert read(content, **options).n_predictions >= 1
