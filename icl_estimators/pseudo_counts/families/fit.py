"""Which family of smoothing rules describes an estimator best: parameters with intervals, and the remaining KL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.inference.intervals.ratio import RatioMoments, ratio_intervals
from icl_estimators.notes import Code, Note, join
from icl_estimators.pseudo_counts.families.intervals import ProfileScore, Range, score_interval
from icl_estimators.pseudo_counts.families.objective import (
    EDGE,
    NEAR_EDGE,
    Coordinates,
    FamilyMinimum,
    block_values,
    bounds,
    minimise,
)
from icl_estimators.pseudo_counts.families.rules import FAMILIES, Family, smoothing_family
from icl_estimators.pseudo_counts.objective import AddConstantObjective
from icl_estimators.pseudo_counts.prefixes import PrefixBlock, Prefixes
from icl_estimators.validation import InputError, probability_level

__all__ = ["Estimate", "FamilyFit", "ParameterFit", "fit_families"]

Array = NDArray[np.float64]

_SINGULAR = 1e-9
_FLAT = 1e-9  # nats per prefix: curvature below which a parameter makes no difference
_ROUNDING = 1e-14  # nats per prefix
_SAME_AS_UNIFORM = 1e-12  # nats per prefix
_START_CHAINS = 50


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with a clustered t interval; NaN with a reason where it is undefined."""

    estimate: float
    se: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class ParameterFit:
    """One parameter of a family.

    Attributes
    ----------
    name : str
    estimate, se : float
        The standard error is the sandwich's, clustered on chains; none at a boundary.
    low, high : float
        The values that the clustered score, the other parameters profiled out, does not reject
        (:mod:`icl_estimators.pseudo_counts.families.intervals`); one-sided at a boundary.
    boundary, identified : bool
    note : str
        The reason for every number that is NaN or infinite.
    """

    name: str
    estimate: float
    se: float
    low: float
    high: float
    boundary: bool
    identified: bool
    note: str


@dataclass(frozen=True, slots=True)
class FamilyFit:
    """A family fitted to an estimator.

    Attributes
    ----------
    family : str
    parameters : tuple of ParameterFit
    residual_kl_nats : float
        Mean KL(p̂ ‖ rule) per prefix with n_v ≥ 1, over the chains that the parameters were fitted to.
    heldout : Estimate
        The same over the second half of the chains, with parameters fitted to the first.
    heldout_gain : Estimate
        Held-out residual of the first family minus that of this one, paired: above 0 this one is better. Standard error
        and interval are conditional on the two rules that the first half gave; they do not hold that fit's own error.
    explained : Estimate
        1 − Σ KL(p̂ ‖ rule) / Σ KL(p̂ ‖ uniform).
    """

    family: str
    parameters: tuple[ParameterFit, ...]
    residual_kl_nats: float
    heldout: Estimate
    heldout_gain: Estimate
    explained: Estimate


