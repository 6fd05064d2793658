from __future__ import annotations

import pytest
import torch

from icl_estimators.transformer.device import require_device
from icl_estimators.validation import InputError


def test_device_that_is_absent():
    with pytest.raises(InputError, match="device must be cpu or cuda, not 'meta'"):
        require_device("meta")
    absent = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(InputError, match=f"there is no device {absent} on this machine"):
        require_device(absent)
