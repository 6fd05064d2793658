"""Names that are loaded when they are used (PEP 562), so that importing a package is fast."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["on_use"]


def on_use(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    homes : mapping of str to str
        Each public name's module.

    Examples
    --------
    >>> getattr_, dir_ = on_use("icl_estimators", {"InputError": "icl_estimators.validation"})
    >>> getattr_("InputError").__name__, dir_()
    ('InputError', ['InputError'])
    """

    def __getattr__(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(homes[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted(homes)

    return __getattr__, __dir__
