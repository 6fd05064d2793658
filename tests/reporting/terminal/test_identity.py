from __future__ import annotations

from typing import Any

import pytest

from icl_estimators.reporting.terminal.identity import COLUMNS, identity_rows, identity_text

Row = dict[str, Any]

RUN = {
    "options": {
        "chains": 200,
        "sequences_per_chain": 5,
        "length": 100,
        "states": 3,
        "concentration": 1.0,
        "start": "uniform",
        "seed": 0,
        "level": 0.95,
    },
    "rules": {"softmax:2.13": {"display": "softmax of frequencies, γ = 2.13"}},
}


def estimate(mean: float | None, half: float | None = None, /, **more: Any) -> Row:
    ends = {"ci_low": None, "ci_high": None}
    if mean is not None and half is not None:
        ends = {"ci_low": mean - half, "ci_high": mean + half}
    return {"estimate": mean, "se": None, **ends, "note": "", **more}


def likeness(one: str, other: str, measure: str, value: float, half: float = 0.001, n: Any = "mean") -> Row:
    return estimate(value, half, estimator=one, other=other, measure=measure, context_length=n)


@pytest.fixture
def tables() -> dict[str, list[Row]]:
    parts = {"order": 0.001, "other_rows": 0.004, "label_asymmetry": 0.0, "self_bias": 0.002, "shape": -0.001}
    budget = [
        estimate(value, 0.0005 if value else 0.0, estimator="model", context_length=50, part=part)
        for part, value in {"regret": 0.0174, **parts, "amount": 0.0114}.items()
    ]
    return {
        "nearest": [
            {
                "estimator": "model",
                "measure": "total_variation",
                "context_length": "mean",
                "rule": "softmax:2.13",
                "estimate": 0.0262,
                "next_rule": "add-one",
                "difference": 0.045,
                "se": 0.001,
                "ci_low": 0.043,
                "ci_high": 0.047,
                "decided": True,
                "note": "",
            }
        ],
        "likeness": [
            likeness("model", "softmax:2.13", "total_variation", 0.0262),
            likeness("add-one", "model", "total_variation", 0.0711),
            likeness("add-one", "softmax:2.13", "total_variation", 0.06),
            likeness("model", "softmax:2.13", "explained", 0.966),
            likeness("model", "softmax:2.13", "total_variation", 0.5, n=3),
        ],
        "strategies": [
            estimate(0.81, 0.02, estimator="model", context_length="mean", strategy="softmax:2.13", explained=0.979),
            estimate(0.19, 0.02, estimator="model", context_length="mean", strategy="unigram", explained=0.979),
            estimate(0.0, None, estimator="model", context_length="mean", strategy="uniform", explained=0.979),
        ],
        "smoothing": [
            estimate(
                alpha, 0.01, estimator="model", by="visits", value=visits, family="add-constant",
                parameter="pseudo_count",
            )
            for visits, alpha in ((1, 0.268), (40, 5.11))
        ],
        "risk": [estimate(0.031, 0.0003, estimator="model", metric="regret_nats", context_length="mean")],
        "regret_by_visits": [
            estimate(0.25, 0.01, estimator="model", visits=0, share_of_prefixes=0.031, share_of_regret=0.245)
        ],
        "budget": budget,
    }  # fmt: skip


def test_the_screen_answers_each_question(tables: dict[str, list[Row]]) -> None:
    text = " ".join(identity_text(tables, RUN, "model").split())
    assert "Which estimator is model?" in text
    assert "nearest to softmax of frequencies, γ = 2.13: 2.6 % [2.5, 2.7] of the probability lies elsewhere" in text
    assert "Next comes add-one, 4.5 % [4.3, 4.7] farther away" in text
    assert "add-one 7.1 % [7.0, 7.2]" in text  # the row of a symmetric measure names the pair either way
    assert "0.81 [0.79, 0.83] softmax of frequencies, γ = 2.13; 0.19 [0.17, 0.21] unigram." in text
    assert "explains 97.9 % of them" in text
    assert "pseudo-count 0.268 5.11" in text
    assert "Bayes adds 1 at every visit" in text
    assert "exceeds that of Bayes by 0.0310 [0.0307, 0.0313] nats" in text
    assert "are 3.1 % of all and carry 24 % of it" in text or "are 3.1 % of all and carry 25 % of it" in text
    assert "At n = 50 it depends on the order of the same transitions, transitions out of other states" in text
    assert "No dependence shows on which label a state has." in text
    assert "the shape of its smoothing -0.0010 [-0.0015, -0.0005]" in text


def test_no_line_is_wider_than_a_terminal(tables: dict[str, list[Row]]) -> None:
    assert max(map(len, identity_text(tables, RUN, "model").splitlines())) <= 100


def test_an_undecided_nearest_rule_is_said(tables: dict[str, list[Row]]) -> None:
    tables["nearest"][0] |= {"decided": False, "ci_low": -0.001}
    assert "do not tell which of the two is nearer" in " ".join(identity_text(tables, RUN, "model").split())


def test_a_rule_that_is_found_exactly_is_named(tables: dict[str, list[Row]]) -> None:
    tables["likeness"][0] |= {"estimate": 0.0, "ci_low": 0.0, "ci_high": 0.0}
    assert "It is softmax of frequencies, γ = 2.13: no probability lies elsewhere." in identity_text(
        tables, RUN, "model"
    )


def test_an_infinite_regret_has_no_budget(tables: dict[str, list[Row]]) -> None:
    tables["risk"][0] |= {"estimate": float("inf"), "ci_low": None, "ci_high": None}
    for row in tables["budget"]:
        row["estimate"] = float("inf") if row["part"] == "regret" else None
    text = identity_text(tables, RUN, "model")
    assert "gives probability 0 to tokens that can follow" in text
    assert "WHERE IT LOSES" not in text


def test_without_a_bayes_rule_no_regret_is_claimed(tables: dict[str, list[Row]]) -> None:
    tables["risk"] = []
    tables["budget"] = []
    assert "there is no regret" in identity_text(tables, RUN, "model")


def test_a_missing_table_leaves_its_part_out(tables: dict[str, list[Row]]) -> None:
    for name in ("nearest", "strategies", "smoothing"):
        del tables[name]
    text = identity_text(tables, RUN, "model")
    assert "NEAREST" not in text
    assert "MIXTURE" not in text
    assert "PSEUDO-COUNT" not in text


def test_rows_hold_every_number_of_the_screen(tables: dict[str, list[Row]]) -> None:
    rows = identity_rows(tables, "model")
    assert all(tuple(row) == COLUMNS for row in rows)
    found = {(row["quantity"], row["other"], row["visits"], row["context_length"]): row["estimate"] for row in rows}
    assert found["total_variation", "add-one", None, "mean"] == 0.0711
    assert found["nearest_rule", "softmax:2.13", None, "mean"] == 0.0262
    assert found["next_rule_is_farther_by", "add-one", None, "mean"] == 0.045
    assert found["mixture_weight", "unigram", None, "mean"] == 0.19
    assert found["pseudo_count", None, 40, None] == 5.11
    assert found["budget_shape", None, None, 50] == -0.001
    assert found["regret", None, 0, None] == 0.25
    assert ("total_variation", "softmax:2.13", None, 3) not in found
