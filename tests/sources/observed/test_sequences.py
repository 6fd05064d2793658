from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.divergences import log_loss
from icl_estimators.estimators import get
from icl_estimators.sources import ObservedSequences, elnino
from icl_estimators.sources.observed.sequences import DATASETS, dataset
from icl_estimators.validation import InputError


def test_el_nino_is_the_known_series() -> None:
    months = elnino()
    (states,) = months.sequences
    assert states.shape == (732,)
    counts = np.zeros((3, 3), dtype=int)
    np.add.at(counts, (states[:-1], states[1:]), 1)
    assert counts.tolist() == [[199, 56, 0], [56, 187, 35], [0, 35, 163]]
    assert (months.n_states, months.n_predictions) == (3, 731)
    assert months.labels == ("La Niña", "neutral", "El Niño")


@pytest.mark.parametrize(("constant", "loss"), [(0.1, 0.65776), (0.5, 0.65685), (1, 0.66077), (2, 0.66946)])
def test_el_nino_is_predicted_as_well_as_is_known(constant: float, loss: float) -> None:
    tokens = elnino().sequences[0][None]
    predictions = get(f"add-constant:{constant}").predict_proba(tokens)
    assert log_loss(predictions[:, :-1], tokens[:, 1:]).mean() == pytest.approx(loss, abs=5e-6)


def test_datasets_go_by_name() -> None:
    assert set(DATASETS) == {"elnino"}
    assert dataset("elnino").name == "elnino"
    with pytest.raises(InputError, match="unknown dataset 'lanina': choose from elnino"):
        dataset("lanina")


def test_what_was_read_is_said_in_one_line() -> None:
    lines = ObservedSequences("x.txt", ("a", "b"), (np.array([0, 1]), np.array([1]), np.array([0] * 1200)), "by commas")
    assert lines.described() == (
        "read x.txt: 2 states (a, b), 3 sequences of 1 to 1,200 tokens, 1,200 predictions (1 of one token has nothing "
        "to predict); by commas"
    )
    assert lines.record == {
        "name": "x.txt",
        "about": "",
        "form": "by commas",
        "n_states": 2,
        "labels": ["a", "b"],
        "n_sequences": 3,
        "shortest": 1,
        "longest": 1200,
        "n_predictions": 1200,
        "n_units": 3,
        "missing": 0,
    }


def test_pieces_and_missing_values_are_said() -> None:
    pieces = tuple(np.zeros(length, dtype=np.int64) for length in (3, 1, 2, 1))
    gaps = ObservedSequences("x.txt", ("a", "b"), pieces, groups=(0, 0, 0, 1), missing=1000)
    assert gaps.described() == (
        "read x.txt: 2 states (a, b), 2 sequences, divided by 1,000 missing values into 4 pieces of 1 to 3 tokens, "
        "3 predictions (2 of one token have nothing to predict)"
    )
    assert (gaps.record["n_units"], gaps.record["n_sequences"], gaps.record["missing"]) == (2, 4, 1000)
    assert gaps.units.tolist() == [0, 0, 0, 1]


def test_a_dozen_names_are_said_and_all_kept() -> None:
    names = tuple(f"s{k}" for k in range(13))
    many = ObservedSequences("x.txt", names, (np.arange(13),))
    assert many.described() == (
        f"read x.txt: 13 states ({', '.join(names[:12])}, …), 1 sequence of 13 tokens, 12 predictions"
    )
    assert many.record["labels"] == list(names)
    dozen = ObservedSequences("x.txt", names[:12], (np.arange(12),))
    assert f"12 states ({', '.join(names[:12])})," in dozen.described()


def test_one_state_is_said_to_count_as_two() -> None:
    assert "1 state (A), taken for one of 2," in ObservedSequences("x.txt", ("A",), (np.zeros(3, int),)).described()
