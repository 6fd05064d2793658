"""What observed data say about themselves: what was read, transitions, the order, the best pseudo-count, tests."""

from __future__ import annotations

import math

from icl_estimators.reporting.figures.data import (
    concentration_figure,
    cumulative_figure,
    cumulative_rows,
    matrix_figure,
    strip_figure,
)
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import counted, interval, spell
from icl_estimators.reporting.results import Results, records

__all__ = ["add_concentration", "add_cumulative", "add_data", "add_orders", "order_sentence"]

_NAMES_SHOWN = 20
_HISTORIES = {
    "alone": "each sequence alone",
    "window": "last {length} tokens",
    "pooled": "pooled, in file order",
    "folds": "fitted to the other folds ({folds})",
}
_TESTS = {
    "order_0_against_1": "the next token does not depend on the current one",
    "order_1_against_2": "nor, given the current one, on the token before it",
    "stated_matrix": "the transition matrix is the stated one",
}


def history_text(results: Results, history: str) -> str:
    """Name what is known before a token."""
    if history == "alone" and results.run["data"]["n_sequences"] == 1:
        return "the whole history"
    return _HISTORIES[history].format(**results.options)


def order_sentence(results: Results) -> str | None:
    """Say which order the data support, and by how much; None where that was not measured."""
    if "orders" not in results:
        return None
    rows = [row for row in records(results.tables["orders"]) if not row["fitted"]]
    kinds = [kind for kind in ("pooled", "alone") if any(row["history"] == kind for row in rows)]
    parts = []
    for kind in kinds:
        mine = {int(row["order"]): row for row in rows if row["history"] == kind}
        best = max(mine, key=lambda order: mine[order]["log_marginal_likelihood"])
        losses = ", ".join(f"{spell(mine[order]['log_loss_nats'], 3)}" for order in sorted(mine))
        parts.append(
            f"{history_text(results, kind)}, order {best} has a posterior probability "
            f"{_share(mine[best]['posterior_probability'])} among orders 0, 1 and 2, for which add-one has a log loss "
            f"of {losses} nats"
        )
    return f"**How much context.** {_joined(parts)}."


def _joined(parts: list[str]) -> str:
    text = "; ".join(parts)
    return text[0].upper() + text[1:]


def add_data(page: Page, results: Results) -> None:
    """Add what was read, the tokens as a strip, and the transition matrix."""
    if "series" not in results or "transitions" not in results:
        return
    data = results.run["data"]
    page.heading("The data", "data")
    labels = [escape(label) for label in data["labels"]]
    states = ", ".join(labels[:_NAMES_SHOWN]) + (", …" if len(labels) > _NAMES_SHOWN else "")
    shortest, longest = data["shortest"], data["longest"]
    lengths = f"{shortest:,} to {longest:,}" if shortest < longest else f"{longest:,}"
    read = f"{counted(data['n_sequences'], 'sequence')} of {lengths} tokens"
    if data.get("missing"):
        read = (
            f"{counted(data['n_units'], 'sequence')}, divided by {counted(data['missing'], 'missing value')} into "
            f"{counted(data['n_sequences'], 'piece')} of {lengths} tokens"
        )
    items = [
        f"**Source.** {escape(str(data['name']))}. {escape(str(data.get('about', '')))}".strip(),
        f"**States.** {len(labels)}: {states}.",
        f"**Read.** {read}; {counted(data['n_predictions'], 'prediction')}."
        + (f" {escape(str(data['form'])).capitalize()}." if data.get("form") else ""),
    ]
    page.items(items)
    page.figure(
        "series",
        strip_figure(results),
        "The data, one colour for each state"
        + (" (the first tokens of the first sequences)." if data["n_sequences"] > 1 else "."),
        f"Strip of colours: the tokens in order, each in the colour of its state, {', '.join(data['labels'][:8])}.",
    )
    frame = results.tables["transitions"]
    if len(set(frame["source"])) ** 2 != len(frame):
        page.text(f"The transitions that occurred, with their probabilities, are in {code('transitions.csv')}.")
        return
    diagonal = [row for row in records(frame) if row["source"] == row["target"]]
    page.figure(
        "transitions",
        matrix_figure(results),
        "Transition probabilities over all sequences: posterior mean under a uniform prior for each row, and below it "
        f"how often the transition occurred. Intervals are in {code('transitions.csv')}.",
        "Heat map of transition probabilities from the current state to the next. Probability to stay: "
        + ", ".join(f"{row['source']} {spell(row['estimate'], 2)}" for row in diagonal[:8])
        + ".",
    )


def add_cumulative(page: Page, results: Results) -> None:
    """Add the cumulative differences in log loss over time."""
    if "cumulative" not in results:
        return
    curves = cumulative_rows(results)
    if not curves:
        return
    reference = results.display(str(results.options["reference"]))
    read = {
        "window": f" Every rule reads the last {results.length} tokens.",
        "pooled": " Counts carry over from sequence to sequence.",
    }.get(results.history_of(next(iter(curves))), "")
    page.figure(
        "cumulative",
        cumulative_figure(results),
        f"Log loss minus that of {escape(reference)}, summed over the predictions so far. Where a line rises, "
        f"{escape(reference)} predicts better.{read} At most six lines are drawn, the nearest; all are in "
        f"{code('cumulative.csv')}.",
        "Line plot of the summed difference in log loss against the number of predictions. At the end: "
        + ", ".join(
            f"{results.display(name)} {spell(float(rows['difference'].iloc[-1]), 1)}" for name, rows in curves.items()
        )
        + ".",
    )


