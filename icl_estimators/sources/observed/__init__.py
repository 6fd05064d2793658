"""Your own sequences: how they are read, and the series that come with a library."""

from icl_estimators.sources.observed.labels import (
    SEPARATORS,
    find_separator,
    split_labels,
)
from icl_estimators.sources.observed.reading import read_sequences
from icl_estimators.sources.observed.reading_options import ReadingOptions
from icl_estimators.sources.observed.sequences import (
    DATASETS,
    ObservedSequences,
    dataset,
    elnino,
)

__all__ = [
    "DATASETS",
    "SEPARATORS",
    "ObservedSequences",
    "ReadingOptions",
    "dataset",
    "elnino",
    "find_separator",
    "read_sequences",
    "split_labels",
]
