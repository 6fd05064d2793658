"""Coverage of pseudo-counts, of families of smoothing rules, and of interventions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.coverage_base import (
    AT_BOUNDARY,
    BIG,
    BY_CONSTRUCTION,
    CHAINS_OF_STUDY,
    CONDITIONAL,
    EXACT,
    HELD_OUT,
    LENGTH,
    NOMINAL,
    SHOWN_VISITS,
    Design,
    Key,
    Seen,
    label_of,
    rows_of,
)
from analysis.coverage_rules import FAMILY_RULES, TableRule, family_rule, noisy
from analysis.coverage_truth import STATES, Prefixes, predictions_of
from icl_estimators import effective_smoothing, get
from icl_estimators.estimators import Estimator
from icl_estimators.pseudo_counts import fitted_values

__all__ = ["Families", "Interventions", "PseudoCounts"]

Array = NDArray[np.float64]


def _noisy_rules(prefixes: Prefixes) -> tuple[list[TableRule], dict[str, dict[str, tuple[float, ...]]]]:
    """Return rules with noise, and by rule the parameters of the families that it is a member of."""
    plain: dict[str, tuple[float, ...]] = {
        "add-constant": (1.0,),
        "affine": (1.0, 0.0),
        "unigram-mixture": (1.0, 0.0),
    }
    members: dict[str, dict[str, tuple[float, ...]]] = {
        "noisy add-one": plain,
        "noisy affine": {"affine": (0.5, 0.3)},
        "noisy bonus": {"bonus": (0.7, 0.6)},
        "noisy mixture": {"unigram-mixture": (0.6, 0.4)},
        "noisy recency": {"recency": (0.8, 0.7)},
        "noisy asymmetric": {"asymmetric": (0.5, 1.0, 1.5)},
        "noisy temperature": {"temperature": (2.0,)},
    }
    rules = [noisy(name, at, prefixes, seed=i, scale=0.5) for i, (name, at) in enumerate(members.items())]
    return rules, members


_HELD_OUT_ROWS = ("residual_kl_heldout_nats", "heldout_gain_nats")
HELD_OUT_RULES = ("noisy add-one",)

BOUNDARY = {("affine", "pseudo_count_per_visit"), ("unigram-mixture", "unigram_share")}
"""Parameters of the noisy add-one rule that lie on the boundary of what they may be."""


@dataclass(eq=False)
class PseudoCounts(Design):
    """Pseudo-counts overall, by context length and by visits, and the shares that they explain."""

    sequences: int
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"pseudo-counts, S = {self.sequences}"
        prefixes = Prefixes(LENGTH)
        self.rules: list[Estimator] = [get("transformer"), _noisy_rules(prefixes)[0][0], get("unigram")]
        self.plain: dict[tuple[str, str, str], float] = {}
        groups = [("overall", 0), *(("context-length", n) for n in (3, LENGTH)), *(("visits", v) for v in SHOWN_VISITS)]
        for rule in self.rules:
            name, predictions = rule.name, predictions_of(rule, prefixes)
            for by, value in groups:
                alpha, explained = prefixes.pseudo_count(predictions, by, value)
                label = by if by == "overall" else f"{by} {value}"
                self.plain[name, "pseudo_count", label] = alpha
                self.plain[name, "explained", label] = explained
            self.plain[name, "kl_nats", "visits 0"] = prefixes.unseen_kl(predictions)
            for visits in SHOWN_VISITS:
                for count in range(visits + 1):
                    mean = prefixes.prediction_at_count(predictions, visits, count)
                    self.plain[name, f"prediction_at_count_{count}", f"visits {visits}"] = mean

    def draw(self, seed: int) -> list[Seen]:
        """As :class:`Design`."""
        frame = _smooth(self.rules, (), CHAINS_OF_STUDY, self.sequences, seed)
        seen = []
        for row in rows_of(frame):
            value = label_of(row.value)
            label = row.by if row.by == "overall" else f"{row.by} {value}"
            truth = self.plain.get((row.estimator, row.parameter, label))
            if truth is None:
                continue
            grouping = "overall" if row.by == "overall" else f"by {row.by.replace('-', ' ')}"
            kind = {
                "pseudo_count": f"pseudo-count {grouping}",
                "explained": "share explained by a pseudo-count",
            }.get(row.parameter, "prediction by count, KL at n_v = 0")
            seen.append(Seen((kind, row.estimator, row.parameter, label), row.ci_low, row.ci_high, truth))
        return seen


@dataclass(eq=False)
class Families(Design):
    """Families of rules, each fitted to a rule of its own plus noise, in the interior; and at the boundary.

    Held-out residuals are those of the parameters fitted to the first half of the chains, and so are their true values:
    the study is drawn again with half as many chains, which are these.
    """

    sequences: int
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"families, S = {self.sequences}"
        self.prefixes = prefixes = Prefixes(LENGTH)
        self.rules, self.members = _noisy_rules(prefixes)
        self.predictions = {rule.name: predictions_of(rule, prefixes) for rule in self.rules}
        self.alpha = {name: prefixes.pseudo_count(p, "overall")[0] for name, p in self.predictions.items()}
        uniform = [np.full_like(group.counts, 1.0 / STATES, dtype=float) for group in prefixes.groups]
        self.information = {name: prefixes.rule_kl(p, uniform) for name, p in self.predictions.items()}

    def method(self, key: Key) -> str:
        """As :class:`Design`."""
        kind, _, parameter, _ = key
        if kind == HELD_OUT:
            return CONDITIONAL
        return EXACT if parameter.startswith("add-constant") or "explained" in parameter else BY_CONSTRUCTION

    def draw(self, seed: int) -> list[Seen]:
        """As :class:`Design`."""
        return [seen for rule in self.rules for seen in self._rows(rule, seed)]

    def _rows(self, rule: TableRule, seed: int) -> Iterator[Seen]:
        families = tuple(dict.fromkeys(("add-constant", *self.members[rule.name])))
        frame = _smooth([rule], families, CHAINS_OF_STUDY, self.sequences, seed)
        fits: dict[tuple[str, str], tuple[float, ...]] = {}
        if rule.name in HELD_OUT_RULES:
            half = _smooth([rule], families, CHAINS_OF_STUDY // 2, self.sequences, seed)
            half = half[half["estimator"] == rule.name]
            for family in families:
                rows = half[half["family"] == family].set_index("parameter")
                fits[rule.name, family] = tuple(rows.loc[list(FAMILY_RULES[family][0]), "estimate"])
        for row in rows_of(frame[(frame["estimator"] == rule.name) & frame["family"].isin(families)]):
            truth = self._family_truth(row.estimator, row.family, row.parameter, fits)
            if truth is None:
                continue
            kind = "parameter of a family"
            if row.estimator == "noisy add-one" and (row.family, row.parameter) in BOUNDARY:
                kind = AT_BOUNDARY
            elif row.parameter in _HELD_OUT_ROWS:
                kind = HELD_OUT
            elif row.parameter == "explained":
                kind = "share explained by a family"
            key = (kind, row.estimator, f"{row.family}: {row.parameter}", "overall")
            yield Seen(key, row.ci_low, row.ci_high, truth)

    def _family_truth(
        self, name: str, family: str, parameter: str, fits: Mapping[tuple[str, str], tuple[float, ...]]
    ) -> float | None:
        names = FAMILY_RULES[family][0]
        values = self.members[name].get(family)
        if family == "add-constant":
            values = (self.alpha[name],)
        predictions = self.predictions[name]
        if parameter in names:
            return None if values is None else values[names.index(parameter)]
        if parameter == "explained" and values is not None:
            residual = self.prefixes.rule_kl(predictions, family_rule(family, values, self.prefixes))
            return 1.0 - residual / self.information[name]
        if parameter in _HELD_OUT_ROWS and fits:
            residuals = []
            for one in ("add-constant", family):
                fit = fits[name, one]
                if not np.isfinite(fit).all():
                    return float("nan")
                residuals.append(self.prefixes.rule_kl(predictions, family_rule(one, fit, self.prefixes)))
            return residuals[1] if parameter.startswith("residual") else residuals[0] - residuals[1]
        return None


def _smooth(
    rules: Sequence[Estimator], families: Sequence[str], chains: int, sequences: int, seed: int
) -> pd.DataFrame:
    return effective_smoothing(
        rules,
        by=("overall",) if families else ("overall", "context-length", "visits"),
        families=families,
        interventions=False,
        chains=chains,
        sequences_per_chain=sequences,
        length=LENGTH,
        seed=BIG + seed,
        level=NOMINAL,
    ).smoothing


@dataclass(eq=False)
class Interventions(Design):
    """What a trained model's parts do."""

    sequences: int = 2
    name: str = "interventions"

    def __post_init__(self) -> None:
        from icl_estimators.estimators.intervened import Intervened
        from icl_estimators.transformer import INTERVENTIONS

        model: Any = get("transformer")
        self.model: Estimator = model
        self.prefixes = prefixes = Prefixes(LENGTH)
        rules: dict[str, Any] = {"intact": model}
        rules |= {one.name: Intervened(model, one) for one in INTERVENTIONS}
        self.truth: dict[tuple[str, str, str], float] = {}
        for name, rule in rules.items():
            predictions = predictions_of(rule, prefixes)
            for visits in (None, 0, *fitted_values("visits", LENGTH)):
                label = "" if visits is None else str(visits)
                self.truth[name, "regret_nats", label] = prefixes.regret(predictions, visits)
                if visits != 0:
                    by, value = ("overall", 0) if visits is None else ("visits", visits)
                    alpha, _ = prefixes.pseudo_count(predictions, by, value)
                    self.truth[name, "log_pseudo_count", label] = float(np.log(alpha))

    def draw(self, seed: int) -> list[Seen]:
        """As :class:`Design`."""
        frame = effective_smoothing(
            [self.model],
            by=("overall",),
            families=(),
            chains=CHAINS_OF_STUDY,
            sequences_per_chain=self.sequences,
            length=LENGTH,
            seed=BIG + seed,
            level=NOMINAL,
        ).interventions
        seen = []
        for row in rows_of(frame):
            label = label_of(row.visits)
            quantity = row.quantity.removesuffix("_from_add_one")
            truth = self.truth.get((row.intervention, quantity, label))
            if truth is None or label not in ("", "0", "1", "3"):
                continue
            if quantity == row.quantity:
                truth = self.truth["intact", quantity, label] - truth
            elif row.difference * row.estimate < 0:  # the add-one rule's, which is 0, less the model's
                truth = -truth
            key = ("intervention", row.intervention, row.quantity, label or "overall")
            seen.append(Seen(key, row.ci_low, row.ci_high, truth))
        return seen
