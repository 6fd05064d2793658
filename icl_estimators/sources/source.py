"""The protocol of a source of sequences: it draws them, and says what it knows about their law."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from icl_estimators.sources.streams import Purpose

__all__ = ["Posterior", "Sample", "Source"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """Sequences with the chains that made them.

    Attributes
    ----------
    tokens : ndarray of int64, shape (R, S, T + 1)
        Chain r's sequences. The first T tokens are read; the last is only the target of context length T.
    transition : ndarray of float64, shape (R, M, K)
        The law of the next token in each of the M states of each chain: its transition matrix where the state is
        the current token.
    state : ndarray of int64, shape (R, S, T), optional
        The state at each context, from 0 to M − 1, where that is not the current token.
    """

    tokens: NDArray[np.int64]
    transition: Array
    state: NDArray[np.int64] | None = None

    @property
    def states(self) -> NDArray[np.int64]:
        """The state at each context, shape (R, S, T)."""
        return self.tokens[:, :, :-1] if self.state is None else self.state

    @property
    def inputs(self) -> NDArray[np.int64]:
        """Tokens read by an estimator, shape (N, T), N = R·S, chain by chain."""
        n_chains, n_sequences, length = self.tokens.shape
        return self.tokens.reshape(n_chains * n_sequences, length)[:, :-1]

    @property
    def targets(self) -> NDArray[np.int64]:
        """The token after each context, shape (N, T)."""
        n_chains, n_sequences, length = self.tokens.shape
        return self.tokens.reshape(n_chains * n_sequences, length)[:, 1:]

    @property
    def truth(self) -> Array:
        """The true law of the next token at each context, shape (N, T, K): P[t_n, ·] of a Markov chain."""
        n_chains, n_sequences, length = self.tokens.shape
        chain = np.arange(n_chains)[:, None, None]
        rows = self.transition[chain, self.states]  # (R, S, T, K)
        return rows.reshape(n_chains * n_sequences, length - 1, -1)


@runtime_checkable
class Posterior(Protocol):
    """What is known of the law P of the next token, given each of many prefixes; … is their shape."""

    @property
    def predictive(self) -> Array:
        """q = E[P | prefix], the Bayes rule, shape (…, K)."""

    @property
    def kl_floor(self) -> Array:
        """ρ = E[KL(P ‖ q) | prefix] in nats, shape (…,): E[KL(P ‖ p̂) | prefix] = ρ + KL(q ‖ p̂) for any p̂."""

    @property
    def variance(self) -> Array:
        """Σ_w Var(P_w | prefix), shape (…,)."""

    def total_variation(self, prediction: Array) -> Array:
        """Return ½ Σ_w E[|P_w − p̂_w| | prefix], shape (…,), for predictions of shape (…, K)."""

    def __getitem__(self, index: Any) -> Self:
        """Return the posterior of some of the prefixes."""


@runtime_checkable
class Source(Protocol):
    """What draws sequences: chains that are unknown to estimators, and sequences of each.

    A class of your own that derives from this one needs `n_states`, `concentration`, `spec`, `description`,
    :meth:`sample` and :meth:`visits`, and :meth:`posterior` where it has a form. Everything else follows.
    """

    @property
    @abstractmethod
    def n_states(self) -> int:
        """K ≥ 2."""

    @property
    @abstractmethod
    def concentration(self) -> float:
        """α > 0 of the Dirichlet prior, for the estimators that know it."""

    @property
    @abstractmethod
    def spec(self) -> str:
        """What :func:`icl_estimators.sources.get_source` makes it from."""

    @property
    @abstractmethod
    def description(self) -> str:
        """How chains and sequences are made, as part of a sentence of the report."""

    @property
    def start(self) -> str:
        """Name of the law of the first token."""
        return "uniform"

    @property
    def first_token(self) -> Array | None:
        """The law of the first token where it does not depend on the chain, shape (K,); else None."""
        return np.full(self.n_states, 1.0 / self.n_states)

    @property
    def exact_posterior(self) -> bool:
        """Whether the posterior given a prefix is known exactly: regret and exact risk are defined."""
        return self.posterior(np.zeros((1, 1), dtype=np.int64)) is not None

    @abstractmethod
    def sample(
        self, chains: Iterable[int], *, sequences_per_chain: int, length: int, seed: int = 0, purpose: Purpose = "risk"
    ) -> Sample:
        """Draw the chains with the given numbers, and sequences of each.

        Chain r is the same chain in every call; more chains, more sequences or longer ones keep what was there.
        """

    @abstractmethod
    def visits(self, sample: Sample) -> Array:
        """Return the law of the state at each context length given the chain, (R, T, M), for bias and variance."""

    def posterior(self, tokens: NDArray[np.int64]) -> Posterior | None:
        """Return the posterior given every prefix of each sequence; None where it is not known exactly.

        Parameters
        ----------
        tokens : ndarray of int64, shape (N, T)

        Returns
        -------
        Posterior of shape (N, T), or None
        """
        return None

    def posterior_predictive(self, tokens: NDArray[np.int64]) -> Array | None:
        """Return the Bayes rule's predictions, shape (N, T) → (N, T, K), or None."""
        posterior = self.posterior(tokens)
        return None if posterior is None else posterior.predictive

    def prefix_probabilities(self, tokens: NDArray[np.int64]) -> Array | None:
        """Return the probability of every prefix of each sequence, with the chain integrated out.

        Parameters
        ----------
        tokens : ndarray of int64, shape (N, T)

        Returns
        -------
        ndarray of float64, shape (N, T), or None
            ``[i, n-1]`` is P(t_1 … t_n), by the chain rule of the posterior predictive; None where it has none.
        """
        first, predictive = self.first_token, self.posterior_predictive(tokens)
        if first is None or predictive is None:
            return None
        steps = np.take_along_axis(predictive[:, :-1], tokens[:, 1:, None], axis=2)[..., 0]
        return np.concatenate([first[tokens[:, :1]], steps], axis=1).cumprod(axis=1)

    def record(self) -> dict[str, Any]:
        """Return what run.json keeps: plain values that decide the source, and what the report says of it."""
        return {
            "source": self.spec,
            "states": self.n_states,
            "concentration": self.concentration,
            "start": self.start,
            "source_description": self.description,
            "exact_posterior": self.exact_posterior,
        }
