"""What is measured, one entry per metric: every table and every report reads it from here.

To add a metric, add one entry to :data:`METRICS`, with a function in :mod:`icl_estimators.divergences` if it is new.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from icl_estimators.divergences import hellinger, kl_divergence, log_loss, squared_error, total_variation

if TYPE_CHECKING:
    from icl_estimators.sources import Posterior

__all__ = [
    "ATTENTION_QUANTITIES",
    "DECOMPOSITION_METRICS",
    "KL_METRICS",
    "MEANINGS",
    "METRICS",
    "Drawn",
    "GivenPrefix",
    "Metric",
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
    bayes, floor : ndarray of float64, shapes (…, K) and (…), or None
        The Bayes predictive q, and ρ, its posterior expected KL; None where the posterior is not exact.
    """

    predictions: Array
    truth: Array
    targets: NDArray[np.int64]
    bayes: Any = None
    floor: Any = None

    @cached_property
    def kl(self) -> Array:
        """KL of the truth from the predictions."""
        return kl_divergence(self.truth, self.predictions)

    @cached_property
    def regret(self) -> Array:
        """KL of the Bayes predictive, which must be known, from the predictions."""
        return kl_divergence(self.bayes, self.predictions)


@dataclass(frozen=True, eq=False)
class GivenPrefix:
    """Predictions for prefixes, and what is known of the law P of the next token given them.

    Attributes
    ----------
    predictions : ndarray of float64, shape (…, K)
    posterior : Posterior
    """

    predictions: Array
    posterior: Posterior

    @cached_property
    def regret(self) -> Array:
        """KL of the Bayes predictive from the predictions."""
        return kl_divergence(self.posterior.predictive, self.predictions)

    @cached_property
    def kl(self) -> Array:
        """E[KL(P ‖ p̂)] = ρ + KL(q ‖ p̂)."""
        return self.posterior.kl_floor + self.regret

    @property
    def total_variation(self) -> Array:
        """½ Σ_w E|P_w − p̂_w|."""
        return self.posterior.total_variation(self.predictions)

    @property
    def squared_error(self) -> Array:
        """Σ_w (q_w − p̂_w)² + Σ_w Var P_w."""
        return np.asarray(squared_error(self.posterior.predictive, self.predictions) + self.posterior.variance)

    @property
    def log_loss(self) -> Array:
        """−Σ_w q_w log p̂_w."""
        with np.errstate(divide="ignore"):
            return np.asarray(-(self.posterior.predictive * np.log(self.predictions)).sum(axis=-1))  # q_w > 0 always


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    name, title, unit, meaning : str
        In the tables; at the head of a column; empty if it has none; as reports print it.
    loss : callable
        Of drawn sequences, a value for each prediction.
    expected : callable, optional
        The exact posterior expectation of `loss` given a prefix; None where it has no closed form.
    summary : {"mean", "share", "finite mean"}
        What becomes of the values. The share is a mean of 0 and 1, with Wilson's interval; the finite mean is a ratio
        of two sums. Neither has a band, or a difference from the reference.
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
    unit: str
    meaning: str
    loss: Callable[[Drawn], Array]
    expected: Callable[[GivenPrefix], Array] | None = None
    summary: Literal["mean", "share", "finite mean"] = "mean"
    made_of: str = ""
    needs_posterior: bool = False
    paired: bool = True
    checked: bool = False

    @property
    def has_band(self) -> bool:
        """Whether it gets a band along context length."""
        return self.summary == "mean"

    @property
    def differenced(self) -> bool:
        """Whether estimators are compared with the reference by it."""
        return self.summary == "mean"


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "kl_nats",
            "KL",
            "nats",
            "KL(P[t_n] ‖ p̂), from the drawn chain's row to the prediction; inf if a possible token has p̂ = 0",
            loss=lambda d: d.kl,
            expected=lambda g: g.kl,
            checked=True,
        ),
        Metric(
            "kl_finite_nats",
            "KL if finite",
            "nats",
            "the mean of kl_nats over the sequences where it is finite",
            loss=lambda d: d.kl,
            expected=lambda g: g.kl,
            summary="finite mean",
            made_of="kl_nats",
            paired=False,
        ),
        Metric(
            "kl_rb_nats",
            "E KL",
            "nats",
            "kl_nats with the chain integrated out given the prefix: same mean, smaller variance",
            loss=lambda d: np.asarray(d.floor + d.regret),
            needs_posterior=True,
            paired=False,  # its differences are those of the regret
        ),
        Metric(
            "regret_nats",
            "regret",
            "nats",
            "KL(q ‖ p̂) with q the Bayes predictive: how far the KL exceeds that of the Bayes rule; never negative",
            loss=lambda d: d.regret,
            expected=lambda g: g.regret,
            needs_posterior=True,
            checked=True,
        ),
        Metric(
            "p_infinite",
            "P(KL=inf)",
            "",
            "share of sequences with infinite KL, with a Wilson interval",
            loss=lambda d: np.isinf(d.kl).astype(np.float64),
            expected=lambda g: np.isinf(g.kl).astype(np.float64),
            summary="share",
            made_of="kl_nats",
            paired=False,
            checked=True,
        ),
        Metric(
            "total_variation",
            "TV",
            "",
            "½ Σ|p̂ − P|",
            loss=lambda d: total_variation(d.truth, d.predictions),
            expected=lambda g: g.total_variation,
        ),
        Metric(
            "squared_error",
            "sq. error",
            "",
            "Σ(p̂ − P)², not divided by K",
            loss=lambda d: squared_error(d.truth, d.predictions),
            expected=lambda g: g.squared_error,
        ),
        Metric("hellinger", "Hellinger", "", "√(½ Σ(√p̂ − √P)²)", loss=lambda d: hellinger(d.truth, d.predictions)),
        Metric(
            "log_loss_nats",
            "log loss",
            "nats",
            "−log p̂ of the observed next token",
            loss=lambda d: log_loss(d.predictions, d.targets),
            expected=lambda g: g.log_loss,
        ),
    )
}
"""The metrics of risk.csv by name, in its order."""

