"""The attention weights of a torch module, where its library has a way to show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from icl_estimators.estimators.base import ContractError

__all__ = ["Attention", "attention_reader"]

Attention = Callable[[torch.Tensor], Sequence[torch.Tensor]]
"""From token ids, shape (N, T), to the weights of each layer, shape (N, H, T, T)."""


def attention_reader(module: torch.nn.Module, name: str) -> Attention | None:
    """Return what reads the attention of a module, None if its library is not known.

    Parameters
    ----------
    module : torch.nn.Module
        A model of Hugging Face's transformers, whose configuration has ``output_attentions``, or of TransformerLens,
        which has ``run_with_cache``.
    name : str
        What messages call it.

    Raises
    ------
    ContractError
        The reader raises it if a model of transformers does not compute its weights, which needs
        ``attn_implementation="eager"``.
    """
    if callable(getattr(module, "run_with_cache", None)) and hasattr(getattr(module, "cfg", None), "n_layers"):
        return lambda batch: _of_cache(module, batch)
    if hasattr(getattr(module, "config", None), "output_attentions"):
        return lambda batch: _of_outputs(module, batch, name)
    return None


def _of_cache(module: Any, batch: torch.Tensor) -> list[torch.Tensor]:
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(module.cfg.n_layers)]
    _, cache = module.run_with_cache(batch, names_filter=names)
    return [cache[name] for name in names]


def _of_outputs(module: Any, batch: torch.Tensor, name: str) -> list[torch.Tensor]:
    found = getattr(module(batch, output_attentions=True), "attentions", None)
    if found is None or not len(found) or any(layer is None for layer in found):
        raise ContractError(
            f'{name}: the model does not return its attention: load it with attn_implementation="eager", or give '
            "from_torch(…, attention=…)"
        )
    return list(found)
