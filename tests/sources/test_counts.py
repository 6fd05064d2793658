from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from icl_estimators.pseudo_counts.prefixes import decayed_counts
from icl_estimators.sources import context_counts, occurrence_counts, recency_counts, transition_counts

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 15))


def count_by_hand(tokens: np.ndarray, n_states: int) -> tuple[list, list]:
    transitions, occurrences = [], []
    for line in tokens.tolist():
        transitions.append([])
        occurrences.append([])
        for n in range(1, len(line) + 1):
            prefix = line[:n]
            pairs = list(itertools.pairwise(prefix))
            transitions[-1].append([pairs.count((prefix[-1], w)) for w in range(n_states)])
            occurrences[-1].append([prefix.count(w) for w in range(n_states)])
    return transitions, occurrences


@given(
    st.integers(2, 8).flatmap(lambda k: st.tuples(st.just(k), arrays(np.int64, SHAPES, elements=st.integers(0, k - 1))))
)
def test_counts_are_those_of_counting_by_hand(case: tuple[int, np.ndarray]) -> None:
    n_states, tokens = case
    tokens.setflags(write=False)
    transitions, occurrences = count_by_hand(tokens, n_states)
    assert transition_counts(tokens, n_states).tolist() == transitions
    assert occurrence_counts(tokens, n_states).tolist() == occurrences


def test_views_are_counted_like_copies() -> None:
    whole = np.random.default_rng(0).integers(0, 3, size=(30, 8))
    for view in (whole[::3], whole[:, ::2], whole[:, ::-1], whole.T % 3):
        assert np.array_equal(transition_counts(view, 3), transition_counts(view.copy(), 3))
        assert np.array_equal(occurrence_counts(view, 3), occurrence_counts(view.copy(), 3))


def test_states_that_never_occur_are_kept() -> None:
    counts = transition_counts(np.zeros((1, 4), dtype=np.int64), 5)
    assert counts.shape == (1, 4, 5)
    assert counts[0, -1].tolist() == [3, 0, 0, 0, 0]


@given(
    st.integers(2, 5).flatmap(
        lambda k: st.tuples(st.just(k), arrays(np.int64, SHAPES, elements=st.integers(0, k - 1)))
    ),
    st.integers(0, 6),
)
def test_contexts_of_any_length_are_counted_as_a_loop_does(case: tuple[int, np.ndarray], order: int) -> None:
    n_states, tokens = case
    expected = np.zeros((*tokens.shape, n_states), dtype=np.int32)
    for row, line in enumerate(tokens.tolist()):
        for n in range(max(order, 1), len(line) + 1):
            context = line[n - order : n]
            for end in range(order, n):  # line[end] followed line[end - order : end]
                if line[end - order : end] == context:
                    expected[row, n - 1, line[end]] += 1
    np.testing.assert_array_equal(context_counts(tokens, n_states, order), expected)


def test_many_states_and_long_contexts_need_no_table_of_all_contexts() -> None:
    tokens = np.random.default_rng(0).integers(0, 200, size=(3, 60))
    tokens[:, 40:] = tokens[:, 10:30]  # what is repeated has been seen
    counts = context_counts(tokens, 200, 12)
    assert counts[:, :51].sum() == 0  # 12 tokens of the copy end at 40 + 11
    assert (counts[:, 51:59].sum(axis=-1) == 1).all()
    for t in range(51, 59):
        assert (np.take_along_axis(counts[:, t], tokens[:, t - 29, None], axis=1) == 1).all()


def test_recency_counts_are_those_of_the_fitted_family() -> None:
    tokens = np.random.default_rng(3).integers(0, 4, size=(20, 30))
    np.testing.assert_allclose(recency_counts(tokens, 4, 0.8), decayed_counts(tokens, 4, 0.8)[0], rtol=1e-13)
    np.testing.assert_array_equal(recency_counts(tokens, 4, 1.0), transition_counts(tokens, 4))
