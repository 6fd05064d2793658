"""The headline figures of a smoothing study as text for a terminal."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from icl_estimators.reporting.terminal.rows import Cell, Record, design_line, named_table, real
from icl_estimators.text import gamma_text, number, text_table

__all__ = ["SHOWN_VISITS", "pseudo_count_text", "smoothing_text"]

SHOWN_VISITS = (1, 2, 5, 10, 20, 40)
_SAME = 1e-9  # nats: of families that leave as much, the first is named


def smoothing_text(tables: dict[str, list[Record]], run: dict[str, Any]) -> str:
    """Return the summary of a study's `tables`, rows by name."""
    options = run["options"]
    level = f"{100 * options['level']:g} %"
    rows = tables["smoothing"]
    parts = [design_line(options)]
    names = list(dict.fromkeys(str(row["estimator"]) for row in rows))
    overall = any(row["by"] == "overall" for row in rows)
    text = pseudo_count_text(rows)
    if text:
        parts.append(
            "\nEffective pseudo-count α of each estimator: (n_vw + α)/(n_v + Kα) after t_n = v, fitted to all "
            "prefixes\nand to those with n_v transitions out of v so far\n" + text
        )
    if options["families"] and overall:
        parts.append(_families_text(rows, names, run["family_formulas"], "sequence" if "data" in options else "chain"))
    if "interventions" in tables:
        parts.append(_interventions_text(tables["interventions"], run["intervened_on"], level))
    used = gamma_text(run.get("default_gamma", {}), run.get("tuned_gamma", {}))
    if used:
        parts.append(f"\n{used}")
    return "\n".join(parts)


def pseudo_count_text(rows: list[Record]) -> str:
    """Return a table of pseudo-counts, overall and by visits; empty if there are no such rows."""
    found = {
        (row["estimator"], row["by"], row["value"]): row
        for row in rows
        if row["family"] == "add-constant" and row["parameter"] == "pseudo_count"
    }
    known = {(by, value) for _, by, value in found}
    keys: list[tuple[str, Cell]] = [("overall", None), *(("visits", visits) for visits in SHOWN_VISITS)]
    keys = [key for key in keys if key in known]
    if not keys:
        return ""
    header = ["", *("overall" if by == "overall" else f"n_v = {value}" for by, value in keys)]
    names = dict.fromkeys(str(name) for name, _, _ in found)
    return named_table(header, [[name, *(_pseudo_count(found.get((name, *key))) for key in keys)] for name in names])


def _families_text(rows: list[Record], names: list[str], formulas: dict[str, str], unit: str) -> str:
    heldout: dict[tuple[Cell, Cell], float] = {}
    explained: dict[tuple[Cell, Cell], float] = {}
    parameters: dict[tuple[Cell, Cell], list[str]] = {}
    for row in rows:
        key = (row["estimator"], row["family"])
        if row["by"] != "overall" or row["family"] not in formulas:
            continue
        if row["parameter"] == "residual_kl_heldout_nats":
            heldout[key] = real(row["estimate"])
        elif row["parameter"] == "explained":
            explained[key] = real(row["estimate"])
        elif row["parameter"] != "heldout_gain_nats":
            value = "–" if math.isnan(real(row["estimate"])) else number(real(row["estimate"]), 3)
            parameters.setdefault(key, []).append(f"{_short(str(row['parameter']))} {value}")
    body = []
    for name in names:
        mine = {family: value for (who, family), value in heldout.items() if who == name and not math.isnan(value)}
        if not mine:
            continue
        best = next(family for family, left in mine.items() if left <= min(mine.values()) + _SAME)
        body.append(
            [
                name,
                number(mine["add-constant"], 5),
                str(best),
                ", ".join(parameters.get((name, best), [])),
                number(mine[best], 5),
                _share(explained.get((name, best), math.nan)),
            ]
        )
    header = ["", "left over by one α", "best family", "its parameters", "left over by it", "explained"]
    legend = "; ".join(f"{name} {formula}" for name, formula in formulas.items())
    return (
        f"\nLeft over by a rule: mean KL(estimator ‖ rule) in nats, on the half of the {unit}s that was not used for\n"
        "the fit; explained: 1 − KL(· ‖ rule)/KL(· ‖ uniform)\n"
        + named_table(header, body)
        + "\n"
        + textwrap.fill(f"Families, p̂_w proportional to: {legend}", width=116)
    )


def _interventions_text(rows: list[Record], models: list[str], level: str) -> str:
    found = {(row["intervention"], row["quantity"], row["visits"]): row for row in rows}
    shown = [v for v in SHOWN_VISITS if ("intact", "log_pseudo_count_from_add_one", v) in found]
    names = list(dict.fromkeys(str(row["intervention"]) for row in rows))
    header = ["", *(f"n_v = {v}" for v in shown), "regret"]
    body = []
    for name in names:
        cells = []
        for v in shown:
            row = found.get((name, "log_pseudo_count_from_add_one", v))
            cells.append("–" if row is None else _alpha(row, "estimate"))
        regret = found.get((name, "regret_nats_from_add_one", None))
        value = math.nan if regret is None else real(regret["estimate"])
        cells.append("–" if math.isnan(value) else number(value))
        body.append([name, *cells])
    text = (
        f"\nThe same pseudo-counts with parts of {', '.join(models)} replaced, and the mean regret in nats\n"
        + named_table(header, body)
    )
    exact = [found.get(("exact-attention", "log_pseudo_count", v)) for v in shown]
    if all(row is not None and not math.isnan(real(row["difference"])) for row in exact) and exact:
        factors = [_factor(row) for row in exact if row is not None]
        text += (
            f"\nα of the intact model / α with exact attention ({level} interval): the effect of spread attention,\n"
            "with the read-out that was trained together with it\n"
            + text_table([f"n_v = {v}" for v in shown], [factors], left=0)
        )
    return text


def _pseudo_count(row: Record | None) -> str:
    if row is None:
        return "–"
    estimate, low, high = (real(row[name]) for name in ("estimate", "ci_low", "ci_high"))
    if math.isnan(estimate):
        return "–"
    if row["boundary"]:
        return "0" if estimate == 0.0 else "inf"
    margin = max(high - estimate, estimate - low)
    return _figures(estimate) if math.isnan(margin) or margin == 0.0 else f"{_figures(estimate)} ±{_figures(margin, 1)}"


def _alpha(row: Record, field: str) -> str:
    value = math.exp(real(row[field]))
    return "–" if math.isnan(value) else _figures(value)


def _factor(row: Record) -> str:
    value, low, high = (math.exp(real(row[name])) for name in ("difference", "ci_low", "ci_high"))
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _figures(value: float, digits: int = 3) -> str:
    """Spell a positive number with some significant figures, without an exponent where that is short."""
    if not math.isfinite(value) or value == 0.0:
        return f"{value:g}"
    value = float(f"{value:.{digits - 1}e}")
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(decimals, 0)}f}" if decimals <= 6 else f"{value:.{digits - 1}e}"


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %"


def _short(parameter: str) -> str:
    names = {"pseudo_count": "α", "pseudo_count_per_visit": "b", "bonus": "δ", "unigram_share": "λ", "decay": "d"}
    return names.get(parameter, {"gamma": "γ"}.get(parameter, parameter.replace("pseudo_count_", "α_")))
