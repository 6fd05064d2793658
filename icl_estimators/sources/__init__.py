"""Markov chains with unknown transition matrices: prior, start law, streams, samples, counts, exact laws."""

from icl_estimators.sources.counts import occurrence_counts, transition_counts
from icl_estimators.sources.enumeration import all_prefixes, check_prefix_budget
from icl_estimators.sources.observed.reading import read_sequences
from icl_estimators.sources.observed.sequences import ObservedSequences, elnino
from icl_estimators.sources.posterior import DirichletPosterior, posterior_kl_floor, posterior_predictive
from icl_estimators.sources.prior import dirichlet_rows
from icl_estimators.sources.registry import SOURCES, get_source
from icl_estimators.sources.sampling import ChainLaw, sample_batch, sample_batches, sample_chains
from icl_estimators.sources.source import Posterior, Sample, Source
from icl_estimators.sources.start import (
    START_LAWS,
    StartLaw,
    start_probabilities,
    stationary_distribution,
    visit_probabilities,
)
from icl_estimators.sources.streams import Purpose, Stream

__all__ = [
    "SOURCES",
    "START_LAWS",
    "ChainLaw",
    "DirichletPosterior",
    "ObservedSequences",
    "Posterior",
    "Purpose",
    "Sample",
    "Source",
    "StartLaw",
    "Stream",
    "all_prefixes",
    "check_prefix_budget",
    "dirichlet_rows",
    "elnino",
    "get_source",
    "occurrence_counts",
    "posterior_kl_floor",
    "posterior_predictive",
    "read_sequences",
    "sample_batch",
    "sample_batches",
    "sample_chains",
    "start_probabilities",
    "stationary_distribution",
    "transition_counts",
    "visit_probabilities",
]
