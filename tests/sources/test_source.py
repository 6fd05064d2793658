"""A start law and a source that the package does not have: everything works from what they say of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from icl_estimators.api import compare
from icl_estimators.estimators import get, get_all
from icl_estimators.experiments.compare import run_study
from icl_estimators.experiments.exact import exact_risk
from icl_estimators.experiments.study import Study
from icl_estimators.options import sampling_parent
from icl_estimators.sources import (
    START_LAWS,
    ChainLaw,
    DirichletPosterior,
    Posterior,
    Purpose,
    Sample,
    Source,
    StartLaw,
    all_prefixes,
    get_source,
    occurrence_counts,
    sample_batches,
    sample_chains,
)
from icl_estimators.sources.compiled_sampling import training_tokens
from icl_estimators.transformer.training.measuring import held_out

Array = NDArray[np.float64]


def _first_state(transition: Array, chains: Sequence[int] | None) -> Array:
    return np.broadcast_to(np.eye(transition.shape[-1])[0], transition.shape[:-1])


@pytest.fixture
def first_state(monkeypatch: pytest.MonkeyPatch) -> str:
    law = StartLaw("first-state", "the first token is always state 0", _first_state)
    monkeypatch.setitem(START_LAWS, law.name, law)
    return law.name


@dataclass(frozen=True)
class Coin(Source):
    """Tokens 0 and 1 with one uniform probability for each chain, whatever the last token: one state."""

    n_states: int = 2
    concentration: float = 1.0
    spec: str = "coin"
    description: str = "independent tokens with one law for each chain"

    def sample(
        self, chains: Iterable[int], *, sequences_per_chain: int, length: int, seed: int = 0, purpose: Purpose = "risk"
    ) -> Sample:
        numbers = list(chains)
        heads = np.array([np.random.default_rng((seed, r)).random() for r in numbers])
        shape = (sequences_per_chain, length + 1)
        tokens = np.stack(
            [np.random.default_rng((seed, r, 1)).random(shape) >= heads[i] for i, r in enumerate(numbers)]
        )
        rows = np.stack([heads, 1.0 - heads], axis=-1)[:, None]  # (R, 1, 2)
        return Sample(tokens.astype(np.int64), rows, np.zeros((len(numbers), sequences_per_chain, length), np.int64))

    def visits(self, sample: Sample) -> Array:
        return np.ones((*sample.states.shape[::2], 1))

    def posterior(self, tokens: NDArray[np.int64]) -> DirichletPosterior:
        return DirichletPosterior(occurrence_counts(tokens, 2) + 1.0)


def largest_z(source: Source) -> dict[str, float]:
    """Return the largest |z| of each check of a study of the source; all are standard normal if all is well."""
    names = ["add-one", "unigram", "uniform"]
    rules = get_all(names, n_states=source.n_states, concentration=source.concentration, warn=print)
    study = Study(
        tuple(rules), source=source, length=6, chains=1500, decomposition_chains=300, decomposition_sequences=8
    )
    checks = run_study(study).checks
    assert "saw_the_future" not in set(checks.check)
    checks = checks[~checks.check.str.startswith("bayes_bound") & checks.z.notna()]
    return dict(checks.z.abs().groupby(checks.check).max())


CHECKS = {"exact:kl_nats", "exact:regret_nats", "martingale", "mse", "next_token"}


@pytest.mark.slow
def test_a_start_law_that_does_not_depend_on_the_chain_keeps_the_exact_posterior(first_state: str) -> None:
    source = ChainLaw(start=first_state)
    assert source.exact_posterior
    assert source.record()["start"] == "first-state"
    assert source.record()["source_description"].endswith("; the first token is always state 0")
    assert sample_chains(range(20), sequences_per_chain=3, length=4, law=source).tokens[..., 0].max() == 0
    found = largest_z(source)
    assert set(found) >= CHECKS
    assert max(found.values()) < 4.5, found
    assert exact_risk(get("add-one"), 4, source).metrics["regret_nats"].max() < 1e-15  # add-one is Bayes here too


def test_its_prefixes_have_probabilities_that_sum_to_1(first_state: str) -> None:
    tokens = np.concatenate(list(all_prefixes(3, 4)))
    probabilities = ChainLaw(3, 0.5, first_state).prefix_probabilities(tokens)
    assert probabilities is not None
    assert probabilities[:, -1].sum() == pytest.approx(1.0, abs=1e-12)
    assert (probabilities[tokens[:, 0] > 0] == 0).all()


def test_it_may_be_trained_on_and_asked_for_by_name(first_state: str) -> None:
    law = ChainLaw(start=first_state)
    expected = sample_batches(range(3), batch=16, length=20, law=law).tokens
    np.testing.assert_array_equal(training_tokens(range(3), batch=16, length=20, law=law, seed=0), expected)
    assert held_out(law, 5, 0, 1)[1] is not None
    assert sampling_parent().parse_args(["--start", "first-state"]).start == "first-state"


def test_a_source_needs_nothing_but_what_the_protocol_says() -> None:
    source = Coin()
    assert isinstance(source, Source)
    assert isinstance(source.posterior(np.zeros((1, 3), dtype=np.int64)), Posterior)
    found = largest_z(source)
    assert set(found) >= CHECKS
    assert max(found.values()) < 4.5, found
    metrics = exact_risk(get("unigram", n_states=2), 5, source).metrics  # (n_w + 1)/(n + 2) is Bayes here
    assert metrics["regret_nats"].max() < 1e-15
    assert exact_risk(get("add-one", n_states=2), 5, source).metrics["regret_nats"].min() > 0.01


@dataclass(frozen=True)
class Silent(Coin):
    """The same without a posterior."""

    def posterior(self, tokens: NDArray[np.int64]) -> None:  # type: ignore[override]
        return None


def test_without_a_posterior_what_needs_it_is_undefined() -> None:
    rules = tuple(get_all(["add-one", "unigram"], n_states=2, warn=print))
    study = Study(rules, source=Silent(), length=4, chains=60, decomposition_chains=0)
    assert (study.exact_posterior, study.source.record()["exact_posterior"]) == (False, False)
    assert study.source.prefix_probabilities(np.zeros((1, 3), dtype=np.int64)) is None
    risk = run_study(study).risk
    assert risk[risk.metric == "regret_nats"].estimate.isna().all()
    assert risk[risk.metric == "kl_nats"].estimate.notna().all()


def test_the_dirichlet_source_says_what_it_knows() -> None:
    tokens = np.array([[0, 1, 0, 1]])
    posterior = ChainLaw(2, 0.5).posterior(tokens)
    assert posterior is not None
    assert posterior.parameters[0].tolist() == [[0.5, 0.5], [0.5, 0.5], [0.5, 1.5], [1.5, 0.5]]
    assert posterior[0, 2].predictive.tolist() == [0.25, 0.75]
    stationary = ChainLaw(2, 0.5, "stationary")
    assert stationary.posterior(tokens) is None
    assert stationary.posterior_predictive(tokens) is None
    assert stationary.first_token is None
    assert stationary.prefix_probabilities(tokens) is None
    assert (ChainLaw().exact_posterior, stationary.exact_posterior) == (True, False)
    sample = stationary.sample(range(5), sequences_per_chain=2, length=6, seed=3)
    np.testing.assert_allclose(stationary.visits(sample)[:, 5], stationary.visits(sample)[:, 0], rtol=1e-9)


def test_the_moments_of_the_posterior_are_those_of_draws() -> None:
    posterior = DirichletPosterior(np.array([0.7, 2.0, 1.3]))
    rows = np.random.default_rng(0).dirichlet(posterior.parameters, size=200_000)
    prediction = np.array([0.5, 0.3, 0.2])
    assert posterior.variance == pytest.approx(rows.var(axis=0).sum(), rel=0.01)
    assert posterior.total_variation(prediction) == pytest.approx(
        0.5 * np.abs(rows - prediction).sum(1).mean(), rel=0.01
    )


def test_a_sample_may_have_states_other_than_tokens() -> None:
    sample = Coin().sample(range(2), sequences_per_chain=2, length=3)
    assert sample.truth.shape == (4, 3, 2)
    np.testing.assert_array_equal(sample.truth[2], np.tile(sample.transition[1, 0], (3, 1)))
    markov = replace(sample, transition=np.repeat(sample.transition, 2, axis=1), state=None)
    np.testing.assert_array_equal(markov.truth, sample.truth)


def test_run_json_says_what_was_drawn() -> None:
    options = compare(["add-one"], start="stationary", states=2, chains=4, length=2, decomposition_chains=0).run[
        "options"
    ]
    assert options["source"] == "dirichlet"
    assert (options["states"], options["concentration"], options["start"]) == (2, 1.0, "stationary")
    assert options["exact_posterior"] is False
    assert "stationary law" in options["source_description"]
    assert get_source(options["source"], n_states=2, start="stationary") == ChainLaw(2, 1.0, "stationary")
