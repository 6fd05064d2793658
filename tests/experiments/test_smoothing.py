from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from icl_estimators.api import Smoothing, effective_smoothing
from icl_estimators.estimators import get
from icl_estimators.experiments import smoothing as module
from icl_estimators.experiments.smoothing import SmoothingDesign, smoothing_block
from icl_estimators.experiments.study import Study
from icl_estimators.inference.trees import from_arrays, to_arrays
from icl_estimators.pseudo_counts import PseudoCountMoments, count_statistics, fit_pseudo_count
from icl_estimators.pseudo_counts.streaming import SmoothingMoments
from icl_estimators.schemas import SCHEMAS
from icl_estimators.sources import sample_chains, transition_counts
from icl_estimators.validation import InputError

SMALL = {"chains": 120, "sequences_per_chain": 3, "length": 20}
NAMES = ["add-constant:0.5", "bigram", "uniform", "construction-softmax:2.2:direct_path=false", "unigram"]


class Run:
    """A rule that stands for one of several training runs."""

    n_states, recipe = 3, "model"

    def __init__(self, name, constant):
        self.name, self._rule = name, get(f"add-constant:{constant}")

    def predict_proba(self, tokens):
        return self._rule.predict_proba(tokens)


@pytest.fixture(scope="module")
def found() -> Smoothing:
    return effective_smoothing(NAMES, **SMALL)


@pytest.fixture(scope="module")
def table(found: Smoothing) -> pd.DataFrame:
    return found.smoothing


def rows(table, estimator, by, parameter="pseudo_count", family="add-constant"):
    chosen = table[(table.estimator == estimator) & (table.by == by) & (table.family == family)]
    return chosen[chosen.parameter == parameter].set_index("value")


def parameters(table, estimator, family):
    chosen = table[(table.estimator == estimator) & (table.by == "overall") & (table.family == family)]
    return chosen.set_index("parameter")


def drawn_counts():
    sample = sample_chains(range(120), sequences_per_chain=3, length=20, purpose="smoothing")
    return sample.inputs, transition_counts(sample.inputs, 3).reshape(120, 3, 20, 3)


def test_columns_and_groups(table):
    assert tuple(table.columns) == SCHEMAS["smoothing"].names
    for name in (*NAMES, "add-one"):
        assert rows(table, name, "context-length").index.tolist() == list(range(1, 21))
        assert rows(table, name, "visits").index.tolist() == list(range(1, 20))
        overall = rows(table, name, "overall")
        assert len(overall) == 1
        assert overall.index.isna().all()
        assert "1 to 20 tokens" in overall.note.item()
    assert not table.duplicated(["estimator", "by", "value", "family", "parameter"]).any()


def test_an_added_constant_is_found_everywhere(table):
    for name, constant in (("add-constant:0.5", 0.5), ("add-one", 1.0)):
        for by in ("overall", "context-length", "visits"):
            mine = rows(table, name, by)
            mine = mine[mine.identified]
            np.testing.assert_allclose(mine.estimate, constant, rtol=1e-6)
            assert (mine.residual_kl_nats == 0.0).all()
            assert (mine.explained == 1.0).all()
            several = mine[mine.se.notna()]
            assert (several.se == 0.0).all()
            assert (several.ci_low == several.ci_high).all()
            assert not mine.boundary.any()


def test_what_says_nothing_is_empty_with_the_reason(table):
    first = rows(table, "add-one", "context-length").loc[1]
    assert np.isnan(first.estimate)
    assert not first.identified
    assert "no such prefix" in first.note
    assert np.isnan(rows(table, "uniform", "overall", "explained").estimate.item())


def test_boundaries_are_flagged_with_one_sided_intervals(table):
    for name, limit in (("bigram", 0.0), ("uniform", np.inf)):
        overall = rows(table, name, "overall").iloc[0]
        assert overall.boundary
        assert overall.identified
        assert overall.estimate == overall.ci_low == overall.ci_high == limit
        assert np.isnan(overall.se)
        assert "boundary" in overall.note


