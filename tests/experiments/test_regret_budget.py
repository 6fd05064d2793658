from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from icl_estimators.estimators import get
from icl_estimators.experiments.exact import exact_risk
from icl_estimators.experiments.regret_budget import PARTS, exact_budget
from icl_estimators.sources import ChainLaw
from icl_estimators.validation import InputError


class Recency:
    """Add-one on transitions that count less the older they are: it depends on order, and on row v alone."""

    name = "recency"

    def __init__(self, n_states: int = 3, decay: float = 0.7) -> None:
        self.n_states, self.decay = n_states, decay

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        given = np.asarray(tokens)
        out = np.empty((*given.shape, self.n_states))
        rows = np.zeros((len(given), self.n_states, self.n_states))
        number = np.arange(len(given))
        for t in range(given.shape[1]):
            if t:
                # Only the row that is left ages, so that other rows do not matter.
                rows[number, given[:, t - 1]] *= self.decay
                rows[number, given[:, t - 1], given[:, t]] += 1.0
            smoothed = rows[number, given[:, t]] + 1.0
            out[:, t] = smoothed / smoothed.sum(axis=1, keepdims=True)
        return out


class Labelled:
    """Add-one, with a little of what it gives to state 1 moved to state 2 where the current token is 0."""

    name = "labelled"
    n_states = 3

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        out = get("add-one").predict_proba(tokens).copy()
        here = np.asarray(tokens) == 0
        moved = 0.3 * out[here, 1]
        out[here, 1] -= moved
        out[here, 2] += moved
        return out


@pytest.mark.parametrize(
    ("n", "spec", "regret", "parts"),
    [
        (3, "transformer", 0.11917, (0, 0.02411, 0.0, 0.05246, 0, 0.04260)),
        (9, "transformer", 0.04371, (0.00079, 0.01540, 0.0, 0.00234, 0.00498, 0.02020)),
        (9, "unigram", 0.08168, (0, 0.02881, 0, 0.01852, 0.00294, 0.03142)),
    ],
)
def test_the_prototypes_values(n: int, spec: str, regret: float, parts: tuple[float, ...]) -> None:
    budget = exact_budget(get(spec), n)
    assert budget.regret == pytest.approx(regret, abs=1.01e-5)
    assert tuple(budget.parts) == PARTS
    assert tuple(budget.parts.values()) == pytest.approx(parts, abs=1.01e-5)


@pytest.mark.parametrize("spec", ["transformer", "unigram", "uniform", "construction-softmax:2.2", "add-constant:0.2"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_parts_sum_to_the_regret_of_exact_risk(spec: str, n: int) -> None:
    budget = exact_budget(get(spec), n)
    assert sum(budget.parts.values()) == pytest.approx(budget.regret, abs=1e-12)
    assert budget.regret == pytest.approx(exact_risk(get(spec), n).metrics["regret_nats"][-1], abs=1e-12)
    assert min(budget.parts[part] for part in PARTS[:4]) >= 0.0


@pytest.mark.parametrize(("states", "concentration", "n"), [(2, 1.0, 8), (3, 0.4, 6), (4, 2.0, 5)])
def test_bayes_loses_nothing_and_add_constant_only_the_amount(states: int, concentration: float, n: int) -> None:
    law = ChainLaw(states, concentration)
    bayes = exact_budget(get("bayes", n_states=states, concentration=concentration), n, law)
    assert max(map(abs, bayes.parts.values())) < 1e-12
    other = exact_budget(get("add-constant:5", n_states=states), n, law)
    assert other.parts["amount"] == pytest.approx(other.regret, abs=1e-12)
    assert other.regret > 1e-4
    assert max(abs(other.parts[part]) for part in PARTS[:5]) < 1e-12


def test_unigram_does_not_depend_on_order() -> None:
    assert exact_budget(get("unigram"), 7).parts["order"] < 1e-15


def test_a_rule_that_depends_on_order_is_found_out() -> None:
    parts = exact_budget(Recency(), 7).parts
    assert parts["order"] > 1e-3
    assert max(parts[part] for part in ("other_rows", "label_asymmetry", "self_bias")) < 1e-12


def test_a_rule_that_prefers_a_label_is_found_out() -> None:
    parts = exact_budget(Labelled(), 5).parts
    assert parts["label_asymmetry"] > 1e-3
    assert max(parts[part] for part in ("order", "other_rows")) < 1e-12


def test_the_direct_path_is_self_bias() -> None:
    parts = exact_budget(get("construction-softmax:1.0"), 1).parts
    assert parts["self_bias"] > 0.05
    assert sum(parts.values()) == pytest.approx(parts["self_bias"], abs=1e-12)


def test_an_infinite_regret_is_not_divided() -> None:
    budget = exact_budget(get("bigram"), 4)
    assert budget.regret == np.inf
    assert np.isnan(list(budget.parts.values())).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exact_budget(get("add-one"), 30), "more than the"),
        (lambda: exact_budget(get("add-one"), 0), "length"),
        (lambda: exact_budget(get("add-one"), 3, ChainLaw(start="stationary")), "start='uniform'"),
        (lambda: exact_budget(get("add-one"), 3, ChainLaw(4)), "is for 3 states, the chains have 4"),
        (lambda: exact_budget(get("add-one", n_states=7), 2, ChainLaw(7)), "at most 6"),
    ],
)
def test_bad_input_is_named(call, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        call()


def test_states_must_be_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    law = ChainLaw()
    monkeypatch.setattr(ChainLaw, "prefix_probabilities", lambda self, tokens: np.array([[0.5], [0.3], [0.2]]))
    with pytest.raises(InputError, match="states that are alike"):
        exact_budget(get("add-one"), 3, law)
