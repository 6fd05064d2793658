"""Addressable random streams: the same address gives the same uniforms, regardless of other draws.

The seed determines a study. Every uniform has an address *(seed, purpose, kind, chain, sequence, position)*; the first
three make the key of a counter-based generator (Philox 4x64, Salmon et al. 2011), the next two its
starting counter. So a chain can be drawn again alone, in any batch and any order, and more chains, more
sequences per chain or longer sequences begin with the same draws.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import InputError

__all__ = ["Purpose", "Stream"]

Purpose = Literal[
    "training",
    "tuning",
    "risk",
    "decomposition",
    "bootstrap",
    "example",
    "test",
    "smoothing",
    "validation",
    "fitting",
    "budget",
]
Kind = Literal["rows", "tokens", "weights", "other"]

# The position in the tuple is part of the address: append, never reorder.
_PURPOSES: tuple[str, ...] = get_args(Purpose)
_KINDS: tuple[str, ...] = get_args(Kind)
_SMALLEST = 2.0**-54  # so that logarithms are finite


class Stream:
    """The uniforms of one (seed, purpose, kind), addressed by chain and sequence.

    Parameters
    ----------
    seed : int
        The study's seed, at least 0.
    purpose : Purpose
        A member of :data:`Purpose`. What the draws are for; different purposes never share a stream.
    kind : {"rows", "tokens", "weights", "other"}
        Which part of a draw.

    Raises
    ------
    InputError
        If `seed` is not an integer of at least 0, or `purpose` or `kind` is unknown.

    Examples
    --------
    >>> stream = Stream(0, "test", "tokens")
    >>> bool((stream.uniforms(7, 2, 5) == stream.uniforms(7, 2, 9)[:5]).all())
    True
    """

    def __init__(self, seed: int, purpose: Purpose, kind: Kind) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise InputError(f"seed must be an integer of at least 0, not {seed!r}")
        if purpose not in _PURPOSES:
            raise InputError(f"purpose must be one of {', '.join(_PURPOSES)}, not {purpose!r}")
        if kind not in _KINDS:
            raise InputError(f"kind must be one of {', '.join(_KINDS)}, not {kind!r}")
        spawn_key = (_PURPOSES.index(purpose), _KINDS.index(kind))
        key = np.random.SeedSequence(int(seed), spawn_key=spawn_key).generate_state(2, np.uint64)
        self._bits = np.random.Philox(key=key)
        self._generator = np.random.Generator(self._bits)
        self._state = self._bits.state

    def uniforms(self, chain: int, sequence: int, size: int) -> NDArray[np.float64]:
        """Return the first `size` uniforms on (0, 1) at an address, shape (size,)."""
        return self.generator(chain, sequence).random(size).clip(_SMALLEST, None)

    def generator(self, chain: int, sequence: int = 0) -> np.random.Generator:
        """Return a generator at the start of an address (the next call moves it)."""
        # Setting the state is five times cheaper than a new generator. 2^64 counters lie between two
        # sequences, 2^64 sequences between two chains: streams cannot meet.
        self._state["state"]["counter"][:] = (0, sequence, chain, 0)
        self._state["buffer_pos"] = 4
        self._state["has_uint32"] = 0
        self._bits.state = self._state
        return self._generator
