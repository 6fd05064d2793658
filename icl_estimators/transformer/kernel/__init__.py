"""A compiled kernel under the folded model: tokens and folded numbers in; loss and gradient, or logits, out.

Needs numba (``pip install 'icl-estimators[fast]'``); ask :mod:`icl_estimators.transformer.engines` before importing.
"""

from icl_estimators.transformer.kernel.logits import kernel_logits
from icl_estimators.transformer.kernel.loss import kernel_loss

__all__ = ["kernel_logits", "kernel_loss"]
