"""Which pseudo-count an estimator acts like, what it predicts at each count, and what its mechanism does to both."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from icl_estimators.reporting.marks import mark
from icl_estimators.reporting.style import (
    MUTED,
    WIDTH,
    LineEnd,
    Look,
    figure_style,
    label_line_ends,
    line_looks,
    plain_log_axis,
)
from icl_estimators.row_names import prediction_at_count

__all__ = ["mechanism_figure", "prediction_figure", "pseudo_count_figure"]

Array = NDArray[np.float64]

_FREQUENCY = "frequency n_vw / n_v"
_VISITS = "visits n_v: transitions out of the current token so far"
_LOOKS = {
    "intact": Look("#0072B2", "-"),
    "previous-token": Look("#56B4E9", "-"),
    "exact-match": Look("#E69F00", "-"),
    "exact-attention": Look("#D55E00", "-"),
    "no-direct-path": Look("#7F7F7F", "-"),
    "read-out-half": Look("#CC79A7", "--"),
    "read-out-double": Look("#CC79A7", ":"),
    "exact-attention-read-out-double": Look("#D55E00", ":"),
    "perfect-read-out": Look("#009E73", "-"),
}


def pseudo_count_figure(smoothing: pd.DataFrame, run: dict[str, Any], *, caption: bool = True) -> Figure:
    """Draw the fitted pseudo-count against visits, log–log, with intervals and the add-one line.

    Where it is 0 or ∞ there is nothing to draw, and the caption says so; so it does of visits that fewer than 50 chains
    have had, which are left out. Of several training runs the pooled one is drawn.

    Parameters
    ----------
    smoothing : DataFrame
        The rows of smoothing.csv.
    run : dict
        run.json.
    caption : bool
        Whether the design stands below, for a figure that stands alone.

    Returns
    -------
    Figure
    """
    options = run["options"]
    recipes: dict[str, list[str]] = options["recipes"]
    hidden = {*(run for runs in recipes.values() for run in runs), *(f"{recipe}:recipe" for recipe in recipes)}
    rows = smoothing[(smoothing["by"] == "visits") & (smoothing["parameter"] == "pseudo_count")]
    names = [name for name in dict.fromkeys(rows["estimator"]) if name not in hidden]
    families = {name: rule["family"] for name, rule in run.get("rules", {}).items()}
    looks = line_looks(names, families)
    absent = []
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.9))
        axes = figure.add_subplot()
        ends = []
        for name in names:
            colour, style = looks[name]
            drawn = _drawable(rows[rows["estimator"] == name], "estimate", run, above_zero=True)
            if drawn.empty:
                values = rows.loc[rows["estimator"] == name, "estimate"].dropna().unique()
                absent.append(f"{name} ({' or '.join(f'{value:g}' for value in sorted(values)) or 'undefined'})")
                continue
            ends.append(_line(axes, drawn, "estimate", name, colour, style))
        axes.axhline(1.0, color=MUTED, linewidth=0.8, zorder=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(1, max([2.0, *(end.x for end in ends)]))
        axes.set_xlabel(_VISITS)
        axes.set_ylabel("effective pseudo-count α")
        for axis in (axes.xaxis, axes.yaxis):
            plain_log_axis(axis)
        label_line_ends(axes, ends)
        if caption:
            left_out = f"; not drawn: {', '.join(absent)}" if absent else ""
            _caption(figure, options, left_out)
    return figure


def prediction_figure(
    smoothing: pd.DataFrame, run: dict[str, Any], estimator: str | None = None, *, caption: bool = True
) -> Figure:
    """Draw the mean prediction against the empirical frequency n_vw / n_v, one panel by visits, with fitted curves.

    Parameters
    ----------
    smoothing : DataFrame
        The rows of smoothing.csv, its `empirical` ones among them.
    run : dict
        run.json.
    estimator : str, optional
        Whose predictions; the first by default.
    caption : bool
        Whether title and design are written, for a figure that stands alone.

    Returns
    -------
    Figure
    """
    options = run["options"]
    empirical = smoothing[smoothing["family"] == "empirical"]
    name = str(empirical["estimator"].iloc[0]) if estimator is None else estimator
    of_name = smoothing[smoothing["estimator"] == name]
    empirical = of_name[of_name["family"] == "empirical"]
    panels = sorted(empirical["value"].astype(int).unique())
    gamma = of_name[(of_name["family"] == "temperature") & (of_name["parameter"] == "gamma")]["estimate"]
    if gamma.empty:  # not fitted to all prefixes: the one that was fitted to the model for its likeness
        softmax = [
            rule["parameters"]["gamma"]
            for rule in run.get("fitted_rules", {}).get(name, ())
            if rule["family"] == "construction-softmax:direct_path=false"
        ]
        gamma = pd.Series(softmax, dtype=float)
    alphas = of_name[(of_name["by"] == "visits") & (of_name["parameter"] == "pseudo_count")].set_index("value")
    k = options["states"]
    columns = min(3, len(panels))
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.1 * -(-len(panels) // columns) + 0.7))
        grid = figure.subplots(-(-len(panels) // columns), columns, sharex=True, sharey=True, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes, visits in zip(grid.flat, panels, strict=False):
            rows = empirical[empirical["value"].astype(int) == visits]
            counts = rows["parameter"].map({prediction_at_count(n): n for n in range(visits + 1)}).to_numpy(dtype=int)
            _panel(axes, rows, counts / visits, visits, k, _alpha_at(alphas, visits), gamma)
            axes.set_title(f"n_v = {visits}")
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2, frameon=False, fontsize=8)
        figure.supylabel("mean predicted probability", fontsize=9.5)
        if caption:
            title = f"What {name} predicts for a state that followed the current token n_vw times in n_v. "
            _caption(figure, options, "", title=title, axis=_FREQUENCY)
        else:
            figure.supxlabel(_FREQUENCY, fontsize=9.5)
    return figure


def mechanism_figure(interventions: pd.DataFrame, run: dict[str, Any], *, caption: bool = True) -> Figure:
    """Draw pseudo-count and regret against visits, with parts of the trained model's mechanism replaced.

    Parameters
    ----------
    interventions : DataFrame
        The rows of interventions.csv.
    run : dict
        run.json.
    caption : bool
        Whether title and design are written, for a figure that stands alone.

    Returns
    -------
    Figure
    """
    options = run["options"]
    names = list(dict.fromkeys(interventions["intervention"]))
    rows = interventions[interventions["visits"].notna() & (interventions["visits"] != "")].copy()
    rows["value"] = rows["visits"].astype(int)
    spare = line_looks(names)
    with figure_style():
        figure = Figure(figsize=(WIDTH, 4.6))
        upper, lower = figure.subplots(2, 1, sharex=True)
        alphas: list[LineEnd] = []
        regrets: list[LineEnd] = []
        for name in names:
            colour, style = _LOOKS.get(name, spare[name])
            mine = rows[rows["intervention"] == name]
            of_alpha = _around_estimate(mine[mine["quantity"] == "log_pseudo_count_from_add_one"])
            of_alpha[["estimate", "ci_low", "ci_high"]] = np.exp(of_alpha[["estimate", "ci_low", "ci_high"]])
            drawn = _drawable(of_alpha, "estimate", run, above_zero=True)
            if not drawn.empty:
                alphas.append(_line(upper, drawn, "estimate", name, colour, style))
            of_regret = _around_estimate(mine[(mine["quantity"] == "regret_nats_from_add_one") & (mine["value"] > 0)])
            of_regret = of_regret[of_regret["value"].isin(drawn["value"])] if not drawn.empty else of_regret
            drawn = _drawable(of_regret, "estimate", run, above_zero=True)
            if not drawn.empty:
                regrets.append(_line(lower, drawn, "estimate", name, colour, style))
        upper.axhline(1.0, color=MUTED, linewidth=0.8, zorder=1)
        upper.set_ylabel("effective pseudo-count")
        lower.set_ylabel("regret, nats")
        lower.set_xlabel(_VISITS)
        for axes, ends in ((upper, alphas), (lower, regrets)):
            axes.set_xscale("log")
            axes.set_yscale("log")
            right = max([2.0, *(end.x for end in (*alphas, *regrets))])
            axes.set_xlim(1, right)
            if axes is upper:
                ends.append(LineEnd(right, 1.0, "add-one", MUTED))
            for axis in (axes.xaxis, axes.yaxis):
                plain_log_axis(axis)
            label_line_ends(axes, ends)
        if caption:
            _caption(
                figure, options, "", title=f"{', '.join(run['intervened_on'])} with parts of its mechanism replaced. "
            )
    return figure


def _around_estimate(rows: pd.DataFrame) -> pd.DataFrame:
    """Turn intervals of the add-one rule's 0 less the estimate into those of the estimate."""
    return rows.assign(ci_low=-rows["ci_high"].astype(float), ci_high=-rows["ci_low"].astype(float))


