from __future__ import annotations

import inspect

import numpy as np
import pytest
from matplotlib.figure import Figure

import icl_estimators as icl
from icl_estimators.experiments.study import ChainOptions, StudyOptions


def test_signatures_show_every_option_of_a_study_with_its_default() -> None:
    shown = inspect.signature(icl.compare).parameters
    assert set(shown) == {"estimators", "jobs", "progress", *StudyOptions.__annotations__}
    assert (shown["chains"].default, shown["reference"].default, shown["level"].default) == (2000, "add-one", 0.95)
    assert (shown["states"].default, shown["device"].default, shown["checkpoints"].default) == (3, "cpu", ())
    shown = inspect.signature(icl.effective_smoothing).parameters
    own = {"estimators", "by", "families", "interventions", "jobs", "progress"}
    assert set(shown) == own | set(ChainOptions.__annotations__)


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="'chain' is not an option of a study"):
        icl.compare("bigram", chain=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="reference"):
        icl.effective_smoothing("bigram", reference="bigram")  # type: ignore[call-arg]


def test_warnings_point_at_the_line_that_called() -> None:
    with pytest.warns(UserWarning, match="^left out: transformer") as caught:
        icl.compare(states=5, chains=2, sequences_per_chain=1, length=2, decomposition_chains=0)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_result_shows_itself() -> None:
    result = icl.compare("bigram", chains=3, sequences_per_chain=1, length=2, decomposition_chains=0)
    assert repr(result).startswith("<Comparison: risk (")
    assert result._repr_html_() == f"<pre>{result.summary()}</pre>".replace("'", "&#x27;")


def test_the_attention_of_a_prompt_is_that_of_the_estimator() -> None:
    rule = icl.get("construction:2")
    found = icl.attention(rule, "^ABACA")
    assert isinstance(found, icl.PromptAttention)
    assert (found.estimator, found.tokens, found.has_sentinel) == ("construction:2", tuple("^ABACA"), True)
    for layer, own in zip(found.layers, rule.attention([[0, 1, 0, 2, 0]]), strict=True):  # type: ignore[attr-defined]
        assert (layer.shape, layer.dtype) == ((1, 6, 6), np.float64)
        np.testing.assert_array_equal(layer, own)
    assert len(found.frame()) == 2 * 21
    assert isinstance(found.figure(), Figure)


def test_prompts_are_given_as_text_or_as_integers() -> None:
    letters, integers = icl.attention("construction", "ABACA"), icl.attention("construction", [0, 1, 0, 2, 0])
    assert integers.tokens == ("^", "0", "1", "0", "2", "0")
    for one, other in zip(letters.layers, integers.layers, strict=True):
        np.testing.assert_array_equal(one, other)
    assert icl.attention("construction", "A", order="A,B").tokens == ("^", "A")
    assert icl.attention("construction", [4, 0], states=5).tokens == ("^", "4", "0")
    assert icl.attention(icl.get("construction", n_states=7), [6]).tokens == ("^", "6")


def test_the_attention_of_a_changed_estimator() -> None:
    changed = icl.intervene(icl.get("construction"), layer2="uniform")
    assert icl.attention(changed, "^ABACA").layers[1][0, -1].tolist() == [1 / 6] * 6


@pytest.mark.parametrize(
    ("estimator", "prompt", "options", "message"),
    [
        ("bigram", "ABA", {}, "bigram shows no attention: name one that does, such as construction or transformer"),
        ("construction", "", {}, "the prompt is empty"),
        ("construction", "^", {}, "the prompt is the sentinel alone"),
        ("construction", "ABA", {"states": 3}, "states is for a prompt of integers: name the states of this one with"),
        ("construction", [0, 1], {"order": "A,B"}, "order is for a prompt of labels"),
        ("construction", [[0, 1]], {}, r"the prompt must be text or have shape \(T,\), not \(1, 2\)"),
        ("construction", [0, 3], {}, "token 3 at sequence 0, position 1 is outside"),
        ("construction", [], {}, "tokens are empty"),
        ("construction", [0], {"states": 1}, "states must be an integer of at least 2"),
        ("constructio", "ABA", {}, "unknown estimator 'constructio'"),
        ("construction", "ABA", {"checkpoint": "absent"}, "no such checkpoint: absent"),
    ],
)
def test_attention_that_is_not_there_is_named(
    estimator: str, prompt: object, options: dict[str, object], message: str
) -> None:
    with pytest.raises(icl.InputError, match=message):
        icl.attention(estimator, prompt, **options)  # type: ignore[arg-type]


def test_a_prompt_for_another_number_of_states_is_named() -> None:
    rule = icl.get("construction")
    with pytest.raises(
        icl.InputError, match="construction is for 3 states, but the prompt has 2: name all states with"
    ):
        icl.attention(rule, "ABA")
    with pytest.raises(icl.InputError, match="construction is for 3 states, but the prompt has 4: leave states out"):
        icl.attention(rule, [0], states=4)
    assert icl.attention(rule, "ABA", order="A,B,C").tokens == ("^", "A", "B", "A")


def test_attention_that_fails_is_a_breach_of_the_contract() -> None:
    rule = icl.get("construction")
    rule.attention = lambda tokens: 3  # type: ignore[attr-defined]
    with pytest.raises(icl.estimators.ContractError, match="returned int"):
        icl.attention(rule, "ABACA")


def test_predictions_read_a_prompt_with_a_sentinel() -> None:
    rules = "construction,add-one"
    assert icl.predictions(rules, prompt="^ABACA").equals(icl.predictions(rules, prompt="ABACA"))


def test_a_changed_estimator_is_compared_like_every_other() -> None:
    changed = icl.intervene(icl.get("construction"), beta=2, gamma=2.2, direct_path=False)
    result = icl.compare(
        [changed, "construction:layer1=uniform", "add-one"],
        chains=4, sequences_per_chain=1, length=4, decomposition_chains=0,
    )  # fmt: skip
    assert {"construction-softmax:2.2:beta=2:direct_path=false", "construction:layer1=uniform"} <= set(
        result.risk.estimator
    )
