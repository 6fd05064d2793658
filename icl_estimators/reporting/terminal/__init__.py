"""Headline figures as text for a terminal."""

from icl_estimators.reporting.terminal.comparison import summary_text
from icl_estimators.reporting.terminal.smoothing import pseudo_count_text, smoothing_text

__all__ = ["pseudo_count_text", "smoothing_text", "summary_text"]
