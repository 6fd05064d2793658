from __future__ import annotations

import re
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.divergences import log_loss
from icl_estimators.estimators import get
from icl_estimators.sources import ObservedSequences
from icl_estimators.sources import read_sequences as read_quietly
from icl_estimators.validation import InputError

read_sequences = partial(read_quietly, dashes="--")  # messages name flags


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "weather.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def in_words(read: ObservedSequences) -> list[list[str]]:
    return [[read.labels[state] for state in sequence] for sequence in read.sequences]


def test_the_separator_is_the_files_not_the_lines(tmp_path: Path) -> None:
    """A line with one label is no list of characters: two states, four predictions, a known log loss."""
    read = read_sequences(written(tmp_path, "sun rain sun\nrain\nsun sun rain\n"))
    assert (read.labels, read.n_states, read.n_predictions) == (("rain", "sun"), 2, 4)
    rule = get("add-one", n_states=2)
    losses = [log_loss(rule.predict_proba(s[None])[:, :-1], s[None, 1:]) for s in read.sequences if len(s) > 1]
    assert np.concatenate(losses, axis=None).mean() == pytest.approx(0.794513, abs=5e-7)


@pytest.mark.parametrize(
    ("text", "labels", "sequences"),
    [
        ("sun, rain,sun\n\n   \nrain,sun", ("rain", "sun"), [[1, 0, 1], [0, 1]]),
        ("sun;rain ;sun\nrain", ("rain", "sun"), [[1, 0, 1], [0]]),
        ("sun\train\tsun", ("rain", "sun"), [[1, 0, 1]]),
        ("sun  rain \u00a0 sun  ", ("rain", "sun"), [[1, 0, 1]]),
        ("La Niña, El Niño,La Niña", ("El Niño", "La Niña"), [[1, 0, 1]]),
        ("La Niña\tEl Niño\tLa Niña", ("El Niño", "La Niña"), [[1, 0, 1]]),
        ("2.5 10 9 -1 2.5", ("-1", "2.5", "9", "10"), [[1, 3, 2, 0, 1]]),
        ("10 9 a 1", ("1", "10", "9", "a"), [[1, 2, 3, 0]]),
        ("2 nan 10", ("10", "2", "nan"), [[1, 2, 0]]),
        ("inf 1 -inf", ("-inf", "1", "inf"), [[2, 1, 0]]),
        ("1 01 1.0 1", ("01", "1", "1.0"), [[1, 0, 2, 1]]),  # text as written
        ("A A A\r\nA\r\n", ("A",), [[0, 0, 0], [0]]),
        ("A A A\rA\r", ("A",), [[0, 0, 0], [0]]),
        ("\ufeffA B", ("A", "B"), [[0, 1]]),
        ("a\u2028b a", ("a", "b"), [[0, 1, 0]]),  # white space, not a line of its own
        ("it's ok it's", ("it's", "ok"), [[0, 1, 0]]),
        (
            "<s> 1 2 </s>\n<s> 2 2 </s>\n<s> 1 1 </s>\n",
            ("1", "2", "</s>", "<s>"),
            [[3, 0, 1, 2], [3, 1, 1, 2], [3, 0, 0, 2]],
        ),
        ("(a) (b) (a)", ("(a)", "(b)"), [[0, 1, 0]]),
        ('"sun","rain",sun\n"rain"\n', ("rain", "sun"), [[1, 0, 1], [0]]),
        ('"a, b"; "a;b";"a, b"', ("a, b", "a;b"), [[0, 1, 0]]),
        ('5" pipe,6" pipe,5" pipe', ('5" pipe', '6" pipe'), [[0, 1, 0]]),
        ("NA 007 NA", ("007", "NA"), [[1, 0, 1]]),
    ],
)
def test_files_hold_one_sequence_a_line(tmp_path: Path, text: str, labels: tuple[str, ...], sequences: list) -> None:
    read = read_sequences(written(tmp_path, text))
    assert (read.name, read.labels) == ("weather.txt", labels)
    assert [sequence.tolist() for sequence in read.sequences] == sequences
    assert read.n_predictions == sum(len(sequence) - 1 for sequence in sequences)
    assert read.n_states == max(2, len(labels))


