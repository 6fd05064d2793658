from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.sources import ChainLaw, Sample, sample_batch, sample_chains, stationary_distribution
from icl_estimators.sources.sampling import draw_tokens, sample_batches
from icl_estimators.validation import InputError

LAWS = [ChainLaw(), ChainLaw(2, 0.1), ChainLaw(5, 2.0, "stationary")]


def z_scores(values: np.ndarray) -> np.ndarray:
    """How many standard errors the mean over chains (axis 0) lies from 0."""
    return np.abs(values.mean(axis=0)) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def same(a: Sample, b: Sample) -> bool:
    return np.array_equal(a.tokens, b.tokens) and np.array_equal(a.transition, b.transition)


@pytest.mark.parametrize("law", LAWS)
def test_a_chain_is_the_same_alone_in_any_batch_and_in_any_order(law: ChainLaw) -> None:
    size = {"sequences_per_chain": 3, "length": 20, "law": law, "seed": 5}
    whole = sample_chains(range(12), **size)
    for chain in (0, 7, 11):
        alone = sample_chains([chain], **size)
        assert np.array_equal(alone.tokens[0], whole.tokens[chain])
        assert np.array_equal(alone.transition[0], whole.transition[chain])
    order = [11, 0, 5, 5]
    mixed = sample_chains(order, **size)
    assert np.array_equal(mixed.tokens, whole.tokens[order])
    assert np.array_equal(mixed.transition, whole.transition[order])


@pytest.mark.parametrize("law", LAWS)
def test_more_chains_more_sequences_or_longer_ones_keep_what_was_there(law: ChainLaw) -> None:
    small = sample_chains(range(4), sequences_per_chain=2, length=5, law=law)
    large = sample_chains(range(9), sequences_per_chain=6, length=40, law=law)
    assert np.array_equal(small.tokens, large.tokens[:4, :2, :6])
    assert np.array_equal(small.transition, large.transition[:4])


def test_seeds_and_purposes_draw_other_chains_and_other_tokens() -> None:
    size = {"sequences_per_chain": 1, "length": 60}
    drawn = [
        sample_chains([0], seed=seed, purpose=purpose, **size)
        for seed in (0, 1)
        for purpose in ("training", "tuning", "risk", "decomposition", "example", "test", "smoothing")
    ]
    assert len({sample.transition.tobytes() for sample in drawn}) == len(drawn)
    assert len({sample.tokens.tobytes() for sample in drawn}) == len(drawn)


def test_sequences_of_a_chain_differ() -> None:
    tokens = sample_chains([0], sequences_per_chain=50, length=60, law=ChainLaw(3, 5.0)).tokens[0]
    assert len(np.unique(tokens, axis=0)) == 50


@pytest.mark.parametrize(("n_states", "length"), [(2, 1), (3, 7), (8, 2)])
def test_inputs_targets_and_truth_stand_beside_each_other(n_states: int, length: int) -> None:
    sample = sample_chains(range(4), sequences_per_chain=3, length=length, law=ChainLaw(n_states))
    assert sample.tokens.shape == (4, 3, length + 1)
    assert sample.truth.shape == (12, length, n_states)
    assert sample.inputs.shape == sample.targets.shape == (12, length)
    for i in range(12):
        chain, sequence = divmod(i, 3)
        line = sample.tokens[chain, sequence]
        assert sample.inputs[i].tolist() == line[:-1].tolist()
        assert sample.targets[i].tolist() == line[1:].tolist()
        for n in range(length):
            assert sample.truth[i, n].tolist() == sample.transition[chain, line[n]].tolist()


def test_tokens_follow_the_truth() -> None:
    sample = sample_chains(range(3000), sequences_per_chain=2, length=12, law=ChainLaw(3, 0.5), purpose="test")
    surprise = np.eye(3)[sample.targets] - sample.truth  # (N, T, K): mean 0 given the past
    by_chain = surprise.reshape(3000, 2, 12, 3).mean(axis=1)
    assert (z_scores(by_chain) < 4).all()
    # Nor does it hang on the row itself, or on the token before.
    assert (z_scores((surprise * sample.truth).reshape(3000, 2, 12, 3).mean(axis=1)) < 4).all()
    before = surprise[:, 1:, :, None] * np.eye(3)[sample.inputs[:, :-1]][:, :, None, :]
    assert (z_scores(before.reshape(3000, 2, 11, 3, 3).mean(axis=(1, 2))) < 4).all()


