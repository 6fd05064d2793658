"""The answer: three sentences made from the numbers by stated rules, and the headline table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import counted, interval, interval_of, percent_interval, ranges, spell
from icl_estimators.reporting.results import Results, records
from icl_estimators.reporting.sections.smoothing import pseudo_counts

__all__ = ["RULES", "add_answer", "departure_sentence", "nearest_sentence", "pseudo_count_sentence", "ranking"]

NOT_DISTINGUISHABLE = "not distinguishable"

RULES = (
    "Two estimates are called different only if their intervals do not overlap, and *not distinguishable* otherwise. "
    "On the same draws the standard error of a difference is at most the sum of both, so this never claims too much; a "
    "paired comparison (`--reference`) can be sharper.",
    "*Nearest to Bayes*: the estimator with the least mean regret over n = 1 … T among those that are not the Bayes "
    "rule itself, and the runner-up. Where the Bayes rule is not exact (stationary start), the mean KL less the "
    "reference's, paired on the same draws, takes its place.",
    "*Where it departs*: the context lengths of the largest and the least regret, and whether the regret at T lies "
    "above the least one, by the simultaneous band. *Sharper* than Bayes at n: where P < 0.1 its mean p̂ − P lies "
    "below the Bayes rule's; *flatter*: above.",
    "*Pseudo-count*: of the add-constant rule that is nearest in KL to its predictions at a number of visits. It "
    "*rises* or *falls* if the intervals at the fewest and the most visits do not overlap; estimates that the data do "
    "not identify, that lie at a boundary, or that come from so few chains that the table warns of their interval, are "
    "left out.",
)
"""How the sentences are made."""


@dataclass(frozen=True)
class Estimate:
    """A number with its interval."""

    name: str
    value: float
    low: float
    high: float

    @classmethod
    def of(cls, row: Mapping[str, Any], value: str = "estimate") -> Estimate:
        """Read it from a row of a table."""
        return cls(str(row["estimator"]), float(row[value]), float(row["ci_low"]), float(row["ci_high"]))

    def __str__(self) -> str:
        return interval(self.value, self.low, self.high)

    def overlaps(self, other: Estimate) -> bool:
        """Whether the intervals overlap; they are taken to where one is undefined."""
        ends = (self.low, self.high, other.low, other.high)
        return any(math.isnan(end) for end in ends) or (self.low <= other.high and other.low <= self.high)


def ranking(results: Results) -> list[Estimate]:
    """Return whom the answer compares, the nearest to Bayes first; infinite and undefined ones last, in table order.

    Regret averaged over n, or with a stationary start the KL less the reference's; on observed sequences the log loss.
    """
    if results.observed:
        rows = results.tables["risk"].query("metric == 'log_loss_nats' and context_length == 'mean'")
        found = [Estimate.of(row) for row in records(rows)]
    elif results.exact_posterior:
        found = [Estimate.of(results.at("risk", name, "mean", metric="regret_nats")) for name in results.curves]
    else:
        rows = results.tables["differences"].query("metric == 'kl_nats' and context_length == 'mean'")
        found = [Estimate.of(row, "difference") for row in records(rows) if row["estimator"] in results.curves]
    return sorted(found, key=lambda item: item.value if math.isfinite(item.value) else math.inf)


def nearest_sentence(results: Results) -> str:
    """Say who is nearest to Bayes and by how much."""
    if results.observed:
        return _nearest_observed(results)
    others = [item for item in ranking(results) if item.name not in results.bayes]
    finite = [item for item in others if math.isfinite(item.value)]
    reference = escape(str(results.options["reference"]))
    if not finite:
        but = " but the Bayes rule itself" if results.bayes else ""
        return f"**Nearest to the Bayes rule.** No estimator{but} has a finite mean."
    best = finite[0]
    if results.exact_posterior:
        measure, head = "mean regret", "Nearest to the Bayes rule."
        unit = f"nats: its KL above that rule’s, averaged over n = 1 … {results.length}"
    else:
        measure, head = "mean KL difference", f"Nearest to {reference}, or below it."
        unit = f"nats from {reference}, averaged over n = 1 … {results.length}; no Bayes rule is exact here"
    text = f"**{head}** {_name(results, best.name)} has a {measure} of {best} {unit}."
    if len(finite) > 1:
        second = finite[1]
        if second.overlaps(best):
            verdict = f"{NOT_DISTINGUISHABLE} from it"
        else:
            verdict = f"{spell(second.value - best.value)} more" + _times(second.value, best.value)
        text += f" Next is {_name(results, second.name)} with {second}: {verdict}."
    return text


def _times(value: float, base: float) -> str:
    return f", {value / base:.2f} times as much" if base > 0 else ""


def _nearest_observed(results: Results) -> str:
    finite = [item for item in ranking(results) if math.isfinite(item.value)]
    if not finite:
        return "**Least log loss.** No estimator has a finite mean log loss."
    best = finite[0]
    text = f"**Least log loss.** {_name(results, best.name)} has {best} nats a prediction."
    if len(finite) > 1:
        second = finite[1]
        if math.isnan(best.low) or math.isnan(second.low):
            gap = spell(second.value - best.value)
            verdict = f"{gap} more; one series has no independent units, so {NOT_DISTINGUISHABLE} by an interval"
        elif second.overlaps(best):
            verdict = f"{NOT_DISTINGUISHABLE} from it"
        else:
            verdict = f"{spell(second.value - best.value)} more"
        text += f" Next is {_name(results, second.name)} with {second}: {verdict}."
    return text


def departure_sentence(results: Results) -> str | None:
    """Say where the trained model departs from Bayes and in which direction; None where that is not known."""
    name = results.subject
    if name is None or not results.exact_posterior or name not in results.curves:
        return None
    rows = records(results.curve("risk", name, metric="regret_nats"))
    if not all(math.isfinite(row["estimate"]) for row in rows):
        return None
    least, most, last = min(rows, key=_value), max(rows, key=_value), rows[-1]
    text = (
        f"**Where {_name(results, name)} departs from it.** Its regret is largest at n = {most['n']} "
        f"({interval_of(most)} nats) and least at n = {least['n']} "
        f"({interval_of(least)})"
    )
    if least["n"] == last["n"]:
        text += ", the longest context."
    elif last["band_low"] > least["band_high"]:
        text += f"; at n = {last['n']} it is {interval_of(last)}: it has moved away from Bayes again."
    else:
        text += f"; the regret at n = {last['n']} is {NOT_DISTINGUISHABLE} from the least."
    return f"{text}{_direction(results, name)}"


def _value(row: Mapping[str, Any]) -> float:
    return float(row["estimate"])


def _direction(results: Results, name: str) -> str:
    if not results.bayes or _lowest_bin(results, name, 1) is None or _lowest_bin(results, results.bayes[0], 1) is None:
        return ""  # the mean over training runs has no signed bias of its own
    sharper: list[int] = []
    flatter: list[int] = []
    for n in range(1, results.length + 1):
        model, bayes = (_lowest_bin(results, who, n) for who in (name, results.bayes[0]))
        if model is None or bayes is None or model.overlaps(bayes):
            continue
        (sharper if model.value < bayes.value else flatter).append(n)
    if not sharper and not flatter:
        return f" Whether it is sharper or flatter than Bayes is {NOT_DISTINGUISHABLE}."
    found = (("sharper", sharper), ("flatter", flatter))
    parts = [f"{word} than Bayes at n = {ranges(where)}" for word, where in found if where]
    ends = dict.fromkeys(((sharper or flatter)[0], (flatter or sharper)[-1]))
    bias = {n: [spell(_bias(results, who, n), 3) for who in (name, results.bayes[0])] for n in ends}
    examples = [f"{model} against {bayes} at n = {n}" for n, (model, bayes) in bias.items()]
    return f" It is {' and '.join(parts)} (mean p̂ − P where P < 0.1: {', '.join(examples)})."


def _lowest_bin(results: Results, name: str, n: int) -> Estimate | None:
    if "signed_bias" not in results:
        return None
    frame = results.tables["signed_bias"]
    rows = frame[(frame["estimator"] == name) & (frame["context_length"] == str(n)) & (frame["bin_low"] == 0.0)]
    return None if rows.empty else Estimate.of(records(rows)[0])


def _bias(results: Results, name: str, n: int) -> float:
    found = _lowest_bin(results, name, n)
    return math.nan if found is None else found.value


def pseudo_count_sentence(results: Results) -> str | None:
    """Say what the trained model's pseudo-count does as visits grow; None where it was not fitted."""
    name = results.subject
    fits = [] if name is None else pseudo_counts(results, "visits", name)
    if name is None or not fits:
        return None
    sound = [row for row in fits if row["identified"] == "True" and row["boundary"] != "True"]
    rows = [row for row in sound if math.isfinite(row["estimate"])]
    head = f"**What pseudo-count {_name(results, name)} acts like.**"
    if len(rows) < 2:
        return f"{head} The data do not identify it at two numbers of visits or more."
    first, last = Estimate.of(rows[0]), Estimate.of(rows[-1])
    few, many = (f"{row['value']:g}" for row in (rows[0], rows[-1]))
    bayes = f"Bayes adds {results.options['concentration']:g} at every number."
    start, end = (interval(item.value, item.low, item.high, 3) for item in (first, last))
    ends = f"from {start} after {_visits(few)} to {end} after {_visits(many)}"
    if first.overlaps(last):
        return f"{head} {ends[0].upper()}{ends[1:]}: a change is {NOT_DISTINGUISHABLE}. {bayes}"
    return f"{head} It {'rises' if last.value > first.value else 'falls'} {ends}; {bayes}"


