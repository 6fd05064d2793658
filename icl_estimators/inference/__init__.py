"""Pure statistics on arrays: moments, clustered intervals, bands, differences, bias and variance, pseudo-counts."""

from icl_estimators.inference.attention import (
    NO_PREVIOUS_TOKEN,
    AttentionQuantities,
    attention_quantities,
    in_context_learning_score,
)
from icl_estimators.inference.band_coverage import MeasuredCoverage, band_note, measured_coverage
from icl_estimators.inference.bands import Band, simultaneous_band, sup_t_quantile
from icl_estimators.inference.bias_variance import BiasVariance, bias_variance
from icl_estimators.inference.bootstrap_pseudo_counts import bootstrap_pseudo_counts
from icl_estimators.inference.cells import NEEDS_TWO, Cells, CellTally, visit_probabilities
from icl_estimators.inference.checks import Check, agreement_check, zero_mean_check
from icl_estimators.inference.count_statistics import (
    GROUPINGS,
    CountStatistics,
    Grouping,
    Laws,
    PrefixGroups,
    PseudoCountMoments,
    count_statistics,
    fitted_values,
    prediction_sums,
    unseen_sums,
)
from icl_estimators.inference.differences import PairedDifferences, paired_differences, rao_blackwell_factors
from icl_estimators.inference.family_fit import Estimate, FamilyFit, ParameterFit, fit_families
from icl_estimators.inference.intervals import Intervals, mean_intervals, moment_notes, required_chains
from icl_estimators.inference.kl_bias_variance import KLBiasVariance, kl_bias_variance
from icl_estimators.inference.mean_ratios import MeanRatioMoments, mean_ratio_intervals
from icl_estimators.inference.moments import Moments, PairMoments, chain_values, merge_in_order, with_mean
from icl_estimators.inference.paired_pseudo_counts import (
    PairedPseudoCountMoments,
    PseudoCountDifference,
    pseudo_count_difference,
)
from icl_estimators.inference.pairwise import (
    IDENTICAL,
    PairComparisons,
    PairwiseMoments,
    compare_pairs,
    is_rounding,
    pairs_of_moments,
)
from icl_estimators.inference.prefixes import Prefixes
from icl_estimators.inference.proportions import proportion_intervals, wilson_limits
from icl_estimators.inference.pseudo_count import PseudoCount, fit_pseudo_count
from icl_estimators.inference.pseudo_count_seeds import SeedSpread, pseudo_count_seeds
from icl_estimators.inference.ratios import RatioMoments, ratio_intervals
from icl_estimators.inference.readout_floor import ReadoutFloor, readout_floor
from icl_estimators.inference.seeds import combined_margin, two_way_intervals
from icl_estimators.inference.signed_bias import BIN_EDGES, EMPTY_BIN, signed_bias_moments
from icl_estimators.inference.smoothing_families import FAMILIES, smoothing_family
from icl_estimators.inference.training_variance import TrainingVariance, training_variance
from icl_estimators.inference.training_variance_intervals import (
    squared_bias_intervals,
    training_variance_intervals,
)

__all__ = [
    "BIN_EDGES",
    "EMPTY_BIN",
    "FAMILIES",
    "GROUPINGS",
    "IDENTICAL",
    "NEEDS_TWO",
    "NO_PREVIOUS_TOKEN",
    "AttentionQuantities",
    "Band",
    "BiasVariance",
    "CellTally",
    "Cells",
    "Check",
    "CountStatistics",
    "Estimate",
    "FamilyFit",
    "Grouping",
    "Intervals",
    "KLBiasVariance",
    "Laws",
    "MeanRatioMoments",
    "MeasuredCoverage",
    "Moments",
    "PairComparisons",
    "PairMoments",
    "PairedDifferences",
    "PairedPseudoCountMoments",
    "PairwiseMoments",
    "ParameterFit",
    "PrefixGroups",
    "Prefixes",
    "PseudoCount",
    "PseudoCountDifference",
    "PseudoCountMoments",
    "RatioMoments",
    "ReadoutFloor",
    "SeedSpread",
    "TrainingVariance",
    "agreement_check",
    "attention_quantities",
    "band_note",
    "bias_variance",
    "bootstrap_pseudo_counts",
    "chain_values",
    "compare_pairs",
    "combined_margin",
    "count_statistics",
    "fit_families",
    "fit_pseudo_count",
    "fitted_values",
    "in_context_learning_score",
    "kl_bias_variance",
    "is_rounding",
    "mean_intervals",
    "mean_ratio_intervals",
    "measured_coverage",
    "merge_in_order",
    "moment_notes",
    "paired_differences",
    "pairs_of_moments",
    "prediction_sums",
    "proportion_intervals",
    "pseudo_count_difference",
    "pseudo_count_seeds",
    "rao_blackwell_factors",
    "ratio_intervals",
    "readout_floor",
    "required_chains",
    "signed_bias_moments",
    "simultaneous_band",
    "smoothing_family",
    "squared_bias_intervals",
    "sup_t_quantile",
    "training_variance",
    "training_variance_intervals",
    "two_way_intervals",
    "unseen_sums",
    "visit_probabilities",
    "wilson_limits",
    "with_mean",
    "zero_mean_check",
]
