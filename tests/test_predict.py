from __future__ import annotations

import csv
import io
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from icl_estimators.estimators import get
from icl_estimators.predict import LONGEST_DISPLAY, main, read_prompt
from icl_estimators.text import columns_of
from icl_estimators.validation import InputError

RULES = "bigram,add-one,construction"

SEED_TABLE = """\
What comes after the last A of ABACABADA

estimator          A       B       C       D
------------  ------  ------  ------  ------
bigram        0.0000  0.5000  0.2500  0.2500
add-one       0.1250  0.3750  0.2500  0.2500
construction  0.0000  0.5000  0.2500  0.2500

Where the construction's second head looks from the last A (β → ∞, ^: sentinel)
token         ^     A     B     A     C     A     B     A     D     A
weight        ·     ·  0.25     ·  0.25     ·  0.25     ·  0.25     ·
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str, estimators: str = RULES) -> str:
    assert main([*arguments, "--estimators", estimators]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def attention(out: str) -> dict[str, list[str]]:
    """Read the attention rows back."""
    rows: dict[str, list[str]] = {"token": [], "weight": []}
    for line in out.splitlines():
        title, *cells = line.split() or [""]
        if title in rows:
            rows[title] += cells
    return rows


def test_the_seeds_prompt_gives_the_seeds_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "ABACABADA") == SEED_TABLE


def test_the_attention_shown_is_the_estimators_own(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "ABACABADA", estimators="construction:3,bigram")
    assert out.count("Where the construction's second head looks") == 1
    assert "looks from the last A (β = 3, ^: sentinel)" in out
    own = get("construction:3", n_states=4).attention([[0, 1, 0, 2, 0, 1, 0, 3, 0]])[1][0, -1]  # type: ignore[attr-defined]
    assert attention(out)["weight"] == [f"{weight:.2f}" for weight in own]
    out = run(capsys, "ABACABADA", estimators="construction:3,construction-softmax:2")
    assert out.index("(β = 3, ^") < out.index("(β → ∞, ^")


def test_what_a_name_does_not_say_is_printed_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "ABA", estimators="construction-softmax,construction-softmax:direct_path=false,bayes")
    assert "construction-softmax: γ = 0.645, the default\n" in out
    assert "construction-softmax:direct_path=false: γ = 2.21, the default\n" in out
    assert "bayes: α = 1\n" in out


def test_a_prompt_has_no_law_to_tune_to(refused: Callable[..., str]) -> None:
    line = refused(main, "ABA", "--estimators", "construction-softmax:tuned")
    assert line.startswith("predict: construction-softmax:tuned needs chains and a length")


def test_the_csv_is_the_prediction_at_full_precision(capsys: pytest.CaptureFixture[str]) -> None:
    table = list(csv.DictReader(io.StringIO(run(capsys, "ABCAB", "--csv", estimators="add-constant:0.3,uniform"))))
    assert list(table[0]) == ["estimator", "token", "probability"]
    expected = [
        (spec, label, repr(float(p)))
        for spec in ("add-constant:0.3", "uniform")
        for label, p in zip("ABC", get(spec).predict_proba([[0, 1, 2, 0, 1]])[0, -1], strict=True)
    ]
    assert [tuple(row.values()) for row in table] == expected


def test_a_csv_quotes_what_it_must(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, '"A"A', "--csv", estimators="uniform")
    assert [row[1] for row in csv.reader(io.StringIO(out))] == ["token", '"', "A"]


@pytest.mark.parametrize(
    ("prompt", "order", "message"),
    [
        ("", None, "the prompt is empty: give at least one token, as in ABACABADA"),
        (" \t", None, "the prompt is empty"),
        ("", "A,B", "the prompt is empty"),
        (
            "sun rain\tsun",
            None,
            "the prompt 'sun rain\\tsun': 'sun rain' contains white space: separate all labels in the same",
        ),
        ("sun,rain sun", None, "the prompt 'sun,rain sun': 'rain sun' contains white space"),
        ("sun,rain;sun", None, "the prompt 'sun,rain;sun': commas and semicolons both occur"),
        ('"A","B"', None, """the prompt '"A","B"': "A" is quoted"""),
        ("[0, 1]", None, "the prompt '[0, 1]': [0 looks like a part of a list"),
        ("ABA", "A,B;C", "--order 'A,B;C': commas and semicolons both occur"),
        ("A,,B", None, "the prompt 'A,,B' has an empty label: put one label between commas"),
        ("A,B,", None, "the prompt 'A,B,' has an empty label"),
        (",", None, "the prompt ',' has an empty label"),
        ("AAA", None, "the prompt has one state, 'A': name the others with --order, as in --order A,B"),
        ("AAA", "A", "the prompt has one state, 'A'"),
        ("ABA", "A,C", "the prompt has 'B', which --order 'A,C' lacks: add it there"),
        ("sun,rain", "sun", "the prompt has 'sun', which --order 'sun' lacks"),
        ("ABA", "A,B,A", "--order 'A,B,A' has an empty or repeated label: name each state once"),
        ("ABA", "A,,B", "--order 'A,,B' has an empty label"),
        ("ABA", "", "--order '' has an empty or repeated label"),
        ("^", None, "the prompt is the sentinel alone, and nothing predicts the first token: give a token, as in ^A"),
        ("^ ", "A,B", "the prompt is the sentinel alone"),
        ("^v^v", None, "the prompt '^v^v' begins with ^, the sentinel, and has another ^: leave the first out, or"),
        ("^,A,^", None, "the prompt '^,A,^' begins with ^, the sentinel, and has another ^"),
        ("^GSPC,^DJI", None, "the prompt '^GSPC,^DJI' begins with ^, the sentinel, and has another ^"),
        ("^A", None, "the prompt has one state, 'A'"),
        ("^ABC", "A,B", "the prompt has 'C', which --order 'A,B' lacks: add it there"),
        ("^,,A", None, "the prompt '^,,A' has an empty label"),
    ],
)
def test_bad_prompts_and_orders_are_one_line_and_status_2(
    refused: Callable[..., str], prompt: str, order: str | None, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_prompt(prompt, order)
    assert str(caught.value).startswith(message)
    arguments = [f"--order={order}"] if order is not None else []
    assert refused(main, prompt, *arguments, "--estimators", "bigram").startswith(f"predict: {message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: prompt (--help lists the options)"),
        (["-A-B-A"], "the following arguments are required: prompt"),
        (["ABA", "--estimators", "bigrm"], "unknown estimator 'bigrm' (did you mean bigram?): choose from "),
        (["ABA", "--estimators", "add-constant:"], "'add-constant:' has an empty part after a colon"),
        (
            ["ABA", "--estimators", "add-constant:-1"],
            "the constant of add-constant must be a finite number above 0",
        ),
        (["ABA", "--checkpoint", "absent"], "no such checkpoint: absent (give a .safetensors file)"),
        (["ABA", "BAB"], "unrecognized arguments: BAB"),
        (["ABA", "--order"], "argument --order: expected one argument"),
    ],
)
def test_bad_arguments_are_one_line_and_status_2(
    refused: Callable[..., str], arguments: list[str], message: str
) -> None:
    assert refused(main, *arguments).startswith(f"predict: {message}")


def test_more_labels_than_an_estimator_takes_is_named(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threes.py").write_text("from icl_estimators.estimators import get\nrule = get('uniform')\n")
    monkeypatch.syspath_prepend(tmp_path)
    line = refused(main, "ABCD", "--estimators", "bigram,threes:rule")
    assert line == "predict: threes:rule is for 3 states, but 4 were asked for\n"


def test_more_labels_than_the_transformer_takes_is_named(refused: Callable[..., str]) -> None:
    line = refused(main, "ABCDE", "--estimators", "bigram,transformer")
    assert line.startswith("predict: transformer: no checkpoint ships for 5 states (K shipped: 3, 4)")


def test_a_prompt_may_begin_with_a_dash(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = python("-m", "icl_estimators.predict", "--estimators", "bigram", "--", "-A-B-")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("What comes after the last - of -A-B-\n")


def test_a_state_that_never_occurs_has_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "ABA", "--order", "C,B,A")
    assert "estimator          C       B       A\n" in out
    assert "add-one       0.2500  0.5000  0.2500\n" in out


def test_a_token_that_was_not_there_before_falls_back(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "ABAC")
    assert attention(out) == {"token": ["^", "A", "B", "A", "C"], "weight": ["0.20"] * 5}
    assert out.endswith("C does not occur earlier: without a match, attention is a uniform average\n")
    assert "does not occur earlier" not in run(capsys, "ABACA")


def test_long_prompts_wrap_and_no_weight_is_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    prompt = "A" * LONGEST_DISPLAY
    out = run(capsys, prompt, "--order", "A,B")
    rows = attention(out)
    assert rows["token"] == ["^", *prompt]
    assert rows["weight"] == ["·", "·", *["0.01"] * (LONGEST_DISPLAY - 1)]
    assert max(map(len, out.splitlines()[7:])) <= 80
    fallback = attention(run(capsys, prompt[1:] + "B"))
    assert fallback["weight"] == ["5e-03"] * (LONGEST_DISPLAY + 1)


def test_longer_prompts_are_predicted_without_the_attention(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "AB" * 2_000)
    assert "of …" + "AB" * 30 + "\n" in out
    assert re.search(r"construction +1\.0000 +0\.0000\n", out)
    assert out.endswith("The construction's attention is shown for up to 200 tokens; these are 4000.\n")


def test_wide_labels_align(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "日本日本日").splitlines()
    assert lines[0] == "What comes after the last 日 of 日本日本日"
    assert len({columns_of(line) for line in lines[2:7]}) == 1
    assert columns_of(lines[-1]) == columns_of(lines[-2])


def test_words_are_shown_with_spaces(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "sun,rain,sun")
    assert out.startswith("What comes after the last sun of sun rain sun\n")
    assert attention(out) == {"token": ["^", "sun", "rain", "sun"], "weight": ["·", "·", "1.00", "·"]}


def test_many_labels(capsys: pytest.CaptureFixture[str]) -> None:
    prompt = "".join(map(chr, range(0x4E00, 0x4E00 + 120)))
    out = run(capsys, prompt, "--csv", estimators="uniform")
    assert out.count(repr(1 / 120)) == 120


def test_labels_are_unknown_to_the_estimators(capsys: pytest.CaptureFixture[str]) -> None:
    letters = run(capsys, "ABACA", "--csv")
    digits = run(capsys, "01020", "--csv")
    assert digits == letters.replace(",A,", ",0,").replace(",B,", ",1,").replace(",C,", ",2,")


def test_a_checkpoint_that_nobody_reads_is_refused(refused: Callable[..., str]) -> None:
    line = refused(main, "ABA", "--estimators", "bigram", "--checkpoint", __file__)
    assert line.startswith("predict: --checkpoint is for transformer, which is not among the named estimators (bigram)")


ABACA = """\
What comes after the last A of ^ABACA

