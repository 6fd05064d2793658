"""Attention × read-out: what does replacing either part of a trained model do to its regret?

A read-out that was trained together with the attention is not the best for another attention. So each attention is
combined with the trained read-out, with one refitted to it, softmax(γ f_w + δ 1[w = v]), and with a perfect one, which
predicts the copied mass f itself. What a part is worth depends on whether it is replaced first or second; the average
of both is its Shapley value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from icl_estimators.divergences import kl_divergence
from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator
from icl_estimators.estimators.capabilities import folded_of
from icl_estimators.experiments.prediction import predict
from icl_estimators.experiments.study import Study
from icl_estimators.inference import Moments, mean_intervals
from icl_estimators.notes import Code, Note, join
from icl_estimators.sources import Purpose, occurrence_counts, transition_counts

__all__ = [
    "AS_TRAINED",
    "UNMATCHED",
    "ReadOut",
    "exact_frequencies",
    "fit_read_out",
    "mechanism_tables",
    "read_out_law",
]

Array = NDArray[np.float64]
Tokens = NDArray[np.int64]

UNMATCHED = ("0", "n_w/(n + 1)", "n_w/n")
"""What exact attention copies where the current token was not left before; elsewhere it copies n_vw/n_v."""

AS_TRAINED = "as trained"
"""The same under the trained read-out: attention stays as trained where nothing matches."""

MECHANISM_CHAINS = 2000
FITTED_CHAINS = 1000
_FEWEST_CHAINS = 200
_LENGTH = 100  # beyond it chains are fewer, so that there are not more attention weights
_BATCH = 250

Part = tuple[str, str, str]  # attention, read-out, unmatched


class ReadOut(NamedTuple):
    """A read-out softmax(γ f_w + δ 1[w = v])."""

    gamma: float
    bonus: float


def exact_frequencies(tokens: Tokens, n_states: int, unmatched: str) -> Array:
    """Return what exact attention copies.

    Parameters
    ----------
    tokens : ndarray of int64, shape (N, T)
    n_states : int
        K.
    unmatched : {"0", "n_w/(n + 1)", "n_w/n"}
        What is copied where the current token was not left before.

    Returns
    -------
    ndarray of float64, shape (N, T, K)

    Examples
    --------
    >>> exact_frequencies(np.array([[0, 1, 0]]), 2, "n_w/n")[0].tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    counts = transition_counts(tokens, n_states)
    visits = counts.sum(axis=-1, keepdims=True)
    n = np.arange(1, tokens.shape[1] + 1)[:, None]
    weights: dict[str, Array] = {"0": 0.0 / n, "n_w/(n + 1)": 1.0 / (n + 1), "n_w/n": 1.0 / n}
    copied = occurrence_counts(tokens, n_states) * weights[unmatched]
    return np.asarray(np.where(visits > 0, counts / np.maximum(visits, 1), copied))


def read_out_law(tokens: Tokens, copied: Array, read_out: ReadOut) -> Array:
    """Return softmax(γ f_w + δ 1[w = v]), shape (N, T, K), of a copied mass f of that shape."""
    return np.asarray(softmax(_logits(tokens, copied, read_out), axis=-1))


def fit_read_out(tokens: Tokens, copied: Array, bayes: Array) -> ReadOut:
    """Return the read-out with the least regret over all prefixes.

    Parameters
    ----------
    tokens : ndarray of int64, shape (N, T)
    copied, bayes : ndarray of float64, shape (N, T, K)
        The copied mass f, and the Bayes predictive q.

    Returns
    -------
    ReadOut
        The γ and δ that minimise the mean of KL(q ‖ softmax(γf + δ1[w = v])), which is convex in both.
    """
    own = _own(tokens, copied.shape[-1]).astype(float)

    def loss(parameters: Array) -> tuple[float, Array]:
        z = parameters[0] * copied + parameters[1] * own
        gap = softmax(z, axis=-1) - bayes
        slope = np.array([(gap * x).sum(axis=-1).mean() for x in (copied, own)])
        return -float((bayes * log_softmax(z, axis=-1)).sum(axis=-1).mean()), slope

    found = minimize(loss, np.array([2.0, 0.0]), jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9})
    return ReadOut(float(found.x[0]), float(found.x[1]))


