from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from icl_estimators.data_options import data_files, data_parent, has_data, read_data
from icl_estimators.evaluate import main
from icl_estimators.options import Parser
from icl_estimators.sources import ObservedSequences
from icl_estimators.validation import InputError

Refused = Callable[..., str]
TABLE = "id,t,state\na,2,sun\nb,1,NA\na,1,rain\nb,2,sun\nb,3,sun\n"


def read(*arguments: str) -> ObservedSequences | None:
    return read_data(Parser(prog="x", parents=[data_parent()]).parse_args(list(arguments)))


def typed(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_no_flag_is_no_data_and_a_dataset_goes_by_its_name() -> None:
    assert read() is None
    months = read("--dataset", "elnino")
    assert months is not None
    assert months.name == "elnino"


def test_each_flag_is_used(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(TABLE)
    flags = ["--state-column", "state", "--id-column", "id", "--order-column", "t", "--missing", "NA,"]
    data = read("--sequences", str(path), *flags, "--states-order", 'sun,"fog, dense",rain')
    assert data is not None
    assert (data.labels, data.ids, data.missing) == (("sun", "fog, dense", "rain"), ("a", "b"), 1)
    assert [tokens.tolist() for tokens in data.sequences] == [[2, 0], [0, 0]]
    path.write_text("ABN,B\n".replace(",", ""))
    letters = read("--sequences", str(path), "--characters", "--missing", "N", "--missing-action", "split")
    assert letters is not None
    assert letters.groups == (0, 0)
    path.write_text("x|y\na|b|a\n")
    for flag in ("--header", "--no-header"):
        found = read("--sequences", str(path), "--delimiter", "|", flag)
        assert found is not None
        assert found.n_states == (2 if flag == "--header" else 4)
    path.write_text("a,b,,b\n")
    gap = read("--sequences", str(path), "--missing=")
    assert gap is not None
    assert gap.missing == 1


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "\ufeffa b b NA b a c a\r\n".encode())
    data = read("--sequences", "-", "--missing", "NA")
    assert data is not None
    assert data.described() == (
        "read standard input: 3 states (a, b, c), 1 sequence, divided by 1 missing value into 2 pieces of 3 to 4 "
        "tokens, 5 predictions; labels separated by white space"
    )
    typed(monkeypatch, b"")
    with pytest.raises(InputError, match="standard input is empty"):
        read("--sequences", "-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="there is no standard input"):
        read("--sequences", "-")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--missing", "NA"], "--missing does not apply to anything but --sequences"),
        (["--dataset", "elnino", "--states-order", "a,b"], "--states-order does not apply to anything but --sequences"),
        (["--header"], "--header does not apply to anything but --sequences"),
        (
            ["--sequences", "x", "--missing-action", "error"],
            "--missing-action does not apply to data without --missing",
        ),
        (["--sequences", "x", "--missing", '"NA'], "argument --missing: .* close each quote"),
        (["--sequences", "x", "--missing-action", "drop"], "argument --missing-action: invalid choice"),
        (["--sequences", "x", "--delimiter", ",", "--characters"], "not allowed with argument --delimiter"),
        (["--sequences", "x", "--dataset", "elnino"], "not allowed with argument --sequences"),
        (["--sequences", "x", "--states-order", "a,a"], "--states-order is empty or has an empty or repeated label"),
    ],
)
def test_flags_that_say_nothing_are_refused(flags: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(*flags)


def test_the_file_of_a_run_is_known(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("a b\n")
    parser = Parser(prog="x", parents=[data_parent()])
    assert data_files(parser.parse_args(["--sequences", str(path)])) == [path]
    for arguments in (["--sequences", "-"], ["--dataset", "elnino"], []):
        options = parser.parse_args(arguments)
        assert data_files(options) == []
        assert has_data(options) == bool(arguments)


def test_evaluate_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, b"id,state\np,x\np,NA\np,X\np,x\nq,x\nq,x\n")
    flags = ["--state-column", "state", "--id-column", "id", "--missing", "NA", "--estimators", "add-one"]
    assert main(["--sequences", "-", *flags, "--no-report", "--out", str(tmp_path)]) == 0
    warned, said = capsys.readouterr().err.splitlines()
    assert warned == "labels that differ only by case or white space are different: 'x' and 'X'"
    assert said.startswith(
        "read standard input: 2 states (X, x), 2 sequences, divided by 1 missing value into 3 pieces"
    )
    record = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert (record["data"]["missing"], record["data"]["n_units"]) == (1, 2)


@pytest.mark.parametrize(
    ("content", "flags", "complaint"),
    [
        (b"", [], "x.csv is empty"),
        (b"sun\n", [], "is one word: give --characters if each character is a state, or --delimiter"),
        (b"state\nsun\n", ["--state-column", "state"], "has no sequence of two or more tokens"),
        (b"a b\na,b\n", [], "line 2 has commas, but line 1 has white space"),
        (b"a b\n\x00\x01", [], "line 2 has the control character '\\x00'"),
        (b"a b\n\xff\xfe", [], "line 2 is not UTF-8 text"),
        (TABLE.encode(), ["--state-column", "weather"], "x.csv has no column 'weather': its columns are id, t, state"),
        (TABLE.encode(), [], "looks like the header of a table (id, t, state occur nowhere else): give --header"),
        (b"a a\nb c\n", ["--states-order", "a,b"], "line 2 has 'c', which --states-order lacks"),
        (b"a b\na NA\n", ["--missing", "NA", "--missing-action", "error"], "line 2 has a missing value"),
        (" ".join(f"s{k}" for k in range(1001)).encode(), [], "has 1,001 different labels"),
    ],
)
def test_data_that_cannot_be_read_are_one_line_and_2(
    refused: Refused, tmp_path: Path, content: bytes, flags: list[str], complaint: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    assert complaint in refused(main, "--sequences", str(path), *flags, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert "is a folder" in refused(main, "--sequences", str(tmp_path), *flags, "--out", str(tmp_path / "out"))
