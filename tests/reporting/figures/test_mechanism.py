"""Attention and circuits: the weights of the table in the right cells, tokens on both axes, one scale for both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from icl_estimators.reporting.figures.attention import (
    EXAMPLE_POSITIONS,
    attention_example_figure,
    attention_names,
    mass_figure,
    state_label,
)
from icl_estimators.reporting.figures.checks import check_figure
from icl_estimators.reporting.figures.circuit import circuit_figure, circuit_names, distance_figure, twin
from icl_estimators.reporting.results import Results


def mesh(axes: Axes) -> QuadMesh:
    return next(item for item in axes.collections if isinstance(item, QuadMesh))


def tick_labels(axes: Axes) -> tuple[list[str], list[str]]:
    return [t.get_text() for t in axes.get_xticklabels()], [t.get_text() for t in axes.get_yticklabels()]


def test_whose_attention_is_drawn(results: Results) -> None:
    assert attention_names(results, "attention_example") == ["transformer", "construction"]
    untrained = replace(results, run={**results.run, "options": {**results.options, "weights": {}}})
    assert attention_names(untrained, "attention_example") == ["transformer", "construction"]
    several = {**results.options, "weights": {"transformer": "", "construction": ""}}
    runs = replace(results, run={**results.run, "options": several})
    assert attention_names(runs, "attention_example") == ["transformer"]


@pytest.mark.parametrize("name", ["transformer", "construction"])
def test_attention_has_the_tokens_on_both_axes(results: Results, name: str) -> None:
    figure = attention_example_figure(results, name)
    frame = results.tables["attention_example"]
    for axes, layer in zip(figure.axes[:2], (1, 2), strict=True):
        own = frame[(frame["estimator"] == name) & (frame["layer"] == layer)]
        first = int(own["query"].min())
        tokens = own.drop_duplicates("query")["query_token"].head(EXAMPLE_POSITIONS)
        labels = [state_label(token, 3) for token in tokens]
        assert tick_labels(axes) == (labels, labels)
        assert axes.get_title(loc="left") == f"layer {layer}"
        weights = mesh(axes).get_array()
        for row in own.itertuples():
            query, key = int(row.query) - first, int(row.key) - first
            if query < EXAMPLE_POSITIONS:
                assert weights[query, key] == row.weight
        assert weights.mask[0, 1:].all(), "what causality masks is empty, not 0"
    assert figure.axes[0].get_ylabel() == "query: the token that attends"
    assert figure.axes[2].get_ylabel() == "share of attention"


@pytest.mark.parametrize(("state", "n_states", "label"), [("0", 3, "A"), ("25", 26, "Z"), ("5", 3, "5"), ("x", 3, "x")])
def test_states_have_letters(state: str, n_states: int, label: str) -> None:
    assert state_label(state, n_states) == label


def test_masses_stand_beside_chance(results: Results) -> None:
    upper, lower = mass_figure(results).axes
    drawn = {str(line.get_label()): line.get_data() for line in lower.get_lines()}
    assert set(drawn) == {"transformer", "construction", "chance: uniform attention"}
    for label, quantity in (("transformer", "match_mass"), ("chance: uniform attention", "match_mass_chance")):
        rows = results.curve("attention", "transformer", quantity=quantity)
        np.testing.assert_array_equal(drawn[label][1], rows["estimate"])
    previous = {str(line.get_label()): line.get_data() for line in upper.get_lines()}
    np.testing.assert_array_equal(previous["transformer"][0], np.arange(2, 25))  # undefined at n = 1


def test_the_circuits_share_basis_and_scale(results: Results) -> None:
    assert circuit_names(results) == ["transformer"]
    figure = circuit_figure(results, "transformer")
    panels = np.array(figure.axes[:8]).reshape(2, 4)
    frame = results.tables["circuit"]
    for column, matrix in enumerate(("S1", "G", "direct", "induction")):
        above, below = panels[:, column]
        assert mesh(above).get_clim() == mesh(below).get_clim()
        assert tick_labels(above) == tick_labels(below)
        for axes, name in ((above, "transformer"), (below, twin("transformer"))):
            rows = frame[(frame["estimator"] == name) & (frame["matrix"] == matrix)]
            values = mesh(axes).get_array()
            np.testing.assert_array_equal(
                values[rows["row"].astype(int), rows["column"].astype(int)], rows["value"].to_numpy()
            )
    assert mesh(panels[0, 0]).get_clim() == mesh(panels[0, 1]).get_clim(), "scores share a scale"
    assert mesh(panels[0, 2]).get_clim() == mesh(panels[0, 3]).get_clim(), "logits share a scale"
    assert tick_labels(panels[0, 1])[1] == ["A", "B", "C", "A′", "B′", "C′"]


def test_distances_are_drawn_for_both(results: Results) -> None:
    panels = distance_figure(results, "transformer").axes
    assert [axes.get_xlabel() for axes in panels] == ["relative distance (tokens back)"] * 2
    frame = results.tables["circuit"]
    rows = frame[(frame["estimator"] == "transformer") & (frame["matrix"] == "r1")]
    line = next(line for line in panels[0].get_lines() if line.get_label() == "transformer")
    np.testing.assert_array_equal(line.get_ydata(), rows["value"])


def test_every_z_is_a_dot(results: Results) -> None:
    (axes,) = check_figure(results).axes
    frame = results.tables["checks"]
    frame = frame[~frame["check"].str.startswith("bayes_bound")]  # whose z may be as large as it likes
    dots = [line for line in axes.get_lines() if len(line.get_xdata()) > 2]
    kinds = frame[frame["z"].notna()].groupby("check", sort=False)["z"]
    assert len(dots) == len(kinds)
    for line, (_, z) in zip(dots, kinds, strict=True):
        np.testing.assert_array_equal(np.asarray(line.get_xdata())[::3], np.sort(z))
    assert axes.get_xlabel() == "z: difference / its standard error"
    wild = replace(results, tables={**results.tables, "checks": frame.assign(z=frame["z"] * 10)})
    low, high = check_figure(wild).axes[0].get_xlim()
    assert low < 10 * frame["z"].min()
    assert high > 10 * frame["z"].max()
