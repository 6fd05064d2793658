"""A value type for compiled code: a column of numbers for each of 16 sequences at once.

``Lanes(n)`` is n float32 vectors of 16 lanes, one sequence a lane. Its arithmetic is written out row by row when a
function is compiled, because n is part of the type; so code that uses it reads like linear algebra on one
sequence, and runs on 16. Compilers do not vectorise such loops by themselves: they look for the longest axis, which is
the triangle of positions j ≤ i, where every row has another length.

How many rows a value has must be known to the compiler and comes from the length of a tuple, `shape`; what is in the
tuple is never read. Only operations on whole values are offered. Products and sums may be fused (one rounding instead
of two), never reordered, and NaN and infinity are what they are in IEEE arithmetic.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable
from numba.np.arrayobj import make_array

__all__ = [
    "LANES",
    "add_outer",
    "add_to",
    "apply",
    "apply_transposed",
    "dot",
    "exp2",
    "join",
    "largest",
    "load",
    "log",
    "maximum",
    "one_hot",
    "store",
    "tail",
    "total",
    "zeros",
]

LANES = 16
"""Sequences in one vector: a register of AVX-512, two of AVX2, four of NEON."""

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_WORDS = ir.VectorType(ir.IntType(32), LANES)
_FUSE = ("contract",)

Value = ir.Value
Row = list[Value]
"""One vector for each row."""


class LanesType(types.Type):
    """The type of a value with that many rows."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        super().__init__(f"Lanes({rows})")


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: LanesType) -> None:
        super().__init__(manager, kind, ir.ArrayType(_VECTOR, kind.rows))


# What is written out while a function is compiled.


def _splat(builder: ir.IRBuilder, scalar: Value) -> Value:
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), ir.Constant(_WORDS, [0] * LANES))


def _constant(value: float) -> Value:
    return ir.Constant(_VECTOR, [value] * LANES)


def _words(value: int) -> Value:
    return ir.Constant(_WORDS, [value] * LANES)


def _rows(builder: ir.IRBuilder, value: Value) -> Row:
    return [builder.extract_value(value, r) for r in range(value.type.count)]


def _pack(builder: ir.IRBuilder, rows: Row) -> Value:
    value: Value = ir.Constant(ir.ArrayType(_VECTOR, len(rows)), ir.Undefined)
    for r, row in enumerate(rows):
        value = builder.insert_value(value, row, r)
    return value


def _multiply(builder: ir.IRBuilder, x: Value, y: Value) -> Value:
    return builder.fmul(x, y, flags=_FUSE)


def _add(builder: ir.IRBuilder, x: Value, y: Value) -> Value:
    return builder.fadd(x, y, flags=_FUSE)


def _sum_of_products(builder: ir.IRBuilder, xs: Row, ys: Row) -> Value:
    result = _multiply(builder, xs[0], ys[0])
    for x, y in zip(xs[1:], ys[1:], strict=True):
        result = _add(builder, result, _multiply(builder, x, y))
    return result


def _larger(builder: ir.IRBuilder, x: Value, y: Value) -> Value:
    return builder.select(builder.fcmp_unordered(">", x, y), x, y)  # a NaN in x stays


def _scalar(context: Any, builder: ir.IRBuilder, array: Any, value: Value, indices: list[int]) -> Value:
    """Read one number of a small array and give it to every lane."""
    view = make_array(array)(context, builder, value)
    where = [context.get_constant(types.intp, index) for index in indices]
    return _splat(builder, builder.load(cgutils.get_item_pointer(context, builder, array, view, where)))


def _data(context: Any, builder: ir.IRBuilder, array: Any, value: Value) -> Value:
    return make_array(array)(context, builder, value).data


def _vector_at(builder: ir.IRBuilder, data: Value, index: Value, kind: ir.Type = _VECTOR) -> Value:
    """Return where the vector of that number lies in contiguous memory."""
    lane = builder.mul(index, ir.Constant(index.type, LANES))
    return builder.bitcast(builder.gep(data, [lane]), kind.as_pointer())


def _row_addresses(
    context: Any, builder: ir.IRBuilder, array: Any, value: Value, position: Value, first: Value, count: int
) -> Row:
    """Return where rows `first`, … of a position lie: next to one another."""
    view = make_array(array)(context, builder, value)
    n_rows = builder.extract_value(view.shape, 1)
    begin = builder.add(builder.mul(position, n_rows), first)
    rows = [builder.add(begin, ir.Constant(begin.type, r)) for r in range(count)]
    return [_vector_at(builder, view.data, row) for row in rows]


def _get(builder: ir.IRBuilder, address: Value) -> Value:
    vector = builder.load(address)
    vector.align = 4
    return vector


def _put(builder: ir.IRBuilder, vector: Value, address: Value) -> None:
    builder.store(vector, address, align=4)


# Operators, between values with the same rows, or where one of the two has a single row or is a number.


