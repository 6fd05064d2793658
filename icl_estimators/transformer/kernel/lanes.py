"""A value type for compiled code: a column of numbers for each of 16 sequences at once.

``Lanes(n)`` is n float32 vectors of 16 lanes, one sequence per lane. Its arithmetic is written out row by row when a
function is compiled, because n is part of the type; so code that uses it reads like linear algebra on one
sequence, and runs on 16. Compilers do not vectorise such loops by themselves: they look for the longest axis, which is
the triangle of positions j ≤ i, where every row has another length.

Here are the type, its operators and what writes them out; memory is in
:mod:`~icl_estimators.transformer.kernel.lane_memory`, everything else in
:mod:`~icl_estimators.transformer.kernel.lane_algebra`. How many rows a value has must be known to the compiler and
comes from the length of a tuple, `shape`; what is in the tuple is never read. Products and sums may be fused (one
rounding instead of two), never reordered, and NaN and infinity are what they are in IEEE arithmetic.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

__all__ = ["LANES", "LanesType", "maximum"]

LANES = 16
"""Sequences in one vector: a register of AVX-512, two of AVX2, four of NEON."""

VECTOR = ir.VectorType(ir.FloatType(), LANES)
WORDS = ir.VectorType(ir.IntType(32), LANES)
FUSE = ("contract",)

Value = Any
"""Of llvmlite, which has no types: what an instruction yields."""

Rows = list[Any]
"""One vector for each row."""


class LanesType(types.Type):
    """The type of a value with that many rows."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        super().__init__(f"Lanes({rows})")


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: LanesType) -> None:
        super().__init__(manager, kind, ir.ArrayType(VECTOR, kind.rows))


def operation(define: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of compiled code from one that returns its signature and what writes it out."""
    result: Callable[..., Any] = intrinsic(define)
    return result


def splat(builder: ir.IRBuilder, scalar: Value) -> Value:
    """Give a number to every lane."""
    first = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, ir.Constant(VECTOR, ir.Undefined), ir.Constant(WORDS, [0] * LANES))


def constant(value: float) -> Value:
    """Return a vector with that number in every lane."""
    return ir.Constant(VECTOR, [value] * LANES)


def words(value: int) -> Value:
    """Return a vector of 32-bit integers, all the same."""
    return ir.Constant(WORDS, [value] * LANES)


def unpack(builder: ir.IRBuilder, value: Value) -> Rows:
    """Return the vectors of a value."""
    return [builder.extract_value(value, r) for r in range(value.type.count)]


def pack(builder: ir.IRBuilder, rows: Rows) -> Value:
    """Return the value that consists of those vectors."""
    value: Value = ir.Constant(ir.ArrayType(VECTOR, len(rows)), ir.Undefined)
    for r, row in enumerate(rows):
        value = builder.insert_value(value, row, r)
    return value


def multiply(builder: ir.IRBuilder, x: Value, y: Value) -> Value:
    """Return x · y; fused with an addition where one follows."""
    return builder.fmul(x, y, flags=FUSE)


def add(builder: ir.IRBuilder, x: Value, y: Value) -> Value:
    """Return x + y."""
    return builder.fadd(x, y, flags=FUSE)


def sum_of_products(builder: ir.IRBuilder, xs: Rows, ys: Rows) -> Value:
    """Return Σ x y, from the first row on."""
    result = multiply(builder, xs[0], ys[0])
    for x, y in zip(xs[1:], ys[1:], strict=True):
        result = add(builder, result, multiply(builder, x, y))
    return result


def larger(builder: ir.IRBuilder, x: Value, y: Value) -> Value:
    """Return the larger of the two, and NaN where x is NaN."""
    return builder.select(builder.fcmp_unordered(">", x, y), x, y)


def _define(symbol: Callable[..., Any], combine: Callable[[ir.IRBuilder, Value, Value], Value]) -> None:
    """Give an operator to values with the same rows, or where one of the two has a single row or is a number."""

    @type_callable(symbol)
    def kind(context: Any) -> Callable[[Any, Any], Any]:
        def typer(x: Any, y: Any) -> Any:
            counts = {operand.rows for operand in (x, y) if isinstance(operand, LanesType)}
            others = [operand for operand in (x, y) if not isinstance(operand, LanesType)]
            fits = counts and len(counts - {1}) <= 1 and all(isinstance(other, types.Float) for other in others)
            return LanesType(max(counts)) if fits else None

        return typer

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        count = signature.return_type.rows
        operands = []
        for operand, value in zip(signature.args, arguments, strict=True):
            if isinstance(operand, LanesType):
                vectors = unpack(builder, value)
            else:
                vectors = [splat(builder, context.cast(builder, value, operand, types.float32))]
            operands.append(vectors * count if len(vectors) == 1 else vectors)
        return pack(builder, [combine(builder, x, y) for x, y in zip(*operands, strict=True)])

    for left, right in ((LanesType, LanesType), (LanesType, types.Float), (types.Float, LanesType)):
        lower_builtin(symbol, left, right)(generate)


def maximum(x: Any, y: Any) -> Any:
    """Return the larger of the two, lane by lane."""
    raise NotImplementedError("in compiled code only")


_define(operator.add, add)
_define(operator.iadd, add)
_define(operator.sub, lambda builder, x, y: builder.fsub(x, y, flags=FUSE))
_define(operator.mul, multiply)
_define(operator.truediv, lambda builder, x, y: builder.fdiv(x, y))
_define(maximum, larger)
