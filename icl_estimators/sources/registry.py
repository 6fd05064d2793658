"""Sources by name."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from icl_estimators.sources.source import Source
from icl_estimators.validation import InputError

__all__ = ["SOURCES", "get_source"]

_HERE = "icl_estimators.sources"

SOURCES: dict[str, str] = {
    "dirichlet": f"{_HERE}.sampling:ChainLaw",
}
"""Names to ``"module:factory"``. A factory takes what its signature names of `n_states`, `concentration`, `start`."""


def get_source(spec: str = "dirichlet", **options: Any) -> Source:
    """Make a source from its spec, ``name[:value…]``.

    Parameters
    ----------
    spec : str
        A name of :data:`SOURCES`; numbers after colons are its own parameters, in their order.
    **options
        `n_states`, `concentration`, `start`: each goes to factories that take it.

    Raises
    ------
    InputError
        If the name is unknown, a value is not a number, or the values are too many.

    Examples
    --------
    >>> get_source("dirichlet", n_states=2, start="stationary")
    ChainLaw(n_states=2, concentration=1.0, start='stationary')
    """
    name, *values = spec.split(":")
    if name not in SOURCES:
        raise InputError(f"unknown source {name!r}: choose from {', '.join(SOURCES)}")
    module, _, attribute = SOURCES[name].partition(":")
    factory = getattr(importlib.import_module(module), attribute)
    parameters = inspect.signature(factory).parameters
    own = [key for key in parameters if key not in ("n_states", "concentration", "start")]
    if len(values) > len(own):
        raise InputError(f"{spec!r}: {name} takes {len(own)} values after its name, not {len(values)}")
    try:
        numbers = {key: float(value) for key, value in zip(own, values, strict=False)}
    except ValueError:
        raise InputError(f"{spec!r}: the value after {name} must be a number") from None
    source: Source = factory(**numbers, **{key: value for key, value in options.items() if key in parameters})
    return source
