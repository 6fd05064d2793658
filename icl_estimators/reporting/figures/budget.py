"""Where the model loses: its regret divided, as stacked bars over context length."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.figure import Figure

from icl_estimators.reporting.results import Results, records
from icl_estimators.reporting.style import MUTED, WIDTH, figure_style, wrap_name

__all__ = ["PART_NAMES", "budget_figure", "budget_rows"]

PART_NAMES = {
    "order": "order of the transitions",
    "other_rows": "transitions of other states",
    "label_asymmetry": "labels of the states",
    "self_bias": "which state is current",
    "shape": "shape of the smoothing",
    "amount": "amount of smoothing",
}
"""What each part is called, in the order of the steps."""

_COLOURS = {
    "order": "#CC79A7",
    "other_rows": "#D55E00",
    "label_asymmetry": "#6B4C9A",
    "self_bias": "#E69F00",
    "shape": "#56B4E9",
    "amount": "#0072B2",
}
_THIN = 0.02  # of the tallest bar: what is thinner gets no label


def budget_rows(results: Results, name: str) -> dict[int, dict[str, dict[str, Any]]]:
    """Return the rows of an estimator whose regret is finite, by context length and part."""
    frame = results.tables["budget"]
    found: dict[int, dict[str, dict[str, Any]]] = {}
    for row in records(frame[frame["estimator"] == name]):
        found.setdefault(int(row["context_length"]), {})[str(row["part"])] = row
    return {n: parts for n, parts in sorted(found.items()) if math.isfinite(float(parts["regret"]["estimate"]))}


def budget_figure(results: Results, name: str) -> Figure:
    """Draw the parts on top of each other at each context length; a negative one lies below 0.

    Where prefixes with equal counts are too few for all parts, what is known stands alone and the rest is hatched.
    """
    rows = budget_rows(results, name)
    places = {n: place for place, n in enumerate(rows)}
    tallest = max(float(parts["regret"]["estimate"]) for n, parts in rows.items() if n > 1 or len(rows) == 1)
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.7))
        axes = figure.add_subplot()
        axes.grid(False, axis="x")
        for n, parts in rows.items():
            above = below = 0.0
            for part in PART_NAMES:
                value = float(parts[part]["estimate"])
                if not math.isfinite(value):
                    continue
                base = above if value >= 0 else below
                axes.bar(
                    places[n], value, bottom=base, width=0.8, color=_COLOURS[part], label=PART_NAMES[part], linewidth=0
                )
                above, below = (above + value, below) if value >= 0 else (above, below + value)
            whole = float(parts["regret"]["estimate"])
            unknown = whole - above - below
            if unknown > 1e-6 and any(not math.isfinite(float(parts[part]["estimate"])) for part in PART_NAMES):
                axes.bar(
                    places[n], unknown, bottom=above, width=0.8, color="#DDDDDD", hatch="///", edgecolor=MUTED,
                    linewidth=0, label="not divided further",
                )  # fmt: skip
            if whole > tallest * 1.05:
                axes.annotate(f"{whole:.2f} ↑", (places[n], tallest * 1.05), ha="center", va="top", fontsize=8)
            low, high = (float(parts["regret"][end]) for end in ("ci_low", "ci_high"))
            if parts["regret"]["method"] == "monte-carlo" and math.isfinite(low):
                axes.plot([places[n], places[n]], [low, high], color="black", linewidth=1.1)
        exact = [n for n, parts in rows.items() if parts["regret"]["method"] == "exact"]
        axes.set_xticks(list(places.values()), [str(n) for n in places])
        axes.set_xlabel("context length n (tokens read)")
        axes.set_ylabel("regret, nats")
        axes.set_ylim(min(0.0, axes.get_ylim()[0]), tallest * 1.08)
        axes.axhline(0.0, color=MUTED, linewidth=0.8)
        if exact and len(exact) < len(rows):
            edge = places[exact[-1]] + 0.5
            axes.axvline(edge, color=MUTED, linewidth=0.8, linestyle=":")
            for where, text, side in ((edge - 0.1, "exact", "right"), (edge + 0.1, "Monte Carlo", "left")):
                axes.annotate(text, (where, tallest * 1.02), ha=side, va="top", fontsize=8.5, color=MUTED)
        handles, labels = axes.get_legend_handles_labels()
        named = dict(zip(reversed(labels), reversed(handles), strict=True))
        ordered = [*reversed(PART_NAMES.values()), "not divided further"]
        shown = [label for label in ordered if label in named and _worth(rows, label, tallest)]
        axes.legend(
            [named[label] for label in shown],
            [wrap_name(label, 22) for label in shown],
            loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9,
        )  # fmt: skip
    return figure


def _worth(rows: dict[int, dict[str, dict[str, Any]]], label: str, tallest: float) -> bool:
    """Whether a part can be seen anywhere."""
    part = next((key for key, name in PART_NAMES.items() if name == label), None)
    if part is None:
        return True
    sizes = [abs(float(parts[part]["estimate"])) for parts in rows.values()]
    return any(size > _THIN * tallest for size in sizes if math.isfinite(size))
