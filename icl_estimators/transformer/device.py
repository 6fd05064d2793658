"""Where torch computes."""

from __future__ import annotations

import torch

from icl_estimators.validation import InputError

__all__ = ["require_device"]


def require_device(device: str) -> torch.device:
    """Return the device of that name.

    Raises
    ------
    InputError
        If it is neither "cpu" nor "cuda", or this machine has no such device.
    """
    try:
        found = torch.device(device)
    except RuntimeError:
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise InputError(f"device must be cpu or cuda, not {device!r}")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"there is no device {device} on this machine ({torch.cuda.device_count()} CUDA devices found): use cpu"
        )
    return found
