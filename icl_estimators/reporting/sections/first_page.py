"""The first half page: four sentences with at most two numbers each, one figure, and what the rules are."""

from __future__ import annotations

import math
from typing import Any

from icl_estimators.reporting.figures.forest import distances_to, forest_figure, forest_names
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import interval_of, percent_interval, spell
from icl_estimators.reporting.results import Results, records
from icl_estimators.reporting.rule_meanings import ORDER, RULE_MEANINGS
from icl_estimators.reporting.sections.answer import alarm_sentence
from icl_estimators.reporting.sections.smoothing import pseudo_counts

__all__ = ["add_first_page", "add_rules", "bayes_sentence", "induction_sentence", "likeness_sentence"]

_ZERO = 1e-12
_CAUSES = {
    "order": "the order of the transitions, which it should ignore",
    "other_rows": "transitions out of other states, which it should ignore",
    "label_asymmetry": "the labels of the states, which it should ignore",
    "self_bias": "treating the current token apart",
    "shape": "the shape of its smoothing",
    "amount": "the amount of its smoothing",
}


def _who(results: Results, name: str) -> str:
    return escape(results.display(name))


def likeness_sentence(results: Results) -> str | None:
    """Say which rule the model is nearest to, and how much of the probability lies elsewhere."""
    subject = results.subject
    if subject is None or "nearest" not in results:
        return None
    frame = results.tables["nearest"]
    rows = records(frame[(frame["estimator"] == subject) & (frame["measure"] == "total_variation")])
    distances = distances_to(results, subject)
    if not rows or rows[0]["rule"] not in distances:
        return None
    row = rows[0]
    distance = distances[row["rule"]]
    away = percent_interval(*(float(distance[field]) for field in ("estimate", "ci_low", "ci_high")))
    text = (
        f"**What it is like.** {_who(results, subject)} predicts most like **{_who(results, row['rule'])}**: {away} of "
        "the probability lies elsewhere."
    )
    if not row["next_rule"]:
        return text
    other = distances.get(row["next_rule"])
    share = "" if other is None else f", with {100 * float(other['estimate']):.1f} %"
    if row["decided"]:
        return f"{text} The next kind of rule is {_who(results, row['next_rule'])}{share}."
    return (
        f"{text} {_who(results, row['next_rule'])} may be as near{share}: the paired difference does not tell the two "
        "apart."
    )


def bayes_sentence(results: Results) -> str | None:
    """Say how far the model is from Bayes, and what most of the regret comes from."""
    subject = results.subject
    if subject is None or not results.exact_posterior or subject not in results.curves:
        return None
    regret = results.at("risk", subject, "mean", metric="regret_nats")
    if not math.isfinite(float(regret["estimate"])):
        return (
            f"**How far from Bayes.** {_who(results, subject)} gives probability 0 to tokens that can follow: its "
            "regret is infinite."
        )
    text = (
        f"**How far from Bayes.** Its KL from the truth exceeds that of the Bayes rule by {interval_of(regret)} nats "
        f"on average over n = 1 … {results.length}."
    )
    cause = largest_part(results, subject)
    if cause is not None:
        part, share, n = cause
        text += f" At n = {n}, {100 * share:.0f} % of this excess comes from {_CAUSES[part]}."
    return text


def largest_part(results: Results, subject: str) -> tuple[str, float, int] | None:
    """Return the largest part of the regret, its share, and n: the longest length with a budget."""
    if "budget" not in results:
        return None
    frame = results.tables["budget"]
    frame = frame[(frame["estimator"] == subject) & frame["estimate"].map(math.isfinite)]
    if frame.empty:
        return None
    n = max(int(length) for length in frame["context_length"])
    rows = {str(row["part"]): float(row["estimate"]) for row in records(frame[frame["context_length"] == n])}
    whole = rows.pop("regret", 0.0)
    if not rows or whole <= _ZERO:
        return None
    part = max(rows, key=lambda name: rows[name])
    return part, rows[part] / whole, n


def pseudo_count_words(results: Results) -> str | None:
    """Say what the pseudo-count does from few visits to many."""
    subject = results.subject
    fits = [] if subject is None else pseudo_counts(results, "visits", subject)
    rows = [row for row in fits if row["identified"] and not row["boundary"] and math.isfinite(row["estimate"])]
    if len(rows) < 2:
        return None
    first, last = rows[0], rows[-1]
    alpha = f"{results.options['concentration']:g}"
    whose = "Bayes adds" if results.exact_posterior else "a rule that ignored the start law would add"
    few, many = (f"{row['value']:g} visit{'' if row['value'] == 1 else 's'}" for row in (first, last))
    return (
        f"**What it adds to the counts.** After {few} of the current token it smooths as if it added "
        f"{_figures(first)} to every count, after {many} as if it added {_figures(last)}; {whose} {alpha} at every "
        "number of visits."
    )


def _figures(row: dict[str, Any]) -> str:
    """Spell a pseudo-count with about three significant figures."""
    size = float(row["estimate"])
    return interval_of(row, 3 if size < 1 else 2 if size < 10 else 1)


