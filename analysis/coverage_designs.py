"""The small studies of the coverage study: how each is drawn, and the true value of what its tables estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.coverage_rules import FAMILY_RULES, Run, TableRule, family_rule, noisy
from analysis.coverage_truth import CHAINS, STATES, Nested, Prefixes, Runs, Spread, predictions_of
from icl_estimators import compare, effective_smoothing, exact_risk, get
from icl_estimators.estimators import Estimator
from icl_estimators.experiments.compare import Comparison
from icl_estimators.inference import attention_quantities, fitted_values

__all__ = ["CHAINS_OF_STUDY", "NOMINAL", "Design", "Key", "Seen", "designs"]

Array = NDArray[np.float64]
Curve = dict[tuple[str, str], float]
"""True values by (metric, context length)."""

NOMINAL = 0.95
LENGTH = 6
CHAINS_OF_STUDY = 200

BIG = 1_000_000  # seeds of small studies start here, far from those of other analyses

Key = tuple[str, str, str, str]
"""Kind, estimator, metric or parameter, and context length, visits or the like."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One interval of one small study beside the truth."""

    key: Key
    low: float
    high: float
    truth: float


class Design:
    """A small study that is drawn many times.

    Attributes
    ----------
    name : str
    sequences : int
        S, of the design that the rows are of.
    runs : int
        J training runs, 0 where there are none.
    """

    name: str
    sequences: int
    runs: int = 0

    def draw(self, seed: int) -> list[Seen]:
        """Draw one small study and return its intervals with their truths."""
        raise NotImplementedError

    def method(self, key: Key) -> str:
        """Return how the true values of a row were found."""
        return EXACT

    def nominal(self, key: Key) -> float:
        """Return the coverage that a row should have: a true boundary can be missed on one side only."""
        return 0.5 + 0.5 * NOMINAL if key[0] == AT_BOUNDARY else NOMINAL


EXACT = "enumeration of all prefixes"
GIVEN_CHAIN = f"enumeration given each of {CHAINS:,} chains"
CONDITIONAL = "enumeration, given the training runs or the fit"
QUADRATURE = "enumeration and quadrature over training runs"
BY_CONSTRUCTION = "by construction"

AT_BOUNDARY = "parameter at the boundary"
HELD_OUT = "held-out residual and gain"

SHOWN = ("1", "2", str(LENGTH), "mean")
SHOWN_VISITS = (1, 2, 4)
BINS = (0, 3, 6, 9)

_EXACT = ("kl_nats", "regret_nats", "p_infinite", "total_variation", "squared_error", "log_loss_nats")
_NESTED = ("bias_squared", "variance", "kl_bias_nats", "kl_variance_nats")


def _with_mean(values: Array) -> dict[str, float]:
    """Return values by context length 1 … T, and their mean."""
    labels = [*map(str, range(1, len(values) + 1)), "mean"]
    return dict(zip(labels, [*map(float, values), float(np.mean(values))], strict=True))


def _risk_truth(rule: Estimator, prefixes: Prefixes, nested: Nested) -> Curve:
    """Return true values by (metric, context length)."""
    found: Curve = {}
    exact = exact_risk(rule, prefixes.length).metrics
    for metric in (*_EXACT, "kl_finite_nats"):
        found |= {(metric, at): value for at, value in _with_mean(exact[metric]).items()}
    found |= {("kl_rb_nats", at): truth for (metric, at), truth in found.items() if metric == "kl_nats"}
    found |= {("hellinger", at): v for at, v in _with_mean(nested.values["hellinger"]).items()}
    return found


def _differences(found: Curve, other: Curve) -> Curve:
    with np.errstate(invalid="ignore"):
        return {k: float(np.subtract(t, other[k])) for k, t in found.items() if k in other}


def _number(cell: Any) -> float:
    return float(cell) if cell is not None else float("nan")


def _label(cell: Any) -> str:
    """Return a label of a row as text; a column with empty cells holds whole numbers as floats."""
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return ""
    return str(int(cell)) if isinstance(cell, float) else str(cell)


_KINDS = {"p_infinite": "share (Wilson)", "kl_finite_nats": "mean given that KL is finite"}


