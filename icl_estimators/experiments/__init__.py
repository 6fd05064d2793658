"""What is measured: risk, bias and variance, exact risk, smoothing, attention, observed data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icl_estimators.lazy import on_use

if TYPE_CHECKING:
    from icl_estimators.experiments.assembly import assemble
    from icl_estimators.experiments.compare import run_study
    from icl_estimators.experiments.exact import EXACT_METRICS, ExactRisk, check_exact_budget, exact_risk
    from icl_estimators.experiments.observed import (
        checked_length,
        observed_losses_of,
        observed_risk,
        unchecked_line,
    )
    from icl_estimators.experiments.observed_losses import observed_losses
    from icl_estimators.experiments.observed_study import ObservedOptions, ObservedStudy
    from icl_estimators.experiments.smoothing import (
        SmoothingDesign,
        SmoothingPart,
        family_fits,
        run_smoothing,
        smoothing_block,
    )
    from icl_estimators.experiments.study import ChainOptions, Study, StudyOptions

__all__ = [
    "ChainOptions",
    "EXACT_METRICS",
    "ExactRisk",
    "ObservedOptions",
    "ObservedStudy",
    "SmoothingDesign",
    "SmoothingPart",
    "Study",
    "StudyOptions",
    "assemble",
    "check_exact_budget",
    "checked_length",
    "exact_risk",
    "family_fits",
    "observed_losses",
    "observed_losses_of",
    "observed_risk",
    "run_smoothing",
    "run_study",
    "smoothing_block",
    "unchecked_line",
]

_HOMES = {
    "ChainOptions": "icl_estimators.experiments.study",
    "EXACT_METRICS": "icl_estimators.experiments.exact",
    "ExactRisk": "icl_estimators.experiments.exact",
    "ObservedOptions": "icl_estimators.experiments.observed_study",
    "ObservedStudy": "icl_estimators.experiments.observed_study",
    "SmoothingDesign": "icl_estimators.experiments.smoothing",
    "SmoothingPart": "icl_estimators.experiments.smoothing",
    "Study": "icl_estimators.experiments.study",
    "StudyOptions": "icl_estimators.experiments.study",
    "assemble": "icl_estimators.experiments.assembly",
    "check_exact_budget": "icl_estimators.experiments.exact",
    "checked_length": "icl_estimators.experiments.observed",
    "exact_risk": "icl_estimators.experiments.exact",
    "family_fits": "icl_estimators.experiments.smoothing",
    "observed_losses": "icl_estimators.experiments.observed_losses",
    "observed_losses_of": "icl_estimators.experiments.observed",
    "observed_risk": "icl_estimators.experiments.observed",
    "run_smoothing": "icl_estimators.experiments.smoothing",
    "run_study": "icl_estimators.experiments.compare",
    "smoothing_block": "icl_estimators.experiments.smoothing",
    "unchecked_line": "icl_estimators.experiments.observed",
}
__getattr__, __dir__ = on_use(__name__, _HOMES)
