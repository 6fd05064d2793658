"""How many sequences a comparison asks each estimator for, over all its designs."""

from __future__ import annotations

from icl_estimators.estimators.registry import is_own
from icl_estimators.experiments.budget_design import REORDERINGS, budget_chains, no_budget, sampled_lengths
from icl_estimators.experiments.budget_design import exact_length as exact_budget_length
from icl_estimators.experiments.checks import exact_length
from icl_estimators.experiments.likeness import fitting_chains, likeness_sequences
from icl_estimators.experiments.strategies import strategy_chains
from icl_estimators.experiments.study import Study

__all__ = ["cost_line", "planned_sequences"]

WORTH_SAYING = 20_000
"""Sequences that take a model of your own long enough to be told of before."""


def planned_sequences(study: Study) -> dict[str, int]:
    """Return how many sequences an estimator that is no rule is asked for, by design; the checks of the contract aside.

    Examples
    --------
    >>> planned_sequences(Study.build("add-one", warn=print, chains=20, sequences_per_chain=1, length=12))["risk"]
    20
    """
    k = study.n_states
    checked = exact_length(k, study.length, study.most_prefixes) if study.exact_posterior else 0
    budget = 0 if no_budget(study) else exact_budget_length(study)
    several = len(study.estimators) > 1
    compared = study.chains * likeness_sequences(study)
    return {
        "risk": study.chains * study.sequences_per_chain,
        "decomposition": study.decomposition_chains * study.decomposition_sequences,
        "likeness": compared if several else 0,
        "maps": compared,
        "budget": budget_chains(study) * (1 + REORDERINGS) * len(sampled_lengths(study)),
        "fitting": fitting_chains(study),
        "strategies": strategy_chains(study),
        "exact": k**checked if checked else 0,
        "exact budget": sum(k**n for n in range(1, budget + 1)),
    }


def cost_line(study: Study) -> str | None:
    """Return a line that says what an estimator of your own will be asked for; None where that is little, or no one's.

    Examples
    --------
    >>> cost_line(Study.build("add-one", warn=print)) is None
    True
    """
    own = [estimator.name for estimator in study.estimators if is_own(estimator)]
    planned = planned_sequences(study)
    total = sum(planned.values())
    if not own or total < WORTH_SAYING:
        return None
    largest = sorted((name for name in planned if planned[name]), key=planned.__getitem__, reverse=True)[:3]
    parts = ", ".join(f"{name} {planned[name]:,}" for name in largest)
    return (
        f"{', '.join(own)}: about {total:,} sequences of up to {study.length} tokens will be asked for ({parts}, …); "
        "fewer chains make fewer"
    )
