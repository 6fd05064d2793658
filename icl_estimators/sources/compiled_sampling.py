"""Compiled sampling: needs numba, and gives the same tokens as numpy, several times faster.

Tokens come from comparisons only, u ≥ an edge of the cumulative law. So the loop over time can be compiled directly.
At α = 1 most of the time is spent on inverting the Gamma distribution to the last bit. There, edges known to within a
margin are enough: if no uniform of a sequence is that close to an edge, its tokens are certain. The other sequences,
about one in a hundred thousand, are drawn exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icl_estimators.compiling import compile_cached
from icl_estimators.sources.prior import UNIFORMS_PER_ENTRY, dirichlet_rows
from icl_estimators.sources.sampling import ChainLaw, sample_batches
from icl_estimators.sources.streams import Purpose, Stream

__all__ = ["draw_tokens", "training_tokens"]

MARGIN = 1e-11
"""How near to an edge a uniform must not come; the edges are in error by less than a tenth of it."""

_SMALLEST_GAMMA = 1e-3  # below it, the equation that is solved loses digits to cancellation
_LARGEST_STEP = 1e-5  # relative, of the last of Halley's steps: the next would be of its cube's size
_ABREAST = 8  # chains that are walked together: a step of one waits for its last token, others need not


def draw_tokens(
    transition: NDArray[np.float64], start: NDArray[np.float64], uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Run chains by inverse transform, as :func:`icl_estimators.sources.sampling.draw_tokens` does.

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


def training_tokens(
    steps: Iterable[int], *, batch: int, length: int, law: ChainLaw, seed: int, purpose: Purpose = "training"
) -> NDArray[np.int64]:
    """Return the tokens of :func:`icl_estimators.sources.sampling.sample_batches`, without the chains.

    Returns
    -------
    ndarray of int64, shape (R, 1, T + 1)

    Raises
    ------
    InputError
        As :func:`icl_estimators.sources.sampling.sample_batches`.

    Examples
    --------
    >>> law = ChainLaw()
    >>> tokens = training_tokens([4, 7], batch=8, length=5, law=law, seed=0)
    >>> bool((tokens == sample_batches([4, 7], batch=8, length=5, law=law, seed=0).tokens).all())
    True
    """
    numbers = list(steps)
    start = law.first_token
    if law.concentration != 1.0 or start is None or not numbers:
        return sample_batches(
            numbers, batch=batch, length=length, law=law, seed=seed, purpose=purpose, draw=draw_tokens
        ).tokens
    k = law.n_states
    rows, along = Stream(seed, purpose, "rows"), Stream(seed, purpose, "tokens")
    tokens = np.empty((len(numbers), batch, length + 1), dtype=np.int64)
    for step, out in zip(numbers, tokens, strict=True):
        of_rows = rows.uniforms(step, 0, batch * k * k * UNIFORMS_PER_ENTRY).reshape(batch, k, k, UNIFORMS_PER_ENTRY)
        of_tokens = along.uniforms(step, 0, batch * (length + 1)).reshape(batch, length + 1)
        edges, certain = np.empty((batch, k + 1, k)), np.empty(batch, dtype=np.bool_)
        _near_edges(of_rows, start.cumsum(), edges, certain)
        _walk(edges, of_tokens, out, certain)
        if not certain.all():
            redo = np.flatnonzero(~certain)
            transition = dirichlet_rows(of_rows[redo], law.concentration)
            out[redo] = draw_tokens(transition, np.tile(start, (len(redo), 1)), of_tokens[redo, None])[:, 0]
    return tokens.reshape(-1, 1, length + 1)


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


def _edges(of_rows: Any, start_edges: Any, edges: Any, certain: Any) -> None:
    """Write each chain's edges at α = 1, the start law's last, and whether they are right to a tenth of MARGIN."""
    n_chains, k = of_rows.shape[:2]
    for chain in range(n_chains):
        sure = True
        for v in range(k):
            below = 0.0
            for w in range(k):
                # Gamma(2) times a uniform is Gamma(1). Gamma(2) at u solves x − log(1 + x) = −log(1 − u).
                level = -math.log1p(-of_rows[chain, v, w, 0])
                if level < 6.0:
                    root = math.sqrt(2.0 * level)
                    x = root * (1.0 + root * (1.0 / 3.0 + root * (1.0 / 36.0 - root / 270.0)))
                else:
                    x = level + math.log1p(level + math.log1p(level))
                step = 0.0
                for _ in range(2):
                    excess = x - math.log1p(x) - level
                    step = excess / (x / (1.0 + x) - 0.5 * excess / (x * (1.0 + x)))
                    x -= step
                sure &= x > _SMALLEST_GAMMA and abs(step) <= _LARGEST_STEP * x
                below += x * of_rows[chain, v, w, 1]
                edges[chain, v, w] = below
            for w in range(k):
                edges[chain, v, w] /= below
        for w in range(k):
            edges[chain, k, w] = start_edges[w]
        certain[chain] = sure


def _steps(edges: Any, of_tokens: Any, tokens: Any, certain: Any) -> None:
    """Draw a sequence of each chain; take back its certainty where a uniform comes too near to an edge."""
    n_chains, length = of_tokens.shape
    k = edges.shape[2]
    row = np.empty(_ABREAST, dtype=np.int64)
    for first in range(0, n_chains, _ABREAST):
        count = min(_ABREAST, n_chains - first)
        row[:] = k
        for t in range(length):
            for one in range(count):
                token, sure = 0, True
                for state in range(k - 1):
                    above = of_tokens[first + one, t] - edges[first + one, row[one], state]
                    token += above >= 0.0
                    sure &= abs(above) > MARGIN
                tokens[first + one, t] = token
                row[one] = token
                certain[first + one] &= sure


_run = compile_cached(_loop)
_near_edges = compile_cached(_edges)
_walk = compile_cached(_steps)
