"""Ask an estimator for predictions, and name it and the chain if it fails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from icl_estimators.estimators import ContractError, Estimator, check_predictions

__all__ = ["EstimatorFailure", "ask", "predict"]


class EstimatorFailure(ContractError):
    """An estimator that raised an error. This may be temporary (memory), so the block is tried again."""

    transient = True


def predict(
    estimator: Estimator, tokens: NDArray[np.int64], chains: range, sequences_per_chain: int
) -> NDArray[np.float64]:
    """Return the estimator's checked predictions for the sequences of some chains.

    Parameters
    ----------
    estimator : Estimator
    tokens : ndarray of int64, shape (R·S, T)
        Chain by chain. The estimator gets it read-only.
    chains : range
        The chains' numbers, for messages.
    sequences_per_chain : int
        S.

    Returns
    -------
    ndarray of float64, shape (R, S, T, K)

    Raises
    ------
    ContractError
        If the estimator raises, or its predictions break the contract; names the estimator, the chain, the sequence.
    """

    def place(row: int) -> str:
        return f"chain {chains[row // sequences_per_chain]}, sequence {row % sequences_per_chain}"

    def where(given: NDArray[np.int64]) -> str:
        culprit = _first_failing(estimator, given, sequences_per_chain)
        return f"chains {chains[0]} to {chains[-1]}" if culprit is None else f"chain {chains[culprit]}"

    found = ask(estimator, tokens, place=place, where=where)
    return found.reshape(len(chains), sequences_per_chain, *found.shape[1:])


def ask(
    estimator: Estimator,
    tokens: NDArray[np.int64],
    *,
    place: Callable[[int], str],
    where: Callable[[NDArray[np.int64]], str],
) -> NDArray[np.float64]:
    """Return the estimator's checked predictions for some sequences, which it gets read-only.

    They are a copy: an estimator may fill the same buffer again at its next call, and what is kept of a few
    predictions must not keep all of them alive.

    Parameters
    ----------
    estimator : Estimator
    tokens : ndarray of int64, shape (N, T)
    place : callable
        What to call the sequence with a given index, for messages about a prediction.
    where : callable
        Describes the tokens on which the estimator raised an error.

    Returns
    -------
    ndarray of float64, shape (N, T, K)
        A copy that belongs to the caller.

    Raises
    ------
    EstimatorFailure
        If the estimator raises.
    ContractError
        If its predictions break the contract.
    """
    given = tokens.view()
    given.setflags(write=False)
    try:
        raw = estimator.predict_proba(given)
    except (Exception, SystemExit) as error:
        raise EstimatorFailure(
            f"{estimator.name} failed on {where(given)}: {type(error).__name__}: {error} (fix the estimator, or leave "
            "it out with --estimators)"
        ) from error
    return np.array(check_predictions(raw, (*tokens.shape, estimator.n_states), estimator.name, place=place))


def _first_failing(estimator: Estimator, tokens: NDArray[np.int64], sequences_per_chain: int) -> int | None:
    """Return the first chain that fails by itself, if one does; `tokens` is read-only."""
    for chain, first in enumerate(range(0, len(tokens), sequences_per_chain)):
        try:
            estimator.predict_proba(tokens[first : first + sequences_per_chain])
        except (Exception, SystemExit):
            return chain
    return None
