"""Pure statistics on arrays: streaming moments, clustered intervals, bands, differences, bias and variance."""

from icl_estimators.inference.attention import (
    NO_PREVIOUS_TOKEN,
    AttentionQuantities,
    attention_quantities,
    in_context_learning_score,
)
from icl_estimators.inference.bands import Band, band_note, simultaneous_band, sup_t_quantile
from icl_estimators.inference.bias_variance import BiasVariance, bias_variance
from icl_estimators.inference.cells import NEEDS_TWO, Cells, CellTally, visit_probabilities
from icl_estimators.inference.checks import Check, agreement_check, zero_mean_check
from icl_estimators.inference.differences import PairedDifferences, paired_differences, rao_blackwell_factors
from icl_estimators.inference.intervals import Intervals, mean_intervals, moment_notes, required_chains
from icl_estimators.inference.kl_bias_variance import KLBiasVariance, kl_bias_variance
from icl_estimators.inference.moments import Moments, PairMoments, chain_values, merge_in_order, with_mean
from icl_estimators.inference.proportions import proportion_intervals, wilson_limits
from icl_estimators.inference.ratios import RatioMoments, ratio_intervals
from icl_estimators.inference.readout_floor import ReadoutFloor, readout_floor
from icl_estimators.inference.seeds import two_way_intervals
from icl_estimators.inference.signed_bias import BIN_EDGES, EMPTY_BIN, signed_bias_moments
from icl_estimators.inference.training_variance import TrainingVariance, training_variance

__all__ = [
    "BIN_EDGES",
    "EMPTY_BIN",
    "NEEDS_TWO",
    "NO_PREVIOUS_TOKEN",
    "AttentionQuantities",
    "Band",
    "BiasVariance",
    "CellTally",
    "Cells",
    "Check",
    "Intervals",
    "KLBiasVariance",
    "Moments",
    "PairMoments",
    "PairedDifferences",
    "RatioMoments",
    "ReadoutFloor",
    "TrainingVariance",
    "agreement_check",
    "attention_quantities",
    "band_note",
    "bias_variance",
    "chain_values",
    "in_context_learning_score",
    "kl_bias_variance",
    "mean_intervals",
    "merge_in_order",
    "moment_notes",
    "paired_differences",
    "proportion_intervals",
    "rao_blackwell_factors",
    "ratio_intervals",
    "readout_floor",
    "required_chains",
    "signed_bias_moments",
    "simultaneous_band",
    "sup_t_quantile",
    "training_variance",
    "two_way_intervals",
    "visit_probabilities",
    "wilson_limits",
    "with_mean",
    "zero_mean_check",
]