def _drawable(rows: pd.DataFrame, column: str, run: dict[str, Any], *, above_zero: bool) -> pd.DataFrame:
    """Return the rows that have a point on a logarithmic axis and an interval to be trusted, in order."""
    values = rows[column].to_numpy(dtype=float)
    keep = np.isfinite(values) & ((values > 0) | (not above_zero))
    keep &= ~rows["value"].isin(run.get("few_chains", {}).get("visits", [])).to_numpy(dtype=bool)
    drawn = rows[keep].copy()
    drawn["value"] = drawn["value"].astype(int)
    return drawn.sort_values("value")


def _line(axes: Axes, rows: pd.DataFrame, column: str, name: str, colour: str, style: str) -> LineEnd:
    """Draw a line with its interval; return where it ends."""
    x, y = rows["value"].to_numpy(), rows[column].to_numpy(dtype=float)
    low, high = (rows[side].to_numpy(dtype=float) for side in ("ci_low", "ci_high"))
    (line,) = axes.plot(x, y, color=colour, linestyle=style, marker="." if len(x) < 3 else None)
    mark(line, name, x=x, estimate=y, low=low, high=high)
    bottom = np.maximum(np.nan_to_num(low, nan=0.0), 1e-12)
    mark(axes.fill_between(x, bottom, high, color=colour, alpha=0.2, linewidth=0), name, "band")
    return LineEnd(float(x[-1]), float(y[-1]), name, colour)


