"""The answer: three sentences made from the numbers by stated rules, and the headline table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icl_estimators.reporting.markdown import Page, escape
from icl_estimators.reporting.numbers import counted, digits_that_add_up, interval, interval_of, percent_interval, spell
from icl_estimators.reporting.results import Results, records
from icl_estimators.reporting.sections.data import order_sentence
from icl_estimators.reporting.sections.smoothing import pseudo_counts
from icl_estimators.row_names import of_window

__all__ = ["RULES", "add_answer", "departure_sentence", "nearest_sentence", "pseudo_count_sentence", "ranking"]

BY_DEFINITION = "0, by definition"

NOT_DISTINGUISHABLE = "not distinguishable"

RULES = (
    "Two estimators are called different if the interval of their *paired* difference, on the same draws, does not "
    "contain 0. Otherwise they are called *not distinguishable*, or *tied*. The intervals in `pairs.csv` are "
    "simultaneous over all pairs. *Identical* means equal on all draws. Neither the overlap of two separate intervals "
    "nor the order of rows is used.",
    "*Nearest to Bayes*: the estimator with the smallest mean regret over n = 1 … T among those that are not the "
    "Bayes rule itself, the runner-up, and all estimators that are tied with the first. Where there is no exact Bayes "
    "rule, the paired difference in mean KL from the reference is used instead.",
    "*Where it departs*: the context lengths with the largest and the smallest regret. The regret at T is *above* the "
    "smallest one if the interval of their paired difference, on the same chains, lies above 0. That interval is "
    "simultaneous over all n < T, because the data choose the n. Where P < 0.1, a mean p̂ − P below that of the Bayes "
    "rule means a sharper rule, and one above it a flatter rule. Both are printed with their own intervals and are not "
    "compared.",
    "*Pseudo-count*: that of the add-constant rule nearest in KL to the predictions at a given number of visits. The "
    "estimates at the fewest and the most visits are printed with their own intervals and are not compared. Estimates "
    "are left out if the data do not identify them, if they lie at a boundary, or if they come from too few chains for "
    "a reliable interval.",
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


def ranking(results: Results) -> list[Estimate]:
    """Return the estimators to compare, the nearest to Bayes first; infinite and undefined ones last, in table order.

    Regret averaged over n, or where the Bayes rule is not exact the KL minus the reference's; on observed
    sequences the log loss.
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
    """Say which estimator is nearest to Bayes and by how much."""
    if results.observed:
        return _nearest_observed(results)
    others = [item for item in ranking(results) if item.name not in results.bayes]
    finite = [item for item in others if math.isfinite(item.value)]
    reference = _shown(results, str(results.options["reference"]))
    if not finite:
        but = " other than the Bayes rule itself" if results.bayes else ""
        return f"**Nearest to the Bayes rule.** No estimator{but} has a finite mean."
    best = finite[0]
    if results.exact_posterior:
        measure, head = "mean regret", "Nearest to the Bayes rule."
        unit = f"nats: its KL in excess of that rule’s, averaged over n = 1 … {results.length}"
    else:
        measure, head = "mean KL difference", f"Nearest to {reference}, or below it."
        unit = f"nats from {reference}, averaged over n = 1 … {results.length}; there is no exact Bayes rule here"
    digits = 4
    pair = results.pairs.of(finite[1].name, best.name) if len(finite) > 1 else None
    if pair is not None and math.isfinite(pair.difference):
        digits = digits_that_add_up(finite[1].value, best.value, pair.difference)
    shown = interval(best.value, best.low, best.high, digits)
    text = f"**{head}** {_name(results, best.name)} has a {measure} of {shown} {unit}."
    if len(finite) > 1:
        text += _next(results, best, finite[1:])
    return text


def _next(results: Results, best: Estimate, others: list[Estimate], digits: int = 4) -> str:
    """Say how far the runner-up is from the best, and which others are tied with it, by paired differences."""
    second, pair = others[0], results.pairs.of(others[0].name, best.name)
    if pair is not None and math.isfinite(pair.difference):
        digits = digits_that_add_up(second.value, best.value, pair.difference, digits)
    if pair is None:
        verdict = f"{spell(second.value - best.value, digits)} more; there is no paired comparison"
    elif pair.verdict == "identical":
        verdict = "identical to it"
    else:
        verdict = f"{interval(pair.difference, pair.low, pair.high, digits)} more"
        if not pair.decided:
            verdict += f" ({escape(pair.note)})"
        elif pair.verdict == NOT_DISTINGUISHABLE:
            verdict += f" (paired difference): {NOT_DISTINGUISHABLE} from it"
        else:
            verdict += " (paired difference)" + _times(second.value, best.value)
    shown = interval(second.value, second.low, second.high, digits)
    text = f" Next is {_name(results, second.name)} with {shown}: {verdict}."
    also = [_name(results, name) for name in results.pairs.tied(best.name, [item.name for item in others[1:]])]
    return text + (f" Also tied with {_name(results, best.name)}: {', '.join(also)}." if also else "")


