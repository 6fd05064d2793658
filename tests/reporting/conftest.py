"""What the tests of reports share: the folder of one small study, with fitted pseudo-counts, and its results."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icl_estimators.api import compare
from icl_estimators.engine.executors import one_thread
from icl_estimators.reporting.provenance import provenance
from icl_estimators.reporting.results import Results, read_results
from icl_estimators.schemas import SCHEMAS

RULES = ("transformer", "construction", "construction-softmax", "bigram", "add-one", "uniform")
VISITS = (1, 2, 5, 10, 20)


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small study, made once; it is never written to again."""
    folder = tmp_path_factory.mktemp("study")
    with one_thread():
        study = compare(
            RULES,
            chains=120,
            sequences_per_chain=2,
            decomposition_chains=60,
            decomposition_sequences=4,
            length=24,
            seed=3,
        )
    study.run.update(provenance("icl_estimators.evaluate", ["--seed", "3"]))
    study.run["few_chains"] = {}  # of the pseudo-counts that are written below
    study.save(folder)
    write_smoothing(folder / "smoothing.csv")
    record = folder / "run.json"
    run = json.loads(record.read_text(encoding="utf-8"))
    del run["rows"]["smoothing"]  # another table is there now
    record.write_text(json.dumps(run), encoding="utf-8")
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """Return a copy of the study's folder."""
    return Path(shutil.copytree(pristine, tmp_path / "study"))


@pytest.fixture(scope="session")
def results(pristine: Path) -> Results:
    return read_results(pristine)


@pytest.fixture
def changed(results: Results) -> Callable[..., Results]:
    """Return the results with cells of a table replaced where columns have given values."""

    def change(table: str, where: dict[str, Any], **cells: object) -> Results:
        frame = results.tables[table].copy()
        keep = pd.Series(True, index=frame.index)
        for column, value in where.items():
            keep &= frame[column] == value
        assert keep.any()
        for column, value in cells.items():
            frame.loc[keep, column] = value
        return replace(results, tables={**results.tables, table: frame})

    return change


def write_smoothing(path: Path) -> None:
    """Write pseudo-counts as issue 6 will: rising with visits for the transformer, 1 for add-one, 0 for the bigram."""
    fits = {
        "transformer": [(0.3 * visits**0.75, 0.9, 1.1, "True", "False") for visits in VISITS],
        "add-one": [(1.0, 1.0, 1.0, "True", "False")] * len(VISITS),
        "bigram": [(0.0, 0.0, 1e-4, "True", "True")] * len(VISITS),
    }
    rows: list[list[object]] = []
    for name, values in fits.items():
        for visits, (value, low, high, identified, boundary) in zip(VISITS, values, strict=True):
            ends = (0.0, high) if value == 0 else (low * value, high * value)
            rest = (0.002, "", 0.99, identified, boundary, "")
            rows.append([name, "visits", visits, "add-constant", "pseudo_count", value, 0.01, *ends, *rest])
        rows.append(
            [name, "overall", "", "add-constant", "pseudo_count", 0.8, 0.01, 0.7, 0.9, 0.003, "", 0.98, True, False, ""]
        )
    rows += [
        ["transformer", "overall", "", "linear", "a", 0.2, 0.01, 0.1, 0.3, 0.001, 0.0011, 0.995, True, False, ""],
        ["transformer", "overall", "", "linear", "b", 0.1, 0.01, 0.0, 0.2, 0.001, 0.0011, 0.995, True, False, ""],
    ]
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([SCHEMAS["smoothing"].names, *rows])
