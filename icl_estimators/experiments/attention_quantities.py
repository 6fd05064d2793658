"""Where two layers of attention look, at each context length, beside what chance would give.

With t_1 … t_n read, the induction circuit asks of layer 1 that a position look at the one before it, and of
layer 2 that it look at positions whose previous token equals the current one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import InputError

__all__ = ["AttentionQuantities", "attention_quantities", "in_context_learning_score"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class AttentionQuantities:
    """Attention masses of N sequences at each context length, each of shape (N, T) and between 0 and 1.

    Attributes
    ----------
    previous_token_mass : ndarray of float64
        Layer 1, from position n to n − 1. NaN at n = 1, where there is none.
    self_mass : ndarray of float64
        Layer 1, from position n to itself.
    match_mass : ndarray of float64
        Layer 2, from position n to the positions j with 2 ≤ j ≤ n and t_{j−1} = t_n; 0 where there are none.
    match_mass_chance : ndarray of float64
        What uniform attention over the n positions would put there: their number over n; 0 where there are none.
    """

    previous_token_mass: Array
    self_mass: Array
    match_mass: Array
    match_mass_chance: Array


def attention_quantities(
    layer1: NDArray[np.floating], layer2: NDArray[np.floating], tokens: NDArray[np.int64]
) -> AttentionQuantities:
    """Return the attention quantities of each sequence at each context length.

    Parameters
    ----------
    layer1, layer2 : ndarray of float, shape (N, T, T)
        ``[i, n-1, j-1]`` is the weight that position n puts on position j. Columns of a sentinel are left out,
        so that rows may sum to less than 1.
    tokens : ndarray of int64, shape (N, T)

    Returns
    -------
    AttentionQuantities

    Raises
    ------
    InputError
        If the shapes do not fit together.

    Notes
    -----
    All matches count, as in the prefix-matching score of Olsson et al. (2022), and mass and chance are averaged
    over *all* sequences, those without a match included: a sequence that has none at n adds 0 to both. For
    chains with K = 3, α = 1 the average chance is then 0.26, 0.34, 0.37, 0.39, 0.40 at n = 3, 6, 12, 24, 50.

    Examples
    --------
    >>> uniform = np.tril(np.ones((4, 4)))[None] / np.arange(1, 5)[:, None]
    >>> result = attention_quantities(uniform, uniform, np.array([[0, 1, 0, 0]]))
    >>> result.match_mass.round(3).tolist(), result.match_mass_chance.round(3).tolist()
    ([[0.0, 0.0, 0.333, 0.5]], [[0.0, 0.0, 0.333, 0.5]])
    """
    n_sequences, length = tokens.shape
    for name, weights in (("layer1", layer1), ("layer2", layer2)):
        if weights.shape != (n_sequences, length, length):
            raise InputError(f"{name} must have shape {(n_sequences, length, length)}, not {weights.shape}")
    previous = np.full((n_sequences, length), np.nan)
    previous[:, 1:] = np.diagonal(layer1, offset=-1, axis1=1, axis2=2)
    own = np.diagonal(layer1, axis1=1, axis2=2).astype(np.float64)
    match = tokens[:, :, None] == tokens[:, None, :-1]  # (N, T, T-1): is position j = 2 … T preceded by t_n?
    match &= np.tri(length, length - 1, k=-1, dtype=bool)  # j ≤ n
    mass = np.where(match, layer2[:, :, 1:], 0.0).sum(axis=2, dtype=np.float64)
    chance = match.sum(axis=2) / np.arange(1, length + 1)
    return AttentionQuantities(previous, own, mass, chance)


def in_context_learning_score(log_loss: Array) -> Array:
    """Return the loss at context length T minus the loss at ⌈T/10⌉, in nats, shape (…, T) → (…,).

    The in-context-learning score of Olsson et al. (2022), who take the 500th and the 50th token: negative where
    a longer context helps.

    Raises
    ------
    InputError
        If T < 2, so that there is nothing to compare.

    Examples
    --------
    >>> round(float(in_context_learning_score(np.linspace(1.0, 0.5, 100))), 4)
    -0.4545
    """
    length = log_loss.shape[-1]
    if length < 2:
        raise InputError(f"an in-context-learning score needs at least 2 context lengths, not {length}")
    return np.asarray(log_loss[..., -1] - log_loss[..., -(-length // 10) - 1])
