"""Effective smoothing: which pseudo-count, or which other smoothing rule, an estimator acts like."""

from icl_estimators.pseudo_counts.count_statistics import (
    GROUPINGS,
    CountStatistics,
    Grouping,
    Predictions,
    PrefixGroups,
    PseudoCountMoments,
    count_statistics,
    fitted_values,
    prediction_sums,
    unseen_sums,
)
from icl_estimators.pseudo_counts.families.fit import Estimate, FamilyFit, ParameterFit, fit_families
from icl_estimators.pseudo_counts.families.rules import FAMILIES, smoothing_family
from icl_estimators.pseudo_counts.fit import PseudoCount, fit_pseudo_count
from icl_estimators.pseudo_counts.paired import PairedPseudoCountMoments, PseudoCountDifference, pseudo_count_difference
from icl_estimators.pseudo_counts.prefixes import Prefixes
from icl_estimators.pseudo_counts.streaming import (
    PANEL_VISITS,
    SmoothingMoments,
    SmoothingPrefixes,
    SmoothingSums,
)
from icl_estimators.pseudo_counts.training_runs import SeedSpread, pseudo_count_seeds

__all__ = [
    "CountStatistics",
    "Estimate",
    "FAMILIES",
    "FamilyFit",
    "GROUPINGS",
    "Grouping",
    "Predictions",
    "PANEL_VISITS",
    "PairedPseudoCountMoments",
    "ParameterFit",
    "PrefixGroups",
    "Prefixes",
    "PseudoCount",
    "PseudoCountDifference",
    "PseudoCountMoments",
    "SeedSpread",
    "SmoothingMoments",
    "SmoothingPrefixes",
    "SmoothingSums",
    "count_statistics",
    "fit_families",
    "fit_pseudo_count",
    "fitted_values",
    "prediction_sums",
    "pseudo_count_difference",
    "pseudo_count_seeds",
    "smoothing_family",
    "unseen_sums",
]
