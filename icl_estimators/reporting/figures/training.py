"""How the trained models came to be: regret against updates."""

from __future__ import annotations

from matplotlib.figure import Figure

from icl_estimators.reporting.results import Results
from icl_estimators.reporting.style import MUTED, WIDTH, LineEnd, figure_style, label_line_ends, plain_log_axis

__all__ = ["training_figure", "training_names"]


def training_names(results: Results) -> list[str]:
    """Return the models whose regret was measured in training."""
    frame = results.tables["training"]
    measured = frame[(frame["quantity"] == "regret_nats") & (frame["value"] > 0)]["estimator"].unique()
    return [str(name) for name in measured]


def training_figure(results: Results) -> Figure:
    """Draw the regret of each training run against its updates, log–log; the Bayes rule is at 0, off the axis."""
    frame = results.tables["training"]
    names = training_names(results)
    several = len(names) > 1
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.2))
        axes = figure.add_subplot()
        ends = []
        for name in names:
            rows = frame[(frame["estimator"] == name) & (frame["quantity"] == "regret_nats") & (frame["step"] > 0)]
            rows = rows[rows["value"] > 0].sort_values("step")
            x, y = rows["step"].to_numpy(float), rows["value"].to_numpy(float)
            axes.plot(
                x, y, color="#0072B2", alpha=0.5 if several else 1.0, linewidth=1.0 if several else 1.6, label=name
            )
            ends.append(LineEnd(float(x[-1]), float(y[-1]), name, "#0072B2"))
        axes.set_xscale("log")
        axes.set_yscale("log")
        for rule in ("uniform", "unigram"):
            if rule in results.curves:
                level = float(results.at("risk", rule, "mean", metric="regret_nats")["estimate"])
                axes.axhline(level, color=MUTED, linestyle=":", linewidth=1.0)
                ends.append(LineEnd(axes.get_xlim()[1], level, rule, MUTED))
        for axis in (axes.xaxis, axes.yaxis):
            plain_log_axis(axis)
        axes.set_xlabel("updates")
        axes.set_ylabel("regret on fresh chains, nats")
        label = f"{len(names)} training runs" if several else names[0]
        label_line_ends(axes, [ends[0]._replace(name=label), *ends[len(names) :]])
    return figure
