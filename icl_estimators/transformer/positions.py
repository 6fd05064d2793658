"""Relative distances: one bias for each, and a stated rule for contexts longer than those of training.

The bias of a distance is trained only by pairs of positions that far apart, and the farthest distance of all
by one pair in each sequence: the last few are hardly trained and drift, up to where layer 1 looks at the
first token instead of the previous one. So a position beyond the trained length does not use them: from
there, whatever is farther away than a distance that training has pinned down has that distance's bias.
Positions within the trained length are left as they were trained, however many tokens follow.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from icl_estimators.validation import InputError, positive_int

__all__ = ["Far", "bias_matrix", "far_distance", "toeplitz"]

Far = Literal["last"] | int | None
"""Which trained distance replaces those beyond it: the last, a number, or None for the default."""


def far_distance(far: Far, n_distances: int) -> int:
    """Return the distance whose bias replaces all farther ones, at positions beyond the trained length.

    Parameters
    ----------
    far : "last", int or None
        None is the distance at 60 % of the trained ones: 60 of 100.
    n_distances : int
        T: distances 0 … T − 1 have a bias of their own.

    Raises
    ------
    InputError
        If `far` is neither "last" nor a trained distance.

    Examples
    --------
    >>> far_distance(None, 100), far_distance("last", 100), far_distance(None, 1)
    (60, 99, 0)
    """
    if far is None:
        return min(n_distances - 1, 3 * n_distances // 5)
    if far == "last":
        return n_distances - 1
    if isinstance(far, str):
        raise InputError(f"far must be 'last' or a distance from 0 to {n_distances - 1}, not {far!r}")
    distance = positive_int(far, "far", at_least=0)
    if distance >= n_distances:
        raise InputError(f"far must be a trained distance, from 0 to {n_distances - 1}, not {distance}")
    return distance


class _Toeplitz(torch.autograd.Function):
    """Indexing by distance, with a gradient that sums diagonals by a view instead of a scatter."""

    @staticmethod
    def forward(ctx: Any, bias: Tensor, above: float) -> Tensor:
        length = bias.shape[-1]
        upper = bias.new_full((*bias.shape[:-1], length - 1), above)
        # Read from T − 1 − i on, the line (r_{T−1} … r_0, above …) is row i.
        return torch.cat([bias.flip(-1), upper], dim=-1).unfold(-1, length, 1).flip(-2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        length = gradient.shape[-1]
        # Pad each row to 2T and read the lot with rows of 2T − 1: row i moves i to the right, and what was
        # the diagonal of distance r becomes the column T − 1 + r.
        padded = torch.nn.functional.pad(gradient.flip(-1), (0, length)).flatten(-2)
        skewed = padded[..., :-length].unflatten(-1, (length, 2 * length - 1))
        return skewed.sum(dim=-2)[..., length - 1 :], None


def toeplitz(bias: Tensor, above: float) -> Tensor:
    """Return the matrix with ``bias[..., i − j]`` at (i, j), j ≤ i, and `above` where j > i.

    Parameters
    ----------
    bias : Tensor, shape (…, T)
    above : float
        −inf for scores, 0 for weights.

    Returns
    -------
    Tensor, shape (…, T, T)

    Examples
    --------
    >>> toeplitz(torch.tensor([1.0, 2.0, 3.0]), 0.0).tolist()
    [[1.0, 0.0, 0.0], [2.0, 1.0, 0.0], [3.0, 2.0, 1.0]]
    """
    result: Tensor = _Toeplitz.apply(bias, above)
    return result


def bias_matrix(bias: Tensor, length: int, above: float, far: Far = None) -> Tensor:
    """Return the bias of every query position i and key position j, for a context of any length.

    Parameters
    ----------
    bias : Tensor, shape (…, D)
        Trained biases of distances 0 … D − 1.
    length : int
        T, the context to cover.
    above : float
        The value where j > i: −inf for scores, 0 for weights.
    far : Far
        The rule for positions i ≥ D, where distances beyond `far` take its bias; has no effect where T ≤ D.

    Returns
    -------
    Tensor, shape (…, T, T)

    Raises
    ------
    InputError
        As :func:`far_distance` does.

    Examples
    --------
    >>> bias_matrix(torch.tensor([1.0, 2.0, 3.0]), 5, above=0.0, far=1).tolist()[2:]
    [[3.0, 2.0, 1.0, 0.0, 0.0], [2.0, 2.0, 2.0, 1.0, 0.0], [2.0, 2.0, 2.0, 2.0, 1.0]]
    """
    n_distances = bias.shape[-1]
    chosen = far_distance(far, n_distances)
    if length <= n_distances:
        return toeplitz(bias[..., :length], above)
    within = torch.nn.functional.pad(toeplitz(bias, above), (0, length - n_distances), value=above)  # (…, D, T)
    stand_in = bias[..., chosen, None].expand(*bias.shape[:-1], length - chosen - 1)
    beyond = toeplitz(torch.cat([bias[..., : chosen + 1], stand_in], dim=-1), above)[..., n_distances:, :]
    return torch.cat([within, beyond], dim=-2)
