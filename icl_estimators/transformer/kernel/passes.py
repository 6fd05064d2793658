"""Both layers on 16 sequences at once, forward and backward: the compiled code, in the order in which it runs.

A group of sequences, one on each lane of :mod:`~icl_estimators.transformer.kernel.lanes`, has one model. For
position i of a sequence, x_i = (onehot(t_i), M_i) without the first state of either half, m = 2(K − 1) rows, and
x̃ = (x, 1). Row i of layer 2 is worked out, scored and differentiated before row i + 1 starts; only one row
of the T × T matrices is in memory. With E_ij = exp(score_ij), Z = Σ_j E_ij, o = Σ_j E_ij x_j/Z, d the gradient of
the logits and g = inductionᵀd/Z,

    ∂loss/∂score_ij = E_ij (g · x_j − g · o).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import njit

from icl_estimators.transformer.kernel.lane_algebra import (
    apply,
    apply_transposed,
    dot,
    exp2,
    join,
    largest,
    log,
    tail,
    total,
)
from icl_estimators.transformer.kernel.lane_memory import add_outer, add_to, load, one_hot, store, zeros
from icl_estimators.transformer.kernel.lanes import LANES, maximum

__all__ = ["Numbers", "Scratch", "Shapes", "Sums", "gradient_pass", "logits_pass"]

# The types of arguments are settled when a function is compiled: to Python they are Any.

LOG2_E = 1.4426950408889634
SMALLEST = -126.0  # below it, powers of 2 are subnormal

compiled = njit(nogil=True, error_model="numpy")


class Shapes(NamedTuple):
    """Tuples whose lengths are the numbers of rows in play; see :mod:`~icl_estimators.transformer.kernel.lanes`."""

    one: tuple[int, ...]  # 1
    rest: tuple[int, ...]  # K − 1: the states without the first
    states: tuple[int, ...]  # K
    features: tuple[int, ...]  # m = 2(K − 1)


class Numbers(NamedTuple):
    """The reduced numbers, float32, of one model or, with a leading axis, of several."""

    trained: Any  # int: positions from here on take the second line of `occurrence` and `bias`
    occurrence: Any  # (1 or 2, D) exp(r1) by distance, the largest 1
    preference: Any  # (K, K) exp(S1) by query and key state, the largest of a row 1
    query: Any  # (m + 1, m): its transpose maps x̃_i to what the features of a key are multiplied with
    bias: Any  # (1 or 2, D) r2 by distance, in base 2
    direct: Any  # (K, m + 1): x̃ ↦ logits
    induction: Any  # (K, m): averaged x ↦ logits


class Scratch(NamedTuple):
    """Memory that one group works in."""

    tokens: Any  # (T + 1, LANES) int32
    stream: Any  # (T, 2K − 1, LANES) onehot(t_i) with all states, then M_i without the first: x_i from row 1 on
    scale: Any  # (T, 1, LANES) what made the layer-1 weights sum to 1
    weights: Any  # (T, 1, LANES) E_ij of the row i at hand
    d_mass: Any  # (T, K − 1, LANES) gradient of M
    logits: Any  # (1, K, LANES)


class Sums(NamedTuple):
    """Loss and gradients: float32 and a last axis of lanes while positions are summed, then float64."""

    loss: Any  # (1, 1)
    occurrence: Any  # (1 or 2, D)
    preference: Any  # (K, K) with respect to its logarithm
    query: Any  # (m + 1, m)
    bias: Any  # (1 or 2, D) with respect to nats
    direct: Any  # (K, m + 1)
    induction: Any  # (K, m)


@compiled
def line(i: Any, numbers: Any) -> int:
    """Return which line of distances position i goes by."""
    return 0 if i < numbers.trained else 1


@compiled
def read_tokens(tokens: Any, first: Any, scratch: Any) -> None:
    """Bring sequences `first`, … of (B, L) tokens onto the lanes; lanes without a sequence get state 0."""
    for lane in range(LANES):
        sequence = first + lane
        for position in range(tokens.shape[1]):
            scratch.tokens[position, lane] = tokens[sequence, position] if sequence < tokens.shape[0] else 0


@compiled
def layer_one(length: Any, numbers: Any, scratch: Any, shapes: Any) -> None:
    """Fill the stream: onehot(t_i), and M_i[b] ∝ preference[t_i, b] · Σ_{j≤i} occurrence[i − j] 1[t_j = b]."""
    for i in range(length):
        store(scratch.stream, i, 0, one_hot(scratch.tokens, i, shapes.states))
    for i in range(length):
        occurrence = numbers.occurrence[line(i, numbers)]
        counted = zeros(shapes.states)
        for j in range(i + 1):
            counted += occurrence[i - j] * load(scratch.stream, j, 0, shapes.states)
        here = load(scratch.stream, i, 0, shapes.states)
        weights = counted * apply_transposed(numbers.preference, here, shapes.states)
        scale = 1.0 / total(weights)
        store(scratch.scale, i, 0, scale)
        store(scratch.stream, i, len(shapes.states), tail(weights, shapes.rest) * scale)


@compiled
def attend(i: Any, query: Any, numbers: Any, scratch: Any, shapes: Any) -> Any:
    """Return o_i, the average that layer 2 reads, and 1/Z; E_ij stay in `scratch.weights`."""
    query = query * LOG2_E
    bias = numbers.bias[line(i, numbers)]
    normaliser = zeros(shapes.one)
    read = zeros(shapes.features)
    for j in range(i + 1):
        key = load(scratch.stream, j, 1, shapes.features)
        weight = exp2(dot(query, key) + bias[i - j])
        store(scratch.weights, j, 0, weight)
        normaliser += weight
        read += weight * key
    scale = 1.0 / normaliser
    return read * scale, scale


@compiled
def logits_pass(tokens: Any, first: Any, logits: Any, numbers: Any, scratch: Any, shapes: Any) -> None:
    """Write the logits of sequences `first`, …, shape (B, T, K)."""
    length = tokens.shape[1]
    read_tokens(tokens, first, scratch)
    layer_one(length, numbers, scratch, shapes)
    for i in range(length):
        x = join(load(scratch.stream, i, 1, shapes.features), 1.0)
        read, _ = attend(i, apply_transposed(numbers.query, x, shapes.features), numbers, scratch, shapes)
        row = apply(numbers.direct, x, shapes.states) + apply(numbers.induction, read, shapes.states)
        store(scratch.logits, 0, 0, row)
        for lane in range(min(LANES, tokens.shape[0] - first)):
            for state in range(len(shapes.states)):
                logits[first + lane, i, state] = scratch.logits[0, state, lane]


@compiled
def score(i: Any, logits: Any, share: Any, numbers: Any, scratch: Any, sums: Any, shapes: Any) -> Any:
    """Add the loss of predicting token i + 1 and return the gradient of the logits; each lane counts `share`."""
    target = one_hot(scratch.tokens, i + 1, shapes.states)
    logits = logits - largest(logits)
    powers = exp2(maximum(logits * LOG2_E, SMALLEST))
    normaliser = total(powers)
    add_to(sums.loss, 0, 0, (log(normaliser) - dot(target, logits)) * share)
    return (powers / normaliser - target) * share


@compiled
def attend_back(
    i: Any, query: Any, d_read: Any, read: Any, scale: Any, numbers: Any, scratch: Any, sums: Any, shapes: Any
) -> Any:
    """Carry the gradient of o_i to the keys and to the biases; return that of the query, `d_query`."""
    g = d_read * scale
    centre = dot(g, read)
    d_query = zeros(shapes.features)
    g_mass, query_mass = tail(g, shapes.rest), tail(query, shapes.rest)
    for j in range(i + 1):
        key = load(scratch.stream, j, 1, shapes.features)
        weight = load(scratch.weights, j, 0, shapes.one)
        d_score = weight * (dot(g, key) - centre)
        d_query += d_score * key
        add_to(scratch.d_mass, j, 0, d_score * query_mass + weight * g_mass)
        add_to(sums.bias, line(i, numbers), i - j, d_score)
    return d_query


@compiled
def layer_one_back(length: Any, numbers: Any, scratch: Any, sums: Any, shapes: Any) -> None:
    """Carry the gradient of M to `occurrence` and, as that of log preference, to `preference`."""
    for i in range(length):
        here = load(scratch.stream, i, 0, shapes.states)
        rest = load(scratch.stream, i, len(shapes.states), shapes.rest)
        mass = join(1.0 - total(rest), rest)
        d_mass = load(scratch.d_mass, i, 0, shapes.rest)
        d_mass = join(zeros(shapes.one), d_mass) - dot(d_mass, rest)  # as layer 1's softmax sees it
        add_outer(sums.preference, here, d_mass * mass)
        d_counted = (
            d_mass * apply_transposed(numbers.preference, here, shapes.states) * load(scratch.scale, i, 0, shapes.one)
        )
        for j in range(i + 1):
            add_to(sums.occurrence, line(i, numbers), i - j, dot(d_counted, load(scratch.stream, j, 0, shapes.states)))


@compiled
def gradient_pass(tokens: Any, first: Any, share: Any, numbers: Any, scratch: Any, sums: Any, shapes: Any) -> None:
    """Add loss and gradient of sequences `first`, …, of (B, T + 1) tokens; each lane's loss counts `share`."""
    length = tokens.shape[1] - 1
    read_tokens(tokens, first, scratch)
    layer_one(length, numbers, scratch, shapes)
    for i in range(length):
        store(scratch.d_mass, i, 0, zeros(shapes.rest))
    for i in range(length):
        x = join(load(scratch.stream, i, 1, shapes.features), 1.0)
        query = apply_transposed(numbers.query, x, shapes.features)
        read, scale = attend(i, query, numbers, scratch, shapes)
        logits = apply(numbers.direct, x, shapes.states) + apply(numbers.induction, read, shapes.states)
        d_logits = score(i, logits, share, numbers, scratch, sums, shapes)
        add_outer(sums.direct, d_logits, x)
        add_outer(sums.induction, d_logits, read)
        d_read = apply_transposed(numbers.induction, d_logits, shapes.features)
        d_query = attend_back(i, query, d_read, read, scale, numbers, scratch, sums, shapes)
        add_outer(sums.query, x, d_query)
        d_x = apply(numbers.query, d_query, shapes.features) + apply_transposed(
            numbers.direct, d_logits, shapes.features
        )
        add_to(scratch.d_mass, i, 0, tail(d_x, shapes.rest))
    layer_one_back(length, numbers, scratch, sums, shapes)
