"""Estimators of the next token: one interface, one small module each, one registry."""

from icl_estimators.estimators.base import ContractError, Estimator, UnsupportedStates
from icl_estimators.estimators.capabilities import (
    Expects,
    HasAttention,
    HasFolded,
    ReadFromFile,
    ReadsWindow,
    RunsOnDevice,
    RunsOnEngine,
    StatesTolerance,
    TrainingRun,
    expect,
    stated_tolerance,
    stated_tolerances,
    tolerance_lines,
)
from icl_estimators.estimators.contract import CHECK_LENGTH, check_estimator, check_predictions
from icl_estimators.estimators.registry import (
    DEFAULT_SPECS,
    REGISTRY,
    family_of,
    get,
    get_all,
    is_rule,
    rules_record,
    split_specs,
)

__all__ = [
    "CHECK_LENGTH",
    "DEFAULT_SPECS",
    "REGISTRY",
    "ContractError",
    "Estimator",
    "Expects",
    "HasAttention",
    "HasFolded",
    "ReadFromFile",
    "ReadsWindow",
    "RunsOnDevice",
    "RunsOnEngine",
    "StatesTolerance",
    "TrainingRun",
    "UnsupportedStates",
    "check_estimator",
    "check_predictions",
    "expect",
    "family_of",
    "get",
    "get_all",
    "is_rule",
    "rules_record",
    "split_specs",
    "stated_tolerance",
    "stated_tolerances",
    "tolerance_lines",
]
