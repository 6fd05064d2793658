"""Which family of smoothing rules describes an estimator best: parameters with intervals, and what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.inference.add_constant_objective import AddConstantObjective
from icl_estimators.inference.family_objective import (
    EDGE,
    NEAR_EDGE,
    Coordinates,
    FamilyMinimum,
    block_values,
    bounds,
    minimise,
    natural,
)
from icl_estimators.inference.intervals import TOO_FEW, t_quantile
from icl_estimators.inference.prefixes import PrefixBlock, Prefixes
from icl_estimators.inference.ratios import RatioMoments, ratio_intervals
from icl_estimators.inference.smoothing_families import FAMILIES, Family, smoothing_family
from icl_estimators.validation import InputError, probability_level

__all__ = ["Estimate", "FamilyFit", "ParameterFit", "fit_families"]

Array = NDArray[np.float64]

_SINGULAR = 1e-9
_FLAT = 1e-9  # nats a prefix: curvature below which a parameter makes no difference
_ROUNDING = 1e-14  # nats a prefix
_SAME_AS_UNIFORM = 1e-12  # nats a prefix
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
    estimate, se, low, high : float
        Sandwich clustered on chains; the interval is symmetric in the fitted coordinate (logarithm, logit or the number
        itself). At a boundary there is no standard error and the interval is one-sided.
    boundary, identified : bool
    note : str
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
        Held-out residual of the first family less that of this one, paired: above 0, this one is better.
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
    >>> from icl_estimators.chains import occurrence_counts, sample_chains, transition_counts
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


_UNIFORM = "the estimator is uniform"


def _is_uniform(prefixes: Prefixes) -> bool:
    number = prefixes.number.sum()
    return bool(prefixes.information.sum() + number * np.log(prefixes.n_states) <= _SAME_AS_UNIFORM * number)


def _uniform_fit(family: Family) -> FamilyFit:
    """Return the fit of a family to 1/K: the limit of an infinite pseudo-count, where nothing else matters."""
    nothing = np.nan
    parameters = []
    for parameter in family.parameters:
        name, unknown = parameter.name, (nothing, nothing, nothing)
        if name == "pseudo_count":
            parameters.append(ParameterFit(name, np.inf, *unknown, True, True, f"at the boundary: {_UNIFORM}"))
        elif parameter.kind == "real":
            parameters.append(ParameterFit(name, 0.0, *unknown, False, True, _UNIFORM))
        else:
            parameters.append(ParameterFit(name, nothing, *unknown, False, False, f"not identified: {_UNIFORM}"))
    zero = Estimate(0.0, 0.0, 0.0, 0.0)
    return FamilyFit(
        family.name,
        tuple(parameters),
        0.0,
        zero,
        zero,
        Estimate(nothing, nothing, nothing, nothing, f"0/0: {_UNIFORM}"),
    )


class _Chains:
    """The prefixes of some chains, ready for fits: as they are, merged, and the few that fits start from."""

    def __init__(self, prefixes: Prefixes) -> None:
        self.prefixes = prefixes
        self.merged = prefixes.merged() if prefixes.number.sum() else ()
        self.few = _first_chains(prefixes, _START_CHAINS)
        self.alpha = _plain_alpha(self.merged, prefixes.n_states) if self.merged else 1.0

    def minimum(self, family: Family, near: FamilyMinimum | None = None) -> FamilyMinimum:
        """Fit a family; `near` is the fit to more chains, where a slow family may start from."""
        starts = [Coordinates(np.clip(start, -EDGE, EDGE), {}) for start in family.starts(self.alpha)]
        if family.counts_only:
            return minimise(family, self.merged, starts)
        at = (near or minimise(family, self.few, starts)).at
        # What is a boundary for some chains need not be one for others.
        return minimise(family, self.prefixes.blocks, [Coordinates(at.free, {}), *([at] if at.pinned else [])])


def _first_chains(prefixes: Prefixes, n_chains: int) -> tuple[PrefixBlock, ...]:
    blocks = []
    for block in prefixes.blocks:
        if block.chain is not None and len(block.chain) and block.chain[0] < n_chains:
            blocks.append(block)
    return tuple(blocks) or prefixes.blocks


def _plain_alpha(blocks: Sequence[PrefixBlock], n_states: int) -> float:
    """Return the α̂ of the add-α family, moved inside where it is at a boundary."""
    mass: Array = np.zeros(1)
    number: Array = np.zeros(1)
    for block in blocks:
        counts = block.counts.astype(np.intp)
        visits = counts.sum(axis=0)
        size = max(len(mass), len(number), int(visits.max(initial=0)) + 1)
        mass = np.pad(mass, (0, size - len(mass))) + np.bincount(counts.ravel(), block.predictions.ravel(), size)
        number = np.pad(number, (0, size - len(number))) + np.bincount(visits, block.predictions.sum(axis=0), size)
    objective = AddConstantObjective(np.concatenate([mass, number[1:], [0.0]]), np.arange(1, len(number)), n_states)
    alpha = objective.minimum().alpha
    return float(np.clip(1.0 if np.isnan(alpha) else alpha, 1e-6, 1e6))


def _chain_kl(family: Family, values: Array, prefixes: Prefixes) -> Array:
    """Return Σ KL(p̂ ‖ rule) of each chain, shape (G,)."""
    total = prefixes.information.copy()
    for block in prefixes.blocks:
        loss = block_values(family, values, block, hessian=False)[0]
        total += block.chain_sums(loss, prefixes.n_chains)
    return _without_rounding(total, prefixes)


def _without_rounding(kl: Array, prefixes: Prefixes) -> Array:
    """Return each chain's Σ KL, 0 where it is 0 but for rounding."""
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
    kl = prefixes.information.copy()
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
    scores *= slopes
    hessian = hessian * np.outer(slopes, slopes) + np.diag(gradient * bends)
    used = prefixes.number > 0
    uniform = prefixes.information + prefixes.number * np.log(prefixes.n_states)
    hessian /= prefixes.number.sum()  # a prefix, as the flatness of a parameter is told
    scores /= prefixes.number.sum()
    return FamilyFit(
        family.name,
        _parameters(family, minimum.at, bounds(family, prefixes.blocks), scores[used], hessian, level),
        float(kl.sum() / prefixes.number.sum()),
        _ratio(heldout, heldout_number, level),
        _ratio(reference - heldout, heldout_number, level),
        _explained(kl, uniform, level),
    )


