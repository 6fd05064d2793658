"""The trained transformer: config, plain module, exact folded form, training, checkpoints."""

from icl_estimators.transformer.config import ModelConfig
from icl_estimators.transformer.folded import Folded, construction_folded, fold
from icl_estimators.transformer.folded_forward import folded_attention, folded_logits
from icl_estimators.transformer.folded_loss import folded_loss
from icl_estimators.transformer.model import Transformer, initial_parameters
from icl_estimators.transformer.positions import Far, far_distance

__all__ = [
    "Far",
    "Folded",
    "ModelConfig",
    "Transformer",
    "construction_folded",
    "far_distance",
    "fold",
    "folded_attention",
    "folded_logits",
    "folded_loss",
    "initial_parameters",
]
