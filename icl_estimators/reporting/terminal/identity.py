"""Which estimator is it? One screen of text about one estimator, from the tables of a study."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from icl_estimators.reporting.terminal.rows import Record, real
from icl_estimators.reporting.terminal.smoothing import SHOWN_VISITS
from icl_estimators.text import columns_of, number, text_table

__all__ = ["COLUMNS", "identity_rows", "identity_text"]

COLUMNS = ("estimator", "quantity", "other", "context_length", "visits", "estimate", "ci_low", "ci_high", "note")
"""The columns of the table that ``identify --csv`` prints."""

_MOST_RULES = 6
_WIDTH = 100
_ZERO = 1e-12
_TRACE = 5e-5  # nats: what rounds to 0 in the table is not a dependence worth a word

_BEYOND_COUNTS = {
    "order": "the order of the same transitions",
    "other_rows": "transitions out of other states",
    "label_asymmetry": "which label a state has",
    "self_bias": "which state the current token is",
}
_OF_COUNTS = {"shape": "the shape of its smoothing", "amount": "the amount of its smoothing"}


@dataclass(frozen=True)
class _Value:
    """An estimate with its interval, which may be missing."""

    estimate: float
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def of(cls, row: Record) -> _Value:
        return cls(real(row["estimate"]), real(row["ci_low"]), real(row["ci_high"]))

    def text(self, digits: int = 4) -> str:
        """Spell it, with its interval where it has one."""
        if math.isnan(self.estimate):
            return "–"
        if not math.isfinite(self.estimate):
            return number(self.estimate)
        shown = f"{self.estimate + 0.0:.{digits}f}".replace(f"-{0:.{digits}f}", f"{0:.{digits}f}")
        if math.isnan(self.low) or self.low == self.high:  # exact
            return shown
        return f"{shown} [{self.low + 0.0:.{digits}f}, {self.high + 0.0:.{digits}f}]"

    def percent(self) -> str:
        """Spell a share in percent, with its interval where it has one."""
        if not math.isfinite(self.estimate):
            return "–"
        if abs(self.estimate) < _ZERO and not self.high > _ZERO:
            return "0 %"
        digits = 2 if abs(self.estimate) < 0.01 else 1
        shown = f"{100 * self.estimate:.{digits}f} %"
        if math.isnan(self.low):
            return shown
        return f"{shown} [{100 * self.low:.{digits}f}, {100 * self.high:.{digits}f}]"


@dataclass(frozen=True)
class _Found:
    """What a study says about one estimator; a table that is not there has no rows."""

    tables: dict[str, list[Record]]
    run: dict[str, Any]
    subject: str
    names: dict[str, str] = field(default_factory=dict)

    def rows(self, table: str, **wanted: object) -> list[Record]:
        """The rows about the subject with these cells."""
        return [
            row
            for row in self.tables.get(table, [])
            if row["estimator"] == self.subject and all(row[name] == value for name, value in wanted.items())
        ]

    def one(self, table: str, **wanted: object) -> _Value | None:
        """The first of these rows."""
        rows = self.rows(table, **wanted)
        return _Value.of(rows[0]) if rows else None

    def named(self, name: str) -> str:
        """What a reader calls an estimator; its spec if it has no other name."""
        return self.names.get(name, name)

    @property
    def fitted(self) -> list[dict[str, Any]]:
        """The rules that were fitted to the subject."""
        found: list[dict[str, Any]] = self.run.get("fitted_rules", {}).get(self.subject, [])
        return found

    @property
    def models(self) -> set[str]:
        """The other estimators that the study is about: they are not rules to compare with."""
        return {str(row["estimator"]) for row in self.tables.get("nearest", [])} - {self.subject}

    def likeness(self, measure: str) -> dict[str, _Value]:
        """The measure between the subject and each rule, the mean over n."""
        found = {}
        for row in self.tables.get("likeness", []):
            pair = (str(row["estimator"]), str(row["other"]))
            # A symmetric measure has one row for a pair, whichever of the two is named first.
            symmetric = measure == "total_variation" and pair[1] == self.subject
            if row["context_length"] == "mean" and row["measure"] == measure and (pair[0] == self.subject or symmetric):
                other = pair[0] if symmetric else pair[1]
                if other not in self.models:
                    found[other] = _Value.of(row)
        return found


def identity_text(tables: dict[str, list[Record]], run: dict[str, Any], subject: str) -> str:
    """Return what a study found about `subject`, as one screen of plain text.

    Parameters
    ----------
    tables : dict of str to list of dict
        Rows by column name; those that are used: nearest, likeness, strategies, smoothing, risk, regret_by_visits,
        budget. What a missing table would say is left out.
    run : dict
        As in run.json.
    subject : str
        Name of the estimator.
    """
    found = _Found(tables, run, subject, {name: rule["display"] for name, rule in run.get("rules", {}).items()})
    title = f"Which estimator is {found.named(subject)}?"
    parts = [f"{title}\n{'=' * columns_of(title)}\n" + _filled(_design(run["options"]))]
    for section in (_nearest, _mixture, _pseudo_count, _regret, _budget):
        parts += section(found)
    return "\n\n".join(parts)


def _design(options: dict[str, Any]) -> str:
    return (
        f"{options['chains']:,} chains × {options['sequences_per_chain']} sequences × {options['length']} tokens; "
        f"K = {options['states']}, α = {options['concentration']:g}, {options['start']} start, seed {options['seed']}; "
        f"[ ]: {100 * options['level']:g} % intervals, clustered on chains"
    )


def _nearest(found: _Found) -> Iterator[str]:
    rows = found.rows("nearest", measure="total_variation", context_length="mean")
    distances = found.likeness("total_variation")
    if not rows or not distances:
        return
    row = rows[0]
    best = str(row["rule"])
    distance = distances.get(best, _Value(real(row["estimate"])))
    if distance.estimate < _ZERO:
        text = f"It is {found.named(best)}: no probability lies elsewhere."
    else:
        text = f"It is nearest to {found.named(best)}: {distance.percent()} of the probability lies elsewhere."
    if row["next_rule"]:
        gap = _Value(real(row["difference"]), real(row["ci_low"]), real(row["ci_high"]))
        text += f" Next comes {found.named(str(row['next_rule']))}, {gap.percent()} farther away on the same prefixes."
        if not row["decided"]:
            text += " The interval contains 0, so the data do not tell which of the two is nearer."
    yield "NEAREST RULE\n" + _filled(text)
    explained = found.likeness("explained")
    ranked = sorted((name for name in distances), key=lambda name: distances[name].estimate)[:_MOST_RULES]
    table = [
        [found.named(name), distances[name].percent(), explained[name].percent() if name in explained else ""]
        for name in ranked
    ]
    yield text_table(["rule", "probability elsewhere", "explained"], table)


def _mixture(found: _Found) -> Iterator[str]:
    rows = found.rows("strategies", context_length="mean")
    weights = [(str(row["strategy"]), _Value.of(row)) for row in rows if not math.isnan(real(row["estimate"]))]
    weights = sorted((item for item in weights if item[1].estimate > 0.005), key=lambda item: -item[1].estimate)
    if not weights:
        return
    listed = "; ".join(f"{weight.text(2)} {found.named(name)}" for name, weight in weights)
    explained = real(rows[0]["explained"])
    text = f"Its predictions as a weighted mean of rules: {listed}."
    if not math.isnan(explained):
        text += f" The mixture explains {100 * explained:.1f} % of them on other chains."
    yield "AS A MIXTURE\n" + _filled(text)


def _pseudo_count(found: _Found) -> Iterator[str]:
    rows = {
        row["value"]: row
        for row in found.rows("smoothing", by="visits", family="add-constant", parameter="pseudo_count")
    }
    shown = [visits for visits in SHOWN_VISITS if visits in rows]
    if not shown:
        return
    alpha = found.run["options"]["concentration"]
    cells = [_Value.of(rows[visits]) for visits in shown]
    table = text_table(
        ["visits to the current token", *map(str, shown)],
        [
            ["pseudo-count", *(_significant(cell.estimate) for cell in cells)],
            ["  from", *(_significant(cell.low) for cell in cells)],
            ["  to", *(_significant(cell.high) for cell in cells)],
        ],
    )
    text = f"It smooths like the rule that adds this to every count. Bayes adds {alpha:g} at every visit."
    rule = next((one for one in found.fitted if one["family"] == "add-constant"), None)
    explained = found.likeness("explained").get(rule["spec"]) if rule else None
    if rule and explained:
        text += f" One number for all prefixes, {_significant(rule['parameters']['alpha'])}, explains "
        text += f"{100 * explained.estimate:.1f} % of its predictions."
    yield "PSEUDO-COUNT\n" + _filled(text) + f"\n{table}"


def _regret(found: _Found) -> Iterator[str]:
    length = found.run["options"]["length"]
    regret = found.one("risk", metric="regret_nats", context_length="mean")
    if regret is None or math.isnan(regret.estimate):
        yield "DISTANCE FROM BAYES\nNo Bayes rule is known exactly for these chains, so there is no regret."
        return
    if math.isinf(regret.estimate):
        text = "Its regret is infinite: it gives probability 0 to tokens that can follow."
    elif abs(regret.estimate) < _ZERO:
        text = "It is the Bayes rule: its regret is 0."
    else:
        text = f"Its KL from the truth exceeds that of Bayes by {regret.text()} nats, the mean over n = 1 … {length}."
        never = found.rows("regret_by_visits", visits=0)
        if never:
            row = never[0]
            text += (
                f" Prefixes whose last token has not been left before are {100 * real(row['share_of_prefixes']):.1f} % "
                f"of all and carry {100 * real(row['share_of_regret']):.0f} % of it."
            )
    yield "DISTANCE FROM BAYES\n" + _filled(text)


def _budget(found: _Found) -> Iterator[str]:
    parts = {**_BEYOND_COUNTS, **_OF_COUNTS}
    rows = {(str(row["part"]), row["context_length"]): row for row in found.rows("budget")}
    lengths = sorted({n for part, n in rows if part == "regret" and isinstance(n, int)})
    lengths = [n for n in lengths if math.isfinite(real(rows["regret", n]["estimate"]))]
    whole = [n for n in lengths if all(math.isfinite(real(rows[part, n]["estimate"])) for part in parts)]
    if not whole:
        return
    lengths = _some(whole) + [n for n in lengths[-1:] if n not in whole]
    table = [["all of it", *(_Value.of(rows["regret", n]).text() for n in lengths)]]
    table += [
        [words, *(_Value.of(rows[part, n]).text() if (part, n) in rows else "" for n in lengths)]
        for part, words in parts.items()
    ]
    last = whole[-1]
    used = [words for part, words in _BEYOND_COUNTS.items() if real(rows[part, last]["ci_low"]) > _TRACE]
    unused = [words for part, words in _BEYOND_COUNTS.items() if words not in used]
    text = (
        f"At n = {last} it depends on {_listed(used)}."
        if used
        else f"At n = {last} nothing shows that it depends on anything but the counts out of the current token."
    )
    if used and unused:
        text += f" No dependence shows on {_listed(unused, 'or')}."
    text += " Bayes uses the counts out of the current token and nothing else, and it loses nothing."
    yield "WHERE IT LOSES, nats\n" + _filled(text)
    yield text_table(["lost through", *(f"n = {n}" for n in lengths)], table)
    if lengths[-1] not in whole:
        yield _filled(f"–: at n = {lengths[-1]} too few prefixes share their counts; more chains would tell.")


def _some(lengths: Sequence[int]) -> list[int]:
    """Keep at most four lengths: few columns stay readable."""
    if len(lengths) <= 4:
        return list(lengths)
    wanted = [lengths[round(index * (len(lengths) - 1) / 3)] for index in range(4)]
    return list(dict.fromkeys(wanted))


def _listed(words: Sequence[str], conjunction: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def _significant(value: float) -> str:
    if math.isnan(value):
        return "–"
    if not math.isfinite(value) or value == 0.0:
        return f"{value:g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH)


def identity_rows(tables: dict[str, list[Record]], subject: str) -> list[dict[str, Any]]:
    """Return the same numbers as rows with :data:`COLUMNS`, at full precision.

    Examples
    --------
    >>> row = {"estimator": "m", "context_length": 3, "part": "order", "estimate": 0.1, "ci_low": None, "ci_high": None}
    >>> [(row["quantity"], row["estimate"]) for row in identity_rows({"budget": [row | {"note": ""}]}, "m")]
    [('budget_order', 0.1)]
    """
    found: list[dict[str, Any]] = []

    def add(quantity: str, row: Record, **more: object) -> None:
        plain = {name: row.get(name) for name in COLUMNS}
        found.append(plain | {"estimator": subject, "quantity": quantity, "other": None} | more)

    for row in tables.get("likeness", []):
        pair = (row["estimator"], row["other"])
        if row["context_length"] == "mean" and subject in pair:
            if pair[0] == subject:
                add(str(row["measure"]), row, other=pair[1])
            elif row["measure"] == "total_variation":
                add("total_variation", row, other=pair[0])
    for table, quantity in (("nearest", "nearest_rule"), ("strategies", "mixture_weight"), ("budget", "budget")):
        for row in tables.get(table, []):
            if row["estimator"] != subject:
                continue
            if table == "nearest":
                if row["measure"] == "total_variation" and row["context_length"] == "mean":
                    add(quantity, row, other=row["rule"], ci_low=None, ci_high=None)
                    add("next_rule_is_farther_by", row, other=row["next_rule"], estimate=row["difference"])
            elif table == "strategies":
                add(quantity, row, other=row["strategy"])
            else:
                add(f"budget_{row['part']}", row)
    for row in tables.get("smoothing", []):
        if row["estimator"] == subject and row["family"] == "add-constant" and row["parameter"] == "pseudo_count":
            where = {"context_length": row["value"]} if row["by"] == "context-length" else {"visits": row["value"]}
            add("pseudo_count", row, **where)
    for row in tables.get("risk", []):
        if row["estimator"] == subject and row["metric"] == "regret_nats":
            add("regret", row)
    for row in tables.get("regret_by_visits", []):
        if row["estimator"] == subject:
            add("regret", row)
    return found
