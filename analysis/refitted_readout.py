"""Is it the attention or the read-out? Exact attention under the trained read-out, and under one fitted to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.claims import Rule
from analysis.questions import LEVEL, Answer, Sizes
from icl_estimators import get, sample_chains
from icl_estimators.divergences import kl_divergence
from icl_estimators.estimators.intervened import Intervened
from icl_estimators.estimators.transformer import Transformer
from icl_estimators.experiments.mechanism import (
    AS_TRAINED,
    UNMATCHED,
    ReadOut,
    exact_frequencies,
    fit_read_out,
    read_out_law,
)
from icl_estimators.inference import Moments, PairMoments, mean_intervals, paired_differences
from icl_estimators.reporting.numbers import interval
from icl_estimators.sources import posterior_predictive, transition_counts
from icl_estimators.transformer.interventions import EXACT_ATTENTION, INTERVENTIONS

__all__ = ["answer"]

Array = NDArray[np.float64]
Tokens = NDArray[np.int64]

FITTED_ON = 4000
_BATCH = 1000
HELPS = Rule("spread attention helps the prediction if the regret with exact attention is larger", low=0.0)


def answer(sizes: Sizes) -> Answer:
    """Fit read-outs on a stream of their own; compare mean regrets on the same sequences."""
    own = sample_chains(
        range(min(FITTED_ON, sizes.many)),
        sequences_per_chain=1,
        length=sizes.length,
        seed=sizes.seed,
        purpose="tuning",
    )
    fitted = {
        fallback: fit_read_out(
            own.inputs,
            exact_frequencies(own.inputs, 3, fallback),
            posterior_predictive(transition_counts(own.inputs, 3), 1.0),
        )
        for fallback in UNMATCHED
    }
    intact = get("transformer")
    assert isinstance(intact, Transformer)
    exact = Intervened(intact, next(change for change in INTERVENTIONS if change.name == EXACT_ATTENTION))
    rules: dict[tuple[str, str, str], Callable[[Tokens], Array]] = {
        ("model's", "trained", ""): intact.predict_proba,
        ("exact", "trained", AS_TRAINED): exact.predict_proba,
    }
    for fallback, read_out in fitted.items():

        def predict(tokens: Tokens, fallback: str = fallback, read_out: ReadOut = read_out) -> Array:
            return read_out_law(tokens, exact_frequencies(tokens, 3, fallback), read_out)

        rules["exact", "refitted", fallback] = predict
    parts: dict[tuple[str, str, str], list[Array]] = {key: [] for key in rules}
    for first in range(0, sizes.many, _BATCH):
        chains = range(first, min(first + _BATCH, sizes.many))
        tokens = sample_chains(
            chains, sequences_per_chain=1, length=sizes.length, seed=sizes.seed, purpose="risk"
        ).inputs
        q = posterior_predictive(transition_counts(tokens, 3), 1.0)
        for key, rule in rules.items():
            parts[key].append(kl_divergence(q, rule(tokens)).mean(axis=1))
    regret = {key: np.concatenate(values)[:, None] for key, values in parts.items()}
    reference = regret["model's", "trained", ""]
    numbers = {"": (np.nan, np.nan), AS_TRAINED: (np.nan, np.nan), **fitted}
    rows = []
    for (attention, read_out, fallback), values in regret.items():
        mean = mean_intervals(Moments.of(values), level=LEVEL)
        apart = paired_differences(PairMoments.of(values, reference), level=LEVEL)
        more = (apart.difference[0], apart.low[0], apart.high[0]) if values is not reference else (np.nan,) * 3
        own_interval = (mean.estimate[0], mean.low[0], mean.high[0])
        rows.append((attention, read_out, fallback, *numbers[fallback], *own_interval, *more))
    columns = ["attention", "read_out", "fallback", "gamma", "bonus", "regret_nats", "ci_low", "ci_high"]
    frame = pd.DataFrame(rows, columns=[*columns, "more_than_model", "more_low", "more_high"])
    listed = "; ".join(
        f"{interval(row.regret_nats, row.ci_low, row.ci_high)} with f = {row.fallback} (γ = {row.gamma:.2f}, bonus for "
        f"repeating {row.bonus:.2f})"
        for row in frame.iloc[2:].itertuples()
    )
    model, kept = (interval(row.regret_nats, row.ci_low, row.ci_high) for row in frame.iloc[:2].itertuples())
    paragraph = (
        f"Exact attention under the trained read-out has a mean regret of {kept} nats over n = 1 to {sizes.length}, "
        f"and the intact model has {model}, on the same {sizes.many:,} sequences. That read-out was trained together "
        "with spread attention, so this comparison is not enough. We therefore fit a read-out softmax(γf + bonus) to "
        "exact frequencies f, on separate chains. Its mean regret depends on what f is where the prefix has no "
        f"transition out of the current token: {listed}. {_verdict(frame.iloc[2:])}"
    )
    return Answer("Exact attention with a read-out fitted to it", {"refitted_readout": frame}, (paragraph,))


def _verdict(refitted: pd.DataFrame) -> str:
    verdicts = [HELPS.verdict(row.more_low, row.more_high) for row in refitted.itertuples()]
    better, worse = verdicts.count("fails"), verdicts.count("holds")
    text = (
        f"By paired differences on the same sequences, {better} of the {len(verdicts)} predict better than the model "
        f"and {worse} worse."
    )
    return text + (" So these results do not show that spread attention helps." if better else "")
