from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.experiments.compare import run_study
from icl_estimators.experiments.regret_groups import ENTROPY_BINS, entropy_rates, visits_edges
from icl_estimators.experiments.study import Study
from icl_estimators.sources import posterior_predictive, transition_counts


def study(estimators: str, **options: int) -> Study:
    given = {"chains": 40, "sequences_per_chain": 3, "length": 14, "decomposition_chains": 0, **options}
    return Study.build(estimators, warn=print, **given)  # type: ignore[arg-type]


def test_they_are_the_regret_of_the_prefixes_by_hand() -> None:
    design = study("unigram")
    found = run_study(design).tables["regret_by_visits"].frame().query("estimator == 'unigram'")
    sample = design.source.sample(range(40), sequences_per_chain=3, length=14)
    counts = transition_counts(sample.inputs, 3)
    q, visits = posterior_predictive(counts, 1.0), counts.sum(axis=-1)
    p = design.estimators[0].predict_proba(sample.inputs)
    regret = (q * np.log(q / p)).sum(axis=-1)
    for row in found.itertuples():
        high = np.inf if np.isnan(row.visits_high) else row.visits_high
        here = (visits >= row.visits) & (visits <= high)
        assert row.share_of_prefixes == pytest.approx(here.mean())
        if here.any():
            assert row.estimate == pytest.approx(regret[here].mean())
        assert row.share_of_regret == pytest.approx(regret[here].sum() / regret.sum())
    assert found.share_of_regret.sum() == pytest.approx(1.0)


def test_by_entropy_they_average_to_the_mean_regret() -> None:
    result = run_study(study("unigram"))
    found = result.tables["regret_by_entropy"].frame().query("estimator == 'unigram'")
    risk = result.tables["risk"].frame().query("metric == 'regret_nats' and context_length == 'mean'")
    whole = risk.set_index("estimator").estimate["unigram"]
    assert len(found) == ENTROPY_BINS
    assert found.n_chains.sum() == 40
    assert (found.estimate.fillna(0.0) * found.n_chains).sum() / 40 == pytest.approx(whole)
    some = found[found.n_chains > 0]
    assert ((some.entropy_low <= some.entropy_mean) & (some.entropy_mean <= some.entropy_high)).all()
    assert (found.note[found.n_chains == 0] != "").all()


@pytest.mark.slow
def test_infinite_and_zero_regret() -> None:
    found = run_study(study("bigram,bayes")).tables["regret_by_visits"].frame().set_index(["estimator", "visits"])
    assert found.estimate["bigram", 1] == np.inf
    assert np.isnan(found.se["bigram", 1])
    assert "chains" in found.note["bigram", 1]
    assert found.estimate["bayes"].max() < 1e-12


def test_a_chain_without_one_stationary_law_has_no_entropy_rate() -> None:
    both = entropy_rates(np.stack([np.eye(3), np.full((3, 3), 1 / 3)]))
    assert np.isnan(both[0])
    assert both[1] == pytest.approx(np.log(3))


def test_edges_end_below_the_length() -> None:
    assert visits_edges(1).tolist() == [0]
    assert visits_edges(13).tolist() == list(range(12))
