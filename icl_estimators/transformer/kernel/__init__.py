"""A compiled kernel under the folded model: tokens and folded numbers in; loss and gradient, or logits, out.

Needs numba (``pip install 'icl-estimators[fast]'``); ask :mod:`icl_estimators.transformer.engines` before importing.
"""

from __future__ import annotations

import torch

from icl_estimators.transformer.folded import Folded, construction_folded
from icl_estimators.transformer.kernel.logits import kernel_logits
from icl_estimators.transformer.kernel.loss import kernel_loss

__all__ = ["compile_for", "kernel_logits", "kernel_loss"]


def compile_for(n_states: int) -> None:
    """Compile for K states what is not in numba's cache yet, which takes seconds."""
    one = construction_folded(n_states, 1, beta=1.0, gamma=1.0)
    tokens = torch.zeros(1, 1, 2, dtype=torch.int64)
    kernel_loss(Folded(*(tensor.float()[None] for tensor in one.tensors)), tokens)
    kernel_logits(one, tokens[0].numpy())
