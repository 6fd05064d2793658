"""The Estimator interface, and the errors of objects that break it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.validation import InputError

__all__ = ["ContractError", "Estimator", "UnsupportedStates"]


@runtime_checkable
class Estimator(Protocol):
    """Anything that turns a prefix into a law of the next token.

    Attributes
    ----------
    name : str
        What the tables call it.
    n_states : int
        K, the number of states.
    """

    name: str
    n_states: int

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict the next token after every prefix of every sequence.

        Parameters
        ----------
        tokens : array_like of integers in [0, K), shape (N, T)
            May be read-only; never written to.

        Returns
        -------
        ndarray of float64, shape (N, T, K)
            ``[:, n-1]`` is the law of token n + 1 given ``tokens[:, :n]``, and of nothing later.
        """
        ...


class ContractError(InputError):
    """An estimator that breaks the contract; the text names it and says how, in one line."""


class UnsupportedStates(InputError):
    """An estimator that does not exist for the number of states asked for."""
