"""Eight numbers at a time in compiled code: loops whose sums stay in registers.

numba leaves vectors to LLVM, which makes 256 bits of them, tests before every loop whether arrays
overlap, and takes what is over one by one: of short rows most of the time goes there
(docs/decisions/0011). These name the vectors: a processor without registers of 512 bits takes each
in two parts or more. None checks where it reads: a width must be a multiple of `LANES`.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as typed_intrinsic
from numba.extending import models, register_jitable, register_model

LANES = 8
# As it is typed, calls would have to name the context of the compiler.
intrinsic: Any = typed_intrinsic
_NUMBER = ir.DoubleType()
_NUMBERS = ir.VectorType(_NUMBER, LANES)
_CONTRACT = ("contract",)


class Vector(types.Type):
    """The type of eight numbers within compiled functions; none takes or returns one."""

    def __init__(self) -> None:
        super().__init__(name=f"Vector({LANES})")


_VECTOR = Vector()


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _NUMBERS)


@register_jitable
def aligned(rows, width):
    """Zeros, shape (rows, width), that begin where a line of the cache does."""
    flat = np.zeros(rows * width + LANES)
    start = -(flat.ctypes.data // 8) % LANES
    return flat[start : start + rows * width].reshape(rows, width)


@intrinsic
def load(typingctx, array, at):
    """The numbers of an array from a place on: of a matrix (row, column)."""
    return _VECTOR(array, at), _load


@intrinsic
def store(typingctx, array, at, numbers):
    """Put the numbers into an array from a place on."""
    return types.void(array, at, _VECTOR), _store


@intrinsic
def spread(typingctx, number):
    """One number in all lanes."""
    return _VECTOR(types.float64), _spread


@intrinsic
def plus(typingctx, a, b, c):
    """``a + b c``."""

    def codegen(context, builder, signature, args):
        a, b, c = args
        return builder.fadd(a, builder.fmul(b, c, flags=_CONTRACT), flags=_CONTRACT)

    return _VECTOR(_VECTOR, _VECTOR, _VECTOR), codegen


@intrinsic
def times(typingctx, a, b):
    """``a b``."""
    return _VECTOR(_VECTOR, _VECTOR), lambda _, builder, __, args: builder.fmul(*args)


@intrinsic
def total(typingctx, numbers):
    """The sum of the lanes."""
    return types.float64(_VECTOR), _total


def _load(context, builder, signature, args):
    numbers = builder.load(_address(context, builder, signature, args))
    numbers.align = 8
    return numbers


def _store(context, builder, signature, args):
    builder.store(args[2], _address(context, builder, signature, args)).align = 8
    return context.get_dummy_value()


def _address(context, builder, signature, args):
    kind = signature.args[0]
    array = context.make_array(kind)(context, builder, args[0])
    indices = cgutils.unpack_tuple(builder, args[1]) if kind.ndim > 1 else [args[1]]
    item = cgutils.get_item_pointer(context, builder, kind, array, indices, wraparound=False)
    return builder.bitcast(item, _NUMBERS.as_pointer())


def _spread(context, builder, signature, args):
    nothing = ir.Constant(_NUMBERS, ir.Undefined)
    first = builder.insert_element(nothing, args[0], ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, nothing, zeros)


def _total(context, builder, signature, args):
    kind = ir.FunctionType(_NUMBER, (_NUMBER, _NUMBERS))
    name = f"llvm.vector.reduce.fadd.v{LANES}f64"
    add = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(add, (ir.Constant(_NUMBER, -0.0), args[0]), fastmath=("reassoc",))
