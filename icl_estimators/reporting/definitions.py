"""What every column, metric and quantity of the tables means: printed at the end of each report."""

from __future__ import annotations

__all__ = ["COLUMN_DEFINITIONS", "INTERVENTION_DEFINITIONS", "METRIC_DEFINITIONS", "TABLE_TITLES", "TEXT_COLUMNS"]

_SE = "standard error of the estimate (not of one sequence); the chain is the independent unit"
_CI = "of the pointwise confidence interval, Student's t with one degree of freedom less than there are chains"
_PAIRS_CI = "of the interval that holds for all pairs of the metric at once (max-t over the pairs)"
_BAND = "of the band that holds for all context lengths of the curve at once (sup-t); empty where there is none"
_NOTE = "why a number is missing, or what it is conditional on"

_INTERVAL = {"se": _SE, "ci_low": f"lower end {_CI}", "ci_high": f"upper end {_CI}"}
_ESTIMATOR = {"estimator": "whose predictions; several training runs also have a row for their mean"}
_LENGTH = {"context_length": "n, the number of tokens read, 1 … T, or `mean`: the average over n"}
_SAMPLES = {"n_chains": "chains that the estimate is made of", "n_sequences": "sequences that the estimate is made of"}

_CURVE = {
    **_ESTIMATOR,
    **_LENGTH,
    "metric": "what is estimated, see the list of metrics",
    "estimate": "its estimated expectation",
    **_INTERVAL,
    "band_low": f"lower end {_BAND}",
    "band_high": f"upper end {_BAND}",
    **_SAMPLES,
    "note": _NOTE,
}

TABLE_TITLES: dict[str, str] = {
    "risk": "distance of the predictions from the truth",
    "differences": "each estimator less the reference, on the same draws",
    "pairs": "all pairs of estimators, on the same draws, and who is tied with the best",
    "decomposition": "bias and variance, from a nested design of its own",
    "signed_bias": "which probabilities are predicted too high, which too low",
    "smoothing": "which pseudo-count an estimator acts like",
    "interventions": "what changing the model's parts does",
    "attention": "where the two attention layers look",
    "attention_example": "attention weights on the start of one sequence",
    "circuit": "the folded matrices of a trained model, and the construction's",
    "checks": "numbers that must agree",
}
"""The tables of a study's folder, in the order of a report."""

COLUMN_DEFINITIONS: dict[str, dict[str, str]] = {
    "risk": _CURVE,
    "differences": {
        **_ESTIMATOR,
        "reference": "the estimator that is subtracted",
        **_LENGTH,
        "metric": "what is compared",
        "difference": "estimator less reference; above 0 the estimator is worse",
        "se": "standard error of the paired difference",
        "ci_low": f"lower end {_CI}",
        "ci_high": f"upper end {_CI}",
        "correlation": "of the two estimators' chain means; on observed data of their sums by sequence, or in the "
        "long run",
        "variance_reduction": "how many times more chains an unpaired comparison would need for the same standard "
        "error",
        "rao_blackwell_factor": "how many times more chains the realised KL would need for the standard error that "
        "the regret has",
        "note": _NOTE,
    },
    "pairs": {
        "estimator": "of the two the one with the greater mean, or infinite, or undefined",
        "other": "the one with the lesser mean",
        "metric": "what is compared: the mean over n, or on observed sequences over predictions",
        "difference": "mean of the estimator less that of the other, on the same draws",
        "se": "standard error of the paired difference",
        "ci_low": f"lower end {_PAIRS_CI}",
        "ci_high": f"upper end {_PAIRS_CI}",
        "p_simultaneous": "p-value of a difference of 0, adjusted for all pairs (max-t); 1 for identical estimators",
        "tied": "in a pair whose other is the best (the least mean): True if the estimator cannot be told from it, the "
        "simultaneous interval holding 0, False if it can, the best being finite and the estimator infinite included; "
        "empty where there is no interval, and in the other pairs",
        "note": _NOTE,
    },
    "decomposition": _CURVE,
    "signed_bias": {
        **_ESTIMATOR,
        "context_length": "n, or `mean`: pooled over n",
        "bin_low": "lower end of the bin of true probabilities P",
        "bin_high": "upper end of the bin; only the last bin contains it",
        "estimate": "mean of p̂ − P over all sequences and next tokens whose P lies in the bin",
        **_INTERVAL,
        "n_chains": _SAMPLES["n_chains"],
        "note": _NOTE,
    },
    "smoothing": {
        **_ESTIMATOR,
        "by": "`overall`, `context-length` or `visits` (transitions seen out of the current token)",
        "value": "the context length or the number of visits; empty for `overall`",
        "family": "the family of rules that was fitted; `add-constant` is the pseudo-count",
        "parameter": "which of its parameters",
        "estimate": "its value; 0 or inf at a boundary",
        "se": "standard error, for positive parameters by the delta method from their logarithm",
        "ci_low": "lower end of the confidence interval, clustered on chains",
        "ci_high": "upper end of the confidence interval",
        "residual_kl_nats": "mean KL of the estimator's prediction from the fitted rule's: what the rule leaves over",
        "residual_kl_heldout_nats": "the same on chains that were not used for the fit",
        "explained": "1 − ΣKL(p̂‖fitted rule)/ΣKL(p̂‖uniform)",
        "identified": "True if the predictions determine the parameter",
        "boundary": "True if the estimate lies on the edge of its range",
        "note": _NOTE,
    },
    "interventions": {
        "intervention": "what was changed in the model",
        "visits": "transitions seen out of the current token",
        "quantity": "what was measured",
        "estimate": "its value under the intervention",
        "difference": "the intact model's less the estimate, on the same sequences; with _from_add_one the add-one "
        "rule's, which is 0, less the estimate",
        "se": "standard error of the difference",
        "ci_low": "lower end of its confidence interval",
        "ci_high": "upper end of its confidence interval",
        "note": _NOTE,
    },
    "attention": {
        **_ESTIMATOR,
        "context_length": "n, the position that looks",
        "quantity": "which share of attention, see the list of metrics",
        "estimate": "its mean over sequences",
        **_INTERVAL,
        "note": _NOTE,
    },
    "attention_example": {
        **_ESTIMATOR,
        "layer": "1 or 2",
        "query": "the position that looks; 0 is a sentinel",
        "key": "the position looked at",
        "query_token": "token at the query position",
        "key_token": "token at the key position",
        "weight": "share of attention; those of one query sum to 1",
    },
    "circuit": {
        "estimator": "a trained model, or the explicit construction with the scales of r1, G and the read-out that fit "
        "it best",
        "matrix": "S1: layer-1 scores by token; r1, r2: score by distance in layers 1 and 2; G: layer-2 scores; "
        "direct, induction: logits from a position's own features and from those that layer 2 averages",
        "row": "from 0; rows of 2K entries are the token block, then the scratch block",
        "column": "from 0, likewise; for r1 and r2 the distance",
        "value": "centred, which changes no prediction",
    },
    "checks": {
        "check": "martingale: realised KL of the Bayes rule less its posterior mean; exact:…: Monte Carlo less exact "
        "enumeration; mse: the nested design less the risk design; next_token: the probability given to the token "
        "that came less what the posterior expects of it; bayes_bound:…: the loss less that of the Bayes rule, which "
        "can’t be below 0; saw_the_future: there only for an estimator that fails one of these two beyond doubt",
        **_ESTIMATOR,
        **_LENGTH,
        "estimate": "the difference, 0 in expectation (bayes_bound: 0 or more)",
        "se": "its standard error",
        "z": "estimate / se: standard normal if all is well (bayes_bound: not far below 0)",
        "note": _NOTE,
    },
}
"""Columns of each table, in order."""

