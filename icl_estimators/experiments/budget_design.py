"""The regret budget in a study: which context lengths, from what, and the rows of budget.csv."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from math import comb, factorial

import numpy as np

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.experiments.regret_budget import MOST_STATES, PARTS, exact_budget, require_alike_states
from icl_estimators.experiments.sampled_budget import BudgetDraws, SampledBudget, draw_prefixes
from icl_estimators.experiments.study import Study
from icl_estimators.notes import Code, Note, join
from icl_estimators.sources import ChainLaw
from icl_estimators.validation import InputError

__all__ = ["REORDERINGS", "budget_block", "budget_chains", "budget_table", "exact_rows", "no_budget", "sampled_lengths"]

REORDERINGS = 1
"""Other orders drawn of each prefix. More chains are a better use of the same time than more orders."""

_CHAINS_FOR_EACH = 4  # of the study's; one sequence each
_MOST_CHAINS = 40_000  # what is kept of them stays below 100 MB for ten estimators
_EXACT_COST = 25_000  # prefixes and relabelled keys: n = 9 at K = 3, a tenth of a second for an estimator
_SAMPLED = (4, 6, 9, 12, 24, 50, 100, 200, 400, 800)
_GROUPS = 20
_FEWEST_COVERED = 0.8
"""A smaller share of the prefixes does not speak for the rest.

At n = 50, with a share of 0.50, other_rows of the shipped model came out as 0.00143 ± 0.00016; with 0.96 it is 0.00095.
"""


def no_budget(study: Study) -> str:
    """Return why a study has no regret budget; empty where it has one."""
    law = study.source
    if not study.exact_posterior:
        return Note(Code.NO_POSTERIOR)
    if not isinstance(law, ChainLaw):
        return Note(Code.NO_BUDGET_OF_SOURCE)
    if law.n_states > MOST_STATES:
        return Note(Code.NO_BUDGET_OF_STATES, states=law.n_states, most=MOST_STATES)
    try:
        require_alike_states(law)
    except InputError as error:
        return str(error)
    return ""


def exact_length(study: Study) -> int:
    """Return the greatest n ≤ T whose enumeration is cheap."""
    k, n, asked, most = study.n_states, 0, 0, study.most_prefixes
    while n < study.length and k ** (n + 1) + factorial(k) * k * comb(n + k, k) <= _EXACT_COST:
        asked += k ** (n + 1)
        if most is not None and asked > most:
            break
        n += 1
    return n


def sampled_lengths(study: Study) -> list[int]:
    """Return the context lengths at which the budget is estimated: some beyond the exact ones, and T."""
    if no_budget(study):
        return []
    exact = exact_length(study)
    return sorted({n for n in (*_SAMPLED, study.length) if exact < n <= study.length})


def budget_chains(study: Study) -> int:
    """Return how many chains the estimated budget draws; 0 where there is nothing to estimate."""
    return min(_CHAINS_FOR_EACH * study.chains, _MOST_CHAINS) if sampled_lengths(study) else 0


def budget_block(study: Study, chains: range) -> BudgetDraws:
    """Draw `chains` and their re-orderings, and ask every estimator.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    """
    assert isinstance(study.source, ChainLaw)  # no_budget says so
    return draw_prefixes(study.estimators, sampled_lengths(study), study.source, chains, REORDERINGS, study.seed)


def budget_table(study: Study, draws: BudgetDraws | None) -> Table | None:
    """Return budget.csv: by estimator and context length, the regret and its parts; None where there is no budget.

    After several training runs the mean of their own budgets, not the budget of their mean prediction.
    """
    if no_budget(study):
        return None
    assert isinstance(study.source, ChainLaw)
    rows: list[tuple[Cell, ...]] = []
    exact: dict[tuple[str, int], dict[str, float]] = {}
    for estimator in study.estimators:
        for n in range(1, exact_length(study) + 1):
            found = exact_budget(estimator, n, study.source)
            exact[estimator.name, n] = {"regret": found.regret, **found.parts}
    for name in study.names:
        runs = study.recipes.get(name, ())
        basis = join(Note(Code.MEAN_OF_RUNS), Note(Code.THESE_RUNS)) if runs else ""
        for n in range(1, exact_length(study) + 1):
            each = [exact[one, n] for one in runs or (name,)]
            rows += exact_rows(name, n, {part: float(np.mean([of[part] for of in each])) for part in each[0]}, basis)
        for n, drawn in (draws.lengths if draws is not None else {}).items():
            budget = partial(drawn.budget, name, n, study.source.concentration, of=runs)
            rows += _sampled_rows(budget(groups=_GROUPS, level=study.level), basis)
    return Table.of("budget", rows)


def exact_rows(name: str, n: int, values: dict[str, float], basis: str = "") -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of budget.csv of an exact budget, the regret and its parts; `basis` is added to each note."""
    for part, value in values.items():
        why = "" if math.isfinite(value) else Note(Code.NO_PARTS_OF_INFINITE)
        spread = (0.0, value, value) if math.isfinite(value) else (math.nan,) * 3
        yield name, n, part, value, *spread, "exact", join(why, basis)


def _sampled_rows(found: SampledBudget, basis: str) -> Iterator[tuple[Cell, ...]]:
    infinite = not math.isfinite(found.estimates["regret"])
    few = found.covered < _FEWEST_COVERED
    for part in ("regret", *PARTS):
        numbers = tuple(values[part] for values in (found.estimates, found.se, found.low, found.high))
        why = ""
        if infinite:
            numbers = (found.estimates[part], *(math.nan,) * 3)
            why = Note(Code.NO_PARTS_OF_INFINITE)
        elif part in PARTS[1:-1]:
            share = f"{100 * found.covered:.3g} %"
            why = Note(Code.TOO_FEW_SHARE_COUNTS if few else Code.SHARE_WITH_EQUAL_COUNTS, share=share)
            numbers = (math.nan,) * 4 if few else numbers
        yield found.estimator, found.context_length, part, *numbers, "monte-carlo", join(why, basis)
