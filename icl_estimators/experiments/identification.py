"""The study behind "which estimator is it?": one estimator among the rules that it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.estimators import Estimator, is_rule
from icl_estimators.experiments.assembly import assemble
from icl_estimators.experiments.study import DEFAULTS, ChainOptions, Study
from icl_estimators.experiments.tuning import gamma_tuner
from icl_estimators.sources import ChainLaw

__all__ = ["RULES", "Asked", "IdentificationOptions", "identification_study"]

RULES = ("uniform", "unigram", "bigram", "add-one", "add-one:order=2", "construction")
"""The rules without a fitted parameter; those with one are fitted to the estimator on chains of their own."""


class IdentificationOptions(ChainOptions, total=False):
    """The options of an identification.

    Attributes
    ----------
    exact_checks : bool
        As for :class:`icl_estimators.experiments.study.Study`.
    """

    exact_checks: bool


class Asked:
    """A rule under another name, so that it can be compared with itself as if nothing were known about it.

    Parameters
    ----------
    rule : Estimator

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> Asked(get("unigram")).name
    'unigram (asked)'
    """

    def __init__(self, rule: Estimator) -> None:
        self._rule = rule
        self.name = f"{rule.name} (asked)"
        self.n_states = rule.n_states

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Return the rule's predictions, shape (N, T, K)."""
        return self._rule.predict_proba(tokens)


def identification_study(
    asked: str | Estimator, *, warn: Callable[[str], None], dashes: str = "", **options: Unpack[IdentificationOptions]
) -> Study:
    """Return the study that says which rule an estimator is like.

    Parameters
    ----------
    asked : str or Estimator
        A spec or an object. Several checkpoints make several estimators of one spec.
    warn, dashes
        As for :meth:`icl_estimators.experiments.study.Study.build`.
    **options
        Which chains are drawn.

    Returns
    -------
    Study
        `asked` first, then :data:`RULES`; its reference is the Bayes rule.

    Raises
    ------
    InputError, ContractError
        As :meth:`icl_estimators.experiments.study.Study.build`.

    Examples
    --------
    >>> identification_study("unigram", length=12, chains=20, warn=print).names[:3]
    ('unigram (asked)', 'uniform', 'unigram')
    """
    given: dict[str, Any] = {**DEFAULTS, **options}
    own: IdentificationOptions = {  # type: ignore[assignment]
        name: value for name, value in options.items() if name not in ("checkpoints", "device")
    }
    source = ChainLaw(given["states"], given["concentration"], given["start"])
    made, _ = assemble(
        [asked],
        n_states=source.n_states,
        concentration=source.concentration,
        warn=warn,
        checkpoints=given["checkpoints"],
        device=given["device"],
        tune=gamma_tuner(source, given["length"]),
        dashes=dashes,
    )
    study_of: list[Estimator] = [Asked(rule) if is_rule(rule) else rule for rule in made]
    return Study.build(
        [*study_of, *RULES],
        warn=warn,
        dashes=dashes,
        # At α = 1 the Bayes rule is add-one, which is among the rules.
        reference="add-one" if source.concentration == 1.0 else "bayes",
        decomposition_chains=0,
        **own,
    )