def _ratio(top: Array, bottom: Array, level: float) -> Estimate:
    if not np.isfinite(top).all() or not bottom.sum():
        total = float(top.sum())
        value = total if np.isinf(total) else np.nan
        note = "infinite in a chain" if np.isinf(top).any() else "there is no second half to speak of"
        return Estimate(value, np.nan, np.nan, np.nan, note)
    found = ratio_intervals(RatioMoments.of(top[:, None], bottom[:, None]), level=level)
    estimate, se, low, high = (float(x[0]) for x in (found.estimate, found.se, found.low, found.high))
    return Estimate(estimate, se, low, high, found.notes[0])


def _explained(kl: Array, uniform: Array, level: float) -> Estimate:
    rest = _ratio(kl, np.maximum(uniform, 0.0), level)
    return Estimate(1.0 - rest.estimate, rest.se, 1.0 - rest.high, 1.0 - rest.low, rest.note)


def _parameters(
    family: Family, at: Coordinates, edges: tuple[Array, Array], scores: Array, hessian: Array, level: float
) -> tuple[ParameterFit, ...]:
    """Return estimates with clustered sandwich intervals.

    `scores` and `hessian` are a prefix's, in fitted coordinates; `edges` are how far those may go.
    """
    size, n_chains = len(family.parameters), len(scores)
    kinds = [parameter.kind for parameter in family.parameters]
    # Where e^±10 makes no difference any more, the parameter was on its way to the boundary.
    flat = hessian.diagonal() <= _FLAT
    low_edge, high_edge = np.where(flat, np.maximum(edges[0], -NEAR_EDGE), edges[0] + 1e-6), edges[1] - 1e-6
    high_edge = np.where(flat, np.minimum(high_edge, NEAR_EDGE), high_edge)
    outside = (at.free <= low_edge) | (at.free >= high_edge)
    at_edge = [i for i in range(size) if i not in at.pinned and kinds[i] != "real" and outside[i]]
    inner = [i for i in range(size) if i not in at.pinned and i not in at_edge]
    free = [i for i in inner if hessian[i, i] > _FLAT]
    identified = bool(free) and not _singular(hessian[np.ix_(free, free)])
    values = at.values(family)
    t = t_quantile(0.5 + 0.5 * level, max(n_chains - 1, 1))
    covariance = np.full((size, size), np.nan)
    if identified and n_chains > 1:
        inverse = np.linalg.inv(hessian[np.ix_(free, free)])
        meat = scores[:, free].T @ scores[:, free] * (n_chains / (n_chains - 1))
        covariance[np.ix_(free, free)] = inverse @ meat @ inverse
    fits = []
    for index, parameter in enumerate(family.parameters):
        value = float(values[index])
        if index in at.pinned:
            low, high = _one_sided(index, value, free if identified else [], scores, hessian, t)
            fits.append(ParameterFit(parameter.name, value, np.nan, low, high, True, True, "at the boundary"))
        elif index in at_edge:
            limit = 0.0 if at.free[index] < 0 else 1.0 if kinds[index] == "share" else np.inf
            note = "at the boundary: no interval"
            fits.append(ParameterFit(parameter.name, limit, np.nan, np.nan, np.nan, True, True, note))
        elif index not in free or not identified:
            note = "not identified: other values describe the estimator as well"
            fits.append(ParameterFit(parameter.name, np.nan, np.nan, np.nan, np.nan, False, False, note))
        else:
            se = float(np.sqrt(np.maximum(covariance[index, index], 0.0)))
            low, high = (natural(kinds[index], at.free[index] + side * t * se) for side in (-1.0, 1.0))
            slope = {"real": 1.0, "share": value * (1.0 - value)}.get(kinds[index], value)
            note = TOO_FEW if n_chains < 2 else ""
            fits.append(ParameterFit(parameter.name, value, slope * se, low, high, False, True, note))
    return tuple(fits) if family.reported is None else _reported(family, fits, covariance, at, t)