def mechanism_tables(study: Study, purpose: Purpose = "risk") -> dict[str, Table]:
    """Return mechanism.csv and mechanism_shares.csv, by name; neither if no estimator has a folded form.

    Parameters
    ----------
    study : Study
        The first sequence of each of its first 2,000 chains is used; fewer beyond 100 tokens, at least 200. Read-outs
        are fitted to other chains, half as many.
    purpose : str
        The stream that the chains come from.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    """
    models = [rule for rule in study.estimators if folded_of(rule) is not None]
    if not models:
        return {}
    cells: dict[str, dict[Part, Array]] = {}
    fitted: dict[str, dict[Part, ReadOut]] = {}
    for model in models:
        fitted[model.name] = _fitted(study, model)
        cells[model.name] = _regrets(study, model, fitted[model.name], purpose)
    for recipe, runs in study.recipes.items():
        if all(run in cells for run in runs):
            parts = cells[runs[0]]
            cells[recipe] = {part: np.mean([cells[run][part] for run in runs], axis=0) for part in parts}
    rows: list[tuple[Cell, ...]] = []
    shares: list[tuple[Cell, ...]] = []
    for name in study.names:
        if name in cells:
            basis = Note(Code.FOR_THESE_RUNS) if name in study.recipes else ""
            rows += _rows(study, name, cells[name], fitted.get(name, {}), basis)
            shares += _share_rows(study, name, cells[name], basis)
    return {"mechanism": Table.of("mechanism", rows), "mechanism_shares": Table.of("mechanism_shares", shares)}


def _affordable(chains: int, length: int) -> int:
    return max(_FEWEST_CHAINS, int(chains * min(1.0, (_LENGTH / length) ** 2)))


def _own(tokens: Tokens, n_states: int) -> NDArray[np.bool_]:
    return np.asarray(tokens[:, :, None] == np.arange(n_states))


def _logits(tokens: Tokens, copied: Array, read_out: ReadOut) -> Array:
    return read_out.gamma * copied + read_out.bonus * _own(tokens, copied.shape[-1])


def _changed(model: Estimator) -> tuple[Estimator, Estimator]:
    """Return the model with exact attention, and what its own attention copies."""
    from icl_estimators.estimators.intervened import Intervened
    from icl_estimators.transformer import EXACT_ATTENTION, INTERVENTIONS, PERFECT_READ_OUT

    exact = next(change for change in INTERVENTIONS if change.name == EXACT_ATTENTION)
    return Intervened(model, exact), Intervened(model, PERFECT_READ_OUT)


def _fitted(study: Study, model: Estimator) -> dict[Part, ReadOut]:
    """Fit a read-out to each attention, on a stream of its own; none where regret is not known."""
    chains = range(_affordable(FITTED_CHAINS, study.length))
    tokens = study.source.sample(
        chains, sequences_per_chain=1, length=study.length, seed=study.seed, purpose="tuning"
    ).inputs
    bayes = study.source.posterior_predictive(tokens)
    if bayes is None:
        return {}
    copied = {("model", "refitted", ""): predict(_changed(model)[1], tokens, chains, 1)[:, 0]}
    for unmatched in UNMATCHED:
        copied["exact", "refitted", unmatched] = exact_frequencies(tokens, study.n_states, unmatched)
    return {part: fit_read_out(tokens, mass, bayes) for part, mass in copied.items()}


def _regrets(study: Study, model: Estimator, fitted: Mapping[Part, ReadOut], purpose: Purpose) -> dict[Part, Array]:
    """Return each chain's mean regret over context lengths, shape (R,)."""
    found: dict[Part, list[Array]] = {}
    changed = _changed(model)
    n_chains = min(study.chains, _affordable(MECHANISM_CHAINS, study.length))
    for first in range(0, n_chains, _BATCH):
        chains = range(first, min(first + _BATCH, n_chains))
        tokens = study.source.sample(
            chains, sequences_per_chain=1, length=study.length, seed=study.seed, purpose=purpose
        ).inputs
        bayes = study.source.posterior_predictive(tokens)
        for part, law in _laws(model, changed, tokens, chains, fitted).items():
            if bayes is None or law is None:
                regret = np.full(len(chains), np.nan)
            else:
                regret = kl_divergence(bayes, law).mean(axis=1)
            found.setdefault(part, []).append(regret)
    return {part: np.concatenate(values) for part, values in found.items()}


