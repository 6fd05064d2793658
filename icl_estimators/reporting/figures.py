"""Figures from the tables of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from icl_estimators.files import write_whole
from icl_estimators.reporting.style import figure_style, label_line_ends, line_looks

__all__ = ["kl_figure", "plain_log_axis", "save_figure"]


def kl_figure(risk: pd.DataFrame, run: dict[str, Any]) -> Figure:
    """Draw KL to the truth against context length, log–log, with pointwise intervals.

    Where an estimator's KL is infinite with positive probability its mean is infinite: its line is the mean over the
    sequences where it is finite, dashed and labelled so. Of several training runs the mean is drawn.

    Parameters
    ----------
    risk : DataFrame
        The rows of risk.csv.
    run : dict
        run.json, for the caption.

    Returns
    -------
    Figure
    """
    options = run["options"]
    runs: list[str] = options["checkpoints"]
    hidden = {*runs, *(f"{run.rpartition(':')[0]}:recipe" for run in runs)}
    names = [name for name in dict.fromkeys(risk["estimator"]) if name not in hidden]
    looks = line_looks(names)
    curves = risk[risk["context_length"] != "mean"].copy()
    curves["context_length"] = curves["context_length"].astype(int)
    with figure_style():
        figure = Figure(figsize=(9.0, 5.2))
        axes = figure.add_subplot()
        ends = []
        for name in names:
            rows = curves[(curves["estimator"] == name) & (curves["metric"] == "kl_nats")]
            label, (colour, style) = name, looks[name]
            if np.isinf(rows["estimate"]).any():
                rows = curves[(curves["estimator"] == name) & (curves["metric"] == "kl_finite_nats")]
                label, style = f"{name} (where finite)", "--"
            rows = rows[np.isfinite(rows["estimate"]) & (rows["estimate"] > 0)].sort_values("context_length")
            if rows.empty:
                continue
            n = rows["context_length"].to_numpy()
            estimate = rows["estimate"].to_numpy()
            axes.plot(n, estimate, color=colour, linestyle=style, marker="." if len(n) == 1 else None)
            low = np.maximum(rows["ci_low"].to_numpy(dtype=float), 1e-12)
            axes.fill_between(n, low, rows["ci_high"].to_numpy(dtype=float), color=colour, alpha=0.2, linewidth=0)
            ends.append((float(n[-1]), float(estimate[-1]), label, colour))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(1, max(2, options["length"]))
        axes.set_xlabel("context length n (tokens read)")
        axes.set_ylabel("KL(truth ‖ estimate), nats")
        axes.set_title("Distance of the predicted next-token law from the true one")
        plain_log_axis(axes)
        label_line_ends(axes, ends)
        figure.supxlabel(
            f"{options['chains']:,} fresh chains × {options['sequences_per_chain']} sequences, "
            f"K = {options['states']}, α = {options['concentration']:g}; "
            f"shaded: {100 * options['level']:g} % intervals, clustered on chains",
            fontsize=8.5,
            x=0.01,
            ha="left",
        )
    return figure


def plain_log_axis(axes: Axes) -> None:
    """Label both logarithmic axes with plain numbers: 0.1, 0.2, 0.5, 1."""
    plain = FuncFormatter(lambda value, position: f"{value:g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(plain)
        axis.set_minor_formatter(FuncFormatter(_two_and_five))


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as SVG and PNG, the same bytes for the same figure; return the paths."""
    paths = []
    for suffix, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
        path = stem.with_name(f"{stem.name}.{suffix}")
        with figure_style(), write_whole(path) as temporary:
            figure.savefig(temporary, format=suffix, metadata=metadata, bbox_inches="tight", pad_inches=0.15)
        paths.append(path)
    return paths


def _two_and_five(value: float, position: int) -> str:
    leading = f"{value:e}"[0]
    return f"{value:g}" if leading in "25" else ""
