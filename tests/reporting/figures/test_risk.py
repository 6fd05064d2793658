"""KL, regret and infinite KL: what is drawn is what the table says."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icl_estimators.reporting.figures.risk import (
    floor_applies,
    infinite_figure,
    infinite_names,
    kl_figure,
    regret_figure,
    regret_names,
)
from icl_estimators.reporting.results import Results


def lines(axes: Axes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {str(line.get_label()): tuple(map(np.asarray, line.get_data())) for line in axes.get_lines()}


SOFTMAX = "softmax of frequencies with a bonus for repeating, γ = 0.645"


def shaded(axes: Axes, index: int) -> np.ndarray:
    return axes.collections[index].get_paths()[0].vertices


def test_kl_is_log_log_with_units_and_every_name(results: Results) -> None:
    axes = kl_figure(results).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "context length n (tokens read)"
    assert axes.get_ylabel() == "KL(truth ‖ estimate), nats"
    assert axes.get_xlim() == (1, 24)
    named = {" ".join(text.get_text().split()) for text in axes.texts}
    expected = {"transformer", SOFTMAX, "add-one (Bayes)", "uniform", "softmax read-out floor"}
    assert named == expected | {"explicit induction head (where finite)", "unsmoothed bigram (where finite)"}


def test_kl_draws_the_rows_of_the_table(results: Results) -> None:
    axes = kl_figure(results).axes[0]
    drawn = lines(axes)
    rows = results.curve("risk", "transformer", metric="kl_nats")
    np.testing.assert_array_equal(drawn["transformer"][0], rows["n"])
    np.testing.assert_array_equal(drawn["transformer"][1], rows["estimate"])
    finite = results.curve("risk", "bigram", metric="kl_finite_nats")
    shown = np.isfinite(finite["estimate"])
    np.testing.assert_array_equal(drawn["unsmoothed bigram (where finite)"][1], finite["estimate"][shown])
    dashed = {line.get_label(): line.get_linestyle() for line in axes.get_lines()}
    assert dashed["unsmoothed bigram (where finite)"] == "--"
    assert dashed["transformer"] == "-"


def test_the_band_is_the_simultaneous_one(results: Results) -> None:
    axes = kl_figure(results).axes[0]
    rows = results.curve("risk", "transformer", metric="kl_nats")
    edge = shaded(axes, 0)
    assert rows["band_high"].notna().all()
    np.testing.assert_allclose(sorted(set(edge[:, 1])), sorted({*rows["band_low"], *rows["band_high"]}))


def test_the_floor_is_drawn_where_someone_has_a_softmax(results: Results) -> None:
    floor = lines(kl_figure(results).axes[0])["softmax read-out floor"][1]
    np.testing.assert_allclose(floor, 0.01663, rtol=2e-3)
    counting = results.tables["risk"].query("estimator in ['add-one', 'uniform', 'bigram']")
    without = Results({"risk": counting}, results.run)
    assert "softmax read-out floor" not in lines(kl_figure(without).axes[0])
    assert not floor_applies(without)


def test_the_floor_follows_what_run_json_says_and_no_name(results: Results) -> None:
    risk = results.tables["risk"].query("estimator == 'uniform'")
    run = {**results.run, "gamma": {}, "nearest_construction": {}}
    folded = {"nearest_construction": {"m:1": {}, "m:2": {}}}
    for name, record in (("transformer", {}), ("m:1", folded), ("b", {"gamma": {"b": 1.0}})):
        study = Results({"risk": risk.assign(estimator=name)}, {**run, **record})
        assert floor_applies(study) is bool(record)
    options = {**results.options, "recipes": {"m": ["m:1", "m:2"]}}
    assert floor_applies(Results({"risk": risk.assign(estimator="m")}, {**run, **folded, "options": options}))


def test_without_a_bayes_estimator_its_curve_is_drawn_all_the_same(results: Results) -> None:
    risk = results.tables["risk"]
    without = Results({"risk": risk[risk["estimator"] != "add-one"]}, results.run)
    whole = results.curve("risk", "add-one", metric="kl_rb_nats")
    np.testing.assert_allclose(lines(kl_figure(without).axes[0])["Bayes rule"][1], whole["estimate"], rtol=1e-9)


def test_regret_leaves_out_the_bayes_rule_and_what_is_infinite(results: Results) -> None:
    assert regret_names(results) == ["transformer", "construction-softmax", "uniform"]
    axes = regret_figure(results).axes[0]
    drawn = lines(axes)
    assert set(drawn) == {"transformer", SOFTMAX, "uniform", "softmax read-out floor"}
    rows = results.curve("risk", "uniform", metric="regret_nats")
    rows = rows[rows["estimate"] > 1e-12]  # 0 at n = 1, which has no place on a log axis
    np.testing.assert_array_equal(drawn["uniform"][0], rows["n"])
    np.testing.assert_array_equal(drawn["uniform"][1], rows["estimate"])
    assert axes.get_ylabel() == "regret: KL in excess of Bayes, nats"


def test_shares_run_from_0_to_1(results: Results) -> None:
    assert infinite_names(results) == ["construction", "bigram"]
    axes = infinite_figure(results).axes[0]
    assert axes.get_ylim() == (0, 1)
    rows = results.curve("risk", "bigram", metric="p_infinite")
    np.testing.assert_array_equal(lines(axes)["unsmoothed bigram"][1], rows["estimate"])
    edge = shaded(axes, 1)
    np.testing.assert_allclose([edge[:, 1].min(), edge[:, 1].max()], [rows["ci_low"].min(), rows["ci_high"].max()])


@pytest.mark.parametrize("make", [kl_figure, regret_figure, infinite_figure])
def test_nothing_is_cut_off(results: Results, make: object) -> None:
    assert callable(make)
    figure: Figure = make(results)
    figure.draw_without_rendering()
    whole = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert whole.x0 > -0.02
    assert whole.y0 > -0.02
    assert whole.x1 < width + 0.02
    assert whole.y1 < height + 0.02
