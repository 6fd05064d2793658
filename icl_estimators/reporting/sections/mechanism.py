"""How a trained model does it: where it looks, and the learned circuit beside the explicit construction."""

from __future__ import annotations

from typing import Any

import numpy as np

from icl_estimators.reporting.figures.attention import (
    EXAMPLE_POSITIONS,
    attention_example_figure,
    attention_names,
    mass_figure,
    state_label,
)
from icl_estimators.reporting.figures.circuit import circuit_figure, circuit_names, distance_figure, twin
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import interval_of, spell
from icl_estimators.reporting.results import Results, records

__all__ = ["add_attention", "add_circuit"]

_HEADS_SHOWN = 24


def add_attention(page: Page, results: Results) -> None:
    """Add the attention of one example, and its masses beside chance."""
    if not {"attention", "attention_example", "heads"} & results.tables.keys():
        return
    page.heading("Attention", "attention")
    page.text(
        "In an induction circuit [@olsson2022] each position of layer 1 attends to the previous position, and layer 2 "
        "attends to positions that *follow* an earlier occurrence of the current token."
    )
    if "attention_example" in results:
        for name in attention_names(results, "attention_example"):
            _add_example(page, results, name)
    if "attention" in results:
        _add_masses(page, results)
    if "heads" in results:
        _add_heads(page, results)


