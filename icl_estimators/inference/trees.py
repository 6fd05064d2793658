"""Summaries as trees of dataclasses: merged field by field, and stored as plain arrays.

A summary is a dataclass. Its fields are arrays, numbers, strings, None, other summaries, or tuples and dicts of these.
One rule merges any such tree, and one rule stores it, so that summaries need no code of their own for either.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping
from typing import Any, Self, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import InputError

__all__ = ["Summary", "from_arrays", "merged", "to_arrays"]

Tree = TypeVar("Tree")
_SKELETON = "skeleton"


class Summary:
    """A dataclass that is merged field by field."""

    __slots__ = ()

    def merge(self, other: Self) -> Self:
        """Return the summary of both groups of units together; `other`'s come after."""
        values = {
            field.name: merged(getattr(self, field.name), getattr(other, field.name))
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
        }
        return type(self)(**values)


def merged(first: Any, second: Any) -> Any:
    """Merge two trees of one shape.

    Numbers and arrays are added. Dicts are merged key by key, tuples place by place, summaries by their own ``merge``.
    None is the summary of no units where `second` or `first` has something.

    Raises
    ------
    InputError
        If the trees differ in keys, length or kind.

    Examples
    --------
    >>> merged({"a": 1, "b": None}, {"a": 2, "b": 5})
    {'a': 3, 'b': 5}
    """
    if first is None or second is None:
        return second if first is None else first
    if hasattr(first, "merge"):
        return first.merge(second)
    if isinstance(first, Mapping):
        if first.keys() != second.keys():
            raise InputError(f"summaries of different things cannot be merged: {set(first) ^ set(second)}")
        return {key: merged(value, second[key]) for key, value in first.items()}
    if isinstance(first, tuple):
        if len(first) != len(second):
            raise InputError(f"summaries of {len(first)} and {len(second)} parts cannot be merged")
        return tuple(merged(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, (int, float, np.ndarray, np.number)) and not isinstance(first, bool):
        return first + second
    raise InputError(f"a {type(first).__name__} cannot be merged")


def to_arrays(tree: Any) -> dict[str, NDArray[Any]]:
    """Return a tree as plain arrays, for ``np.savez`` without pickle.

    Returns
    -------
    dict of str to ndarray
        The tree's arrays by number, and its structure as JSON under ``skeleton``.

    Raises
    ------
    TypeError
        If the tree holds something that is not an array, number, string, None, tuple, dict or dataclass.

    Examples
    --------
    >>> sorted(to_arrays({"a": np.zeros(2), "b": 3}))
    ['0', 'skeleton']
    """
    arrays: dict[str, NDArray[Any]] = {}
    skeleton = _take_apart(tree, arrays)
    arrays[_SKELETON] = np.array(json.dumps(skeleton))
    return arrays


def from_arrays(kind: type[Tree], arrays: Mapping[str, NDArray[Any]]) -> Tree:
    """Return the tree that :func:`to_arrays` took apart, bit for bit.

    Parameters
    ----------
    kind : type
        The dataclass at the root. Those below it are found in its annotations.
    arrays : mapping of str to ndarray

    Raises
    ------
    KeyError
        If an array is missing, or a dataclass is not one that `kind` can hold.
    ValueError
        If the skeleton is not JSON, or fields do not fit the dataclass.
    """
    kinds: dict[str, type] = {}
    _collect(kind, kinds)
    try:
        tree = _put_together(json.loads(str(arrays[_SKELETON])), arrays, kinds)
    except TypeError as error:  # a field too many or too few
        raise ValueError(f"stored summaries do not fit {kind.__name__}: {error}") from None
    if not isinstance(tree, kind):
        raise ValueError(f"a {type(tree).__name__} is stored where a {kind.__name__} was expected")
    return tree


def _take_apart(node: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if isinstance(node, (np.ndarray, np.generic)):
        arrays[str(len(arrays))] = np.asarray(node)
        return {"array": len(arrays) - 1}
    if isinstance(node, tuple):
        return {"tuple": [_take_apart(item, arrays) for item in node]}
    if isinstance(node, Mapping):
        return {"dict": [[_take_apart(key, arrays), _take_apart(value, arrays)] for key, value in node.items()]}
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        values = {field.name: _take_apart(getattr(node, field.name), arrays) for field in dataclasses.fields(node)}
        return {"dataclass": type(node).__name__, "fields": values}
    raise TypeError(f"a {type(node).__name__} cannot be stored as arrays")


def _put_together(node: Any, arrays: Mapping[str, NDArray[Any]], kinds: dict[str, type]) -> Any:
    if not isinstance(node, dict):
        return node
    if "array" in node:
        return np.array(arrays[str(node["array"])])
    if "tuple" in node:
        return tuple(_put_together(item, arrays, kinds) for item in node["tuple"])
    if "dict" in node:
        return {_put_together(key, arrays, kinds): _put_together(value, arrays, kinds) for key, value in node["dict"]}
    values = {name: _put_together(value, arrays, kinds) for name, value in node["fields"].items()}
    return kinds[node["dataclass"]](**values)


def _collect(annotation: Any, kinds: dict[str, type]) -> None:
    """Find the dataclasses that a value annotated so may hold."""
    if isinstance(annotation, types.GenericAlias | types.UnionType) or get_args(annotation):
        for argument in get_args(annotation):
            _collect(argument, kinds)
    elif isinstance(annotation, type) and dataclasses.is_dataclass(annotation) and annotation.__name__ not in kinds:
        kinds[annotation.__name__] = annotation
        for hint in get_type_hints(annotation).values():
            _collect(hint, kinds)
