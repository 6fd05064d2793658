"""Which estimator is this sequence model?

A prefix goes in, a next-token distribution comes out; whatever gives it is an estimator, and estimators are
compared on the same draws. Start with :func:`compare`, or from a shell with ``python -m icl_estimators.evaluate``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from icl_estimators.lazy import on_use

if TYPE_CHECKING:
    from icl_estimators.api import (
        Comparison,
        Enumeration,
        Identification,
        Smoothing,
        attention,
        compare,
        compare_observed,
        effective_smoothing,
        identify_estimator,
        predictions,
        read_results,
    )
    from icl_estimators.estimators import Estimator, check_estimator, get
    from icl_estimators.estimators.interventions import intervene
    from icl_estimators.estimators.model import from_torch
    from icl_estimators.estimators.own_runs import training_runs
    from icl_estimators.experiments.exact import ExactRisk
    from icl_estimators.grids import grid
    from icl_estimators.python_commands import exact_risk, train_transformer, write_report
    from icl_estimators.reporting.prompt_attention import PromptAttention
    from icl_estimators.sources import ChainLaw, sample_chains
    from icl_estimators.sources.observed.from_python import observed
    from icl_estimators.validation import InputError

__version__ = "0.1.0"

__all__ = [
    "ChainLaw",
    "Comparison",
    "Enumeration",
    "Estimator",
    "ExactRisk",
    "Identification",
    "InputError",
    "PromptAttention",
    "Smoothing",
    "attention",
    "check_estimator",
    "compare",
    "compare_observed",
    "effective_smoothing",
    "exact_risk",
    "from_torch",
    "get",
    "grid",
    "identify_estimator",
    "intervene",
    "observed",
    "predictions",
    "read_results",
    "sample_chains",
    "train_transformer",
    "training_runs",
    "write_report",
]

# Loaded on use (PEP 562), so that a command that needs no SciPy or torch starts without them.
_HOMES = {
    "ChainLaw": "icl_estimators.sources",
    "Comparison": "icl_estimators.api",
    "Enumeration": "icl_estimators.api",
    "Estimator": "icl_estimators.estimators",
    "ExactRisk": "icl_estimators.experiments.exact",
    "Identification": "icl_estimators.api",
    "InputError": "icl_estimators.validation",
    "PromptAttention": "icl_estimators.reporting.prompt_attention",
    "Smoothing": "icl_estimators.api",
    "attention": "icl_estimators.api",
    "check_estimator": "icl_estimators.estimators",
    "compare": "icl_estimators.api",
    "compare_observed": "icl_estimators.api",
    "effective_smoothing": "icl_estimators.api",
    "exact_risk": "icl_estimators.python_commands",
    "from_torch": "icl_estimators.estimators.model",
    "get": "icl_estimators.estimators",
    "grid": "icl_estimators.grids",
    "identify_estimator": "icl_estimators.api",
    "intervene": "icl_estimators.estimators.interventions",
    "observed": "icl_estimators.sources.observed.from_python",
    "predictions": "icl_estimators.api",
    "read_results": "icl_estimators.api",
    "sample_chains": "icl_estimators.sources",
    "train_transformer": "icl_estimators.python_commands",
    "training_runs": "icl_estimators.estimators.own_runs",
    "write_report": "icl_estimators.python_commands",
}


__getattr__, __dir__ = on_use(__name__, _HOMES)
