"""The coverage study: its machinery tells good intervals from bad, its truths are true, and every kind covers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import t as student

from analysis.coverage import BAND, COLUMNS, Tally, added, answer, by_kind, coverage_table, designs, outside, read
from analysis.coverage_base import AT_BOUNDARY, AT_OPTIMUM, CERTAIN, HELD_OUT, LIMITS, SKEWED, Design, Key, Seen
from analysis.coverage_rules import FAMILY_RULES, Run, family_rule, noisy
from analysis.coverage_truth import Nested, Prefixes, Runs, Spread, predictions_of
from analysis.questions import write_frame
from icl_estimators import check_estimator, get
from icl_estimators.divergences import kl_divergence
from icl_estimators.experiments.exact import exact_risk

ROOT = Path(__file__).parents[2]
KINDS = {
    "mean", "share (Wilson)", "mean given that KL is finite", "difference", "simultaneous band, mean",
    "signed bias", "attention", "bias and variance", "pseudo-count overall", "pseudo-count by visits",
    "pseudo-count by context length", "share explained by a pseudo-count", "parameter of a family", AT_BOUNDARY,
    HELD_OUT, "intervention", "training variance", "recipe: risk", "mean over runs: risk",
    "mean over runs: bias and variance", "recipe: pseudo-count", "recipe: difference", "recipe: bias and variance",
    "pairs, all at once", CERTAIN, AT_OPTIMUM, SKEWED,
}  # fmt: skip


class Normal(Design):
    """Means of ten normal draws: the t interval, and one a third too narrow."""

    name, sequences = "normal", 1

    def draw(self, seed: int) -> list[Seen]:
        values = np.random.default_rng(seed).normal(3.0, 2.0, 10)
        mean, margin = values.mean(), student.ppf(0.975, 9) * values.std(ddof=1) / np.sqrt(10)
        row = "mean", "3", "all"
        return [
            Seen(("t", *row), mean - margin, mean + margin, 3.0),
            Seen(("too narrow", *row), mean - margin / 1.5, mean + margin / 1.5, 3.0),
            Seen(("much too wide", *row), mean - 4 * margin, mean + 4 * margin, 3.0),
            Seen(("of no width", *row), 3.0, 3.0, 3.0),
            Seen(("without truth", *row), 0.0, 1.0, np.nan),
            Seen(("sometimes undefined", *row), mean - margin if seed % 2 else np.nan, mean + margin, 3.0),
        ]


@pytest.fixture(scope="module")
def normal() -> pd.DataFrame:
    return coverage_table([Normal()], 600)


@pytest.fixture(scope="module")
def prefixes() -> Prefixes:
    return Prefixes(5)


def test_a_good_interval_passes_and_bad_ones_are_found_out(normal: pd.DataFrame) -> None:
    good = normal.set_index("kind").loc["t"]
    assert abs(good["coverage"] - 0.95) < 3 * good["mc_se"]
    assert set(outside(normal)["kind"]) == {"too narrow", "much too wide"}


def test_what_says_nothing_is_not_counted(normal: pd.DataFrame) -> None:
    assert tuple(normal.columns) == COLUMNS
    assert set(normal["kind"]) == {"t", "too narrow", "much too wide", "sometimes undefined"}
    halves = normal.set_index("kind").loc["sometimes undefined"]
    assert (halves["studies"], halves["undefined"]) == (300, 300)
    np.testing.assert_allclose(normal["coverage"] + normal["below"] + normal["above"], 1.0)


@pytest.mark.slow
def test_processes_change_no_number(normal: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(coverage_table([Normal()], 600, jobs=2), normal)


@pytest.mark.slow
def test_more_studies_are_added_to_a_table(normal: pd.DataFrame) -> None:
    parts = coverage_table([Normal()], 200), coverage_table([Normal()], 400, first=200)
    pd.testing.assert_frame_equal(added(*parts), normal, rtol=1e-12)


def test_a_table_is_kept_while_studies_are_drawn() -> None:
    kept: list[pd.DataFrame] = []
    whole = coverage_table([Normal(), Normal()], 6, keep=lambda table, done: kept.append(table))
    assert [table["studies"].max() for table in kept] == [2, 4, 6]
    pd.testing.assert_frame_equal(kept[-1], whole)


def test_a_tally_knows_on_which_side_the_truth_was_missed() -> None:
    tally = Tally()
    for low, high in ((0.0, 1.0), (2.0, 3.0), (-np.inf, 1.4), (1.6, np.inf), (1.5, 1.5), (np.nan, 2.0)):
        tally.add(low, high, 1.5)
    assert (tally.held, tally.below, tally.above, tally.undefined, tally.exact) == (1, 2, 2, 1, 1)


def test_conditional_parts_add_up_to_the_exact_risk(prefixes: Prefixes) -> None:
    rule = get("krichevsky-trofimov")
    nested = Nested.of(predictions_of(rule, prefixes), prefixes, 4_000).values
    exact = exact_risk(rule, 5).metrics
    np.testing.assert_allclose(nested["bias_squared"] + nested["variance"], exact["squared_error"], rtol=0.03)
    np.testing.assert_allclose(nested["kl_bias_nats"] + nested["kl_variance_nats"], exact["kl_nats"], rtol=0.03)


def test_a_zero_makes_the_parts_of_kl_undefined_alone(prefixes: Prefixes) -> None:
    nested = Nested.of(predictions_of(get("bigram"), prefixes), prefixes, 100).values
    assert np.isnan(nested["kl_bias_nats"]).all()
    assert np.isfinite(nested["variance"]).all()


@pytest.mark.parametrize(
    "at",
    [
        {"add-constant": (1.0,), "affine": (1.0, 0.0), "bonus": (1.0, 0.0), "unigram-mixture": (1.0, 0.0)},
        {"affine": (0.5, 0.3)},
        {"recency": (0.8, 0.7)},
        {"asymmetric": (0.5, 1.0, 1.5)},
    ],
    ids=lambda at: next(iter(at)),
)
def test_noise_leaves_the_parameters_where_they_are(prefixes: Prefixes, at: dict[str, tuple[float, ...]]) -> None:
    rule = noisy("noisy", at, prefixes)
    check_estimator(rule, 3)
    predictions = predictions_of(rule, prefixes)
    for family, values in at.items():
        least = prefixes.rule_kl(predictions, family_rule(family, values, prefixes))
        assert least > 1e-4, "there is noise"

        def loss(x: np.ndarray, family: str = family) -> float:
            if (x < 0).any():
                return np.inf
            return prefixes.rule_kl(predictions, family_rule(family, list(x), prefixes))

        found = minimize(loss, np.array(values) + 0.1, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-13})
        np.testing.assert_allclose(found.x, values, atol=2e-4)


def test_population_pseudo_counts_of_known_rules(prefixes: Prefixes) -> None:
    for by, value in (("overall", 0), ("visits", 2), ("context-length", 4)):
        alpha, explained = prefixes.pseudo_count(predictions_of(get("krichevsky-trofimov"), prefixes), by, value)
        assert alpha == pytest.approx(0.5, rel=1e-5)
        assert explained == pytest.approx(1.0)
    assert prefixes.temperature(family_rule("temperature", (2.5,), prefixes)) == pytest.approx(2.5, rel=1e-5)


def test_a_familys_rule_is_the_packages(prefixes: Prefixes) -> None:
    rule = predictions_of(get("add-constant:0.7"), prefixes)
    for mine, theirs in zip(family_rule("add-constant", (0.7,), prefixes), rule, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-14)
    assert set(FAMILY_RULES) >= {"affine", "bonus", "unigram-mixture", "recency", "asymmetric", "temperature"}


def test_a_recipes_parts_add_up_and_interpolate(prefixes: Prefixes) -> None:
    nodes = 2.0 * np.cos(np.pi * (np.arange(10) + 0.5) / 10)
    runs = Runs([predictions_of(Run("toy:0", float(x)), prefixes) for x in nodes], nodes, prefixes, 2_000)
    theta, share = Spread(0.5).nodes
    assert share @ theta**2 == pytest.approx(0.25)
    split = runs.split(theta, share)
    mse = share @ np.array([exact_risk(Run("toy:0", float(x)), 5).metrics["squared_error"] for x in theta])
    np.testing.assert_allclose(sum(split.values()), mse, rtol=0.05)
    assert (split["training_variance"] > 0)[1:].all()
    alone = Nested.of(predictions_of(Run("toy:0", 0.3), prefixes), prefixes, 2_000, seed=72).values
    there = runs.split(np.array([0.3]), np.ones(1))
    np.testing.assert_allclose(there["variance"], alone["variance"], rtol=1e-2, atol=1e-12)
    np.testing.assert_allclose(there["bias_squared"], alone["bias_squared"], rtol=1e-2)
    np.testing.assert_allclose(there["training_variance"], 0.0, atol=1e-12)


def test_regret_over_prefixes_is_the_mean_over_lengths(prefixes: Prefixes) -> None:
    rule = get("unigram")
    exact = exact_risk(rule, 5).metrics["regret_nats"].mean()
    assert prefixes.regret(predictions_of(rule, prefixes)) == pytest.approx(exact)
    one = prefixes.groups[3]
    q = get("add-one").predict_proba(one.tokens)[:, -1]
    assert kl_divergence(q, q).max() == 0.0


def test_the_answer_says_what_the_table_says(normal: pd.DataFrame) -> None:
    found = answer(normal)
    kinds = by_kind(normal)
    assert found.tables["coverage"] is normal
    assert "too narrow; much too wide" in found.paragraphs[0]
    (grid,) = found.grids
    assert [row[0] for row in grid.rows] == list(kinds["kind"])
    assert grid.rows[0][-2] == f"{kinds['mean'].iloc[0]:.3f}"
    (drawing,) = found.drawings
    labels = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
    assert labels == list(kinds["kind"])


def test_a_table_is_read_as_it_was_written(normal: pd.DataFrame, tmp_path: Path) -> None:
    write_frame(normal, tmp_path / "coverage.csv")
    pd.testing.assert_frame_equal(read(tmp_path / "coverage.csv"), normal)


def test_the_committed_table_is_a_coverage_table() -> None:
    table = read(ROOT / "data" / "study" / "coverage.csv")
    assert tuple(table.columns) == COLUMNS
    assert set(table["kind"]) >= KINDS
    np.testing.assert_allclose(table["coverage"] + table["below"] + table["above"], 1.0)
    np.testing.assert_allclose(table["mc_se"] ** 2, table["nominal"] * (1 - table["nominal"]) / table["studies"])
    assert ((table["truth"] < np.inf) & (table["mean_width"] > 0)).all()


def test_the_committed_table_is_within_the_band_or_a_named_limit() -> None:
    table = read(ROOT / "data" / "study" / "coverage.csv")
    odd = outside(table)
    assert odd.empty, odd[["kind", "design", "estimator", "metric", "at", "coverage"]].to_string()
    assert all(LIMITS.values()), "each limit has its reason"


@pytest.fixture(scope="module")
def few() -> pd.DataFrame:
    return coverage_table(designs(500), 1)


@pytest.mark.slow
def test_every_kind_of_row_is_tried(few: pd.DataFrame) -> None:
    assert set(few["kind"]) >= KINDS
    at_boundary = few[few["kind"] == AT_BOUNDARY]
    assert set(at_boundary["nominal"]) == {0.975}


@pytest.mark.slow
def test_the_truth_is_near_the_estimates(few: pd.DataFrame) -> None:
    """Of one small study of each design most intervals must hold it, whatever the kind."""
    share = few.groupby("kind")["coverage"].agg(["mean", "size"])
    large = share[share["size"] >= 30]
    assert len(large) >= 8
    assert (large["mean"] > 0.6).all(), large


def test_known_limits_are_shown_but_not_held_to_the_level(normal: pd.DataFrame) -> None:
    assert len(outside(normal)) == 2
    renamed = normal.replace({"kind": {"too narrow": AT_OPTIMUM, "much too wide": CERTAIN}})
    assert outside(renamed).empty
    assert LIMITS[AT_OPTIMUM] in answer(renamed).paragraphs[1]


def key(kind: str) -> Key:
    return kind, "", "", ""


def test_nominal_levels() -> None:
    assert Normal().nominal(key("t")) == 0.95
    assert Normal().nominal(key(AT_BOUNDARY)) == 0.975


@pytest.mark.slow
def test_every_kind_of_interval_covers() -> None:
    table = coverage_table(designs(), jobs=2)
    odd = outside(table)
    assert odd.empty, odd[["kind", "design", "estimator", "metric", "at", "coverage"]].to_string()
    kinds = by_kind(table)
    error = 3.0 * kinds["mc_se"]  # rows of a kind are dependent, at worst all alike
    held = (kinds["mean"] > BAND[0] - error) & (kinds["mean"] < BAND[1] + error)
    assert (held | kinds["kind"].isin(list(LIMITS))).all(), kinds.to_string()
    least = table.groupby("kind")["coverage"].min()
    assert least[CERTAIN] == 1.0
    assert 0.6 < least[AT_OPTIMUM] < BAND[0]
    assert 0.85 < least[SKEWED] < 0.95