def _define(symbol: Callable[..., Any], combine: Callable[[ir.IRBuilder, Value, Value], Value]) -> None:
    @type_callable(symbol)
    def kind(context: Any) -> Callable[[Any, Any], Any]:
        def typer(x: Any, y: Any) -> Any:
            rows = [operand.rows for operand in (x, y) if isinstance(operand, LanesType)]
            others = [operand for operand in (x, y) if not isinstance(operand, LanesType)]
            if not rows or any(not isinstance(other, types.Float) for other in others):
                return None
            if len(set(rows) - {1}) > 1:
                return None
            return LanesType(max(rows))

        return typer

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        rows = signature.return_type.rows
        operands = []
        for operand, value in zip(signature.args, arguments, strict=True):
            if isinstance(operand, LanesType):
                vectors = _rows(builder, value)
            else:
                vectors = [_splat(builder, context.cast(builder, value, operand, types.float32))]
            operands.append(vectors * rows if len(vectors) == 1 else vectors)
        return _pack(builder, [combine(builder, x, y) for x, y in zip(*operands, strict=True)])

    for left, right in ((LanesType, LanesType), (LanesType, types.Float), (types.Float, LanesType)):
        lower_builtin(symbol, left, right)(generate)


def maximum(x: Any, y: Any) -> Any:
    """Return the larger of the two, lane by lane."""
    raise NotImplementedError("in compiled code only")


_define(operator.add, _add)
_define(operator.iadd, _add)
_define(operator.sub, lambda builder, x, y: builder.fsub(x, y, flags=_FUSE))
_define(operator.mul, _multiply)
_define(operator.truediv, lambda builder, x, y: builder.fdiv(x, y))
_define(maximum, _larger)


# Memory: arrays of float32 with axes (position, row, lane).


@intrinsic
def zeros(typing: Any, shape: Any) -> Any:
    """Return a value of zeros."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        return _pack(builder, [_constant(0.0)] * len(shape))

    return LanesType(len(shape))(shape), generate


@intrinsic
def load(typing: Any, array: Any, position: Any, first: Any, shape: Any) -> Any:
    """Return rows `first`, … of a position."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        array_value, position_value, first_value, _ = arguments
        addresses = _row_addresses(context, builder, array, array_value, position_value, first_value, len(shape))
        return _pack(builder, [_get(builder, address) for address in addresses])

    return LanesType(len(shape))(array, types.intp, types.intp, shape), generate


@intrinsic
def store(typing: Any, array: Any, position: Any, first: Any, value: Any) -> Any:
    """Write a value to rows `first`, … of a position."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        array_value, position_value, first_value, given = arguments
        addresses = _row_addresses(context, builder, array, array_value, position_value, first_value, value.rows)
        for vector, address in zip(_rows(builder, given), addresses, strict=True):
            _put(builder, vector, address)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, value), generate


@intrinsic
def add_to(typing: Any, array: Any, position: Any, first: Any, value: Any) -> Any:
    """Add a value to rows `first`, … of a position."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        array_value, position_value, first_value, given = arguments
        addresses = _row_addresses(context, builder, array, array_value, position_value, first_value, value.rows)
        for vector, address in zip(_rows(builder, given), addresses, strict=True):
            _put(builder, _add(builder, _get(builder, address), vector), address)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, value), generate


@intrinsic
def add_outer(typing: Any, array: Any, y: Any, x: Any) -> Any:
    """Add y xᵀ to an array of shape (rows of y, rows of x, LANES)."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        array_value, y_value, x_value = arguments
        data = _data(context, builder, array, array_value)
        xs = _rows(builder, x_value)
        for a, left in enumerate(_rows(builder, y_value)):
            for b, right in enumerate(xs):
                address = _vector_at(builder, data, context.get_constant(types.intp, a * len(xs) + b))
                _put(builder, _add(builder, _get(builder, address), _multiply(builder, left, right)), address)
        return context.get_dummy_value()

    return types.void(array, y, x), generate


@intrinsic
def one_hot(typing: Any, tokens: Any, position: Any, shape: Any) -> Any:
    """Return 1 in the row of each lane's token and 0 elsewhere; tokens are int32, (position, lane)."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        tokens_value, position_value, _ = arguments
        data = _data(context, builder, tokens, tokens_value)
        token = _get(builder, _vector_at(builder, data, position_value, _WORDS))
        one, zero = _constant(1.0), _constant(0.0)
        rows = [builder.select(builder.icmp_signed("==", token, _words(r)), one, zero) for r in range(len(shape))]
        return _pack(builder, rows)

    return LanesType(len(shape))(tokens, types.intp, shape), generate


# Linear algebra: matrices are small arrays of float32, the same for every lane.


@intrinsic
def dot(typing: Any, x: Any, y: Any) -> Any:
    """Return the sum over rows of x · y, one row."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        return _pack(builder, [_sum_of_products(builder, *(_rows(builder, value) for value in arguments))])

    return LanesType(1)(x, y), generate


@intrinsic
def apply(typing: Any, matrix: Any, x: Any, shape: Any) -> Any:
    """Return matrix · x, as many rows as `shape` is long."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        xs = _rows(builder, arguments[1])
        rows = []
        for r in range(len(shape)):
            line = [_scalar(context, builder, matrix, arguments[0], [r, c]) for c in range(len(xs))]
            rows.append(_sum_of_products(builder, line, xs))
        return _pack(builder, rows)

    return LanesType(len(shape))(matrix, x, shape), generate


