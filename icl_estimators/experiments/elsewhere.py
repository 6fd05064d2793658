"""How much probability models with a larger vocabulary give to entries that stand for no state."""

from __future__ import annotations

import inspect

import numpy as np

from icl_estimators.estimators import ContractError
from icl_estimators.experiments.study import Study

__all__ = ["mass_elsewhere"]

_CHAINS, _TOKENS = 20, 50


def mass_elsewhere(study: Study) -> dict[str, float]:
    """Return the mean mass by estimator, on the beginnings of a few sequences; of those that offer to say it.

    An estimator offers it by a method ``mass_elsewhere(tokens)``, (N, T) → (N, T), as
    :func:`icl_estimators.from_torch` gives it.

    Raises
    ------
    ContractError
        If the method fails or returns another shape.
    """
    tokens = study.source.sample(
        range(_CHAINS), sequences_per_chain=1, length=min(study.length, _TOKENS), seed=study.seed, purpose="example"
    ).inputs
    found = {}
    for estimator in study.estimators:
        method = getattr(estimator, "mass_elsewhere", None)
        if not inspect.isroutine(method):
            continue
        try:
            mass = np.asarray(method(tokens), dtype=np.float64)
        except Exception as error:
            raise ContractError(
                f"{estimator.name}: mass_elsewhere(tokens) failed: {type(error).__name__}: {error}"
            ) from error
        if mass.shape != tokens.shape:
            shapes = f"{mass.shape}, not {tokens.shape}"
            raise ContractError(f"{estimator.name}: mass_elsewhere(tokens) returned shape {shapes}")
        found[estimator.name] = float(mass.mean())
    return found
