"""The trained transformer: config, plain module, exact folded form, training, checkpoints."""

from icl_estimators.transformer.checkpoint import CheckpointInfo, load_checkpoint, save_checkpoint
from icl_estimators.transformer.config import ModelConfig
from icl_estimators.transformer.folded import Folded, construction_folded, fold
from icl_estimators.transformer.folded_forward import folded_attention, folded_logits
from icl_estimators.transformer.folded_loss import folded_loss
from icl_estimators.transformer.interventions import (
    EXACT_ATTENTION,
    INTERVENTIONS,
    PERFECT_READ_OUT,
    Intervention,
    intervened_attention,
    intervened_logits,
)
from icl_estimators.transformer.model import Transformer, initial_parameters
from icl_estimators.transformer.positions import Far, far_distance
from icl_estimators.transformer.training.measuring import final_metrics
from icl_estimators.transformer.training.recipe import Recipe
from icl_estimators.transformer.training.trainer import MetricRow, Trainer
from icl_estimators.transformer.training.updates import advance

__all__ = [
    "advance",
    "EXACT_ATTENTION",
    "INTERVENTIONS",
    "PERFECT_READ_OUT",
    "CheckpointInfo",
    "Far",
    "Folded",
    "Intervention",
    "MetricRow",
    "ModelConfig",
    "Recipe",
    "Trainer",
    "Transformer",
    "construction_folded",
    "far_distance",
    "final_metrics",
    "fold",
    "folded_attention",
    "folded_logits",
    "folded_loss",
    "initial_parameters",
    "intervened_attention",
    "intervened_logits",
    "load_checkpoint",
    "save_checkpoint",
]
