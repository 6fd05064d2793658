"""How a report spells numbers: rounded for reading, never changed in kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from icl_estimators.text import number

__all__ = ["counted", "interval", "interval_of", "joined", "percent_interval", "spell"]

_NO_BREAK = "\N{NO-BREAK SPACE}"


def spell(value: float, digits: int = 4) -> str:
    """Spell a number: a true minus sign, `inf` in words, a dash for what is undefined.

    Examples
    --------
    >>> spell(0.03104), spell(-0.0), spell(-0.25, 2), spell(1e-12), spell(float("inf")), spell(float("nan"))
    ('0.0310', '0.0000', '−0.25', '1.0e−12', 'inf', '–')
    """
    return "–" if math.isnan(value) else number(value, digits).replace("-", "−")


def interval(estimate: float, low: float, high: float, digits: int = 4) -> str:
    """Spell an estimate with its interval on one line; the interval is left out where it is undefined.

    Examples
    --------
    >>> interval(0.031, 0.03, 0.032).split(), interval(float("inf"), float("nan"), float("nan"))
    (['0.0310', '[0.0300,', '0.0320]'], 'inf')
    """
    if math.isnan(low) or math.isnan(high) or not math.isfinite(estimate):
        return spell(estimate, digits)
    return joined(f"{spell(estimate, digits)} [{spell(low, digits)}, {spell(high, digits)}]")


def percent_interval(share: float, low: float, high: float) -> str:
    """Spell a share in percent with its interval.

    Examples
    --------
    >>> percent_interval(0.37, 0.363, 0.377).split(), percent_interval(0.0, 0.0, 0.00019).split()
    (['37.0', '%', '[36.3,', '37.7]'], ['0', '%', '[0,', '0.019]'])
    """
    if math.isnan(share):
        return "–"
    text = f"{_percent(share)} %"
    if not math.isnan(low):
        text += f" [{_percent(low)}, {_percent(high)}]"
    return joined(text)


def _percent(share: float) -> str:
    value = 100.0 * share
    if value == 0.0:
        return "0"
    return f"{value:.1f}" if value >= 0.1 else f"{value:.2g}"


def interval_of(row: Mapping[str, Any], digits: int = 4) -> str:
    """Spell the estimate of a table's row with its interval."""
    return interval(float(row["estimate"]), float(row["ci_low"]), float(row["ci_high"]), digits)


def joined(text: str) -> str:
    """Keep a short text on one line."""
    return text.replace(" ", _NO_BREAK)


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Spell a count with its noun.

    Examples
    --------
    >>> counted(1, "chain"), counted(2000, "chain"), counted(2, "series", "series")
    ('1 chain', '2,000 chains', '2 series')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
