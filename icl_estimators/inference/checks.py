"""Checks of a study: numbers that must agree, as z-scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.inference.intervals.mean import moment_notes
from icl_estimators.inference.moments import Moments
from icl_estimators.notes import Code, Note
from icl_estimators.validation import InputError

__all__ = ["Check", "agreement_check", "zero_mean_check"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """Estimates that should be 0, with their standard errors; z is standard normal if they are, shape (D,) each."""

    estimate: Array
    se: Array
    z: Array
    notes: tuple[str, ...]


def zero_mean_check(moments: Moments) -> Check:
    """Test that values have mean 0.

    With values (realised KL of the Bayes predictive − ρ), this is the self-check of the Rao-Blackwell identity:
    given the prefix, the realised KL has mean ρ (:func:`icl_estimators.sources.posterior_kl_floor`), so that the
    mean is 0 at every context length exactly if prior, start law, tokens and truth belong together.

    Parameters
    ----------
    moments : Moments
        Of one value per chain.

    Returns
    -------
    Check

    Examples
    --------
    >>> float(zero_mean_check(Moments.of([[1.0], [3.0]])).z[0])
    2.0
    """
    return _check(moments.mean, moments.standard_error, moment_notes(moments))


def agreement_check(first: Moments, second: Moments) -> Check:
    """Test that two *independent* sets of chains have the same means.

    Parameters
    ----------
    first, second : Moments
        Of one value per chain each, for instance the mean squared error of the nested design and the squared
        error of the risk design; the numbers of chains may differ.

    Returns
    -------
    Check
        `estimate` is first − second.

    Raises
    ------
    InputError
        If the coordinates differ in number.

    Examples
    --------
    >>> check = agreement_check(Moments.of([[1.0], [3.0]]), Moments.of([[0.0], [2.0]]))
    >>> float(check.estimate[0]), round(float(check.se[0]), 6)
    (1.0, 1.414214)
    """
    if first.size != second.size:
        raise InputError(f"{first.size} and {second.size} coordinates cannot be compared")
    sides = [np.where(moments.finite, moments.mean, np.nan) for moments in (first, second)]
    se = np.sqrt(first.standard_error**2 + second.standard_error**2)
    notes = (a or b for a, b in zip(moment_notes(first), moment_notes(second), strict=True))
    return _check(sides[0] - sides[1], se, tuple(notes))


def _check(estimate: Array, se: Array, notes: tuple[str, ...]) -> Check:
    z = np.full(estimate.shape, np.nan)
    np.divide(estimate, se, out=z, where=np.isfinite(estimate) & (se > 0))
    constant = np.isfinite(estimate) & (se == 0)
    notes = tuple(note or (Note(Code.NO_Z) if still else "") for note, still in zip(notes, constant, strict=True))
    return Check(estimate, se, z, notes)
