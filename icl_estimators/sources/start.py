"""Start laws: the law of the first token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.validation import InputError

__all__ = [
    "START_LAWS",
    "StartLaw",
    "start_law",
    "start_probabilities",
    "stationary_distribution",
    "visit_probabilities",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StartLaw:
    """A law of the first token.

    Attributes
    ----------
    name : str
    description : str
        The law as part of a sentence of the report.
    probabilities : callable
        (transition (R, K, K), chains' numbers or None) → ndarray of float64, shape (R, K).
    depends_on_chain : bool
        Whether the first token informs about the chain, so that the posterior given a prefix has no closed form. If
        not, `probabilities` uses the shape of `transition` only.
    """

    name: str
    description: str
    probabilities: Callable[[Array, Sequence[int] | None], Array]
    depends_on_chain: bool = False


def start_law(name: str) -> StartLaw:
    """Return the start law of that name.

    Raises
    ------
    InputError
        If there is none.

    Examples
    --------
    >>> start_law("stationary").depends_on_chain
    True
    """
    if name not in START_LAWS:
        raise InputError(f"start must be one of {', '.join(START_LAWS)}, not {name!r}")
    return START_LAWS[name]


def start_probabilities(transition: Array, start: str, *, chains: Sequence[int] | None = None) -> Array:
    """Return the law of the first token of each chain.

    Parameters
    ----------
    transition : ndarray of float64, shape (R, K, K)
    start : str
        A name of :data:`START_LAWS`.
    chains : sequence of int, optional
        The chains' numbers, for the message of an error; 0 … R − 1 by default.

    Returns
    -------
    ndarray of float64, shape (R, K)

    Raises
    ------
    InputError
        If `start` is unknown, or `start` is "stationary" and a chain has no unique stationary law.
    """
    return start_law(start).probabilities(transition, chains)


def stationary_distribution(transition: ArrayLike, *, chains: Sequence[int] | None = None) -> NDArray[np.float64]:
    """Return π with πP = π, π ≥ 0, Σπ = 1, for each chain.

    Parameters
    ----------
    transition : array_like of float, shape (…, K, K)
        Rows sum to 1.
    chains : sequence of int, optional
        The chains' numbers, for the message of an error; 0, 1, … by default.

    Returns
    -------
    ndarray of float64, shape (…, K)

    Raises
    ------
    InputError
        If a chain has more than one closed class of states, so that π is not unique; the first such
        chain is named.

    Notes
    -----
    The linear system is solved by the elimination of Grassmann, Taksar & Heyman (1985), which never
    subtracts, so that nearly decomposable chains keep their relative accuracy; on logarithms, because at
    α = 0.001 products of two entries underflow. π is unique exactly if some state can be reached from every
    state; that state is eliminated last.

    Examples
    --------
    >>> stationary_distribution([[0.5, 0.5], [0.25, 0.75]]).round(12).tolist()
    [0.333333333333, 0.666666666667]
    """
    matrices = np.asarray(transition, dtype=np.float64)
    n_states = matrices.shape[-1]
    flat = matrices.reshape(-1, n_states, n_states)
    reached_by_all = _reachable(flat).all(axis=1)  # (R, K)
    unique = np.any(reached_by_all, axis=1)
    if not unique.all():
        first = int(np.flatnonzero(~unique)[0])
        chain = first if chains is None else chains[first]
        raise InputError(
            f"chain {chain} has no unique stationary law (its states split into closed classes): "
            "use start='uniform' or a larger concentration"
        )
    # Bring a state that every state reaches to the front; it is what remains after elimination.
    order = (np.arange(n_states) + reached_by_all.argmax(axis=1)[:, None]) % n_states  # (R, K)
    chain_index = np.arange(len(flat))[:, None]
    with np.errstate(divide="ignore"):
        work = np.log(flat[chain_index[..., None], order[:, :, None], order[:, None, :]])  # (R, K, K)
    for last in range(n_states - 1, 0, -1):
        outflow = np.logaddexp.reduce(work[:, last, :last], axis=1, keepdims=True)
        work[:, :last, last] -= outflow
        through = work[:, :last, last, None] + work[:, last, None, :last]
        work[:, :last, :last] = np.logaddexp(work[:, :last, :last], through)
    log_weights = np.zeros((len(flat), n_states))
    for state in range(1, n_states):
        log_weights[:, state] = np.logaddexp.reduce(log_weights[:, :state] + work[:, :state, state], axis=1)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    stationary = np.empty_like(weights)
    stationary[chain_index, order] = weights
    return stationary.reshape(matrices.shape[:-1])


def _reachable(matrices: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether column's state can be reached from row's, in any number of steps, shape (R, K, K)."""
    reach = (matrices > 0) | np.eye(matrices.shape[-1], dtype=bool)
    steps = 1
    while steps < matrices.shape[-1] - 1:
        reach = np.matmul(reach, reach)
        steps *= 2
    return reach


def visit_probabilities(transition: Array, start: Array, length: int) -> Array:
    """Return π_v = P(t_n = v | P) = (start·P^{n−1})_v for n = 1 … T.

    Parameters
    ----------
    transition : ndarray of float64, shape (R, K, K)
    start : ndarray of float64, shape (R, K)
        Law of the first token.
    length : int
        T.

    Returns
    -------
    ndarray of float64, shape (R, T, K)

    Examples
    --------
    >>> visit_probabilities(np.array([[[0.5, 0.5], [0.0, 1.0]]]), np.array([[1.0, 0.0]]), 3)[0].tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]
    """
    law = np.empty((len(transition), length, transition.shape[-1]))
    law[:, 0] = start
    for n in range(1, length):
        law[:, n] = np.einsum("rv,rvw->rw", law[:, n - 1], transition)
    return np.clip(law, 0.0, 1.0)  # sums of products of probabilities may pass 1 by rounding


def _uniform(transition: Array, chains: Sequence[int] | None) -> Array:
    return np.full(transition.shape[:-1], 1.0 / transition.shape[-1])


def _stationary(transition: Array, chains: Sequence[int] | None) -> Array:
    return stationary_distribution(transition, chains=chains)


START_LAWS: dict[str, StartLaw] = {
    law.name: law
    for law in (
        StartLaw("uniform", "the first token is uniform, independent of the chain", _uniform),
        StartLaw(
            "stationary",
            "the first token is drawn from the chain’s stationary law, so that it informs about the chain",
            _stationary,
            depends_on_chain=True,
        ),
    )
}
"""Every start law by its name: one entry is all that a new one needs."""
