"""The headline figures of a comparison as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from icl_estimators.reporting.terminal.data import data_text
from icl_estimators.reporting.terminal.rows import Cell, Record, design_line, named_table, real
from icl_estimators.reporting.terminal.smoothing import pseudo_count_text
from icl_estimators.text import gamma_text, number, text_table
from icl_estimators.ties import Pairs, verdict
from icl_estimators.vocabulary import SAW_THE_FUTURE

__all__ = ["summary_text"]

_SHOWN = (1, 3, 12, 50, 100)
_ELSEWHERE = 0.01  # of the probability: what is less is not worth a line
_ZERO = 1e-12  # a regret that is 0 up to rounding


def summary_text(tables: dict[str, list[Record]], run: dict[str, Any], remarks: Sequence[str] = ()) -> str:
    """Return the summary of a study's `tables`, rows by name, with `remarks` on its estimators, a paragraph each."""
    if "data" in run["options"]:
        used = gamma_text(run.get("default_gamma", {}))
        return _observed_text(tables, run) + (f"\n{used}" if used else "")
    options = run["options"]
    level = f"{100 * options['level']:g} %"
    risk = _index(tables["risk"], "estimate", "ci_low", "ci_high")
    differences = _index(tables["differences"], "difference", "ci_low", "ci_high")
    names = list(dict.fromkeys(str(row["estimator"]) for row in tables["risk"]))  # with the mean over training runs
    labels = [n for n in _SHOWN if n <= options["length"]]
    if options["length"] not in labels:
        labels.append(options["length"])
    columns: list[Cell] = ["mean", *labels]
    header = ["", "mean over n", *(f"n = {n}" for n in labels)]
    parts = [design_line(options)]

    def block(title: str, metric: str, rows: Sequence[str]) -> None:
        body = [[name, *(_with_margin(*risk[name, column, metric]) for column in columns)] for name in rows]
        parts.append(f"\n{title}\n" + named_table(header, body))

    block("KL(truth ‖ estimate), nats", "kl_nats", names)
    infinite = [
        name
        for name in names
        if (name, "mean", "kl_finite_nats") in risk and any(risk[name, n, "p_infinite"][0] > 0 for n in columns)
    ]
    if infinite:
        block("… share of sequences with KL = inf", "p_infinite", infinite)
        block("… mean over the sequences with finite KL", "kl_finite_nats", infinite)
    if options["exact_posterior"]:
        block("Regret: KL in excess of the Bayes rule's, nats", "regret_nats", names)
    else:
        parts.append("\nRegret is not defined for these chains (the notes in the tables say why).")
    metric = "regret_nats" if options["exact_posterior"] else "kl_nats"
    what = "regret" if metric == "regret_nats" else "KL"
    rows = []
    for name in names:
        if (name, "mean", metric) not in differences:
            continue
        difference, low, high = differences[name, "mean", metric]
        if math.isnan(difference):
            rows.append([name, "undefined: KL is infinite with positive probability", ""])
        else:
            shown = f"{_signed(difference)} [{_signed(low)}, {_signed(high)}]"
            rows.append([name, shown, verdict(difference, low, high)])
    if rows:
        parts.append(
            f"\nMean {what} over n minus that of {options['reference']}, paired on the same draws, "
            f"{level} interval, nats\n" + text_table(["", "difference", ""], rows, left=2)
        )
    means = {name: risk[name, "mean", metric][0] for name in names if (name, "mean", metric) in risk}
    ties = _ties_text(tables, metric, means, f"mean {what}", level, bayes=metric == "regret_nats")
    if ties:
        parts.append(f"\n{ties}")
    for name, mass in run.get("mass_elsewhere", {}).items():
        if mass > _ELSEWHERE:
            parts.append(f"\n{name} gives {100 * mass:.2g} % of its probability to entries that stand for no state.")
    if options.get("target_se") is not None:
        parts.append(f"\n{_needed_text(run['chains_for_target_se'], names, options)}")
    looks = _heads_text(tables.get("heads", []))
    if looks:
        parts.append(f"\n{looks}")
    acts_like = pseudo_count_text(tables["smoothing"]) if "smoothing" in tables else ""
    if acts_like:
        parts.append(
            "\nEffective pseudo-count α after n_v transitions out of the current token, on these chains\n"
            "(python -m icl_estimators.smoothing draws its own chains, so its numbers differ by sampling error)\n"
            + acts_like
        )
    alike = _nearest_text(tables.get("nearest", []), run)
    if alike:
        parts.append(f"\n{alike}")
    lost = _losses_text(tables, run)
    if lost:
        parts.append(f"\n{lost}")
    used = gamma_text(run.get("default_gamma", {}), run.get("tuned_gamma", {}))
    if used:
        parts.append(f"\n{used}")
    parts += [f"\n{remark}" for remark in remarks]
    if "checks" in tables:
        parts += _alarms(tables["checks"])
    return "\n".join(parts)


