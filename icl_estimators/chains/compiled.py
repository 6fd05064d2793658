"""The loop over time of a chain, compiled: needs numba, and gives the very tokens that numpy gives.

Only comparisons are made, of the same numbers in the same order, so which of the two is used is a matter of speed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from icl_estimators.compiling import compile_cached

__all__ = ["draw_tokens"]


def draw_tokens(
    transition: NDArray[np.float64], start: NDArray[np.float64], uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Run chains by inverse transform, as :func:`icl_estimators.chains.sampling.draw_tokens` does.

    Parameters
    ----------
    transition : ndarray of float64, shape (R, K, K)
    start : ndarray of float64, shape (R, K)
    uniforms : ndarray of float64, shape (R, S, L)

    Returns
    -------
    ndarray of int64, shape (R, S, L)
    """
    tokens = np.empty(uniforms.shape, dtype=np.int64)
    _run(transition.cumsum(axis=-1), start.cumsum(axis=-1), np.ascontiguousarray(uniforms), tokens)
    return tokens


def _loop(edges: Any, start_edges: Any, uniforms: Any, tokens: Any) -> None:
    n_chains, n_sequences, length = uniforms.shape
    for chain in range(n_chains):
        for sequence in range(n_sequences):
            row = start_edges[chain]
            for t in range(length):
                token = 0
                for state in range(len(row) - 1):
                    token += uniforms[chain, sequence, t] >= row[state]
                tokens[chain, sequence, t] = token
                row = edges[chain, token]


_run = compile_cached(_loop)
