"""Groups of 16 sequences, of one model or several: what Python calls of the compiled code.

Numba keeps compiled code in a cache on disk and looks for changes in the file of the function that is called, not in
those that it calls. So the functions here are made around a checksum of all files of the kernel, which goes into the
key of the cache.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from icl_estimators.compiling import compile_cached
from icl_estimators.transformer.kernel.lane_memory import load
from icl_estimators.transformer.kernel.lanes import LANES
from icl_estimators.transformer.kernel.passes import (
    Numbers,
    Scratch,
    Shapes,
    Sums,
    compiled,
    gradient_pass,
    logits_pass,
)

__all__ = ["gradient_groups", "group_count", "logits_groups", "shapes_for"]


def group_count(n_sequences: int) -> int:
    """Return how many groups hold so many sequences."""
    return -(-n_sequences // LANES)


def shapes_for(n_states: int) -> Shapes:
    """Return the numbers of rows for K states."""
    return Shapes(*((0,) * rows for rows in (1, n_states - 1, n_states, 2 * (n_states - 1))))


@compiled
def _lanes(n_positions: Any, n_rows: Any) -> Any:
    """Return memory for lanes, shape (positions, rows, LANES), where no vector straddles two lines of the cache."""
    size = n_positions * n_rows * LANES
    memory = np.zeros(size + LANES, dtype=np.float32)
    skipped = (-(memory.ctypes.data // 4)) % LANES
    return memory[skipped : skipped + size].reshape(n_positions, n_rows, LANES)


@compiled
def _scratch(length: Any, k: Any) -> Any:
    return Scratch(
        np.zeros((length + 1, LANES), dtype=np.int32),
        _lanes(length, 2 * k - 1),
        _lanes(length, 1),
        _lanes(length, 1),
        _lanes(length, k - 1),
        _lanes(1, k),
    )


@compiled
def _sums(lines: Any, n_distances: Any, k: Any) -> Any:
    m = 2 * (k - 1)
    return Sums(
        _lanes(1, 1),
        _lanes(lines, n_distances),
        _lanes(k, k),
        _lanes(m + 1, m),
        _lanes(lines, n_distances),
        _lanes(k, m + 1),
        _lanes(k, m),
    )


@compiled
def _model(numbers: Any, model: Any) -> Any:
    return Numbers(
        numbers.trained,
        numbers.occurrence[model],
        numbers.preference[model],
        numbers.query[model],
        numbers.bias[model],
        numbers.direct[model],
        numbers.induction[model],
    )


@compiled
def _add_lanes(lanes: Any, out: Any) -> None:
    """Write sums over lanes, in float64 and in their order."""
    for position in range(lanes.shape[0]):
        for row in range(lanes.shape[1]):
            total = 0.0
            for lane in range(LANES):
                total += lanes[position, row, lane]
            out[position, row] = total


def _entries(checksum: int) -> tuple[Callable[..., int], Callable[..., int]]:
    """Make the functions; both return the checksum, which ties them to it."""

    def gradient_groups(first: Any, last: Any, tokens: Any, numbers: Any, out: Any, shapes: Any) -> int:
        """Write loss and gradients of groups `first` to `last` − 1, counted through all models.

        Parameters
        ----------
        tokens : ndarray of int64, shape (S, B, T + 1)
        numbers : Numbers
            Of S models, for at least T distances.
        out : Sums of float64
            With leading axes (S, groups of a model).
        shapes : Shapes
        """
        batch, length = tokens.shape[1], tokens.shape[2] - 1
        n_groups = out.loss.shape[1]
        k, lines, n_distances = len(shapes.states), numbers.bias.shape[1], numbers.bias.shape[2]
        scratch = _scratch(length, k)
        share = _lanes(1, 1)
        for item in range(first, last):
            model, group = item // n_groups, item % n_groups
            for lane in range(LANES):
                share[0, 0, lane] = 1.0 / (batch * length) if group * LANES + lane < batch else 0.0
            sums = _sums(lines, n_distances, k)
            gradient_pass(
                tokens[model],
                group * LANES,
                load(share, 0, 0, shapes.one),
                _model(numbers, model),
                scratch,
                sums,
                shapes,
            )
            _add_lanes(sums.loss, out.loss[model, group])
            _add_lanes(sums.occurrence, out.occurrence[model, group])
            _add_lanes(sums.preference, out.preference[model, group])
            _add_lanes(sums.query, out.query[model, group])
            _add_lanes(sums.bias, out.bias[model, group])
            _add_lanes(sums.direct, out.direct[model, group])
            _add_lanes(sums.induction, out.induction[model, group])
        return checksum

    def logits_groups(first: Any, last: Any, tokens: Any, numbers: Any, out: Any, shapes: Any) -> int:
        """Write the logits of groups `first` to `last` − 1 of one model.

        Parameters
        ----------
        tokens : ndarray of int64, shape (N, T)
        numbers : Numbers
            Of one model, for at least T distances.
        out : ndarray of float32, shape (N, T, K)
        shapes : Shapes
        """
        scratch = _scratch(tokens.shape[1], len(shapes.states))
        for group in range(first, last):
            logits_pass(tokens, group * LANES, out, numbers, scratch, shapes)
        return checksum

    return compile_cached(gradient_groups), compile_cached(logits_groups)


def _checksum() -> int:
    checksum = 0
    for path in sorted(Path(__file__).parent.glob("*.py")):
        checksum = zlib.crc32(path.read_bytes(), checksum)
    return checksum


gradient_groups, logits_groups = _entries(_checksum())
