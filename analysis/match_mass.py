"""How much of layer 2's attention lands on matching positions, beside what chance would put there?"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis.claims import Claim, Rule
from analysis.questions import Answer, Drawing, Sizes
from icl_estimators import compare
from icl_estimators.experiments.compare import Comparison
from icl_estimators.reporting.figures.lines import Curve, context_axis, curve_of, draw_curves
from icl_estimators.reporting.numbers import interval
from icl_estimators.reporting.style import MUTED, WIDTH, Look, figure_style
from icl_estimators.resources import shipped_checkpoint

__all__ = ["answer", "runs"]

NEARLY_ALL = Rule("nearly all is at least 0.95", low=0.95)
INCREASES = Rule("it increases if the second mass is above the first", low=0.0)
EARLY, HALFWAY = 12, 50
SEEDS = range(10)


def runs(sizes: Sizes) -> pd.DataFrame:
    """Return the attention masses of every shipped training run for three states."""
    checkpoints = [path for path in (shipped_checkpoint(3, seed) for seed in SEEDS) if path is not None]
    found = compare(
        ["transformer"],
        checkpoints=checkpoints,
        chains=sizes.attention,
        sequences_per_chain=1,
        decomposition_chains=0,
        length=sizes.length,
        seed=sizes.seed,
    )
    attention: pd.DataFrame = found.attention
    return attention[attention["quantity"] == "match_mass"].reset_index(drop=True)


def answer(sizes: Sizes, found: Comparison, every_run: pd.DataFrame) -> Answer:
    """Tabulate, plot and judge."""
    length = sizes.length
    attention = found.attention
    own = attention[attention["estimator"] == "transformer"]
    mass = own[own["quantity"] == "match_mass"].set_index("context_length")
    chance = own[own["quantity"] == "match_mass_chance"].set_index("context_length")
    halfway = min(HALFWAY, length)
    early = min(EARLY, length)
    end, middle, start = (_interval(mass.loc[n]) for n in (length, halfway, early))
    rise, late_rise = _less(end, start), _less(end, middle)
    claims = (
        Claim(
            f"at context length {length} nearly all of layer 2's attention is on matching positions",
            f"layer-2 attention on matching positions at n = {length}",
            *end,
            NEARLY_ALL,
        ),
        Claim(
            "increasingly so as the context grows",
            f"match mass at n = {length} less that at n = {early}",
            *rise,
            INCREASES,
        ),
        Claim(
            "increasingly so as the context grows, in its second half",
            f"match mass at n = {length} less that at n = {halfway}",
            *late_rise,
            INCREASES,
        ),
    )
    last = every_run[every_run["context_length"] == length]["estimate"]
    spread = (
        f" Over {len(last)} training runs of the same recipe it lies between {last.min():.3f} and {last.max():.3f}."
        if len(last) > 1
        else ""
    )
    paragraph = (
        f"At n = {length} layer 2 puts {interval(*end, 3)} of its attention on positions that follow an earlier "
        f"occurrence of the current token ({{fig:match-mass}}); attention spread evenly would put "
        f"{interval(*_interval(chance.loc[length]), 3)} there.{spread} It grows by "
        f"{interval(*rise, 3)} from n = {early} to {length}, and by {interval(*late_rise, 3)} from n = {halfway} on; "
        f"{1 - end[0]:.2f} of the attention stays on other positions."
    )
    drawing = Drawing(
        "match-mass",
        _figure(own, every_run, length),
        "Mean share of layer 2’s attention on positions that follow an earlier occurrence of the current token, and "
        "its chance level. Shaded: pointwise 95 % intervals over sequences, for the first training run; thin lines: "
        "the other runs.",
        f"Line plot of the match mass against context length 1 to {length}, with its chance level. At n = {length}: "
        f"{end[0]:.3f}, chance {float(chance.loc[length, 'estimate']):.3f}.",
    )
    tables = {"match_mass": own.reset_index(drop=True), "match_mass_runs": every_run}
    return Answer("Attention on matching positions", tables, (paragraph,), (drawing,), claims)


def _less(second: tuple[float, float, float], first: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return the difference of two masses of the same sequences.

    Whatever their correlation, its standard error is at most the sum of both.
    """
    change = second[0] - first[0]
    below = second[0] - second[1] + first[2] - first[0]
    above = second[2] - second[0] + first[0] - first[1]
    return change, change - below, change + above


def _interval(row: pd.Series) -> tuple[float, float, float]:
    return float(row["estimate"]), float(row["ci_low"]), float(row["ci_high"])


def _figure(own: pd.DataFrame, every_run: pd.DataFrame, length: int) -> Figure:
    blue, grey = Look("#0072B2"), Look(MUTED, "--")
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.2))
        axes = figure.add_subplot()
        context_axis(axes, length)
        axes.set_ylim(0, 1.02)
        for _, rows in every_run.groupby("estimator", sort=False):
            axes.plot(rows["context_length"], rows["estimate"], color=blue.colour, linewidth=0.5, alpha=0.5)
        curves: list[Curve] = []
        for quantity, label, look in (
            ("match_mass", "match mass", blue),
            ("match_mass_chance", "chance: even attention", grey),
        ):
            curves.append(curve_of(own[own["quantity"] == quantity], label, look, x="context_length"))
        draw_curves(axes, curves, log=False)
        axes.set_ylabel("mean share of attention")
    return figure
