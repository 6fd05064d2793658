"""Relative distances: one bias for each, and a stated rule for distances that training never met.

The bias of a distance is trained only by pairs of positions that far apart, and the farthest distance of all
by one pair in each sequence: the last few are hardly trained and drift. So a context longer than the
trained one does not reuse the last bias unless it is asked to, but that of a distance which training has
pinned down.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from icl_estimators.validation import InputError, positive_int

__all__ = ["Far", "distance_bias", "far_distance", "toeplitz"]

Far = Literal["last"] | int | None
"""Which trained distance stands in for those beyond: the last, a number, or None for the default."""


def far_distance(far: Far, n_distances: int) -> int:
    """Return the trained distance whose bias every distance ≥ `n_distances` reuses.

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


def distance_bias(bias: Tensor, length: int, far: Far = None) -> Tensor:
    """Return the biases of distances 0 … `length` − 1.

    Parameters
    ----------
    bias : Tensor, shape (…, D)
        Trained biases of distances 0 … D − 1.
    length : int
        T, the context to cover; longer than D is allowed.
    far : Far
        The rule for distances ≥ D; has no effect where T ≤ D.

    Returns
    -------
    Tensor, shape (…, T)

    Raises
    ------
    InputError
        As :func:`far_distance` does.

    Examples
    --------
    >>> distance_bias(torch.arange(5.0), 8).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 3.0, 3.0, 3.0]
    """
    n_distances = bias.shape[-1]
    chosen = far_distance(far, n_distances)
    if length <= n_distances:
        return bias[..., :length]
    beyond = bias[..., chosen, None].expand(*bias.shape[:-1], length - n_distances)
    return torch.cat([bias, beyond], dim=-1)


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
