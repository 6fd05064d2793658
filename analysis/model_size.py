"""How many parameters does the trained model have?"""

from __future__ import annotations

import math

import pandas as pd
from safetensors import safe_open

from analysis.claims import Claim, Rule
from analysis.questions import Answer
from icl_estimators.resources import shipped_checkpoint

__all__ = ["answer"]

CLAIMED = 33_352
COUNT = Rule(f"the count is {CLAIMED:,}", low=CLAIMED, high=CLAIMED)


def answer() -> Answer:
    """Count the weights in the file, tensor by tensor."""
    checkpoint = shipped_checkpoint(3)
    assert checkpoint is not None, "a model for three states ships"
    with safe_open(checkpoint, framework="pt") as tensors:
        shapes = {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118
    rows = [(name, "×".join(map(str, shape)), math.prod(shape)) for name, shape in sorted(shapes.items())]
    frame = pd.DataFrame(rows, columns=["tensor", "shape", "parameters"])
    total = int(frame["parameters"].sum())
    claim = Claim.exact(f"the model has {CLAIMED:,} parameters", "entries of all weight tensors", total, COUNT)
    paragraph = (
        f"The file of the shipped model has {len(frame)} tensors with {total:,} entries: an embedding and an "
        "unembedding of 3 × 64, four matrices of 64 × 64 in each of two layers, and one number for each of 100 "
        "relative distances in each layer. There is no sentinel, and the embedding and unembedding are not tied."
    )
    return Answer("Size of the model", {"model_size": frame}, (paragraph,), (), (claim,))
