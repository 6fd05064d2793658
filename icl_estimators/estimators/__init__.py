"""Estimators of the next token: one interface, one small module each, one registry."""

from icl_estimators.estimators.base import (
    ContractError,
    Estimator,
    UnsupportedStates,
    check_estimator,
    check_predictions,
    expect,
)
from icl_estimators.estimators.registry import DEFAULT_SPECS, REGISTRY, get, get_all, split_specs

__all__ = [
    "DEFAULT_SPECS",
    "REGISTRY",
    "ContractError",
    "Estimator",
    "UnsupportedStates",
    "check_estimator",
    "check_predictions",
    "expect",
    "get",
    "get_all",
    "split_specs",
]
