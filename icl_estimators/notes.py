"""Notes: why a number is missing, what an interval rests on, and what else the reader of a row must know.

A note is a code with parameters. Its text is made here and nowhere else, so that a sentence is worded in one place.
The column `note` of every table holds such texts. They are for people: nothing in the package reads one back. What a
program needs to know stands in the other columns and in run.json.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, unique
from functools import cache
from string import Formatter

__all__ = ["Code", "Note", "fields_of", "join"]


@unique
class Code(Enum):
    """What a note says; the value is the template of its text."""

    # chains, sequences and training runs
    TOO_FEW_CHAINS = "fewer than 2 chains: no standard error"
    INFINITE_IN_CHAINS = "infinite in {count:,} of {total:,} chains"
    UNDEFINED_IN_CHAINS = "undefined in {count:,} of {total:,} chains"
    UNDEFINED_BECAUSE = "undefined in {count:,} of {total:,} chains: {why}"
    INFINITE_IN_A_CHAIN = "infinite in a chain"
    ONE_CHAIN_CONTRIBUTES = "only 1 chain contributes"
    ONE_CHAIN_CONTRIBUTES_AT = "only 1 chain contributes at n = {n}"
    NO_DENOMINATOR = "the denominator is 0 in every chain"
    FEW_CHAINS_CONTRIBUTE = "only {chains} chains contribute: an interval needs {fewest}"
    NO_MEAN_OVER_LENGTHS = "no mean over n: {why} at n = {n}"
    POOLED_LENGTHS = "pooled over context lengths: every prediction counts once"
    FIRST_SEQUENCES = "{chains:,} chains, the first sequence of each"
    FIRST_SEQUENCE = "the first sequence of each chain"
    ONE_SEQUENCE_EACH = "{chains:,} chains, one sequence of each"
    IF_RUNS_ARE_SKEWED = (
        "the training runs determine the width: if their values are skewed, the coverage is 0.75 to 0.93"
    )
    ONE_TRAINING_RUN = "one training run: it cannot show how training runs vary"
    ONE_CHECKPOINT = "one training run: training variance needs two or more"
    TWO_TRAINING_RUNS = "two training runs give only one difference: three are needed to see how differences vary"
    TRAINING_RUNS = "{runs} training runs"
    WITH_T_OF_RUNS = "{basis}, t with {freedom:.3g} degrees of freedom"
    SPREAD_OF_RUNS = "from the spread of {runs} training runs, and {chains:,} chains"
    TWO_WAY = "two-way over {runs} training runs and {chains:,} chains"
    TWO_WAY_1 = "{basis}, t with 1 degree of freedom for the runs and {by_chains:,} for the chains"
    TWO_WAY_FEW = "{basis}, t with {by_runs} degrees of freedom for the runs and {by_chains:,} for the chains"
    SATTERTHWAITE = "{basis}, t with {freedom:.3g} degrees of freedom (Satterthwaite)"
    THESE_RUNS = "for these training runs only: the rows of the recipe generalise to other runs"
    MEAN_OF_RUNS = "mean over training runs of each run's own value"
    GAIN_FOR_THESE_RUNS = "the gain from pairing is given for these training runs only"
    REFERENCE_VARIES = "no two-way interval: the reference itself consists of training runs, which vary"
    NO_TWO_WAY_SHARE = "no two-way interval for a share: see the rows of the mean over training runs"

    # differences and checks
    NO_DIFFERENCE = "no difference: {sides}"
    SIDE = "{name} is {why}"
    INFINITE_IN_PREDICTIONS = "infinite in {count:,} of {total:,} predictions"
    IDENTICAL = "identical: equal on all draws"
    CONSTANT_DIFFERENCE = "the difference does not vary: no test"
    NO_CORRELATION = "no correlation: one of the two does not vary over chains"
    NO_Z = "no z: the value does not vary"
    BOTH_INFINITE = "both infinite"
    EXACT_DISAGREES = "exact {exact}, Monte Carlo {mean}"
    BELOW_BAYES = (
        "below that of the Bayes rule, which is impossible for an estimator that reads only the prefix: it has seen "
        "more than the prefix"
    )
    NOT_ITS_CHANCE = "not what is expected of an estimator that reads only the prefix: it has seen more than the prefix"
    SAW_PROBABILITY = "the probability given to the token that came next is {why}"
    SAW_LOG_LOSS = "the mean log loss is {why}"
    SAW_KL = "the mean KL is {why}"

    # likeness
    LIKENESS_SEQUENCES = "the first {sequences} sequences of each chain"
    FEW_PREFIXES = "only {count} prefixes: at least {fewest} are needed"
    NO_OTHER_RULE = "no rule of another family has a finite distance"

    # divergences and their bands
    NO_POSTERIOR = "undefined: the posterior of these chains given a prefix is not known exactly"
    FINITE_KL_ONLY = "conditional on a finite KL"
    ALL_INFINITE = "KL is infinite in every sequence"
    NO_BAND_OF_MEAN = "no band for a mean over n"
    NO_BAND_OF_RATIO = "no band for a ratio"
    NO_BAND_TWO_WAY = "no band: the interval is two-way"
    NO_BAND_OF_SHARE = "no band for a share: see its Wilson interval"
    BAND_COVERAGE = "95 % bands over {length} lengths from {chains:,} chains × {sequences} have coverage {shares}"
    BAND_NOT_MEASURED = "the coverage of such a band has not been measured"

    # the regret budget
    NO_BUDGET_OF_SOURCE = "no regret budget: it is for Dirichlet chains, whose Bayes rule reads one row of counts"
    NO_BUDGET_OF_STATES = "no regret budget: {states} states are too many, at most {most}"
    NO_PARTS_OF_INFINITE = "infinite: probability 0 for a token that can follow; an infinite regret has no parts"
    SHARE_WITH_EQUAL_COUNTS = "from the {share} of the prefixes whose counts another prefix has too"
    TOO_FEW_SHARE_COUNTS = "only {share} of the prefixes have counts that another has too: more chains are needed"
    NO_SUCH_VISITS = "no prefix has so many visits"
    INFINITE_REGRET_HERE = "infinite in {chains:,} chains"
    NO_SHARE_OF_INFINITE = "no share of an infinite regret"
    NO_SHARE_OF_NOTHING = "the regret is 0"
    NO_SUCH_ENTROPY = "no chain has such an entropy rate"

    # bias and variance
    ONE_SEQUENCE = "one sequence per chain: bias and variance need two or more"
    NO_CELL = "no cell has two sequences"
    SMALLEST_CELL = "smallest cell: {size} sequences"
    ZERO_IN_CELLS = "a predicted probability is 0 in {count:,} of {total:,} cells"
    EMPTY_BIN = "no true probability falls into this bin"

    # attention
    NO_PREVIOUS_TOKEN = "at context length 1 there is no previous token"
    FOR_THESE_RUNS = "for these training runs"

    # observed sequences
    PREDICTIONS = "{count:,} predictions"
    INFINITE_IN_SOME = "infinite in {count:,} of them"
    ONE_SERIES = "one series: no independent units, so no standard error"
    PRIOR_ALONE = "never left: the prior alone"
    NO_CONCENTRATION = "undefined: no context came twice, so that the likelihood does not depend on it"
    AT_A_LIMIT = "a limit: the larger or smaller, the better"
    NO_MARGINAL_LIKELIHOOD = "no marginal likelihood: these predictions do not make up one law of all tokens"
    FITTED_TO_THESE = "α is fitted to these tokens, so that this is no prediction of them"
    SMALL_EXPECTED = "many expected counts are below 5: the χ² law is a rough approximation"
    IMPOSSIBLE_TRANSITION = "{source} → {target} occurred {count:,} times; the stated matrix excludes it"
    NOTHING_TO_TEST = "undefined: fewer than two states came before, or after"
    CARRIED_OVER = "no interval: counts carry over from sequence to sequence, so that their losses are not independent"
    FITTED_TO_OTHER_FOLDS = "given the counts of the other folds, which share sequences"
    ONE_PREDICTION = "no interval: one prediction"
    GROWING_HISTORY = "no interval: one series, and losses with a growing history are not stationary"
    WINDOW_FILLS_LATE = (
        "{why}: the window is full only from prediction {first:,} of {count:,}; a shorter window (--length) gives "
        "an interval"
    )
    NO_WHOLE_HISTORY = "no difference: {reference} reads only a window, so it has no whole history to compare with"
    CLUSTERED = "clustered on {sequences:,} sequences"
    DIEBOLD_MARIANO = "Diebold–Mariano, Newey–West with lag {lag}"
    LAG_0 = "as if predictions were independent"
    WITH_T = "{method}, t with {freedom:,.0f} degrees of freedom"
    BLOCK_BOOTSTRAP = "moving-block bootstrap, {draws:,} draws, blocks of {block}"

    # pseudo-counts
    NO_TRANSITION = "no such prefix has a transition out of its last token: a pseudo-count cannot be estimated"
    EQUAL_COUNTS = "not identified: every pseudo-count gives the same predictions from these counts"
    AT_ZERO = "at the boundary 0: no smoothing, or sharper than any add-α rule"
    AT_INFINITY = "at the boundary inf: uniform, or flatter than any add-α rule"
    LOCAL_MINIMA = "the objective has {count} local minima; this is the lowest"
    FEW_CHAINS = "only {chains} chains have such a prefix: the interval may be too narrow"
    EXPLAINED_UNDEFINED = "explained is 0/0: the estimator is uniform"
    EVERY_PREFIX = "every prefix of 1 to {length} tokens with n_v ≥ 1 has the same weight"
    NEVER_UNSEEN = "every prefix has an earlier transition out of its last token"
    NOTHING_AT_ZERO_VISITS = "n_v = 0 says nothing about a pseudo-count: every value predicts uniformly there"
    NO_SUCH_COUNT = "no prefix has such a count"
    NO_SUCH_PREFIX = "no such prefix"
    NO_PSEUDO_COUNT_DIFFERENCE = "no difference: the {which} pseudo-count is {value:g}"
    ODD_RUNS = "undefined: the pseudo-count is 0, inf or unknown in {count} of {runs} training runs"
    GEOMETRIC_MEAN = "geometric mean, two-way"
    SD_OF_LOG = "standard deviation of log α̂, χ² interval"
    SAME_MIXTURE = "not identified: other weights give the same mixture"
    UNSEEN_STATES = "infinite: states that have not occurred have probability 0"
    NORMALISED = "the copied mass is normalised"
    NO_LAW = "undefined: where the current token was not left before, nothing is copied that could be a prediction"
    NO_SHARE = "no share: the regret with {cells} is infinite or undefined"
    FROM_ADD_ONE = "difference: that of the add-one rule, which is 0, minus this"

    # families of rules
    FAMILY_CHAINS = "families: the first {chains:,} chains"
    GAIN_IS_CONDITIONAL = (
        "conditional on the two rules fitted to the first half of the chains: the interval reflects the sampling "
        "variation of the second half, not that of the fits"
    )
    NO_SECOND_HALF = "there is no second half of the chains"
    UNIFORM = "the estimator is uniform"
    UNIFORM_AT_INFINITY = "at the boundary inf: the estimator is uniform"
    EVERY_SCORE_IS_0 = "every score is 0 there"
    UNIFORM_NOT_IDENTIFIED = "not identified: the estimator is uniform"
    UNIFORM_UNDEFINED = "0/0: the estimator is uniform"
    BEYOND_THE_SEARCH = "not identified: the best value lies beyond the end of the search, {value:.4g}"
    AT_THE_BOUNDARY = "at the boundary {value:g}"
    OPEN_LIMIT = "at the boundary inf: the rule is then the same for all counts, and no finite value fits as well"
    NO_INTERVAL = "no interval: {why}"
    NO_FINITE_VALUE = "not identified: no finite value fits as well"
    OTHER_VALUES = "not identified: other values fit equally well"
    SAME_RULE_ELSEWHERE = "no interval: an infinite value of another parameter gives the same rule"
    SCORE_NOT_ZERO = "no interval: the score is not 0 at the estimate"
    NOT_PROFILED = "no {side} limit: the other parameters could not be fitted there"
    REJECTED_INSIDE = "every value inside is rejected"
    SEARCH_ENDS = "no {side} limit: values up to the end of the search, {value:.4g}, are not rejected"
    NONE_REJECTED = "no finite {side} limit: no value on that side is rejected"


class Note(str):
    """The text of a code, which keeps its code and parameters.

    Parameters
    ----------
    code : Code
    **parameters
        What its template names; several notes in a tuple are listed with commas.

    Attributes
    ----------
    parts : tuple of (Code, dict)
        Code and parameters of each note that this one is made of; one unless it was made by :func:`join`.

    Raises
    ------
    TypeError
        If the parameters are not those that the template names.

    Examples
    --------
    >>> note = Note(Code.INFINITE_IN_CHAINS, count=3, total=1200)
    >>> str(note), note.parts[0][0].name
    ('infinite in 3 of 1,200 chains', 'INFINITE_IN_CHAINS')
    """

    __slots__ = ("parts",)
    parts: tuple[tuple[Code, dict[str, object]], ...]

    def __new__(cls, code: Code, **parameters: object) -> Note:
        """Spell a note."""
        spelled = {name: ", ".join(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
        if fields_of(code) != parameters.keys():
            raise TypeError(f"{code} takes {sorted(fields_of(code))}, not {sorted(parameters)}")
        return _made(code.value.format(**spelled), ((code, parameters),))

    def __reduce__(self) -> tuple[Callable[..., Note], tuple[object, ...]]:
        """Travel to another process with its parts."""
        return _made, (str(self), self.parts)


@cache
def fields_of(code: Code) -> frozenset[str]:
    """Return the names of the parameters of a code.

    Examples
    --------
    >>> sorted(fields_of(Code.INFINITE_IN_CHAINS))
    ['count', 'total']
    """
    return frozenset({name for _, name, _, _ in Formatter().parse(code.value) if name is not None})


def _made(text: str, parts: tuple[tuple[Code, dict[str, object]], ...]) -> Note:
    note = str.__new__(Note, text)
    note.parts = parts
    return note


def join(*notes: str) -> str:
    """Return several notes as one, each once; empty ones are left out.

    Examples
    --------
    >>> join(Note(Code.IDENTICAL), "", Note(Code.NO_SUCH_PREFIX), Note(Code.IDENTICAL))
    'identical: equal on all draws; no such prefix'
    >>> join("", "")
    ''
    """
    kept = [note for note in dict.fromkeys(notes) if note]
    if len(kept) < 2:
        return kept[0] if kept else ""
    return _made("; ".join(kept), tuple(part for note in kept if isinstance(note, Note) for part in note.parts))
