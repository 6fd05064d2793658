"""Your own sequences: how they are read, and the series that come with a library."""

from icl_estimators.sources.observed.reading import (
    SEPARATORS,
    find_separator,
    read_sequences,
    split_labels,
)
from icl_estimators.sources.observed.sequences import (
    DATASETS,
    ObservedSequences,
    dataset,
    elnino,
)

__all__ = [
    "DATASETS",
    "ObservedSequences",
    "SEPARATORS",
    "dataset",
    "elnino",
    "find_separator",
    "read_sequences",
    "split_labels",
]