def _add_heads(page: Page, results: Results) -> None:
    rows = [row for row in records(results.tables["heads"]) if str(row["context_length"]) == "mean"]
    by_head: dict[tuple[str, int, int], dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_head.setdefault((str(row["estimator"]), int(row["layer"]), int(row["head"])), {})[row["quantity"]] = row
    shown = [key for key, found in by_head.items() if any(row["best"] for row in found.values())]
    shown = list(dict.fromkeys([*shown, *by_head]))[:_HEADS_SHOWN]
    table = []
    for name, layer, head in sorted(shown, key=list(by_head).index):
        found = by_head[name, layer, head]
        cells = []
        for quantity in ("previous_token_mass", "match_mass"):
            row = found[quantity]
            text = f"{interval_of(row, 3)} (chance {spell(row['chance'], 3)})"
            cells.append(f"**{text}**" if row["best"] else text)
        table.append([escape(results.display(name)), f"{layer}.{head}", *cells])
    page.table(
        "heads",
        ["estimator", "layer.head", "on the previous token", "on matching positions"],
        table,
        f"Mean share of attention of each head over n = 2 … T, with {results.level_text} intervals, beside that of "
        "uniform attention. Bold: the head of the estimator that is farthest above it. All are in "
        f"{code('heads.csv')}.",
        left=2,
    )


def _add_example(page: Page, results: Results, name: str) -> None:
    frame = results.tables["attention_example"]
    own = frame[(frame["estimator"] == name) & (frame["layer"] == 1)]
    tokens = own.drop_duplicates("query").sort_values("query")["query_token"].head(EXAMPLE_POSITIONS)
    n_states = int(results.options["states"])
    word = "".join(state_label(str(token), n_states) for token in tokens)
    stem = f"attention-{_slug(name)}"
    page.figure(
        stem,
        attention_example_figure(results, name),
        f"{escape(results.display(name))}: attention of both layers on the start of one sequence, {escape(word)}. "
        "Each row is the token "
        "that attends, and sums to 1; grey is masked. "
        + ("\\^ is the sentinel. " if (own["query"] == 0).any() else "")
        + f"The numbers: {code('attention_example.csv')}.",
        f"Two heat maps of {name}’s attention weights on the tokens {word}, layer 1 and layer 2, tokens on both axes. "
        f"{_example_alt(results, name)}",
    )


def _example_alt(results: Results, name: str) -> str:
    frame = results.tables["attention_example"]
    frame = frame[(frame["estimator"] == name) & (frame["layer"] == 1)]
    previous = frame[frame["query"] == frame["key"] + 1]["weight"]
    return f"In layer 1 each position puts {previous.mean():.2f} of its attention on the previous one, on average."


def _slug(name: str) -> str:
    return (
        "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in name.lower()).strip("-")[:40]
        or "model"
    )


def _add_masses(page: Page, results: Results) -> None:
    known = set(results.tables["attention"]["estimator"])
    names = [name for name in results.curves if name in known]
    page.text(
        "{fig:match-mass} averages over sequences. Uniform attention would also put some of its mass on matching "
        "positions, so the match mass is shown with that chance level. A sequence without a match counts as 0 in both."
    )
    page.figure(
        "match-mass",
        mass_figure(results),
        f"Mean share of attention against the number of tokens read. Shaded: pointwise {results.level_text} intervals.",
        f"Two line plots against context length 1 to {results.length}: layer 1’s attention on the previous token, and "
        f"layer 2’s on positions that follow an earlier occurrence of the current token, with its chance level. "
        f"{_mass_alt(results, names)}",
    )
    rows = []
    for name in names:
        for n in results.shown_lengths((3, 12, 50)):
            cells = []
            for quantity in ("previous_token_mass", "match_mass", "match_mass_chance"):
                row = results.at("attention", name, n, quantity=quantity)
                cells.append(interval_of(row, 3))
            rows.append([escape(results.display(name)), str(n), *cells])
    page.table(
        "attention",
        ["estimator", "n", "layer 1, previous token", "layer 2, matches", "chance of a match"],
        rows,
        f"Mean share of attention with {results.level_text} intervals; all lengths are in {code('attention.csv')}.",
    )


def _mass_alt(results: Results, names: list[str]) -> str:
    n = results.length
    texts = []
    for name in names:
        mass, chance = (
            results.at("attention", name, n, quantity=q)["estimate"] for q in ("match_mass", "match_mass_chance")
        )
        texts.append(f"{results.display(name)} {spell(mass, 2)} against {spell(chance, 2)} by chance")
    return f"Match mass at n = {n}: {'; '.join(texts)}."


def add_circuit(page: Page, results: Results) -> None:
    """Add the folded matrices of each trained model beside the construction's."""
    names = circuit_names(results)[:1] if "circuit" in results else []
    if not names:
        return
    name = names[0]
    shown = escape(name)
    page.heading("The learned circuit", "circuit")
    page.text(
        "A two-layer model without MLP and layer norm is determined by a few small matrices. {fig:circuit} shows those "
        f"of {shown} beside the explicit construction’s, in the same basis and on the same colour scale. Letters are "
        "tokens: A, B, … for “this token stands here” and A′, B′, … for “this token was read by layer 1”, which for a "
        "previous-token head is the previous token. Matrices are centred, which changes no prediction and makes them "
        "comparable." + _scales(results, name)
    )
    page.figure(
        "circuit",
        circuit_figure(results, name),
        f"The matrices of {shown} (above) and of the construction nearest to it (below). Rows are the query or the "
        "feature, columns the key or the predicted token.",
        f"Heat maps of four matrices in two rows, {name} above and the construction below. "
        f"{_circuit_alt(results, name)}",
    )
    page.text("{fig:distances} shows the part of the attention scores that depends on distance alone.")
    page.figure(
        "distances",
        distance_figure(results, name),
        "Score by relative distance, median 0. The construction attends one token back in layer 1 and has no preferred "
        "distance in layer 2.",
        f"Two line plots of the score by relative distance 0 to {results.length - 1}, layers 1 and 2, for {name} and "
        f"the construction. {_distance_alt(results, name)}",
    )


def _scales(results: Results, name: str) -> str:
    fitted = results.run.get("nearest_construction", {}).get(name)
    if not fitted:
        return ""
    first = f"β = {fitted['beta_r1']:.2f} in layer 1 (distance 1), " if "beta_r1" in fitted else ""
    return (
        " The construction’s scales are fitted to the model by least squares, each to its own matrix: "
        f"{first}β = {fitted['beta']:.2f} in layer 2 (matching), γ = {fitted['gamma']:.2f}."
    )


def _values(results: Results, name: str, matrix: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    frame = results.tables["circuit"]
    return frame[(frame["estimator"] == name) & (frame["matrix"] == matrix)]["value"].to_numpy(float)


def _circuit_alt(results: Results, name: str) -> str:
    texts = []
    for matrix, label in (
        ("G", "layer-2 scores"),
        ("induction", "logits from layer 2"),
        ("direct", "logits from the position"),
    ):
        mine, theirs = _values(results, name, matrix), _values(results, twin(name), matrix)
        norm = float(np.linalg.norm(mine)) or 1.0
        share = 1 - (np.linalg.norm(mine - theirs) / norm) ** 2  # below 0 where 0 would be closer than the construction
        texts.append(f"{label}: {100 * share:.0f} %" if share > 0 else f"{label}: none")
    return f"Share of the model’s squared entries that the construction accounts for: {', '.join(texts)}."


def _distance_alt(results: Results, name: str) -> str:
    first = _values(results, name, "r1")
    near, far = (spell(first[place], 1) for place in (min(1, len(first) - 1), -1))
    return f"Layer 1 of the model scores {near} at distance 1 and {far} at the farthest."
