"""The output tables: their columns in order, the type of each, and what it means. One entry per file NAME.csv."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

__all__ = ["SCHEMAS", "Column", "Schema", "Type"]


class Type(Enum):
    """What the cells of a column hold; any but a context length may be empty."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CONTEXT_LENGTH = "context length"  # 1 … T, or `mean`


@dataclass(frozen=True)
class Column:
    """One column: its name, the type of its cells, and what it means, as the reports print it."""

    name: str
    type: Type
    meaning: str


@dataclass(frozen=True)
class Schema:
    """One table: its title, and its columns in order."""

    title: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def _of(kind: Type) -> Callable[..., tuple[Column, ...]]:
    return lambda **meanings: tuple(Column(name, kind, meaning) for name, meaning in meanings.items())


_text, _number, _integer, _boolean, _length = map(_of, Type)

_CI = "of the pointwise confidence interval, Student's t; degrees of freedom: the number of chains minus 1"
_PAIRS_CI = "of the interval that is simultaneous over all pairs of the metric (max-t)"
_BAND = "of the simultaneous band over all context lengths of the curve (sup-t); empty where there is none"

_NOTE = _text(note="why a number is missing, or what it is conditional on")
_ESTIMATOR = _text(estimator="the estimator; several training runs also have rows for their mean")
_LENGTH = _length(context_length="n, the number of tokens read, 1 … T, or `mean`: the average over n")
_HISTORY = _text(
    history="what is known before a token: alone, the tokens before it in its sequence; window, the last T of them; "
    "pooled, all sequences before it too; folds, the sequences of the other folds"
)
_CHAINS = _integer(n_chains="number of chains in the estimate")
_ENDS = _number(ci_low=f"lower end {_CI}", ci_high=f"upper end {_CI}")
_INTERVAL = (
    *_number(se="standard error of the estimate (not of one sequence); the chain is the independent unit"),
    *_ENDS,
)
_CURVE = (
    *_ESTIMATOR,
    *_LENGTH,
    *_text(metric="what is estimated, see the list of metrics"),
    *_number(estimate="estimated expectation of the metric"),
    *_INTERVAL,
    *_number(band_low=f"lower end {_BAND}", band_high=f"upper end {_BAND}"),
    *_CHAINS,
    *_integer(n_sequences="number of sequences in the estimate"),
    *_NOTE,
)