def induction_lengths(results: Results, subject: str) -> list[int]:
    """Return the n at which attention is that of an induction head.

    More than half of layer 1 lies on the previous token, and the interval of layer 2's mass on matching positions lies
    above the chance level.
    """
    frame = results.tables["attention"]
    frame = frame[(frame["estimator"] == subject) & (frame["context_length"] != "mean")]
    by_n: dict[int, dict[str, dict[str, Any]]] = {}
    for row in records(frame):
        by_n.setdefault(int(row["context_length"]), {})[str(row["quantity"])] = row
    return sorted(
        n
        for n, found in by_n.items()
        if {"previous_token_mass", "match_mass", "match_mass_chance"} <= set(found)
        and float(found["previous_token_mass"]["estimate"]) > 0.5
        and float(found["match_mass"]["ci_low"]) > float(found["match_mass_chance"]["estimate"])
    )


def induction_sentence(results: Results) -> str | None:
    """Say whether attention is that of an induction head, and at which context lengths."""
    subject = results.subject
    if subject is None or "attention" not in results:
        return None
    if subject not in set(results.tables["attention"]["estimator"]):
        return None
    lengths = induction_lengths(results, subject)
    head = "**Is it an induction head?**"
    if not lengths:
        return (
            f"{head} No: at no context length does layer 1 look mostly at the previous token while layer 2 looks at "
            "what followed the current token before more than chance would."
        )
    n = min(lengths, key=lambda length: abs(length - min(24, results.length)))
    previous, match = (
        float(results.at("attention", subject, n, quantity=quantity)["estimate"])
        for quantity in ("previous_token_mass", "match_mass")
    )
    whole = lengths == list(range(lengths[0], lengths[-1] + 1))
    where = f"up to n = {lengths[-1]}" if whole and lengths[-1] < results.length else ""
    where = where or ("" if whole else f"at {len(lengths)} of {results.length} context lengths")
    return (
        f"{head} Yes{', ' if where else ''}{where}: layer 1 puts {spell(previous, 2)} of its attention on the previous "
        f"token, and layer 2 puts {spell(match, 2)} on what followed the current token before, more than chance would "
        f"(n = {n})."
    )


def add_first_page(page: Page, results: Results) -> None:
    """Add the answer: the sentences beside the forest plot. Nothing where no sentence can be made."""
    alarms = [alarm_sentence(row) for row in results.alarms]
    sentences = [likeness_sentence(results), bayes_sentence(results), pseudo_count_words(results)]
    sentences.append(induction_sentence(results))
    told = [sentence for sentence in sentences if sentence]
    if results.observed or not (told or alarms):
        return
    page.heading("The answer", "answer")
    page.items([*alarms, *told])
    names = forest_names(results)
    if len(names) > 1:
        _add_forest(page, results, names)


def _add_forest(page: Page, results: Results, names: list[str]) -> None:
    subject = results.subject
    distances = distances_to(results, subject) if subject else {}
    metric = results.headline_metric
    what = "mean regret" if metric == "regret_nats" else "mean KL from the truth"
    parts = []
    for name in names:
        value = float(results.at("risk", name, "mean", metric=metric)["estimate"])
        shown = (
            "0, by definition" if abs(value) <= _ZERO else "infinite" if math.isinf(value) else f"{spell(value)} nats"
        )
        distance = f"{100 * float(distances[name]['estimate']):.1f} % elsewhere, " if name in distances else ""
        parts.append(f"{results.display(name)}: {distance}{what} {shown}")
    left = (
        f"how much of the probability each rule puts elsewhere than {_who(results, subject)}; right: "
        if distances and subject
        else ""
    )
    page.figure(
        "forest",
        forest_figure(results),
        f"{'Left: ' if left else ''}{left}{what} on a logarithmic axis, ∞ where it is infinite. Averages over n = 1 … "
        f"{results.length}, with {results.level_text} intervals, clustered on chains.",
        ("Dot plot in two panels. " if distances else "Dot plot. ") + "; ".join(parts) + ".",
    )


def add_rules(page: Page, results: Results) -> None:
    """Add what the rules of this study predict, under the names that the report uses: once, after the answer."""
    if page.has("rules") or not page.has("answer"):
        return
    shown = [name for name in results.curves if name in results.rules]
    shown += [name for name in results.rules if name not in results.names and _is_shown(results, name)]
    if not shown:
        return
    page.heading("The rules", "rules")
    page.text(
        "After the current token v, each rule computes the probability of w from the prefix. n~vw~ is how often w has "
        "followed v, n~v~ how often v has been left, and K the number of states. {tbl:rules} has the rules under the "
        "names of this report; the names for the command line are under [Design](#design)."
    )
    rows = []
    for name in shown:
        family = results.rules[name]["family"]
        plain, _, order = family.partition(":order=")
        meaning = RULE_MEANINGS.get(plain if order else family, "")
        meaning = f"{meaning} ({ORDER.replace('k', order)})" if order else meaning
        rows.append([_who(results, name), _subscripts(escape(meaning))])
    page.table("rules", ["rule", "its prediction of w"], rows, "The rules, and what they predict.", left=2)


def _is_shown(results: Results, name: str) -> bool:
    """Whether a fitted rule is named on the first page."""
    if "nearest" not in results:
        return False
    frame = results.tables["nearest"]
    return name in {*frame["rule"], *frame["next_rule"]}


def _subscripts(text: str) -> str:
    for plain, shown in (("n\\_vw", "n~vw~"), ("n\\_v", "n~v~"), ("n\\_w", "n~w~"), ("f\\_w", "f~w~")):
        text = text.replace(plain, shown)
    return text


def spec_list(results: Results) -> str:
    """Return the specs behind the display names, for the section on methods."""
    named = [name for name in results.rules if name in results.names and results.rules[name]["display"] != name]
    return ", ".join(f"{escape(results.rules[name]['display'])} is {code(name)}" for name in named)
