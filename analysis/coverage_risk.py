"""Coverage of risk, differences, bands, signed bias, attention, bias and variance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.coverage_base import (
    BIG,
    BINS,
    CERTAIN,
    CHAINS_OF_STUDY,
    EXACT,
    EXACT_METRICS,
    GIVEN_CHAIN,
    LENGTH,
    NESTED_METRICS,
    NOMINAL,
    SHOWN,
    Curve,
    Design,
    Key,
    Seen,
    label_of,
    number,
    rows_of,
    with_mean,
)
from analysis.coverage_rules import noisy
from analysis.coverage_truth import CHAINS, Nested, Prefixes, predictions_of
from icl_estimators import compare, get
from icl_estimators.api import Comparison
from icl_estimators.estimators import Estimator
from icl_estimators.experiments.attention_quantities import attention_quantities
from icl_estimators.experiments.exact import exact_risk

__all__ = ["Risk"]

Array = NDArray[np.float64]


def _risk_truth(rule: Estimator, prefixes: Prefixes, nested: Nested) -> Curve:
    """Return true values by (metric, context length)."""
    found: Curve = {}
    exact = exact_risk(rule, prefixes.length).metrics
    for metric in (*EXACT_METRICS, "kl_finite_nats"):
        found |= {(metric, at): value for at, value in with_mean(exact[metric]).items()}
    found |= {("kl_rb_nats", at): truth for (metric, at), truth in found.items() if metric == "kl_nats"}
    found |= {("hellinger", at): v for at, v in with_mean(nested.values["hellinger"]).items()}
    return found


_KINDS = {"p_infinite": "share (Wilson)", "kl_finite_nats": "mean given that KL is finite"}


def _risk_rows(frame: pd.DataFrame, truth: Mapping[str, Curve], kind: str) -> list[Seen]:
    """Pointwise intervals, and whether a band holds all true values at once."""
    seen: list[Seen] = []
    for row in rows_of(frame):
        found = truth.get(row.estimator, {}).get((row.metric, label_of(row.context_length)))
        if found is not None and label_of(row.context_length) in SHOWN:
            what = _KINDS.get(row.metric, kind)
            if row.metric == "p_infinite" and found in (0.0, 1.0):
                what = CERTAIN
            key = (what, row.estimator, row.metric, label_of(row.context_length))
            seen.append(Seen(key, number(row.ci_low), number(row.ci_high), found))
    if "band_low" in frame:
        for (name, metric), rows in frame.groupby(["estimator", "metric"], sort=False):
            curve = truth.get(str(name), {})
            values = np.array([curve.get((str(metric), at), np.nan) for at in _labels(rows)])
            low, high = rows["band_low"].to_numpy(float), rows["band_high"].to_numpy(float)
            known = np.isfinite(values) & np.isfinite(low) & (high > low)
            if known.sum() >= 2:
                seen.append(
                    _joint((f"simultaneous band, {kind}", str(name), str(metric), "all n"), low, high, values, known)
                )
    return seen


def _labels(rows: pd.DataFrame) -> list[str]:
    return [label_of(cell) for cell in rows["context_length"]]


def _joint(key: Key, low: Array, high: Array, values: Array, known: NDArray[np.bool_]) -> Seen:
    """Turn many intervals into one about the worst-placed value: inside if all are."""
    low, high, values = low[known], high[known], values[known]
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    worst = int(np.argmax(np.abs(values - centre) / half))
    return Seen(key, float(low[worst]), float(high[worst]), float(values[worst]))


def _differences(found: Curve, other: Curve) -> Curve:
    with np.errstate(invalid="ignore"):
        return {k: float(np.subtract(t, other[k])) for k, t in found.items() if k in other}


@dataclass(eq=False)
class Risk(Design):
    """Risk, differences, signed bias, attention, pseudo-counts by visits; bias and variance by the nested design.

    Parameters
    ----------
    sequences : int
    nested : bool
        Whether it is the nested design of bias and variance, or that of risk.
    """

    sequences: int
    nested: bool = False
    n_chains: int = CHAINS
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"{'nested' if self.nested else 'risk'}, S = {self.sequences}"
        self.prefixes = prefixes = Prefixes(LENGTH)
        self.reference = get("add-one")
        noisy_rule = noisy("noisy add-one", {"add-constant": (1.0,)}, prefixes)
        # The transformer first: it is the one that has attention.
        self.rules: list[Estimator] = [get("transformer"), noisy_rule, self.reference]
        self.rules += [] if self.nested else [get("bigram")]
        self.truth: dict[str, Curve] = {}
        self.parts: dict[str, Curve] = {}
        self.signed: dict[str, Array] = {}
        self.predictions = {rule.name: predictions_of(rule, prefixes) for rule in self.rules}
        for rule in self.rules:
            nested = Nested.of(self.predictions[rule.name], prefixes, self.n_chains)
            self.truth[rule.name] = _risk_truth(rule, prefixes, nested)
            self.signed[rule.name] = nested.signed_bias
            parts = {
                (metric, at): value
                for metric in NESTED_METRICS
                for at, value in with_mean(nested.values[metric]).items()
            }
            parts |= {("mse", at): t for (m, at), t in self.truth[rule.name].items() if m == "squared_error"}
            if self.nested:
                weight = with_mean(nested.split_weight(self.sequences))
                parts |= {("split_weight", at): value for at, value in weight.items()}
            self.parts[rule.name] = parts
        other = self.truth[self.reference.name]
        self.apart = {name: _differences(found, other) for name, found in self.truth.items() if found is not other}
        self.attention = self._attention()

    def method(self, key: Key) -> str:
        """As :class:`Design`."""
        kind, _, metric, _ = key
        nested = metric in (*NESTED_METRICS, "split_weight", "hellinger") or kind == "signed bias"
        return GIVEN_CHAIN(self.n_chains) if nested else EXACT

    def _attention(self) -> dict[tuple[str, str], float]:
        rule: Any = self.rules[0]
        whole = self.prefixes.groups[-1]
        first, second = rule.attention(whole.tokens)
        extra = first.shape[1] - LENGTH
        found = attention_quantities(first[:, extra:, extra:], second[:, extra:, extra:], whole.tokens)
        return {
            (quantity, str(n + 1)): float(whole.probability @ getattr(found, quantity)[:, n])
            for quantity in ("previous_token_mass", "self_mass", "match_mass", "match_mass_chance")
            for n in range(1, LENGTH)
        }

    def draw(self, seed: int) -> list[Seen]:
        """As :class:`Design`."""
        result = compare(
            self.rules,
            reference=self.reference.name,
            chains=2 if self.nested else CHAINS_OF_STUDY,
            sequences_per_chain=1 if self.nested else self.sequences,
            decomposition_chains=CHAINS_OF_STUDY if self.nested else 0,
            decomposition_sequences=self.sequences if self.nested else 2,
            length=LENGTH,
            seed=BIG + seed,
            level=NOMINAL,
        )
        if self.nested:
            return _risk_rows(result.decomposition, self.parts, "bias and variance")
        seen = _risk_rows(result.risk, self.truth, "mean")
        seen += _risk_rows(result.differences.rename(columns={"difference": "estimate"}), self.apart, "difference")
        seen += self._signed_bias(result) + self._attention_rows(result) + self._pairs(result)
        return seen

    def _signed_bias(self, result: Comparison) -> list[Seen]:
        seen = []
        for row in rows_of(result.signed_bias):
            at, which = label_of(row.context_length), round(10 * row.bin_low)
            if at in SHOWN and which in BINS:
                truth = self.signed[row.estimator][LENGTH if at == "mean" else int(at) - 1, which]
                key = ("signed bias", row.estimator, f"bin from {row.bin_low:.1f}", at)
                seen.append(Seen(key, row.ci_low, row.ci_high, float(truth)))
        return seen

    def _attention_rows(self, result: Comparison) -> list[Seen]:
        return [
            Seen(("attention", row.estimator, row.quantity, str(row.context_length)), row.ci_low, row.ci_high, truth)
            for row in rows_of(result.attention)
            if (truth := self.attention.get((row.quantity, label_of(row.context_length)))) is not None
            and label_of(row.context_length) in SHOWN
        ]

    def _pairs(self, result: Comparison) -> list[Seen]:
        if "pairs" not in result.tables:
            return []
        seen = []
        frame = result.pairs
        for metric, rows in frame.groupby("metric", sort=False):
            values = np.array(
                [
                    self.truth[a][str(metric), "mean"] - self.truth[b][str(metric), "mean"]
                    for a, b in zip(rows["estimator"], rows["other"], strict=True)
                ]
            )
            low, high = rows["ci_low"].to_numpy(float), rows["ci_high"].to_numpy(float)
            known = np.isfinite(values) & np.isfinite(low) & (high > low)
            if known.sum() >= 2:
                seen.append(_joint(("pairs, all at once", "all pairs", str(metric), "mean"), low, high, values, known))
        return seen
