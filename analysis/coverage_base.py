"""What every small study of the coverage study has, and what is said of its intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = [
    "AT_BOUNDARY",
    "BIG",
    "BINS",
    "BY_CONSTRUCTION",
    "AT_OPTIMUM",
    "CERTAIN",
    "LIMITS",
    "CHAINS_OF_STUDY",
    "CONDITIONAL",
    "EXACT",
    "EXACT_METRICS",
    "GIVEN_CHAIN",
    "HELD_OUT",
    "LENGTH",
    "NESTED_METRICS",
    "NOMINAL",
    "QUADRATURE",
    "RECIPE_LENGTH",
    "SHOWN",
    "SKEWED",
    "SHOWN_VISITS",
    "Curve",
    "Design",
    "Key",
    "Seen",
    "label_of",
    "number",
    "rows_of",
    "with_mean",
]

Array = NDArray[np.float64]
Curve = dict[tuple[str, str], float]
"""True values by (metric, context length)."""

NOMINAL = 0.95
LENGTH = 6
RECIPE_LENGTH = 4
CHAINS_OF_STUDY = 200

BIG = 1_000_000  # seeds of small studies start here, far from those of other analyses

Key = tuple[str, str, str, str]
"""Kind, estimator, metric or parameter, and context length, visits or the like."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One interval of one small study beside the truth."""

    key: Key
    low: float
    high: float
    truth: float


class Design:
    """A small study that is drawn many times.

    Attributes
    ----------
    name : str
    sequences : int
        S, of the design that the rows are of.
    runs : int
        J training runs, 0 where there are none.
    """

    name: str
    sequences: int
    runs: int = 0

    def draw(self, seed: int) -> list[Seen]:
        """Draw one small study and return its intervals with their truths."""
        raise NotImplementedError

    def method(self, key: Key) -> str:
        """Return how the true values of a row were found."""
        return EXACT

    def nominal(self, key: Key) -> float:
        """Return the coverage that a row should have: a true boundary can be missed on one side only."""
        return 0.5 + 0.5 * NOMINAL if key[0] == AT_BOUNDARY else NOMINAL


EXACT = "enumeration of all prefixes"
GIVEN_CHAIN = "enumeration given each of {:,} chains".format
CONDITIONAL = "enumeration, given the training runs or the fit"
QUADRATURE = "enumeration and quadrature over training runs"
BY_CONSTRUCTION = "by construction"

AT_BOUNDARY = "parameter at the boundary"
HELD_OUT = "held-out residual and gain"
CERTAIN = "share that is 0 or 1 (Wilson)"
AT_OPTIMUM = "recipe: risk, runs around the optimum"
SKEWED = "recipe: risk, skewed runs"
LIMITS = {
    CERTAIN: "its interval ends at the true value, and cannot miss it",
    SKEWED: "a t interval from a few runs takes their effects for normal; here the skewness of the runs' regrets is "
    "about 2, and the interval is too low too often",
    AT_OPTIMUM: "where runs scatter around the best rule, regret is quadratic in what differs between them: the "
    "distribution over runs is very skewed, and a t interval from a few runs is too low",
}
"""Kinds of row whose coverage is shown but not held to the nominal level, and why."""

SHOWN = ("1", "2", str(RECIPE_LENGTH), str(LENGTH), "mean")
SHOWN_VISITS = (1, 2, 4)
BINS = (0, 3, 6, 9)

EXACT_METRICS = ("kl_nats", "regret_nats", "p_infinite", "total_variation", "squared_error", "log_loss_nats")
NESTED_METRICS = ("bias_squared", "variance", "kl_bias_nats", "kl_variance_nats")


def with_mean(values: Array) -> dict[str, float]:
    """Return values by context length 1 … T, and their mean."""
    labels = [*map(str, range(1, len(values) + 1)), "mean"]
    return dict(zip(labels, [*map(float, values), float(np.mean(values))], strict=True))


def number(cell: Any) -> float:
    return float(cell) if cell is not None else float("nan")


def label_of(cell: Any) -> str:
    """Return a label of a row as text; a column with empty cells holds whole numbers as floats."""
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return ""
    return str(int(cell)) if isinstance(cell, float) else str(cell)


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    return frame.itertuples(index=False)
