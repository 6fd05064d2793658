"""Pure statistics on arrays: streaming moments, clustered intervals, bands, paired differences."""

from icl_estimators.inference.bands import Band, band_note, simultaneous_band, sup_t_quantile
from icl_estimators.inference.differences import PairedDifferences, paired_differences, rao_blackwell_factors
from icl_estimators.inference.intervals import Intervals, mean_intervals, moment_notes, required_chains
from icl_estimators.inference.moments import Moments, PairMoments, chain_values, merge_in_order, with_mean
from icl_estimators.inference.proportions import proportion_intervals, wilson_limits
from icl_estimators.inference.ratios import RatioMoments, ratio_intervals

__all__ = [
    "Band",
    "Intervals",
    "Moments",
    "PairMoments",
    "PairedDifferences",
    "RatioMoments",
    "band_note",
    "chain_values",
    "mean_intervals",
    "merge_in_order",
    "moment_notes",
    "paired_differences",
    "proportion_intervals",
    "rao_blackwell_factors",
    "ratio_intervals",
    "required_chains",
    "simultaneous_band",
    "sup_t_quantile",
    "wilson_limits",
    "with_mean",
]