TEXT_COLUMNS = frozenset(
    {
        "estimator",
        "reference",
        "other",
        "tied",
        "context_length",
        "metric",
        "quantity",
        "check",
        "matrix",
        "query_token",
        "key_token",
        "by",
        "family",
        "parameter",
        "identified",
        "boundary",
        "intervention",
        "note",
    }
)
"""Columns that hold labels; all others hold numbers."""

METRIC_DEFINITIONS: dict[str, str] = {
    "kl_nats": "KL(P[t_n] ‖ p̂) of the prediction from the drawn chain's row; inf where a possible token got "
    "probability 0",
    "kl_finite_nats": "the mean of kl_nats over the sequences where it is finite",
    "kl_rb_nats": "kl_nats with the chain integrated out given the prefix: same mean, less noise",
    "regret_nats": "KL(q ‖ p̂) with q the Bayes predictive: the excess of KL over the Bayes rule's, never negative",
    "p_infinite": "share of sequences with infinite KL; Wilson interval",
    "total_variation": "½ Σ|p̂ − P|",
    "squared_error": "Σ(p̂ − P)², not divided by K",
    "hellinger": "√(½ Σ(√p̂ − √P)²)",
    "log_loss_nats": "−log p̂ of the token that came next",
    "log_loss_nats_lag_0": "of one series, log_loss_nats with a standard error as if predictions were independent",
    "log_loss_nats_block_bootstrap": "of one series, log_loss_nats with an interval by the moving-block bootstrap",
    "bias_squared": "squared bias of p̂ given the current token, unbiased (so it can come out below 0)",
    "variance": "variance of p̂ over sequences of one chain, given the current token",
    "training_variance": "variance over training runs of the mean prediction",
    "mse": "bias_squared + variance, exactly",
    "split_weight": "share of the weight with two sequences or more to tell bias from variance",
    "kl_bias_nats": "KL of the truth from the normalised geometric mean of predictions (Heskes 1998)",
    "kl_variance_nats": "the rest of the mean KL, jackknifed",
    "previous_token_mass": "layer 1: attention on the token before",
    "self_mass": "layer 1: attention on the position itself",
    "match_mass": "layer 2: attention on positions that follow an earlier occurrence of the current token",
    "match_mass_chance": "what even attention over all positions would put there",
}
"""Metrics and attention quantities."""

INTERVENTION_DEFINITIONS = (
    "*previous-token*: layer 1 looks at the previous token alone; *exact-match*: layer 2 looks, evenly, at matching "
    "positions alone; *exact-attention*: both; *no-direct-path*: a position’s own features do not reach its logits; "
    "*read-out-half*, *-double*: what layer 2 adds to the logits is scaled by ½ or 2. All other parts "
    "keep the weights that were trained together with the part replaced: this tells what a part does in this model, "
    "not how well a model without it could do."
)
"""What is changed in the model, in Markdown."""
