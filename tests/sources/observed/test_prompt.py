from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.sources.observed.prompt import begins_with_sentinel, read_prompt
from icl_estimators.validation import InputError


@pytest.mark.parametrize(
    ("prompt", "order", "tokens", "labels"),
    [
        ("ABA", None, "A B A", "A B"),
        ("  BA\n", None, "B A", "A B"),
        ("sun,rain, sun", None, "sun rain sun", "rain sun"),
        ("sun;rain; sun", None, "sun rain sun", "rain sun"),
        ("sun\train\tsun", None, "sun rain sun", "rain sun"),
        ("sun", "rain,sun", "sun", "rain sun"),
        ("10 9 10", None, "10 9 10", "10 9"),
        ("-A-", None, "- A -", "- A"),
        ("日本日", None, "日 本 日", "日 本"),
        ("🌧☀🌧", None, "🌧 ☀ 🌧", "☀ 🌧"),
        ("aA", None, "a A", "A a"),
        ("ABA", "C,B,A", "A B A", "C B A"),
        ("ABA", "CBA", "A B A", "C B A"),
        ("ABA", " C B  A ", "A B A", "C B A"),
        ("A", "A,B", "A", "A B"),
        ("sun,rain", "rain, snow ,sun", "sun rain", "rain snow sun"),
        ("^ABA", None, "A B A", "A B"),
        (" ^ A B A", None, "A B A", "A B"),
        ("^,sun,rain", None, "sun rain", "rain sun"),
        ("^sun,rain", None, "sun rain", "rain sun"),
        ("^sun", "sun,rain", "sun", "sun rain"),
        ("^ABA", "A,B,C", "A B A", "A B C"),
        ("^ABA", "^,A,B", "^ A B A", "^ A B"),
        ("^v^v", "^v", "^ v ^ v", "^ v"),
        ("^GSPC,^DJI", "^DJI,^GSPC", "^GSPC ^DJI", "^DJI ^GSPC"),
        ("A^A", None, "A ^ A", "A ^"),
    ],
)
def test_prompts_and_orders_are_read(prompt: str, order: str | None, tokens: str, labels: str) -> None:
    assert read_prompt(prompt, order) == (tokens.split(), tuple(labels.split()))


@given(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=20))
def test_every_spelling_of_a_prompt_is_the_same(tokens: list[str]) -> None:
    expected = (tokens, tuple("ABCD"))
    for glue in ("", " ", ",", " , "):
        assert read_prompt(glue.join(tokens), "ABCD") == expected


@given(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=20))
def test_a_sentinel_in_front_is_no_token(tokens: list[str]) -> None:
    for glue in ("", " ", ",", " , "):
        assert read_prompt("^" + glue + glue.join(tokens), "ABCD") == (tokens, tuple("ABCD"))


@pytest.mark.parametrize(
    ("prompt", "states", "found"),
    [("^AB", "AB", True), (" ^ A", "AB", True), ("AB", "AB", False), ("^A", "^A", False), ("^x,y", ("^x", "y"), False)],
)
def test_what_begins_with_a_sentinel(prompt: str, states: str, found: bool) -> None:
    assert begins_with_sentinel(prompt, states) is found


@pytest.mark.parametrize("prompt", ["", "^", "^A^A", "A", "A,,B"])
def test_what_is_no_prompt_is_refused(prompt: str) -> None:
    with pytest.raises(InputError, match="the prompt"):
        read_prompt(prompt)
