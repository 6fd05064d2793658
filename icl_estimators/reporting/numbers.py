"""How a report spells numbers: rounded for reading, never changed in kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from icl_estimators.text import number

__all__ = ["counted", "digits_that_add_up", "interval", "interval_of", "joined", "percent_interval", "spell"]

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

    All three have one notation, that of the estimate.

    Examples
    --------
    >>> interval(0.031, 0.03, 0.032).split(), interval(float("inf"), float("nan"), float("nan"))
    (['0.0310', '[0.0300,', '0.0320]'], 'inf')
    >>> interval(2e-6, -1e-6, 5e-3).split(), interval(0.002, 1e-6, 0.004).split()
    (['2.0e−06', '[−1.0e−06,', '5.0e−03]'], ['0.0020', '[0.0000,', '0.0040]'])
    """
    if math.isnan(low) or math.isnan(high) or not math.isfinite(estimate):
        return spell(estimate, digits)
    tiny = 0 < abs(estimate) < 0.5 * 10**-digits
    shown = [_scientific(value) if tiny else _fixed(value, digits) for value in (estimate, low, high)]
    return joined(f"{shown[0]} [{shown[1]}, {shown[2]}]")


def _scientific(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}".replace("-", "−") if math.isfinite(value) else spell(value)


def _fixed(value: float, digits: int) -> str:
    """Spell with fixed decimals, even what rounds to 0: the numbers of one interval have one notation."""
    return (
        f"{value + 0.0:.{digits}f}".replace("-", "−").replace(f"−{0:.{digits}f}", f"{0:.{digits}f}")
        if math.isfinite(value)
        else spell(value)
    )


def digits_that_add_up(first: float, second: float, difference: float, digits: int = 4, most: int = 7) -> int:
    """Return with how many decimals `first` − `second` is printed as `difference`.

    Two rounded numbers may differ by one unit more than their rounded difference; readers who subtract then find a
    mistake.

    Examples
    --------
    >>> digits_that_add_up(0.03104, 0.02896, 0.00208), digits_that_add_up(0.5, 0.25, 0.25)
    (5, 4)
    """
    for places in range(digits, most):
        if round(round(first, places) - round(second, places), places) == round(difference, places):
            return places
    return most


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
