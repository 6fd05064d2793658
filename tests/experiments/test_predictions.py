"""Every prediction as rows: the numbers are those of the estimators and of a comparison on the same chains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icl_estimators import compare, get, predictions
from icl_estimators.estimators import ContractError
from icl_estimators.experiments.predictions import given_sequences
from icl_estimators.sources import ObservedSequences
from icl_estimators.validation import InputError


def test_sequences_of_any_lengths_keep_their_order() -> None:
    sequences = [[0, 1, 2, 1], [2], [1, 1, 0, 2], [0, 2]]
    frame = predictions("bigram,add-one", sequences)
    assert list(frame) == ["estimator", "sequence", "context_length", "token", "probability"]
    assert len(frame) == 2 * 11 * 3
    for name in ("bigram", "add-one"):
        for number, sequence in enumerate(sequences):
            own = frame[(frame.estimator == name) & (frame.sequence == number)]
            expected = get(name).predict_proba(np.array([sequence]))[0]
            assert own.context_length.tolist() == np.repeat(np.arange(1, len(sequence) + 1), 3).tolist()
            assert own.token.tolist() == [0, 1, 2] * len(sequence)
            np.testing.assert_array_equal(own.probability.to_numpy().reshape(-1, 3), expected)


def test_the_risk_of_a_comparison_can_be_computed_from_the_rows() -> None:
    design: dict[str, Any] = {"chains": 15, "sequences_per_chain": 3, "length": 7, "concentration": 0.7, "seed": 4}
    frame = predictions("unigram,add-one", **design)
    kept = compare("unigram,add-one", keep=("chains",), decomposition_chains=0, **design).chains
    assert frame.truth.between(0, 1).all()
    terms = frame.truth * np.log(frame.truth / frame.probability)
    kl = terms.groupby([frame.estimator, frame.sequence // 3]).sum() / (3 * 7)
    for name in ("unigram", "add-one"):
        rows = kept[(kept.estimator == name) & (kept.metric == "kl_nats")]
        np.testing.assert_allclose(kl[name], rows.estimate, rtol=1e-11)


def test_a_prompt_has_its_own_labels() -> None:
    frame = predictions("add-one", prompt="sun,rain,sun")
    assert frame.token.tolist() == ["rain", "sun"] * 3
    assert frame.context_length.max() == 3
    assert "truth" not in frame


def test_observed_sequences_have_their_own_labels() -> None:
    data = ObservedSequences("coin", ("a", "b"), (np.array([0, 1, 1]), np.array([1])))
    assert predictions("uniform", data).token.tolist() == ["a", "b"] * 4
    assert len(predictions("uniform", np.array([0, 1, 1]), states=2)) == 6
    assert len(predictions("uniform", np.zeros((2, 5), dtype=int))) == 30


def test_large_inputs_are_asked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = predictions("bigram", chains=9, length=5)
    monkeypatch.setattr("icl_estimators.experiments.predictions._BATCH_CELLS", 31)
    assert predictions("bigram", chains=9, length=5).equals(whole)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "give exactly one of sequences, prompt, chains"),
        ({"prompt": "ABA", "chains": 3}, "give exactly one of sequences, prompt, chains"),
        ({"prompt": "ABA", "length": 5}, "length applies to chains only: leave it out"),
        ({"prompt": "ABA", "states": 3}, "the sequences have 2 states, not 3"),
        ({"sequences": []}, "there is nothing to predict on"),
        ({"sequences": [[0, 1], []]}, "there is nothing to predict on"),
        ({"sequences": [[0, 3]]}, "3"),
        ({"sequences": [[0.5, 1]]}, "integer"),
        ({"chains": 0}, "chains must be an integer of at least 1"),
        ({"chains": 2, "length": 0}, "length must be an integer of at least 1"),
        ({"chains": 2, "start": "nowhere"}, "nowhere"),
        ({"sequences": [[0, 1]], "states": 1}, "states must be an integer of at least 2"),
        ({"estimators": "nonsense", "prompt": "ABA"}, "nonsense"),
    ],
)
def test_what_cannot_be_predicted_is_refused_in_one_line(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        predictions(**{"estimators": "uniform", **options})
    assert "\n" not in str(caught.value)


def test_an_estimator_that_fails_is_named() -> None:
    class Fails:
        name = "fails"
        n_states = 3

        def predict_proba(self, tokens: Any) -> Any:
            raise RuntimeError("no")

    with pytest.raises(ContractError, match="fails"):
        predictions([Fails()], [[0, 1]])


def test_several_shapes_are_understood() -> None:
    assert [len(row) for row in given_sequences(np.array([[0, 1], [1, 2]]), 3).sequences] == [2, 2]
    assert [len(row) for row in given_sequences((0, 1, 2), 3).sequences] == [3]
