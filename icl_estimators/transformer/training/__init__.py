"""Training: the recipe, the trainer, runs on disk, and several runs at once."""

from icl_estimators.transformer.training.measuring import (
    VALIDATION_BATCHES,
    final_metrics,
    held_out,
    probabilities_of,
)
from icl_estimators.transformer.training.recipe import (
    Recipe,
    Schedule,
    row_steps,
    snapshot_steps,
)
from icl_estimators.transformer.training.trainer import (
    MetricRow,
    Trainer,
    TrainingState,
)
from icl_estimators.transformer.training.updates import (
    advance,
)

__all__ = [
    "MetricRow",
    "Recipe",
    "Schedule",
    "Trainer",
    "TrainingState",
    "VALIDATION_BATCHES",
    "advance",
    "final_metrics",
    "held_out",
    "probabilities_of",
    "row_steps",
    "snapshot_steps",
]