def _panel(
    axes: Axes, rows: pd.DataFrame, frequency: Array, visits: int, k: int, alpha: float, gamma: pd.Series[float]
) -> None:
    estimate = rows["estimate"].to_numpy(dtype=float)
    spread = np.abs(np.vstack([estimate - rows["ci_low"], rows["ci_high"] - estimate]).astype(float))
    grid = np.linspace(0.0, 1.0, 101)
    axes.plot(grid, (visits * grid + 1) / (visits + k), color="black", linewidth=0.9, label="add-one")
    if np.isfinite(alpha):
        fitted = (visits * grid + alpha) / (visits + k * alpha)
        axes.plot(grid, fitted, color="#D55E00", linestyle="--", label="add-α, α fitted to these visits")
    if len(gamma) and np.isfinite(gamma.iloc[0]):
        # What is left of the frequencies shared evenly: the middle of what softmax(γf) gives for this f_w.
        own, rest = np.exp(gamma.iloc[0] * grid), (k - 1) * np.exp(gamma.iloc[0] * (1.0 - grid) / (k - 1))
        axes.plot(grid, own / (own + rest), color="#009E73", linestyle=":", label="softmax(γf), other states alike")
    axes.errorbar(
        frequency,
        estimate,
        yerr=np.nan_to_num(spread),
        fmt="o",
        markersize=3.5,
        color="#0072B2",
        elinewidth=1.0,
        label="mean prediction",
        zorder=3,
    )
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.02, 1.02)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:g}"))


def _alpha_at(alphas: pd.DataFrame, visits: int) -> float:
    return float(alphas["estimate"].get(visits, np.nan)) if len(alphas) else np.nan


def _caption(figure: Figure, options: dict[str, Any], more: str, *, title: str = "", axis: str = "") -> None:
    level = f"{100 * options['level']:g} %"
    if "data" in options:
        text = (
            f"{title}{options['data']}, {options['n_predictions']:,} predictions; K = {options['states']}; {level} "
            f"intervals, clustered on sequences{more}"
        )
    else:
        chains, sequences, length = (options[name] for name in ("chains", "sequences_per_chain", "length"))
        text = (
            f"{title}{chains:,} fresh chains × {sequences} sequences × {length} tokens; K = {options['states']}, α of "
            f"the prior = {options['concentration']:g}; {level} intervals, clustered on chains{more}"
        )
    lines = [*([axis] if axis else []), *textwrap.wrap(text, 95)]
    figure.supxlabel("\n".join(lines), fontsize=8, x=0.01, ha="left")
