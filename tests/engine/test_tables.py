from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icl_estimators.api import Comparison
from icl_estimators.engine.tables import Table
from icl_estimators.schemas import SCHEMAS, Type

CONTRACT = {
    "risk": "estimator, context_length, metric, estimate, se, ci_low, ci_high, band_low, band_high, n_chains, "
    "n_sequences, note",
    "decomposition": "estimator, context_length, metric, estimate, se, ci_low, ci_high, band_low, band_high, n_chains, "
    "n_sequences, note",
    "signed_bias": "estimator, context_length, bin_low, bin_high, estimate, se, ci_low, ci_high, n_chains, note",
    "differences": "estimator, reference, context_length, metric, difference, se, ci_low, ci_high, correlation, "
    "variance_reduction, rao_blackwell_factor, note",
    "pairs": "estimator, other, metric, difference, se, ci_low, ci_high, p_simultaneous, tied, note",
    "budget": "estimator, context_length, part, estimate, se, ci_low, ci_high, method, note",
    "regret_by_visits": "estimator, visits, visits_high, estimate, se, ci_low, ci_high, share_of_prefixes, "
    "share_of_regret, n_chains, note",
    "regret_by_entropy": "estimator, entropy_low, entropy_high, entropy_mean, estimate, se, ci_low, ci_high, n_chains, "
    "note",
    "likeness": "estimator, other, context_length, measure, estimate, se, ci_low, ci_high, note",
    "nearest": "estimator, measure, context_length, rule, estimate, next_rule, difference, se, ci_low, ci_high, "
    "decided, note",
    "mechanism": "estimator, attention, read_out, unmatched, gamma, bonus, estimate, se, ci_low, ci_high, note",
    "mechanism_shares": "estimator, read_out, unmatched, part, replaced, estimate, se, ci_low, ci_high, note",
    "strategies": "estimator, context_length, strategy, estimate, se, ci_low, ci_high, boundary, explained, note",
    "smoothing": "estimator, by, value, family, parameter, estimate, se, ci_low, ci_high, residual_kl_nats, "
    "residual_kl_heldout_nats, explained, identified, boundary, note",
    "pseudo_count_map": "estimator, context_length, visits, estimate, ci_low, ci_high, n_prefixes, boundary, note",
    "simplex": "estimator, visits, current_token, counts, token, estimate, n_prefixes",
    "training": "estimator, step, quantity, value",
    "chains": "estimator, chain, metric, context_length, estimate",
    "exact": "estimator, context_length, metric, estimate",
    "interventions": "intervention, visits, quantity, estimate, difference, se, ci_low, ci_high, note",
    "attention": "estimator, context_length, quantity, estimate, se, ci_low, ci_high, note",
    "attention_example": "estimator, layer, query, key, query_token, key_token, weight",
    "circuit": "estimator, matrix, row, column, value",
    "checks": "check, estimator, context_length, estimate, se, z, note",
    "series": "sequence, id, position, state",
    "cumulative": "estimator, reference, prediction, difference",
    "transitions": "source, target, count, visits, estimate, ci_low, ci_high, note",
    "concentration": "history, order, criterion, estimate, ci_low, ci_high, log_loss_nats, note",
    "concentration_profile": "history, order, concentration, log_likelihood_ratio",
    "orders": "history, order, concentration, fitted, log_marginal_likelihood, log_bayes_factor, "
    "posterior_probability, log_loss_nats, difference, se, ci_low, ci_high, note",
    "likelihood_ratio": "test, statistic, degrees_of_freedom, p_value, n_transitions, small_expected, note",
}


def test_columns_are_what_people_script_against() -> None:
    assert {name: ", ".join(schema.names) for name, schema in SCHEMAS.items()} == CONTRACT


def test_a_row_must_fill_its_columns() -> None:
    with pytest.raises(ValueError, match="circuit: a row of 2 cells for 5 columns"):
        Table.of("circuit", [("a", "b")])


