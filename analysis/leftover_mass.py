"""Does the attention that is left on other positions do what the +1 of the Bayes rule does?"""

from __future__ import annotations

import math

import pandas as pd

from analysis.claims import Claim, Rule
from analysis.questions import LEVEL, Answer, Drawing, Sizes
from icl_estimators import effective_smoothing
from icl_estimators.reporting.definitions import INTERVENTION_DEFINITIONS
from icl_estimators.reporting.figures.smoothing import mechanism_figure
from icl_estimators.reporting.numbers import interval, spell

__all__ = ["answer"]

VISITS = (1, 10, 40)
EXACT = "exact-attention"
PLUS_ONE = Rule("roughly +1 is a pseudo-count between 1/2 and 2", low=0.5, high=2.0)
ITS_DOING = Rule(
    "the leftover mass does the smoothing if the pseudo-count is at most half as large with exact attention and the "
    "read-out as trained",
    low=2.0,
)


def answer(sizes: Sizes) -> Answer:
    """Fit pseudo-counts by visits, intact and with every head's attention made exact, on the same sequences."""
    found = effective_smoothing(
        ["transformer"],
        by=["visits"],
        families=[],
        chains=sizes.smoothing_chains,
        sequences_per_chain=sizes.smoothing_sequences,
        length=sizes.length,
        seed=sizes.seed,
        level=LEVEL,
        jobs=sizes.jobs,
    )
    frame = found.interventions
    by_visits = frame[frame["visits"].notna() & (frame["quantity"] == "log_pseudo_count")]
    own = frame[(frame["intervention"] == "intact") & (frame["quantity"] == "log_pseudo_count_from_add_one")]
    # Their difference is the add-one rule's 0 less the estimate.
    own = own.assign(difference=-own["difference"], ci_low=-own["ci_high"], ci_high=-own["ci_low"])
    claims, told = [], []
    judged: dict[str, list[str]] = {"holds": [], "fails": []}
    for visits in (v for v in VISITS if (own["visits"] == v).any()):
        intact = _exponential(own[own["visits"] == visits])
        times = _exponential(by_visits[(by_visits["intervention"] == EXACT) & (by_visits["visits"] == visits)])
        when = f"after {visits} visit{'s' if visits > 1 else ''}"
        claims += [
            Claim(
                f"the leftover mass does roughly what the +1 does, {when}", f"pseudo-count {when}", *intact, PLUS_ONE
            ),
            Claim(
                f"the leftover mass does the smoothing, {when}",
                f"pseudo-count, as a multiple of that with exact attention, {when}",
                *times,
                ITS_DOING,
            ),
        ]
        judged.setdefault(claims[-1].verdict, []).append(when)
        told.append(f"{interval(*intact, 2)} {when} ({interval(*times, 2)} times that with exact attention)")
    by_leftover, not_by_it = judged["holds"], judged["fails"]
    verdicts = [f"the leftover mass does the smoothing {' and '.join(by_leftover)}"] if by_leftover else []
    verdicts += [f"{'it' if verdicts else 'the leftover mass'} does not {' and '.join(not_by_it)}"] if not_by_it else []
    paragraph = (
        f"Fitted by the number of visits n~v~, the model acts like these pseudo-counts: {'; '.join(told)}. Making the "
        "attention of both heads exact ({fig:mechanism}) removes the leftover mass and leaves the rest of the model "
        "unchanged. The remaining smoothing comes from a softmax read-out at a finite scale, which was trained "
        "together with the attention that was removed. The next section fits a new read-out to exact attention."
        + (f" By the rule, {', and '.join(verdicts)}." if verdicts else "")
    )
    drawing = Drawing(
        "mechanism",
        mechanism_figure(frame, found.run, caption=False),
        "Effective pseudo-count (above) and regret (below) of the trained model against visits, intact and with parts "
        "of its mechanism replaced, on the same sequences. Shaded: pointwise 95 % intervals, clustered on chains. "
        + INTERVENTION_DEFINITIONS,
        "Two line plots on logarithmic axes against visits, pseudo-count and regret, one line per intervention. "
        f"Intact pseudo-count: {', '.join(f'{spell(c.estimate, 2)} ({c.measure})' for c in claims[::2])}.",
    )
    kept = frame[frame["quantity"] != "regret_nats"]  # whose own values are those less the add-one rule's 0
    return Answer("The leftover mass and the +1", {"leftover_mass": kept}, (paragraph,), (drawing,), tuple(claims))


def _exponential(rows: pd.DataFrame) -> tuple[float, float, float]:
    row = rows.iloc[0]
    difference, low, high = (math.exp(float(row[column])) for column in ("difference", "ci_low", "ci_high"))
    return difference, low, high
