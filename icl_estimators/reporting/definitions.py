"""What the interventions change."""

from __future__ import annotations

__all__ = ["INTERVENTION_DEFINITIONS"]

INTERVENTION_DEFINITIONS = (
    "*previous-token*: layer 1 attends only to the previous token; *exact-match*: layer 2 attends uniformly, and only "
    "to matching positions; *exact-attention*: both; *no-direct-path*: a position’s own features do not reach its "
    "logits; *read-out-half*, *-double*: what layer 2 adds to the logits is scaled by ½ or 2; "
    "*perfect-read-out*: the prediction is what layer 2 copies, with no logits at all. All other parts keep the "
    "weights that were trained together with the replaced part. This shows what a part does in this model, not how "
    "well a model trained without it could do."
)
"""What is changed in the model, in Markdown."""
