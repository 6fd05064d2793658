"""training.csv: how the trained models came to be, from the metrics that lie beside their weights."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator
from icl_estimators.estimators.capabilities import weights_of

__all__ = ["training_table"]

_QUANTITIES = ("loss_nats", "regret_nats", "learning_rate")


def training_table(estimators: Iterable[Estimator]) -> Table | None:
    """Return training.csv: the metrics file NAME.csv beside each checkpoint NAME.safetensors; None if there is none.

    A file that is no metrics file of ours is left alone. A model that was changed after its training has no curve.
    """
    rows: list[tuple[Cell, ...]] = []
    for estimator in estimators:
        path = weights_of(estimator)
        metrics = None if path is None else path.with_suffix(".csv")
        if metrics is None or not metrics.is_file() or _is_changed(estimator):
            continue
        try:
            with open(metrics, encoding="utf-8", newline="") as file:
                measured = list(csv.DictReader(file))
            found = [
                (estimator.name, int(row["step"]), quantity, float(row[quantity]))
                for row in measured
                for quantity in _QUANTITIES
                if row.get(quantity)
            ]
        except (OSError, ValueError, KeyError, TypeError, csv.Error):
            continue
        rows += [row for row in found if not math.isnan(row[3])]
    return Table.of("training", rows) if rows else None


def _is_changed(estimator: Estimator) -> bool:
    from icl_estimators.estimators.intervened import Intervened  # loads torch, which a model with weights has done

    return isinstance(estimator, Intervened)
