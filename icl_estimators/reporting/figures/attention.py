"""Where the two layers look: heat maps of one example, and attention masses beside their chance level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from icl_estimators.reporting.figures.lines import context_axis, curve_of, draw_curves
from icl_estimators.reporting.figures.token_axes import token_axes
from icl_estimators.reporting.results import Results, records
from icl_estimators.reporting.style import MUTED, SEQUENTIAL, WIDTH, Look, figure_style, heat_map

__all__ = ["EXAMPLE_POSITIONS", "attention_example_figure", "attention_names", "mass_figure", "state_label"]

EXAMPLE_POSITIONS = 16
"""How much of the example is drawn: as many cells as a page has room for."""


def state_label(state: str, n_states: int) -> str:
    """Return the letter of a state, as in ABACABA; a label that is no state's number stays as it is.

    Examples
    --------
    >>> state_label("0", 3), state_label("^", 3), state_label("30", 40)
    ('A', '^', '30')
    """
    if n_states <= 26 and state.isdecimal() and int(state) < n_states:
        return chr(ord("A") + int(state))
    return state


def attention_names(results: Results, table: str) -> list[str]:
    """Return whose attention is drawn: one trained model and one other estimator, or two others."""
    with_rows = set(results.tables[table]["estimator"])
    known = [name for name in results.options["estimators"] if name in with_rows]
    trained = results.options["weights"]
    return [*[name for name in known if name in trained][:1], *(name for name in known if name not in trained)][:2]


def attention_example_figure(results: Results, name: str) -> Figure:
    """Draw both layers' weights on the start of the example, tokens on both axes; grey where causality masks."""
    frame = results.tables["attention_example"]
    frame = frame[frame["estimator"] == name]
    n_states = int(results.options["states"])
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.05))
        panels = figure.subplots(1, 2)
        mesh: Any = None
        for axes, layer in zip(panels, (1, 2), strict=True):
            weights, labels = _matrix(frame[frame["layer"] == layer], n_states)
            mesh = heat_map(axes, weights, SEQUENTIAL, 0.0, 1.0)
            token_axes(axes, labels, size=8 if max(map(len, labels)) <= 2 else 6)
            axes.set_title(f"layer {layer}")
            axes.set_xlabel("key: the token attended to")
        panels[0].set_ylabel("query: the token that attends")
        bar = figure.colorbar(mesh, ax=list(panels), shrink=0.75, aspect=25, pad=0.02)
        bar.set_label("share of attention")
        bar.outline.set_visible(False)
    return figure


def _matrix(rows: pd.DataFrame, n_states: int) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Return the weights, NaN above the diagonal, and the tokens' labels."""
    first = int(rows["query"].min())
    size = min(int(rows["query"].max()) - first + 1, EXAMPLE_POSITIONS)
    weights = np.full((size, size), np.nan)
    tokens = [""] * size
    for row in records(rows):
        query, key = int(row["query"]) - first, int(row["key"]) - first
        if query < size and key < size:
            weights[query, key] = row["weight"]
            tokens[query] = row["query_token"]
    return weights, [state_label(token, n_states) for token in tokens]


def mass_figure(results: Results) -> Figure:
    """Draw layer 1's mass on the previous token and layer 2's mass on matches with its chance level, with intervals."""
    looks = results.looks()
    known = set(results.tables["attention"]["estimator"])
    names = [name for name in results.curves if name in known]
    with figure_style():
        figure = Figure(figsize=(WIDTH, 4.5))
        upper, lower = figure.subplots(2, 1, sharex=True)
        for axes, quantity in ((upper, "previous_token_mass"), (lower, "match_mass")):
            context_axis(axes, results.length, "")
            axes.set_ylim(0, 1.02)
            curves = [
                curve_of(_defined(results, name, quantity), name, looks.get(name, Look(MUTED, "-"))) for name in names
            ]
            if quantity == "match_mass":
                chance = _defined(results, names[0], "match_mass_chance")
                curves.append(curve_of(chance, "chance: uniform attention", Look(MUTED, "--")))
            draw_curves(axes, curves, log=False)
        upper.set_title("layer 1: attention on the previous token")
        lower.set_title("layer 2: attention on positions that follow an earlier occurrence of the token")
        figure.supylabel("mean share of attention", fontsize=9.5)
        lower.set_xlabel("context length n (tokens read)")
    return figure


def _defined(results: Results, name: str, quantity: str) -> pd.DataFrame:
    rows = results.curve("attention", name, quantity=quantity)
    return rows[rows["estimate"].notna()]