def test_no_visits_are_a_row_of_their_own(table):
    tokens, counts = drawn_counts()
    unseen = counts.sum(axis=-1) == 0
    for name in ("uniform", "unigram"):
        row = rows(table, name, "visits", "kl_nats", "uniform").loc[0]
        p = get(name).predict_proba(tokens).reshape(counts.shape)[unseen]
        assert row.estimate == pytest.approx((p * np.log(3 * p)).sum(axis=-1).mean(), abs=1e-12)
        assert "says nothing" in row.note
    assert rows(table, "unigram", "visits", "kl_nats", "uniform").loc[0].ci_low > 0


def test_fits_are_those_of_the_predictions_themselves(table):
    tokens, counts = drawn_counts()
    rule = get("unigram")
    statistics = count_statistics(rule.predict_proba(tokens).reshape(counts.shape), counts, "visits")
    for visits in (1, 4):
        fit = fit_pseudo_count(PseudoCountMoments.of(statistics[visits]))
        row = rows(table, "unigram", "visits").loc[visits]
        for column, value in (
            ("estimate", fit.estimate),
            ("se", fit.se),
            ("ci_low", fit.low),
            ("ci_high", fit.high),
            ("residual_kl_nats", fit.residual_kl_nats),
            ("explained", fit.explained),
        ):
            assert row[column] == pytest.approx(value, rel=1e-8), column
        share = rows(table, "unigram", "visits", "explained").loc[visits]
        assert share.se == pytest.approx(fit.explained_se, rel=1e-6)
        assert share.ci_low < share.estimate < share.ci_high


def test_predictions_by_count_are_means(table):
    tokens, counts = drawn_counts()
    predictions = get("unigram").predict_proba(tokens).reshape(counts.shape)
    visits = counts.sum(axis=-1, keepdims=True)
    for count in (0, 3, 5):
        row = rows(table, "unigram", "visits", f"prediction_at_count_{count}", "empirical").loc[5]
        assert row.estimate == pytest.approx(predictions[(visits == 5) & (counts == count)].mean())
        assert row.ci_low < row.estimate < row.ci_high
    shown = table[(table.family == "empirical") & (table.estimator == "unigram")]
    assert sorted(shown.value.unique()) == [1, 2, 5, 10]


def test_families_tell_what_made_the_predictions(table):
    softmax = parameters(table, "construction-softmax:2.2:direct_path=false", "temperature")
    assert softmax.estimate["gamma"] == pytest.approx(2.2, rel=1e-6)
    assert softmax.residual_kl_nats["gamma"] == softmax.estimate["residual_kl_heldout_nats"] == 0.0
    assert softmax.ci_low["heldout_gain_nats"] > 0
    assert "conditional on the two rules fitted to the first half" in softmax.note["heldout_gain_nats"]
    assert softmax.estimate["explained"] == 1.0
    plain = parameters(table, "construction-softmax:2.2:direct_path=false", "add-constant")
    assert softmax.estimate["heldout_gain_nats"] == pytest.approx(plain.estimate["residual_kl_heldout_nats"])
    assert plain.residual_kl_heldout_nats["pseudo_count"] == pytest.approx(plain.estimate["residual_kl_heldout_nats"])
    assert plain.estimate["pseudo_count"] == rows(table, softmax.estimator.iloc[0], "overall").estimate.item()
    mixture = parameters(table, "unigram", "unigram-mixture")
    assert mixture.estimate["unigram_share"] == 1.0
    assert mixture.boundary["unigram_share"]
    assert not mixture.identified["pseudo_count"]
    assert np.isnan(parameters(table, "uniform", "affine").estimate["pseudo_count_per_visit"])