def fit_families(
    first: Prefixes, second: Prefixes, *, families: Sequence[str] = FAMILIES, level: float = 0.95
) -> tuple[FamilyFit, ...]:
    """Fit families to all chains, and to the first half for their residual on the second.

    Parameters
    ----------
    first, second : Prefixes
        The two halves of the chains.
    families : sequence of str
        The first is the one that the others are compared with.
    level : float
        Confidence level in (0, 1).

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1, a family is unknown, no prefix has n_v ≥ 1, or the halves are for
        different numbers of states.

    Examples
    --------
    >>> from icl_estimators.sources import occurrence_counts, sample_chains, transition_counts
    >>> def prefixes(chains):
    ...     sample = sample_chains(chains, sequences_per_chain=2, length=20, purpose="example")
    ...     counts, seen = (count(sample.inputs, 3) for count in (transition_counts, occurrence_counts))
    ...     rule = (counts + 0.5) / (counts.sum(axis=-1, keepdims=True) + 1.5)
    ...     arrays = (array.reshape(len(chains), 2, 20, 3) for array in (rule, counts, seen))
    ...     predictions, counts, seen = arrays
    ...     return Prefixes.of([predictions], sample.tokens[:, :, :-1], counts, seen)
    >>> plain = fit_families(prefixes(range(5)), prefixes(range(5, 10)), families=["add-constant"])[0]
    >>> round(plain.parameters[0].estimate, 8), round(plain.residual_kl_nats, 12)
    (0.5, 0.0)
    """
    level = probability_level(level)
    both = Prefixes.join([first, second])
    if not both.number.sum():
        raise InputError("no prefix has a transition out of its last token: there is nothing to fit")
    if _is_uniform(both):
        return tuple(_uniform_fit(smoothing_family(name, both.n_states)) for name in families)
    whole, half = _Chains(both), _Chains(first)
    fits: list[FamilyFit] = []
    reference: Array | None = None
    for name in families:
        family = smoothing_family(name, both.n_states)
        minimum = whole.minimum(family)
        heldout = np.full(second.n_chains, np.nan)
        if first.number.sum() and second.number.sum():
            heldout = _chain_kl(family, half.minimum(family, near=minimum).at.values(family), second)
        if reference is None:
            reference = heldout
        fits.append(_fit(family, minimum, whole, heldout, reference, second.number, level))
    return tuple(fits)


def _is_uniform(prefixes: Prefixes) -> bool:
    number = prefixes.number.sum()
    return bool(prefixes.negative_entropy.sum() + number * np.log(prefixes.n_states) <= _SAME_AS_UNIFORM * number)


def _uniform_fit(family: Family) -> FamilyFit:
    """Return the fit of a family to 1/K: the limit of an infinite pseudo-count, where nothing else matters."""
    nothing = np.nan
    parameters = []
    for parameter in family.parameters:
        name, unknown = parameter.name, (nothing, nothing, nothing)
        if name == "pseudo_count":
            why = join(Note(Code.UNIFORM_AT_INFINITY), Note(Code.NO_INTERVAL, why=Note(Code.EVERY_SCORE_IS_0)))
            parameters.append(ParameterFit(name, np.inf, *unknown, True, True, why))
        elif parameter.kind == "real":
            parameters.append(ParameterFit(name, 0.0, 0.0, 0.0, 0.0, False, True, Note(Code.UNIFORM)))
        else:
            why = Note(Code.UNIFORM_NOT_IDENTIFIED)
            parameters.append(ParameterFit(name, nothing, *unknown, False, False, why))
    zero = Estimate(0.0, 0.0, 0.0, 0.0)
    return FamilyFit(
        family.name,
        tuple(parameters),
        0.0,
        zero,
        zero,
        Estimate(nothing, nothing, nothing, nothing, Note(Code.UNIFORM_UNDEFINED)),
    )


class _Chains:
    """The prefixes of some chains, ready for fits: as they are, merged, and the few that fits start from."""

    def __init__(self, prefixes: Prefixes) -> None:
        self.prefixes = prefixes
        self.merged = prefixes.merged() if prefixes.number.sum() else ()
        self.few = _first_chains(prefixes, _START_CHAINS)
        self.plain = _plain_objective(self.merged, prefixes.n_states)
        self.pseudo_count = self.plain.minimum().alpha

    @cached_property
    def merged_chains(self) -> csr_array | None:
        return self.prefixes.merged_chains()

    def minimum(self, family: Family, near: FamilyMinimum | None = None) -> FamilyMinimum:
        """Fit a family; `near` is the fit to more chains, where a slow family may start from."""
        if family.name == "add-constant" and not np.isnan(self.pseudo_count):
            return self._plain_minimum()
        alpha = float(np.clip(np.nan_to_num(self.pseudo_count, nan=1.0), 1e-6, 1e6))
        starts = [Coordinates(np.clip(start, -EDGE, EDGE), {}) for start in family.starts(alpha)]
        if family.counts_only:
            return minimise(family, self.merged, starts)
        at = (near or minimise(family, self.few, starts)).at
        # What is a boundary for some chains need not be one for others.
        return minimise(family, self.prefixes.blocks, [Coordinates(at.free, {}), *([at] if at.pinned else [])])

    def _plain_minimum(self) -> FamilyMinimum:
        alpha, infinite = self.pseudo_count, bool(np.isinf(self.pseudo_count))
        at = np.array([EDGE if infinite else np.log(alpha) if alpha > 0 else -EDGE])
        pinned = {0: 0.0} if alpha == 0.0 else {}
        return FamilyMinimum(Coordinates(at, pinned), self.plain.kl(alpha), in_the_limit=infinite)


