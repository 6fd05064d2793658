"""The explicit two-layer induction head, as matrices.

The residual stream of width d = (K + 1) + n + (K + 1) is split into a token block T, a position block P and a
scratch block B; the vocabulary is the K real tokens and a sentinel ^, which stands at position 1 of every
sequence, so that context length m is position m + 1 (n = T + 1 positions). Everything is float64. This is the
reference and the display; :mod:`icl_estimators.estimators.construction` runs its block form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from icl_estimators.validation import InputError, as_tokens, positive_int, positive_real

__all__ = ["InductionMatrices", "InductionTrace"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class InductionTrace:
    """Everything that one forward pass computes; n = T + 1 positions, the sentinel first.

    Attributes
    ----------
    attention : tuple of two ndarrays, each of shape (N, n, n)
        Rows are queries, columns keys; row i is 0 beyond column i.
    stream : tuple of three ndarrays, each of shape (N, n, d)
        The residual stream before, between and after the layers.
    direct_path : ndarray, shape (N, n, K + 1)
        The logits' part γ·1[w = t_i] that reaches the unembedding straight from the embedding.
    induction_path : ndarray, shape (N, n, K + 1)
        The logits' part that the second head writes, γ·f_w; the last column is the sentinel's.
    """

    attention: tuple[Array, Array]
    stream: tuple[Array, Array, Array]
    direct_path: Array
    induction_path: Array

    @property
    def logits(self) -> Array:
        """Direct and induction path together, shape (N, n, K + 1)."""
        return self.direct_path + self.induction_path


class InductionMatrices:
    """The weights of the explicit construction, and its forward pass.

    Parameters
    ----------
    n_states : int
        K ≥ 2 real tokens.
    length : int
        T ≥ 1 tokens after the sentinel.
    beta : float
        β > 0, the logit scale of both attentions.
    gamma : float
        γ > 0, the scale of the unembedding.

    Attributes
    ----------
    query_key, output_value : tuple of two ndarrays of shape (d, d)
        W_QK and W_OV of each layer, acting on row vectors: score_ij = x_i W_QK x_jᵀ.
    unembedding : ndarray, shape (d, K + 1)

    Raises
    ------
    InputError
        If `n_states` < 2, `length` < 1, or `beta` or `gamma` is not a finite number above 0.

    Examples
    --------
    What follows the last A of ABACA, with A, B, C as 0, 1, 2:

    >>> trace = InductionMatrices(3, 5, beta=50.0).run([[0, 1, 0, 2, 0]])
    >>> (trace.induction_path[0, -1] + 0.0).round(9).tolist()
    [0.0, 0.5, 0.5, 0.0]
    """

    def __init__(self, n_states: int, length: int, beta: float, gamma: float = 1.0) -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)
        self.length = positive_int(length, "length")
        self.beta = positive_real(beta, "beta")
        self.gamma = positive_real(gamma, "gamma")
        vocabulary, positions = self.n_states + 1, self.length + 1
        self.width = 2 * vocabulary + positions
        self.token_block = slice(0, vocabulary)
        self.position_block = slice(vocabulary, vocabulary + positions)
        self.scratch_block = slice(vocabulary + positions, self.width)
        identity = np.eye(vocabulary)
        # Ω = β Σ_{i≥2} e_i e_{i−1}ᵀ: position i asks for position i − 1.
        omega = self.beta * np.eye(positions, k=-1)
        self.query_key = (
            self._place(self.position_block, self.position_block, omega),
            self._place(self.token_block, self.scratch_block, self.beta * identity),
        )
        self.output_value = (
            self._place(self.token_block, self.scratch_block, identity),
            self._place(self.token_block, self.token_block, identity),
        )
        self.unembedding = np.zeros((self.width, vocabulary))
        self.unembedding[self.token_block] = self.gamma * identity

    def _place(self, rows: slice, columns: slice, block: Array) -> Array:
        matrix = np.zeros((self.width, self.width))
        matrix[rows, columns] = block
        return matrix

    def embed(self, tokens: ArrayLike) -> Array:
        """Return t_i + p_i with the sentinel in front: (N, T) tokens → (N, T + 1, d)."""
        checked = as_tokens(tokens, self.n_states)
        with_sentinel = np.pad(checked, ((0, 0), (1, 0)), constant_values=self.n_states)
        n_positions = with_sentinel.shape[1]
        stream = np.zeros((*with_sentinel.shape, self.width))
        stream[..., self.token_block] = np.eye(self.n_states + 1)[with_sentinel]
        stream[..., self.position_block] = np.eye(self.length + 1)[:n_positions]
        return stream

    def run(self, tokens: ArrayLike) -> InductionTrace:
        """Run both layers on up to `length` tokens.

        Parameters
        ----------
        tokens : array_like of integers, shape (N, T)

        Returns
        -------
        InductionTrace

        Raises
        ------
        InputError
            If the tokens break the contract, or there are more than `length` of them.
        """
        checked = as_tokens(tokens, self.n_states)
        if checked.shape[1] > self.length:
            raise InputError(f"these matrices are made for up to {self.length} tokens, not {checked.shape[1]}")
        start = self.embed(checked)
        first = self._attention(start, self.query_key[0])
        middle = start + first @ start @ self.output_value[0]
        second = self._attention(middle, self.query_key[1])
        written = second @ middle @ self.output_value[1]
        return InductionTrace(
            attention=(first, second),
            stream=(start, middle, middle + written),
            direct_path=middle @ self.unembedding,
            induction_path=written @ self.unembedding,
        )

    @staticmethod
    def _attention(stream: Array, query_key: Array) -> Array:
        scores = stream @ query_key @ stream.swapaxes(-1, -2)  # (N, n, n)
        later = np.triu(np.ones(scores.shape[-2:], dtype=bool), k=1)
        return np.asarray(softmax(np.where(later, -np.inf, scores), axis=-1))