def test_text_names_estimators_boundaries_and_the_best_family(found):
    text = found.summary()
    assert "120 chains × 3 sequences × 20 tokens" in text
    for name in NAMES:
        assert name in text
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "temperature" in text
    assert "γ 2.200" in text
    assert lines["uniform"].count("inf") >= 1
    assert repr(found).startswith("<Smoothing: smoothing (")


def test_training_runs_have_rows_apart_pooled_and_as_a_recipe():
    runs = [Run("model:a", 0.5), Run("model:b", 2.0)]
    found = effective_smoothing(runs, by=["visits"], families=[], **SMALL).smoothing
    names = found.estimator.drop_duplicates().tolist()
    assert names == ["model:a", "model:b", "model", "model:recipe", "add-one"]
    assert rows(found, "model:a", "visits").estimate[2] == pytest.approx(0.5)
    pooled = rows(found, "model", "visits").loc[2]
    assert 0.5 < pooled.estimate < 2.0
    assert pooled.residual_kl_nats > 0
    recipe = rows(found, "model:recipe", "visits").loc[2]
    assert recipe.estimate == pytest.approx(1.0)  # the geometric mean
    assert recipe.ci_low < 0.1  # two runs say little
    spread = rows(found, "model:recipe", "visits", "between_seed_sd_log").loc[2]
    assert spread.estimate == pytest.approx(np.log(4.0) / np.sqrt(2.0))
    assert spread.ci_low < spread.estimate < spread.ci_high


def test_pooled_runs_are_compared_by_families_too():
    runs = [Run("model:a", 1.0), Run("model:b", 1.0)]
    found = effective_smoothing(runs, by=["overall"], families=["affine"], chains=20, sequences_per_chain=2, length=12)
    affine = parameters(found.smoothing, "model", "affine")
    assert affine.estimate["pseudo_count"] == pytest.approx(1.0)
    assert affine.estimate["residual_kl_heldout_nats"] == 0.0


def test_groups_and_families_can_be_chosen():
    found = effective_smoothing(
        ["bigram"], by=["context-length"], families=[], chains=20, sequences_per_chain=1, length=6
    )
    assert set(found.smoothing.by) == {"context-length", "visits"}  # n_v = 0 is always a row
    assert set(found.smoothing.family) == {"add-constant", "uniform"}
    design = SmoothingDesign(Study((get("add-one"),)), families=("temperature", "add-constant"))
    assert design.families == ("add-constant", "temperature")
    assert SmoothingDesign(Study((get("add-one"),)), families=("affine",)).families == ("add-constant", "affine")


@pytest.mark.parametrize(("chains", "length"), [(2, 2), (3, 3)])
def test_the_smallest_studies_make_tables(chains, length):
    found = effective_smoothing(NAMES, chains=chains, sequences_per_chain=1, length=length)
    half = rows(found.smoothing, "add-constant:0.5", "overall")
    assert half.estimate.item() == pytest.approx(0.5)
    assert "left over by one α" in found.summary()


def test_contexts_of_one_token_have_nothing_to_fit():
    found = effective_smoothing(["unigram"], chains=10, sequences_per_chain=1, length=1)
    assert set(found.smoothing[found.smoothing.parameter == "pseudo_count"].identified) == {False}
    assert "0 says nothing" not in found.summary()


def test_families_are_fitted_to_a_bounded_number_of_prefixes(monkeypatch):
    monkeypatch.setattr(module, "FAMILY_PREFIXES", 600)
    found = effective_smoothing(["unigram"], families=["affine"], chains=60, sequences_per_chain=2, length=10)
    affine = parameters(found.smoothing, "unigram", "affine")
    assert affine.note.str.contains("families: the first 30 chains").all()