def _first_chains(prefixes: Prefixes, n_chains: int) -> tuple[PrefixBlock, ...]:
    blocks = []
    for block in prefixes.blocks:
        if block.chain is not None and len(block.chain) and block.chain[0] < n_chains:
            blocks.append(block)
    return tuple(blocks) or prefixes.blocks


def _plain_objective(blocks: Sequence[PrefixBlock], n_states: int) -> AddConstantObjective:
    """Return the add-α objective less Σ p̂ log p̂: what all fits of one pseudo-count are made with."""
    mass: Array = np.zeros(1)
    number: Array = np.zeros(1)
    for block in blocks:
        counts = block.counts.astype(np.intp)
        visits = counts.sum(axis=0)
        size = max(len(mass), len(number), int(visits.max(initial=0)) + 1)
        mass = np.pad(mass, (0, size - len(mass))) + np.bincount(counts.ravel(), block.predictions.ravel(), size)
        number = np.pad(number, (0, size - len(number))) + np.bincount(visits, block.predictions.sum(axis=0), size)
    return AddConstantObjective(np.concatenate([mass, number[1:], [0.0]]), np.arange(1, len(number)), n_states)


def _chain_kl(family: Family, values: Array, prefixes: Prefixes) -> Array:
    """Return Σ KL(p̂ ‖ rule) of each chain, shape (G,)."""
    total = prefixes.negative_entropy.copy()
    for block in prefixes.blocks:
        loss = block_values(family, values, block, derivatives=False)[0]
        total += block.chain_sums(loss, prefixes.n_chains)
    return _without_rounding(total, prefixes)


def _without_rounding(kl: Array, prefixes: Prefixes) -> Array:
    """Return each chain's Σ KL, 0 where it is 0 up to rounding."""
    return np.where(kl <= _ROUNDING * prefixes.number, 0.0, kl)


def _fit(
    family: Family,
    minimum: FamilyMinimum,
    chains: _Chains,
    heldout: Array,
    reference: Array,
    heldout_number: Array,
    level: float,
) -> FamilyFit:
    prefixes = chains.prefixes
    values = minimum.at.values(family)
    slopes, bends = minimum.at.slopes(family)
    kl = prefixes.negative_entropy.copy()
    size = len(values)
    scores, hessian = np.zeros((prefixes.n_chains, size)), np.zeros((size, size))
    for block in prefixes.blocks:
        loss, score, curvature = block_values(family, values, block)
        kl += block.chain_sums(loss, prefixes.n_chains)
        for index in range(size):
            scores[:, index] += block.chain_sums(score[index], prefixes.n_chains)
        hessian += curvature
    kl = _without_rounding(kl, prefixes)
    gradient = scores.sum(axis=0)
    reach = np.array([_reach(p.kind, v) for p, v in zip(family.parameters, values.tolist(), strict=True)])
    known = hessian.diagonal() * reach**2 > _FLAT * prefixes.number.sum()
    scores *= slopes
    hessian = hessian * np.outer(slopes, slopes) + np.diag(gradient * bends)
    used = prefixes.number > 0
    uniform = prefixes.negative_entropy + prefixes.number * np.log(prefixes.n_states)
    hessian /= prefixes.number.sum()  # a prefix, as the flatness of a parameter is told
    scores /= prefixes.number.sum()
    shape = _Shape(family, minimum, scores[used], hessian, known, exact=not kl.any())
    return FamilyFit(
        family.name,
        _parameters(shape, chains, level),
        float(kl.sum() / prefixes.number.sum()),
        _ratio(heldout, heldout_number, level),
        _ratio(reference - heldout, heldout_number, level),
        _explained(kl, uniform, level),
    )


