"""Pooled ratios Σ numerator / Σ denominator over chains, such as the mean KL where it is finite, and their mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from icl_estimators.inference.intervals.mean import Intervals, t_quantile
from icl_estimators.inference.moments import Moments, PairMoments
from icl_estimators.inference.trees import Summary
from icl_estimators.notes import Code, Note
from icl_estimators.validation import InputError, positive_int, probability_level

__all__ = ["MeanRatioMoments", "RatioMoments", "mean_ratio_intervals", "ratio_intervals"]

Array = NDArray[np.float64]

NO_DENOMINATOR = Note(Code.NO_DENOMINATOR)


@dataclass(frozen=True, slots=True, eq=False)
class RatioMoments(Summary):
    """Moments of numerators and denominators on the same chains.

    Attributes
    ----------
    parts : PairMoments
        Of numerator and denominator, D coordinates.
    contributing : ndarray of int64, shape (D,)
        Chains whose denominator is above 0. The others say nothing about the ratio.
    """

    parts: PairMoments
    contributing: NDArray[np.int64]

    @classmethod
    def of(cls, numerator: ArrayLike, denominator: ArrayLike) -> RatioMoments:
        """Return the moments of per-chain sums (or means), both of shape (G, D).

        Raises
        ------
        InputError
            If the shapes differ, a value is not finite, or a denominator is negative.
        """
        top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
        if not (np.isfinite(top).all() and np.isfinite(bottom).all() and (bottom >= 0).all()):
            raise InputError("numerators must be finite and denominators finite and not negative")
        return cls(PairMoments.of(top, bottom), (bottom > 0).sum(axis=0))


def ratio_intervals(
    moments: RatioMoments, *, level: float = 0.95, empty: str = NO_DENOMINATOR, fewest: int = 2
) -> Intervals:
    """Return Σ numerator / Σ denominator with its linearised standard error, clustered on chains.

    Parameters
    ----------
    moments : RatioMoments
    level : float
        Confidence level in (0, 1).
    empty : str
        The note where no chain contributes.
    fewest : int
        How many chains must contribute for an interval, at least 2.

    Returns
    -------
    Intervals
        `count` is the number of chains given. Where fewer than `fewest` chains contribute, standard error and limits
        are NaN, and the note says how many do.

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1, or `fewest` is below 2.

    Notes
    -----
    With a_g, b_g the chain's sums and r = Σa/Σb, se² = c/(c − 1)·Σ_g (a_g − r b_g)² / (Σ_g b_g)² over the c
    chains with b_g > 0, and t_{c−1}: the cluster-robust standard error of a weighted mean (Cochran 1977,
    section 6.3).

    Examples
    --------
    >>> chains = RatioMoments.of([[6.0], [15.0], [24.0]], [[3.0], [3.0], [3.0]])
    >>> result = ratio_intervals(chains)
    >>> float(result.estimate[0]), round(float(result.se[0]), 7)
    (5.0, 1.7320508)
    """
    level, fewest = probability_level(level), positive_int(fewest, "fewest", at_least=2)
    top, bottom = moments.parts.first, moments.parts.second
    count, contributing = moments.parts.count, moments.contributing
    estimate, se = np.full(top.size, np.nan), np.full(top.size, np.nan)
    np.divide(top.centre, bottom.centre, out=estimate, where=contributing > 0)
    known = contributing >= fewest
    residual = (
        top.scatter
        - estimate * (top.scatter + bottom.scatter - moments.parts.difference.scatter)
        + estimate**2 * bottom.scatter
    )
    scale = np.zeros(top.size)
    np.divide(contributing, (contributing - 1.0) * (count * bottom.centre) ** 2, out=scale, where=known)
    se[known] = np.sqrt(np.maximum(residual[known], 0.0) * scale[known])
    margin = se * stdtrit(np.maximum(contributing - 1, 1), 0.5 + 0.5 * level)
    notes = tuple("" if c >= fewest else _too_few(int(c), empty, fewest) for c in contributing)
    return Intervals(estimate, se, estimate - margin, estimate + margin, count, notes)


def _too_few(contributing: int, empty: str, fewest: int) -> str:
    if contributing < 2:
        return Note(Code.ONE_CHAIN_CONTRIBUTES) if contributing else empty
    return Note(Code.FEW_CHAINS_CONTRIBUTE, chains=contributing, fewest=fewest)


@dataclass(frozen=True, slots=True, eq=False)
class MeanRatioMoments(Summary):
    """Moments of numerators and denominators at T context lengths, and what the mean over them needs.

    Attributes
    ----------
    ratios : RatioMoments
        T coordinates.
    joint : Moments
        Of the T numerators and then the T denominators, with covariances.
    """

    ratios: RatioMoments
    joint: Moments

    @classmethod
    def of(cls, numerator: ArrayLike, denominator: ArrayLike) -> MeanRatioMoments:
        """Return the moments of per-chain sums (or means), both of shape (G, T).

        Raises
        ------
        InputError
            If the shapes differ, a value is not finite, or a denominator is negative.
        """
        ratios = RatioMoments.of(numerator, denominator)
        return cls(ratios, Moments.of(np.concatenate([numerator, denominator], axis=1)))


def mean_ratio_intervals(moments: MeanRatioMoments, *, level: float = 0.95, empty: str) -> Intervals:
    """Return the T ratios and, last, their mean, each with its linearised standard error, clustered on chains.

    Parameters
    ----------
    moments : MeanRatioMoments
    level : float
        Confidence level in (0, 1).
    empty : str
        The note where no chain contributes.

    Returns
    -------
    Intervals
        T + 1 coordinates. The mean is NaN, with the reason, if no chain contributes at some context length.

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1.

    Notes
    -----
    With a_gn, b_gn the chain's sums and r_n = Σa_n/Σb_n, what chain g adds to the mean ratio is e_g = (1/T)·Σ_n (a_gn −
    r_n b_gn)/Σ_h b_hn, and se² = c/(c − 1)·Σ_g e_g², t_{c−1}, with c the fewest chains that contribute at a context
    length. For T = 1 this is :func:`ratio_intervals`.

    Examples
    --------
    >>> top = [[6.0, 1.0], [15.0, 2.0], [24.0, 3.0]]
    >>> found = mean_ratio_intervals(MeanRatioMoments.of(top, [[3.0, 1.0]] * 3), empty="nothing")
    >>> found.estimate.tolist(), found.se.round(4).tolist()
    ([5.0, 2.0, 3.5], [1.7321, 0.5774, 1.1547])
    """
    level = probability_level(level)
    each = ratio_intervals(moments.ratios, level=level, empty=empty)
    contributing, count = moments.ratios.contributing, moments.joint.count
    length, fewest = len(contributing), int(contributing.min())
    mean = se = margin = np.nan
    note: str = ""
    if fewest == 0:
        note = Note(Code.NO_MEAN_OVER_LENGTHS, why=empty, n=1 + int(contributing.argmin()))
    else:
        mean = float(each.estimate.mean())
        weight = 1.0 / (length * count * moments.joint.centre[length:])
        form = np.concatenate([weight, -weight * each.estimate])
        square = max(float(form @ moments.joint.scatter @ form), 0.0)
        if fewest == 1:
            note = Note(Code.ONE_CHAIN_CONTRIBUTES_AT, n=1 + int(contributing.argmin()))
        else:
            se = float(np.sqrt(fewest / (fewest - 1) * square))
            margin = se * t_quantile(0.5 + 0.5 * level, fewest - 1)
    return Intervals(
        np.append(each.estimate, mean),
        np.append(each.se, se),
        np.append(each.low, mean - margin),
        np.append(each.high, mean + margin),
        each.count,
        (*each.notes, note),
    )
