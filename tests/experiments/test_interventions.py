from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.api import effective_smoothing
from icl_estimators.divergences import kl_divergence
from icl_estimators.estimators import get
from icl_estimators.estimators.intervened import Intervened
from icl_estimators.experiments.interventions import intervention_block, intervention_targets
from icl_estimators.experiments.study import Study
from icl_estimators.pseudo_counts import PairedPseudoCountMoments, Predictions, PrefixGroups, fit_pseudo_count
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.schemas import SCHEMAS
from icl_estimators.sources import posterior_predictive, sample_chains, transition_counts
from icl_estimators.transformer import INTERVENTIONS, PERFECT_READ_OUT

pytestmark = pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no checkpoint ships")

SMALL = {"by": ["overall"], "families": [], "chains": 60, "sequences_per_chain": 2, "length": 24}
PROTOTYPE = {1: (0.27, 0.09), 2: (0.46, 0.23), 5: (0.9, 0.57), 10: (1.6, 1.1), 20: (2.8, 2.1), 40: (5.0, 5.1)}
"""By visits: what a prototype of the model acted like, intact and with exact-match attention."""


@pytest.fixture(scope="module")
def table():
    return effective_smoothing(["transformer"], **SMALL).interventions


def of(table, intervention, quantity):
    chosen = table[(table.intervention == intervention) & (table.quantity == quantity)]
    return chosen.set_index(chosen.visits.fillna(-1).astype(int))


def test_columns_and_rows(table):
    assert tuple(table.columns) == SCHEMAS["interventions"].names
    assert table.intervention.drop_duplicates().tolist() == [
        "intact",
        *(item.name for item in INTERVENTIONS),
        PERFECT_READ_OUT.name,
    ]
    assert not table.duplicated(["intervention", "visits", "quantity"]).any()
    intact = table[table.intervention == "intact"]
    assert set(intact.quantity) == {"log_pseudo_count_from_add_one", "regret_nats_from_add_one"}
    assert 0 in of(table, "intact", "regret_nats_from_add_one").index
    assert 0 not in of(table, "intact", "log_pseudo_count_from_add_one").index
    assert -1 in of(table, "exact-match", "log_pseudo_count").index  # all prefixes together: no number of visits


def test_difference_is_the_intact_models_less_the_changed_ones(table):
    for quantity in ("log_pseudo_count", "regret_nats"):
        intact = of(table, "intact", f"{quantity}_from_add_one")
        for item in INTERVENTIONS:
            changed = of(table, item.name, quantity)
            known = changed[changed.difference.notna()]
            assert len(known) > 8
            np.testing.assert_allclose(
                known.difference, intact.estimate[known.index] - known.estimate, atol=1e-12, err_msg=item.name
            )
            several = known[known.se.notna()]
            assert (several.ci_low <= several.difference).all()
            assert (several.difference <= several.ci_high).all()


def test_every_difference_is_what_is_compared_with_less_the_estimate(table):
    intact = {
        (row.quantity.removesuffix("_from_add_one"), row.visits if row.visits >= 0 else -1): row.estimate
        for row in table[table.intervention == "intact"].itertuples()
    }
    seen = set()
    for row in table.itertuples():
        visits = row.visits if row.visits >= 0 else -1
        from_add_one = row.quantity.endswith("_from_add_one")
        reference = 0.0 if from_add_one else intact[row.quantity, visits]
        if np.isfinite(row.difference):
            assert row.difference == pytest.approx(reference - row.estimate, abs=1e-12)
            seen.add((row.intervention, row.quantity))
            assert np.isnan(row.ci_low) or row.ci_low <= row.difference <= row.ci_high
        if from_add_one:
            assert "add-one rule, which is 0, minus this" in row.note
    quantities = {"log_pseudo_count", "regret_nats", "log_pseudo_count_from_add_one", "regret_nats_from_add_one"}
    assert {quantity for _, quantity in seen} == quantities
    # Regret is above 0, so the difference from the add-one rule's 0 is below it.
    regret = table[(table.quantity == "regret_nats_from_add_one") & table.visits.isna()]
    assert (regret.difference < 0).all()
    assert (regret.ci_high[np.isfinite(regret.difference)] < 0).all()


def test_pairing_narrows_the_interval(table):
    paired = of(table, "previous-token", "log_pseudo_count")
    apart = np.hypot(
        of(table, "intact", "log_pseudo_count_from_add_one").se,
        of(table, "previous-token", "log_pseudo_count_from_add_one").se,
    )
    assert paired.se[2] < 0.7 * apart[2]


def test_regret_is_that_of_the_predictions(table):
    sample = sample_chains(range(60), sequences_per_chain=2, length=24, purpose="smoothing")
    counts = transition_counts(sample.inputs, 3)
    regret = kl_divergence(posterior_predictive(counts, 1.0), get("transformer").predict_proba(sample.inputs))
    visits = counts.sum(axis=-1)
    rows = of(table, "intact", "regret_nats_from_add_one")
    assert rows.estimate[-1] == pytest.approx(regret.mean())
    for v in (0, 1, 5):
        assert rows.estimate[v] == pytest.approx(regret[visits == v].mean())