SCHEMAS: dict[str, Schema] = {
    "risk": Schema("divergence of the predictions from the truth", _CURVE),
    "differences": Schema(
        "each estimator minus the reference, on the same draws",
        (
            *_ESTIMATOR,
            *_text(reference="the estimator that is subtracted"),
            *_LENGTH,
            *_text(metric="what is compared"),
            *_number(
                difference="estimator minus reference; above 0 the estimator is worse",
                se="standard error of the paired difference",
            ),
            *_ENDS,
            *_number(
                correlation="correlation of the two estimators' chain means; on observed data of their sums by "
                "sequence, or the long-run correlation",
                variance_reduction="how many times more chains an unpaired comparison would need for the same "
                "standard error",
                rao_blackwell_factor="how many times more chains the realised KL would need for the standard error "
                "that the regret has",
            ),
            *_NOTE,
        ),
    ),
    "pairs": Schema(
        "all pairs of estimators, on the same draws, and which are tied with the best",
        (
            *_text(
                estimator="the one of the two with the larger, infinite or undefined mean",
                other="the one with the smaller mean",
                metric="what is compared: the mean of this metric over n, or over predictions on observed sequences",
            ),
            *_number(
                difference="mean of the estimator minus that of the other, on the same draws",
                se="standard error of the paired difference",
                ci_low=f"lower end {_PAIRS_CI}",
                ci_high=f"upper end {_PAIRS_CI}",
                p_simultaneous="p-value of a difference of 0, adjusted for all pairs (max-t); 1 for identical "
                "estimators",
            ),
            *_boolean(
                tied="for pairs with the best (the smallest mean) as `other`: True if the simultaneous interval "
                "contains 0, False if it does not, or if only the estimator is infinite; empty where there is no "
                "interval, and for all other pairs",
            ),
            *_NOTE,
        ),
    ),
    "series": Schema(
        "the first tokens of the observed sequences",
        (
            *_integer(sequence="number of the sequence, from 1 in the order of the data"),
            *_text(id="its name; empty where it has none"),
            *_integer(position="position of the token in its sequence, from 1"),
            *_text(state="the state"),
        ),
    ),
    "cumulative": Schema(
        "loss in excess of the reference's, summed over time",
        (
            *_ESTIMATOR,
            *_text(reference="the row of the same kind that is subtracted"),
            *_integer(prediction="number of predictions so far, in the order of the data"),
            *_number(difference="sum of the differences in log loss so far, in nats; above 0 the reference is ahead"),
        ),
    ),
    "transitions": Schema(
        "observed transitions, over all sequences together",
        (
            *_text(source="the state v before", target="the state w after"),
            *_integer(
                count="n_vw: how often w came after v",
                visits="n_v: how often anything came after v",
            ),
            *_number(
                estimate="posterior mean of P_vw, (n_vw + α)/(n_v + Kα), with a Dirichlet(α) prior for each row",
                ci_low="lower end of the equal-tailed credible interval, from the Beta law of P_vw alone",
                ci_high="upper end of that interval",
            ),
            *_NOTE,
        ),
    ),
    "concentration": Schema(
        "the pseudo-count that suits the data best",
        (
            *_HISTORY,
            *_integer(order="how many tokens are the context"),
            *_text(
                criterion="marginal_likelihood: the concentration of the Dirichlet prior that the rows of the matrix "
                "were drawn from, by maximum likelihood; log_loss: the constant of the add-β rule that predicts best",
            ),
            *_number(
                estimate="the best value; 0 and inf are limits",
                ci_low="lower end of its interval: of the profile likelihood, or of the minimum of the log loss",
                ci_high="upper end of that interval; inf if it has none",
                log_loss_nats="mean log loss per prediction at the estimate, in nats",
            ),
            *_NOTE,
        ),
    ),
    "concentration_profile": Schema(
        "log likelihood of the concentration",
        (
            *_HISTORY,
            *_integer(order="how many tokens are the context"),
            *_number(
                concentration="α of the Dirichlet prior",
                log_likelihood_ratio="log marginal likelihood at α minus its maximum, in nats",
            ),
        ),
    ),
    "orders": Schema(
        "how many tokens of context the data support",
        (
            *_HISTORY,
            *_integer(order="k, how many tokens are the context; the first k tokens of a sequence are uniform"),
            *_number(concentration="α of the Dirichlet prior of each context's row"),
            *_boolean(fitted="whether α is the one with the largest marginal likelihood at this order"),
            *_number(
                log_marginal_likelihood="log probability of all tokens after the first of each sequence, in nats",
                log_bayes_factor="log of the Bayes factor against order 1; above 0 the data speak for this order",
                posterior_probability="posterior probability of the order, if those listed are equally likely before",
                log_loss_nats="mean prequential log loss per prediction of the add-α rule of this order, in nats",
                difference="that minus the log loss of order 1; above 0 order 1 predicts better",
                se="standard error of the paired difference",
                ci_low="lower end of its confidence interval",
                ci_high="upper end of its confidence interval",
            ),
            *_NOTE,
        ),
    ),
    "likelihood_ratio": Schema(
        "likelihood-ratio tests on the transitions of all sequences together",
        (
            *_text(
                test="order_0_against_1: the next token does not depend on the current one; order_1_against_2: nor on "
                "the one before; stated_matrix: the transition matrix is the stated one",
            ),
            *_number(
                statistic="G² = 2 Σ n log(n/expected)", degrees_of_freedom="of the χ² law", p_value="of the χ² law"
            ),
            *_integer(n_transitions="transitions that are counted"),
            *_number(small_expected="share of the cells that are counted with an expected count below 5"),
            *_NOTE,
        ),
    ),
    "likeness": Schema(
        "how far apart the predictions of two estimators are, on the same prefixes",
        (
            *_ESTIMATOR,
            *_text(other="the estimator that it is compared with; also the rules that were fitted to it"),
            *_LENGTH,
            *_text(
                measure="total_variation: ½ Σ |p − r|, the share of the probability that lies elsewhere; kl_nats: "
                "KL(estimator ‖ other); explained: 1 − ΣKL(estimator ‖ other)/ΣKL(estimator ‖ uniform). Total "
                "variation has one row for a pair, the others have both orders"
            ),
            *_number(estimate="its mean over prefixes; for explained the ratio of the two sums"),
            *_INTERVAL,
            *_NOTE,
        ),
    ),
    "nearest": Schema(
        "the rule that a model is nearest to",
        (
            *_text(
                estimator="the model, or the mean over its training runs",
                measure="the distance that decides: total_variation or kl_nats",
            ),
            *_length(context_length="`mean`: the distances are averaged over n"),
            *_text(rule="the nearest rule, among those compared and those fitted to the model on separate chains"),
            *_number(estimate="its distance from the model"),
            *_text(next_rule="the nearest rule of another family (one that differs in more than a fitted number)"),
            *_number(
                difference="distance of next_rule minus that of rule, on the same prefixes",
                se="standard error of that paired difference",
                ci_low=f"lower end {_CI}",
                ci_high=f"upper end {_CI}",
            ),
            *_boolean(decided="True if the interval of the difference lies above 0"),
            *_NOTE,
        ),
    ),
    "exact": Schema(
        "expected loss by enumeration of every prefix, without Monte Carlo error",
        (
            *_text(estimator="the estimator"),
            *_integer(context_length="n, the number of tokens read"),
            *_text(metric="what is estimated, see the list of metrics"),
            *_number(estimate="the expectation of the metric"),
        ),
    ),
    "chains": Schema(
        "one value for each chain, whose mean is in risk.csv",
        (
            *_ESTIMATOR,
            *_integer(chain="number of the chain, from 0: its address in the study's streams"),
            *_text(metric="what is estimated, see the list of metrics"),
            *_length(context_length="`mean`: the average over n = 1 … T"),
            *_number(estimate="mean of the metric over the sequences of the chain"),
        ),
    ),
    "decomposition": Schema("bias and variance, from a separate nested design", _CURVE),
    "signed_bias": Schema(
        "which probabilities are predicted too high, which too low",
        (
            *_ESTIMATOR,
            *_length(context_length="n, or `mean`: pooled over n"),
            *_number(
                bin_low="lower end of the bin of true probabilities P",
                bin_high="upper end of the bin; only the last bin contains it",
                estimate="mean of p̂ − P over all sequences and next tokens whose P lies in the bin",
            ),
            *_INTERVAL,
            *_CHAINS,
            *_NOTE,
        ),
    ),
    "budget": Schema(
        "what the regret is made of",
        (
            *_ESTIMATOR,
            *_integer(context_length="n, the number of tokens read"),
            *_text(
                part="regret, and the parts that sum to it. The regret falls as predictions are averaged over what the "
                "Bayes rule ignores: order: of the same transitions; other_rows: transitions out of other states; "
                "label_asymmetry: names of the other states; self_bias: which state is the current one. "
                "A rule of the counts is left: amount is the regret of the nearest add-α rule at each number "
                "of visits, shape the rest, which may be below 0",
            ),
            *_number(
                estimate="nats",
                se="standard error, by a jackknife over groups of chains; 0 where the method is exact",
                ci_low="lower end of the confidence interval",
                ci_high="upper end of the confidence interval",
            ),
            *_text(method="exact: every prefix enumerated; monte-carlo: drawn prefixes and re-orderings of them"),
            *_NOTE,
        ),
    ),
    "regret_by_visits": Schema(
        "regret by how often the current token was left before",
        (
            *_ESTIMATOR,
            *_integer(
                visits="n_v, transitions seen out of the current token",
                visits_high="the last n_v of the row; empty: and more",
            ),
            *_number(estimate="mean regret of these prefixes, nats"),
            *_INTERVAL,
            *_number(
                share_of_prefixes="how many of all prefixes they are, n = 1 … T",
                share_of_regret="how much of the regret of all prefixes they have",
            ),
            *_integer(n_chains="number of chains with such a prefix"),
            *_NOTE,
        ),
    ),
    "regret_by_entropy": Schema(
        "regret by how predictable the chain is",
        (
            *_ESTIMATOR,
            *_number(
                entropy_low="lower end of the bin of entropy rates, nats; the bins are a tenth of [0, log K] each",
                entropy_high="upper end of the bin; only the last bin contains it",
                entropy_mean="mean entropy rate of the chains in the bin, nats per token",
                estimate="mean regret of these chains, nats",
            ),
            *_INTERVAL,
            *_CHAINS,
            *_NOTE,
        ),
    ),
    "smoothing": Schema(
        "the pseudo-count that an estimator acts like",
        (
            *_ESTIMATOR,
            *_text(by="`overall`, `context-length` or `visits` (transitions seen out of the current token)"),
            *_integer(value="the context length or the number of visits; empty for `overall`"),
            *_text(
                family="the family of rules that was fitted; `add-constant` is the pseudo-count",
                parameter="the parameter of that family",
            ),
            *_number(
                estimate="its value; 0 or inf at a boundary",
                se="standard error, for positive parameters by the delta method from their logarithm",
                ci_low="lower end of the confidence interval, clustered on chains",
                ci_high="upper end of the confidence interval",
                residual_kl_nats="mean KL(estimator ‖ fitted rule): what the rule leaves unexplained",
                residual_kl_heldout_nats="the same on chains that were not used for the fit",
                explained="1 − ΣKL(p̂‖fitted rule)/ΣKL(p̂‖uniform)",
            ),
            *_boolean(
                identified="True if the predictions determine the parameter",
                boundary="True if the estimate lies at the boundary of its range",
            ),
            *_NOTE,
        ),
    ),
    "pseudo_count_map": Schema(
        "the pseudo-count that a model acts like, by context length and visits",
        (
            *_text(estimator="the model, or the mean over its training runs"),
            *_integer(
                context_length="n, the number of tokens read",
                visits="transitions seen out of the current token",
            ),
            *_number(
                estimate="the pseudo-count; 0 or inf at a boundary, empty where there are too few prefixes",
                ci_low="lower end of its confidence interval, by a jackknife over groups of chains, on a log scale",
                ci_high="upper end of its confidence interval",
            ),
            *_integer(n_prefixes="how many prefixes it was fitted to"),
            *_boolean(boundary="True if the estimate is 0 or inf"),
            *_NOTE,
        ),
    ),
    "simplex": Schema(
        "the mean prediction by the counts out of the current token, K = 3",
        (
            *_text(estimator="the model, or the mean over its training runs"),
            *_integer(
                visits="transitions seen out of the current token",
                current_token="the current token, from 0",
            ),
            *_text(counts="how often states 0, 1, 2 have followed it"),
            *_integer(token="the token that is predicted, from 0"),
            *_number(estimate="mean of its predicted probability"),
            *_integer(n_prefixes="how many prefixes"),
        ),
    ),
    "interventions": Schema(
        "the effect of changing parts of the model",
        (
            *_text(intervention="what was changed in the model"),
            *_integer(visits="transitions seen out of the current token"),
            *_text(quantity="what was measured"),
            *_number(
                estimate="its value under the intervention",
                difference="the intact model's value minus the estimate, on the same sequences; for _from_add_one "
                "the add-one rule's value, which is 0, minus the estimate",
                se="standard error of the difference",
                ci_low="lower end of its confidence interval",
                ci_high="upper end of its confidence interval",
            ),
            *_NOTE,
        ),
    ),
    "mechanism": Schema(
        "regret with the attention and the read-out replaced, in every combination",
        (
            *_ESTIMATOR,
            *_text(
                attention="model: as trained; exact: evenly on what followed the current token, n_vw/n_v",
                read_out="trained; refitted: softmax(γ f_w + δ 1[w = v]) of the copied mass f, γ and δ fitted on a "
                "stream of their own; perfect: the copied mass itself",
                unmatched="what exact attention copies where the current token v was not left before",
            ),
            *_number(
                gamma="γ of a refitted read-out",
                bonus="δ of a refitted read-out",
                estimate="mean regret over n = 1 … T, nats",
            ),
            *_INTERVAL,
            *_NOTE,
        ),
    ),
    "mechanism_shares": Schema(
        "how much regret each part of the mechanism accounts for",
        (
            *_ESTIMATOR,
            *_text(
                read_out="what the trained read-out is replaced by: refitted or perfect",
                unmatched="what exact attention copies where the current token v was not left before",
                part="the part that is replaced: attention (by exact) or read_out",
                replaced="first: the other part stays as trained; second: the other part is replaced already; average: "
                "the mean of both, the Shapley value",
            ),
            *_number(estimate="drop of the mean regret, nats; below 0 regret rises"),
            *_INTERVAL,
            *_NOTE,
        ),
    ),
    "strategies": Schema(
        "the model as a convex mixture of rules",
        (
            *_ESTIMATOR,
            *_length(context_length="n, or `mean`: one mixture for all n = 1 … T together"),
            *_text(strategy="the rule, as a spec; its parameter is fitted to the estimator on a stream of its own"),
            *_number(
                estimate="its weight in the mixture of least mean KL(estimator ‖ mixture); of an n they sum to 1",
                se="standard error of the weight; empty at a boundary",
                ci_low="lower end of the confidence interval: the clustered score inverted, other weights fitted again",
                ci_high="upper end of the confidence interval",
            ),
            *_boolean(boundary="True if the weight is 0 or 1; empty where it is not identified"),
            *_number(explained="1 − ΣKL(p̂‖mixture)/ΣKL(p̂‖uniform) on held-out chains"),
            *_NOTE,
        ),
    ),
    "training": Schema(
        "how the trained models came to be",
        (
            *_text(estimator="the trained model"),
            *_integer(step="updates so far"),
            *_text(
                quantity="loss_nats: mean cross-entropy of the last batches; regret_nats: on fresh chains; "
                "learning_rate"
            ),
            *_number(value="its value"),
        ),
    ),
    "attention": Schema(
        "where the two attention layers look",
        (
            *_ESTIMATOR,
            *_length(context_length="n, the position that attends"),
            *_text(quantity="the share of attention, see the list of metrics"),
            *_number(estimate="its mean over sequences"),
            *_INTERVAL,
            *_NOTE,
        ),
    ),
    "heads": Schema(
        "what each attention head looks at",
        (
            *_ESTIMATOR,
            *_integer(layer="layer, from 1", head="head of the layer, from 1"),
            *_length(context_length="n, the number of tokens read, or `mean`: the average over n = 2 … T"),
            *_text(
                quantity="previous_token_mass, from position n to n − 1; match_mass, to the positions after earlier "
                "occurrences of the current token (prefix matching)",
            ),
            *_number(estimate="mean attention mass"),
            *_INTERVAL,
            *_number(chance="what uniform attention over the n positions would put there"),
            *_boolean(best="whether the head is the farthest above chance of this estimator, on average over n"),
            *_NOTE,
        ),
    ),
    "attention_example": Schema(
        "attention weights on the start of one sequence",
        (
            *_ESTIMATOR,
            *_integer(
                layer="1 or 2", query="the position that attends; 0 is a sentinel", key="the position attended to"
            ),
            *_text(query_token="token at the query position", key_token="token at the key position"),
            *_number(weight="share of attention; those of one query sum to 1"),
        ),
    ),
    "circuit": Schema(
        "the folded matrices of a trained model, and the construction's",
        (
            *_text(
                estimator="a trained model, or the explicit construction with the scales of r1, G and the read-out "
                "that fit the model best",
                matrix="S1: layer-1 scores by token; r1, r2: score by distance in layers 1 and 2; G: layer-2 scores; "
                "direct, induction: logits from a position's own features and from those that layer 2 averages",
            ),
            *_integer(
                row="from 0; rows of 2K entries are the token block, then the scratch block",
                column="from 0, in the same order; for r1 and r2 the distance",
            ),
            *_number(value="centred, which changes no prediction"),
        ),
    ),
    "checks": Schema(
        "numbers that must agree",
        (
            *_text(
                check="martingale: realised KL of the Bayes rule minus its posterior mean; exact:…: Monte Carlo minus "
                "exact enumeration; mse: the nested design minus the risk design; next_token: the probability given to "
                "the token that came next minus its posterior expectation; bayes_bound:…: the loss minus that of the "
                "Bayes rule, which cannot be below 0; saw_the_future: only for an estimator that clearly fails one of "
                "these two checks",
            ),
            *_ESTIMATOR,
            *_LENGTH,
            *_number(
                estimate="the difference, 0 in expectation (bayes_bound: 0 or more)",
                se="its standard error",
                z="estimate / se: standard normal if the two agree (bayes_bound: not far below 0)",
            ),
            *_NOTE,
        ),
    ),
}
"""The tables of a study's folder by file stem, in the order of a report."""