@pytest.mark.parametrize(
    ("text", "labels", "sequences"),
    [
        ("ABA\nCA\n", ("A", "B", "C"), [[0, 1, 0], [2, 0]]),
        ("\ufeffABA\r\n  C  \r\n", ("A", "B", "C"), [[0, 1, 0], [2]]),
        ("日本日", ("日", "本"), [[0, 1, 0]]),
        ("0110", ("0", "1"), [[0, 1, 1, 0]]),
        ("['[", ("'", "["), [[1, 0, 1]]),
    ],
)
def test_characters_are_states_if_it_is_said(
    tmp_path: Path, text: str, labels: tuple[str, ...], sequences: list
) -> None:
    path = written(tmp_path, text)
    read = read_sequences(path, characters=True)
    assert (read.labels, [sequence.tolist() for sequence in read.sequences]) == (labels, sequences)
    assert read.form == "each character a label"
    with pytest.raises(InputError, match=r"one word: give --characters .* or --delimiter"):
        read_sequences(path)


@pytest.mark.parametrize(
    ("text", "delimiter", "expected"),
    [
        ("a|b|a\nb\n", "|", [["a", "b", "a"], ["b"]]),
        ("a->b -> a", "->", [["a", "b", "a"]]),
        ("0,5;1,5;0,5", ";", [["0,5", "1,5", "0,5"]]),
        ('"a|b"|a|"say ""a"""', "|", [["a|b", "a", 'say "a"']]),
        ("sun rain,sun,sun rain", ",", [["sun rain", "sun", "sun rain"]]),
        ("a,b a,b b", " ", [["a,b", "a,b", "b"]]),
        ("a b\tb\ta b", "\t", [["a b", "b", "a b"]]),
    ],
)
def test_a_named_delimiter_is_taken_at_its_word(
    tmp_path: Path, text: str, delimiter: str, expected: list[list[str]]
) -> None:
    assert in_words(read_sequences(written(tmp_path, text), delimiter=delimiter)) == expected