def _nearest_text(rows: list[Record], run: dict[str, Any]) -> str:
    """Name the rule that each model is nearest to by total variation, and the next one."""

    def shown(rule: object) -> str:
        return str(run.get("rules", {}).get(rule, {}).get("display", rule))

    lines = []
    for row in rows:
        if row["measure"] != "total_variation" or row["context_length"] != "mean":
            continue
        elsewhere = f"{100 * real(row['estimate']):.2g} % of the probability lies elsewhere"
        line = f"Nearest rule to {row['estimator']}: {shown(row['rule'])}; {elsewhere}."
        difference, low, high = (100 * real(row[name]) for name in ("difference", "ci_low", "ci_high"))
        if not math.isnan(difference):
            beside = "farther" if row["decided"] else "farther, not distinguishable from it"
            limits = "" if math.isnan(low) else f" [{low:.2g}, {high:.2g}]"
            line += f"\nNext: {shown(row['next_rule'])}, {difference:.2g}{limits} percentage points {beside}."
        lines.append(line)
    return "\n".join(lines)


def _losses_text(tables: dict[str, list[Record]], run: dict[str, Any]) -> str:
    """Say where each trained model loses: the parts of its regret at the greatest n, and its share at 0 visits."""
    models = list(run.get("subjects", ()))
    lines = []
    for name in models:
        rows = [row for row in tables.get("budget", []) if row["estimator"] == name]
        last = max((int(str(row["context_length"])) for row in rows), default=0)
        values = {str(row["part"]): real(row["estimate"]) for row in rows if row["context_length"] == last}
        parts = [f"{part} {number(value)}" for part, value in values.items() if not math.isnan(value)]
        if len(parts) > 1:
            unknown = " (the other parts need more chains)" if len(parts) < len(values) else ""
            lines.append(f"Regret of {name} at n = {last}, nats: {', '.join(parts)}{unknown}.")
        for row in tables.get("regret_by_visits", []):
            prefixes, share = real(row["share_of_prefixes"]), real(row["share_of_regret"])
            if row["estimator"] == name and row["visits"] == 0 and math.isfinite(share):
                lines.append(
                    f"{100 * prefixes:.2g} % of the prefixes, where the current token was not left before, have "
                    f"{100 * share:.2g} % of its regret."
                )
    return "\n".join(lines)


def _needed_text(needed: dict[str, Any], names: Sequence[str], options: dict[str, Any]) -> str:
    """Say how many chains reach the standard error that was asked for."""
    target = f"{options['target_se']:g}"
    header = ["", "mean KL", *(["mean regret"] if options["exact_posterior"] else [])]
    rows = []
    for name in names:
        found = needed.get(name, {})
        metrics = ("kl_nats", "regret_nats")[: len(header) - 1]
        counts = [found.get(metric, {}).get(target) for metric in metrics]
        rows.append([name, *("–" if count is None else f"{count:,.0f}" for count in counts)])
    return f"Chains for a standard error of {target} nats (–: the mean is infinite or undefined)\n" + text_table(
        header, rows
    )


def _heads_text(rows: list[Record]) -> str:
    """Name the head that looks most at the previous token, and at matches, of each estimator with several heads."""
    said = {"previous_token_mass": "previous-token head", "match_mass": "prefix-matching head"}
    lines = [
        f"{row['estimator']}: the best {said[str(row['quantity'])]} is head {row['head']} of layer {row['layer']}, "
        f"with {real(row['estimate']):.2f} of its attention there (chance {real(row['chance']):.2f})"
        for row in rows
        if row["best"] and row["context_length"] == "mean"
    ]
    return "\n".join(lines)


def _alarms(checks: list[Record]) -> list[str]:
    """Return a paragraph for each estimator that has seen tokens after the prefix."""
    found = []
    for row in checks:
        if row["check"] == SAW_THE_FUTURE:
            where = "averaged over n" if row["context_length"] == "mean" else f"at n = {row['context_length']}"
            found.append(
                f"\nSelf-check failed: {row['estimator']} has seen the future. {where[0].upper()}{where[1:]}, "
                f"{row['note']} (z = {row['z']:.1f})."
            )
    return found


def _with_margin(estimate: float, low: float, high: float) -> str:
    if math.isnan(estimate):
        return "–"
    if math.isnan(low):
        return number(estimate)
    margin = max(estimate - low, high - estimate)
    return f"{number(estimate)} ±{f'{margin:.4f}'.removeprefix('0')}"


def _signed(value: float, digits: int = 4) -> str:
    return f"{value + 0.0:+.{digits}f}"


