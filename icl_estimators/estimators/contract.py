"""Checks of the contract, for anything that claims to be an Estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icl_estimators.divergences import sum_states
from icl_estimators.estimators.base import ContractError
from icl_estimators.estimators.capabilities import FLOAT32_TOLERANCE, stated_tolerance
from icl_estimators.estimators.misfits import misfit, row_remedy, training_remedy
from icl_estimators.validation import positive_int

__all__ = ["CHECK_LENGTH", "check_estimator", "check_predictions"]

CHECK_LENGTH = 24
"""Tokens of the sequences that an estimator is checked on where no study says how many it will be asked about."""

_CHECK_TOKENS = 20_000  # of all sequences whose later tokens are replaced: every position up to 141 tokens
_CHECK_CELLS = 2_000_000  # probabilities that are asked for at once: 16 MB


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
        half = predictions.dtype.kind == "f" and predictions.dtype.itemsize < 4
        more = ", and state how closely half precision agrees with itself in an attribute `tolerance`" if half else ""
        raise ContractError(
            f"{name}: predict_proba returned {predictions.dtype}, not float64: convert it before normalising{more}"
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
            f"{np.array2string(row, precision=6, threshold=8, max_line_width=200)}{row_remedy(row)}"
        )
    return predictions


def check_estimator(
    estimator: object, n_states: int, *, length: int = CHECK_LENGTH, tolerance: float | None = None
) -> None:
    """Check an object against the Estimator contract on random and degenerate sequences.

    Parameters
    ----------
    estimator : object
        The candidate.
    n_states : int
        K that it is meant for.
    length : int
        T of the sequences: the longest that the estimator will be asked about, since a rule may break the contract at
        long contexts only.
    tolerance : float, optional
        How far predictions may be from those for another batch, and from those without the later tokens. By default
        what the estimator states (:class:`icl_estimators.estimators.StatesTolerance`), else 1e-6, which suits float32
        models; the registry's own counting rules pass 1e-12. Row sums may be as far from 1, but never more than 1e-6.

    Raises
    ------
    ContractError
        In one line, the first thing that is broken: a missing attribute, the wrong `n_states`, a stated tolerance out
        of range, a wrong shape or dtype, rows off the simplex, an input that was written to, an exception, or a
        prediction that changes from call to call, with a *later* token (both compared bitwise), with the number of
        later tokens, or with the other sequences of its batch.
    InputError
        If `length` is below 1.

    Notes
    -----
    Causality is checked at every position. For each c < T the tokens after c of two sequences are replaced, once
    by others throughout and once at random, and no prediction at a context length up to c may change in a single bit.
    They go through the estimator together, so that this costs a few calls. Beyond about 140 tokens not every c fits;
    then they are the first two, the last, and others evenly spaced.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> check_estimator(get("add-one"), 3)
    """
    name = getattr(estimator, "name", None)
    if (fault := misfit(estimator)) is not None:
        raise ContractError(f"{estimator!r:.80} {fault}".replace("\n", " "))
    if not isinstance(name, str) or not name:
        raise ContractError(f"{estimator!r} has no name: set a non-empty string attribute `name`")
    if not callable(getattr(estimator, "predict_proba", None)):
        raise ContractError(f"{name}: has no method predict_proba(tokens)")
    own_states = getattr(estimator, "n_states", None)
    if own_states != n_states:
        raise ContractError(f"{name}: n_states is {own_states!r}, but {n_states} states were asked for")
    length = positive_int(length, "length")
    allowed = stated_tolerance(estimator) if tolerance is None else tolerance
    off_simplex = min(allowed, FLOAT32_TOLERANCE)

    def predict(tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        given = tokens.copy()
        given.setflags(write=False)
        try:
            raw = estimator.predict_proba(given)  # type: ignore[attr-defined]
        except (Exception, SystemExit) as error:
            raise ContractError(
                f"{name}: predict_proba failed on read-only tokens of shape {tokens.shape}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not np.array_equal(given, tokens):
            raise ContractError(f"{name}: predict_proba writes to the tokens it is given: work on a copy")
        return check_predictions(raw, (*tokens.shape, n_states), name, off_simplex).copy()

    def apart(first: NDArray[np.float64], second: NDArray[np.float64]) -> str | None:
        distance = float(np.abs(first - second).max())
        if distance <= allowed:
            return None
        return f"{distance:.2g} apart" + ("" if allowed == FLOAT32_TOLERANCE else f" (tolerance {allowed:g})")

    rng = np.random.default_rng(0)
    fit_at_once = _CHECK_CELLS // (length * n_states)
    tokens = rng.integers(0, n_states, size=(min(6, max(2, fit_at_once)), length))
    tokens[0] = 0  # states that are never seen
    whole = predict(tokens)
    if (predict(tokens) != whole).any():
        raise ContractError(
            f"{name}: not deterministic: the same tokens are predicted differently a second time"
            f"{training_remedy(estimator)}"
        )

    def check_causality(base: NDArray[np.int64], predicted: NDArray[np.float64], cuts: NDArray[np.int64]) -> None:
        """Replace the tokens of each row after its cut."""
        after = np.arange(length) >= cuts[:, None]
        at_random = rng.integers(0, n_states, size=base.shape)
        for replacement in ((base + 1) % n_states, at_random):
            changed = predict(np.where(after, replacement, base))
            differs = (changed != predicted).any(axis=-1) & ~after
            if differs.any():
                row, position = (int(i) for i in np.argwhere(differs)[0])
                raise ContractError(
                    f"{name}: not causal: its prediction at context length {position + 1} changes when only tokens "
                    f"after position {cuts[row]} change"
                )

    cuts = _change_points(length)
    for cut in [cut for cut in (1, 2, 7, length // 2, length - 1) if 0 < cut < length]:
        check_causality(tokens, whole, np.full(len(tokens), cut))
        distance = apart(predict(tokens[:, :cut]), whole[:, :cut])
        if distance:
            raise ContractError(
                f"{name}: not causal: its predictions up to context length {cut} are {distance} when "
                "the tokens after it are cut off"
            )
    for row in {0, len(tokens) // 2}:
        distance = apart(predict(tokens[row : row + 1])[0], whole[row])
        if distance:
            raise ContractError(
                f"{name}: not batch invariant: a sequence alone and in a batch of {len(tokens)} are predicted "
                f"{distance}"
            )
    size = max(1, min(len(cuts), fit_at_once))
    for first in range(0, len(cuts), size):
        batch = cuts[first : first + size]
        base = rng.integers(0, n_states, size=(len(batch), length))
        check_causality(base, predict(base), batch)


def _change_points(length: int) -> NDArray[np.int64]:
    """Return after how many of T tokens others are put in: every number where they are few, else some of them."""
    most = max(8, _CHECK_TOKENS // length)
    if length - 1 <= most:
        return np.arange(1, length)
    spread = np.linspace(1, length - 1, most - 1).round().astype(np.int64)
    return np.unique([2, *spread])