def _reach(kind: str, value: float) -> float:
    """Return what a parameter may move by to tell whether it makes a difference; one near 0 by more than itself."""
    if kind in ("rate", "real"):
        return 1.0
    return max(min(value, 1.0 - value) if kind == "share" else value, 1e-3)


def _ratio(top: Array, bottom: Array, level: float) -> Estimate:
    if not np.isfinite(top).all() or not bottom.sum():
        total = float(top.sum())
        value = total if np.isinf(total) else np.nan
        note = Note(Code.INFINITE_IN_A_CHAIN if np.isinf(top).any() else Code.NO_SECOND_HALF)
        return Estimate(value, np.nan, np.nan, np.nan, note)
    found = ratio_intervals(RatioMoments.of(top[:, None], bottom[:, None]), level=level)
    estimate, se, low, high = (float(x[0]) for x in (found.estimate, found.se, found.low, found.high))
    return Estimate(estimate, se, low, high, found.notes[0])


def _explained(kl: Array, uniform: Array, level: float) -> Estimate:
    rest = _ratio(kl, np.maximum(uniform, 0.0), level)
    return Estimate(1.0 - rest.estimate, rest.se, 1.0 - rest.high, 1.0 - rest.low, rest.note)


_LIMIT = Note(Code.OPEN_LIMIT)
_OTHERS = Note(Code.OTHER_VALUES)


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """The objective at its minimum: scores of chains and Hessian in fitted coordinates, a prefix."""

    family: Family
    minimum: FamilyMinimum
    scores: Array
    hessian: Array
    known: NDArray[np.bool_]  # which parameters make a difference
    exact: bool  # whether the family holds the estimator itself, so that every chain's scores are 0

    def end(self, index: int) -> float | None:
        """Return the end of its range that a parameter is at, None where it is inside."""
        at, kind = self.minimum.at, self.family.parameters[index].kind
        if self.minimum.in_the_limit:
            return np.inf if at.free[index] > NEAR_EDGE else None
        if index in at.pinned:
            value = at.pinned[index]
            if kind == "real":
                return float(np.copysign(np.inf, value))
            return value if kind == "share" or value == 0.0 else 0.0 if kind == "rate" else np.inf
        if kind == "share" and at.free[index] >= EDGE - 1e-6:
            return 1.0
        return None


def _parameters(shape: _Shape, chains: _Chains, level: float) -> tuple[ParameterFit, ...]:
    """Return estimates with clustered sandwich standard errors and intervals from the inverted score."""
    family, at, hessian = shape.family, shape.minimum.at, shape.hessian
    size, n_chains = len(family.parameters), len(shape.scores)
    ends = [shape.end(index) for index in range(size)]
    open_limit = shape.minimum.in_the_limit
    growth = bounds(family, chains.prefixes.blocks)[1]
    kinds = [parameter.kind for parameter in family.parameters]
    beyond = [i for i in range(size) if kinds[i] == "rate" and at.free[i] >= growth[i] - 1e-6]
    inner = [i for i in range(size) if ends[i] is None and i not in beyond]
    free = [] if open_limit else [i for i in inner if shape.known[i]]
    identified = bool(free) and not _singular(hessian[np.ix_(free, free)])
    covariance = np.full((size, size), np.nan)
    if identified and n_chains > 1:
        inverse = np.linalg.inv(hessian[np.ix_(free, free)])
        meat = shape.scores[:, free].T @ shape.scores[:, free] * (n_chains / (n_chains - 1))
        covariance[np.ix_(free, free)] = 0.0 if shape.exact else inverse @ meat @ inverse
    values = at.values(family)
    invert = partial(_interval, shape, chains, t_quantile(0.5 + 0.5 * level, max(n_chains - 1, 1)), n_chains)
    fits = []
    for index, parameter in enumerate(family.parameters):
        value, end = float(values[index]), ends[index]
        if index in beyond:
            note: str = Note(Code.BEYOND_THE_SEARCH, value=value)
            fits.append(ParameterFit(parameter.name, np.nan, np.nan, np.nan, np.nan, False, False, note))
        elif end is not None:
            found = Range(np.nan, np.nan, Note(Code.SAME_RULE_ELSEWHERE))
            if not open_limit or family.name != "affine":
                found = invert(index)
            note = join(_LIMIT if open_limit else Note(Code.AT_THE_BOUNDARY, value=end), found.note)
            fits.append(ParameterFit(parameter.name, end, np.nan, found.low, found.high, True, True, note))
        elif index not in free or not identified:
            fits.append(ParameterFit(parameter.name, np.nan, np.nan, np.nan, np.nan, False, False, _OTHERS))
        else:
            slope = {"real": 1.0, "share": value * (1.0 - value)}.get(parameter.kind, value)
            se = slope * float(np.sqrt(np.maximum(covariance[index, index], 0.0)))
            found = invert(index)
            fits.append(ParameterFit(parameter.name, value, se, found.low, found.high, False, True, found.note))
    return tuple(fits) if family.reported is None else _reported(shape, fits, covariance, invert)


