"""Fresh chains and sequences, with the truth and the tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.sources.counts import transition_counts
from icl_estimators.sources.posterior import DirichletPosterior
from icl_estimators.sources.prior import UNIFORMS_PER_ENTRY, dirichlet_rows
from icl_estimators.sources.source import Sample, Source
from icl_estimators.sources.start import start_law, start_probabilities, visit_probabilities
from icl_estimators.sources.streams import Purpose, Stream
from icl_estimators.validation import InputError, positive_int, positive_real

__all__ = ["ChainLaw", "sample_chains", "sample_batch", "sample_batches", "draw_tokens"]

Draw = Callable[[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]], NDArray[np.int64]]
"""Transition matrices, laws of the first token and uniforms in; tokens out, as :func:`draw_tokens`."""


@dataclass(frozen=True, slots=True)
class ChainLaw(Source):
    """The source `dirichlet`: Markov chains whose rows are independent Dirichlet draws.

    Parameters
    ----------
    n_states : int
        K ≥ 2.
    concentration : float
        α > 0: rows are independent draws from Dirichlet(α, …, α).
    start : str
        Law of the first token, a name of :data:`icl_estimators.sources.start.START_LAWS`: "uniform", "stationary".

    Raises
    ------
    InputError
        If `n_states` < 2, `concentration` is not a finite number above 0, or `start` is unknown.
    """

    n_states: int = 3
    concentration: float = 1.0
    start: str = "uniform"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_states", positive_int(self.n_states, "n_states", at_least=2))
        object.__setattr__(self, "concentration", positive_real(self.concentration, "concentration"))
        start_law(self.start)

    @property
    def spec(self) -> str:
        """The name in the registry."""
        return "dirichlet"

    @property
    def description(self) -> str:
        """Prior and start law, as part of a sentence of the report."""
        return (
            "each row of the transition matrix P drawn from Dirichlet(α, …, α) with "
            f"α = {self.concentration:g}; {start_law(self.start).description}"
        )

    @property
    def first_token(self) -> NDArray[np.float64] | None:
        """The start law, shape (K,); None where it depends on the chain."""
        law = start_law(self.start)
        return None if law.depends_on_chain else law.probabilities(np.empty((1, self.n_states, self.n_states)), None)[0]

    def sample(
        self, chains: Iterable[int], *, sequences_per_chain: int, length: int, seed: int = 0, purpose: Purpose = "risk"
    ) -> Sample:
        """Draw chains and sequences of each: :func:`sample_chains`."""
        return sample_chains(
            chains, sequences_per_chain=sequences_per_chain, length=length, law=self, seed=seed, purpose=purpose
        )

    def posterior(self, tokens: NDArray[np.int64]) -> DirichletPosterior | None:
        """Return Dirichlet(α + n_v·) for each prefix (N, T); None where the start law depends on the chain."""
        if start_law(self.start).depends_on_chain:
            return None
        return DirichletPosterior(transition_counts(tokens, self.n_states) + np.float64(self.concentration))

    def visits(self, sample: Sample) -> NDArray[np.float64]:
        """Return P(t_n = v | P), shape (R, T, K)."""
        start = start_probabilities(sample.transition, self.start)
        return visit_probabilities(sample.transition, start, sample.tokens.shape[2] - 1)


def sample_chains(
    chains: Iterable[int],
    *,
    sequences_per_chain: int,
    length: int,
    law: ChainLaw | None = None,
    seed: int = 0,
    purpose: Purpose = "risk",
) -> Sample:
    """Draw the chains with the given numbers, and sequences of each.

    Parameters
    ----------
    chains : iterable of int
        Chain numbers ≥ 0, for instance ``range(50)``. Chain r is the same chain in every call.
    sequences_per_chain : int
        S ≥ 1.
    length : int
        T ≥ 1 tokens are read; T + 1 are drawn.
    law : ChainLaw, optional
        Prior and start law; K = 3, α = 1, uniform start by default.
    seed : int
        The study's seed.
    purpose : Purpose
        The stream to draw from.

    Returns
    -------
    Sample

    Raises
    ------
    InputError
        If there are no chains, a chain number is negative, `sequences_per_chain` or `length` is below 1,
        `seed` is below 0 or `purpose` unknown, or a chain lacks a unique stationary law that `law` asks for.

    Examples
    --------
    >>> whole = sample_chains(range(3), sequences_per_chain=2, length=5)
    >>> alone = sample_chains([1], sequences_per_chain=1, length=3)
    >>> bool((whole.tokens[1, :1, :4] == alone.tokens[0]).all())
    True
    """
    law = law or ChainLaw()
    numbers = [positive_int(chain, "chain number", at_least=0) for chain in chains]
    if not numbers:
        raise InputError("no chains to sample: give at least one chain number")
    n_sequences = positive_int(sequences_per_chain, "sequences_per_chain")
    length = positive_int(length, "length")
    k = law.n_states
    row_stream = Stream(seed, purpose, "rows")
    token_stream = Stream(seed, purpose, "tokens")
    row_uniforms = np.stack([row_stream.uniforms(r, 0, k * k * UNIFORMS_PER_ENTRY) for r in numbers])
    transition = dirichlet_rows(row_uniforms.reshape(-1, k, k, UNIFORMS_PER_ENTRY), law.concentration)
    token_uniforms = np.empty((len(numbers), n_sequences, length + 1))
    for row, chain in enumerate(numbers):
        for sequence in range(n_sequences):
            token_uniforms[row, sequence] = token_stream.uniforms(chain, sequence, length + 1)
    start = start_probabilities(transition, law.start, chains=numbers)
    return Sample(draw_tokens(transition, start, token_uniforms), transition)


def sample_batch(
    step: int,
    *,
    batch: int,
    length: int,
    law: ChainLaw | None = None,
    seed: int = 0,
    purpose: Purpose = "training",
) -> Sample:
    """Draw a whole batch of fresh chains, one sequence each, addressed as one block.

    The cheap form for training: one address for the whole batch of `step` instead of one for each
    chain. Shapes are those of :func:`sample_chains` with R = `batch` and S = 1.

    Raises
    ------
    InputError
        As :func:`sample_chains` does.

    Examples
    --------
    >>> sample_batch(0, batch=64, length=100).tokens.shape
    (64, 1, 101)
    """
    return sample_batches([step], batch=batch, length=length, law=law, seed=seed, purpose=purpose)


def sample_batches(
    steps: Iterable[int],
    *,
    batch: int,
    length: int,
    law: ChainLaw | None = None,
    seed: int = 0,
    purpose: Purpose = "training",
    draw: Draw | None = None,
) -> Sample:
    """Draw the batches of several steps at once: several times cheaper for each than one by one.

    Each batch is the one that :func:`sample_batch` draws for its step, whatever it is drawn with.

    Parameters
    ----------
    draw : callable, optional
        What runs the chains: :func:`draw_tokens` or another that gives the same tokens.

    Returns
    -------
    Sample
        Of R = steps · `batch` chains with one sequence each, step by step.

    Raises
    ------
    InputError
        If there are no steps, and as :func:`sample_chains` does.

    Examples
    --------
    >>> both = sample_batches([4, 7], batch=8, length=5)
    >>> alone = sample_batch(7, batch=8, length=5)
    >>> bool((both.tokens[8:] == alone.tokens).all())
    True
    """
    law = law or ChainLaw()
    numbers = [positive_int(step, "step", at_least=0) for step in steps]
    if not numbers:
        raise InputError("no batches to sample: give at least one step")
    batch = positive_int(batch, "batch")
    length = positive_int(length, "length")
    k = law.n_states
    rows, tokens = Stream(seed, purpose, "rows"), Stream(seed, purpose, "tokens")
    row_uniforms = np.stack([rows.uniforms(step, 0, batch * k * k * UNIFORMS_PER_ENTRY) for step in numbers])
    transition = dirichlet_rows(row_uniforms.reshape(-1, k, k, UNIFORMS_PER_ENTRY), law.concentration)
    uniforms = np.stack([tokens.uniforms(step, 0, batch * (length + 1)) for step in numbers])
    start = start_probabilities(transition, law.start)
    return Sample((draw or draw_tokens)(transition, start, uniforms.reshape(-1, 1, length + 1)), transition)


def draw_tokens(
    transition: NDArray[np.float64], start: NDArray[np.float64], uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Run chains by inverse transform: one uniform a token.

    Parameters
    ----------
    transition : ndarray of float64, shape (R, K, K)
    start : ndarray of float64, shape (R, K)
        Law of the first token.
    uniforms : ndarray of float64, shape (R, S, L)

    Returns
    -------
    ndarray of int64, shape (R, S, L)
    """
    n_chains, n_sequences, length = uniforms.shape
    k = transition.shape[-1]
    # Interior edges of the cumulative law; what lies above the last one is state K − 1, so that a sum
    # that rounds to below 1 cannot open a K-th state.
    edges = transition.cumsum(axis=-1)[..., :-1]  # (R, K, K-1)
    flat_edges = edges.reshape(n_chains * k, k - 1)
    first_row = np.repeat(np.arange(n_chains) * k, n_sequences)  # (N,)
    by_time = uniforms.reshape(-1, length).T.copy()  # (L, N): each step reads one contiguous row
    tokens = np.empty((length, n_chains * n_sequences), dtype=np.int64)
    start_edges = np.repeat(start.cumsum(axis=-1)[:, :-1], n_sequences, axis=0)  # (N, K-1)
    tokens[0] = (by_time[0, :, None] >= start_edges).sum(axis=1)
    for t in range(1, length):
        step_edges = flat_edges[first_row + tokens[t - 1]]
        tokens[t] = (by_time[t, :, None] >= step_edges).sum(axis=1)
    return tokens.T.reshape(n_chains, n_sequences, length).copy()
