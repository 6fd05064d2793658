"""Lists, arrays, Series and DataFrames as numbered labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icl_estimators.sources.observed.encoded import Encoded
from icl_estimators.sources.observed.grouping import in_sequences, ranks_of_text
from icl_estimators.sources.observed.labels import few
from icl_estimators.sources.observed.python_labels import numbered, text_of
from icl_estimators.validation import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["encoded_data"]


def encoded_data(data: Any, name: str, columns: Mapping[str, Hashable], *, characters: bool = False) -> Encoded:
    """Number the labels of data that are in memory.

    Parameters
    ----------
    data : list, mapping, ndarray, Series or DataFrame
    name : str
    columns : mapping
        The columns of a DataFrame: `state_column`, and perhaps `id_column` and `order_column`.
    characters : bool
        Each text in a list is a sequence of characters.

    Raises
    ------
    InputError
        If the data have another type or shape, are empty, lack a column, or hold what cannot be a label.
    """
    import pandas as pd

    if isinstance(data, pd.DataFrame):
        return _of_frame(data, name, columns)
    if columns:
        raise InputError(
            f"{next(iter(columns))} applies to tables, not to a {type(data).__name__}: leave it out, or give a "
            "DataFrame"
        )
    ids: tuple[str, ...] = ()
    if isinstance(data, Mapping):
        ids = tuple(text_of(key, "the names of sequences") for key in data)
        if len(set(ids)) < len(ids):
            raise InputError(f"{name}: two names of sequences are the same text: give each a name of its own")
        text = next((key for key, value in data.items() if isinstance(value, str)), None)
        if text is not None and not characters:
            raise InputError(
                f"{name}, sequence {text!r} is text: if each character is a label, write list(text), or give "
                "characters=True"
            )
        parts = _texts(data.values(), name) if characters else [_array_or_list(x, name) for x in data.values()]
    else:
        whole = _array_or_list(data, name)
        parts = _texts(whole, name) if characters else _parts(whole, name)
    for k, part in enumerate(parts):
        if not isinstance(part, list) and np.ndim(part) != 1:
            raise InputError(f"{name}, sequence {k} has {np.ndim(part)} dimensions: give one label for each token")
        if len(part) == 0:
            raise InputError(f"{name}, sequence {k} is empty: give it a label, or leave it out")
    if not parts:
        raise InputError(f"{name} is empty: give at least one sequence of two labels")
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths

    def where(token: int) -> str:
        sequence = int(np.searchsorted(starts, token, side="right")) - 1
        return f"{name}, sequence {sequence}, position {token - starts[sequence]}"

    codes, labels, order = numbered(_joined(parts), where)
    return Encoded(
        name=name, place=name, labels=labels, codes=codes, lengths=lengths, where=where, ids=ids, order=order
    )


def _array_or_list(data: Any, name: str) -> Any:
    """Return a Series, a NumPy array or a list."""
    import pandas as pd

    if isinstance(data, pd.Series):
        return data
    if isinstance(data, (pd.Index, pd.api.extensions.ExtensionArray)):
        return pd.Series(data)
    if isinstance(data, np.ma.MaskedArray):
        values = np.ma.getdata(data).astype(object)
        values[np.ma.getmaskarray(data)] = None
        return values
    if isinstance(data, (bytes, bytearray, set, frozenset)) or not isinstance(data, Iterable):
        raise InputError(
            f"{name} is a {type(data).__name__}: give a path, a list of labels or of sequences, an array, a Series or "
            "a DataFrame"
        )
    return np.asarray(data) if hasattr(data, "__array__") else list(data)


def _texts(texts: Iterable[Any], name: str) -> list[Any]:
    """Return the characters of each text."""
    items = list(texts)
    odd = next((k for k, item in enumerate(items) if not isinstance(item, str)), None)
    if odd is not None:
        raise InputError(f"{name}, sequence {odd} is no text, and with characters=True each sequence is: give text")
    return [list(item) for item in items]


def _parts(whole: Any, name: str) -> list[Any]:
    """Return the sequences of data that may be one or several."""
    if isinstance(whole, np.ndarray) and whole.ndim != 1:
        if whole.ndim != 2:
            raise InputError(
                f"{name} has {whole.ndim} dimensions: give an array of shape (T,), or (N, T) for N sequences"
            )
        return list(whole)
    if not isinstance(whole, list) and whole.dtype != object:
        return [whole]
    items = list(whole)
    nested = [_is_sequence(item) for item in items]
    if all(nested) and nested:
        return [_array_or_list(item, name) for item in items]
    if any(nested):
        raise InputError(
            f"{name} mixes labels and sequences (items {nested.index(False)} and {nested.index(True)}): give a list of "
            "labels, or a list of sequences"
        )
    return [whole] if items else []


def _is_sequence(item: object) -> bool:
    if isinstance(item, (str, bytes)):
        return False
    return isinstance(item, Sequence) or (hasattr(item, "__array__") and np.ndim(item) > 0)


def _joined(parts: list[Any]) -> Any:
    """Return all tokens in one array; equal dtypes are kept."""
    import pandas as pd

    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, pd.Series) for part in parts):
        return pd.concat(parts, ignore_index=True)  # keeps categories that all have
    if all(isinstance(part, np.ndarray) and part.dtype == parts[0].dtype for part in parts):
        return np.concatenate(parts)
    return list(chain.from_iterable(part if isinstance(part, list) else part.tolist() for part in parts))


def _of_frame(frame: pd.DataFrame, name: str, columns: Mapping[str, Hashable]) -> Encoded:
    if "state_column" not in columns:
        raise InputError(
            f"{name} is a DataFrame: name the column of the states with state_column (it has "
            f"{few(list(map(str, frame.columns)), 20)})"
        )
    found = {role: _column(frame, column, name) for role, column in columns.items()}
    if not len(frame):
        raise InputError(f"{name} has no rows: give at least two observations")

    def row(position: int) -> str:
        return f"{name}, row {position}"

    codes, labels, categories = numbered(found["state_column"], row)
    ids, id_labels = None, list[str]()
    if "id_column" in found:
        ids, id_labels, _ = numbered(found["id_column"], row)
        _refuse_empty(ids, columns["id_column"], row)
    ranks = None if "order_column" not in found else _ranks(found["order_column"], columns["order_column"], row)
    order, lengths = in_sequences(ids, ranks, len(frame), row)
    return Encoded(
        name=name,
        place=name,
        labels=labels,
        codes=codes[order],
        lengths=lengths,
        where=lambda token: row(int(order[token])),
        ids=tuple(id_labels),
        order=categories,
    )


def _column(frame: pd.DataFrame, column: Hashable, name: str) -> pd.Series:
    import pandas as pd

    if column not in frame.columns:
        raise InputError(f"{name} has no column {column!r}: its columns are {few(list(map(str, frame.columns)), 20)}")
    found = frame[column]
    if isinstance(found, pd.DataFrame):
        raise InputError(f"{name} has {found.shape[1]} columns {column!r}: give each a name of its own")
    return found


def _ranks(values: pd.Series, column: Hashable, where: Callable[[int], str]) -> NDArray[np.int64]:
    """Return each row's place in the order of a column: by text or number for text, else as its values compare."""
    import pandas as pd

    kind = pd.api.types.infer_dtype(values, skipna=True)
    if isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered:
        ranks = values.cat.codes.to_numpy()
    elif kind == "string":
        codes, met = pd.factorize(values)
        ranks = np.append(ranks_of_text(list(met))[0], -1)[codes]
    else:
        try:
            if kind.startswith("mixed"):
                raise TypeError
            ranks = pd.factorize(values, sort=True)[0]
        except TypeError:
            raise InputError(f"the values of {column!r} cannot be ordered: give numbers, dates or text") from None
    _refuse_empty(ranks, column, where)
    return np.asarray(ranks, dtype=np.int64)


def _refuse_empty(codes: NDArray[Any], column: Hashable, where: Callable[[int], str]) -> None:
    absent = np.flatnonzero(codes < 0)
    if len(absent):
        raise InputError(f"{where(int(absent[0]))} has no value in {column!r}: fill it in, or remove the row")