def _index(rows: list[Record], *fields: str) -> dict[tuple[Cell, ...], tuple[float, ...]]:
    """Return {(estimator, context_length, metric): the fields}."""
    return {
        (row["estimator"], row["context_length"], row["metric"]): tuple(real(row[name]) for name in fields)
        for row in rows
    }


def _ties_text(
    tables: dict[str, list[Record]], metric: str, means: dict[str, float], what: str, level: str, *, bayes: bool = False
) -> str:
    """Say what is tied with the smallest mean, among like rows; with `bayes`, also among those that are above 0.

    Nothing else about the order of rows is a finding.
    """
    pairs = Pairs(tables.get("pairs", []), metric)
    lines = []
    for group in pairs.groups(list(means)):
        if len(group) < 2:
            continue
        sets = [group]
        if bayes and any(means[name] <= _ZERO for name in group):
            sets.append([name for name in group if not means[name] <= _ZERO])
        for index, names in enumerate(sets):
            ranked = sorted((name for name in names if math.isfinite(means[name])), key=means.__getitem__)
            if ranked:
                others = " apart from the Bayes rule" if index else ""
                lines.append(f"Smallest {what}{others}: {ranked[0]}. {_tied_with(pairs, ranked[0], ranked[1:])}")
    if not lines:
        return ""
    head = (
        f"Estimators tied with the best, by paired differences (simultaneous {level} intervals); row order is not a "
        "finding"
    )
    return "\n".join([head, *lines])


def _tied_with(pairs: Pairs, best: str, others: Sequence[str]) -> str:
    tied = [
        f"{name} (identical)" if (pair := pairs.of(name, best)) and pair.verdict == "identical" else name
        for name in pairs.tied(best, others)
    ]
    open_ = pairs.undecided(best, others)
    text = f"Tied with it: {', '.join(tied) if tied else 'none' if not open_ else 'none known'}."
    if open_:
        text += f" Without an interval: {', '.join(open_)}."
    return text


def _observed_text(tables: dict[str, list[Record]], run: dict[str, Any]) -> str:
    risk, options = tables["risk"], run["options"]
    level = f"{100 * options['level']:g} %"
    rows = []
    means: dict[str, float] = {}
    for row in risk:
        estimate, low, high = (real(row[name]) for name in ("estimate", "ci_low", "ci_high"))
        means[str(row["estimator"])] = estimate
        rows.append([str(row["estimator"]), number(estimate, 5), "" if math.isnan(low) else f"[{low:.5f}, {high:.5f}]"])
    parts = [
        f"Log loss per prediction, nats: {options['data']}, {options['n_predictions']:,} predictions, "
        f"states {', '.join(options['labels'])}"
    ]
    window = options["length"]
    if options.get("longest_history", math.inf) > window:
        parts[0] += (
            f"\n(window={window} reads only the last {window} tokens, as a fresh prefix; the others read the whole "
            "history)"
        )
    else:
        parts[0] += f"\n(no history is longer than the window of {window} tokens: both give the same predictions)"
    if options.get("pool"):
        parts[0] += (
            "\n(alone: counts restart with each sequence; pooled: they carry over from all sequences before it; "
            f"folds={options['folds']}: they are those of the other folds)"
        )
    rows.sort(key=lambda row: float(row[1]))
    some = any(row[2] for row in rows)
    parts[0] += "\n" + text_table(["estimator", "log loss", f"{level} interval" if some else ""], rows)
    if not some:
        parts[0] += "\nNo intervals: one series has no independent units."
    compared = []
    undefined: dict[str, list[str]] = {}
    reference = ""
    for row in tables.get("differences", []):
        if row["metric"] != "log_loss_nats":
            continue
        difference, low, high = (real(row[name]) for name in ("difference", "ci_low", "ci_high"))
        name, reference = str(row["estimator"]), str(options["reference"])
        if math.isnan(low):
            undefined.setdefault(str(row["note"]), []).append(name)
        shown = _signed(difference, 5) if math.isfinite(difference) else "undefined"
        if not math.isnan(low):
            shown += f" [{_signed(low, 5)}, {_signed(high, 5)}]"
        compared.append([name, shown, verdict(difference, low, high)])
    if compared:
        parts.append(
            f"\nLog loss minus that of {reference}, like with like, paired by prediction, {level} interval, nats\n"
            + text_table(["", "difference", ""], compared, left=2)
            + "".join(f"\n{', '.join(names)}: {why}" for why, names in undefined.items())
        )
    ties = _ties_text(tables, "log_loss_nats", means, "log loss", level)
    if ties:
        parts.append(f"\n{ties}")
    statistics = data_text(tables, run)
    if statistics:
        parts.append(f"\n{statistics}")
    return "\n".join(parts)
