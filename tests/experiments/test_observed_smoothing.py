from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators import get
from icl_estimators.experiments.observed_smoothing import ObservedSmoothing, run_observed_smoothing
from icl_estimators.experiments.observed_study import ObservedStudy
from icl_estimators.pseudo_counts import Grouping
from icl_estimators.pseudo_counts.count_statistics import PseudoCountMoments, count_statistics
from icl_estimators.pseudo_counts.fit import fit_pseudo_count
from icl_estimators.sources import ObservedSequences, transition_counts
from icl_estimators.validation import InputError

RNG = np.random.default_rng(0)
DATA = ObservedSequences("x", ("a", "b", "c"), tuple(RNG.integers(0, 3, size=int(n)) for n in RNG.integers(1, 40, 70)))
ALL: tuple[Grouping, ...] = ("overall", "context-length", "visits")


def design(
    rules: str, data: ObservedSequences = DATA, *, length: int = 100, families: tuple[str, ...] = ()
) -> ObservedSmoothing:
    return ObservedSmoothing(ObservedStudy.build(data, rules, warn=print, length=length), ALL, families)


@pytest.mark.parametrize("length", [100, 7])
def test_an_add_constant_rule_is_found_everywhere(length: int) -> None:
    frame = run_observed_smoothing(design("add-constant:0.4", length=length)).smoothing
    rows = frame[(frame.parameter == "pseudo_count") & (frame.estimator == "add-constant:0.4")].dropna(
        subset="estimate"
    )
    assert set(rows["by"]) == set(ALL)
    np.testing.assert_allclose(rows.estimate.to_numpy(float), 0.4, rtol=1e-6)


def test_equal_lengths_give_the_fit_of_the_same_prefixes_as_chains() -> None:
    tokens = RNG.integers(0, 3, size=(40, 13))
    data = ObservedSequences("even", ("a", "b", "c"), tuple(tokens))
    frame = run_observed_smoothing(design("construction-softmax:2.2", data)).smoothing
    row = frame[(frame["by"] == "overall") & (frame.parameter == "pseudo_count")].iloc[0]
    inputs = tokens[:, :-1]
    predictions = get("construction-softmax:2.2").predict_proba(inputs)[:, None]
    counts = transition_counts(inputs, 3)[:, None]
    fit = fit_pseudo_count(PseudoCountMoments.of(count_statistics(predictions, counts, "overall")[0]))
    assert row.estimate == pytest.approx(fit.estimate, rel=1e-9)
    assert (row.ci_low, row.ci_high) == pytest.approx((fit.low, fit.high), rel=1e-6)


def test_windows_beyond_the_length_count_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    data = ObservedSequences("long", ("a", "b", "c"), (RNG.integers(0, 3, size=60), RNG.integers(0, 3, size=30)))
    rule, window = get("construction-softmax:2.2"), 8
    whole = run_observed_smoothing(design("construction-softmax:2.2", data, length=window)).smoothing
    monkeypatch.setattr("icl_estimators.experiments.observed_smoothing._ROWS", 5)  # one sequence in several parts
    parts = run_observed_smoothing(design("construction-softmax:2.2", data, length=window)).smoothing
    for column in ("estimate", "residual_kl_nats"):
        np.testing.assert_allclose(parts[column].to_numpy(float), whole[column].to_numpy(float), rtol=1e-9)
    per_unit = []
    for sequence in data.sequences:
        prefixes = [sequence[max(0, n - window) : n] for n in range(1, len(sequence))]
        rows = [(rule.predict_proba(p[None])[0, -1], transition_counts(p[None], 3)[0, -1]) for p in prefixes]
        per_unit.append(rows)
    total = {"mass": 0.0, "n": 0}
    for rows in per_unit:
        for prediction, counts in rows:
            if counts.sum() == 5:
                total["mass"] += float(prediction[counts == 5].sum())
                total["n"] += int((counts == 5).sum())
    found = whole[(whole["by"] == "visits") & (whole["value"] == 5) & (whole.parameter == "prediction_at_count_5")]
    if total["n"]:
        assert found.estimate.iloc[0] == pytest.approx(total["mass"] / total["n"])


def test_families_need_sequences_to_be_held_out() -> None:
    assert design("uniform").no_families == ""
    single = ObservedSequences("single", ("a", "b"), (np.array([0, 1, 0, 1, 1]),))
    assert design("uniform", single).no_families.startswith("one sequence: families are compared")
    long = ObservedSequences("long", ("a", "b"), (np.zeros(3000, np.int64), np.ones(9, np.int64)))
    assert "too many windows of 100 tokens" in design("uniform", long).no_families
    frame = run_observed_smoothing(design("add-constant:0.3", families=("affine",))).smoothing
    fitted = frame[(frame.family == "affine") & (frame.estimator == "add-constant:0.3")].set_index("parameter").estimate
    assert fitted["pseudo_count"] == pytest.approx(0.3, rel=1e-3)
    assert fitted["pseudo_count_per_visit"] == pytest.approx(0.0, abs=1e-3)


def test_pieces_of_one_sequence_are_one_unit() -> None:
    cut = ObservedSequences("cut", DATA.labels, DATA.sequences, groups=tuple(k // 2 for k in range(70)))
    whole, pieces = (run_observed_smoothing(design("construction-softmax:2.2", data)).smoothing for data in (DATA, cut))
    chosen = (whole["by"] == "overall") & (whole.parameter == "pseudo_count")
    np.testing.assert_allclose(
        pieces[chosen].estimate.to_numpy(float), whole[chosen].estimate.to_numpy(float), rtol=1e-9
    )
    assert (pieces[chosen].se.to_numpy(float)[:1] != whole[chosen].se.to_numpy(float)[:1]).all()


def test_what_cannot_be_fitted_is_refused() -> None:
    study = ObservedStudy.build(DATA, "uniform", warn=print)
    with pytest.raises(InputError, match="unknown grouping 'none'"):
        ObservedSmoothing(study, ("none",), ())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no grouping is given"):
        ObservedSmoothing(study, (), ())
    with pytest.raises(InputError, match="nothing"):
        ObservedSmoothing(study, ALL, ("nothing",))