def test_exact_match_attention_smooths_less_early(table):
    rows = of(table, "exact-match", "log_pseudo_count")
    for visits in (1, 2, 5):
        assert rows.ci_low[visits] > 0
    wider = of(table, "read-out-double", "log_pseudo_count")
    assert (wider.ci_low[[1, 2, 5]] > 0).all()
    half = of(table, "read-out-half", "log_pseudo_count")
    assert (half.ci_high[[1, 2, 5]] < 0).all()


def test_what_is_copied_has_pseudo_counts_but_no_finite_regret(table):
    alpha = of(table, "perfect-read-out", "log_pseudo_count").estimate
    assert (np.exp(alpha[[1, 2, 5]]) < 0.5).all()
    for quantity in ("regret_nats", "regret_nats_from_add_one"):
        (row,) = of(table, "perfect-read-out", quantity).itertuples()
        assert row.estimate == np.inf
        assert row.difference == -np.inf
        assert np.isnan(row.se)
        assert row.note.split("; ")[-1] == "infinite: states that have not occurred have probability 0"


@pytest.mark.slow
def test_the_copied_mass_smooths_far_less_than_add_one():
    rule = Intervened(get("transformer"), PERFECT_READ_OUT)
    tokens = sample_chains(range(2000), sequences_per_chain=1, length=100, seed=0, purpose="risk").inputs
    shape = (2000, 1, 100, 3)
    groups = PrefixGroups(transition_counts(tokens, 3).reshape(shape), "visits")
    found = groups.statistics(Predictions.of(rule.predict_proba(tokens).reshape(shape)))
    for visits, known in {1: 0.15, 2: 0.19, 5: 0.30, 10: 0.44, 20: 0.59, 40: 0.29}.items():
        fit = fit_pseudo_count(PairedPseudoCountMoments.of(found[visits], found[visits]).first)
        assert fit.low - 0.005 < known < fit.high + 0.005
        assert fit.high < 0.7


def test_a_stationary_start_has_no_regret():
    found = effective_smoothing(["transformer"], start="stationary", **{**SMALL, "chains": 20, "length": 8})
    regret = found.interventions[found.interventions.quantity.str.startswith("regret")]
    assert regret.estimate.isna().all()
    assert regret.note.str.contains("the posterior of these chains given a prefix is not known exactly").all()
    assert of(found.interventions, "exact-match", "log_pseudo_count").difference.notna().any()
    assert "–" in found.summary()


def test_counting_rules_have_no_mechanism_to_replace():
    found = effective_smoothing(["bigram"], **SMALL)
    assert list(found.tables) == ["smoothing"]
    left_alone = effective_smoothing(["transformer"], interventions=False, **{**SMALL, "chains": 10, "length": 5})
    assert list(left_alone.tables) == ["smoothing"]


@pytest.mark.slow
@pytest.mark.skipif(shipped_checkpoint(3, seed=1) is None, reason="one checkpoint ships")
def test_several_training_runs_are_changed_together():
    paths = [shipped_checkpoint(3, seed=seed) for seed in (0, 1)]
    found = effective_smoothing(["transformer"], checkpoints=paths, **{**SMALL, "chains": 20, "length": 12})
    assert found.run["intervened_on"] == ["transformer:k3-seed0", "transformer:k3-seed1"]
    pooled = found.smoothing.query("estimator == 'transformer' and by == 'overall' and parameter == 'pseudo_count'")
    intact = of(found.interventions, "intact", "log_pseudo_count_from_add_one")
    assert np.exp(intact.estimate[-1]) == pytest.approx(pooled.estimate.item(), rel=1e-9)


def test_blocks_add_up():
    study = Study((get("transformer"), get("add-one")), chains=60, sequences_per_chain=1, length=8)
    assert [model.name for model in intervention_targets(study)] == ["transformer"]
    whole = intervention_block(study, range(60))
    parts = intervention_block(study, range(50)).merge(intervention_block(study, range(50, 60)))
    key = ("exact-match", ("visits", 2))
    np.testing.assert_allclose(whole.pairs[key].joint.scatter, parts.pairs[key].joint.scatter, atol=1e-9)
    np.testing.assert_allclose(
        whole.difference["exact-match"].parts.first.centre, parts.difference["exact-match"].parts.first.centre
    )


@pytest.mark.slow
def test_the_shipped_model_acts_as_the_prototype_did():
    found = effective_smoothing(["transformer"], by=["visits"], families=[], chains=1000)
    alpha = found.smoothing.query("estimator == 'transformer' and parameter == 'pseudo_count'").set_index("value")
    for visits, (intact, exact) in PROTOTYPE.items():
        assert alpha.estimate[visits] == pytest.approx(intact, rel=0.05)
        changed = of(found.interventions, "exact-match", "log_pseudo_count").loc[visits]
        assert np.exp(changed.estimate) == pytest.approx(exact, rel=0.12)
        assert (changed.ci_low > 0) == (visits < 40)  # spread attention smooths early, and late rather the reverse
