from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.inference import Cells, merge_in_order, ratio_intervals, signed_bias_moments
from icl_estimators.inference.signed_bias import BIN_EDGES
from icl_estimators.notes import Code, Note
from icl_estimators.validation import InputError


@pytest.mark.parametrize("n_sequences", [1, 5])
def test_ratios_are_those_of_a_loop(nested, n_sequences):
    design = nested(30, n_sequences, 6)
    result = ratio_intervals(signed_bias_moments(design.cells, design.add_one), empty=Note(Code.EMPTY_BIN))
    estimate, se = result.estimate.reshape(7, 10), result.se.reshape(7, 10)
    for n in (0, 4, 6):
        lengths = slice(None) if n == 6 else slice(n, n + 1)
        truth = design.truth[:, :, lengths].reshape(30, -1)
        error = design.add_one[:, :, lengths].reshape(30, -1) - truth
        for b in range(10):
            inside = (truth >= b / 10) & ((truth < (b + 1) / 10) | (b == 9))
            if not inside.any():
                assert np.isnan(estimate[n, b])
                continue
            expected = error[inside].mean()
            assert estimate[n, b] == pytest.approx(expected, rel=1e-9)
            residual = (np.where(inside, error - expected, 0.0)).sum(axis=1)
            c = int(inside.any(axis=1).sum())
            if c == 1:
                assert np.isnan(se[n, b])
            else:
                by_hand = np.sqrt(c / (c - 1) * (residual**2).sum()) / inside.sum()
                assert se[n, b] == pytest.approx(by_hand, rel=1e-6)


def test_add_one_shrinks_towards_the_middle(nested):
    design = nested(300, 4, 10)
    parts = [
        signed_bias_moments(
            Cells.of(design.tokens[i : i + 50], design.sample.transition[i : i + 50], np.full((50, 10, 3), 1 / 3)),
            design.add_one[i : i + 50],
        )
        for i in range(0, 300, 50)
    ]
    result = ratio_intervals(merge_in_order(parts))
    curve = result.estimate.reshape(11, 10)[-1]
    assert curve[0] > 0 > curve[-1]
    assert (np.diff(curve) < 0).all()
    whole = ratio_intervals(signed_bias_moments(design.cells, design.add_one))
    np.testing.assert_allclose(result.estimate, whole.estimate, rtol=1e-9)


def test_edges_belong_to_the_bin_above_and_one_to_the_last():
    transition = np.array([[[0.0, 1.0], [0.3, 0.7]]])
    cells = Cells.of(np.array([[[0], [1]]]), transition, np.array([[[0.5, 0.5]]]))
    moments = signed_bias_moments(cells, np.full((1, 2, 1, 2), 0.5))
    assert np.flatnonzero(moments.contributing[:10]).tolist() == [0, 3, 7, 9]
    notes = ratio_intervals(moments, empty=Note(Code.EMPTY_BIN)).notes
    assert notes[1] == "no true probability falls into this bin"
    assert notes[0] == "only 1 chain contributes"
    assert BIN_EDGES[3] == 0.3


def test_bad_input_is_named(nested):
    design = nested(2, 2, 3)
    with pytest.raises(InputError, match="predictions must have shape"):
        signed_bias_moments(design.cells, design.add_one[:, :1])