@intrinsic
def apply_transposed(typing: Any, matrix: Any, y: Any, shape: Any) -> Any:
    """Return matrixᵀ · y, the first rows of it, as many as `shape` is long."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        ys = _rows(builder, arguments[1])
        rows = []
        for c in range(len(shape)):
            column = [_scalar(context, builder, matrix, arguments[0], [r, c]) for r in range(len(ys))]
            rows.append(_sum_of_products(builder, column, ys))
        return _pack(builder, rows)

    return LanesType(len(shape))(matrix, y, shape), generate


@intrinsic
def total(typing: Any, x: Any) -> Any:
    """Return the sum over rows, one row."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        result, *others = _rows(builder, arguments[0])
        for row in others:
            result = _add(builder, result, row)
        return _pack(builder, [result])

    return LanesType(1)(x), generate


@intrinsic
def largest(typing: Any, x: Any) -> Any:
    """Return the largest row in each lane, one row."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        result, *others = _rows(builder, arguments[0])
        for row in others:
            result = _larger(builder, row, result)
        return _pack(builder, [result])

    return LanesType(1)(x), generate


@intrinsic
def join(typing: Any, x: Any, y: Any) -> Any:
    """Return the rows of x and, below them, those of y; y may be a number."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        above, below = arguments
        if isinstance(y, LanesType):
            return _pack(builder, _rows(builder, above) + _rows(builder, below))
        number = _splat(builder, context.cast(builder, below, y, types.float32))
        return _pack(builder, [*_rows(builder, above), number])

    return LanesType(x.rows + getattr(y, "rows", 1))(x, y), generate


@intrinsic
def tail(typing: Any, x: Any, shape: Any) -> Any:
    """Return the last rows, as many as `shape` is long."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        return _pack(builder, _rows(builder, arguments[0])[-len(shape) :])

    return LanesType(len(shape))(x, shape), generate


# Functions of one number, by polynomial: libraries have them for scalars only.

# Of degree 5, with the smallest relative error on [−½, ½], 7.5e-8; highest power first.
_EXP2 = (0.0013276467799, 0.0096755412483, 0.0555071328665, 0.2402211972657, 0.6931469670587, 1.0000000716541)
_ROUNDER = 1.5 * 2.0**23


@intrinsic
def exp2(typing: Any, x: Any) -> Any:
    """Return 2ˣ for −126 ≤ x ≤ 127, to 2e-7 relative.

    Adding 1.5 · 2²³ leaves the integer nearest to x in the low bits of a float32; shifted to where the exponent is, it
    is added to 2 to the power of what is left, which lies between −½ and ½.
    """

    def one(builder: ir.IRBuilder, x: Value) -> Value:
        rounded = builder.fadd(x, _constant(_ROUNDER))
        left = builder.fsub(x, builder.fsub(rounded, _constant(_ROUNDER)))
        power = _constant(_EXP2[0])
        for coefficient in _EXP2[1:]:
            power = _add(builder, _multiply(builder, power, left), _constant(coefficient))
        exponent = builder.shl(builder.bitcast(rounded, _WORDS), _words(23))
        return builder.bitcast(builder.add(builder.bitcast(power, _WORDS), exponent), _VECTOR)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        return _pack(builder, [one(builder, row) for row in _rows(builder, arguments[0])])

    return x(x), generate


@intrinsic
def log(typing: Any, x: Any) -> Any:
    """Return the natural logarithm of positive numbers that are not subnormal, to 2e-7.

    x = 2ⁿ m with m between √½ and √2, and log m = 2 artanh t with t = (m − 1)/(m + 1), |t| ≤ 0.172.
    """

    def one(builder: ir.IRBuilder, x: Value) -> Value:
        root_half = 0x3F3504F3  # the bits of √½: from there on, an exponent's worth of floats is [√½, √2)
        bits = builder.sub(builder.bitcast(x, _WORDS), _words(root_half))
        n = builder.ashr(bits, _words(23))
        m = builder.bitcast(builder.sub(builder.bitcast(x, _WORDS), builder.shl(n, _words(23))), _VECTOR)
        t = builder.fdiv(builder.fsub(m, _constant(1.0)), builder.fadd(m, _constant(1.0)))
        square = builder.fmul(t, t)
        series = _constant(2.0 / 9.0)
        for odd in (7, 5, 3, 1):
            series = _add(builder, _multiply(builder, series, square), _constant(2.0 / odd))
        exponent = _multiply(builder, builder.sitofp(n, _VECTOR), _constant(0.6931471805599453))
        return _add(builder, exponent, _multiply(builder, series, t))

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        return _pack(builder, [one(builder, row) for row in _rows(builder, arguments[0])])

    return x(x), generate
