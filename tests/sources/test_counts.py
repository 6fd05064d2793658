from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from icl_estimators.sources import occurrence_counts, transition_counts

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
