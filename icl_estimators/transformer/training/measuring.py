"""How good a model is on held-out sequences: the same ones for every run, never trained on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from icl_estimators.divergences import kl_divergence, log_loss
from icl_estimators.sources import ChainLaw, Sample, sample_batches
from icl_estimators.transformer.config import ModelConfig
from icl_estimators.transformer.engines import Engine
from icl_estimators.transformer.folded import fold
from icl_estimators.transformer.folded_forward import folded_logits
from icl_estimators.transformer.model import Transformer
from icl_estimators.transformer.training.recipe import Recipe

__all__ = ["VALIDATION_BATCHES", "final_metrics", "held_out", "probabilities_of"]

_HELD_OUT_BATCH = 64
# A run's regret is followed on 256 sequences. A finished model is measured on 20,480 others.
VALIDATION_BATCHES = 4
_FINAL_BATCHES = 320
_BATCHES_PER_BLOCK = 32
_REMEMBERED_TOKENS = 2**18

Held = tuple[Sample, NDArray[np.float64] | None]


def final_metrics(model: Transformer, recipe: Recipe, engine: Engine = "torch") -> dict[str, float | None]:
    """Measure a trained model on fresh sequences of its own law, the same ones for every seed.

    Returns
    -------
    dict
        `regret_nats` over n = 1 … T and `regret_late_nats` over n > T/2, each with the standard error of the
        mean over `sequences` independent sequences (`…_se`), None where the posterior is not exact; and
        `log_loss_nats`.
    """
    law, weights = recipe.law(model.config.n_states), dict(model.named_parameters())
    last = VALIDATION_BATCHES + _FINAL_BATCHES
    # One number for each sequence, a block of sequences at a time, so that memory stays flat.
    found: dict[str, list[NDArray[np.float64]]] = {"log_loss_nats": [], "regret_nats": [], "regret_late_nats": []}
    for first in range(VALIDATION_BATCHES, last, _BATCHES_PER_BLOCK):
        sample, predictive = held_out(law, recipe.length, first, min(first + _BATCHES_PER_BLOCK, last))
        probabilities = probabilities_of(model.config, weights, sample.inputs, engine)
        found["log_loss_nats"].append(log_loss(probabilities, sample.targets).mean(axis=1))
        if predictive is not None:
            regret = kl_divergence(predictive, probabilities)  # (N, T)
            found["regret_nats"].append(regret.mean(axis=1))
            found["regret_late_nats"].append(regret[:, recipe.length // 2 :].mean(axis=1))
    metrics: dict[str, float | None] = {"sequences": _HELD_OUT_BATCH * _FINAL_BATCHES}
    for name, parts in found.items():
        metrics[name], metrics[f"{name}_se"] = _mean_and_se(np.concatenate(parts)) if parts else (None, None)
    return metrics


def _mean_and_se(values: NDArray[np.float64]) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def held_out(law: ChainLaw, length: int, first: int, last: int) -> Held:
    """Return validation batches `first` to `last` − 1, and the Bayes predictive on them where it is exact."""
    small = (last - first) * _HELD_OUT_BATCH * length <= _REMEMBERED_TOKENS
    return (_remembered if small else _draw_held_out)(law, length, first, last)


def _draw_held_out(law: ChainLaw, length: int, first: int, last: int) -> Held:
    batches = range(first, last)
    sample = sample_batches(batches, batch=_HELD_OUT_BATCH, length=length, law=law, seed=0, purpose="validation")
    return sample, law.posterior_predictive(sample.inputs)


_remembered = lru_cache(maxsize=12)(_draw_held_out)  # what every row and every seed of a process is measured on


def probabilities_of(
    config: ModelConfig, weights: Mapping[str, Tensor], tokens: NDArray[np.int64], engine: Engine
) -> NDArray[np.float64]:
    """Return the softmax of the model's logits, taken in float64, shape (N, T, K)."""
    weights = {name: tensor.detach().cpu() for name, tensor in weights.items()}
    folded = fold(weights) if config.foldable else None
    if engine == "kernel" and folded is not None:
        from icl_estimators.transformer.kernel import kernel_probabilities  # loads numba

        found = kernel_probabilities(folded, tokens)
        if found is not None:
            return found
    model = Transformer(config)
    model.load_state_dict(weights)
    parts = []
    with torch.inference_mode():
        for part in torch.from_numpy(tokens.copy()).split(_HELD_OUT_BATCH):
            logits = model(part) if folded is None else folded_logits(folded, part)
            parts.append(logits.double().softmax(dim=-1).numpy())
    return np.concatenate(parts)