def _laws(
    model: Estimator,
    changed: tuple[Estimator, Estimator],
    tokens: Tokens,
    chains: range,
    fitted: Mapping[Part, ReadOut],
) -> dict[Part, Array | None]:
    """Return the predictions of every combination, shape (N, T, K) each; None where the copied mass is no law."""
    intact, exact, own = (predict(rule, tokens, chains, 1)[:, 0] for rule in (model, *changed))
    laws: dict[Part, Array | None] = {("model", "trained", ""): intact}

    def refit(part: Part, copied: Array) -> Array | None:
        return read_out_law(tokens, copied, fitted[part]) if part in fitted else None

    laws["model", "refitted", ""] = refit(("model", "refitted", ""), own)
    laws["model", "perfect", ""] = own
    laws["exact", "trained", AS_TRAINED] = exact
    for unmatched in UNMATCHED:
        copied = exact_frequencies(tokens, model.n_states, unmatched)
        part = ("exact", "refitted", unmatched)
        laws[part] = refit(part, copied)
    for unmatched in UNMATCHED:
        copied = exact_frequencies(tokens, model.n_states, unmatched)
        total = copied.sum(axis=-1, keepdims=True)
        laws["exact", "perfect", unmatched] = copied / total if (total > 0).all() else None
    return laws


def _rows(
    study: Study, name: str, cells: Mapping[Part, Array], fitted: Mapping[Part, ReadOut], basis: str
) -> Iterator[tuple[Cell, ...]]:
    for part, values in cells.items():
        attention, read_out, unmatched = part
        gamma, bonus = fitted.get(part, (np.nan, np.nan))
        found = mean_intervals(Moments.of(values[:, None]), level=study.level)
        why: str = found.notes[0]
        if not study.exact_posterior:
            why = Note(Code.NO_POSTERIOR)
        elif np.isnan(values).any():
            why = Note(Code.NO_LAW)
        elif np.isinf(values).any():
            why = join(Note(Code.UNSEEN_STATES), Note(Code.NORMALISED) if unmatched == UNMATCHED[1] else "")
        numbers = (found.estimate, found.se, found.low, found.high)
        yield (
            name,
            attention,
            read_out,
            unmatched,
            gamma,
            bonus,
            *(float(value[0]) for value in numbers),
            join(why, basis),
        )


def _share_rows(study: Study, name: str, cells: Mapping[Part, Array], basis: str) -> Iterator[tuple[Cell, ...]]:
    """Yield what either part is worth: replaced first, replaced second, and on average."""
    neither, attention_only = cells["model", "trained", ""], cells["exact", "trained", AS_TRAINED]
    for read_out in ("refitted", "perfect"):
        read_out_only = cells["model", read_out, ""]
        for unmatched in UNMATCHED:
            both = cells["exact", read_out, unmatched]
            used = {f"the model's attention and the {read_out} read-out": read_out_only}
            used[f"exact attention and the {read_out} read-out"] = both
            bad = tuple(which for which, values in used.items() if not np.isfinite(values).all())
            with np.errstate(invalid="ignore"):
                drops = {
                    "attention": (neither - attention_only, read_out_only - both),
                    "read_out": (neither - read_out_only, attention_only - both),
                }
            for part, (first, second) in drops.items():
                with np.errstate(invalid="ignore"):
                    orders = {"first": first, "second": second, "average": 0.5 * (first + second)}
                for order, values in orders.items():
                    if bad:  # of all three, so that no order stands alone
                        why: str = Note(Code.NO_SHARE, cells=bad)
                        if not study.exact_posterior:
                            why = Note(Code.NO_POSTERIOR)
                        numbers: tuple[float, ...] = (np.nan,) * 4
                    else:
                        found = mean_intervals(Moments.of(values[:, None]), level=study.level)
                        why = found.notes[0]
                        ends = (found.estimate, found.se, found.low, found.high)
                        numbers = tuple(float(end[0]) for end in ends)
                    yield name, read_out, unmatched, part, order, *numbers, join(why, basis)
