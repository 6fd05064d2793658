"""Linear algebra and functions of lanes. Matrices are small arrays of float32, the same for every lane."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np.arrayobj import make_array

from icl_estimators.transformer.kernel.lanes import (
    VECTOR,
    WORDS,
    LanesType,
    Value,
    add,
    constant,
    larger,
    multiply,
    operation,
    pack,
    splat,
    sum_of_products,
    unpack,
    words,
)

__all__ = ["apply", "apply_transposed", "dot", "exp2", "join", "largest", "log", "tail", "total"]


@operation
def dot(typing: Any, x: Any, y: Any) -> Any:
    """Return the sum over rows of x · y, one row."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        return pack(builder, [sum_of_products(builder, *(unpack(builder, value) for value in arguments))])

    return LanesType(1)(x, y), generate


@operation
def apply(typing: Any, matrix: Any, x: Any, shape: Any) -> Any:
    """Return matrix · x, as many rows as `shape` is long."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        xs = unpack(builder, arguments[1])
        product = []
        for r in range(len(shape)):
            line = [_scalar(context, builder, matrix, arguments[0], r, c) for c in range(len(xs))]
            product.append(sum_of_products(builder, line, xs))
        return pack(builder, product)

    return LanesType(len(shape))(matrix, x, shape), generate


@operation
def apply_transposed(typing: Any, matrix: Any, y: Any, shape: Any) -> Any:
    """Return matrixᵀ · y, the first rows of it, as many as `shape` is long."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        ys = unpack(builder, arguments[1])
        product = []
        for c in range(len(shape)):
            column = [_scalar(context, builder, matrix, arguments[0], r, c) for r in range(len(ys))]
            product.append(sum_of_products(builder, column, ys))
        return pack(builder, product)

    return LanesType(len(shape))(matrix, y, shape), generate


@operation
def total(typing: Any, x: Any) -> Any:
    """Return the sum over rows, one row."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        result, *others = unpack(builder, arguments[0])
        for row in others:
            result = add(builder, result, row)
        return pack(builder, [result])

    return LanesType(1)(x), generate


@operation
def largest(typing: Any, x: Any) -> Any:
    """Return the largest row in each lane, one row."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        result, *others = unpack(builder, arguments[0])
        for row in others:
            result = larger(builder, row, result)
        return pack(builder, [result])

    return LanesType(1)(x), generate


@operation
def join(typing: Any, x: Any, y: Any) -> Any:
    """Return the rows of x and, below them, those of y; y may be a number."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        above, below = arguments
        if isinstance(y, LanesType):
            return pack(builder, unpack(builder, above) + unpack(builder, below))
        number = splat(builder, context.cast(builder, below, y, types.float32))
        return pack(builder, [*unpack(builder, above), number])

    return LanesType(x.rows + getattr(y, "rows", 1))(x, y), generate


@operation
def tail(typing: Any, x: Any, shape: Any) -> Any:
    """Return the last rows, as many as `shape` is long."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        return pack(builder, unpack(builder, arguments[0])[-len(shape) :])

    return LanesType(len(shape))(x, shape), generate


# Of degree 5, with the smallest relative error on [−½, ½], 7.5e-8; highest power first.
_EXP2 = (0.0013276467799, 0.0096755412483, 0.0555071328665, 0.2402211972657, 0.6931469670587, 1.0000000716541)
_ROUNDER = 1.5 * 2.0**23


@operation
def exp2(typing: Any, x: Any) -> Any:
    """Return 2ˣ for −126 ≤ x ≤ 127, to 2.2e-7 relative; NaN stays NaN.

    Adding 1.5 · 2²³ leaves the integer nearest to x in the low bits of a float32; shifted to where the exponent is, it
    is added to 2 to the power of what is left, which lies between −½ and ½.
    """

    def one(builder: ir.IRBuilder, x: Value) -> Value:
        rounded = builder.fadd(x, constant(_ROUNDER))
        left = builder.fsub(x, builder.fsub(rounded, constant(_ROUNDER)))
        power = constant(_EXP2[0])
        for coefficient in _EXP2[1:]:
            power = add(builder, multiply(builder, power, left), constant(coefficient))
        exponent = builder.shl(builder.bitcast(rounded, WORDS), words(23))
        return builder.bitcast(builder.add(builder.bitcast(power, WORDS), exponent), VECTOR)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        return pack(builder, [one(builder, row) for row in unpack(builder, arguments[0])])

    return x(x), generate


@operation
def log(typing: Any, x: Any) -> Any:
    """Return the natural logarithm of positive numbers that are not subnormal, to the last place or two.

    x = 2ⁿ m with m between √½ and √2, and log m = 2 artanh t with t = (m − 1)/(m + 1), |t| ≤ 0.172.
    """

    def one(builder: ir.IRBuilder, x: Value) -> Value:
        root_half = 0x3F3504F3  # the bits of √½: from there on, an exponent's worth of floats is [√½, √2)
        bits = builder.sub(builder.bitcast(x, WORDS), words(root_half))
        n = builder.ashr(bits, words(23))
        m = builder.bitcast(builder.sub(builder.bitcast(x, WORDS), builder.shl(n, words(23))), VECTOR)
        t = builder.fdiv(builder.fsub(m, constant(1.0)), builder.fadd(m, constant(1.0)))
        square = builder.fmul(t, t)
        series = constant(2.0 / 9.0)
        for odd in (7, 5, 3, 1):
            series = add(builder, multiply(builder, series, square), constant(2.0 / odd))
        exponent = multiply(builder, builder.sitofp(n, VECTOR), constant(0.6931471805599453))
        return add(builder, exponent, multiply(builder, series, t))

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        return pack(builder, [one(builder, row) for row in unpack(builder, arguments[0])])

    return x(x), generate


def _scalar(context: Any, builder: ir.IRBuilder, array: Any, value: Value, *place: int) -> Value:
    """Read one number of a small array and give it to every lane."""
    view = make_array(array)(context, builder, value)
    where = [context.get_constant(types.intp, index) for index in place]
    return splat(builder, builder.load(cgutils.get_item_pointer(context, builder, array, view, where)))
