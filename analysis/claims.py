"""Claims, and the rules that judge them whatever their number turns out to be."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from icl_estimators.engine.tables import Table

__all__ = ["COLUMNS", "Claim", "Rule", "claims_table"]

COLUMNS = ("claim", "measure", "estimate", "ci_low", "ci_high", "rule", "verdict")


@dataclass(frozen=True)
class Rule:
    """A claim holds if the interval of its measure lies between `low` and `high`, and fails if it lies outside.

    Attributes
    ----------
    text : str
        The rule in words.
    low, high : float
        The ends, which belong to the region.
    """

    text: str
    low: float = -math.inf
    high: float = math.inf

    def verdict(self, low: float, high: float) -> str:
        """Judge an interval: "holds", "fails" or "not distinguishable".

        Examples
        --------
        >>> rule = Rule("at least 0.9", low=0.9)
        >>> rule.verdict(0.91, 0.95), rule.verdict(0.85, 0.89), rule.verdict(0.85, 0.95)
        ('holds', 'fails', 'not distinguishable')
        """
        if math.isnan(low) or math.isnan(high):
            return "not distinguishable"
        if self.low <= low and high <= self.high:
            return "holds"
        return "fails" if high < self.low or low > self.high else "not distinguishable"


@dataclass(frozen=True)
class Claim:
    """One claim with the number that speaks to it.

    Attributes
    ----------
    claim : str
        What is claimed, in a few words.
    measure : str
        What is measured.
    estimate, low, high : float
        The number and its 95 % interval; a number without sampling error is its own interval.
    rule : Rule
    """

    claim: str
    measure: str
    estimate: float
    low: float
    high: float
    rule: Rule

    @classmethod
    def exact(cls, claim: str, measure: str, value: float, rule: Rule) -> Claim:
        """Return a claim about a number without sampling error."""
        return cls(claim, measure, float(value), float(value), float(value), rule)

    @property
    def verdict(self) -> str:
        """The rule's judgement of the interval."""
        return self.rule.verdict(self.low, self.high)


def claims_table(claims: Iterable[Claim], path: Path) -> None:
    """Write claims.csv."""
    rows = tuple((c.claim, c.measure, c.estimate, c.low, c.high, c.rule.text, c.verdict) for c in claims)
    Table(COLUMNS, rows).write(path)