def _risk_rows(frame: pd.DataFrame, truth: Mapping[str, Curve], kind: str) -> list[Seen]:
    """Pointwise intervals, and whether a band holds all true values at once."""
    seen: list[Seen] = []
    for row in _rows(frame):
        found = truth.get(row.estimator, {}).get((row.metric, _label(row.context_length)))
        if found is not None and _label(row.context_length) in SHOWN:
            what = _KINDS.get(row.metric, kind)
            key = (what, row.estimator, row.metric, _label(row.context_length))
            seen.append(Seen(key, _number(row.ci_low), _number(row.ci_high), found))
    if "band_low" in frame:
        for (name, metric), rows in frame.groupby(["estimator", "metric"], sort=False):
            curve = truth.get(str(name), {})
            values = np.array([curve.get((metric, at), np.nan) for at in _labels(rows)])
            low, high = rows["band_low"].to_numpy(float), rows["band_high"].to_numpy(float)
            known = np.isfinite(values) & np.isfinite(low) & (high > low)
            if known.sum() >= 2:
                seen.append(
                    _joint((f"simultaneous band, {kind}", str(name), str(metric), "all n"), low, high, values, known)
                )
    return seen


def _rows(frame: pd.DataFrame) -> Iterator[Any]:
    return frame.itertuples(index=False)


def _labels(rows: pd.DataFrame) -> list[str]:
    return [_label(cell) for cell in rows["context_length"]]


