from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators import get
from icl_estimators.experiments.circuit import MATRICES, circuit_table
from icl_estimators.experiments.study import Study
from icl_estimators.resources import shipped_checkpoint

trained = pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no trained model ships for three states")


def study(*names: str) -> Study:
    return Study((*map(get, names), get("add-one")))


def test_without_a_folded_model_there_is_no_table() -> None:
    assert circuit_table(study("construction", "bigram")) == (None, {})


@trained
def test_the_model_and_the_nearest_construction_stand_side_by_side() -> None:
    design = study("transformer")
    table, scales = circuit_table(design)
    assert table is not None
    frame = table.frame()
    assert frame.estimator.drop_duplicates().tolist() == ["transformer", "construction nearest transformer"]
    folded = design.estimators[0].folded.centred()  # type: ignore[attr-defined]
    for name in MATRICES:
        values = np.atleast_2d(getattr(folded, name).double().numpy())
        rows = frame[(frame.estimator == "transformer") & (frame.matrix == name)]
        np.testing.assert_array_equal(rows.value, values.ravel())
        assert (rows.row.max() + 1, rows.column.max() + 1) == values.shape
    assert list(scales) == ["transformer"]
    assert scales["transformer"]["beta"] > 1
    assert scales["transformer"]["gamma"] > 1


@trained
def test_the_scales_are_those_of_least_squares() -> None:
    from icl_estimators.transformer import construction_folded

    design = study("transformer")
    _, scales = circuit_table(design)
    theirs = design.estimators[0].folded.centred()  # type: ignore[attr-defined]
    ours = construction_folded(3, len(theirs.r1), beta=1.0, gamma=1.0).centred()
    for scale, name, rows, columns in (
        ("beta", "G", slice(0, 3), slice(3, 6)),
        ("gamma", "induction", slice(3), slice(3)),
    ):
        x = getattr(ours, name)[rows, columns].double().numpy().ravel()
        y = getattr(theirs, name)[rows, columns].double().numpy().ravel()
        slope = np.linalg.lstsq(x[:, None], y, rcond=None)[0][0]
        assert scales["transformer"][scale] == pytest.approx(slope, rel=1e-9)
    slope = np.linalg.lstsq(ours.r1.double().numpy()[:, None], theirs.r1.double().numpy(), rcond=None)[0][0]
    assert scales["transformer"]["beta_r1"] == pytest.approx(slope, rel=1e-9)
    assert scales["transformer"]["beta_r1"] == pytest.approx(6.83, abs=0.01)  # and that of G is 3.24
    assert scales["transformer"]["beta"] == pytest.approx(3.24, abs=0.01)
    table, _ = circuit_table(design)
    assert table is not None
    frame = table.frame()
    r1 = frame[(frame.estimator == "construction nearest transformer") & (frame.matrix == "r1")].value.to_numpy()
    assert r1[1] == scales["transformer"]["beta_r1"]
    assert not r1[np.arange(len(r1)) != 1].any()


@trained
def test_a_construction_is_nearest_to_itself() -> None:
    from icl_estimators.transformer import construction_folded

    class Folded:
        name = "folded"
        n_states = 3
        folded = construction_folded(3, 20, beta=4.0, gamma=1.5)

        def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
            return np.full((*tokens.shape, 3), 1 / 3)

    table, scales = circuit_table(Study((Folded(), get("add-one"))))
    assert scales["folded"] == pytest.approx({"beta": 4.0, "beta_r1": 4.0, "gamma": 1.5})
    assert table is not None
    frame = table.frame()
    left, right = (frame[frame.estimator == name].value for name in frame.estimator.unique())
    np.testing.assert_allclose(left.to_numpy(), right.to_numpy(), atol=1e-6)