def _times(value: float, base: float) -> str:
    return f", {value / base:.2f} times as much" if base > 0 else ""


def _nearest_observed(results: Results) -> str:
    found = {item.name: item for item in ranking(results) if math.isfinite(item.value)}
    if not found:
        return "**Lowest log loss.** No estimator has a finite mean log loss."
    text = "**Lowest log loss.**"
    for index, group in enumerate(results.pairs.groups(list(found))):
        best, others = found[group[0]], [found[name] for name in group[1:]]
        if index == 1:
            text += " Rows are compared only with rows that know the same tokens."
        shown = interval(best.value, best.low, best.high)
        text += f" {_name(results, best.name)} has {shown} nats per prediction."
        if others:
            text += _next(results, best, others)
    return text


def model_sentence(results: Results) -> str | None:
    """Say how the trained model does on observed data, beside the rules that read the same tokens."""
    if not results.observed or results.subject is None:
        return None
    found = {item.name: item for item in ranking(results) if math.isfinite(item.value)}
    name = next((row for row in (of_window(results.subject, results.length), results.subject) if row in found), None)
    if name is None:
        return None
    own = found[name]
    text = (
        f"**The trained model.** {_name(results, name)}, has {interval(own.value, own.low, own.high)} nats per "
        f"prediction. It was trained on simulated chains, not on these data, and reads only the last "
        f"{counted(results.length, 'token')}."
    )
    rivals = [row for row in results.pairs.compared(name, list(found)) if row != name]
    pair = results.pairs.of(name, rivals[0]) if rivals else None
    if pair is None or not pair.decided:
        return text
    shown = interval(pair.difference, pair.low, pair.high)
    said = {"worse": "worse", "better": "better"}.get(pair.verdict, pair.verdict)
    return f"{text} Minus the best rule that reads the same tokens, {_name(results, rivals[0])}: {shown}, {said}."


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
        f"**Where {_name(results, name)} departs from the Bayes rule.** Its regret is largest at n = {most['n']} "
        f"({interval_of(most)} nats) and smallest at n = {least['n']} "
        f"({interval_of(least)})"
    )
    if least["n"] == last["n"]:
        text += ", the longest context."
    else:
        text += f"; at n = {last['n']} it is {interval_of(last)}{_risen(results, name, least['n'])}."
    return f"{text}{_direction(results, name)}"


def _risen(results: Results, name: str, least: int) -> str:
    """Say whether the last regret lies above the smallest one, by their paired difference."""
    since = results.run.get("regret_since_least", {}).get(name)
    if since is None or since["context_length"] != least:
        return ""
    difference, low, high = (float(since[field]) for field in ("difference", "ci_low", "ci_high"))
    shown = f", {interval(difference, low, high)} more (paired difference)"
    return shown + (": it has moved away from Bayes again" if low > 0 else f": {NOT_DISTINGUISHABLE}")


def _value(row: Mapping[str, Any]) -> float:
    return float(row["estimate"])


def _direction(results: Results, name: str) -> str:
    """Give its signed bias where the truth is small, beside that of the Bayes rule; no verdict."""
    if not results.bayes:
        return ""
    told = []
    for n in results.shown_lengths((12,)):
        model, bayes = (_lowest_bin(results, who, n) for who in (name, results.bayes[0]))
        if model is not None and bayes is not None:  # the mean over training runs has no signed bias of its own
            theirs, ours = (interval(item.value, item.low, item.high, 3) for item in (bayes, model))
            told.append(f"{ours} at n = {n} (Bayes rule: {theirs})")
    return f" Where P < 0.1, its mean p̂ − P is {'; '.join(told)}." if told else ""


def _lowest_bin(results: Results, name: str, n: int) -> Estimate | None:
    if "signed_bias" not in results:
        return None
    frame = results.tables["signed_bias"]
    rows = frame[(frame["estimator"] == name) & (frame["context_length"] == str(n)) & (frame["bin_low"] == 0.0)]
    return None if rows.empty else Estimate.of(records(rows)[0])


def pseudo_count_sentence(results: Results) -> str | None:
    """Say what the trained model's pseudo-count does as visits grow; None where it was not fitted."""
    name = results.subject
    fits = [] if name is None else pseudo_counts(results, "visits", name)
    if name is None or not fits:
        return None
    sound = [row for row in fits if row["identified"] and not row["boundary"]]
    rows = [row for row in sound if math.isfinite(row["estimate"])]
    head = f"**The pseudo-count that {_name(results, name)} acts like.**"
    if len(rows) < 2:
        return f"{head} The data identify it at fewer than two numbers of visits."
    first, last = Estimate.of(rows[0]), Estimate.of(rows[-1])
    few, many = (f"{row['value']:g}" for row in (rows[0], rows[-1]))
    alpha = f"{results.options['concentration']:g}"
    bayes = (
        f"Bayes adds {alpha} at every number of visits."
        if results.exact_posterior
        else f"A rule that ignored what the first token says of the chain would add {alpha} at every number of visits."
    )
    start, end = (interval(item.value, item.low, item.high, 3) for item in (first, last))
    return f"{head} {start} after {_visits(few)}, {end} after {_visits(many)}. {bayes}"