def _interval(shape: _Shape, chains: _Chains, t: float, n_chains: int, index: int) -> Range:
    """Invert the score of a reported parameter."""
    if n_chains < 2:
        return Range(np.nan, np.nan, Note(Code.TOO_FEW_CHAINS))
    family, values, target = shape.family, shape.minimum.at.values(shape.family), index
    end = shape.end(index)
    if shape.exact:  # every chain's scores are 0
        reported = values if family.reported is None else family.reported(values)[0]
        value = float(reported[index]) if end is None or (family.reported is not None and index) else end
        return Range(value, value)
    if shape.minimum.in_the_limit:
        values = np.where(values > np.exp(NEAR_EDGE), values * (np.exp(EDGE) / values[index]), values)
    if index in family.views:
        family, convert = family.views[index]
        values, target = convert(values), 0
    score = ProfileScore(family, chains.prefixes, target, chains.merged, chains.merged_chains)
    return score_interval(score, score.coordinates(values), t)


def _reported(
    shape: _Shape, fits: list[ParameterFit], covariance: Array, invert: Callable[[int], Range]
) -> tuple[ParameterFit, ...]:
    """Turn what was fitted into what is reported, where the two differ."""
    family = shape.family
    assert family.reported is not None
    reported, jacobian = family.reported(shape.minimum.at.values(family))
    slopes, _ = shape.minimum.at.slopes(family)
    out = []
    for index, fit in enumerate(fits):
        parts = [fits[i] for i in np.flatnonzero(jacobian[index])]
        if len(parts) == 1:
            out.append(fit)
            continue
        if not all(part.identified for part in parts):
            out.append(ParameterFit(fit.name, np.nan, np.nan, np.nan, np.nan, False, False, _OTHERS))
            continue
        if shape.minimum.in_the_limit:
            same = abs(reported[index]) <= 1e-6 * np.exp(EDGE)
            value = np.nan if same else float(np.copysign(np.inf, reported[index]))
            note: str = Note(Code.NO_FINITE_VALUE) if same else Note(Code.NO_INTERVAL, why=_LIMIT)
            out.append(ParameterFit(fit.name, value, np.nan, np.nan, np.nan, not same, not same, note))
            continue
        row = jacobian[index] * slopes
        se = float(np.sqrt(np.maximum(row @ covariance @ row, 0.0)))
        found = invert(index)
        # At a boundary of what is added there is no standard error; the score needs none.
        note = join(*(part.note for part in parts if part.boundary), found.note)
        out.append(ParameterFit(fit.name, float(reported[index]), se, found.low, found.high, fit.boundary, True, note))
    return tuple(out)


def _singular(hessian: Array) -> bool:
    scale = np.sqrt(np.maximum(hessian.diagonal(), 0.0))
    if not (scale > 0).all():
        return True
    return bool(np.linalg.eigvalsh(hessian / np.outer(scale, scale)).min() < _SINGULAR)