estimator          A       B       C
------------  ------  ------  ------
construction  0.0000  0.5000  0.5000
add-one       0.2000  0.4000  0.4000

Attention of construction
layer 1
         ^     A     B     A     C     A
   ^  1.00
   A  1.00     ·
   B     ·  1.00     ·
   A     ·     ·  1.00     ·
   C     ·     ·     ·  1.00     ·
   A     ·     ·     ·     ·  1.00     ·
layer 2
         ^     A     B     A     C     A
   ^  1.00
   A  0.50  0.50
   B  0.33  0.33  0.33
   A     ·     ·  1.00     ·
   C  0.20  0.20  0.20  0.20  0.20
   A     ·     ·  0.50     ·  0.50     ·

Rows: the token that attends. Columns: the token attended to. Each row sums to 1. ^: sentinel, before the first token.

No attention to show: add-one
"""


def test_the_articles_matrices_are_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "^ABACA", "--attention", estimators="construction,add-one") == ABACA


def test_the_sentinel_changes_no_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "^ABACA").replace("^ABACA", "ABACA") == run(capsys, "ABACA")
    assert run(capsys, "^ABACA", "--csv") == run(capsys, "ABACA", "--csv")


def test_a_state_called_like_the_sentinel_is_told_apart_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "^A^A", "--order", "^A", "--attention")
    assert "start: sentinel" in out
    assert "(β → ∞, start: sentinel)\n" in run(capsys, "^A^A", "--order", "^A")


def test_estimators_that_look_at_the_same_places_come_together(capsys: pytest.CaptureFixture[str]) -> None:
    rules = "construction,construction-softmax:2,construction:2,construction-softmax:3:beta=2"
    out = run(capsys, "ABACA", "--attention", estimators=rules)
    assert [line for line in out.splitlines() if line.startswith("Attention of ")] == [
        "Attention of construction, construction-softmax:2",
        "Attention of construction:2, construction-softmax:3:beta=2",
    ]


def test_a_longer_prompt_has_the_last_row_of_every_head(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "AB" * 20, "--attention")
    assert "layer 1: where the last B looks\n" in out
    assert "layer 2: where the last B looks\n" in out
    assert "Rows: " not in out
    rows = attention(out)
    assert rows["token"] == ["^", *"AB" * 20] * 2
    assert rows["weight"][39] == "1.00"
    assert [row for row in rows["weight"][41:] if row != "·"] == ["0.05"] * 19


def test_one_token_has_its_attention(capsys: pytest.CaptureFixture[str]) -> None:
    assert "   A  0.50  0.50\n" in run(capsys, "A", "--order", "A,B", "--attention")


def test_the_csv_of_the_attention_is_every_weight(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "^ABACA", "--attention", "--csv", estimators="construction:2,construction-softmax:3,add-one")
    table = list(csv.DictReader(io.StringIO(out)))
    assert list(table[0]) == ["estimator", "layer", "head", "query", "key", "query_token", "key_token", "weight"]
    assert {row["estimator"] for row in table} == {"construction:2", "construction-softmax:3"}
    assert len(table) == 2 * 2 * (6 * 7 // 2)
    own = get("construction:2").attention([[0, 1, 0, 2, 0]])  # type: ignore[attr-defined]
    for row in table[: len(table) // 2]:
        layer, query, key = (int(row[name]) for name in ("layer", "query", "key"))
        assert row["weight"] == repr(float(own[layer - 1][0, query, key]))
        assert (row["head"], row["query_token"], row["key_token"]) == ("1", "^ABACA"[query], "^ABACA"[key])


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_the_figure_is_written_and_named(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    file = tmp_path / "new" / f"abaca.{kind}"
    out = run(capsys, "^ABACA", "--attention", "--figure", str(file), estimators="construction")
    assert out.endswith(f"\n\n{file}\n")
    assert file.read_bytes()[:4] in (b"<?xm", b"\x89PNG", b"%PDF")
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_figure_needs_no_printed_attention(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "abaca.svg"
    assert run(capsys, "ABACA", "--csv", "--figure", str(file)) == run(capsys, "ABACA", "--csv")
    assert file.is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ABA", "--attention", "--estimators", "bigram,uniform"], "--attention: no estimator shows its attention (b"),
        (["ABA", "--figure", "a.svg", "--estimators", "bigram"], "--figure: no estimator shows its attention (bigram)"),
        (["AB" * 101, "--attention"], "--attention is for up to 200 tokens, and the prompt has 202: shorten it, or"),
        (["AB" * 101, "--figure", "a.svg"], "--figure is for up to 200 tokens, and the prompt has 202"),
        (["ABA", "--figure", "a.jpg"], "a.jpg has no ending that says how to draw it: name it .svg, .png or .pdf"),
        (["ABA", "--figure", f"{__file__}/a.svg"], f"cannot write {__file__}/a.svg: its folder is not writable"),
    ],
)
def test_attention_that_cannot_be_shown_is_refused(
    refused: Callable[..., str], arguments: list[str], message: str
) -> None:
    assert refused(main, *arguments).startswith(f"predict: {message}")


def test_what_is_changed_is_shown_as_it_looks(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "^ABACA", "--attention", estimators="construction:layer1=uniform")
    assert "   A  0.50  0.50\n   B  0.33  0.33  0.33\n" in out.partition("layer 2")[0]
