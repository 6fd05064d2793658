from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import t as student

from icl_estimators import compare
from icl_estimators.estimators import get
from icl_estimators.experiments.likeness import LikenessDesign, likeness_block, nearest_table
from icl_estimators.experiments.study import Study
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import sample_chains
from strange_rules import Leaning

trained = pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no trained model ships for three states")
MODEL = Leaning("leaning", 0.2, None)
SMALL: dict[str, Any] = {"chains": 60, "sequences_per_chain": 2, "length": 8, "decomposition_chains": 0}


class Imitation:
    """An estimator of one's own that predicts like a rule."""

    n_states = 3

    def __init__(self, spec: str, name: str) -> None:
        self.name = name
        self._rule = get(spec)

    def predict_proba(self, tokens: Any) -> np.ndarray:
        return self._rule.predict_proba(tokens)


def mean_of(frame: pd.DataFrame, measure: str, one: str, other: str) -> pd.Series:
    rows = frame[(frame.measure == measure) & (frame.context_length == "mean")]
    return rows[(rows.estimator == one) & (rows.other == other)].squeeze(axis=0)


def between(frame: pd.DataFrame, one: str, other: str) -> pd.Series:
    found = mean_of(frame, "total_variation", one, other)
    return found if len(found) else mean_of(frame, "total_variation", other, one)


def predictions(spec: str) -> np.ndarray:
    tokens = sample_chains(range(60), sequences_per_chain=2, length=8, seed=0, purpose="risk").inputs
    return get(spec).predict_proba(tokens)


@pytest.fixture(scope="module")
def likeness() -> pd.DataFrame:
    frame: pd.DataFrame = compare(["unigram", "add-constant:0.3", "bigram", "uniform", "add-one"], **SMALL).likeness
    return frame


def test_distances_are_those_of_a_plain_computation(likeness: pd.DataFrame) -> None:
    p, r = predictions("add-constant:0.3"), predictions("unigram")
    half = 0.5 * np.abs(p - r).sum(axis=-1)
    row = between(likeness, "unigram", "add-constant:0.3")
    by_chain = half.reshape(60, 2, 8).mean(axis=(1, 2))
    se = by_chain.std(ddof=1) / np.sqrt(60)
    assert row.estimate == pytest.approx(half.mean(), rel=1e-12)
    assert row.se == pytest.approx(se, rel=1e-9)
    assert row.ci_high - row.estimate == pytest.approx(student.ppf(0.975, 59) * se, rel=1e-9)
    kl = rel_entr(p, r).sum(axis=-1)
    assert mean_of(likeness, "kl_nats", "add-constant:0.3", "unigram").estimate == pytest.approx(kl.mean(), rel=1e-10)
    share = 1.0 - kl.sum() / rel_entr(p, 1.0 / 3.0).sum()
    explained = mean_of(likeness, "explained", "add-constant:0.3", "unigram")
    assert explained.estimate == pytest.approx(share, rel=1e-9)
    at_3 = likeness[(likeness.context_length == 3) & (likeness.measure == "kl_nats")]
    found = at_3[(at_3.estimator == "add-constant:0.3") & (at_3.other == "unigram")]
    assert found.estimate.item() == pytest.approx(kl[:, 2].mean(), rel=1e-10)


def test_an_impossible_token_makes_kl_infinite_in_one_direction_only(likeness: pd.DataFrame) -> None:
    away = mean_of(likeness, "kl_nats", "unigram", "bigram")
    assert np.isinf(away.estimate)
    assert np.isnan(away.ci_low)
    assert "infinite in" in away.note
    p, r = predictions("bigram"), predictions("unigram")
    back = mean_of(likeness, "kl_nats", "bigram", "unigram")
    assert back.estimate == pytest.approx(rel_entr(p, r).sum(axis=-1).mean(), rel=1e-10)
    explained = mean_of(likeness, "explained", "unigram", "bigram")
    assert np.isnan(explained.estimate)
    assert "infinite in" in explained.note


def test_the_uniform_rule_explains_nothing_and_is_not_explained(likeness: pd.DataFrame) -> None:
    assert mean_of(likeness, "explained", "unigram", "uniform").estimate == 0.0
    undefined = mean_of(likeness, "explained", "uniform", "unigram")
    assert np.isnan(undefined.estimate)
    assert undefined.note.startswith("0/0")


def test_every_pair_has_one_total_variation_and_two_divergences(likeness: pd.DataFrame) -> None:
    pairs = likeness[likeness.context_length == "mean"].groupby("measure").size()
    assert pairs.to_dict() == {"total_variation": 10, "kl_nats": 20, "explained": 20}


def test_total_variation_obeys_the_triangle_inequality(likeness: pd.DataFrame) -> None:
    names = ["unigram", "add-constant:0.3", "bigram", "uniform", "add-one"]
    for a in names:
        for b in names:
            for c in names:
                if len({a, b, c}) == 3:
                    direct = between(likeness, a, b).estimate
                    assert direct <= between(likeness, a, c).estimate + between(likeness, c, b).estimate + 1e-15


def test_twins_are_at_distance_0_and_explain_each_other(likeness: pd.DataFrame) -> None:
    frame = compare(["krichevsky-trofimov", "add-constant:0.5", "add-one"], **SMALL).likeness
    row = between(frame, "krichevsky-trofimov", "add-constant:0.5")
    assert (row.estimate, row.ci_low, row.ci_high) == (0.0, 0.0, 0.0)
    assert mean_of(frame, "kl_nats", "krichevsky-trofimov", "add-constant:0.5").estimate == 0.0
    assert mean_of(frame, "explained", "krichevsky-trofimov", "add-constant:0.5").estimate == 1.0


