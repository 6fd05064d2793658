"""What ``exact`` found: the risk at every context length, and what the regret is made of."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from icl_estimators.metrics import METRICS, Metric
from icl_estimators.reporting.figures.lines import Curve, context_axis, draw_curves
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import counted, spell
from icl_estimators.reporting.results import Results, records
from icl_estimators.reporting.sections.smoothing_design import named_estimators
from icl_estimators.reporting.style import WIDTH, figure_style
from icl_estimators.reporting.terminal.exact import shown_lengths

__all__ = ["add_enumeration", "add_exact_budget", "titles"]

BY_DEFINITION = "0, by definition"


def titles(results: Results) -> tuple[str, str]:
    """Return the title and the subtitle of the report."""
    options = results.options
    title = f"Exact risk: {counted(len(options['estimators']), 'estimator')} on every prefix"
    return title, (
        f"All {options['states'] ** options['length']:,} prefixes of {counted(options['length'], 'token')}, "
        f"K = {options['states']} states, α = {options['concentration']:g}, {options['start']} start"
    )


def add_enumeration(page: Page, results: Results) -> None:
    """Add the exact risk."""
    if "exact" not in results:
        return
    exact, length = results.tables["exact"], results.length
    page.heading("Exact risk", "exact")
    page.text(
        "Every prefix is enumerated with its exact probability, and the chain is integrated out: these numbers have no "
        f"Monte Carlo error, and no intervals. The estimators are {named_estimators(results)}. {{tbl:exact-kl}} has "
        f"the expected KL by context length, {{tbl:exact-metrics}} every metric at n = {length}; {code('exact.csv')} "
        "has all lengths."
    )
    if np.isfinite(exact[(exact["metric"] == "kl_nats") & (exact["estimate"] > 0)]["estimate"]).any():
        page.figure(
            "exact-kl",
            exact_figure(results),
            "Expected KL(truth ‖ estimate) in nats against the number of tokens read, both axes logarithmic. Infinite "
            "values cannot be drawn.",
            f"Line plot on logarithmic axes of expected KL in nats against context length 1 to {length}. "
            + _ends(results),
        )
    shown = shown_lengths(length)
    page.table(
        "exact-kl",
        ["estimator", *(f"n = {n}" for n in shown)],
        [
            [escape(results.display(name)), *(spell(_value(exact, name, n, "kl_nats")) for n in shown)]
            for name in results.names
        ],
        "Expected KL in nats by context length, exactly.",
    )
    metrics = [METRICS[metric] for metric in dict.fromkeys(exact["metric"])]
    page.table(
        "exact-metrics",
        ["estimator", *(_title(metric) for metric in metrics)],
        [
            [escape(results.display(name)), *(_cell(results, exact, name, metric.name) for metric in metrics)]
            for name in results.names
        ],
        f"Every metric at n = {length}, exactly.",
    )


def _title(metric: Metric) -> str:
    return escape(f"{metric.title}, {metric.unit}" if metric.unit else metric.title)


def _value(exact: pd.DataFrame, name: str, n: int, metric: str) -> float:
    keep = (exact["estimator"] == name) & (exact["context_length"] == n) & (exact["metric"] == metric)
    return float(exact[keep]["estimate"].iloc[0])


def _cell(results: Results, exact: pd.DataFrame, name: str, metric: str) -> str:
    if metric == "regret_nats" and name in results.bayes:
        return BY_DEFINITION
    if metric == "p_infinite" and name in results.positive:
        return "never"
    return spell(_value(exact, name, results.length, metric))


def _ends(results: Results) -> str:
    found = ((name, _value(results.tables["exact"], name, results.length, "kl_nats")) for name in results.names)
    return f"At n = {results.length}: {', '.join(f'{results.display(name)} {spell(value)}' for name, value in found)}."


def exact_figure(results: Results) -> Figure:
    """Draw the exact KL against context length, log–log."""
    exact, looks = results.tables["exact"], results.looks(results.names)
    curves = []
    for name in results.names:
        rows = exact[(exact["estimator"] == name) & (exact["metric"] == "kl_nats")].sort_values("context_length")
        nothing = np.full(len(rows), np.nan)
        n, values = rows["context_length"].to_numpy(float), rows["estimate"].to_numpy(float)
        curves.append(Curve(results.display(name), looks[name], n, values, nothing, nothing))
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.8))
        axes = figure.add_subplot()
        context_axis(axes, results.length)
        draw_curves(axes, curves)
        axes.set_ylabel("KL(truth ‖ estimate), nats")
    return figure


def add_exact_budget(page: Page, results: Results) -> None:
    """Add what the regret is made of, at the longest context length, to a report of ``exact``."""
    if results.kind != "exact" or "budget" not in results:
        return
    frame = results.tables["budget"]
    rows = records(frame[frame["context_length"] == results.length])
    parts = list(dict.fromkeys(row["part"] for row in rows))
    found = {(row["estimator"], row["part"]): float(row["estimate"]) for row in rows}
    page.heading("What the regret is made of", "exact-budget")
    page.text(
        "The regret falls as predictions are averaged over what the Bayes rule ignores. *Order*: of the same "
        "transitions. *Other rows*: transitions out of other states than the current one. *Label asymmetry*: the names "
        "of the other states. *Self bias*: which state is the current one. A rule of the counts is left: *amount* is "
        "the regret of the nearest add-α rule at each number of visits, and *shape* the rest, which may be negative. "
        f"{{tbl:exact-budget}} has n = {results.length}; {code('budget.csv')} has all lengths."
    )
    page.table(
        "exact-budget",
        ["estimator", *(escape(part.replace("_", " ")) for part in parts)],
        [
            [
                escape(results.display(name)),
                *(
                    BY_DEFINITION if part == "regret" and name in results.bayes else _part(found[name, part])
                    for part in parts
                ),
            ]
            for name in results.names
        ],
        f"The regret at n = {results.length} in nats, and the parts that add up to it, exactly. An infinite regret is "
        "not divided.",
    )


def _part(value: float) -> str:
    return "0" if abs(value) < 1e-12 else "–" if math.isnan(value) else spell(value)
