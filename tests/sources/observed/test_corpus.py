from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from icl_estimators.sources import context_counts
from icl_estimators.sources.observed.corpus import Corpus, fold_of_units
from icl_estimators.validation import InputError

K = 3
SEQUENCES = st.lists(
    st.integers(1, 15).flatmap(lambda size: arrays(np.int64, size, elements=st.integers(0, K - 1))),
    min_size=1,
    max_size=5,
)


def followed_in(history: list[int], before: tuple[int, ...], token: int, order: int) -> tuple[int, int]:
    """Count by hand how often `token`, and anything, followed the context in a history."""
    followed = visits = 0
    for place in range(order, len(history)):
        if tuple(history[place - order : place]) == before:
            visits += 1
            followed += history[place] == token
    return followed, visits


@given(SEQUENCES, st.integers(0, 3), st.sampled_from([None, 1, 2, 3, 5]))
def test_counts_before_a_token_are_those_of_the_prefix(
    sequences: list[np.ndarray], order: int, window: int | None
) -> None:
    found = Corpus.of(sequences, K).before(order, window=window)
    expected = []
    for sequence in sequences:
        for place in range(1, len(sequence)):
            prefix = sequence[max(0, place - window) if window else 0 : place]
            counts = context_counts(prefix[None], K, order)[0, -1]
            expected.append((counts[sequence[place]], counts.sum()))
    assert list(zip(found.followed, found.visits, strict=True)) == expected


@given(SEQUENCES, st.integers(0, 2))
def test_pooled_counts_are_those_of_all_sequences_before_and_the_own_prefix(
    sequences: list[np.ndarray], order: int
) -> None:
    found = Corpus.of(sequences, K).before(order, pooled=True)
    expected = []
    for number, sequence in enumerate(sequences):
        for place in range(1, len(sequence)):
            if place < order:
                expected.append((0, 0))
                continue
            before = tuple(sequence[place - order : place].tolist())
            histories = [*(earlier.tolist() for earlier in sequences[:number]), sequence[:place].tolist()]
            each = [followed_in(history, before, sequence[place], order) for history in histories]
            expected.append(tuple(map(sum, zip(*each, strict=True))))
    assert list(zip(found.followed, found.visits, strict=True)) == expected


@given(SEQUENCES.filter(lambda found: len(found) > 1), st.integers(0, 2))
def test_counts_of_other_folds_hold_nothing_of_the_own_one(sequences: list[np.ndarray], order: int) -> None:
    folds = np.arange(len(sequences)) % 2
    found = Corpus.of(sequences, K).before(order, folds=folds)
    expected = []
    for number, sequence in enumerate(sequences):
        for place in range(1, len(sequence)):
            if place < order:
                expected.append((0, 0))
                continue
            before = tuple(sequence[place - order : place].tolist())
            others = [other for other, fold in zip(sequences, folds, strict=True) if fold != folds[number]]
            each = [followed_in(other.tolist(), before, sequence[place], order) for other in others]
            expected.append(tuple(map(sum, zip(*each, strict=True))))
    assert list(zip(found.followed, found.visits, strict=True)) == expected


@given(SEQUENCES, st.integers(0, 2), st.booleans())
def test_totals_are_the_counts_after_the_last_token(sequences: list[np.ndarray], order: int, pooled: bool) -> None:
    corpus = Corpus.of(sequences, K)
    cells, rows = corpus.totals(order, pooled=pooled)
    counted: dict[tuple[object, ...], int] = {}
    for number, sequence in enumerate(sequences):
        for place in range(order, len(sequence)):
            key = (0 if pooled else number, *sequence[place - order : place + 1].tolist())
            counted[key] = counted.get(key, 0) + 1
    assert sorted(cells.tolist()) == sorted(counted.values())
    by_context: dict[tuple[object, ...], int] = {}
    for key, count in counted.items():
        by_context[key[:-1]] = by_context.get(key[:-1], 0) + count
    assert sorted(rows.tolist()) == sorted(by_context.values())


def test_the_first_tokens_can_be_counted_alone() -> None:
    corpus = Corpus.of([np.array([0, 1]), np.array([0]), np.array([2, 2])], K)
    cells, rows = corpus.totals(0, pooled=True, first_tokens=True)
    assert (sorted(cells.tolist()), rows.tolist()) == ([1, 2], [3])


def test_the_transition_matrix_does_not_cross_from_one_sequence_to_the_next() -> None:
    corpus = Corpus.of([np.array([0, 1, 1]), np.array([2]), np.array([2, 0])], K)
    assert corpus.transition_matrix().tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]
    assert corpus.targets.tolist() == [1, 2, 5]


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="there are no sequences: give at least one"):
        Corpus.of([], K)
    corpus = Corpus.of([np.array([0, 1])], K)
    with pytest.raises(InputError, match="order"):
        corpus.before(-1)
    with pytest.raises(InputError, match="window"):
        corpus.before(1, window=0)
    with pytest.raises(InputError, match="give at most one of window, pooled and folds"):
        corpus.before(1, window=2, pooled=True)


def test_units_are_divided_into_folds_of_about_equal_size_and_stay_whole() -> None:
    units = np.repeat(np.arange(23), 3)
    folds = fold_of_units(units, 5)
    per_unit = folds.reshape(23, 3)
    assert (per_unit == per_unit[:, :1]).all()
    assert sorted(np.bincount(per_unit[:, 0]).tolist()) == [4, 4, 5, 5, 5]
    np.testing.assert_array_equal(folds, fold_of_units(units, 5))
    assert (fold_of_units(units, 5, seed=1) != folds).any()
    with pytest.raises(InputError, match="23 sequences cannot be divided into 24 folds: give fewer folds"):
        fold_of_units(units, 24)
    with pytest.raises(InputError, match="folds"):
        fold_of_units(units, 1)