@given(st.integers(0, 2**31), st.integers(2, 5))
def test_divergences_agree_with_scipy(seed: int, states: int) -> None:
    from icl_estimators.experiments.likeness import _Distances

    rng = np.random.default_rng(seed)
    p, r = rng.dirichlet(np.full(states, 0.3), size=(2, 3, 2, 4))
    p[0, 0, 0] = np.eye(states)[0]
    found = _Distances({"p": p, "r": r}, {})
    np.testing.assert_allclose(
        found.kl("p", "r")[:, :-1], rel_entr(p, r).sum(axis=-1).mean(axis=1), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(found.total_variation("p", "r"), found.total_variation("r", "p"))


def test_jobs_do_not_change_the_tables() -> None:
    given_: dict[str, Any] = {**SMALL, "chains": 2600, "sequences_per_chain": 2, "length": 4}
    one = compare("unigram,add-one", **given_)
    two = compare("unigram,add-one", jobs=2, **given_)
    pd.testing.assert_frame_equal(one.likeness, two.likeness, check_exact=True)


def test_the_nearest_rule_is_decided_by_the_paired_difference() -> None:
    study = Study.build([MODEL, "unigram", "uniform", "add-one"], warn=print, **SMALL)
    design = LikenessDesign.of(study)
    assert design.subjects == (MODEL.name,)
    table = nearest_table(design, likeness_block(design, range(60)))
    assert table is not None
    row = dict(
        zip(
            [
                "estimator",
                "measure",
                "n",
                "rule",
                "estimate",
                "next",
                "difference",
                "se",
                "low",
                "high",
                "decided",
                "note",
            ],
            table.rows[0],
            strict=True,
        )
    )
    tokens = sample_chains(range(60), sequences_per_chain=2, length=8, seed=0, purpose="risk").inputs
    model = MODEL.predict_proba(tokens)
    by_chain = {
        rule.name: (0.5 * np.abs(model - rule.predict_proba(tokens)).sum(axis=-1)).reshape(60, 2, 8).mean(axis=(1, 2))
        for rule in design.candidates(MODEL.name)
    }
    ranked = sorted(by_chain, key=lambda name: by_chain[name].mean())
    assert row["rule"] == ranked[0]
    assert row["next"] in ranked
    apart = by_chain[str(row["next"])] - by_chain[ranked[0]]
    assert row["difference"] == pytest.approx(apart.mean(), abs=1e-12)
    assert row["se"] == pytest.approx(apart.std(ddof=1) / np.sqrt(60), rel=1e-9)
    assert row["decided"] is bool(row["low"] > 0)


def test_rules_that_differ_by_rounding_decide_nothing() -> None:
    """At n = 1 a fitted softmax is unigram but for the last digits of its γ: its KL is below 1e-12."""
    own = Imitation("unigram", "imitation of unigram")
    found = compare([own, "unigram", "add-one"], **{**SMALL, "length": 1}).nearest.set_index("measure").loc["kl_nats"]
    assert found.rule == "unigram"
    assert 0.0 <= found.difference < 1e-12
    assert found.note.startswith("identical")
    assert found.decided == False  # noqa: E712


def test_a_single_rule_is_the_nearest_without_a_next() -> None:
    """Every rule that could be fitted to a uniform estimator lies at the end of its range."""
    own = Imitation("uniform", "imitation of uniform")
    found = compare([own, "bigram"], reference="bigram", **SMALL)
    row = found.nearest.squeeze(axis=0)
    assert (row.measure, row.rule) == ("total_variation", "bigram")  # KL to it is infinite
    assert row.estimate == between(found.likeness, own.name, "bigram").estimate
    assert row.next_rule == ""
    assert pd.isna(row.decided)
    assert row.note == "no rule of another family has a finite distance"


def test_rules_alone_have_no_nearest_rule() -> None:
    found = compare("unigram,add-one", **SMALL)
    assert "nearest" not in found.tables
    assert found.run["fitted_rules"] == {}


@pytest.mark.slow
@trained
def test_the_next_rule_is_of_another_family() -> None:
    found = compare("transformer,construction-softmax:2.2:direct_path=false,add-one", **{**SMALL, "length": 20}).nearest
    assert set(found.rule.str.partition(":")[0]) != set(found.next_rule.str.partition(":")[0])
    assert not found.next_rule.str.endswith("direct_path=false").any()


@trained
@pytest.mark.slow
def test_the_shipped_model_is_where_the_prototype_found_it() -> None:
    """600 chains × 4 sequences in the prototype; both samples vary."""
    frame = compare(None, chains=2000, sequences_per_chain=2, decomposition_chains=0).likeness
    softmax = frame[frame.other.str.endswith("direct_path=false")].other.iloc[0]
    literal = frame[frame.other.str.match(r"construction-softmax:[\d.]+$")].other.iloc[0]
    for other, expected, slack in (
        (softmax, 0.0295, 0.0003),
        ("add-one", 0.0711, 0.0011),
        ("construction", 0.1105, 0.0016),
        ("bigram", 0.1132, 0.0016),
        ("unigram", 0.177, 0.004),
        (literal, 0.185, 0.004),
        ("uniform", 0.258, 0.005),
    ):
        row = between(frame, "transformer", other)
        assert abs(row.estimate - expected) < slack + 2 * row.se, other