def _visits(count: str) -> str:
    return f"{count} visit" if count == "1" else f"{count} visits"


def _name(results: Results, name: str) -> str:
    return _shown(results, name)


def _shown(results: Results, name: str) -> str:
    return escape(results.display(name))


def alarm_sentence(row: Mapping[str, Any]) -> str:
    """Say that an estimator has seen what it must predict, from its row of checks.csv."""
    where = "averaged over n" if row["context_length"] == "mean" else f"at n = {row['context_length']}"
    return (
        f"**{escape(str(row['estimator']))} has seen the future.** {where[0].upper()}{where[1:]}, {row['note']} "
        f"(z = {spell(float(row['z']), 3)}). Its other numbers are meaningless."
    )


def add_answer(page: Page, results: Results) -> None:
    """Add the sentences and the headline table."""
    answered = page.has("answer")  # the first half page is there
    if answered:
        page.heading("Distance from Bayes", "distance")
    else:
        page.heading("The answer", "answer")
    sentences = [nearest_sentence(results), order_sentence(results), model_sentence(results)]
    sentences.append(departure_sentence(results))
    if not answered:
        sentences = [*map(alarm_sentence, results.alarms), *sentences, pseudo_count_sentence(results)]
    page.items([sentence for sentence in sentences if sentence])
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
    order = [item.name for item in ranking(results) if math.isfinite(item.value) and item.name not in results.bayes]
    marks = _tied_marks(results, order)
    rows = []
    for name in sorted(means, key=lambda name: (_last_if_undefined(means[name]), infinite[name]["estimate"])):
        mean = means[name]
        by_definition = exact and name in results.bayes
        cells = [_shown(results, name) + marks.get(name, ""), BY_DEFINITION if by_definition else interval_of(mean)]
        cells += [
            "0" if by_definition else spell(results.at("risk", name, n, metric=metric)["estimate"]) for n in lengths
        ]
        if some_infinite:
            share = infinite[name]
            cells.append(
                "never"
                if name in results.positive
                else percent_interval(share["estimate"], share["ci_low"], share["ci_high"])
            )
        rows.append(cells)
    if some_infinite:
        header.append("infinite KL in")
    what = "Regret (KL in excess of the Bayes rule’s)" if exact else "KL from the truth"
    page.table(
        "headline",
        header,
        rows,
        f"{what} in nats, smallest mean first. Intervals: {results.level_text}, clustered on chains."
        f"{_mark_text(results, marks)} Columns and metrics are defined [at the end](#definitions).",
    )


def _tied_marks(results: Results, order: list[str]) -> dict[str, str]:
    """Return a mark for the best of each group of like rows and for those tied with it, if any are."""
    marked: dict[str, str] = {}
    for group, mark in zip(results.pairs.groups(order), ("\N{NO-BREAK SPACE}†", "\N{NO-BREAK SPACE}‡"), strict=False):
        tied = results.pairs.tied(group[0], group[1:])
        marked |= dict.fromkeys([group[0], *tied], mark) if tied else {}
    return marked


def _mark_text(results: Results, marks: Mapping[str, str]) -> str:
    finite = [item.name for item in ranking(results) if math.isfinite(item.value)]
    if not any(len(group) > 1 for group in results.pairs.groups(finite)):
        return ""  # no two means can be compared, so there is no section of all pairs either
    shown = " and ".join(dict.fromkeys(mark.strip() for mark in marks.values()))
    if not shown:
        return " No other estimator is tied with the best ([all pairs](#pairs))."
    return f" {shown}: tied, not distinguishable from the best of them by paired differences ([all pairs](#pairs))."


def _last_if_undefined(row: Mapping[str, Any]) -> float:
    return float(row["estimate"]) if math.isfinite(row["estimate"]) else math.inf


def _add_observed_table(page: Page, results: Results) -> None:
    found = ranking(results)
    header = ["estimator", "log loss, nats"]
    marks = _tied_marks(results, [item.name for item in found if math.isfinite(item.value)])
    rows = [
        [_shown(results, item.name) + marks.get(item.name, ""), interval(item.value, item.low, item.high, 5)]
        for item in found
    ]
    if any(math.isfinite(item.low) for item in found):
        header[1] += f" [{results.level_text}]"
    remarks = ["gave probability 0 to a token that occurred" if math.isinf(item.value) else "" for item in found]
    read = (
        f"“last {results.length}”: reads only the last {counted(results.length, 'token')}, as a fresh prefix; "
        "the others read the whole history."
        if results.slides
        else f"No history is longer than the window of {counted(results.length, 'token')}: both give the same "
        "predictions."
    )
    if any(remarks):
        header.append("remark")
        rows = [[*row, escape(remark)] for row, remark in zip(rows, remarks, strict=True)]
    page.table(
        "headline",
        header,
        rows,
        f"Mean of −log p̂ over {counted(results.options['n_predictions'], 'prediction')}, smallest first. {read}"
        + (_mark_text(results, marks) if marks else ""),
    )
