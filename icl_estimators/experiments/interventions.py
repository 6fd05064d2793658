"""What each part of the trained model's mechanism does to its smoothing and its regret → interventions.csv.

The intact model and the model with a part replaced predict the same sequences; what is reported is the difference.
Every `difference` has one sign: what the row is compared with, minus the row's own estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from icl_estimators.divergences import kl_divergence
from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import ContractError, Estimator, stated_tolerance
from icl_estimators.estimators.capabilities import folded_of
from icl_estimators.experiments.prediction import predict
from icl_estimators.experiments.study import Study
from icl_estimators.inference import Intervals, RatioMoments, ratio_intervals
from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.inference.trees import Summary
from icl_estimators.notes import Code, Note, join
from icl_estimators.pseudo_counts import (
    CountStatistics,
    Grouping,
    PairedPseudoCountMoments,
    Predictions,
    PrefixGroups,
    PseudoCount,
    fit_pseudo_count,
    fitted_values,
    pseudo_count_difference,
)
from icl_estimators.sources import transition_counts

__all__ = ["InterventionMoments", "intervention_block", "intervention_table", "intervention_targets"]

Array = NDArray[np.float64]

INTACT = "intact"
_GROUPINGS: tuple[Grouping, ...] = ("overall", "visits")

Key = tuple[Grouping, int]

_FOLDED_AGREES = 1e-3  # float32 logits agree to 1e-5


@dataclass(frozen=True, eq=False)
class InterventionMoments(Summary):
    """What is kept of some chains.

    Attributes
    ----------
    pairs : dict of (intervention, key) to PairedPseudoCountMoments or None
        The intact model's statistics beside the changed one's, by (grouping, value).
    regret, difference : dict of intervention to RatioMoments, or None
        Of the sum of regret (of the intact model's minus that of the changed one) over the number of prefixes: overall,
        and at each number of visits from 0 on. An intervention whose regret is infinite has none. None where the
        posterior is not exact.
    """

    pairs: dict[tuple[str, Key], PairedPseudoCountMoments | None]
    regret: dict[str, RatioMoments] | None
    difference: dict[str, RatioMoments] | None


def intervention_targets(study: Study) -> tuple[Estimator, ...]:
    """Return the trained models that can be intervened on: all runs of the first recipe, or the first model alone.

    Raises
    ------
    ContractError
        If the folded numbers of a model do not give its predictions, on a few sequences.
    """
    from icl_estimators.estimators.intervened import Intervened
    from icl_estimators.transformer import Intervention

    models = _targets(study)
    tokens = np.random.default_rng(0).integers(study.n_states, size=(4, study.length))
    for model in models:
        own, folded = (predict(rule, tokens, range(4), 1) for rule in (model, Intervened(model, Intervention())))
        apart = float(np.abs(own - folded).max())
        if apart > max(_FOLDED_AGREES, stated_tolerance(model)):
            raise ContractError(
                f"{model.name}: its attribute `folded` gives predictions {apart:.2g} apart from its own, so "
                "interventions on it would be wrong: make them agree, or remove the attribute"
            )
    return models


def _targets(study: Study) -> tuple[Estimator, ...]:
    models = [rule for rule in study.estimators if folded_of(rule) is not None]
    if not models:
        return ()
    runs = next((runs for runs in study.recipes.values() if models[0].name in runs), (models[0].name,))
    return tuple(rule for rule in models if rule.name in runs)


def intervention_block(study: Study, chains: range) -> InterventionMoments:
    """Draw `chains` from the smoothing stream, and ask the models intact and under every intervention.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    InputError
        If a chain lacks the stationary law that the study starts from.
    """
    from icl_estimators.estimators.intervened import Intervened
    from icl_estimators.transformer import INTERVENTIONS, PERFECT_READ_OUT

    sample = study.source.sample(
        chains,
        sequences_per_chain=study.sequences_per_chain,
        length=study.length,
        seed=study.seed,
        purpose="smoothing",
    )
    tokens = sample.inputs
    shape = (len(chains), study.sequences_per_chain, study.length, study.n_states)
    counts = transition_counts(tokens, study.n_states).reshape(shape)
    bayes = study.source.posterior_predictive(tokens)
    models = _targets(study)
    groups = {by: PrefixGroups(counts, by) for by in _GROUPINGS}

    def ask(changed: Sequence[Estimator]) -> tuple[dict[Key, CountStatistics], Array | None]:
        """Return statistics and regret, both averaged over training runs."""
        runs, regrets = [], []
        for rule in changed:
            predictions = predict(rule, tokens, chains, study.sequences_per_chain)
            normalised = Predictions.of(predictions)
            runs.append({(by, v): s for by, found in groups.items() for v, s in found.statistics(normalised).items()})
            if bayes is not None:
                regrets.append(kl_divergence(bayes.reshape(shape), predictions))
        pooled = {key: CountStatistics.average([run[key] for run in runs]) for key in runs[0]}
        return pooled, np.mean(regrets, axis=0) if regrets else None

    intact, intact_regret = ask(models)
    pairs: dict[tuple[str, Key], PairedPseudoCountMoments | None] = {}
    regret, difference = {}, {}
    visits = counts.sum(axis=-1)
    if intact_regret is not None:
        regret[INTACT] = _by_visits(intact_regret, visits)
    for intervention in (*INTERVENTIONS, PERFECT_READ_OUT):
        statistics, changed_regret = ask([Intervened(model, intervention) for model in models])
        for key, found in statistics.items():
            pairs[intervention.name, key] = PairedPseudoCountMoments.of(intact[key], found)
        # What the attention copies gives probability 0 to states that have not occurred: its regret is infinite.
        if changed_regret is not None and intact_regret is not None and intervention != PERFECT_READ_OUT:
            regret[intervention.name] = _by_visits(changed_regret, visits)
            difference[intervention.name] = _by_visits(intact_regret - changed_regret, visits)
    return InterventionMoments(pairs, regret or None, difference or None)


def intervention_table(study: Study, moments: InterventionMoments) -> Table:
    """Return interventions.csv: by visits (all prefixes together where it is empty) and quantity.

    `estimate` is that of the row's own model, intact or changed. `difference`, with its interval, is what that is
    compared with minus the estimate: for `log_pseudo_count` and `regret_nats` the intact model's, and with
    ``_from_add_one`` the add-one rule's, which is 0, so that `difference` is minus the estimate.
    """
    rows: list[tuple[Cell, ...]] = []
    names = list(dict.fromkeys(name for name, _ in moments.pairs))
    labels = _labels(study.length)
    keys: list[Key] = [("overall", 0), *(("visits", v) for v in fitted_values("visits", study.length))]
    for name in (INTACT, *names):
        for key in keys:
            rows += _pseudo_count_rows(moments, name, names[0], key, study.level)
        if moments.regret is None or moments.difference is None:
            why = Note(Code.NO_POSTERIOR)
            rows += [(name, label, quantity, *(np.nan,) * 5, why) for quantity in _regrets(name) for label in labels]
            continue
        if name not in moments.regret:
            unseen = Note(Code.UNSEEN_STATES)
            nothing = (np.nan,) * 3
            rows.append((name, None, "regret_nats", np.inf, -np.inf, *nothing, unseen))
            also = join(Note(Code.FROM_ADD_ONE), unseen)
            rows.append((name, None, "regret_nats_from_add_one", np.inf, -np.inf, *nothing, also))
            continue
        own = ratio_intervals(moments.regret[name], level=study.level, empty=Note(Code.NO_SUCH_PREFIX))
        if name != INTACT:
            paired = ratio_intervals(moments.difference[name], level=study.level, empty=Note(Code.NO_SUCH_PREFIX))
            rows += _regret_rows(name, "regret_nats", labels, own, paired, "")
        turned = replace(own, estimate=-own.estimate, low=-own.high, high=-own.low)
        rows += _regret_rows(name, "regret_nats_from_add_one", labels, own, turned, Note(Code.FROM_ADD_ONE))
    return Table.of("interventions", rows)


def _pseudo_count_rows(
    moments: InterventionMoments, name: str, any_other: str, key: Key, level: float
) -> Iterator[tuple[Cell, ...]]:
    pair = moments.pairs[any_other if name == INTACT else name, key]
    label: Cell = key[1] if key[0] == "visits" else None
    if pair is None:
        return
    if name == INTACT:
        fit = fit_pseudo_count(pair.first, level=level)
    else:
        found = pseudo_count_difference(pair, level=level)
        fit = found.second
        numbers = (_log(fit), found.difference, found.se, found.low, found.high)
        yield (name, label, "log_pseudo_count", *numbers, join(found.note, *fit.notes))
    margin = fit.se_log * t_quantile(0.5 + 0.5 * level, max(fit.n_chains - 1, 1))
    value = _log(fit)
    numbers = (value, -value, fit.se_log, -value - margin, -value + margin)
    note = join(Note(Code.FROM_ADD_ONE), *fit.notes)
    yield (name, label, "log_pseudo_count_from_add_one", *numbers, note)


def _log(fit: PseudoCount) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log(fit.estimate))


def _regrets(name: str) -> tuple[str, ...]:
    both = ("regret_nats", "regret_nats_from_add_one")
    return both[1:] if name == INTACT else both


def _regret_rows(
    name: str, quantity: str, labels: list[Cell], own: Intervals, shown: Intervals, note: str
) -> Iterator[tuple[Cell, ...]]:
    for column, label in enumerate(labels):
        if np.isnan(own.estimate[column]):
            continue  # no prefix has so many visits
        numbers = (own.estimate, shown.estimate, shown.se, shown.low, shown.high)
        why = join(note, shown.notes[column])
        yield (name, label, quantity, *(float(values[column]) for values in numbers), why)


def _labels(length: int) -> list[Cell]:
    return [None, 0, *fitted_values("visits", length)]


def _by_visits(values: Array, visits: NDArray[np.int32]) -> RatioMoments:
    """Return the moments of chain sums over the number of prefixes: overall, then at each number of visits."""
    n_chains, length = len(values), values.shape[-1]
    chain = np.broadcast_to(np.arange(n_chains)[:, None, None], values.shape)
    index = (chain * length + visits).ravel()
    total = np.bincount(index, values.ravel(), n_chains * length).reshape(n_chains, length)
    number = np.bincount(index, minlength=n_chains * length).astype(np.float64).reshape(n_chains, length)
    shown = [0, *fitted_values("visits", length)]
    return RatioMoments.of(
        np.concatenate([total.sum(axis=1, keepdims=True), total[:, shown]], axis=1),
        np.concatenate([number.sum(axis=1, keepdims=True), number[:, shown]], axis=1),
    )
