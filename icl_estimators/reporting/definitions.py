"""What the interventions change."""

from __future__ import annotations

__all__ = ["INTERVENTION_DEFINITIONS"]

INTERVENTION_DEFINITIONS = (
    "*previous-token*: layer 1 looks at the previous token alone; *exact-match*: layer 2 looks, evenly, at matching "
    "positions alone; *exact-attention*: both; *no-direct-path*: a position’s own features do not reach its logits; "
    "*read-out-half*, *-double*: what layer 2 adds to the logits is scaled by ½ or 2. All other parts "
    "keep the weights that were trained together with the part replaced: this tells what a part does in this model, "
    "not how well a model without it could do."
)
"""What is changed in the model, in Markdown."""
