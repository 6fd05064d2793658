"""The figures of the answer: forest plot, budget, distances, maps, simplex, entropy, training."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from icl_estimators.reporting.figures.budget import PART_NAMES, budget_figure, budget_rows
from icl_estimators.reporting.figures.entropy import entropy_figure, entropy_names
from icl_estimators.reporting.figures.forest import distances_to, forest_figure, forest_names
from icl_estimators.reporting.figures.likeness import distance_matrix, likeness_figure
from icl_estimators.reporting.figures.maps import map_figure, simplex_figure
from icl_estimators.reporting.figures.signed_bias import signed_bias_names
from icl_estimators.reporting.figures.training import training_figure
from icl_estimators.reporting.results import Results

MODEL = "transformer"


def test_the_forest_has_the_model_first_and_then_the_most_like_it(results: Results) -> None:
    names = forest_names(results)
    assert names[0] == MODEL
    distances = [float(distances_to(results, MODEL)[name]["estimate"]) for name in names[1:]]
    assert distances == sorted(distances)
    assert set(names) == set(results.curves)


def test_the_forest_marks_what_has_no_place_on_a_log_axis(results: Results) -> None:
    left, right = forest_figure(results).axes
    said = [text.get_text() for text in right.texts]
    assert said.count("∞") == 2  # the bigram and the induction head
    assert "0, by definition" in said  # the Bayes rule
    assert [text.get_text() for text in left.texts] == ["0, by definition"]  # the model itself
    thick = [line.get_markersize() for line in right.get_lines() if line.get_marker() == "o"]
    assert sorted(thick)[-1] > sorted(thick)[-2]
    drawn = {float(line.get_xdata()[0]) for line in right.get_lines() if line.get_marker() == "o"}
    assert float(results.at("risk", MODEL, "mean", metric="regret_nats")["estimate"]) in drawn


def test_without_a_model_the_forest_is_about_regret_alone(results: Results) -> None:
    options = {**results.options, "weights": {}}
    without = Results(results.tables, {**results.run, "options": options, "subjects": []})
    assert len(forest_figure(without).axes) == 1


def test_the_bars_of_the_budget_sum_to_the_regret(results: Results) -> None:
    rows = budget_rows(results, MODEL)
    axes = budget_figure(results, MODEL).axes[0]
    for place, (n, parts) in enumerate(rows.items()):
        height = sum(bar.get_height() for bar in axes.patches if abs(bar.get_x() + 0.4 - place) < 0.01)
        assert height == pytest.approx(float(parts["regret"]["estimate"]), abs=1e-5), n
    assert axes.get_ylabel() == "regret, nats"
    assert [label.get_text() for label in axes.get_xticklabels()] == [str(n) for n in rows]


def test_a_negative_part_lies_below_0_and_an_unknown_one_is_hatched(results: Results) -> None:
    frame = results.tables["budget"].copy()
    own = (frame["estimator"] == MODEL) & (frame["context_length"] == 5)
    frame.loc[own & (frame["part"] == "shape"), "estimate"] = -0.002
    last = (frame["estimator"] == MODEL) & (frame["context_length"] == 9)
    frame.loc[last & (frame["part"] == "other_rows"), "estimate"] = math.nan
    axes = budget_figure(Results({**results.tables, "budget": frame}, results.run), MODEL).axes[0]
    assert min(bar.get_height() for bar in axes.patches) == pytest.approx(-0.002)
    assert any(bar.get_hatch() for bar in axes.patches)
    legend = axes.get_legend()
    assert legend is not None
    labels = {text.get_text().replace("\n", " ") for text in legend.get_texts()}
    assert "not divided further" in labels
    assert labels <= {*PART_NAMES.values(), "not divided further"}


def test_the_matrix_of_distances_is_the_table(results: Results) -> None:
    names, matrix = distance_matrix(results)
    assert sorted(names) == sorted(results.curves)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diag(matrix), 0.0)
    for i, name in enumerate(names):
        for j, other in enumerate(names):
            if i != j:
                assert matrix[i, j] == float(distances_to(results, name)[other]["estimate"])
    cells = {text.get_text() for text in likeness_figure(results).axes[0].texts}
    assert f"{100 * matrix[0, 1]:.1f}" in cells


def test_the_map_has_the_pseudo_counts_and_a_line_where_they_cross_1(results: Results) -> None:
    rows = [
        {"estimator": MODEL, "context_length": n, "visits": v, "estimate": a, "ci_low": a, "ci_high": a}
        for n, v, a in ((5, 1, 0.25), (5, 2, 0.5), (10, 1, 0.3), (10, 2, 2.0), (20, 2, math.nan))
    ]
    frame = pd.DataFrame(rows)
    axes = map_figure(Results({**results.tables, "pseudo_count_map": frame}, results.run), MODEL).axes[0]
    assert {text.get_text() for text in axes.texts} == {"0.25", "0.50", "0.30", "2.0"}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5", "10"]  # n = 20 has too few prefixes
    assert len(axes.get_lines()) == 2  # between 0.5 and 2.0, and between 0.3 and 2.0


def test_the_simplex_joins_three_points_for_every_vector_of_counts(results: Results) -> None:
    figure = simplex_figure(results, MODEL)
    vectors = {1: 3, 4: 15, 10: 66}
    for axes, count in zip(figure.axes, vectors.values(), strict=True):
        dots = {str(line.get_label()): line for line in axes.get_lines() if line.get_marker() == "o"}
        assert set(dots) == {"frequency", "add-one", "model"}
        sizes = {len(np.asarray(line.get_xdata())) for line in dots.values()}
        assert len(sizes) == 1
        assert sizes.pop() <= count
    one = {str(line.get_label()): line for line in figure.axes[0].get_lines() if line.get_marker() == "o"}
    top = np.asarray(one["frequency"].get_ydata()).max()
    assert top == pytest.approx(math.sqrt(3) / 2)  # one visit, and the current token followed itself


def test_regret_by_entropy_leaves_out_bayes_and_what_is_infinite(results: Results) -> None:
    names = entropy_names(results)
    assert MODEL in names
    assert not {"add-one", "bigram", "construction"} & set(names)
    axes = entropy_figure(results).axes[0]
    frame = results.tables["regret_by_entropy"]
    rows = frame[(frame["estimator"] == MODEL) & (frame["n_chains"] >= 20)].sort_values("entropy_mean")
    line = next(line for line in axes.get_lines() if line.get_label() == MODEL)
    np.testing.assert_array_equal(line.get_ydata(), rows["estimate"])
    assert axes.get_xlim()[1] == pytest.approx(math.log(3))


def test_training_is_drawn_as_it_was_measured(results: Results) -> None:
    axes = training_figure(results).axes[0]
    frame = results.tables["training"]
    rows = frame[(frame["quantity"] == "regret_nats") & (frame["step"] > 0)]
    line = next(line for line in axes.get_lines() if line.get_label() == MODEL)
    np.testing.assert_array_equal(line.get_xdata(), rows["step"])
    np.testing.assert_array_equal(line.get_ydata(), rows["value"])


def test_signed_bias_shows_the_model_bayes_and_few_others(results: Results) -> None:
    names = signed_bias_names(results)
    assert {MODEL, "add-one"} <= set(names)
    assert len(names) <= 5