def test_one_long_sequence_visits_its_stationary_law() -> None:
    sample = sample_chains([2], sequences_per_chain=1, length=40_000, purpose="test")
    visits = np.bincount(sample.tokens[0, 0], minlength=3) / 40_001
    np.testing.assert_allclose(visits, stationary_distribution(sample.transition[0]), atol=0.02)


def start_checks(sample: Sample) -> dict[str, float]:
    """Largest |z| of what a start law says about t₁, over chains.

    The mean of 1[t₁ = k] − π_k(P) alone cannot tell the two laws apart: the prior is symmetric, so π_k(P)
    is 1/K on average and the mean is 0 under a uniform start too. Weighing it by π_k(P) can.
    """
    stationary = stationary_distribution(sample.transition)
    k = stationary.shape[-1]
    first = np.eye(k)[sample.tokens[:, 0, 0]]
    return {
        "stationary": z_scores(first - stationary).max(),
        "stationary, weighed": z_scores((first - stationary) * stationary).max(),
        "uniform": z_scores(first - 1 / k).max(),
        "uniform, weighed": z_scores((first - 1 / k) * (stationary - 1 / k)).max(),
        "uniform, by staying": z_scores((first - 1 / k) * np.diagonal(sample.transition, axis1=1, axis2=2)).max(),
    }


@pytest.mark.parametrize("concentration", [0.3, 1.0])
@pytest.mark.parametrize("n_states", [2, 3])
def test_the_first_token_follows_the_start_law_and_the_checks_can_tell(n_states: int, concentration: float) -> None:
    drawn = {
        start: start_checks(
            sample_chains(
                range(4000),
                sequences_per_chain=1,
                length=1,
                law=ChainLaw(n_states, concentration, start),
                purpose="test",
            )
        )
        for start in ("uniform", "stationary")
    }
    assert drawn["stationary"]["stationary"] < 4
    assert drawn["stationary"]["stationary, weighed"] < 4
    assert drawn["uniform"]["uniform"] < 4
    assert drawn["uniform"]["uniform, weighed"] < 4
    assert drawn["uniform"]["uniform, by staying"] < 4
    # A uniform start in the disguise of a stationary one is seen, and the other way round.
    assert drawn["uniform"]["stationary, weighed"] > 8
    assert drawn["stationary"]["uniform, weighed"] > 8


def test_a_stationary_start_stays_stationary() -> None:
    law = ChainLaw(3, 1.0, "stationary")
    sample = sample_chains(range(3000), sequences_per_chain=2, length=9, law=law, purpose="test")
    stationary = stationary_distribution(sample.transition)[:, None, None]
    gap = (np.eye(3)[sample.tokens] - stationary) * stationary  # at every context length
    assert (z_scores(gap.mean(axis=1)) < 4).all()


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 6))
def test_tokens_are_the_inverse_transform_of_their_uniforms(seed: int, n_states: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(n_states, 0.5), size=(2, n_states))
    start = rng.dirichlet(np.ones(n_states), size=2)
    uniforms = rng.random((2, 3, length))
    tokens = draw_tokens(transition, start, uniforms)
    for chain, sequence in np.ndindex(2, 3):
        law = start[chain]
        for t in range(length):
            edges = np.cumsum(law)[:-1]
            assert tokens[chain, sequence, t] == np.searchsorted(edges, uniforms[chain, sequence, t], side="right")
            law = transition[chain, tokens[chain, sequence, t]]


def test_a_state_of_probability_0_is_not_drawn_at_an_edge() -> None:
    transition = np.array([[[0.5, 0.0, 0.5]] * 3])
    at_the_edge = np.array([[[0.5, 0.5, np.nextafter(0.5, 0)]]])
    assert draw_tokens(transition, transition[:, 0], at_the_edge).tolist() == [[[2, 2, 0]]]


