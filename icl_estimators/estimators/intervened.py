"""A trained transformer with a part of its mechanism replaced, as an estimator."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from icl_estimators.estimators.base import Estimator
from icl_estimators.estimators.capabilities import folded_of
from icl_estimators.estimators.transformer import Transformer, in_fixed_batches
from icl_estimators.transformer import Far, Intervention, intervened_attention, intervened_logits
from icl_estimators.validation import InputError, as_tokens

__all__ = ["Intervened"]

_KEPT = ("windowed", "tolerance", "checkpoint", "device", "info")
"""What the changed model offers as the intact one does; see :mod:`icl_estimators.estimators.capabilities`."""


class Intervened:
    """The softmax of a trained model's logits under an intervention.

    Parameters
    ----------
    model : Estimator
        The intact model, which offers :class:`icl_estimators.estimators.HasFolded`; it is not changed.
    intervention : Intervention

    Raises
    ------
    InputError
        If the model has no folded form to intervene on.

    Examples
    --------
    >>> intact = Transformer(3)
    >>> Intervened(intact, Intervention("no-direct-path", direct_path=False)).name
    'transformer:no-direct-path'
    """

    def __init__(self, model: Estimator, intervention: Intervention) -> None:
        folded = folded_of(model)
        if folded is None:
            raise InputError(f"{model.name} has no folded form: interventions need two layers of one head")
        self.model = model
        self.n_states = model.n_states
        self.name = f"{model.name}:{intervention.name}"
        self.intervention = intervention
        self._folded, self._device = folded, folded.r1.device
        self._far: Far = model.far if isinstance(model, Transformer) else None
        for offer in _KEPT:
            if hasattr(model, offer):
                setattr(self, offer, getattr(model, offer))
        self.recipe: str | None = None  # its rows are not those of the intact runs

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        logits = in_fixed_batches(self._forward, as_tokens(tokens, self.n_states), self.n_states)
        return np.asarray(softmax(logits.astype(np.float64), axis=-1))

    @torch.inference_mode()
    def attention(self, tokens: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return both layers' weights, shape (N, T, T) each; also those of a head whose output is zero."""
        given = torch.from_numpy(as_tokens(tokens, self.n_states).copy()).to(self._device)
        first, second = intervened_attention(self._folded, given, self.intervention, far=self._far)
        return first.cpu().numpy().astype(np.float64), second.cpu().numpy().astype(np.float64)

    @torch.inference_mode()
    def _forward(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        given = torch.from_numpy(tokens).to(self._device)
        logits = intervened_logits(self._folded, given, self.intervention, far=self._far)
        result: NDArray[np.float32] = logits.cpu().numpy()
        return result