def _visits(count: str) -> str:
    return f"{count} visit" if count == "1" else f"{count} visits"


def _name(results: Results, name: str) -> str:
    return code(results.display(name))


def _shown(results: Results, name: str) -> str:
    return escape(results.display(name))


def alarm_sentence(row: Mapping[str, Any]) -> str:
    """Say that an estimator has seen what it is to predict, from its row of checks.csv."""
    where = "averaged over n" if row["context_length"] == "mean" else f"at n = {row['context_length']}"
    return (
        f"**{escape(str(row['estimator']))} has seen the future.** {where[0].upper()}{where[1:]}, {row['note']} "
        f"(z = {spell(float(row['z']), 3)}). Its other numbers are worth nothing."
    )


def add_answer(page: Page, results: Results) -> None:
    """Add the sentences and the headline table."""
    page.heading("The answer", "answer")
    sentences = (nearest_sentence(results), departure_sentence(results), pseudo_count_sentence(results))
    page.items([*map(alarm_sentence, results.alarms), *(sentence for sentence in sentences if sentence)])
    if results.observed:
        _add_observed_table(page, results)
    else:
        _add_table(page, results)


def _add_table(page: Page, results: Results) -> None:
    lengths = results.shown_lengths((3, 12, 50, 100))
    exact = results.exact_posterior
    metric = "regret_nats" if exact else "kl_nats"
    infinite = {name: results.at("risk", name, "mean", metric="p_infinite") for name in results.curves}
    means = {name: results.at("risk", name, "mean", metric=metric) for name in results.curves}
    some_infinite = any(row["estimate"] > 0 for row in infinite.values())
    header = ["estimator", f"mean over n [{results.level_text}]", *(f"n = {n}" for n in lengths)]
    rows = []
    for name in sorted(means, key=lambda name: (_last_if_undefined(means[name]), infinite[name]["estimate"])):
        mean = means[name]
        cells = [_shown(results, name), interval_of(mean)]
        cells += [spell(results.at("risk", name, n, metric=metric)["estimate"]) for n in lengths]
        if some_infinite:
            share = infinite[name]
            cells.append(percent_interval(share["estimate"], share["ci_low"], share["ci_high"]))
        rows.append(cells)
    if some_infinite:
        header.append("infinite KL in")
    what = "Regret, the KL above the Bayes rule’s," if exact else "KL from the truth"
    page.table(
        "headline",
        header,
        rows,
        f"{what} in nats, the least mean first. Intervals: {results.level_text}, clustered on chains. Columns and "
        "metrics are defined [at the end](#definitions).",
    )


def _last_if_undefined(row: Mapping[str, Any]) -> float:
    return float(row["estimate"]) if math.isfinite(row["estimate"]) else math.inf


def _add_observed_table(page: Page, results: Results) -> None:
    notes = {row["estimator"]: row["note"] for row in records(results.tables["risk"])}
    found = ranking(results)
    header = ["estimator", "log loss, nats"]
    rows = [[escape(item.name), interval(item.value, item.low, item.high, 5)] for item in found]
    if any(math.isfinite(item.low) for item in found):
        header[1] += f" [{results.level_text}]"
    remarks = ["; ".join(part for part in notes[item.name].split("; ") if "infinite" in part) for item in found]
    if any(remarks):
        header.append("remark")
        rows = [[*row, escape(remark)] for row, remark in zip(rows, remarks, strict=True)]
    page.table(
        "headline",
        header,
        rows,
        f"Mean of −log p̂ over {counted(results.options['n_predictions'], 'prediction')}, the least first. "
        f"`:window={results.length}`: only the last {counted(results.length, 'token')} were read, as a fresh prefix; "
        "else the whole history.",
    )
