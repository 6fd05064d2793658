from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from icl_estimators.chains import elnino, read_sequences
from icl_estimators.chains.observed import DATASETS, dataset
from icl_estimators.divergences import log_loss
from icl_estimators.estimators import get
from icl_estimators.validation import InputError


def written(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "weather.txt"
    path.write_bytes(text.encode(encoding))
    return path


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


@pytest.mark.parametrize(
    ("text", "labels", "sequences"),
    [
        ("ABA\nCA\n", ("A", "B", "C"), [[0, 1, 0], [2, 0]]),
        ("sun, rain,sun\n\n   \nrain,sun", ("rain", "sun"), [[1, 0, 1], [0, 1]]),
        ("sun rain\tsun", ("rain", "sun"), [[1, 0, 1]]),
        ("La Niña, El Niño,La Niña", ("El Niño", "La Niña"), [[1, 0, 1]]),
        ("10 9 -1 2.5", ("-1", "2.5", "9", "10"), [[3, 2, 0, 1]]),
        ("10 9 a 1", ("1", "10", "9", "a"), [[1, 2, 3, 0]]),
        ("2 nan 10", ("10", "2", "nan"), [[1, 2, 0]]),
        ("inf 1 -inf", ("-inf", "1", "inf"), [[2, 1, 0]]),
        ("AAA\r\nA\r\n", ("A",), [[0, 0, 0], [0]]),
        ("\ufeffAB", ("A", "B"), [[0, 1]]),
        ("日本日", ("日", "本"), [[0, 1, 0]]),
    ],
)
def test_files_hold_one_sequence_a_line(tmp_path: Path, text: str, labels: tuple[str, ...], sequences: list) -> None:
    read = read_sequences(written(tmp_path, text))
    assert (read.name, read.labels) == ("weather.txt", labels)
    assert [sequence.tolist() for sequence in read.sequences] == sequences
    assert read.n_predictions == sum(len(sequence) - 1 for sequence in sequences)
    assert read.n_states == max(2, len(labels))


@pytest.mark.parametrize(
    ("text", "encoding", "message"),
    [
        ("", "utf-8", "has no sequence of two or more tokens, so there is nothing to predict"),
        ("A\nB\n", "utf-8", "has no sequence of two or more tokens"),
        ("AB\nA,,B\n", "utf-8", r"weather\.txt, line 2: an empty label: put one label between commas"),
        ("A,B,\n", "utf-8", r"weather\.txt, line 1: an empty label"),
        ("Niño", "latin-1", "is not UTF-8 text: save it as UTF-8, one sequence a line"),
        ("AB", "utf-16", "is not UTF-8 text"),
    ],
)
def test_files_that_cannot_be_read_say_why(tmp_path: Path, text: str, encoding: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_sequences(written(tmp_path, text, encoding))


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.txt"
    with pytest.raises(InputError, match=re.escape(f"no such file: {missing}")):
        read_sequences(missing)
    with pytest.raises(InputError, match=re.escape(f"cannot read {tmp_path}: Is a directory")):
        read_sequences(str(tmp_path))
