"""What an object that is no estimator, or breaks the contract, probably is, and how to mend it."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["misfit", "row_remedy", "training_remedy"]

_ROUNDING = 1e-3


def misfit(value: object) -> str | None:
    """Say what an object is instead of an estimator, and what to do; None if that cannot be told.

    Examples
    --------
    >>> misfit(int), misfit(len)
    ('is a class, not an object of it: give int(…)', 'is a function: call it, or give a spec that names it')
    """
    if inspect.isclass(value):
        return f"is a class, not an object of it: give {value.__name__}(…)"
    if _is_module(value) and not callable(getattr(value, "predict_proba", None)):
        return "is a plain torch module: wrap it, icl_estimators.from_torch(module, n_states=…)"
    if inspect.ismodule(value):
        return "is a Python module: name what it holds, as in module:attribute"
    if inspect.isroutine(value):
        return "is a function: call it, or give a spec that names it"
    return None


def row_remedy(row: NDArray[np.float64]) -> str:
    """Say what a row that is no law looks like; empty if it looks like nothing in particular.

    Parameters
    ----------
    row : ndarray of float64, shape (K,)

    Examples
    --------
    >>> row_remedy(np.log([0.25, 0.75]))
    ' (these look like log-probabilities: return their exponentials)'
    >>> row_remedy(np.array([1.2, -0.3, 4.0]))
    ' (these look like logits: return their softmax, taken in float64)'
    >>> row_remedy(np.array([0.3, 0.3]))
    ''
    """
    if not np.isfinite(row).all() and not np.isneginf(row[~np.isfinite(row)]).all():
        return ""
    if (row <= 0).all() and abs(float(np.exp(row).sum()) - 1.0) < _ROUNDING:
        return " (these look like log-probabilities: return their exponentials)"
    if (row < 0).any() and abs(float(row.sum()) - 1.0) > _ROUNDING:
        return " (these look like logits: return their softmax, taken in float64)"
    return ""


def training_remedy(estimator: object) -> str:
    """Say that dropout is on, if an estimator holds a torch module in training mode; else empty."""
    held: list[Any] = [estimator, *(vars(estimator).values() if hasattr(estimator, "__dict__") else ())]
    for value in held:
        if _is_module(value) and any(part.training and "Dropout" in type(part).__name__ for part in value.modules()):
            return f": its module {type(value).__name__} is in training mode with dropout on; call its eval() first"
    return ""


def _is_module(value: object) -> bool:
    torch = sys.modules.get("torch")  # without it, nothing is a module of it
    return torch is not None and isinstance(value, torch.nn.Module)
