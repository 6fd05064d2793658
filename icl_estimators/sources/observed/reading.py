"""Sequences from a text file: one sequence a line, a table with one observation a row, or FASTA."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Unpack

from icl_estimators.sources.observed.encoded import Encoded
from icl_estimators.sources.observed.fasta import is_fasta, read_fasta
from icl_estimators.sources.observed.lines import read_characters, read_lines
from icl_estimators.sources.observed.raw_text import RawText, read_text
from icl_estimators.sources.observed.reading_options import ReadingKeywords, ReadingOptions
from icl_estimators.sources.observed.sequences import ObservedSequences
from icl_estimators.sources.observed.states import observed_states
from icl_estimators.sources.observed.table import read_table

__all__ = ["read_sequences"]


def read_sequences(
    path: str | Path, *, warn: Callable[[str], None] = lambda line: None, **keywords: Unpack[ReadingKeywords]
) -> ObservedSequences:
    """Read sequences from a UTF-8 text file; ``-`` is standard input.

    A file that starts with ``>`` is FASTA. With a state column it is a table. Else it has one sequence a line, and the
    separator is decided once for the file: commas, semicolons or tabs if one of them occurs, else white space. What
    looks like something else is refused with its line.

    Parameters
    ----------
    path : str or Path
        A file, a named pipe, or ``-``.
    warn : callable
        Takes lines about what may be wrong with the labels.
    **keywords
        How to read it: the fields of :class:`icl_estimators.sources.observed.reading_options.ReadingOptions`.

    Raises
    ------
    InputError
        If the text cannot be read, is not clearly of one of these forms, or does not fit the options.
    """
    options = ReadingOptions(**keywords)
    return observed_states(_encoded(read_text(path), options), options, warn)


def _encoded(text: RawText, options: ReadingOptions) -> Encoded:
    if is_fasta(text) and options.state_column is None:
        return read_fasta(text, options)
    if options.state_column is not None:
        return read_table(text, options)
    return read_characters(text, options) if options.characters else read_lines(text, options)
