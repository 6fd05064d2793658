"""Markov chains with unknown transition matrices: prior, start law, streams, samples, counts, exact laws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icl_estimators.lazy import on_use

if TYPE_CHECKING:
    from icl_estimators.sources.counts import context_counts, occurrence_counts, recency_counts, transition_counts
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
    "context_counts",
    "dirichlet_rows",
    "elnino",
    "get_source",
    "occurrence_counts",
    "posterior_kl_floor",
    "posterior_predictive",
    "read_sequences",
    "recency_counts",
    "sample_batch",
    "sample_batches",
    "sample_chains",
    "start_probabilities",
    "stationary_distribution",
    "transition_counts",
    "visit_probabilities",
]

# Loaded on use, so that the names of start laws are known without SciPy.
_HOMES = {
    "ChainLaw": "icl_estimators.sources.sampling",
    "DirichletPosterior": "icl_estimators.sources.posterior",
    "ObservedSequences": "icl_estimators.sources.observed.sequences",
    "Posterior": "icl_estimators.sources.source",
    "Purpose": "icl_estimators.sources.streams",
    "SOURCES": "icl_estimators.sources.registry",
    "START_LAWS": "icl_estimators.sources.start",
    "Sample": "icl_estimators.sources.source",
    "Source": "icl_estimators.sources.source",
    "StartLaw": "icl_estimators.sources.start",
    "Stream": "icl_estimators.sources.streams",
    "all_prefixes": "icl_estimators.sources.enumeration",
    "check_prefix_budget": "icl_estimators.sources.enumeration",
    "context_counts": "icl_estimators.sources.counts",
    "dirichlet_rows": "icl_estimators.sources.prior",
    "elnino": "icl_estimators.sources.observed.sequences",
    "get_source": "icl_estimators.sources.registry",
    "occurrence_counts": "icl_estimators.sources.counts",
    "posterior_kl_floor": "icl_estimators.sources.posterior",
    "posterior_predictive": "icl_estimators.sources.posterior",
    "read_sequences": "icl_estimators.sources.observed.reading",
    "recency_counts": "icl_estimators.sources.counts",
    "sample_batch": "icl_estimators.sources.sampling",
    "sample_batches": "icl_estimators.sources.sampling",
    "sample_chains": "icl_estimators.sources.sampling",
    "start_probabilities": "icl_estimators.sources.start",
    "stationary_distribution": "icl_estimators.sources.start",
    "transition_counts": "icl_estimators.sources.counts",
    "visit_probabilities": "icl_estimators.sources.start",
}
__getattr__, __dir__ = on_use(__name__, _HOMES)