def test_no_uniform_opens_a_state_that_is_not_there() -> None:
    thirds = np.full((1, 3, 3), 1 / 3)
    edge = np.array([[[0.0, 1 - 2.0**-53, 0.0]]])
    assert draw_tokens(thirds, thirds[:, 0], edge).tolist() == [[[0, 2, 0]]]


def test_a_batch_is_one_address() -> None:
    batch = sample_batch(3, batch=64, length=10, seed=1)
    assert batch.tokens.shape == (64, 1, 11)
    assert batch.transition.shape == (64, 3, 3)
    assert same(batch, sample_batch(3, batch=64, length=10, seed=1))
    assert not same(batch, sample_batch(4, batch=64, length=10, seed=1))
    assert not same(batch, sample_batch(3, batch=64, length=10, seed=2))
    assert not same(batch, sample_batch(3, batch=64, length=10, seed=1, purpose="tuning"))
    assert len({row.tobytes() for row in batch.transition}) == 64


@pytest.mark.parametrize("law", LAWS)
def test_batches_are_the_same_alone_and_together(law: ChainLaw) -> None:
    size = {"batch": 5, "length": 7, "law": law, "seed": 2}
    together = sample_batches([9, 0, 4], **size)
    alone = [sample_batch(step, **size) for step in (9, 0, 4)]
    assert np.array_equal(together.tokens, np.concatenate([batch.tokens for batch in alone]))
    assert np.array_equal(together.transition, np.concatenate([batch.transition for batch in alone]))


def test_no_steps_are_an_error() -> None:
    with pytest.raises(InputError, match="no batches to sample: give at least one step"):
        sample_batches([], batch=2, length=3)


def test_batches_follow_the_truth() -> None:
    batches = [sample_batch(step, batch=500, length=5, law=ChainLaw(3, 1.0, "stationary")) for step in range(6)]
    surprise = np.concatenate([np.eye(3)[b.targets] - b.truth for b in batches])
    assert (z_scores(surprise) < 4).all()
    checks = start_checks(
        Sample(np.concatenate([b.tokens for b in batches]), np.concatenate([b.transition for b in batches]))
    )
    assert checks["stationary, weighed"] < 4
    assert checks["uniform, weighed"] > 8


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"chains": []}, "no chains to sample: give at least one chain number"),
        ({"chains": [0, -1]}, "chain number must be an integer of at least 0, not -1"),
        ({"chains": [0.5]}, "chain number must be an integer, not 0.5"),
        ({"sequences_per_chain": 0}, "sequences_per_chain must be an integer of at least 1, not 0"),
        ({"length": 0}, "length must be an integer of at least 1, not 0"),
        ({"seed": -1}, "seed must be an integer of at least 0, not -1"),
        ({"purpose": "fun"}, "purpose must be one of .*, not 'fun'"),
    ],
)
def test_sample_chains_names_what_is_wrong(changed: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample_chains(**{"chains": range(2), "sequences_per_chain": 1, "length": 3, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"step": -1}, "step must be an integer of at least 0, not -1"),
        ({"batch": 0}, "batch must be an integer of at least 1, not 0"),
        ({"length": 0}, "length must be an integer of at least 1, not 0"),
        ({"seed": None}, "seed must be an integer of at least 0, not None"),
        ({"purpose": "fun"}, "purpose must be one of .*, not 'fun'"),
        ({"law": ChainLaw(2, 0.001, "stationary"), "batch": 500}, "has no unique stationary law"),
    ],
)
def test_sample_batch_names_what_is_wrong(changed: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample_batch(**{"step": 0, "batch": 2, "length": 3, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_states": 1}, "n_states must be an integer of at least 2, not 1"),
        ({"n_states": 3.0}, "n_states must be an integer, not 3.0"),
        ({"concentration": 0}, "concentration must be a finite number above 0, not 0"),
        ({"concentration": float("nan")}, "concentration must be a finite number above 0, not nan"),
        ({"concentration": "1"}, "concentration must be a number above 0, not '1'"),
        ({"start": "zero"}, "start must be one of uniform, stationary, not 'zero'"),
    ],
)
def test_a_chain_law_names_what_is_wrong(changed: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ChainLaw(**changed)