def _reported(
    family: Family, fits: list[ParameterFit], covariance: Array, at: Coordinates, t: float
) -> tuple[ParameterFit, ...]:
    """Turn what was fitted into what is reported; where the two differ, the interval is symmetric."""
    assert family.reported is not None
    reported, jacobian = family.reported(at.values(family))
    slopes, _ = at.slopes(family)
    out = []
    for index, fit in enumerate(fits):
        parts = [fits[i] for i in np.flatnonzero(jacobian[index])]
        if len(parts) == 1:
            out.append(fit)
            continue
        boundary = any(part.boundary for part in parts)
        known = all(part.identified and np.isfinite(part.estimate) for part in parts)
        value = float(reported[index]) if known else np.nan
        row = jacobian[index] * slopes
        se = np.nan if boundary else float(np.sqrt(np.maximum(row @ covariance @ row, 0.0)))
        note = "; ".join(dict.fromkeys(part.note for part in parts if part.note))
        out.append(ParameterFit(fit.name, value, se, value - t * se, value + t * se, boundary, known, note))
    return tuple(out)


def _one_sided(
    index: int, value: float, free: list[int], scores: Array, hessian: Array, t: float
) -> tuple[float, float]:
    """Return where a Newton step from the boundary, plus or minus t standard errors, may lead.

    It is the clustered efficient score inverted, the score taken to be linear and the other parameters profiled out.
    """
    n_chains = len(scores)
    if n_chains < 2:
        return np.nan, np.nan
    efficient, information = scores[:, index], hessian[index, index]
    if free:
        along = np.linalg.solve(hessian[np.ix_(free, free)], hessian[free, index])
        efficient = efficient - scores[:, free] @ along
        information = information - hessian[index, free] @ along
    inward = 1.0 if value == 0.0 else -1.0
    spread = ((efficient - efficient.mean()) ** 2).sum() * n_chains / (n_chains - 1)
    room = t * float(np.sqrt(spread)) - inward * float(efficient.sum())
    reach = 0.0 if room <= 0.0 else float(room / information) if information > 0 else np.nan
    return (0.0, reach) if value == 0.0 else (value - reach, value)


def _singular(hessian: Array) -> bool:
    scale = np.sqrt(np.maximum(hessian.diagonal(), 0.0))
    if not (scale > 0).all():
        return True
    return bool(np.linalg.eigvalsh(hessian / np.outer(scale, scale)).min() < _SINGULAR)
