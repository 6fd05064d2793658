"""The model that is studied: attention layers on a residual stream, and nothing else.

No MLP, no layer norm, no biases, untied unembedding. With rows as positions and X the stream, a head adds
A (X W_V) W_O, where A is the causal softmax of

    score_ij = (x_i W_Q)(x_j W_K)ᵀ / √d_head + r_{i−j}

and r holds one learnt scalar for each relative distance, head and layer, outside the scaling.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from icl_estimators.sources import Stream
from icl_estimators.transformer.config import ModelConfig
from icl_estimators.transformer.positions import Far, bias_matrix
from icl_estimators.validation import InputError

__all__ = ["Transformer", "initial_parameters"]


def initial_parameters(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Draw the weights that training starts from, on their own stream of `seed`.

    Returns
    -------
    dict of name to float32 Tensor
        As :attr:`ModelConfig.parameter_shapes` lists them: the embedding normal with standard deviation
        `init_std`, biases 0, every other matrix uniform on ±1/√d.

    Raises
    ------
    InputError
        If `seed` is not an integer of at least 0.

    Examples
    --------
    >>> sum(tensor.numel() for tensor in initial_parameters(ModelConfig(), seed=0).values())
    33352
    """
    generator = Stream(seed, "training", "weights").generator(0)
    bound = 1.0 / math.sqrt(config.d_model)
    parameters = {}
    for name, shape in config.parameter_shapes.items():
        if name == "embedding":
            values = config.init_std * generator.standard_normal(shape)
        elif name.endswith("distance_bias"):
            values = np.zeros(shape)
        else:
            values = generator.uniform(-bound, bound, shape)
        parameters[name] = torch.from_numpy(values.astype(np.float32))
    return parameters


class Attention(nn.Module):
    """One attention layer; its weights multiply rows from the right."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d = config.d_model
        self.n_heads = config.n_heads
        self.distance_bias = nn.Parameter(torch.empty(config.n_heads, config.n_distances))
        self.query = nn.Parameter(torch.empty(d, d))
        self.key = nn.Parameter(torch.empty(d, d))
        self.value = nn.Parameter(torch.empty(d, d))
        self.output = nn.Parameter(torch.empty(d, d))

    def weights(self, stream: Tensor, far: Far) -> Tensor:
        """Return the attention matrices, shape (B, H, T, T)."""
        length = stream.shape[1]
        query, key = (self._heads(stream @ matrix) for matrix in (self.query, self.key))  # (B, H, T, d/H)
        bias = bias_matrix(self.distance_bias, length, -math.inf, far)  # (H, T, T)
        scores = query @ key.mT / math.sqrt(query.shape[-1]) + bias
        return scores.softmax(dim=-1)

    def forward(self, stream: Tensor, weights: Tensor) -> Tensor:
        """Return what the layer adds to the stream, shape (B, T, d), given its attention matrices."""
        mixed = weights @ self._heads(stream @ self.value)  # (B, H, T, d/H)
        return mixed.transpose(1, 2).flatten(2) @ self.output  # (B, T, d)

    def _heads(self, rows: Tensor) -> Tensor:
        return rows.unflatten(2, (self.n_heads, -1)).transpose(1, 2)  # (B, T, d) -> (B, H, T, d/H)


class Transformer(nn.Module):
    """An attention-only transformer that predicts the next token at every position.

    Parameters
    ----------
    config : ModelConfig, optional
        The default is the model that the package studies: 33,352 weights.
    seed : int
        Seed of the initial weights.

    Raises
    ------
    InputError
        If `seed` is not an integer of at least 0.

    Examples
    --------
    >>> model = Transformer()
    >>> model(torch.tensor([[0, 1, 0, 2, 0]])).shape
    torch.Size([1, 5, 3])
    """

    def __init__(self, config: ModelConfig | None = None, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config or ModelConfig()
        d, k = self.config.d_model, self.config.n_states
        self.embedding = nn.Parameter(torch.empty(k + self.config.sentinel, d))
        self.layers = nn.ModuleList(Attention(self.config) for _ in range(self.config.n_layers))
        self.unembedding = nn.Parameter(torch.empty(d, k))
        self.load_state_dict(initial_parameters(self.config, seed))

    def forward(self, tokens: Tensor, *, far: Far = None) -> Tensor:
        """Return logits of the next token.

        Parameters
        ----------
        tokens : Tensor of int64, shape (B, T)
            Tokens in [0, K), without the sentinel, which the model adds itself.
        far : "last", int or None
            The rule for positions beyond the trained length; see :mod:`icl_estimators.transformer.positions`.

        Returns
        -------
        Tensor, shape (B, T, K)

        Raises
        ------
        InputError
            If `far` is neither "last" nor a trained distance.
        """
        stream, _ = self._run(tokens, far)
        logits: Tensor = stream @ self.unembedding  # (B, T', K)
        return logits[:, 1:] if self.config.sentinel else logits

    def attention(self, tokens: Tensor, *, far: Far = None) -> list[Tensor]:
        """Return each layer's attention matrices, shape (B, H, T', T'); row i attends to columns j ≤ i.

        T' = T, or T + 1 with the sentinel at position 0.

        Raises
        ------
        InputError
            If `far` is neither "last" nor a trained distance.
        """
        return self._run(tokens, far)[1]

    def _run(self, tokens: Tensor, far: Far) -> tuple[Tensor, list[Tensor]]:
        """Return the last stream, shape (B, T', d), T' = T or T + 1, and each layer's attention matrices."""
        stream = self._embed(tokens)
        matrices = []
        for layer in self.layers:
            assert isinstance(layer, Attention)
            matrices.append(layer.weights(stream, far))
            stream = stream + layer(stream, matrices[-1])
        return stream, matrices

    def _embed(self, tokens: Tensor) -> Tensor:
        if tokens.ndim != 2 or not tokens.numel():
            raise InputError(f"tokens must be a non-empty (B, T) tensor, not one of shape {tuple(tokens.shape)}")
        if self.config.sentinel:
            tokens = torch.nn.functional.pad(tokens, (1, 0), value=self.config.n_states)
        return self.embedding[tokens]  # (B, T', d)
