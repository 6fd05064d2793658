"""Likeness: how far the predictions of two estimators are apart on the same prefixes, and which rule is nearest.

Between predictions p and r of one prefix: total variation ½ Σ |p − r|, the share of the probability that lies
elsewhere; KL(p ‖ r); and, over prefixes, explained = 1 − Σ KL(p ‖ r) / Σ KL(p ‖ uniform). Two estimators with the same
regret need not be alike. Which of two rules is nearer is decided by the difference of their distances, paired on the
same prefixes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from icl_estimators.divergences import sum_states
from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator, family_of, is_rule
from icl_estimators.experiments.fitted_rules import CHAINS as FITTING_CHAINS
from icl_estimators.experiments.fitted_rules import FittedRules, fit_rules
from icl_estimators.experiments.prediction import predict
from icl_estimators.experiments.risk_tables import context_labels
from icl_estimators.experiments.strategies import dictionary_of
from icl_estimators.experiments.study import Study
from icl_estimators.inference import (
    Moments,
    PairwiseMoments,
    RatioMoments,
    mean_intervals,
    merge_in_order,
    pairs_of_moments,
    ratio_intervals,
    with_mean,
)
from icl_estimators.inference.trees import Summary
from icl_estimators.notes import Code, Note, join

__all__ = ["LikenessDesign", "LikenessMoments", "likeness_block", "likeness_table", "nearest_table"]

Array = NDArray[np.float64]

MEASURES = ("total_variation", "kl_nats", "explained")
_DECIDING = ("total_variation", "kl_nats")
_SEQUENCES = 2  # of each chain: the chains, not the sequences, make the intervals narrow


@dataclass(frozen=True)
class LikenessDesign:
    """A study, its models, and the rules that were fitted to them.

    Attributes
    ----------
    study : Study
    subjects : tuple of str
        Whose nearest rule is looked for: the models and the mean over the training runs of a recipe.
    fitted : tuple of FittedRules
        Each belongs to some of the subjects.
    """

    study: Study
    subjects: tuple[str, ...]
    fitted: tuple[FittedRules, ...]

    @classmethod
    def of(cls, study: Study) -> LikenessDesign:
        """Fit rules to every estimator that is not itself a rule; training runs of one recipe share theirs."""
        by_name = {estimator.name: estimator for estimator in study.estimators}
        models = [name for name, estimator in by_name.items() if not is_rule(estimator)]
        groups = [(*runs, recipe) for recipe, runs in study.recipes.items()]
        pooled = {name for group in groups for name in group}
        groups += [(name,) for name in models if name not in pooled]
        fitted = tuple(
            fit_rules(
                study.source,
                study.length,
                study.seed,
                [by_name[name] for name in group if name in by_name],
                group,
                chains=fitting_chains(study),
            )
            for group in groups
        )
        return cls(study, tuple(name for name in study.names if any(name in group for group in groups)), fitted)

    @property
    def all_fitted(self) -> tuple[Estimator, ...]:
        """Every fitted rule that the study does not have anyway, each once."""
        found = {rule.name: rule for subject in self.subjects for rule in self.rules_of(subject)}
        return tuple(found.values())

    @property
    def dictionary(self) -> tuple[Estimator, ...]:
        """The rules that the models are described as mixtures of, each once, without those above."""
        found = {rule.name: rule for own in self.fitted for rule in dictionary_of(own, self.study.n_states)}
        known = {*self.study.names, *(rule.name for rule in self.all_fitted)}
        return tuple(rule for name, rule in found.items() if name not in known)

    @property
    def sequences_per_chain(self) -> int:
        """How many sequences of each chain are compared: the first ones of the risk design."""
        return likeness_sequences(self.study)

    @property
    def cells(self) -> int:
        """T·K: probabilities predicted for one sequence."""
        return self.study.cells

    def rules_of(self, subject: str) -> tuple[Estimator, ...]:
        """The rules that were fitted to a subject, without those that the study has anyway."""
        own = next((found.rules for found in self.fitted if subject in found.subjects), ())
        return tuple(rule for rule in own if rule.name not in self.study.names)

    def candidates(self, subject: str) -> tuple[Estimator, ...]:
        """The rules among which the nearest is looked for."""
        study = self.study
        return (*(rule for rule in study.estimators if is_rule(rule)), *self.rules_of(subject))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """All pairs, each once: those of the study, then subjects and the rules fitted to them.

        A recipe is not compared with its own runs.
        """
        study = self.study
        for one, other in combinations(study.names, 2):
            if other not in study.recipes.get(one, ()) and one not in study.recipes.get(other, ()):
                yield one, other
        for subject in self.subjects:
            for rule in self.rules_of(subject):
                yield subject, rule.name

    def record(self) -> dict[str, Any]:
        """Return what run.json says of the fitted rules: by subject."""
        return {name: found.record() for found in self.fitted for name in found.subjects}


def likeness_sequences(study: Study) -> int:
    """Return how many sequences of each chain are compared."""
    return min(study.sequences_per_chain, _SEQUENCES)


def fitting_chains(study: Study) -> int:
    """Return how many chains rules are fitted on: fewer in a small study of an estimator of your own."""
    return min(FITTING_CHAINS, max(100, study.chains)) if study.has_own else FITTING_CHAINS


@dataclass(frozen=True, eq=False)
class LikenessMoments(Summary):
    """What is kept of some chains; the coordinates are context lengths 1 … T and their mean, unless it says otherwise.

    Attributes
    ----------
    total_variation : dict of (estimator, other) to Moments
        Each pair once.
    kl : dict of (estimator, other) to Moments
        Both orders.
    explained : dict of (estimator, other) to RatioMoments
        KL(p ‖ r) over KL(p ‖ uniform); only finite values of the first count.
    nearest : dict of (subject, measure) to PairwiseMoments
        The mean over context lengths of the distance to each candidate.
    """

    total_variation: dict[tuple[str, str], Moments]
    kl: dict[tuple[str, str], Moments]
    explained: dict[tuple[str, str], RatioMoments]
    nearest: dict[tuple[str, str], PairwiseMoments]


class _Distances:
    """The distances between the predictions for some chains, each computed when it is first asked for.

    Predictions have shape (R, S, T, K), and a distance is a mean over the S sequences, shape (R, T + 1).
    """

    def __init__(self, predictions: Mapping[str, Array], recipes: Mapping[str, Sequence[str]]) -> None:
        self._predictions = predictions
        self._recipes = recipes
        self._found: dict[tuple[str, str, str], Array] = {}
        self._logarithms: dict[str, Array] = {}
        self._zeros = {name: bool((values <= 0.0).any()) for name, values in predictions.items()}

    def total_variation(self, one: str, other: str) -> Array:
        return self._get("total_variation", *sorted((one, other)))

    def kl(self, one: str, other: str) -> Array:
        return self._get("kl_nats", one, other)

    def kl_from_uniform(self, one: str) -> Array:
        return self._get("kl_from_uniform", one, "")

    def _get(self, measure: str, one: str, other: str) -> Array:
        key = (measure, one, other)
        if key not in self._found:
            recipe = next((name for name in (one, other) if name in self._recipes), None)
            if recipe is None:
                value = with_mean(self._of_prefixes(measure, one, other).mean(axis=1))
            else:  # the mean of the distances of its runs
                runs = self._recipes[recipe]
                pairs = [(run, other) if recipe == one else (one, run) for run in runs]
                value = np.mean([self._get(measure, *pair) for pair in pairs], axis=0)
            self._found[key] = value
        return self._found[key]

    def _of_prefixes(self, measure: str, one: str, other: str) -> Array:
        p = self._predictions[one]
        if measure == "kl_from_uniform":
            level = 1.0 / p.shape[-1]
            if self._zeros[one]:
                return np.maximum(sum_states(rel_entr(p, level)), 0.0)
            return np.maximum(sum_states(p * (self._logarithm(one) - np.log(level))), 0.0)
        r = self._predictions[other]
        if measure == "total_variation":
            return np.asarray(0.5 * sum_states(np.abs(p - r)))
        if self._zeros[one]:
            return np.maximum(sum_states(rel_entr(p, r)), 0.0)
        return np.maximum(sum_states(p * (self._logarithm(one) - self._logarithm(other))), 0.0)

    def _logarithm(self, name: str) -> Array:
        if name not in self._logarithms:
            with np.errstate(divide="ignore"):
                self._logarithms[name] = np.log(self._predictions[name])
        return self._logarithms[name]


def likeness_block(design: LikenessDesign, chains: range) -> LikenessMoments:
    """Draw the first sequences of `chains` of the risk design again, and compare all predictions for them.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    InputError
        If a chain lacks the stationary law that the study starts from.
    """
    study, sequences = design.study, design.sequences_per_chain
    tokens = study.source.sample(
        chains, sequences_per_chain=sequences, length=study.length, seed=study.seed, purpose="risk"
    ).inputs
    everyone = {estimator.name: estimator for estimator in (*study.estimators, *design.all_fitted)}
    found = _Distances(
        {name: predict(estimator, tokens, chains, sequences) for name, estimator in everyone.items()}, study.recipes
    )
    pairs = list(design.pairs())
    candidates = {subject: [rule.name for rule in design.candidates(subject)] for subject in design.subjects}
    return merge_in_order(_moments(found, pairs, candidates, unit) for unit in study.units(len(chains)))


def _moments(
    found: _Distances, pairs: list[tuple[str, str]], candidates: dict[str, list[str]], unit: slice
) -> LikenessMoments:
    directed = [order for pair in pairs for order in _both(pair)]
    distance = {"total_variation": found.total_variation, "kl_nats": found.kl}
    explained = {}
    for one, other in directed:
        kl = found.kl(one, other)[unit]
        explained[one, other] = RatioMoments.of(np.where(np.isfinite(kl), kl, 0.0), found.kl_from_uniform(one)[unit])
    return LikenessMoments(
        {pair: Moments.of(found.total_variation(*pair)[unit], full=False) for pair in pairs},
        {pair: Moments.of(found.kl(*pair)[unit], full=False) for pair in directed},
        explained,
        {
            (subject, measure): PairwiseMoments.of(
                np.stack([distance[measure](subject, rule)[unit, -1] for rule in rules], axis=1)
            )
            for subject, rules in candidates.items()
            if len(rules) > 1
            for measure in _DECIDING
        },
    )


def likeness_table(design: LikenessDesign, moments: LikenessMoments) -> Table:
    """Return likeness.csv."""
    study = design.study
    labels = context_labels(study.length)
    basis = "" if study.sequences_per_chain <= _SEQUENCES else Note(Code.LIKENESS_SEQUENCES, sequences=_SEQUENCES)
    rows: list[tuple[Cell, ...]] = []

    def add(pair: tuple[str, str], measure: str, values: Sequence[Array], notes: Sequence[str]) -> None:
        for label, *numbers, note in zip(labels, *values, notes, strict=True):
            rows.append((*pair, label, measure, *(float(number) for number in numbers), join(note, basis)))

    for pair in design.pairs():
        found = mean_intervals(moments.total_variation[pair], level=study.level)
        add(pair, "total_variation", (found.estimate, found.se, found.low, found.high), found.notes)
        for order in _both(pair):
            found = mean_intervals(moments.kl[order], level=study.level)
            add(order, "kl_nats", (found.estimate, found.se, found.low, found.high), found.notes)
            ratio = ratio_intervals(moments.explained[order], level=study.level, empty=Note(Code.UNIFORM_UNDEFINED))
            infinite = np.isinf(found.estimate)
            values = (
                np.where(infinite, np.nan, 1.0 - ratio.estimate),  # nothing is explained of an infinite divergence
                *(np.where(infinite, np.nan, part) for part in (ratio.se, 1.0 - ratio.high, 1.0 - ratio.low)),
            )
            notes = [
                why if bad else why_not for why, why_not, bad in zip(found.notes, ratio.notes, infinite, strict=True)
            ]
            add(order, "explained", values, notes)
    return Table.of("likeness", rows)


def nearest_table(design: LikenessDesign, moments: LikenessMoments) -> Table | None:
    """Return nearest.csv: the nearest rule of each subject, and the paired difference from the next; None without one.

    The nearest member of a family stands for its family, so that the next rule is of another one.
    """
    rows: list[tuple[Cell, ...]] = []
    for subject, measure in product(design.subjects, _DECIDING):
        rules = design.candidates(subject)
        means = _mean_distances(moments, subject, measure, [rule.name for rule in rules])
        ranked = [i for i in sorted(range(len(rules)), key=lambda i: (means[i], i)) if math.isfinite(means[i])]
        if not ranked:
            continue
        best = ranked[0]
        following = next((i for i in ranked if family_of(rules[i]) != family_of(rules[best])), None)
        row: list[Cell] = [subject, measure, "mean", rules[best].name, means[best]]
        if following is None:
            rows.append((*row, None, math.nan, math.nan, math.nan, math.nan, None, Note(Code.NO_OTHER_RULE)))
            continue
        first, second = sorted((best, following))
        pair = pairs_of_moments(_two(moments.nearest[subject, measure], first, second), level=design.study.level)
        sign = 1.0 if first == following else -1.0
        difference = sign * float(pair.difference[0]) + 0.0
        low, high = sorted((sign * float(pair.low[0]) + 0.0, sign * float(pair.high[0]) + 0.0))
        # Two rules that differ by rounding have an interval of no width beside 0, which decides nothing.
        decided = bool(low > 0.0 and not pair.identical[0]) if math.isfinite(low) else None
        rows.append((*row, rules[following].name, difference, float(pair.se[0]), low, high, decided, pair.notes[0]))
    return Table.of("nearest", rows) if rows else None


def _mean_distances(moments: LikenessMoments, subject: str, measure: str, rules: Sequence[str]) -> list[float]:
    """Return the mean over context lengths of the distance to each rule; one rule alone makes no pairs."""
    if (subject, measure) in moments.nearest:
        return [float(mean) for mean in moments.nearest[subject, measure].values.mean]
    if measure == "kl_nats":
        return [float(moments.kl[subject, rule].mean[-1]) for rule in rules]
    of_pair = moments.total_variation
    return [float((of_pair.get((subject, rule)) or of_pair[rule, subject]).mean[-1]) for rule in rules]


def _both(pair: tuple[str, str]) -> tuple[tuple[str, str], tuple[str, str]]:
    return pair, (pair[1], pair[0])


def _two(moments: PairwiseMoments, first: int, second: int) -> PairwiseMoments:
    """Return the moments of two of the values."""
    size = moments.values.size
    place = int(first * size - first * (first + 1) // 2 + second - first - 1)  # in the upper triangle, row by row
    return PairwiseMoments(moments.values.select([first, second]), moments.differences.select([place]))
