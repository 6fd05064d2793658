"""Markov chains with unknown transition matrices: prior, start law, streams, samples, counts, exact laws."""

from icl_estimators.chains.counts import occurrence_counts, transition_counts
from icl_estimators.chains.enumeration import all_prefixes, check_prefix_budget, prefix_probabilities
from icl_estimators.chains.observed import ObservedSequences, elnino
from icl_estimators.chains.posterior import posterior_kl_floor, posterior_predictive
from icl_estimators.chains.prior import dirichlet_rows
from icl_estimators.chains.reading import read_sequences
from icl_estimators.chains.sampling import ChainLaw, Sample, sample_batch, sample_batches, sample_chains
from icl_estimators.chains.start import StartLaw, start_probabilities, stationary_distribution
from icl_estimators.chains.streams import Purpose, Stream

__all__ = [
    "ChainLaw",
    "ObservedSequences",
    "Purpose",
    "Sample",
    "StartLaw",
    "Stream",
    "all_prefixes",
    "check_prefix_budget",
    "dirichlet_rows",
    "elnino",
    "occurrence_counts",
    "posterior_kl_floor",
    "posterior_predictive",
    "prefix_probabilities",
    "read_sequences",
    "sample_batch",
    "sample_batches",
    "sample_chains",
    "start_probabilities",
    "stationary_distribution",
    "transition_counts",
]
