"""The folded matrices of a trained model beside the explicit construction's, in the same basis → circuit.csv."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators.capabilities import folded_of
from icl_estimators.experiments.study import Study

if TYPE_CHECKING:
    from icl_estimators.transformer import Folded

__all__ = ["MATRICES", "circuit_table"]

MATRICES = ("S1", "r1", "G", "r2", "direct", "induction")


def circuit_table(study: Study) -> tuple[Table | None, dict[str, Any]]:
    """Return circuit.csv and the scales of the construction that is nearest to each model.

    Matrices are centred, which changes no prediction, so that only what is identified is compared. The construction's β
    and γ are fitted by least squares to the model's matching block of G and of the induction path; r1 has a β of its
    own at distance 1, ``beta_r1``, fitted to the model's r1 the same way. Rows and columns of
    2K entries are the token block, then the scratch block.
    """
    rows: list[tuple[Cell, ...]] = []
    scales: dict[str, Any] = {}
    for estimator in study.estimators:
        folded = folded_of(estimator)
        if folded is None:
            continue
        trained = folded.centred()
        nearest, fitted = _nearest_construction(trained)
        scales[estimator.name] = fitted
        rows += _rows(estimator.name, trained)
        rows += _rows(f"construction nearest {estimator.name}", nearest)
    return (Table.of("circuit", rows) if rows else None), scales


def _nearest_construction(trained: Folded) -> tuple[Folded, dict[str, float]]:
    from icl_estimators.transformer import construction_folded

    k, length = trained.n_states, len(trained.r1)
    unit = construction_folded(k, length, beta=1.0, gamma=1.0).centred()

    def scale(name: str, rows: slice, columns: slice) -> float:
        theirs = getattr(trained, name)[rows, columns].double()
        ours = getattr(unit, name)[rows, columns].double()
        return float((theirs * ours).sum() / (ours * ours).sum())

    beta = scale("G", slice(0, k), slice(k, 2 * k))
    gamma = scale("induction", slice(0, k), slice(0, k))
    # A median of 0 for both leaves the construction's r1 with one entry, at distance 1; with one token there is none.
    beta_r1 = float(trained.r1[1]) if length > 1 else math.nan
    nearest = construction_folded(k, length, beta=beta, gamma=gamma).centred()
    nearest = dataclasses.replace(nearest, r1=unit.r1 * (beta_r1 if length > 1 else 0.0))
    return nearest, {"beta": beta, "beta_r1": beta_r1, "gamma": gamma}


def _rows(name: str, folded: Folded) -> Iterator[tuple[Cell, ...]]:
    for matrix in MATRICES:
        values = getattr(folded, matrix).double()
        if values.ndim == 1:
            values = values[None]
        for i, row in enumerate(values.tolist()):
            for j, value in enumerate(row):
                yield name, matrix, i, j, value
