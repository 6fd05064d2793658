from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from icl_estimators.estimators.induction_matrices import InductionMatrices
from icl_estimators.validation import InputError

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "small_examples.json").read_text(encoding="utf-8"))
EXAMPLE = ORACLES["construction_example"]
ABACA = np.array([["ABC".index(letter) for letter in EXAMPLE["sequence"].lstrip("^")]])


def lower(rows: list[list[float]]) -> np.ndarray:
    return np.array([row + [0.0] * (len(rows) - len(row)) for row in rows])


def test_abaca_has_the_known_attention_and_prediction() -> None:
    trace = InductionMatrices(3, 5, beta=50.0).run(ABACA)
    first, second = (attention[0] for attention in trace.attention)
    np.testing.assert_allclose(second, lower(EXAMPLE["layer2_attention"]), atol=1e-12)
    previous = np.eye(6, k=-1)  # row i attends to i − 1,
    previous[0, 0] = 1.0  # row 1 to itself
    np.testing.assert_allclose(first, previous, atol=1e-12)
    known = EXAMPLE["induction_path_last"]
    expected = [known.get(letter, 0.0) for letter in "ABC^"]
    np.testing.assert_allclose(trace.induction_path[0, -1], expected, atol=1e-12)


@pytest.mark.parametrize("beta", [*range(1, 51), 0.25, 700.0])
def test_the_first_head_has_the_known_mass_on_the_previous_position(beta: float) -> None:
    tokens = np.random.default_rng(0).integers(0, 3, size=(2, 30))
    attention = InductionMatrices(3, 30, beta).run(tokens).attention[0]
    for i in range(2, 32):  # positions count from 1; the sentinel is the first
        mass = 1 / (1 + (i - 1) * math.exp(-beta))
        np.testing.assert_allclose(attention[:, i - 1, i - 2], mass, rtol=1e-12)
        np.testing.assert_allclose(attention[:, i - 1, i - 1], math.exp(-beta) * mass, rtol=1e-12)
    np.testing.assert_allclose(attention.sum(axis=-1), 1.0, rtol=1e-12)
    assert (np.triu(attention, k=1) == 0).all()


def test_the_stream_holds_token_position_and_previous_token() -> None:
    matrices = InductionMatrices(3, 5, beta=50.0)
    start, middle, end = (stream[0] for stream in matrices.run(ABACA).stream)
    own = np.eye(4)[[3, *ABACA[0]]]  # the sentinel is the fourth letter of the vocabulary
    before = np.eye(4)[[3, 3, *ABACA[0, :-1]]]  # position 1 copies itself
    for stream in (start, middle, end):
        np.testing.assert_array_equal(stream[:, matrices.position_block], np.eye(6))
    for stream in (start, middle):
        np.testing.assert_array_equal(stream[:, matrices.token_block], own)
    assert (start[:, matrices.scratch_block] == 0).all()
    for stream in (middle, end):
        np.testing.assert_allclose(stream[:, matrices.scratch_block], before, atol=1e-12)
    copied = lower(EXAMPLE["layer2_attention"]) @ own
    np.testing.assert_allclose(end[:, matrices.token_block], own + copied, atol=1e-12)


@pytest.mark.parametrize("beta", [0.5, 3.0])
def test_soft_heads_copy_averages(beta: float) -> None:
    matrices = InductionMatrices(3, 5, beta)
    trace = matrices.run(ABACA)
    start, middle, _ = trace.stream
    first, second = trace.attention
    tokens = start[..., matrices.token_block]
    scratch = middle[..., matrices.scratch_block]
    np.testing.assert_allclose(scratch, first @ tokens, rtol=1e-12)
    scores = beta * tokens @ scratch.swapaxes(1, 2)
    weights = np.tril(np.exp(scores))
    np.testing.assert_allclose(second, weights / weights.sum(axis=-1, keepdims=True), rtol=1e-12)


def test_logits_are_direct_and_induction_path_times_gamma() -> None:
    tokens = np.random.default_rng(1).integers(0, 3, size=(4, 12))
    plain = InductionMatrices(3, 12, 4.0).run(tokens)
    scaled = InductionMatrices(3, 12, 4.0, gamma=1.7).run(tokens)
    own = np.eye(4)[np.pad(tokens, ((0, 0), (1, 0)), constant_values=3)]
    np.testing.assert_allclose(plain.direct_path, own, atol=1e-15)
    np.testing.assert_allclose(plain.induction_path.sum(axis=-1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(scaled.logits, 1.7 * (own + plain.induction_path), rtol=1e-12)
    np.testing.assert_array_equal(scaled.logits, scaled.direct_path + scaled.induction_path)
    np.testing.assert_allclose(plain.attention[1] @ own, plain.induction_path, rtol=1e-12)


def test_the_weights_are_the_appendixs_blocks() -> None:
    matrices = InductionMatrices(2, 3, beta=5.0, gamma=2.0)
    token, position, scratch = matrices.token_block, matrices.position_block, matrices.scratch_block
    identity = np.eye(3)
    expected = {
        "qk1": (matrices.query_key[0], position, position, 5.0 * np.eye(4, k=-1)),
        "qk2": (matrices.query_key[1], token, scratch, 5.0 * identity),
        "ov1": (matrices.output_value[0], token, scratch, identity),
        "ov2": (matrices.output_value[1], token, token, identity),
        "unembedding": (matrices.unembedding, token, slice(None), 2.0 * identity),
    }
    for name, (matrix, rows, columns, block) in expected.items():
        np.testing.assert_array_equal(matrix[rows, columns], block, err_msg=name)
        assert np.abs(matrix).sum() == block.sum(), name  # and nothing elsewhere
    assert matrices.width == 3 + 4 + 3


def test_the_sentinel_never_matches() -> None:
    tokens = np.random.default_rng(2).integers(0, 3, size=(8, 40))
    second = InductionMatrices(3, 40, 50.0).run(tokens).attention[1]
    for sequence, t in np.ndindex(tokens.shape):
        met_before = tokens[sequence, t] in tokens[sequence, :t]
        assert second[sequence, t + 1, 0] == pytest.approx(0.0 if met_before else 1 / (t + 2), abs=1e-12)


def test_shorter_prompts_are_beginnings_of_longer_ones() -> None:
    tokens = np.random.default_rng(3).integers(0, 3, size=(2, 9))
    whole = InductionMatrices(3, 20, 2.0).run(tokens)
    short = InductionMatrices(3, 9, 2.0).run(tokens[:, :4])
    np.testing.assert_allclose(short.logits, whole.logits[:, :5], rtol=1e-13)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_states": 1}, "n_states must be an integer of at least 2, not 1"),
        ({"length": 0}, "length must be an integer of at least 1, not 0"),
        ({"beta": 0.0}, "beta must be a finite number above 0, not 0.0"),
        ({"beta": math.inf}, "beta must be a finite number above 0, not inf"),
        ({"gamma": -1.0}, "gamma must be a finite number above 0, not -1.0"),
    ],
)
def test_parameters_are_checked(changed: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        InductionMatrices(**{"n_states": 3, "length": 5, "beta": 1.0, **changed})


def test_tokens_are_checked() -> None:
    matrices = InductionMatrices(3, 4, beta=1.0)
    with pytest.raises(InputError, match="these matrices are made for up to 4 tokens, not 5"):
        matrices.run(ABACA)
    with pytest.raises(InputError, match=r"token 3 at sequence 0, position 1 is outside \[0, 3\)"):
        matrices.run([[0, 3]])
