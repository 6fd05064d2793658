"""What is measured: risk, bias and variance, exact risk, smoothing, attention, observed data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icl_estimators.lazy import on_use

if TYPE_CHECKING:
    from icl_estimators.experiments.compare import Comparison, Paths, Progress, compare, run_study
    from icl_estimators.experiments.exact import EXACT_METRICS, ExactRisk, check_exact_budget, exact_risk
    from icl_estimators.experiments.observed import (
        ObservedRow,
        checked_length,
        observed_losses,
        observed_risk,
        observed_rows,
        risk_row,
        unchecked_line,
    )
    from icl_estimators.experiments.smoothing import (
        Smoothing,
        SmoothingDesign,
        SmoothingPart,
        effective_smoothing,
        family_fits,
        run_smoothing,
        smoothing_block,
        smoothing_design,
        smoothing_options,
    )
    from icl_estimators.experiments.study import Study

__all__ = [
    "Comparison",
    "EXACT_METRICS",
    "ExactRisk",
    "ObservedRow",
    "Paths",
    "Progress",
    "Smoothing",
    "SmoothingDesign",
    "SmoothingPart",
    "Study",
    "check_exact_budget",
    "checked_length",
    "compare",
    "effective_smoothing",
    "exact_risk",
    "family_fits",
    "observed_losses",
    "observed_risk",
    "observed_rows",
    "risk_row",
    "run_smoothing",
    "run_study",
    "smoothing_block",
    "smoothing_design",
    "smoothing_options",
    "unchecked_line",
]

_HOMES = {
    "Comparison": "icl_estimators.experiments.compare",
    "EXACT_METRICS": "icl_estimators.experiments.exact",
    "ExactRisk": "icl_estimators.experiments.exact",
    "ObservedRow": "icl_estimators.experiments.observed",
    "Paths": "icl_estimators.experiments.compare",
    "Progress": "icl_estimators.experiments.compare",
    "Smoothing": "icl_estimators.experiments.smoothing",
    "SmoothingDesign": "icl_estimators.experiments.smoothing",
    "SmoothingPart": "icl_estimators.experiments.smoothing",
    "Study": "icl_estimators.experiments.study",
    "check_exact_budget": "icl_estimators.experiments.exact",
    "checked_length": "icl_estimators.experiments.observed",
    "compare": "icl_estimators.experiments.compare",
    "effective_smoothing": "icl_estimators.experiments.smoothing",
    "exact_risk": "icl_estimators.experiments.exact",
    "family_fits": "icl_estimators.experiments.smoothing",
    "observed_losses": "icl_estimators.experiments.observed",
    "observed_risk": "icl_estimators.experiments.observed",
    "observed_rows": "icl_estimators.experiments.observed",
    "risk_row": "icl_estimators.experiments.observed",
    "run_smoothing": "icl_estimators.experiments.smoothing",
    "run_study": "icl_estimators.experiments.compare",
    "smoothing_block": "icl_estimators.experiments.smoothing",
    "smoothing_design": "icl_estimators.experiments.smoothing",
    "smoothing_options": "icl_estimators.experiments.smoothing",
    "unchecked_line": "icl_estimators.experiments.observed",
}
__getattr__, __dir__ = on_use(__name__, _HOMES)
