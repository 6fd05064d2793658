"""Lanes in memory: contiguous arrays of float32 with axes (position, row, lane)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.np.arrayobj import make_array

from icl_estimators.transformer.kernel.lanes import (
    LANES,
    VECTOR,
    WORDS,
    LanesType,
    Rows,
    Value,
    add,
    constant,
    multiply,
    operation,
    pack,
    unpack,
    words,
)

__all__ = ["add_outer", "add_to", "load", "one_hot", "store", "zeros"]


@operation
def zeros(typing: Any, shape: Any) -> Any:
    """Return a value of zeros."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        return pack(builder, [constant(0.0)] * len(shape))

    return LanesType(len(shape))(shape), generate


@operation
def load(typing: Any, array: Any, position: Any, first: Any, shape: Any) -> Any:
    """Return rows `first`, … of a position."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        array_value, position_value, first_value, _ = arguments
        addresses = _row_addresses(context, builder, array, array_value, position_value, first_value, len(shape))
        return pack(builder, [_get(builder, address) for address in addresses])

    return LanesType(len(shape))(array, types.intp, types.intp, shape), generate


@operation
def store(typing: Any, array: Any, position: Any, first: Any, value: Any) -> Any:
    """Write a value to rows `first`, … of a position."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        array_value, position_value, first_value, given = arguments
        addresses = _row_addresses(context, builder, array, array_value, position_value, first_value, value.rows)
        for vector, address in zip(unpack(builder, given), addresses, strict=True):
            _put(builder, vector, address)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, value), generate


@operation
def add_to(typing: Any, array: Any, position: Any, first: Any, value: Any) -> Any:
    """Add a value to rows `first`, … of a position."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        array_value, position_value, first_value, given = arguments
        addresses = _row_addresses(context, builder, array, array_value, position_value, first_value, value.rows)
        for vector, address in zip(unpack(builder, given), addresses, strict=True):
            _put(builder, add(builder, _get(builder, address), vector), address)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, value), generate


@operation
def add_outer(typing: Any, array: Any, y: Any, x: Any) -> Any:
    """Add y xᵀ to an array of shape (rows of y, rows of x, LANES)."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        array_value, y_value, x_value = arguments
        data = _data(context, builder, array, array_value)
        xs = unpack(builder, x_value)
        for a, left in enumerate(unpack(builder, y_value)):
            for b, right in enumerate(xs):
                address = _vector_at(builder, data, context.get_constant(types.intp, a * len(xs) + b))
                _put(builder, add(builder, _get(builder, address), multiply(builder, left, right)), address)
        return context.get_dummy_value()

    return types.void(array, y, x), generate


@operation
def one_hot(typing: Any, tokens: Any, position: Any, shape: Any) -> Any:
    """Return 1 in the row of each lane's token and 0 elsewhere; tokens are int32, (position, lane)."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Value:
        tokens_value, position_value, _ = arguments
        data = _data(context, builder, tokens, tokens_value)
        token = _get(builder, _vector_at(builder, data, position_value, WORDS))
        one, zero = constant(1.0), constant(0.0)
        hot = [builder.select(builder.icmp_signed("==", token, words(r)), one, zero) for r in range(len(shape))]
        return pack(builder, hot)

    return LanesType(len(shape))(tokens, types.intp, shape), generate


def _data(context: Any, builder: ir.IRBuilder, array: Any, value: Value) -> Value:
    return make_array(array)(context, builder, value).data


def _vector_at(builder: ir.IRBuilder, data: Value, index: Value, kind: ir.Type = VECTOR) -> Value:
    """Return where the vector of that number lies in contiguous memory."""
    lane = builder.mul(index, ir.Constant(index.type, LANES))
    return builder.bitcast(builder.gep(data, [lane]), kind.as_pointer())


def _row_addresses(
    context: Any, builder: ir.IRBuilder, array: Any, value: Value, position: Value, first: Value, count: int
) -> Rows:
    """Return where rows `first`, … of a position lie: next to one another."""
    view = make_array(array)(context, builder, value)
    n_rows = builder.extract_value(view.shape, 1)
    begin = builder.add(builder.mul(position, n_rows), first)
    numbers = [builder.add(begin, ir.Constant(begin.type, r)) for r in range(count)]
    return [_vector_at(builder, view.data, number) for number in numbers]


def _get(builder: ir.IRBuilder, address: Value) -> Value:
    vector = builder.load(address)
    vector.align = 4
    return vector


def _put(builder: ir.IRBuilder, vector: Value, address: Value) -> None:
    builder.store(vector, address, align=4)
