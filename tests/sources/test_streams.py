from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from scipy import stats

from icl_estimators.sources.streams import Kind, Purpose, Stream
from icl_estimators.validation import InputError


def first(stream: Stream, chain: int = 0, sequence: int = 0, size: int = 4) -> list[float]:
    return stream.uniforms(chain, sequence, size).tolist()


def test_spawn_keys_are_what_numpy_spawns() -> None:
    """The fact of seed addressing that a stream's key relies on, at both levels of the key."""
    for seed in (0, 1, 2**80):
        children = np.random.SeedSequence(seed).spawn(4)
        for i, child in enumerate(children):
            same = np.random.SeedSequence(seed, spawn_key=(i,))
            assert child.generate_state(4).tolist() == same.generate_state(4).tolist()
        grandchild = children[2].spawn(2)[1]
        same = np.random.SeedSequence(seed, spawn_key=(2, 1))
        assert grandchild.generate_state(2, np.uint64).tolist() == same.generate_state(2, np.uint64).tolist()


def test_an_address_is_a_key_and_a_counter_of_philox() -> None:
    stream = Stream(7, "risk", "tokens")
    key = np.random.SeedSequence(7, spawn_key=(2, 1)).generate_state(2, np.uint64)
    for chain, sequence in [(0, 0), (0, 1), (5, 0), (123_456, 2**40)]:
        philox = np.random.Philox(key=key, counter=np.array([0, sequence, chain, 0], dtype=np.uint64))
        assert first(stream, chain, sequence, 9) == np.random.Generator(philox).random(9).tolist()


def test_purposes_and_kinds_keep_their_places() -> None:
    """Their positions are part of every address: append, never reorder."""
    purposes = [
        "training",
        "tuning",
        "risk",
        "decomposition",
        "bootstrap",
        "example",
        "test",
        "smoothing",
        "validation",
    ]
    assert list(get_args(Purpose)[: len(purposes)]) == purposes
    assert get_args(Kind)[:4] == ("rows", "tokens", "weights", "other")


def test_an_address_gives_the_same_uniforms_whatever_was_drawn_before() -> None:
    expected = first(Stream(0, "test", "rows"), 3, 2, 100)
    stream = Stream(0, "test", "rows")
    stream.uniforms(3, 1, 1)  # leaves a half-used block behind
    assert first(stream, 3, 2, 100) == expected
    assert first(stream, 3, 2, 7) == expected[:7]
    # An odd number of half words leaves one behind, which the next integers must not see.
    halves = stream.generator(3, 2).integers(0, 2**31, size=5, dtype=np.uint32).tolist()
    assert stream.generator(3, 2).integers(0, 2**31, size=3, dtype=np.uint32).tolist() == halves[:3]


def test_every_part_of_an_address_matters() -> None:
    base = first(Stream(0, "test", "rows"))
    others = [first(Stream(1, "test", "rows"))]
    others += [first(Stream(0, purpose, "rows")) for purpose in get_args(Purpose) if purpose != "test"]
    others += [first(Stream(0, "test", kind)) for kind in get_args(Kind) if kind != "rows"]
    others += [first(Stream(0, "test", "rows"), 1, 0), first(Stream(0, "test", "rows"), 0, 1)]
    values = [value for draws in [base, *others] for value in draws]
    assert len(set(values)) == len(values)


def test_addresses_next_to_each_other_are_uniform_and_unrelated() -> None:
    stream = Stream(0, "test", "tokens")
    draws = np.array([[first(stream, chain, sequence, 2) for sequence in range(2)] for chain in range(1500)])
    flat = draws.reshape(1500, 4)
    assert stats.kstest(flat.ravel(), "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(flat.T) - np.eye(4)).max() < 4 / np.sqrt(1500)
    assert abs(np.corrcoef(flat[1:, 0], flat[:-1, 0])[0, 1]) < 4 / np.sqrt(1500)


def test_a_uniform_is_never_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """A zero comes once in 2^53 draws: give the stream a generator that draws nothing else."""

    class Zeros:
        def random(self, size: int) -> np.ndarray:
            return np.zeros(size)

    stream = Stream(0, "test", "rows")
    monkeypatch.setattr(stream, "generator", lambda chain, sequence: Zeros())
    assert stream.uniforms(0, 0, 2).tolist() == [2.0**-54] * 2


@pytest.mark.parametrize("seed", [-1, 1.0, "0", None, True])
def test_a_seed_is_an_integer_of_at_least_0(seed: object) -> None:
    with pytest.raises(InputError, match="seed must be an integer of at least 0, not "):
        Stream(seed, "test", "rows")


def test_unknown_purposes_and_kinds_are_named_with_the_choices() -> None:
    with pytest.raises(InputError, match=r"purpose must be one of training, tuning, risk, .*, not 'evaluation'"):
        Stream(0, "evaluation", "rows")
    with pytest.raises(InputError, match="kind must be one of rows, tokens, weights, other, not 'columns'"):
        Stream(0, "test", "columns")
