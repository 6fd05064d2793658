"""Which options an estimator takes. An option that no estimator takes is an error."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable

from icl_estimators.estimators.registry import DEFAULT_SPECS, REGISTRY, parse_spec
from icl_estimators.validation import InputError

__all__ = ["require_use", "takes"]


def takes(spec: str, option: str) -> bool:
    """Say whether what a spec names takes an argument such as ``concentration`` or ``device``.

    A missing module or attribute counts as taking it; the error is raised when the estimator is made.

    Examples
    --------
    >>> takes("bayes", "concentration"), takes("add-one", "concentration")
    (True, False)
    """
    parsed = parse_spec(spec)
    place = REGISTRY.get(parsed.head, f"{parsed.head}:{parsed.value}")
    module, _, attribute = place.partition(":")
    try:
        target = getattr(importlib.import_module(module), attribute)
    except Exception:
        return True
    if not inspect.isclass(target) and hasattr(target, "predict_proba"):
        return False  # the object already exists
    try:
        return option in inspect.signature(target).parameters
    except (TypeError, ValueError):
        return False


def require_use(specs: Iterable[str] | None, *, checkpoints: bool, device: str, dashes: str = "") -> None:
    """Refuse a checkpoint or a device that no estimator uses.

    Parameters
    ----------
    specs : iterable of str or None
        All that are made from specs, the reference included; None is the default list.
    checkpoints : bool
        Whether checkpoints are given.
    device : str
        The device that is asked for; the CPU is always used.
    dashes : str
        ``--`` if they are given as flags; messages then use the flags' names.

    Raises
    ------
    InputError
        If checkpoints are given and none of the specs is `transformer`, or another device is asked for and none takes
        one.

    Examples
    --------
    >>> require_use(["add-one", "transformer"], checkpoints=True, device="cpu")
    """
    named = list(dict.fromkeys(DEFAULT_SPECS if specs is None else specs))
    those = f"which is not among the named estimators ({', '.join(named) or 'none'}): name it too, or leave"
    if checkpoints and not any(parse_spec(spec).head == "transformer" for spec in named):
        flag, verb = ("--checkpoint", "is") if dashes else ("checkpoints", "are")
        raise InputError(f"{flag} {verb} for transformer, {those} {flag} out")
    if device != "cpu" and not any(takes(spec, "device") for spec in named):
        raise InputError(f"{dashes}device {device} is for transformer, {those} {dashes}device out")
