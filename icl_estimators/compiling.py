"""Compile functions with numba, if it is installed, and keep the result on disk, if that is possible.

numba keeps compiled code beside the source or, if that folder is read-only, in the user's cache folder. If neither can
be written to or the files cannot be read, each process compiles again.
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
