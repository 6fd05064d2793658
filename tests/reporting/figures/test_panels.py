"""Small multiples: bias and variance, signed bias."""

from __future__ import annotations

import numpy as np

from icl_estimators.reporting.figures.decomposition import decomposition_figure, decomposition_names
from icl_estimators.reporting.figures.signed_bias import signed_bias_figure
from icl_estimators.reporting.results import Results


def test_decomposition_has_a_panel_an_estimator_on_shared_log_axes(results: Results) -> None:
    figure = decomposition_figure(results)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    titles = [" ".join(axes.get_title(loc="left").split()) for axes in panels]
    assert titles == [results.display(name) for name in decomposition_names(results)]
    assert len({axes.get_ylim() for axes in panels}) == 1
    assert {(axes.get_xscale(), axes.get_yscale()) for axes in panels} == {("log", "log")}
    assert figure.get_supxlabel() == "context length n (tokens read)"
    assert figure.get_supylabel() == "expected squared error, summed over next tokens"


def test_decomposition_draws_what_is_above_0(results: Results) -> None:
    panel = decomposition_figure(results).axes[0]
    drawn = {str(line.get_label()): line.get_data() for line in panel.get_lines()}
    for metric, label in (("mse", "MSE"), ("bias_squared", "bias²"), ("variance", "variance")):
        rows = results.curve("decomposition", "transformer", metric=metric)
        rows = rows[rows["estimate"] > 1e-12]
        np.testing.assert_array_equal(drawn[label][0], rows["n"])
        np.testing.assert_array_equal(drawn[label][1], rows["estimate"])


def test_signed_bias_is_drawn_at_the_middle_of_each_bin(results: Results) -> None:
    panels = signed_bias_figure(results).axes
    assert [axes.get_title(loc="left") for axes in panels] == ["n = 3", "n = 12", "n = 24"]
    assert panels[-1].get_xlabel() == "true probability P of the next token"
    assert signed_bias_figure(results).get_supylabel() == "mean of p̂ − P"
    line = next(line for line in panels[2].get_lines() if line.get_label() == "add-one (Bayes)")
    frame = results.tables["signed_bias"]
    rows = frame[(frame["estimator"] == "add-one") & (frame["context_length"] == "24")]
    rows = rows[rows["ci_low"].notna()]
    np.testing.assert_allclose(line.get_xdata(), (rows["bin_low"] + rows["bin_high"]) / 2)
    np.testing.assert_array_equal(line.get_ydata(), rows["estimate"])