def written(tmp_path: Path, *rows: tuple[object, ...]) -> list[list[str]]:
    Table(("a", "b"), rows).write(tmp_path / "table.csv")  # type: ignore[arg-type]
    text = (tmp_path / "table.csv").read_bytes().decode("utf-8")
    assert "\r" not in text
    assert text.endswith("\n")
    return list(csv.reader(text.splitlines()))[1:]


@pytest.mark.parametrize(
    ("cell", "spelled"),
    [
        (math.nan, ""),
        (None, ""),
        (np.float64("nan"), ""),
        (math.inf, "inf"),
        (-0.0, "0.0"),
        (np.float64(-0.0), "0.0"),
        (0.1, "0.1"),
        (np.float64(1 / 3), "0.3333333333333333"),
        (1e-300, "1e-300"),
        (5e-324, "5e-324"),
        (True, "True"),
        (False, "False"),
        (7, "7"),
        (np.int64(7), "7"),
        ("mean", "mean"),
        ('π, "quoted"', 'π, "quoted"'),
        ("", ""),
    ],
)
def test_cells_are_spelled_in_full_and_undefined_ones_are_empty(cell: object, spelled: str, tmp_path: Path) -> None:
    assert written(tmp_path, ("x", cell)) == [["x", spelled]]


def test_every_number_survives_the_file(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-300, 200, 0.5)
    rows = written(tmp_path, *((index, value) for index, value in enumerate(values.tolist())))
    assert [float(row[1]) for row in rows] == values.tolist()


def test_a_file_is_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("what was there\n")
    with pytest.raises(UnicodeEncodeError):
        Table(("a", "b"), (("x", "\ud800"),)).write(path)
    assert path.read_text() == "what was there\n"
    assert list(tmp_path.iterdir()) == [path]


def test_the_folder_of_a_study_reads_back_as_its_frames(small: Comparison, tmp_path: Path) -> None:
    for path in small.save(tmp_path):
        if path.suffix != ".csv":
            continue
        frame, read = getattr(small, path.stem), pd.read_csv(path, keep_default_na=False, na_values={"": []})
        assert list(read.columns) == list(SCHEMAS[path.stem].names)
        text = path.read_text(encoding="utf-8")
        assert "nan" not in text.lower().replace("nan,", "").split("\n")[0]
        for column in frame.columns:
            if frame[column].dtype.kind in "fi":
                again = pd.to_numeric(read[column])
                np.testing.assert_array_equal(again.to_numpy(dtype=float), frame[column].to_numpy(dtype=float))
            else:
                shown = ["" if cell is None else str(cell) for cell in frame[column]]
                assert read[column].astype(str).tolist() == shown
        with path.open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not {"nan", "NaN", "-0.0", "-inf", "np.float64(0.0)"} & set(cells)


def fits(cell: object, kind: Type) -> bool:
    if kind is Type.CONTEXT_LENGTH:
        return cell == "mean" or (isinstance(cell, int) and cell >= 1)
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return True
    accepted = {Type.TEXT: str, Type.NUMBER: (float, int), Type.INTEGER: int, Type.BOOLEAN: bool}[kind]
    return isinstance(cell, accepted) and isinstance(cell, bool) == (kind is Type.BOOLEAN)


def test_every_cell_is_of_the_type_of_its_column(small: Comparison) -> None:
    for name, table in small.tables.items():
        for row in table.rows:
            for column, cell in zip(SCHEMAS[name].columns, row, strict=True):
                assert fits(cell, column.type), (name, column.name, cell)


def test_a_frame_has_numbers_where_there_are_numbers(small: Comparison) -> None:
    frame = small.risk
    assert frame.estimate.dtype == np.float64
    assert frame.n_chains.dtype == np.int64
    assert frame[frame.context_length == 1].shape == frame[frame.context_length == "mean"].shape