REFUSED = [
    ("", "is empty: give a text file with one sequence per line"),
    ("\ufeff \n\t\n", "is empty"),
    ("ABA\nCA\n", "every line of .* is one word: give --characters if each character is a state, or --delimiter with"),
    ("sun\nrain\nsun\n", "for one state per line give --state-column 1"),
    ("A B\nA,,B\n", r"line 2 has commas, but line 1 has white space"),
    ("A,B\nA,,B\n", r"weather\.txt, line 2 has an empty label: put one label between commas"),
    ("A,B,\n", r"weather\.txt, line 1 has an empty label"),
    ("A\tB\t\n", r"weather\.txt, line 1 has an empty label: put one label between tabs"),
    ("Niño".encode("latin-1"), "is not UTF-8 text: save it as UTF-8, one sequence per line"),
    ("A B".encode("utf-16"), "is not UTF-8 text"),
    (b"\x89PNG\r\n\x1a\n\x00\x00", "is not UTF-8 text"),
    (b"A B\nA\x00B", r"weather\.txt, line 2 has the control character '\\x00': give a plain text file"),
    ("A B\n\x1b[0mA B", r"line 2 has the control character '\\x1b'"),
    # second separators
    ("sun rain sun\nrain,sun\n", r"line 2 has commas, but line 1 has white space: separate all labels in the same way"),
    ("\nsun,rain\nrain;sun\n", r"line 3 has semicolons, but line 2 has commas"),
    ("sun,rain\nrain;sun,sun\n", r"line 2: commas and semicolons both occur"),
    ("sun,rain\nwet dry wet\n", r"line 2 has white space, but line 1 has commas"),
    ("sun,rain,sun\nrain,sun rain,sun\n", "line 2: 'sun rain' contains white space, and 'sun' is a label too"),
    ("0,5;1,5;0,5", "line 1: commas and semicolons both occur"),
    # marks of other formats
    ("A C G\n>seq2\nA C\n", r"line 2 starts with >"),
    ("A B A\n  # later\nB A\n", r"line 2 starts with #, as a comment does"),
    ("% of days\nA B A\n", r"line 1 starts with %"),
    ("// days\nA B A\n", r"line 1 starts with //"),
    ('"sun" "rain" "sun"\n', 'line 1: "sun" is quoted: write labels without quotes, separated by commas'),
    ('sun,"rain,sun\n', r'line 1: .*: close each quote, and write " within quotes as ""'),
    ('sun,"rain"s,sun\n', "line 1: .*: close each quote"),
    ('sun,"",sun\n', "line 1 has an empty label: .* say that it is a missing value with --missing="),
    ("'sun','rain','sun'\n", "line 1: 'sun' is quoted"),
    ("[0, 1, 0, 1]\n", r"line 1: \[0 looks like a part of a list: write labels without brackets"),
    ("A,B\n{A,B}\n", r"line 2: \{A looks like a part of a list"),
    ("[1] 1 2 1 2\n", r"line 1 starts with \[1\], as in R's output"),
    # tables
    ("date,state\n2020-01-01,sun\n2020-01-02,rain\n", r"line 1 looks like the header of a table \(date, state oc"),
    ("year jan feb\n1950 sun rain\n1951 sun sun\n", r"line 1 looks like the header of a table \(year, jan, feb occur"),
    ("weather\nsun rain sun\nrain sun\n", r"line 1 looks like the header of a table \(weather occur"),
    ("a\tb\tc\td\n1\t2\t3\t4\n", r"\(a, b, c, … occur nowhere else\)"),
    (",state\n0,sun\n1,rain\n", "line 1 has an empty label"),
    ("year,sun\n1950,sun\n1950,rain\n", r"line 1 looks like the header of a table \(year above numbers\)"),
    ("s1 A B A\ns2 B B\ns3 A\n", r"the labels of column 1 \(s1, s2, s3\) occur nowhere else"),
    ("sun,0.1\nsun,0.2\nrain,0.3\n", r"the labels of column 2 \(0\.1, 0\.2, 0\.3\) occur nowhere else"),
    ("1,sun\n1,rain\n2,rain\n2,sun\n", "column 1 has numbers, column 2 words"),
    (" ".join(["0.5", "0.5", *(f"{k / 100}" for k in range(1, 30))]), "looks like measurements, not states: 30"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_not_plainly_sequences_is_refused_in_one_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        read_sequences(written(tmp_path, text))
    assert "\n" not in str(refusal.value)
    assert "weather.txt" in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a|b", {"delimiter": "|", "characters": True}, "--delimiter does not apply: give one of them"),
        ("a|b", {"delimiter": ""}, "the delimiter '' cannot separate labels"),
        ("a|b", {"delimiter": "\n"}, r"the delimiter '\\n' cannot separate labels"),
        ("a|b", {"delimiter": ";"}, "the delimiter ';' occurs in no line"),
        ("sun,rain\nrain;sun;sun\n", {"delimiter": ","}, "line 2 has semicolons, but elsewhere commas separate labels"),
        ("sun|rain\nrain sun sun\n", {"delimiter": "|"}, r"line 2 has white space, but elsewhere '\|' separate labels"),
        ("sun rain\nsun,rain\n", {"delimiter": " "}, "line 2 has commas, but elsewhere white space separate labels"),
        ("date|state\n1|sun\n2|rain\n", {"delimiter": "|"}, "line 1 looks like the header of a table"),
        (
            "AB\nA B\n",
            {"characters": True},
            "line 2 has white space, but --characters treats each character as a state",
        ),
        ("AB,A\n", {"characters": True}, "line 1 has commas, but --characters"),
        (">s\nACGT\n", {"delimiter": "|"}, "starts with >, as FASTA does, so --delimiter does not apply: leave it out"),
        ("A\nB\n", {"characters": True}, "has no sequence of two or more tokens, so there is nothing to predict"),
    ],
)
def test_what_a_flag_says_must_fit_the_file(tmp_path: Path, text: str, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_sequences(written(tmp_path, text), **options)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.txt"
    with pytest.raises(InputError, match=re.escape(f"no such file: {missing}")):
        read_sequences(missing)
    with pytest.raises(InputError, match=re.escape(f"{tmp_path} is a folder: give a text file")):
        read_sequences(str(tmp_path))
    with pytest.raises(InputError, match="cannot read"):
        read_sequences("a\0b")
    with pytest.raises(InputError, match=r"cannot read .*: Not a directory"):
        read_sequences(written(tmp_path, "A B") / "below")


WORDS = ["sun", "rain", "Schnee", "el-niño", "日本", "a.b", "x_1", "A"]
NUMBERS = ["0", "1", "2", "10", "-3", "007"]


def sequences_of(labels: list[str]) -> st.SearchStrategy[list[list[str]]]:
    """Sequences of which the first comes twice, so that no row or column is of labels of its own, as in a table."""
    line = st.lists(st.sampled_from(labels), min_size=1, max_size=6)
    first = st.lists(st.sampled_from(labels), min_size=2, max_size=6)
    return st.tuples(first, st.lists(line, max_size=5)).map(lambda drawn: [drawn[0], drawn[0], *drawn[1]])


def read_text(text: str, **options: object) -> ObservedSequences:
    with tempfile.TemporaryDirectory() as folder:
        return read_sequences(written(Path(folder), text), **options)  # type: ignore[arg-type]


@given(
    lines=st.one_of(sequences_of(WORDS), sequences_of(NUMBERS)),
    glue=st.sampled_from([" ", "  ", ",", ", ", ";", " ; ", "\t"]),
    end=st.sampled_from(["\n", "\r\n", "\n\n", "\r"]),
    mark=st.sampled_from(["", "\ufeff"]),
    named=st.booleans(),
)
def test_what_is_written_is_what_is_read(lines: list[list[str]], glue: str, end: str, mark: str, named: bool) -> None:
    options = {"delimiter": glue.strip(" ") or " "} if named else {}
    read = read_text(mark + end.join(glue.join(line) for line in lines) + end, **options)
    assert in_words(read) == lines
    assert set(read.labels) == {label for line in lines for label in line}


@given(lines=sequences_of([*WORDS, "sun rain", "0,5", ";"]), glue=st.sampled_from(["|", "::", " -> "]))
def test_any_delimiter_may_be_named(lines: list[list[str]], glue: str) -> None:
    lines = [line for line in lines if len(line) > 1]  # one label alone may look like another separator's line
    assert in_words(read_text("\n".join(map(glue.join, lines)), delimiter=glue.strip())) == lines


@given(st.lists(st.text("ABCx01|é日.\"'[", min_size=1, max_size=8), min_size=1).filter(lambda x: max(map(len, x)) > 1))
def test_characters_come_back(lines: list[str]) -> None:
    assert in_words(read_text("\n".join(lines), characters=True)) == [list(line) for line in lines]


@pytest.mark.slow
@given(st.one_of(st.text(), st.text("ab ,;\t\n#>\"'[]01.", max_size=40)), st.sampled_from([None, ",", "|"]))
def test_any_text_is_read_whole_or_refused(text: str, delimiter: str | None) -> None:
    try:
        read = read_text(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"), delimiter=delimiter)
    except InputError:
        return
    lines = [line for line in re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff")) if line.strip()]
    assert len(read.sequences) == len(lines)
    for line, words in zip(lines, in_words(read), strict=True):
        assert [c for c in "".join(words) if not c.isspace()] == [
            c for c in line if not c.isspace() and (c not in ",;" if delimiter is None else c != delimiter)
        ]


@pytest.mark.parametrize("line", ["sun rain # a remark", "a -> b -> a", "sun | rain | sun", "x // y"])
def test_a_comment_or_an_arrow_within_a_line_is_no_state(tmp_path: Path, line: str) -> None:
    path = tmp_path / "odd.txt"
    path.write_text(f"sun rain sun\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 2 has \S+ among its labels, as a comment or an arrow does"):
        read_sequences(path)
    assert "#" in read_sequences(path, delimiter=" ").labels or "#" not in line
