"""A trained transformer as an estimator."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from icl_estimators.estimators.base import UnsupportedStates
from icl_estimators.resources import shipped_checkpoint, shipped_states
from icl_estimators.transformer import (
    Far,
    Folded,
    far_distance,
    fold,
    folded_attention,
    folded_logits,
    load_checkpoint,
)
from icl_estimators.transformer import Transformer as Model
from icl_estimators.transformer.device import require_device
from icl_estimators.transformer.engines import Choice, Engine, choose_engine, require_engine
from icl_estimators.validation import InputError, as_tokens, positive_int

__all__ = ["Transformer", "in_fixed_batches"]

INNER_BATCH = 64
"""Sequences that go through the model together, always: so that results do not depend on the outer batch."""


def in_fixed_batches(
    forward: Callable[[NDArray[np.int64]], NDArray[np.float32]], tokens: NDArray[np.int64], n_states: int
) -> NDArray[np.float32]:
    """Run a model on sequences, always :data:`INNER_BATCH` together.

    Parameters
    ----------
    forward : callable
        (B, T) tokens → (B, T, K) logits.
    tokens : ndarray of int64, shape (N, T)
    n_states : int
        K.

    Returns
    -------
    ndarray of float32, shape (N, T, K)
    """
    n_sequences, length = tokens.shape
    out = np.empty((n_sequences, length, n_states), dtype=np.float32)
    batch = np.zeros((INNER_BATCH, length), dtype=np.int64)
    for first in range(0, n_sequences, INNER_BATCH):
        part = tokens[first : first + INNER_BATCH]
        batch[: len(part)] = part
        batch[len(part) :] = 0  # the rest of a last batch is not empty, so that every product has one shape
        out[first : first + len(part)] = forward(batch)[: len(part)]
    return out


class Transformer:
    """The softmax of a trained model's logits.

    The model is run in its exact folded form where it has one, by torch or, for much work, by the compiled kernel: the
    same logits to 1e-5. Logits are float32; the softmax is float64.

    Parameters
    ----------
    n_states : int
        K ≥ 2.
    checkpoint : path, optional
        A .safetensors file with its .json sidecar; by default the one that ships for this K.
    far : "last" or int, optional
        Which trained distance's bias replaces those beyond the trained length; by default one that training has
        pinned down (see :mod:`icl_estimators.transformer.positions`).
    device : str
        "cpu", or "cuda" where there is one.
    engine : {"auto", "kernel", "torch"}
        What computes the logits; see :mod:`icl_estimators.transformer.engines`. "auto" is torch, until :meth:`expect`
        says that there is enough to do for the kernel.

    Attributes
    ----------
    checkpoint, recipe, windowed, device, engine, folded
        See :mod:`icl_estimators.estimators.capabilities`: it offers every one of these.
    info : CheckpointInfo
        What the sidecar of the weights says of the training run.

    Raises
    ------
    UnsupportedStates
        If no checkpoint ships for K, or the given one is for another K.
    InputError
        If the checkpoint cannot be read or holds weights whose products overflow, `far` is not a trained distance, the
        device is not there, or the kernel was asked for and cannot run.

    Examples
    --------
    >>> Transformer(3).predict_proba([[0, 1, 0, 2, 0]]).shape
    (1, 5, 3)
    """

    windowed = True

    def __init__(
        self,
        n_states: int,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        far: Far = None,
        device: str = "cpu",
        engine: Choice = "auto",
    ) -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)
        path = shipped_checkpoint(self.n_states) if checkpoint is None else Path(checkpoint)
        if path is None:
            shipped = ", ".join(map(str, shipped_states())) or "none"
            raise UnsupportedStates(
                f"transformer: no checkpoint ships for {self.n_states} states (K shipped: {shipped}): train one with "
                f"python -m icl_estimators.train --states {self.n_states} and give it with --checkpoint"
            )
        model, self.info = load_checkpoint(path)
        self.recipe: str | None = None
        if model.config.n_states != self.n_states:
            raise UnsupportedStates(
                f"transformer: {path} is for {model.config.n_states} states, but {self.n_states} were asked for"
            )
        self.checkpoint = path
        self.device = require_device(device)
        self.far = far
        if engine not in get_args(Choice):
            raise InputError(f"engine must be one of {', '.join(get_args(Choice))}, not {engine!r}")
        self._choice = engine
        self.engine: Engine = "torch" if engine == "auto" else engine
        require_engine(self.engine, model.config, self.device.type)
        options = {"far": far, "engine": None if engine == "auto" else engine}
        self.name = ":".join(
            ["transformer", *(f"{key}={value}" for key, value in options.items() if value is not None)]
        )
        far_distance(far, model.config.n_distances)  # a wrong rule is an error now, not at the first long context
        self._model = model.to(self.device).eval()
        self._folded = fold(self._model).detach() if model.config.foldable else None
        if self._folded is not None and not all(bool(tensor.isfinite().all()) for tensor in self._folded.tensors):
            raise InputError(
                f"transformer: the weights in {path} are so large that its scores overflow: train it again"
            )

    def expect(self, sequences: int, length: int) -> None:
        """Note how much work is coming, and choose the engine if "auto" was asked for."""
        self.engine = choose_engine(
            self._choice,
            self._model.config,
            work="prediction",
            sequences=sequences,
            length=length,
            device=self.device.type,
        )
        if self.engine == "kernel":
            from icl_estimators.transformer.kernel import compile_logits  # loads numba

            compile_logits(self.n_states)  # once, here: worker processes find it in numba's cache

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        checked = as_tokens(tokens, self.n_states)
        if self.engine == "kernel" and self._folded is not None:
            from icl_estimators.transformer.kernel import kernel_probabilities  # loads numba

            found = kernel_probabilities(self._folded, checked, far=self.far)
            if found is not None:
                return found
        return np.asarray(softmax(in_fixed_batches(self._forward, checked, self.n_states).astype(np.float64), axis=-1))

    def logits(self, tokens: ArrayLike) -> NDArray[np.float32]:
        """Return the model's logits, shape (N, T, K)."""
        checked = as_tokens(tokens, self.n_states)
        if self.engine == "kernel" and self._folded is not None:
            from icl_estimators.transformer.kernel import kernel_logits  # loads numba

            found = kernel_logits(self._folded, checked, far=self.far)
            if found is not None:
                return found
        return in_fixed_batches(self._forward, checked, self.n_states)

    def attention(self, tokens: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return both layers' weights, shape (N, T, T) each; None for models of another form than two single heads."""
        if self._folded is None:
            return None
        given = torch.from_numpy(as_tokens(tokens, self.n_states).copy()).to(self.device)
        with torch.inference_mode():
            first, second = folded_attention(self._folded, given, far=self.far)
        return first.cpu().numpy().astype(np.float64), second.cpu().numpy().astype(np.float64)

    def attention_heads(self, tokens: ArrayLike) -> list[NDArray[np.float64]]:
        """Return each layer's weights, shape (N, H, P, P), whatever the form of the model."""
        checked = as_tokens(tokens, self.n_states)
        pair = self.attention(checked)
        if pair is not None:
            return [layer[:, None] for layer in pair]
        given = torch.from_numpy(checked.copy()).to(self.device)
        with torch.inference_mode():
            layers = self._model.attention(given, far=self.far)
        return [layer.cpu().numpy().astype(np.float64) for layer in layers]

    @property
    def model(self) -> Model:
        """The plain module."""
        return self._model

    @property
    def folded(self) -> Folded | None:
        """The numbers through which the model acts; None for models of another form."""
        return self._folded

    @torch.inference_mode()
    def _forward(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        given = torch.from_numpy(tokens).to(self.device)
        if self._folded is None:
            logits = self._model(given, far=self.far)
        else:
            logits = folded_logits(self._folded, given, far=self.far)
        result: NDArray[np.float32] = logits.cpu().numpy()
        return result