def _joint(key: Key, low: Array, high: Array, values: Array, known: NDArray[np.bool_]) -> Seen:
    """Turn many intervals into one about the worst-placed value: inside if all are."""
    low, high, values = low[known], high[known], values[known]
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    worst = int(np.argmax(np.abs(values - centre) / half))
    return Seen(key, float(low[worst]), float(high[worst]), float(values[worst]))


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
        rules = [get("transformer"), noisy_rule, get("krichevsky-trofimov"), self.reference]
        self.rules: list[Estimator] = rules if self.nested else [*rules, get("bigram"), get("unigram")]
        self.truth: dict[str, Curve] = {}
        self.parts: dict[str, Curve] = {}
        self.signed: dict[str, Array] = {}
        self.predictions = {rule.name: predictions_of(rule, prefixes) for rule in self.rules}
        for rule in self.rules:
            nested = Nested.of(self.predictions[rule.name], prefixes, self.n_chains)
            self.truth[rule.name] = _risk_truth(rule, prefixes, nested)
            self.signed[rule.name] = nested.signed_bias
            parts = {
                (metric, at): value for metric in _NESTED for at, value in _with_mean(nested.values[metric]).items()
            }
            parts |= {("mse", at): t for (m, at), t in self.truth[rule.name].items() if m == "squared_error"}
            if self.nested:
                weight = _with_mean(nested.split_weight(self.sequences))
                parts |= {("split_weight", at): value for at, value in weight.items()}
            self.parts[rule.name] = parts
        other = self.truth[self.reference.name]
        self.apart = {name: _differences(found, other) for name, found in self.truth.items() if found is not other}
        self.attention = self._attention()

    def method(self, key: Key) -> str:
        """As :class:`Design`."""
        kind, _, metric, _ = key
        nested = metric in (*_NESTED, "split_weight", "hellinger") or kind == "signed bias"
        return GIVEN_CHAIN if nested else EXACT

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
        for row in _rows(result.signed_bias):
            at, which = _label(row.context_length), round(10 * row.bin_low)
            if at in SHOWN and which in BINS:
                truth = self.signed[row.estimator][LENGTH if at == "mean" else int(at) - 1, which]
                key = ("signed bias", row.estimator, f"bin from {row.bin_low:.1f}", at)
                seen.append(Seen(key, row.ci_low, row.ci_high, float(truth)))
        return seen

    def _attention_rows(self, result: Comparison) -> list[Seen]:
        return [
            Seen(("attention", row.estimator, row.quantity, str(row.context_length)), row.ci_low, row.ci_high, truth)
            for row in _rows(result.attention)
            if (truth := self.attention.get((row.quantity, _label(row.context_length)))) is not None
            and _label(row.context_length) in SHOWN
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


def _family_truths(prefixes: Prefixes) -> tuple[list[TableRule], dict[str, dict[str, tuple[float, ...]]]]:
    """Return rules with noise, and by rule the parameters of the families that it is a member of."""
    plain: dict[str, tuple[float, ...]] = {
        "add-constant": (1.0,),
        "affine": (1.0, 0.0),
        "bonus": (1.0, 0.0),
        "unigram-mixture": (1.0, 0.0),
        "recency": (1.0, 1.0),
        "asymmetric": (1.0, 1.0, 1.0),
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


_MEMBERS = ("affine", "bonus", "unigram-mixture", "recency", "asymmetric")

BOUNDARY = {("affine", "pseudo_count_per_visit"), ("unigram-mixture", "unigram_share")}
"""Parameters of the noisy add-one rule that lie on the boundary of what they may be."""


@dataclass(eq=False)
class Smoothing(Design):
    """Pseudo-counts overall, by context length and by visits; families in the interior and at the boundary."""

    sequences: int
    families: bool
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"{'families' if self.families else 'pseudo-counts'}, S = {self.sequences}"
        self.prefixes = prefixes = Prefixes(LENGTH)
        rules, self.members = _family_truths(prefixes)
        self.rules: list[Estimator] = list(rules) if self.families else [get("transformer"), rules[0], get("unigram")]
        self.predictions = {rule.name: predictions_of(rule, prefixes) for rule in self.rules}
        self.plain: dict[tuple[str, str, str], float] = {}
        groups = [("overall", 0), *(("context-length", n) for n in (2, LENGTH)), *(("visits", v) for v in SHOWN_VISITS)]
        for name, predictions in self.predictions.items():
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
        self.gamma = {name: prefixes.temperature(p) for name, p in self.predictions.items()} if self.families else {}
        uniform = [np.full_like(group.counts, 1.0 / STATES, dtype=float) for group in prefixes.groups]
        self.information = {name: prefixes.rule_kl(p, uniform) for name, p in self.predictions.items()}

    def method(self, key: Key) -> str:
        """As :class:`Design`."""
        kind, _, parameter, _ = key
        if kind == HELD_OUT:
            return CONDITIONAL
        family = parameter.partition(":")[0]
        return BY_CONSTRUCTION if kind == AT_BOUNDARY or family in _MEMBERS else EXACT

    def _smooth(self, chains: int, seed: int) -> pd.DataFrame:
        families = tuple(FAMILY_RULES) if self.families else ()
        return effective_smoothing(
            self.rules,
            by=("overall",) if self.families else ("overall", "context-length", "visits"),
            families=families,
            interventions=False,
            chains=chains,
            sequences_per_chain=self.sequences,
            length=LENGTH,
            seed=BIG + seed,
            level=NOMINAL,
        ).smoothing

    def draw(self, seed: int) -> list[Seen]:
        """As :class:`Design`."""
        frame = self._smooth(CHAINS_OF_STUDY, seed)
        frame = frame[frame["estimator"].isin(list(self.predictions))]
        if not self.families:
            return self._plain(frame)
        frame = frame[frame["family"].isin(list(FAMILY_RULES))]
        half = self._smooth(
            CHAINS_OF_STUDY // 2, seed
        )  # the first half's chains: what held-out residuals are fitted to
        fits = {
            (name, family): tuple(rows.set_index("parameter").loc[list(FAMILY_RULES[family][0]), "estimate"])
            for (name, family), rows in half.groupby(["estimator", "family"], sort=False)
            if name in self.predictions and family in FAMILY_RULES
        }
        seen = []
        for row in _rows(frame):
            truth = self._family_truth(row.estimator, row.family, row.parameter, fits)
            if truth is not None:
                kind = "parameter of a family"
                if row.estimator == "noisy add-one" and (row.family, row.parameter) in BOUNDARY:
                    kind = AT_BOUNDARY
                elif row.parameter in ("residual_kl_heldout_nats", "heldout_gain_nats"):
                    kind = HELD_OUT
                elif row.parameter == "explained":
                    kind = "share explained by a family"
                key = (kind, row.estimator, f"{row.family}: {row.parameter}", "overall")
                seen.append(Seen(key, row.ci_low, row.ci_high, truth))
        return seen

    def _family_truth(
        self, name: str, family: str, parameter: str, fits: Mapping[tuple[str, str], tuple[float, ...]]
    ) -> float | None:
        names = FAMILY_RULES[family][0]
        values = self.members[name].get(family)
        if family == "temperature":
            values = (self.gamma[name],)
        if family == "add-constant":
            values = (self.plain[name, "pseudo_count", "overall"],)
        predictions = self.predictions[name]
        if parameter in names:
            return None if values is None else values[names.index(parameter)]
        if parameter == "explained" and values is not None:
            residual = self.prefixes.rule_kl(predictions, family_rule(family, values, self.prefixes))
            return 1.0 - residual / self.information[name]
        if parameter in ("residual_kl_heldout_nats", "heldout_gain_nats"):
            residuals = []
            for one in ("add-constant", family):
                fit = fits[name, one]
                if not np.isfinite(fit).all():
                    return float("nan")
                residuals.append(self.prefixes.rule_kl(predictions, family_rule(one, fit, self.prefixes)))
            return residuals[1] if parameter.startswith("residual") else residuals[0] - residuals[1]
        return None

    def _plain(self, frame: pd.DataFrame) -> list[Seen]:
        seen = []
        for row in _rows(frame):
            value = _label(row.value)
            label = row.by if row.by == "overall" else f"{row.by} {value}"
            truth = self.plain.get((row.estimator, row.parameter, label))
            if truth is None:
                continue
            grouping = "overall" if row.by == "overall" else f"by {row.by.replace('-', ' ')}"
            kind = {
                "pseudo_count": f"pseudo-count {grouping}",
                "explained": "share explained by a pseudo-count",
            }.get(row.parameter, "mean prediction by count, KL where nothing is seen")
            seen.append(Seen((kind, row.estimator, row.parameter, label), row.ci_low, row.ci_high, truth))
        return seen


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
        for row in _rows(frame):
            label = _label(row.visits)
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


@dataclass(eq=False)
class Recipe(Design):
    """J training runs of a toy recipe with a random parameter, with fresh runs in every study.

    Parameters
    ----------
    runs : int
        J.
    sd : float
        Standard deviation of θ = log β: 0.5, where runs dominate, or 0.05, where chains do.
    """

    runs: int = 3
    sd: float = 0.5
    n_chains: int = CHAINS
    sequences: int = 4
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"recipe, J = {self.runs}, sd {self.sd:g}"
        self.prefixes = prefixes = Prefixes(LENGTH)
        size = 12
        nodes = 5.0 * self.sd * np.cos(np.pi * (np.arange(size) + 0.5) / size)
        rules = [Run("toy:node", float(theta)) for theta in nodes]
        by_node = [predictions_of(rule, prefixes) for rule in rules]
        self.recipe = Runs(by_node, nodes, prefixes, self.n_chains)
        exact = [exact_risk(rule, LENGTH).metrics for rule in rules]
        self.metrics = [m for m in _EXACT if m != "p_infinite"]
        self.risk = {metric: np.array([one[metric] for one in exact]) for metric in self.metrics}
        self.risk["kl_rb_nats"] = self.risk["kl_nats"]
        reference = exact_risk(get("add-one"), LENGTH).metrics
        self.reference = {metric: reference[metric] for metric in self.metrics} | {"kl_rb_nats": reference["kl_nats"]}
        self.alpha = np.array([np.log(prefixes.pseudo_count(p, "overall")[0]) for p in by_node])
        theta, share = Spread(self.sd).nodes
        self.mean_split = self.recipe.split(theta, share)
        at = self.recipe.weights(theta)
        self.mean_risk = {metric: share @ (at @ values) for metric, values in self.risk.items()}
        alpha = at @ self.alpha
        self.mean_alpha = float(share @ alpha)
        self.sd_alpha = float(np.sqrt(share @ (alpha - self.mean_alpha) ** 2))

    def draw(self, seed: int) -> list[Seen]:
        """As :class:`Design`."""
        theta = np.random.default_rng([seed, self.runs]).normal(0.0, self.sd, self.runs)
        rules = [Run(f"toy:{j}", float(value)) for j, value in enumerate(theta)]
        result = compare(
            [*rules, get("add-one")],
            chains=CHAINS_OF_STUDY,
            sequences_per_chain=self.sequences,
            decomposition_chains=CHAINS_OF_STUDY,
            decomposition_sequences=8,
            length=LENGTH,
            seed=BIG + seed,
            level=NOMINAL,
        )
        own = np.full(self.runs, 1.0 / self.runs)
        at = self.recipe.weights(theta)
        risk = {metric: own @ (at @ values) for metric, values in self.risk.items()}
        split = self.recipe.split(theta, own)
        # The variance over the runs at hand is with J − 1, and what is taken from bias² too.
        training = split["training_variance"] * self.runs / (self.runs - 1)
        split["bias_squared"] = split["bias_squared"] + split["training_variance"] - training
        split["training_variance"] = self.mean_split["training_variance"]
        truth = {
            "toy": self._truths(risk, split),
            "toy:recipe": self._truths(self.mean_risk, self.mean_split),
        }
        seen = []
        for table, apart in (("risk", False), ("differences", True)):
            for row in _rows(getattr(result, table)):
                label = _label(row.context_length)
                if row.estimator not in truth or label not in SHOWN:
                    continue
                value = truth[row.estimator].get((row.metric, label))
                if value is None or (apart and row.metric not in self.reference):
                    continue
                if apart:
                    value -= _with_mean(self.reference[row.metric])[label]
                of = "recipe" if row.estimator.endswith(":recipe") else "mean over runs"
                kind = f"{of}: {'difference' if apart else 'risk'}"
                seen.append(Seen((kind, row.estimator, row.metric, label), row.ci_low, row.ci_high, value))
        for row in _rows(result.decomposition):
            label = _label(row.context_length)
            value = truth.get(row.estimator, {}).get((row.metric, label))
            if value is None or label not in SHOWN or row.metric == "squared_error":
                continue
            of = "recipe" if row.estimator.endswith(":recipe") else "mean over runs"
            kind = "training variance" if row.metric == "training_variance" else f"{of}: bias and variance"
            seen.append(Seen((kind, row.estimator, row.metric, label), row.ci_low, row.ci_high, value))
        return seen + self._alpha(rules, theta, seed)

    def method(self, key: Key) -> str:
        """As :class:`Design`."""
        conditional = key[1] == "toy" and key[0] != "training variance"
        return CONDITIONAL if conditional else QUADRATURE

    def _truths(self, risk: Mapping[str, Array], split: Mapping[str, Array]) -> dict[tuple[str, str], float]:
        parts = dict(risk) | dict(split) | {"mse": risk["squared_error"]}
        return {(metric, at): v for metric, values in parts.items() for at, v in _with_mean(values).items()}

    def _alpha(self, rules: list[Run], theta: Array, seed: int) -> list[Seen]:
        frame = effective_smoothing(
            rules,
            by=("overall",),
            families=(),
            interventions=False,
            chains=CHAINS_OF_STUDY,
            sequences_per_chain=self.sequences,
            length=LENGTH,
            seed=BIG + seed,
            level=NOMINAL,
        ).smoothing
        truth = {"pseudo_count": float(np.exp(self.mean_alpha)), "between_seed_sd_log": self.sd_alpha}
        return [
            Seen(("recipe: pseudo-count", row.estimator, row.parameter, "overall"), row.ci_low, row.ci_high, value)
            for row in _rows(frame[frame["estimator"] == "toy:recipe"])
            if (value := truth.get(row.parameter)) is not None
        ]


def designs(n_chains: int = CHAINS) -> list[Design]:
    """Return every small study; `n_chains` for what is exact given the chain alone."""
    return [
        Risk(1, n_chains=n_chains),
        Risk(4, n_chains=n_chains),
        Risk(8, True, n_chains),
        Smoothing(1, False),
        Smoothing(4, False),
        Smoothing(4, True),
        Interventions(),
        Recipe(2, n_chains=n_chains),
        Recipe(3, n_chains=n_chains),
        Recipe(5, n_chains=n_chains),
        Recipe(10, n_chains=n_chains),
        Recipe(3, 0.05, n_chains=n_chains),
    ]
