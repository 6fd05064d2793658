"""Several training runs of a model of your own, which also get rows together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.estimators.base import ContractError, Estimator
from icl_estimators.estimators.misfits import misfit
from icl_estimators.validation import InputError

__all__ = ["OwnRun", "training_runs"]


class OwnRun:
    """An estimator under another name, as a training run of a recipe; made by :func:`training_runs`.

    What the estimator offers beyond the contract, this offers too.

    Attributes
    ----------
    name : str
    n_states : int
        K.
    recipe : str
        What the rows of all runs together are called.
    """

    wraps_own = True

    def __init__(self, rule: Estimator, name: str, recipe: str) -> None:
        self._rule = rule
        self.name, self.n_states, self.recipe = name, rule.n_states, recipe

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        return self._rule.predict_proba(tokens)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # while it is unpickled there is no rule yet
            raise AttributeError(attribute)
        return getattr(self._rule, attribute)


def training_runs(recipes: Mapping[str, Sequence[Estimator]]) -> list[OwnRun]:
    """Say which estimators are independent training runs of one recipe: the same model, trained again from other seeds.

    Studies then also have rows of each recipe: the mean over its runs with an interval for these runs, and, as
    ``<recipe>:recipe``, one that generalises to other runs; the variance that comes from training; the pseudo-count
    of the pooled objective. The estimators themselves are not changed.

    Parameters
    ----------
    recipes : mapping of str to sequence of Estimator
        Two or more runs by the recipe's name.

    Returns
    -------
    list of OwnRun
        ``recipe:1``, ``recipe:2``, …, in order.

    Raises
    ------
    InputError
        If there is no recipe, one has no name or fewer than two runs, an object stands for two runs, or runs of one
        recipe differ in their number of states.
    ContractError
        If a run is no estimator.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> [run.name for run in training_runs({"mine": [get("add-constant:0.4"), get("add-constant:0.6")]})]
    ['mine:1', 'mine:2']
    """
    if not recipes:
        raise InputError('no training runs: give them by recipe, as in training_runs({"mine": [first, second]})')
    made: list[OwnRun] = []
    for recipe, runs in recipes.items():
        if not isinstance(recipe, str) or not recipe.strip():
            raise InputError(f"a recipe needs a name, not {recipe!r}")
        if len(runs) < 2:
            raise InputError(f"{recipe} has {len(runs)} training run{'' if runs else 's'}: give two or more")
        for run in runs:
            if (fault := misfit(run)) is not None or not isinstance(run, Estimator):
                raise ContractError(f"{recipe}: {run!r:.80} {fault or 'lacks name, n_states or predict_proba'}")
        if len({id(run) for run in runs}) < len(runs):
            raise InputError(f"{recipe} has the same object twice, which is one training run: give each once")
        states = sorted({int(run.n_states) for run in runs})
        if len(states) > 1:
            raise InputError(f"the training runs of {recipe} are for {' and '.join(map(str, states))} states")
        made += [OwnRun(run, f"{recipe}:{number}", recipe) for number, run in enumerate(runs, start=1)]
    return made
