"""Compiled code, where numba is there: kept on disk where that can be, and never in the way.

numba keeps what it has compiled beside the source or, where that cannot be written to, in the user's cache folder. If
neither works, or what lies there cannot be read, code is compiled anew in each process.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

__all__ = ["compile_cached", "numba_is_there"]


@functools.lru_cache(maxsize=1)
def numba_is_there() -> bool:
    """Return whether numba is installed, works with this numpy and may compile."""
    try:
        import numba
    except ImportError:
        return False
    return not getattr(numba.config, "DISABLE_JIT", 0)


def compile_cached(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is compiled when it is first called, and runs without Python's lock.

    Parameters
    ----------
    function : callable
        In numba's subset of Python; raises nothing.
    """
    from numba import njit

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        kept = njit(cache=True, **options)(function)
    except RuntimeError:  # no place to keep it
        kept = None
    fresh = functools.lru_cache(maxsize=1)(lambda: njit(**options)(function))

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        nonlocal kept
        if kept is not None:
            try:
                return kept(*arguments)
            except (OSError, EOFError, pickle.UnpicklingError):  # the disk is full, or its files are not ours
                kept = None
        return fresh()(*arguments)

    call.stats = lambda: None if kept is None else kept.stats  # type: ignore[attr-defined]
    return call
