"""How often a simultaneous band covers: the measurement for the design nearest to that of a study.

The band is exact for normal means. Losses are skewed at long contexts, and a hundred skewed means together need many
chains. ``analysis/band_coverage.py`` measures (K = 3, α = 1, uniform start) and writes ``band_coverage.csv``.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from icl_estimators.notes import Code, Note
from icl_estimators.validation import positive_int

__all__ = ["MeasuredCoverage", "band_note", "measured_coverage"]

_TABLE = Path(__file__).with_name("band_coverage.csv")


@dataclass(frozen=True, slots=True)
class MeasuredCoverage:
    """Coverage of 95 % bands in one design.

    Attributes
    ----------
    metric : str
    length, sequences_per_chain, chains : int
        Context lengths that the band runs over, and the study's size.
    shares : dict of str to float
        Share of studies whose band contained the truth at all lengths, by estimator.
    studies : int
        Behind each share.
    """

    metric: str
    length: int
    sequences_per_chain: int
    chains: int
    shares: dict[str, float]
    studies: int


@cache
def _measured() -> dict[str, tuple[MeasuredCoverage, ...]]:
    """Return the table, by metric."""
    found: dict[tuple[str, int, int, int], MeasuredCoverage] = {}
    with open(_TABLE, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = (row["metric"], int(row["length"]), int(row["sequences_per_chain"]), int(row["chains"]))
            design = found.setdefault(key, MeasuredCoverage(*key, {}, int(row["studies"])))
            design.shares[row["estimator"]] = float(row["coverage"])
    by_metric: dict[str, tuple[MeasuredCoverage, ...]] = {}
    for design in found.values():
        by_metric[design.metric] = (*by_metric.get(design.metric, ()), design)
    return by_metric


def measured_coverage(
    metric: str, *, length: int, chains: int, sequences_per_chain: int = 1
) -> MeasuredCoverage | None:
    """Return what was measured for the nearest design; None for a metric that was not measured.

    Nearest is by the sum of squares of the logarithms of the three ratios.

    Raises
    ------
    InputError
        If a number is not an integer of at least 1.

    Examples
    --------
    >>> found = measured_coverage("kl_nats", length=90, chains=230)
    >>> found.length, found.chains, 0.7 < found.shares["add-one"] < 0.9
    (100, 200, True)
    """
    asked = (
        positive_int(length, "length"),
        positive_int(sequences_per_chain, "sequences_per_chain"),
        positive_int(chains, "chains"),
    )

    def distance(design: MeasuredCoverage) -> float:
        own = (design.length, design.sequences_per_chain, design.chains)
        return math.fsum(math.log(a / b) ** 2 for a, b in zip(own, asked, strict=True))

    return min(_measured().get(metric, ()), key=distance, default=None)


def band_note(metric: str, *, length: int, chains: int, sequences_per_chain: int = 1) -> str:
    """Return the note of a band: how often such bands covered.

    Raises
    ------
    InputError
        If a number is not an integer of at least 1.

    Examples
    --------
    >>> band_note("split_weight", length=100, chains=200)
    'the coverage of such a band has not been measured'
    """
    found = measured_coverage(metric, length=length, chains=chains, sequences_per_chain=sequences_per_chain)
    if found is None:
        return Note(Code.BAND_NOT_MEASURED)
    return Note(
        Code.BAND_COVERAGE,
        length=found.length,
        chains=found.chains,
        sequences=found.sequences_per_chain,
        shares=tuple(f"{share:.2f} ({name})" for name, share in found.shares.items()),
    )
