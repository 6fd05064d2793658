"""Smoothing rules with a few parameters, fitted to an estimator's predictions."""

from icl_estimators.pseudo_counts.families.fit import (
    Estimate,
    FamilyFit,
    ParameterFit,
    fit_families,
)
from icl_estimators.pseudo_counts.families.intervals import (
    ProfileScore,
    Range,
    score_interval,
)
from icl_estimators.pseudo_counts.families.objective import (
    EDGE,
    Coordinates,
    FamilyMinimum,
    block_values,
    bounds,
    minimise,
    natural,
    newton_step,
    score_coefficients,
)
from icl_estimators.pseudo_counts.families.rules import (
    FAMILIES,
    Family,
    Parameter,
    Weights,
    smoothing_family,
)

__all__ = [
    "Coordinates",
    "EDGE",
    "Estimate",
    "FAMILIES",
    "Family",
    "FamilyFit",
    "FamilyMinimum",
    "Parameter",
    "ParameterFit",
    "ProfileScore",
    "Range",
    "Weights",
    "block_values",
    "bounds",
    "fit_families",
    "minimise",
    "natural",
    "newton_step",
    "score_coefficients",
    "score_interval",
    "smoothing_family",
]
