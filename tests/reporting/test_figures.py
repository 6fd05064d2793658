from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from icl_estimators.experiments.compare import Comparison, compare
from icl_estimators.reporting.figures import kl_figure, save_figure
from icl_estimators.reporting.style import line_looks

NAMES = ["construction", "construction-softmax", "bigram", "add-one", "uniform"]


@pytest.fixture(scope="module")
def result() -> Comparison:
    return compare(NAMES, chains=120, sequences_per_chain=2, length=30, decomposition_chains=0)


@pytest.fixture(scope="module")
def axes(result: Comparison) -> Axes:
    return kl_figure(result.risk, result.run).axes[0]


def of(result: Comparison, name: str, metric: str) -> Any:
    risk = result.risk
    return risk[(risk.estimator == name) & (risk.metric == metric) & (risk.context_length != "mean")]


def test_both_axes_are_logarithmic_and_named(axes: Axes) -> None:
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "context length n (tokens read)"
    assert axes.get_ylabel() == "KL(truth ‖ estimate), nats"
    assert axes.get_xlim() == (1.0, 30.0)
    assert axes.get_title(loc="left") == "Distance of the predicted next-token law from the true one"


def test_lines_are_the_tables_rows(result: Comparison, axes: Axes) -> None:
    looks = line_looks(NAMES)
    lines = {to_hex(line.get_color()): line for line in axes.get_lines()}
    assert len(lines) == len(NAMES)
    for name in NAMES:
        line = lines[looks[name][0].lower()]
        metric = "kl_finite_nats" if name in ("bigram", "construction") else "kl_nats"
        rows = of(result, name, metric)
        rows = rows[np.isfinite(rows.estimate)]
        np.testing.assert_array_equal(line.get_xdata(), rows.context_length.astype(int))
        np.testing.assert_array_equal(line.get_ydata(), rows.estimate)
        assert (line.get_linestyle() == "--") == (metric == "kl_finite_nats")


def test_intervals_are_shaded(result: Comparison, axes: Axes) -> None:
    assert len(axes.collections) == len(NAMES)
    vertices = axes.collections[NAMES.index("add-one")].get_paths()[0].vertices
    rows = of(result, "add-one", "kl_nats")
    for column in ("ci_low", "ci_high"):
        assert {round(value, 12) for value in rows[column]} <= {round(y, 12) for y in np.asarray(vertices)[:, 1]}


def test_lines_are_labelled_at_their_ends_and_say_what_is_conditional(axes: Axes) -> None:
    expected = {"construction (where finite)", "construction-softmax", "bigram (where finite)", "add-one", "uniform"}
    assert {text.get_text() for text in axes.texts} == expected
    figure = axes.figure
    assert isinstance(figure, Figure)
    assert figure.get_supxlabel() == (
        "120 fresh chains × 2 sequences, K = 3, α = 1; shaded: 95 % intervals, clustered on chains"
    )


def test_the_same_figure_is_the_same_bytes(result: Comparison, tmp_path: Path) -> None:
    first = save_figure(kl_figure(result.risk, result.run), tmp_path / "a" / "kl")
    second = save_figure(kl_figure(result.risk, result.run), tmp_path / "b" / "kl")
    assert [path.name for path in first] == ["kl.svg", "kl.png"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    svg = first[0].read_text(encoding="utf-8")
    assert "<dc:date>" not in svg
    assert "<svg" in svg
    assert first[1].read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["kl.png", "kl.svg"]


def test_a_stem_with_a_dot_keeps_it(result: Comparison, tmp_path: Path) -> None:
    paths = save_figure(Figure(), tmp_path / "kl.v2")
    assert [path.name for path in paths] == ["kl.v2.svg", "kl.v2.png"]


def test_one_context_length_is_a_point() -> None:
    result = compare(["construction", "add-one"], chains=20, length=1, decomposition_chains=0)
    axes = kl_figure(result.risk, result.run).axes[0]
    (line,) = axes.get_lines()  # the construction's KL is infinite in every sequence
    assert line.get_marker() == "."
    assert axes.get_xlim() == (1.0, 2.0)


def test_of_training_runs_the_mean_is_drawn() -> None:
    class Run:
        n_states = 3
        training_run = True

        def __init__(self, name: str, weight: float) -> None:
            self.name, self.weight = name, weight

        def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
            out = np.full((*tokens.shape, 3), (1 - self.weight) / 3)
            out[..., 0] += self.weight
            return out

    runs = [Run("transformer:a", 0.1), Run("transformer:b", 0.3)]
    result = compare([*runs, "add-one"], chains=40, length=4, decomposition_chains=0)
    axes = kl_figure(result.risk, result.run).axes[0]
    assert {text.get_text() for text in axes.texts} == {"transformer", "add-one"}


def test_no_global_state_is_touched(result: Comparison) -> None:
    before = dict(mpl.rcParams)
    kl_figure(result.risk, result.run)
    assert dict(mpl.rcParams) == before
