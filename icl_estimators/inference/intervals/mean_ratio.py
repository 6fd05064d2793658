"""The mean over context lengths of ratios Σ numerator / Σ denominator, each over chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icl_estimators.inference.intervals.mean import Intervals, t_quantile
from icl_estimators.inference.intervals.ratio import RatioMoments, ratio_intervals
from icl_estimators.inference.moments import Moments
from icl_estimators.inference.trees import Summary
from icl_estimators.notes import Code, Note
from icl_estimators.validation import probability_level

__all__ = ["MeanRatioMoments", "mean_ratio_intervals"]


@dataclass(frozen=True, slots=True, eq=False)
class MeanRatioMoments(Summary):
    """Moments of numerators and denominators at T context lengths, with what their mean needs beside.

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
    length. For T = 1 this is :func:`~icl_estimators.inference.intervals.ratio.ratio_intervals`.

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
