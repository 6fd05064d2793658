"""Pointwise intervals: of means, ratios, proportions, and of a recipe's mean over training runs and chains."""

from icl_estimators.inference.intervals.mean import (
    Intervals,
    mean_intervals,
    moment_notes,
    required_chains,
)
from icl_estimators.inference.intervals.mean_ratio import (
    MeanRatioMoments,
    mean_ratio_intervals,
)
from icl_estimators.inference.intervals.proportion import (
    proportion_intervals,
    wilson_limits,
)
from icl_estimators.inference.intervals.ratio import (
    RatioMoments,
    ratio_intervals,
)
from icl_estimators.inference.intervals.two_way import (
    combined_margin,
    two_way_intervals,
)

__all__ = [
    "Intervals",
    "MeanRatioMoments",
    "RatioMoments",
    "combined_margin",
    "mean_intervals",
    "mean_ratio_intervals",
    "moment_notes",
    "proportion_intervals",
    "ratio_intervals",
    "required_chains",
    "two_way_intervals",
    "wilson_limits",
]
