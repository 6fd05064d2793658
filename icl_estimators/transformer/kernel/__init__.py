"""A compiled kernel under the folded model: tokens and folded numbers in; loss and gradient, or logits, out.

Needs numba (``pip install 'icl-estimators[fast]'``); ask :mod:`icl_estimators.transformer.engines` before importing.
"""

from __future__ import annotations

import torch

from icl_estimators.transformer.folded import Folded, construction_folded
from icl_estimators.transformer.kernel.logits import kernel_logits, kernel_probabilities
from icl_estimators.transformer.kernel.loss import kernel_loss

__all__ = ["compile_logits", "compile_loss", "kernel_logits", "kernel_loss", "kernel_probabilities"]


def compile_loss(n_states: int) -> None:
    """Compile the gradient for K states unless it is in numba's cache, which takes seconds."""
    one = construction_folded(n_states, 1, beta=1.0, gamma=1.0)
    kernel_loss(Folded(*(tensor.float()[None] for tensor in one.tensors)), torch.zeros(1, 1, 2, dtype=torch.int64))


def compile_logits(n_states: int) -> None:
    """Compile the logits for K states unless they are in numba's cache."""
    one = construction_folded(n_states, 1, beta=1.0, gamma=1.0)
    kernel_logits(one, torch.zeros(1, 1, dtype=torch.int64).numpy())