def add_orders(page: Page, results: Results) -> None:
    """Add the comparison of orders, and the tests."""
    if "orders" not in results:
        return
    rows = [row for row in records(results.tables["orders"]) if not row["fitted"]]
    page.heading("How many tokens of context?", "orders")
    text = (
        "{tbl:orders} compares add-one rules that count what followed the last 0, 1 and 2 tokens. The Bayes factor is "
        "the ratio of the probabilities of all the data under two orders, each with a uniform prior for the row of "
        "every context; its logarithm is given against order 1. For counts that begin anew or carry over in file "
        "order, the log probability is also minus the sum of the log losses."
    )
    best = {
        str(row["history"]): row
        for row in sorted(rows, key=lambda row: -_finite(row["log_marginal_likelihood"]))[::-1]
        if math.isfinite(row["log_marginal_likelihood"])
    }
    for history, row in best.items():
        text += (
            f" {history_text(results, history).capitalize()}: order {row['order']:g} has the largest probability "
            f"(a posterior probability {_share(row['posterior_probability'])} among the three)."
        )
    page.text(text)
    table = []
    for row in rows:
        same = row["order"] == 1
        factor = row["log_bayes_factor"]
        table.append(
            [
                history_text(results, str(row["history"])),
                f"{row['order']:g}",
                spell(row["log_loss_nats"]),
                "–" if same else interval(row["difference"], row["ci_low"], row["ci_high"]),
                "–" if same or math.isnan(factor) else f"{factor:+.1f}".replace("-", "−"),
            ]
        )
    page.table(
        "orders",
        ["what is known", "order", "log loss, nats", f"minus order 1 [{results.level_text}]", "log Bayes factor"],
        table,
        "Orders 0, 1 and 2: mean log loss, its paired difference from order 1, and the log of the Bayes factor against "
        "order 1.",
        left=2,
    )
    _add_tests(page, results)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else -math.inf


def _share(value: float) -> str:
    return "above 0.999" if value > 0.999 else f"of {spell(value, 3)}"


def _add_tests(page: Page, results: Results) -> None:
    if "likelihood_ratio" not in results:
        return
    table, notes = [], set()
    for row in records(results.tables["likelihood_ratio"]):
        if isinstance(row["note"], str) and row["note"]:
            notes.add(row["note"])
        if math.isnan(row["statistic"]):
            cells = ["–", "–", escape(str(row["note"]))]
        else:
            p = "< 0.0001" if row["p_value"] < 1e-4 else spell(row["p_value"])
            cells = [spell(row["statistic"], 2), f"{row['degrees_of_freedom']:g}", p]
        table.append([_TESTS[str(row["test"])], *cells])
    page.table(
        "tests",
        ["null hypothesis", "G²", "degrees of freedom", "p"],
        table,
        "Likelihood-ratio tests on the transitions of all sequences together, against the χ² law."
        + "".join(f" {escape(note[0].upper() + note[1:])}." for note in sorted(notes)),
    )


def add_concentration(page: Page, results: Results) -> None:
    """Add the best pseudo-count, and the likelihood of the concentration."""
    if "concentration" not in results:
        return
    rows = [row for row in records(results.tables["concentration"]) if row["order"] == 1]
    page.heading("The best pseudo-count", "concentration")
    page.text(
        "Two questions have different answers. Which Dirichlet concentration do the rows of the transition matrix look "
        "drawn from? That is the maximum of the marginal likelihood. Which constant, added to every count, predicts "
        "best? That is the minimum of the log loss. {tbl:concentration} has both, and {fig:concentration} shows the "
        "likelihood."
    )
    table = []
    for row in rows:
        likelihood = row["criterion"] == "marginal_likelihood"
        table.append(
            [
                "largest marginal likelihood" if likelihood else "smallest log loss",
                history_text(results, str(row["history"])),
                interval(row["estimate"], row["ci_low"], row["ci_high"], 3),
                spell(row["log_loss_nats"]),
            ]
        )
    page.table(
        "concentration",
        ["criterion", "what is known", f"pseudo-count [{results.level_text}]", "log loss there, nats"],
        table,
        "The best pseudo-count for the next state given the current one. Intervals: of the profile likelihood, or of "
        "the minimum of the log loss.",
        left=2,
    )
    peak, low, high = (spell(rows[0][name], 3) for name in ("estimate", "ci_low", "ci_high"))
    page.figure(
        "concentration",
        concentration_figure(results),
        "Log marginal likelihood of the concentration below its maximum. On top: the estimate, and the "
        f"{results.level_text} profile interval.",
        "Line plot of the log likelihood against the concentration on a logarithmic axis. The maximum is at "
        f"{peak}, the interval from {low} to {high}.",
    )
