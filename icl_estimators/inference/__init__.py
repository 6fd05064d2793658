"""Generic statistics on arrays: streaming moments, intervals, bands, paired differences, bias and variance."""

from icl_estimators.inference.bands import Band, simultaneous_band, sup_t_quantile
from icl_estimators.inference.bias_variance import BiasVariance, KLBiasVariance, bias_variance, kl_bias_variance
from icl_estimators.inference.cells import Cells, CellTally
from icl_estimators.inference.checks import Check, agreement_check, zero_mean_check
from icl_estimators.inference.differences import PairedDifferences, paired_differences, rao_blackwell_factors
from icl_estimators.inference.intervals.mean import Intervals, mean_intervals, moment_notes, required_chains
from icl_estimators.inference.intervals.proportion import proportion_intervals, wilson_limits
from icl_estimators.inference.intervals.ratio import (
    MeanRatioMoments,
    RatioMoments,
    mean_ratio_intervals,
    ratio_intervals,
)
from icl_estimators.inference.intervals.two_way import combined_margin, two_way_intervals
from icl_estimators.inference.mixture import MixtureFit, fit_mixture, mixture_kl
from icl_estimators.inference.moments import Moments, PairMoments, chain_values, merge_in_order, with_mean
from icl_estimators.inference.pairwise import (
    PairComparisons,
    PairwiseMoments,
    compare_pairs,
    is_rounding,
    pairs_of_moments,
)
from icl_estimators.inference.signed_bias import BIN_EDGES, FEWEST_CHAINS, signed_bias_moments
from icl_estimators.inference.training_variance import (
    TrainingVariance,
    squared_bias_intervals,
    training_variance,
    training_variance_intervals,
)

__all__ = [
    "BIN_EDGES",
    "Band",
    "BiasVariance",
    "CellTally",
    "Cells",
    "Check",
    "FEWEST_CHAINS",
    "Intervals",
    "KLBiasVariance",
    "MeanRatioMoments",
    "MixtureFit",
    "Moments",
    "PairComparisons",
    "PairMoments",
    "PairedDifferences",
    "PairwiseMoments",
    "RatioMoments",
    "TrainingVariance",
    "agreement_check",
    "bias_variance",
    "chain_values",
    "combined_margin",
    "compare_pairs",
    "fit_mixture",
    "is_rounding",
    "kl_bias_variance",
    "mean_intervals",
    "mean_ratio_intervals",
    "merge_in_order",
    "mixture_kl",
    "moment_notes",
    "paired_differences",
    "pairs_of_moments",
    "proportion_intervals",
    "rao_blackwell_factors",
    "ratio_intervals",
    "required_chains",
    "signed_bias_moments",
    "simultaneous_band",
    "squared_bias_intervals",
    "sup_t_quantile",
    "training_variance",
    "training_variance_intervals",
    "two_way_intervals",
    "wilson_limits",
    "with_mean",
    "zero_mean_check",
]
