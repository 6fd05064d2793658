"""What is measured, one entry per metric: every table and every report reads it from here.

To add a metric, add one entry to :data:`METRICS`, with a function in :mod:`icl_estimators.divergences` if it is new.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from icl_estimators.divergences import hellinger, kl_divergence, log_loss, squared_error, total_variation

__all__ = [
    "ATTENTION_QUANTITIES",
    "DECOMPOSITION_METRICS",
    "MEANINGS",
    "METRICS",
    "Drawn",
    "GivenPrefix",
    "Metric",
    "Summary",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Predictions for drawn sequences, and what is known of these.

    Attributes
    ----------
    predictions, truth : ndarray of float64, shape (…, K)
        p̂, and the row of the chain that the next token is drawn from.
    targets : ndarray of int64, shape (…)
        The token that came next.
    bayes : ndarray of float64, shape (…, K), or None
        The Bayes predictive q; None where the posterior is not exact.
    floor : ndarray of float64, shape (…), or None
        ρ, the posterior expected KL of q.
    """

    predictions: Array
    truth: Array
    targets: NDArray[np.int64]
    bayes: Array | None = None
    floor: Array | None = None

    @cached_property
    def kl(self) -> Array:
        """KL of the truth from the predictions."""
        return kl_divergence(self.truth, self.predictions)

    @cached_property
    def regret(self) -> Array:
        """KL of the Bayes predictive, which must be known, from the predictions."""
        assert self.bayes is not None
        return kl_divergence(self.bayes, self.predictions)


@dataclass(frozen=True, eq=False)
class GivenPrefix:
    """Predictions for prefixes; given one, the row P that is predicted is Dirichlet(a).

    Attributes
    ----------
    predictions, bayes : ndarray of float64, shape (…, K)
        c, and the posterior mean q of P.
    floor : ndarray of float64, shape (…)
        ρ = E[KL(P ‖ q)].
    a : ndarray of float64, shape (…, K)
        Prior plus counts; A = Σ_w a_w.
    """

    predictions: Array
    bayes: Array
    floor: Array
    a: Array

    @cached_property
    def regret(self) -> Array:
        """KL of the Bayes predictive from the predictions."""
        return kl_divergence(self.bayes, self.predictions)

    @cached_property
    def kl(self) -> Array:
        """E[KL(P ‖ c)] = ρ + KL(q ‖ c)."""
        return self.floor + self.regret

    @property
    def total_variation(self) -> Array:
        """½ Σ_w E|P_w − c_w| for P_w ~ Beta(a_w, A − a_w): E|P − c| = m − c + 2(c F_a(c) − m F_{a+1}(c))."""
        rest = self.a.sum(axis=-1, keepdims=True) - self.a
        mean = self.a / (self.a + rest)
        point = np.minimum(self.predictions, 1.0)  # float32 models may overstep by 1e-7
        below = self.predictions * betainc(self.a, rest, point) - mean * betainc(self.a + 1.0, rest, point)
        return np.asarray(0.5 * (mean - self.predictions + 2.0 * below).sum(axis=-1))

    @property
    def squared_error(self) -> Array:
        """Σ_w (q_w − c_w)² + Σ_w Var P_w, where Var P_w = q_w (1 − q_w)/(A + 1)."""
        spread = (self.bayes * (1.0 - self.bayes)).sum(axis=-1) / (self.a.sum(axis=-1) + 1.0)
        return np.asarray(squared_error(self.bayes, self.predictions) + spread)

    @property
    def log_loss(self) -> Array:
        """−Σ_w q_w log c_w."""
        with np.errstate(divide="ignore"):
            return np.asarray(-(self.bayes * np.log(self.predictions)).sum(axis=-1))  # q_w > 0 always


