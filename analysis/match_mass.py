"""How much of layer 2's attention lands on matching positions, beside what chance would put there?"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from analysis import masses
from analysis.claims import Claim, Rule
from analysis.questions import Answer, Drawing, Sizes
from icl_estimators.experiments.attention_quantities import AttentionQuantities
from icl_estimators.reporting.figures.lines import Curve, context_axis, curve_of, draw_curves
from icl_estimators.reporting.numbers import interval
from icl_estimators.reporting.style import MUTED, WIDTH, Look, figure_style
from icl_estimators.resources import shipped_checkpoint

__all__ = ["answer", "runs"]

NEARLY_ALL = Rule("nearly all is at least 0.95", low=0.95)
INCREASES = Rule("it increases if the second mass is above the first", low=0.0)
STAYS = Rule("it no longer changes if the second mass is within 0.004 of the first", low=-0.004, high=0.004)
EARLY, HALFWAY = 12, 50
SEEDS = range(10)


def runs(sizes: Sizes) -> pd.DataFrame:
    """Return the match masses of every shipped training run for three states, on the same sequences."""
    tables = []
    few = replace(sizes, attention=min(sizes.attention_runs, sizes.attention))
    for seed in SEEDS:
        checkpoint = shipped_checkpoint(3, seed)
        if checkpoint is not None:
            found = masses.attend(few, checkpoint)
            tables.append(masses.table(f"transformer:{checkpoint.stem}", "match_mass", found.match_mass))
    return pd.concat(tables, ignore_index=True)


def answer(sizes: Sizes, found: AttentionQuantities, every_run: pd.DataFrame) -> Answer:
    """Tabulate, plot and judge."""
    length = sizes.length
    mass = masses.table("transformer", "match_mass", found.match_mass)
    chance = masses.table("transformer", "match_mass_chance", found.match_mass_chance)
    own = pd.concat([mass, chance], ignore_index=True)
    halfway = min(HALFWAY, length)
    early = min(EARLY, length)
    end = masses.mean_over(found.match_mass, length, length)
    end_chance = masses.mean_over(found.match_mass_chance, length, length)
    rise, late_rise = (masses.change(found.match_mass, n, length) for n in (early, halfway))
    changes = pd.DataFrame(
        [(early, length, *rise), (halfway, length, *late_rise)],
        columns=["from_length", "to_length", "difference", "ci_low", "ci_high"],
    ).assign(n_sequences=sizes.attention)
    claims = (
        Claim(
            f"at context length {length} nearly all of layer 2's attention is on matching positions",
            f"layer-2 attention on matching positions at n = {length}",
            *end,
            NEARLY_ALL,
        ),
        Claim(
            "increasingly so as the context grows",
            f"match mass at n = {length} minus that at n = {early}",
            *rise,
            INCREASES,
        ),
        Claim(
            "increasingly so as the context grows, in its second half",
            f"match mass at n = {length} minus that at n = {halfway}",
            *late_rise,
            INCREASES,
        ),
    )
    last = every_run[every_run["context_length"] == length]["estimate"]
    spread = (
        f" In {len(last)} training runs of the same recipe it lies between {last.min():.3f} and {last.max():.3f}, on "
        f"the first {min(sizes.attention_runs, sizes.attention):,} of these sequences."
        if len(last) > 1
        else ""
    )
    paragraph = (
        f"At n = {length} layer 2 puts {interval(*end, 3)} of its attention on positions that follow an earlier "
        f"occurrence of the current token ({{fig:match-mass}}); uniform attention would put "
        f"{interval(*end_chance, 3)} there.{spread} On the same {sizes.attention:,} sequences it changes by "
        f"{interval(*rise, 3)} from n = {early} to {length}, and by {interval(*late_rise, 4)} from n = {halfway} to "
        f"{length}{_stays(late_rise)}; {1 - end[0]:.2f} of the attention stays on other positions."
    )
    drawing = Drawing(
        "match-mass",
        _figure(own, every_run, length),
        "Mean share of layer 2’s attention on positions that follow an earlier occurrence of the current token, and "
        "its chance level. Shaded: pointwise 95 % intervals over sequences, for the first training run; thin lines: "
        "every run, on fewer sequences.",
        f"Line plot of the match mass against context length 1 to {length}, with its chance level. At n = {length}: "
        f"{end[0]:.3f}, chance {end_chance[0]:.3f}.",
    )
    tables = {"match_mass": own, "match_mass_runs": every_run, "match_mass_change": changes}
    return Answer("Attention on matching positions", tables, (paragraph,), (drawing,), claims)


def _stays(change: tuple[float, float, float]) -> str:
    verdict = STAYS.verdict(*change[1:])
    if verdict == "holds":
        return ": no change beyond ±0.004"
    return (
        ": a change of more than 0.004" if verdict == "fails" else ", which does not show whether it changes by 0.004"
    )


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
            ("match_mass_chance", "chance: uniform attention", grey),
        ):
            curves.append(curve_of(own[own["quantity"] == quantity], label, look, x="context_length"))
        draw_curves(axes, curves, log=False)
        axes.set_ylabel("mean share of attention")
    return figure
