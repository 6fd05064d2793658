"""Attention masses sequence by sequence, so that masses at two context lengths can be compared in pairs."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.questions import LEVEL, Sizes
from icl_estimators import sample_chains
from icl_estimators.estimators.transformer import Transformer
from icl_estimators.experiments.attention_quantities import AttentionQuantities, attention_quantities
from icl_estimators.inference import Moments, PairMoments, mean_intervals, paired_differences
from icl_estimators.notes import Code, Note

__all__ = ["attend", "change", "mean_over", "table"]

Array = NDArray[np.float64]
Estimate = tuple[float, float, float]

_BATCH = 400


def attend(sizes: Sizes, checkpoint: Path | None = None) -> AttentionQuantities:
    """Return the masses of a trained model, the shipped one by default, on the study's sequences.

    Returns
    -------
    AttentionQuantities
        Arrays of shape (`sizes.attention`, T): one sequence of each chain of the risk stream.
    """
    rule = Transformer(3, checkpoint=checkpoint)
    parts = []
    for first in range(0, sizes.attention, _BATCH):
        chains = range(first, min(first + _BATCH, sizes.attention))
        tokens = sample_chains(
            chains, sequences_per_chain=1, length=sizes.length, seed=sizes.seed, purpose="risk"
        ).inputs
        layers = rule.attention(tokens)
        assert layers is not None  # the shipped models have two layers of one head
        parts.append(attention_quantities(*layers, tokens))
    return AttentionQuantities(
        *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(AttentionQuantities))
    )


def table(estimator: str, quantity: str, values: Array) -> pd.DataFrame:
    """Return the mean of a quantity at each context length, with pointwise intervals; columns as attention.csv."""
    found = mean_intervals(Moments.of(values), level=LEVEL, undefined=Note(Code.NO_PREVIOUS_TOKEN))
    return pd.DataFrame(
        {
            "estimator": estimator,
            "context_length": np.arange(1, values.shape[1] + 1),
            "quantity": quantity,
            "estimate": found.estimate,
            "se": found.se,
            "ci_low": found.low,
            "ci_high": found.high,
            "note": [note or Note(Code.ONE_SEQUENCE_EACH, chains=len(values)) for note in found.notes],
        }
    )


def change(values: Array, first: int, second: int) -> Estimate:
    """Return the mean at context length `second` less that at `first`, paired by sequence, with its interval."""
    pair = PairMoments.of(values[:, second - 1 : second], values[:, first - 1 : first])
    found = paired_differences(pair, level=LEVEL)
    return float(found.difference[0]), float(found.low[0]), float(found.high[0])


def mean_over(values: Array, first: int, last: int) -> Estimate:
    """Return the mean over context lengths `first` … `last`, averaged in each sequence, with its interval."""
    found = mean_intervals(Moments.of(values[:, first - 1 : last].mean(axis=1, keepdims=True)), level=LEVEL)
    return float(found.estimate[0]), float(found.low[0]), float(found.high[0])