KL_METRICS = ("kl_bias_nats", "kl_variance_nats")
"""The parts of the decomposition in KL, which need every p̂ above 0."""

DECOMPOSITION_METRICS: dict[str, str] = {
    "bias_squared": "squared bias of p̂ given the current token, unbiased (so it can be negative)",
    "variance": "variance of p̂ over sequences of one chain, given the current token",
    "training_variance": "variance over training runs of the mean prediction",
    "mse": "bias_squared + variance, exactly",
    "split_weight": "share of the weight in cells with two or more sequences, which separate bias from variance",
    "kl_bias_nats": "KL from the truth to the normalised geometric mean of predictions (Heskes 1998)",
    "kl_variance_nats": "the rest of the mean KL, jackknifed",
}
"""The metrics of decomposition.csv, in its order, and their meanings."""

ATTENTION_QUANTITIES: dict[str, str] = {
    "previous_token_mass": "layer 1: attention on the previous token",
    "self_mass": "layer 1: attention on the position itself",
    "match_mass": "layer 2: attention on positions that follow an earlier occurrence of the current token",
    "match_mass_chance": "the match mass if attention were uniform over all positions",
}
"""The quantities of attention.csv, in its order, and their meanings."""

MEANINGS: dict[str, str] = {
    **{metric.name: metric.meaning for metric in METRICS.values()},
    "log_loss_nats_lag_0": "log_loss_nats of one series, with a standard error that treats predictions as independent",
    "log_loss_nats_block_bootstrap": "log_loss_nats of one series, with a moving-block bootstrap interval",
    **DECOMPOSITION_METRICS,
    **ATTENTION_QUANTITIES,
}
"""What each metric and quantity of the tables means, in the order of a report."""
