"""One value for each chain, kept on request: chains.csv, whose means are the `mean` rows of risk.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.metrics import METRICS
from icl_estimators.validation import InputError

__all__ = ["KeptChains", "chains_table"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KeptChains:
    """The values of consecutive chains.

    Attributes
    ----------
    series : tuple of (estimator, metric)
        The columns of each part.
    parts : tuple of ndarray of float64, each of shape (chains, series)
        In chain order. They are joined once, at the end, so that merging blocks copies nothing.
    """

    series: tuple[tuple[str, str], ...]
    parts: tuple[Array, ...]

    @classmethod
    def of(cls, values: Mapping[str, Mapping[str, Array]], unit: slice) -> KeptChains:
        """Keep the mean over context lengths, the last coordinate of values by estimator and metric, of some chains."""
        series = tuple((name, metric) for name, of_name in values.items() for metric in of_name)
        return cls(series, (np.stack([values[name][metric][unit, -1] for name, metric in series], axis=1),))

    def merge(self, other: KeptChains) -> KeptChains:
        """Return the values of both groups of chains; `other`'s come after.

        Raises
        ------
        InputError
            If they are values of different things.
        """
        if self.series != other.series:
            raise InputError("values of different estimators or metrics cannot be merged")
        return KeptChains(self.series, self.parts + other.parts)


def chains_table(names: Sequence[str], kept: KeptChains) -> Table:
    """Return chains.csv: by estimator, metric and chain, the mean over context lengths.

    Parameters
    ----------
    names : sequence of str
        The estimators, in the order of the table.
    kept : KeptChains
    """
    values = np.concatenate(kept.parts)
    place = {key: column for column, key in enumerate(kept.series)}

    def rows() -> Iterator[tuple[Cell, ...]]:
        for name in names:
            for metric in METRICS:
                if (name, metric) in place:
                    for chain, value in enumerate(values[:, place[name, metric]].tolist()):
                        yield name, chain, metric, "mean", value

    return Table.of("chains", rows())
