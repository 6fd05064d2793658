"""Estimators of the next token: one interface, one small module each, one registry."""

from icl_estimators.estimators.base import (
    CHECK_LENGTH,
    ContractError,
    Estimator,
    StatesTolerance,
    UnsupportedStates,
    check_estimator,
    check_predictions,
    expect,
    stated_tolerance,
    stated_tolerances,
    tolerance_lines,
)
from icl_estimators.estimators.registry import DEFAULT_SPECS, REGISTRY, get, get_all, split_specs

__all__ = [
    "CHECK_LENGTH",
    "DEFAULT_SPECS",
    "REGISTRY",
    "ContractError",
    "Estimator",
    "StatesTolerance",
    "UnsupportedStates",
    "check_estimator",
    "check_predictions",
    "expect",
    "get",
    "get_all",
    "split_specs",
    "stated_tolerance",
    "stated_tolerances",
    "tolerance_lines",
]
