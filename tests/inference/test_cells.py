from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.inference import Cells, CellTally, bias_variance, signed_bias_moments, training_variance
from icl_estimators.inference.trees import from_arrays, to_arrays
from icl_estimators.sources import visit_probabilities
from icl_estimators.validation import InputError


@pytest.mark.parametrize("n_sequences", [2, 3, 8])
def test_weights_have_the_visit_probability_as_mean(n_sequences):
    transition, start = np.array([[[0.95, 0.05], [0.4, 0.6]]]), np.array([[0.9, 0.1]])
    law = visit_probabilities(transition, start, 3)[0]
    rng = np.random.default_rng(1)
    n_chains = 40_000
    uniforms = rng.random((n_chains, n_sequences, 3))
    tokens = np.zeros(uniforms.shape, dtype=np.int64)
    tokens[..., 0] = uniforms[..., 0] > start[0, 0]
    for n in (1, 2):
        tokens[..., n] = uniforms[..., n] > transition[0, tokens[..., n - 1], 0]
    weight = Cells.of(tokens, np.repeat(transition, n_chains, axis=0), np.repeat(law[None], n_chains, axis=0)).weight
    z = (weight.mean(axis=0) - law) / (weight.std(axis=0) / np.sqrt(n_chains))
    assert np.abs(z).max() < 4


def test_sums_and_means_go_by_cell(nested):
    design = nested(3, 5, 6)
    values = np.random.default_rng(2).normal(size=design.tokens.shape)
    sums, means = design.cells.sums(values.ravel()), design.cells.means(values.ravel())
    spread = design.cells.spread(means).reshape(values.shape)
    for r in range(3):
        for n in range(6):
            for v in range(3):
                members = design.tokens[r, :, n] == v
                assert design.cells.size[r, n, v] == members.sum()
                assert sums[r, n, v] == pytest.approx(values[r, members, n].sum())
                if members.any():
                    assert means[r, n, v] == pytest.approx(values[r, members, n].mean())
                    np.testing.assert_array_equal(spread[r, members, n], means[r, n, v])
    assert design.cells.split_weight.max() == 1.0
    np.testing.assert_allclose(
        design.cells.split_weight, (design.cells.size * (design.cells.size >= 2)).sum(axis=2) / 5
    )


def test_a_state_that_is_certain_weighs_one():
    visits = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    cells = Cells.of(np.zeros((1, 4, 2), dtype=np.int64), np.eye(2)[None], visits)
    np.testing.assert_array_equal(cells.weight[0], [[1.0, 0.0], [1.0, 0.0]])


def test_predictions_are_not_written_to():
    cells = Cells.of(np.zeros((1, 1, 1), dtype=np.int64), np.eye(2)[None], np.array([[[1.0, 0.0]]]))
    predictions = np.array([[[[0.5, 0.5]]]])
    cells.by_state(predictions)[:] = 7.0
    assert predictions.tolist() == [[[[0.5, 0.5]]]]


def test_tally_counts_cells_and_merges():
    tokens = np.array([[[0, 0], [0, 1], [1, 1]], [[0, 1], [0, 0], [0, 0]]])
    cells = Cells.of(tokens, np.full((2, 2, 2), 0.5), np.full((2, 2, 2), 0.5))
    zero = np.zeros((2, 2, 2), dtype=bool)
    zero[1, 1, 0] = zero[0, 0, 1] = True  # the second cell has one sequence: not used
    tally = CellTally.of(cells, zero)
    assert tally.used.tolist() == [2, 2, 4]
    assert tally.with_zero.tolist() == [0, 1, 1]
    assert tally.smallest.tolist() == [2, 2, 2]
    assert tally.notes()[:2] == ("smallest cell: 2 sequences", "a predicted probability is 0 in 1 of 2 cells")
    alone = CellTally.of(Cells.of(tokens[:, :1], cells.transition, np.full((2, 2, 2), 0.5)), zero)
    assert alone.smallest.tolist() == [0, 0, 0]
    assert alone.notes()[0] == "no cell has two sequences"
    for merged in (tally.merge(alone), alone.merge(tally)):
        assert merged.smallest.tolist() == [2, 2, 2]
        assert merged.used.tolist() == [2, 2, 4]
    back = from_arrays(CellTally, to_arrays(tally))
    assert back.with_zero.tolist() == tally.with_zero.tolist()


def test_bad_input_is_named():
    tokens, visits = np.zeros((2, 3, 4), dtype=np.int64), np.full((2, 4, 2), 0.5)
    with pytest.raises(InputError, match="do not fit together"):
        Cells.of(tokens, np.full((1, 2, 2), 0.5), visits)
    with pytest.raises(InputError, match="do not fit together"):
        Cells.of(tokens, np.full((2, 2, 2), 0.5), visits[:1])
    with pytest.raises(InputError, match="chain 0 is in state 0 at context length 2, which has probability 0"):
        Cells.of(tokens, np.full((2, 2, 2), 0.5), np.where([[False], [True], [False], [False]], [0.0, 1.0], visits))
    cells = Cells.of(tokens, np.full((2, 2, 2), 0.5), visits)
    with pytest.raises(InputError, match=r"predictions must have shape \(2, 3, 4, 2\)"):
        cells.by_state(np.zeros((2, 3, 4, 3)))
    tally = CellTally.of(cells, np.zeros((2, 4, 2), dtype=bool))
    with pytest.raises(InputError, match="cannot be merged"):
        tally.merge(CellTally(np.zeros(2), np.zeros(2), np.zeros(2)))


def test_states_may_be_other_than_tokens():
    # Three states over two tokens: the truth of a cell is the row of its state.
    states = np.array([[[0, 2], [0, 2]]])
    rows = np.array([[[0.5, 0.5], [0.1, 0.9], [0.8, 0.2]]])
    cells = Cells.of(states, rows, np.array([[[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]]))
    assert cells.size.tolist() == [[[2, 0, 0], [0, 0, 2]]]
    predictions = np.full((1, 2, 2, 2), 0.5)
    assert bias_variance(cells, predictions).mse[0].tolist() == pytest.approx([0.0, 2 * 0.3**2 * 1 / 0.5])
    assert signed_bias_moments(cells, predictions).contributing.reshape(3, 10)[1].nonzero()[0].tolist() == [2, 8]
    split = training_variance(cells, [predictions, predictions])
    assert split.mse[0].tolist() == pytest.approx([0.0, 2 * 0.3**2 * 1 / 0.5])
