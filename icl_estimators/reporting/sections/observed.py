"""Log loss on observed sequences."""

from __future__ import annotations

import math

from icl_estimators.reporting.figures.observed import log_loss_figure
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import spell
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.sections.answer import ranking

__all__ = ["add_log_loss"]


def add_log_loss(page: Page, results: Results) -> None:
    """Add the log loss of each estimator."""
    if not results.observed:
        return
    found = ranking(results)
    finite = [item for item in found if math.isfinite(item.value)]
    infinite = [item for item in found if math.isinf(item.value)]
    if not finite:
        return
    page.heading("Log loss", "log-loss")
    text = "{fig:log-loss} shows the mean log loss of each estimator, smallest first."
    if infinite:
        listed = ", ".join(escape(results.display(item.name)) for item in infinite)
        text += (
            f" Not drawn: {listed}. A token occurred that was given probability 0, so the mean is infinite; the notes "
            f"in {code('risk.csv')} say how often."
        )
    page.text(text)
    intervals = any(math.isfinite(item.low) for item in finite)
    page.figure(
        "log-loss",
        log_loss_figure(results),
        "Mean log loss per prediction in nats"
        + (
            f", with {results.level_text} intervals clustered on sequences."
            if intervals
            else "; one series, no intervals."
        ),
        "Dot plot of the mean log loss per prediction in nats: "
        + ", ".join(f"{results.display(item.name)} {spell(item.value, 3)}" for item in finite)
        + ".",
    )
