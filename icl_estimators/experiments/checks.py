"""Checks of a study: numbers that must agree, as z-scores → checks.csv."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.experiments.decomposition import DecompositionMoments
from icl_estimators.experiments.exact import ExactRisk, exact_risk
from icl_estimators.experiments.risk import RiskMoments
from icl_estimators.experiments.risk_tables import context_labels
from icl_estimators.experiments.study import Study
from icl_estimators.inference import Check, agreement_check, zero_mean_check
from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.metrics import METRICS
from icl_estimators.notes import Code, Note
from icl_estimators.vocabulary import SAW_THE_FUTURE

__all__ = ["check_table", "exact_length", "exact_risks"]

_FALSE_ALARM = 1e-6  # of an estimator that has not, one measure; all share their draws, and one lucky draw accuses all
_ROUNDING = 1e-13

_EXACT_PREFIXES = 7000  # 8 tokens at K = 3, 12 at K = 2


def exact_length(n_states: int, length: int, most: int | None = None) -> int:
    """Return how many context lengths are checked against the exact risk.

    Parameters
    ----------
    n_states, length : int
        K and T.
    most : int, optional
        Sequences that may be asked for, if that is fewer than usual.

    Examples
    --------
    >>> exact_length(3, 100), exact_length(2, 5), exact_length(3, 100, 20), exact_length(3, 100, 0)
    (8, 5, 2, 0)
    """
    prefixes = _EXACT_PREFIXES if most is None else min(most, _EXACT_PREFIXES)
    longest = 1 if most is None or n_states <= most else 0
    while 0 < longest < length and n_states ** (longest + 1) <= prefixes:
        longest += 1
    return longest


def exact_risks(study: Study) -> dict[str, ExactRisk]:
    """Return each estimator's exact risk at short contexts, by name; empty where the source has no exact posterior.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract on one of these prefixes, which are all there are.
    """
    if not study.exact_posterior:
        return {}
    longest = exact_length(study.n_states, study.length, study.most_prefixes)
    if not longest:
        return {}
    return {estimator.name: exact_risk(estimator, longest, study.source) for estimator in study.estimators}


def check_table(
    study: Study, risk: RiskMoments, decomposition: DecompositionMoments | None, exact: dict[str, ExactRisk]
) -> Table:
    """Return checks.csv.

    - ``martingale``: realised KL of the Bayes rule minus ρ, mean 0 at every n;
    - ``exact:<metric>``: Monte Carlo minus the exact risk at short contexts, for every estimator;
    - ``mse``: mean squared error of the nested design minus the squared error of the risk design;
    - ``next_token``: the probability that an estimator gave to the token that came, minus what the posterior given the
      prefix expects of that. Given the prefix the token is drawn from the Bayes predictive q, so that the mean is 0 at
      every n for any estimator that reads the prefix alone, zeros or not;
    - ``bayes_bound:<metric>``: an estimator's KL or log loss minus that of the Bayes rule of these chains, on the same
      draws. Its mean is the regret, which is never negative: only a z far *below* 0 is an error;
    - ``saw_the_future``: a row for each of these that an estimator fails beyond chance, and no row otherwise.

    Except for ``bayes_bound``, z is standard normal if everything is correct, up to the skewness of few chains.
    """
    rows: list[tuple[Cell, ...]] = []
    labels = context_labels(study.length)
    if risk.martingale is None:
        rows.append(("martingale", "bayes", "mean", np.nan, np.nan, np.nan, Note(Code.NO_POSTERIOR)))
    else:
        rows += _rows("martingale", "bayes", labels, zero_mean_check(risk.martingale))
    for name, truth in exact.items():
        rows += _exact_rows(risk, name, truth)
    if decomposition is not None:
        for estimator in study.estimators:
            nested = decomposition.parts[estimator.name, "mse"]
            check = agreement_check(nested, risk.risk[estimator.name, "squared_error"])
            rows += _rows("mse", estimator.name, labels, check)
    for estimator in study.estimators:
        rows += _foresight_rows(study, risk, estimator.name, labels)
    return Table.of("checks", rows)


def _rows(check: str, name: str, labels: list[Cell], result: Check) -> Iterator[tuple[Cell, ...]]:
    for index, label in enumerate(labels):
        numbers = (float(result.estimate[index]), float(result.se[index]), float(result.z[index]))
        yield (check, name, label, *numbers, result.notes[index])


def _exact_rows(risk: RiskMoments, name: str, exact: ExactRisk) -> Iterator[tuple[Cell, ...]]:
    for metric in (entry.name for entry in METRICS.values() if entry.checked):
        moments = risk.risk[name, metric]
        for n in range(len(exact.metrics[metric])):
            truth, mean, se = exact.metrics[metric][n], moments.mean[n], moments.standard_error[n]
            note: str = ""
            estimate = z = np.nan
            if np.isfinite(truth) and np.isfinite(mean):
                estimate = mean - truth
                varies = se > 1e-13 * max(1.0, abs(mean))  # a constant may differ from itself by rounding
                z = estimate / se if varies else np.nan
                if not varies:
                    note = Note(Code.NO_Z)
            else:
                se = np.nan
                agree = np.isinf(truth) and np.isinf(mean)
                note = Note(Code.BOTH_INFINITE) if agree else Note(Code.EXACT_DISAGREES, exact=truth, mean=mean)
            yield f"exact:{metric}", name, n + 1, float(estimate), float(se), float(z), note


def _foresight_rows(study: Study, risk: RiskMoments, name: str, labels: list[Cell]) -> Iterator[tuple[Cell, ...]]:
    """Yield what shows whether an estimator has seen later tokens, and a row that says so if it has."""
    doubt = t_quantile(1.0 - _FALSE_ALARM / len(labels), max(study.chains - 1, 1))
    alarms: list[tuple[Cell, ...]] = []
    for measure in ("next_token", "log_loss_nats", "kl_nats"):
        if (name, measure) not in risk.foresight:
            continue
        result = _without_rounding(zero_mean_check(risk.foresight[name, measure]))
        bound = measure != "next_token"
        why = Note(Code.BELOW_BAYES if bound else Code.NOT_ITS_CHANCE)
        against = -result.z if bound else np.abs(result.z)
        failed = against > doubt
        notes = tuple(why if bad else note for bad, note in zip(failed, result.notes, strict=True))
        yield from _rows(f"bayes_bound:{measure}" if bound else measure, name, labels, replace(result, notes=notes))
        if failed.any():
            worst = int(np.nanargmax(against))
            numbers = (float(result.estimate[worst]), float(result.se[worst]), float(result.z[worst]))
            alarms.append((SAW_THE_FUTURE, name, labels[worst], *numbers, Note(_SPOKEN[measure], why=why)))
    yield from alarms


_SPOKEN = {"next_token": Code.SAW_PROBABILITY, "log_loss_nats": Code.SAW_LOG_LOSS, "kl_nats": Code.SAW_KL}


def _without_rounding(check: Check) -> Check:
    """Return a check without z where estimate and standard error are the rounding of a constant 0."""
    still = (np.abs(check.estimate) <= _ROUNDING) & (check.se <= _ROUNDING)
    notes = tuple(note or (Note(Code.NO_Z) if no else "") for note, no in zip(check.notes, still, strict=True))
    return replace(check, z=np.where(still, np.nan, check.z), notes=notes)
