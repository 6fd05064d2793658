"""Whether a trained model's regret at the longest context lies above its least one: paired, on the same chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from icl_estimators.experiments.study import Study
from icl_estimators.inference import Moments, simultaneous_band

__all__ = ["last_less_earlier", "regret_since_least"]


def last_less_earlier(moments: Moments) -> Moments:
    """Return the moments of x_T − x_n for n = 1 … T − 1 from those of x_1 … x_T, which hold covariances.

    Examples
    --------
    >>> found = last_less_earlier(Moments.of([[1.0, 0.0, 2.0], [3.0, 1.0, 2.0]]))
    >>> found.mean.tolist(), found.variance.tolist()
    ([0.0, 1.5], [2.0, 0.5])
    """
    size = moments.size
    form = np.hstack([-np.eye(size - 1), np.ones((size - 1, 1))])
    zero = np.zeros(size - 1, dtype=np.int64)
    return Moments(moments.count, form @ moments.centre, form @ moments.scatter @ form.T, zero, zero)


def regret_since_least(study: Study, regret: Moments) -> dict[str, Any] | None:
    """Return the regret at T minus the least regret, for run.json.

    Parameters
    ----------
    study : Study
    regret : Moments
        At context lengths 1 … T and their mean, with covariances.

    Returns
    -------
    dict or None
        `context_length` of the least regret, `difference`, `ci_low` and `ci_high`; None if the least is the last, or a
        regret is not finite.

    Notes
    -----
    The length of the least regret is chosen by the data. So the interval is that of a sup-t band over all differences
    x_T − x_n, n < T: it covers whichever length is chosen. The estimate itself is biased upwards by the choice.
    """
    curve = regret.select(slice(0, study.length))
    if not curve.finite.all() or curve.count < 2:
        return None
    least = int(curve.mean.argmin())
    if least == study.length - 1:
        return None
    apart = last_less_earlier(curve)
    band = simultaneous_band(apart, level=study.level)
    return {
        "context_length": least + 1,
        "difference": float(apart.mean[least]),
        "ci_low": float(band.low[least]),
        "ci_high": float(band.high[least]),
    }