class Summary(Enum):
    """How values become one number."""

    MEAN = "mean"
    SHARE = "share"
    """The mean of values that are 0 or 1: Wilson's interval."""
    FINITE_MEAN = "mean of the finite values"
    """A ratio of two sums."""


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    name : str
        In the tables.
    title, short : str
        What text calls it, and what the head of a narrow column does.
    unit : str
        Empty if it has none.
    meaning : str
        Printed in reports.
    loss : callable, optional
        Of drawn sequences, a value for each prediction. None for what is made of another metric's values.
    expected : callable, optional
        The exact posterior expectation of `loss` given a prefix; None where it has no closed form.
    summary : Summary
    made_of : str
        The metric whose values it sums up in another way; empty if they are its own.
    needs_posterior : bool
        Whether `loss` is defined only where the posterior is exact.
    paired : bool
        Whether all pairs of estimators are compared by it.
    checked : bool
        Whether a study compares it with its exact value (checks.csv).
    """

    name: str
    title: str
    short: str
    unit: str
    meaning: str
    loss: Callable[[Drawn], Array] | None
    expected: Callable[[GivenPrefix], Array] | None = None
    summary: Summary = Summary.MEAN
    made_of: str = ""
    needs_posterior: bool = False
    paired: bool = True
    checked: bool = False

    @property
    def has_band(self) -> bool:
        """Whether it gets a band along context length."""
        return self.summary is Summary.MEAN

    @property
    def differenced(self) -> bool:
        """Whether estimators are compared with the reference by it."""
        return self.summary is Summary.MEAN

    @property
    def is_exact(self) -> bool:
        """Whether exact risk has it."""
        return self.expected is not None or self.summary is Summary.FINITE_MEAN


def _bayes_risk_plus_regret(drawn: Drawn) -> Array:
    assert drawn.floor is not None
    return np.asarray(drawn.floor + drawn.regret)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "kl_nats",
            "KL",
            "KL",
            "nats",
            "KL(P[t_n] ‖ p̂) of the prediction from the drawn chain's row; inf where a possible token got probability 0",
            loss=lambda drawn: drawn.kl,
            expected=lambda given: given.kl,
            checked=True,
        ),
        Metric(
            "kl_finite_nats",
            "KL where it is finite",
            "KL if finite",
            "nats",
            "the mean of kl_nats over the sequences where it is finite",
            loss=None,
            summary=Summary.FINITE_MEAN,
            made_of="kl_nats",
            paired=False,
        ),
        Metric(
            "kl_rb_nats",
            "KL given the prefix",
            "E KL",
            "nats",
            "kl_nats with the chain integrated out given the prefix: same mean, less noise",
            loss=_bayes_risk_plus_regret,
            needs_posterior=True,
            paired=False,  # its differences are those of the regret
        ),
        Metric(
            "regret_nats",
            "regret",
            "regret",
            "nats",
            "KL(q ‖ p̂) with q the Bayes predictive: the excess of KL over the Bayes rule's, never negative",
            loss=lambda drawn: drawn.regret,
            expected=lambda given: given.regret,
            needs_posterior=True,
            checked=True,
        ),
        Metric(
            "p_infinite",
            "share of infinite KL",
            "P(KL=inf)",
            "",
            "share of sequences with infinite KL; an estimate of it has a Wilson interval",
            loss=lambda drawn: np.isinf(drawn.kl).astype(np.float64),
            expected=lambda given: np.isinf(given.kl).astype(np.float64),
            summary=Summary.SHARE,
            made_of="kl_nats",
            paired=False,
            checked=True,
        ),
        Metric(
            "total_variation",
            "total variation",
            "TV",
            "",
            "½ Σ|p̂ − P|",
            loss=lambda drawn: total_variation(drawn.truth, drawn.predictions),
            expected=lambda given: given.total_variation,
        ),
        Metric(
            "squared_error",
            "squared error",
            "sq. error",
            "",
            "Σ(p̂ − P)², not divided by K",
            loss=lambda drawn: squared_error(drawn.truth, drawn.predictions),
            expected=lambda given: given.squared_error,
        ),
        Metric(
            "hellinger",
            "Hellinger distance",
            "Hellinger",
            "",
            "√(½ Σ(√p̂ − √P)²)",
            loss=lambda drawn: hellinger(drawn.truth, drawn.predictions),
        ),
        Metric(
            "log_loss_nats",
            "log loss",
            "log loss",
            "nats",
            "−log p̂ of the token that came next",
            loss=lambda drawn: log_loss(drawn.predictions, drawn.targets),
            expected=lambda given: given.log_loss,
        ),
    )
}
"""The metrics of risk.csv by name, in its order."""

DECOMPOSITION_METRICS: dict[str, str] = {
    "bias_squared": "squared bias of p̂ given the current token, unbiased (so it can come out below 0)",
    "variance": "variance of p̂ over sequences of one chain, given the current token",
    "training_variance": "variance over training runs of the mean prediction",
    "mse": "bias_squared + variance, exactly",
    "split_weight": "share of the weight with two sequences or more to tell bias from variance",
    "kl_bias_nats": "KL of the truth from the normalised geometric mean of predictions (Heskes 1998)",
    "kl_variance_nats": "the rest of the mean KL, jackknifed",
}
"""The metrics of decomposition.csv, in its order, and their meanings."""

ATTENTION_QUANTITIES: dict[str, str] = {
    "previous_token_mass": "layer 1: attention on the token before",
    "self_mass": "layer 1: attention on the position itself",
    "match_mass": "layer 2: attention on positions that follow an earlier occurrence of the current token",
    "match_mass_chance": "what even attention over all positions would put there",
}
"""The quantities of attention.csv, in its order, and their meanings."""

MEANINGS: dict[str, str] = {
    **{metric.name: metric.meaning for metric in METRICS.values()},
    "log_loss_nats_lag_0": "of one series, log_loss_nats with a standard error as if predictions were independent",
    "log_loss_nats_block_bootstrap": "of one series, log_loss_nats with an interval by the moving-block bootstrap",
    **DECOMPOSITION_METRICS,
    **ATTENTION_QUANTITIES,
}
"""What each metric and quantity of the tables means, in the order of a report."""
