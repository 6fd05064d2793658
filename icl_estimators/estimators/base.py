"""The Estimator interface, and the checks that hold anything that claims it to its word."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.divergences import sum_states
from icl_estimators.validation import InputError

__all__ = ["ContractError", "Estimator", "UnsupportedStates", "check_estimator", "check_predictions"]

FLOAT32_TOLERANCE = 1e-6


@runtime_checkable
class Estimator(Protocol):
    """Whatever turns a prefix into a law of the next token.

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


def expect(estimators: Iterable[Estimator], sequences: int, length: int) -> None:
    """Tell estimators how much they will be asked for: those that have a method ``expect`` may prepare for it.

    Parameters
    ----------
    estimators : iterable of Estimator
    sequences, length : int
        About so many sequences of so many tokens, over all calls.
    """
    for estimator in estimators:
        told = getattr(estimator, "expect", None)
        if callable(told):
            told(sequences, length)


class ContractError(InputError):
    """An estimator that breaks the contract; the text names it and says how, in one line."""


class UnsupportedStates(InputError):
    """An estimator that does not exist for the number of states asked for."""


def check_predictions(
    predictions: Any,
    shape: tuple[int, int, int],
    name: str,
    tolerance: float = FLOAT32_TOLERANCE,
    place: Callable[[int], str] = "sequence {}".format,
) -> NDArray[np.float64]:
    """Return `predictions` if they are laws of the right shape.

    Parameters
    ----------
    predictions : object
        What an estimator returned.
    shape : tuple of int
        (N, T, K).
    name : str
        The estimator's name, for the message.
    tolerance : float
        How far a row's sum may be from 1.
    place : callable
        What to call the sequence with a given index, for the message.

    Returns
    -------
    ndarray of float64, shape (N, T, K)

    Raises
    ------
    ContractError
        If `predictions` is not a float64 array of that shape, or a row has a NaN, a negative entry, or does
        not sum to 1. The first offending row is named.
    """
    if not isinstance(predictions, np.ndarray):
        raise ContractError(
            f"{name}: predict_proba returned a {type(predictions).__name__}, not a NumPy array: "
            "return float64 of shape (N, T, K)"
        )
    if predictions.shape != shape:
        raise ContractError(
            f"{name}: predict_proba returned shape {predictions.shape} for {shape[0]} sequences of {shape[1]} "
            f"tokens and {shape[2]} states, not {shape}"
        )
    if predictions.dtype != np.float64:
        raise ContractError(
            f"{name}: predict_proba returned {predictions.dtype}, not float64: convert it before normalising"
        )
    # A NaN fails every comparison, so one pass over the sums finds NaN, inf and bad sums alike.
    with np.errstate(invalid="ignore"):
        off = ~(np.abs(sum_states(predictions) - 1.0) <= tolerance)
    if off.any() or predictions.min() < 0.0:
        bad = off | (predictions < 0.0).any(axis=-1)
        sequence, position = (int(i) for i in np.argwhere(bad)[0])
        row = predictions[sequence, position]
        fault = (
            "has a NaN" if np.isnan(row).any() else
            "has a negative entry" if (row < 0).any() else
            f"sums to {row.sum():.9g}, not 1"
        )  # fmt: skip
        raise ContractError(
            f"{name}: the prediction for {place(sequence)} at context length {position + 1} {fault}: "
            f"{np.array2string(row, precision=6, threshold=8, max_line_width=200)}"
        )
    return predictions


def check_estimator(estimator: object, n_states: int, *, tolerance: float = FLOAT32_TOLERANCE) -> None:
    """Hold an object to the Estimator contract on small random and degenerate sequences.

    Parameters
    ----------
    estimator : object
        The candidate.
    n_states : int
        K that it is meant for.
    tolerance : float
        How far row sums may be from 1, and predictions from those for another batch. 1e-6 suits float32
        models; the registry's own counting rules pass 1e-12.

    Raises
    ------
    ContractError
        In one line, the first thing that is broken: a missing attribute, the wrong `n_states`, a wrong shape or
        dtype, rows off the simplex, an input that was written to, an exception, or a prediction that changes
        from call to call, with a *later* token (both compared bitwise), with the number of later tokens, or
        with the other sequences of its batch.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> check_estimator(get("add-one"), 3)
    """
    name = getattr(estimator, "name", None)
    if not isinstance(name, str) or not name:
        raise ContractError(f"{estimator!r} has no name: set a non-empty string attribute `name`")
    if not callable(getattr(estimator, "predict_proba", None)):
        raise ContractError(f"{name}: has no method predict_proba(tokens)")
    own_states = getattr(estimator, "n_states", None)
    if own_states != n_states:
        raise ContractError(f"{name}: n_states is {own_states!r}, but {n_states} states were asked for")

    def predict(tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        given = tokens.copy()
        given.setflags(write=False)
        try:
            raw = estimator.predict_proba(given)  # type: ignore[attr-defined]
        except Exception as error:
            raise ContractError(
                f"{name}: predict_proba failed on read-only tokens of shape {tokens.shape}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not np.array_equal(given, tokens):
            raise ContractError(f"{name}: predict_proba writes to the tokens it is given: work on a copy")
        return check_predictions(raw, (*tokens.shape, n_states), name, tolerance).copy()

    rng = np.random.default_rng(0)
    tokens = rng.integers(0, n_states, size=(6, 24))
    tokens[0] = 0  # states that are never seen
    whole = predict(tokens)
    if (predict(tokens) != whole).any():
        raise ContractError(f"{name}: not deterministic: the same tokens are predicted differently a second time")
    for cut in (1, 2, 7, 23):
        changed = tokens.copy()
        changed[:, cut:] = (changed[:, cut:] + 1) % n_states
        differs = (predict(changed)[:, :cut] != whole[:, :cut]).any(axis=(0, 2))
        if differs.any():
            n = int(differs.argmax()) + 1
            raise ContractError(
                f"{name}: not causal: its prediction at context length {n} changes when only tokens after "
                f"position {cut} change"
            )
        apart = np.abs(predict(tokens[:, :cut]) - whole[:, :cut]).max()
        if apart > tolerance:
            raise ContractError(
                f"{name}: not causal: its predictions up to context length {cut} are {apart:.2g} apart when "
                "the tokens after it are cut off"
            )
    for row in (0, 3):
        apart = np.abs(predict(tokens[row : row + 1])[0] - whole[row]).max()
        if apart > tolerance:
            raise ContractError(
                f"{name}: not batch invariant: a sequence alone and in a batch of {len(tokens)} are predicted "
                f"{apart:.2g} apart"
            )