def test_blocks_add_up_and_come_back_from_arrays_bit_for_bit():
    study = Study(
        (get("unigram"), get("add-one")), chains=150, sequences_per_chain=2, length=12, decomposition_chains=0
    )
    design = SmoothingDesign(study, families=())
    whole = smoothing_block(design, range(150))
    parts = smoothing_block(design, range(100)).merge(smoothing_block(design, range(100, 150)))
    moments = whole.moments["unigram"]
    for key, (first, second) in moments.halves.items():
        for one, other in zip((first, second), parts.moments["unigram"].halves[key], strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert one.n_chains == other.n_chains
                np.testing.assert_allclose(one.moments.scatter, other.moments.scatter, rtol=1e-10, atol=1e-10)
    back = from_arrays(SmoothingMoments, to_arrays(moments))
    assert back.halves.keys() == moments.halves.keys()
    for key, pair in moments.halves.items():
        for one, other in zip(pair, back.halves[key], strict=True):
            if one is not None and other is not None:
                np.testing.assert_array_equal(one.moments.centre, other.moments.centre)
                np.testing.assert_array_equal(one.moments.scatter, other.moments.scatter)
                np.testing.assert_array_equal(one.visits, other.visits)
    assert back.panels.keys() == moments.panels.keys()


def test_halves_are_those_of_the_study_wherever_blocks_are_cut():
    study = Study((get("unigram"), get("add-one")), chains=140, sequences_per_chain=1, length=8, decomposition_chains=0)
    part = smoothing_block(SmoothingDesign(study, families=()), range(140)).moments["unigram"]
    first, second = part.halves["context-length", 8]
    assert first is not None
    assert second is not None
    assert first.n_chains + second.n_chains <= 140
    assert first.n_chains <= 70
    assert second.n_chains <= 70


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": []}, "no grouping is given"),
        ({"by": ["length"]}, "unknown grouping 'length'"),
        ({"by": ["visits", "visits"]}, "visits is given twice"),
        ({"families": ["lidstone"]}, "unknown family 'lidstone'"),
        ({"families": ["affine", "affine"]}, "affine is given twice"),
        ({"chains": 1}, "chains must be at least 2"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(InputError, match=message):
        effective_smoothing(["add-one"], **{"chains": 10, "length": 4, **options})


@pytest.fixture(scope="module")
def reports() -> Iterator[list[tuple[str, int, int]]]:
    seen: list[tuple[str, int, int]] = []
    options = {"families": ["affine"], "chains": 60, "sequences_per_chain": 1, "length": 6}
    effective_smoothing(["unigram"], progress=lambda *step: seen.append(step), **options)
    return seen


def test_progress_ends_with_all_chains(reports):
    assert ("smoothing", 60, 60) in reports
    assert ("families", 60, 60) in reports


@pytest.mark.slow
def test_tables_are_the_same_bits_for_any_number_of_processes():
    options = {"chains": 520, "sequences_per_chain": 10, "length": 12, "families": ["affine", "recency"]}
    one, two = (effective_smoothing(["unigram", "bigram"], jobs=jobs, **options) for jobs in (1, 2))
    assert repr(one.tables["smoothing"].rows) == repr(two.tables["smoothing"].rows)


@pytest.mark.slow
def test_two_thousand_chains_are_fitted_by_visits_in_twenty_seconds():
    began = time.process_time()
    found = effective_smoothing(["add-one"], by=["visits"], families=[])
    assert time.process_time() - began < 20.0
    assert rows(found.smoothing, "add-one", "visits").estimate[40] == pytest.approx(1.0)


def test_groups_that_few_chains_reach_are_in_the_record(found: Smoothing) -> None:
    _, counts = drawn_counts()
    visits = counts.sum(axis=-1)
    chains = {v: int((visits == v).any(axis=(1, 2)).sum()) for v in range(1, 20)}
    few = [v for v, number in chains.items() if number < 50]
    assert 0 < len(few) < 19
    assert found.run["few_chains"] == {"context-length": [1], "visits": few}  # the first token leaves no state
    noted = found.smoothing.query("by == 'visits' and parameter == 'pseudo_count' and estimator == 'unigram'")
    warned = noted[noted.note.str.contains("the interval may be too narrow")]
    assert set(warned.value.astype(int)) <= set(few)
