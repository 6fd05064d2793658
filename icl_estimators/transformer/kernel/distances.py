"""Biases by distance, for contexts of any length."""

from __future__ import annotations

import torch
from torch import Tensor

from icl_estimators.transformer.positions import Far, far_distance

__all__ = ["lines"]


def lines(bias: Tensor, length: int, far: Far = None) -> Tensor:
    """Return what :func:`~icl_estimators.transformer.positions.bias_matrix` is made of, without the matrix.

    Parameters
    ----------
    bias : Tensor, shape (…, D)
        Trained biases.
    length : int
        T, the context to cover.
    far : "last", int or None
        The rule for positions beyond the trained length.

    Returns
    -------
    Tensor, shape (…, 1 or 2, max(D, T))
        For positions within the trained length, and for those beyond if there are some. What pads the first line is
        never read and within its range.

    Raises
    ------
    InputError
        If `far` is neither "last" nor a trained distance.

    Examples
    --------
    >>> lines(torch.tensor([1.0, 2.0, 3.0]), 5, far=1).tolist()
    [[1.0, 2.0, 3.0, 3.0, 3.0], [1.0, 2.0, 2.0, 2.0, 2.0]]
    """
    n_distances = bias.shape[-1]
    chosen = far_distance(far, n_distances)
    if length <= n_distances:
        return bias.unsqueeze(-2)
    return torch.stack([_filled(bias, length, n_distances - 1), _filled(bias, length, chosen)], dim=-2)


def _filled(bias: Tensor, length: int, distance: int) -> Tensor:
    """Return the biases up to a distance, and that one's for all that are farther."""
    rest = bias[..., distance, None].expand(*bias.shape[:-1], length - distance - 1)
    return torch.cat([bias[..., : distance + 1], rest], dim=-1)
