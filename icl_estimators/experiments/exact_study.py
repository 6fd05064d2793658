"""Exact risk, and the exact budget, as the tables and the record of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from icl_estimators.engine.result import StudyResult
from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator, rules_record
from icl_estimators.estimators.identity import study_identity
from icl_estimators.experiments.assembly import estimators_record, gamma_record
from icl_estimators.experiments.budget_design import exact_rows
from icl_estimators.experiments.exact import EXACT_METRICS, check_exact_budget, exact_risk
from icl_estimators.experiments.regret_budget import exact_budget
from icl_estimators.provenance import made_with
from icl_estimators.sources import Source
from icl_estimators.sources.sampling import ChainLaw

__all__ = ["ExactStudy"]


@dataclass(frozen=True)
class ExactStudy:
    """What decides the numbers of an enumeration.

    Attributes
    ----------
    estimators : tuple of Estimator
    length : int
        The longest context.
    source : ChainLaw
    budget : bool
        Whether the regret is divided into its parts too.

    Raises
    ------
    InputError
        If the prefixes or the states are too many.
    """

    estimators: tuple[Estimator, ...]
    length: int
    source: ChainLaw
    budget: bool = False

    def __post_init__(self) -> None:
        check_exact_budget(self.source.n_states, self.length)

    def record(self) -> dict[str, Any]:
        """Return everything that decides the numbers, as plain values: the `options` of run.json."""
        source: Source = self.source
        return {
            "estimators": [estimator.name for estimator in self.estimators],
            "length": self.length,
            **source.record(),
            "budget": self.budget,
            **estimators_record(self.estimators),
        }

    def run(self, *, only_budget: bool = False) -> StudyResult:
        """Enumerate every prefix; return exact.csv, with a budget also budget.csv, and the record.

        Parameters
        ----------
        only_budget : bool
            Make the budget at the longest context alone, which is what the command prints without a folder.

        Raises
        ------
        ContractError
            If an estimator fails or breaks the contract.

        Examples
        --------
        >>> from icl_estimators.estimators import get
        >>> found = ExactStudy((get("add-one"),), 2, ChainLaw()).run()
        >>> found.exact.query("metric == 'kl_nats'").estimate.round(6).tolist()
        [0.265279, 0.245648]
        """
        identity = study_identity(self.estimators)  # before they are asked for anything
        tables = {} if only_budget else {"exact": Table.of("exact", self._risk())}
        if self.budget or only_budget:
            lengths = range(self.length if only_budget else 1, self.length + 1)
            tables["budget"] = Table.of("budget", self._budget(lengths))
        run = {
            "kind": "exact",
            "options": self.record(),
            "identity": identity,
            **gamma_record(self.estimators),
            "rules": rules_record(self.estimators),
            **made_with(),
        }
        return StudyResult(tables, run)

    def _risk(self) -> Iterator[Sequence[Cell]]:
        for estimator in self.estimators:
            found = exact_risk(estimator, self.length, self.source).metrics
            for n in range(self.length):
                for metric in EXACT_METRICS:
                    yield estimator.name, n + 1, metric, float(found[metric][n])

    def _budget(self, lengths: range) -> Iterator[Sequence[Cell]]:
        for estimator in self.estimators:
            for n in lengths:
                found = exact_budget(estimator, n, self.source)
                yield from exact_rows(estimator.name, n, {"regret": found.regret, **found.parts})
