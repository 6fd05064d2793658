"""A study's checks of itself: numbers that must agree, as z-scores → checks.csv."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from icl_estimators.experiments.decomposition import DecompositionMoments
from icl_estimators.experiments.exact import ExactRisk, exact_risk
from icl_estimators.experiments.risk import RiskMoments
from icl_estimators.experiments.risk_tables import NO_POSTERIOR, context_labels
from icl_estimators.experiments.study import Study
from icl_estimators.experiments.tables import Cell, Table
from icl_estimators.inference import Check, agreement_check, zero_mean_check

__all__ = ["check_table", "exact_length", "exact_risks"]

_EXACT_PREFIXES = 7000  # 8 tokens at K = 3, 12 at K = 2
_EXACT_METRICS = ("kl_nats", "regret_nats", "p_infinite")


def exact_length(n_states: int, length: int) -> int:
    """Return how many context lengths are checked against the exact risk.

    Examples
    --------
    >>> exact_length(3, 100), exact_length(2, 5)
    (8, 5)
    """
    longest = 1
    while longest < length and n_states ** (longest + 1) <= _EXACT_PREFIXES:
        longest += 1
    return longest


def exact_risks(study: Study) -> dict[str, ExactRisk]:
    """Return each estimator's exact risk at short contexts, by name; empty where the start law has none.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract on one of these prefixes, which are all there are.
    """
    if not study.exact_posterior:
        return {}
    longest = exact_length(study.n_states, study.length)
    return {estimator.name: exact_risk(estimator, longest, study.law) for estimator in study.estimators}


def check_table(
    study: Study, risk: RiskMoments, decomposition: DecompositionMoments | None, exact: dict[str, ExactRisk]
) -> Table:
    """Return checks.csv.

    - ``martingale``: realised KL of the Bayes rule less ρ, mean 0 at every n;
    - ``exact:<metric>``: Monte Carlo less the exact risk at short contexts, for every estimator;
    - ``mse``: mean squared error of the nested design less the squared error of the risk design.

    z is standard normal, up to the skewness that few chains leave, if all is well.
    """
    rows: list[tuple[Cell, ...]] = []
    labels = context_labels(study.length)
    if risk.martingale is None:
        rows.append(("martingale", "bayes", "mean", np.nan, np.nan, np.nan, NO_POSTERIOR))
    else:
        rows += _rows("martingale", "bayes", labels, zero_mean_check(risk.martingale))
    for name, truth in exact.items():
        rows += _exact_rows(risk, name, truth)
    if decomposition is not None:
        for estimator in study.estimators:
            nested = decomposition.parts[estimator.name, "mse"]
            check = agreement_check(nested, risk.risk[estimator.name, "squared_error"])
            rows += _rows("mse", estimator.name, labels, check)
    return Table.of("checks", rows)


def _rows(check: str, name: str, labels: list[Cell], result: Check) -> Iterator[tuple[Cell, ...]]:
    for index, label in enumerate(labels):
        numbers = (float(result.estimate[index]), float(result.se[index]), float(result.z[index]))
        yield (check, name, label, *numbers, result.notes[index])


def _exact_rows(risk: RiskMoments, name: str, exact: ExactRisk) -> Iterator[tuple[Cell, ...]]:
    for metric in _EXACT_METRICS:
        moments = risk.risk[name, metric]
        for n in range(len(exact.metrics[metric])):
            truth, mean, se = exact.metrics[metric][n], moments.mean[n], moments.standard_error[n]
            note = ""
            estimate = z = np.nan
            if np.isfinite(truth) and np.isfinite(mean):
                estimate = mean - truth
                varies = se > 1e-13 * max(1.0, abs(mean))  # a constant may differ from itself by rounding
                z = estimate / se if varies else np.nan
                if not varies:
                    note = "no z: the value does not vary"
            else:
                se = np.nan
                agree = np.isinf(truth) and np.isinf(mean)
                note = "both infinite" if agree else f"exact {truth}, Monte Carlo {mean}"
            yield f"exact:{metric}", name, n + 1, float(estimate), float(se), float(z), note
