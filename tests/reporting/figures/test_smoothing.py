from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icl_estimators.api import Smoothing, effective_smoothing
from icl_estimators.reporting.figures.saving import save_figure
from icl_estimators.reporting.figures.smoothing import mechanism_figure, prediction_figure, pseudo_count_figure
from icl_estimators.resources import shipped_checkpoint

NAMES = ["construction-softmax:2.2:direct_path=false", "bigram", "unigram"]
trained = pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no trained model ships for three states")


@pytest.fixture(scope="module")
def found() -> Smoothing:
    return effective_smoothing(NAMES, families=["temperature"], chains=120, sequences_per_chain=2, length=24)


def words(figure: Figure) -> str:
    return " ".join(figure.get_supxlabel().split())


def line(axes: Axes, colour: str):
    return next(line for line in axes.get_lines() if line.get_color() == colour)


def test_pseudo_counts_are_lines_on_logarithmic_axes_beside_the_add_one_line(found: Smoothing) -> None:
    figure = pseudo_count_figure(found.smoothing, found.run)
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel().startswith("visits n_v")
    assert axes.get_ylabel() == "effective pseudo-count α"
    unigram = line(axes, "#56B4E9")
    rows = found.smoothing.query("estimator == 'unigram' and by == 'visits' and parameter == 'pseudo_count'")
    rows = rows[~rows.value.isin(found.run["few_chains"]["visits"])]
    np.testing.assert_array_equal(unigram.get_xdata(), rows.value.astype(int)[: len(unigram.get_xdata())])
    np.testing.assert_array_equal(unigram.get_ydata(), rows.estimate[: len(unigram.get_ydata())])
    assert any(list(line.get_ydata()) == [1.0, 1.0] for line in axes.get_lines())
    labels = {text.get_text().replace("\n", "") for text in axes.texts}
    assert {"unigram", "add-one", NAMES[0]} <= labels
    assert "not drawn: bigram (0)" in words(figure)


def test_predictions_stand_beside_fitted_curves(found: Smoothing) -> None:
    figure = prediction_figure(found.smoothing, found.run)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == [f"n_v = {v}" for v in (1, 2, 5, 10, 20)]
    assert f"What {NAMES[0]} predicts" in words(figure)
    add_one, fitted, softmax = (shown[2].get_lines()[i] for i in range(3))
    assert add_one.get_ydata()[0] == pytest.approx(1 / 8)
    rows = found.smoothing.query("by == 'visits' and value == 5")
    alpha = rows[(rows.estimator == NAMES[0]) & (rows.parameter == "pseudo_count")].estimate.item()
    assert fitted.get_ydata()[0] == pytest.approx(alpha / (5 + 3 * alpha))
    assert softmax.get_ydata()[-1] == pytest.approx(np.exp(2.2) / (np.exp(2.2) + 2))
    other = prediction_figure(found.smoothing, found.run, "unigram")
    assert "What unigram predicts" in words(other)


@pytest.mark.slow
@trained
def test_mechanism_has_a_line_for_each_intervention(tmp_path: Path) -> None:
    found = effective_smoothing(
        ["transformer"], by=["visits"], families=[], chains=100, sequences_per_chain=1, length=16
    )
    figure = mechanism_figure(found.interventions, found.run)
    upper, lower = figure.axes
    names = found.interventions.intervention.nunique()
    assert len(upper.get_lines()) == names + 1  # and the add-one line
    assert len(lower.get_lines()) == names - 1  # the copied mass has an infinite regret
    assert {len(axes.texts) for axes in (upper, lower)} == {names + 1, names - 1}
    assert "transformer with parts of its mechanism replaced" in words(figure)
    assert [path.suffix for path in save_figure(figure, tmp_path / "mechanism")] == [".svg", ".pdf"]


@trained
def test_without_a_posterior_there_is_no_regret_to_draw() -> None:
    found = effective_smoothing(
        ["transformer"], by=["visits"], families=[], chains=60, sequences_per_chain=1, length=8, start="stationary"
    )
    upper, lower = mechanism_figure(found.interventions, found.run).axes
    assert len(upper.get_lines()) > 1
    assert not lower.get_lines()


def test_in_a_report_the_caption_is_the_reports(found: Smoothing) -> None:
    figure = pseudo_count_figure(found.smoothing, found.run, caption=False)
    assert not figure.get_supxlabel()
    figure = prediction_figure(found.smoothing, found.run, caption=False)
    assert figure.get_supxlabel() == "frequency n_vw / n_v"


def test_nothing_to_draw_is_said(found: Smoothing) -> None:
    only = found.smoothing[found.smoothing.estimator == "bigram"]
    figure = pseudo_count_figure(only, found.run)
    assert "not drawn: bigram (0)" in words(figure)
