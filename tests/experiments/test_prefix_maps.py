from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from icl_estimators.experiments.likeness import LikenessDesign
from icl_estimators.experiments.prefix_maps import count_vectors, map_block, pseudo_count_map_table, simplex_table
from icl_estimators.experiments.study import Study
from icl_estimators.sources import sample_chains, transition_counts


class Smoothed:
    """An add-α rule of one's own: it is no rule of the package, so that it is mapped."""

    n_states = 3

    def __init__(self, alpha: float = 0.7) -> None:
        self.name, self.alpha = "smoothed", alpha

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        counts = transition_counts(np.asarray(tokens), 3) + self.alpha
        return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


OPTIONS: dict[str, Any] = {"chains": 200, "sequences_per_chain": 2, "length": 12, "decomposition_chains": 0}


@pytest.fixture(scope="module")
def design() -> LikenessDesign:
    return LikenessDesign.of(Study.build([Smoothed(), "add-one"], warn=print, **OPTIONS))


def test_an_add_constant_rule_has_its_constant_everywhere(design: LikenessDesign) -> None:
    table = pseudo_count_map_table(design, map_block(design, range(200)))
    assert table is not None
    frame = table.frame()
    assert set(frame.estimator) == {"smoothed"}
    known = frame[frame.estimate.notna()]
    assert len(known) >= 20
    np.testing.assert_allclose(known.estimate, 0.7, rtol=1e-9)
    np.testing.assert_allclose(known.ci_low, 0.7, rtol=1e-6)
    few = frame[frame.estimate.isna()]
    assert (few.n_prefixes < 50).all()
    assert few.note.str.contains("prefixes: at least 50 are needed").all()
    assert (frame.visits < frame.context_length).all()


def test_the_simplex_is_a_plain_mean_over_prefixes(design: LikenessDesign) -> None:
    table = simplex_table(design, map_block(design, range(200)))
    assert table is not None
    frame = table.frame()
    tokens = sample_chains(range(200), sequences_per_chain=2, length=12, seed=0, purpose="risk").inputs
    counts, predicted = transition_counts(tokens, 3), Smoothed().predict_proba(tokens)
    at = (tokens == 1) & (counts == [2, 0, 2]).all(axis=-1)
    cell = frame[(frame.visits == 4) & (frame.current_token == 1) & (frame.counts == "2 0 2")]
    assert cell.n_prefixes.tolist() == [at.sum()] * 3
    np.testing.assert_allclose(cell.sort_values("token").estimate, predicted[at].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(frame.groupby(["visits", "current_token", "counts"]).estimate.sum(), 1.0, atol=1e-12)


def test_blocks_add_up(design: LikenessDesign) -> None:
    whole = map_block(design, range(200))
    parts = map_block(design, range(100)).merge(map_block(design, range(100, 200)))
    for key, sums in whole.mass.items():
        np.testing.assert_allclose(parts.mass[key], sums, atol=1e-12)
    for place, values in whole.simplex.items():
        np.testing.assert_allclose(parts.simplex[place], values, atol=1e-12)


def test_count_vectors_are_all_of_them() -> None:
    for visits in (1, 4, 10):
        assert len(count_vectors(visits, 3)) == math.comb(visits + 2, 2)
        assert (count_vectors(visits, 3).sum(axis=1) == visits).all()


def test_only_three_states_have_a_triangle() -> None:
    class Four(Smoothed):
        n_states = 4

        def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
            return np.full((*tokens.shape, 4), 0.25)

    other = LikenessDesign.of(Study.build([Four(), "add-one"], warn=print, states=4, **{**OPTIONS, "chains": 20}))
    sums = map_block(other, range(20))
    assert simplex_table(other, sums) is None
    assert sums.mass
