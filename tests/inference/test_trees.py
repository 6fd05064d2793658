from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from icl_estimators.inference import Moments
from icl_estimators.inference.trees import Summary, from_arrays, merged, to_arrays
from icl_estimators.validation import InputError


@dataclass(frozen=True, eq=False)
class Leaf(Summary):
    counts: NDArray[np.int64]
    total: int


@dataclass(frozen=True, eq=False)
class Tree(Summary):
    leaves: dict[tuple[str, int], Leaf]
    halves: tuple[Leaf | None, Leaf | None]
    moments: Moments | None


def leaf(number: int) -> Leaf:
    return Leaf(np.array([number, 2 * number]), number)


def tree(number: int, moments: Moments | None = None) -> Tree:
    return Tree({("a", 1): leaf(number), ("b", 2): leaf(10 * number)}, (None, leaf(number)), moments)


def test_a_tree_is_merged_field_by_field() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(7, 3))
    whole = tree(1, Moments.of(values[:4])).merge(tree(2, Moments.of(values[4:])))
    assert whole.leaves["a", 1].counts.tolist() == [3, 6]
    assert whole.leaves["b", 2].total == 30
    assert whole.halves[0] is None
    assert whole.halves[1] is not None
    assert whole.halves[1].total == 3
    assert whole.moments is not None
    np.testing.assert_allclose(whole.moments.mean, values.mean(axis=0))


def test_none_is_the_summary_of_nothing() -> None:
    assert merged(None, 3) == merged(3, None) == 3
    assert merged(None, None) is None


def test_a_tree_comes_back_bit_for_bit(tmp_path: object) -> None:
    before = tree(3, Moments.of([[0.1, np.inf], [0.2, np.nan]]))
    arrays = to_arrays(before)
    after = from_arrays(Tree, arrays)
    assert after.leaves.keys() == before.leaves.keys()
    assert after.halves[0] is None
    again = to_arrays(after)
    assert arrays.keys() == again.keys()
    for name, array in arrays.items():
        assert array.tobytes() == again[name].tobytes()
        assert array.dtype == again[name].dtype


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"a": 1}, {"b": 1}, "different things"),
        ((1, 2), (1,), "2 and 1 parts"),
        ("a", "b", "a str cannot be merged"),
        (True, True, "a bool cannot be merged"),
    ],
)
def test_what_does_not_fit_is_not_merged(first: object, second: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        merged(first, second)


def test_what_is_no_tree_is_not_stored() -> None:
    with pytest.raises(TypeError, match="a set cannot be stored"):
        to_arrays({"a": {1, 2}})


def test_damaged_arrays_are_named() -> None:
    arrays = to_arrays(tree(1))
    with pytest.raises(KeyError):
        from_arrays(Tree, {name: array for name, array in arrays.items() if name != "0"})
    with pytest.raises(KeyError):
        from_arrays(Leaf, arrays)  # a Leaf holds no Tree
    with pytest.raises(ValueError, match="a Leaf is stored where a Tree was expected"):
        from_arrays(Tree, to_arrays(leaf(1)))
    with pytest.raises(ValueError, match="Expecting value"):
        from_arrays(Tree, {**arrays, "skeleton": np.array("no JSON")})
    spoiled = {**to_arrays(leaf(1))}
    spoiled["skeleton"] = np.array(str(spoiled["skeleton"]).replace('"total"', '"sum"'))
    with pytest.raises(ValueError, match="do not fit Leaf"):
        from_arrays(Leaf, spoiled)
