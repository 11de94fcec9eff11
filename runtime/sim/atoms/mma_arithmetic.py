# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arithmetic of a matrix instruction, D = A * B + C, by the tables of its atom.

Values are NumPy arrays (lanes, values), as the lanes of a warp hold them in their fragments, one element each; the
element types are those of `DTYPES`. `from_bytes` and `to_bytes` convert between them and the contents of registers.

PTX leaves the order and the rounding of a sum of floats open. Where a `Summation` says how a GPU takes it, results are
that GPU's, bit for bit. Without one, products are exact, the sum of all products and the element of C is taken in
double precision, and the result is rounded once, to nearest even; `bound` says how far a GPU may be from that.

tf32 operands lose the 13 low bits of their f32 pattern, as tensor cores ignore them. Integers are exact; the sum wraps
at 32 bits or, with `.satfinite`, is clamped. UniversalFMA is a fused multiply-add in the type of D.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.element_types import BY_PTX
from ....base.errors import Code
from ....base.target import WARP
from ....layout.algebra.complement import complement
from ....layout.algebra.core import Layout
from ....layout.atoms.contract import Agent, Named
from ....layout.atoms.mma_atom import MmaAtom
from ....layout.atoms.numbers import MmaOperation
from ....layout.atoms.summation import Summation
from ...arrays.storage import distances, pack, unpack
from ...engine import NumPyArray, NumPyType, numpy_type
from ..faults import SimulationError
from ..values import fused_multiply_add
from .sums import multiply_add

if TYPE_CHECKING:
    from ..exact.patterns import Table

Values: TypeAlias = NumPyArray
"""An array (lanes, values) of the elements in a warp's fragments."""
Executor: TypeAlias = Callable[[Values, Values, Values], Values]
"""D of A, B and C, for all lanes of a warp."""
Widen: TypeAlias = Callable[[Values], NDArray[np.float64]]

DTYPES: Mapping[str, NumPyType] = MappingProxyType({name: numpy_type(element) for name, element in BY_PTX.items()})
"""The NumPy type of one element of each PTX type. Elements of 4 bits and 1 bit take a byte each."""


def from_bytes(name: str, content: NDArray[np.uint8], in_bytes: bool = False) -> Values:
    """The elements of PTX type `name` in the bytes (lanes, bytes) of a fragment; `in_bytes` if each has a byte, whose
    bits 2 to 5 are an element of 4 bits.
    """
    element = BY_PTX[name]
    if element.bits == 8 or (element.bits < 8 and in_bytes) or element.memory_bits > element.bits:
        kept = content >> 2 & 0xF if element.bits == 4 else content & np.uint8((1 << element.bits) - 1)
        return np.ascontiguousarray(content if element.bits == 8 else kept).view(DTYPES[name])
    if element.bits < 8:
        elements = unpack(content, element.bits, signed=not element.unsigned and not element.exponent)
        return elements.view(DTYPES[name]) if element.exponent else elements
    return np.ascontiguousarray(content).view(DTYPES[name])


def to_bytes(name: str, values: Values) -> NDArray[np.uint8]:
    """The bytes (lanes, bytes) of a fragment that holds these elements of PTX type `name`."""
    if BY_PTX[name].memory_bits < 8:
        return pack(values, BY_PTX[name].bits)
    return np.ascontiguousarray(values, DTYPES[name]).view(np.uint8)


def executor(atom: MmaAtom, exact: "Table | None" = None, how: Summation | None = None) -> Executor:
    """The result of `atom` for whole warps, one after the other, or, for an atom of one thread, for any lanes; of
    floats in exact arithmetic where there is a table of exact numbers, else summed as `how` says. The first axes of
    arrays (..., lanes, values) are those of several executions.

    An instruction of fewer threads than a warp is executed once by each group of them. SimulationError (E3201) for an
    atom of more than one warp, and one whose operands are not all in registers.
    """
    if atom.contract.agent is Agent.THREAD:
        return _fma(atom, exact)
    table = Places(atom)
    if how is not None and exact is None:
        return _summed(atom, table, how)
    widen_a, widen_b, widen_c = [widen(name, exact) for name in atom.types[1:]]
    rounded = narrow(atom.types[0], table.operation is MmaOperation.SATURATE, exact)
    differing = table.operation is MmaOperation.XOR_POPC
    at_a, at_b, at_c, from_d = table.a, table.b, table.c, table.d

    def execute(a: Values, b: Values, c: Values) -> Values:
        warps = a.shape[-2] // WARP
        left = widen_a(a).reshape(*a.shape[:-2], warps, -1).take(at_a, axis=-1)
        right = widen_b(b).reshape(*b.shape[:-2], warps, -1).take(at_b, axis=-1)
        total = np.matmul(left, right)
        if differing:  # the bits in which two rows differ: those of either, less twice those of both
            total = left.sum(axis=-1, keepdims=True) + right.sum(axis=-2, keepdims=True) - 2 * total
        total = total + widen_c(c).reshape(*c.shape[:-2], warps, -1).take(at_c, axis=-1)
        sums = rounded(total).reshape(*total.shape[:-3], -1).take(from_d, axis=-1)
        return sums.reshape(*total.shape[:-4], a.shape[-2], -1)

    return execute


def _summed(atom: MmaAtom, table: "Places", how: Summation) -> Executor:
    """The result as a GPU sums it."""
    of_a, of_b = widen(atom.types[1]), widen(atom.types[2])
    multiply = multiply_add(how, atom.types, table.a[0], table.b[0], table.c[0])

    def execute(a: Values, b: Values, c: Values) -> Values:
        outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
        fragments = [
            np.broadcast_to(x, (*outer, *x.shape[-2:])).reshape(-1, WARP * x.shape[-1]) for x in (of_a(a), of_b(b), c)
        ]
        return multiply(*fragments).reshape(*outer, *c.shape[-2:])

    return execute


def bound(atom: MmaAtom, a: Values, b: Values, c: Values) -> NDArray[np.float64]:
    """How far D may be from the model's on a GPU, for each element of D; see `compute_allowed_error`."""
    if atom.contract.agent is Agent.THREAD:
        return compute_allowed_error(atom, np.zeros(c.shape, np.float64))
    table = Places(atom)
    magnitude = [
        np.abs(widen(t)(x)).ravel()[at]
        for t, x, at in zip(atom.types[1:], (a, b, c), (table.a, table.b, table.c), strict=True)
    ]
    total = np.matmul(magnitude[0], magnitude[1]) + magnitude[2]
    return compute_allowed_error(atom, total).ravel()[table.d].reshape(table.shape_d)


def compute_allowed_error(atom: MmaAtom, magnitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far one execution on a GPU may be from the model, where |A| * |B| + |C| is `magnitude`.

    Integers are exact, and so is a fused multiply-add. For floats, tensor cores add products in groups of at least
    four, each addend truncated to the precision that the type's accumulator has, relative to the largest; the error of
    each of K + 1 addends, and of each group's rounding, is at most that precision times the magnitude. Accumulators
    keep 24 bits, of f16 results 11, and of e4m3 and e5m2 14 bits (sm_89). Of f64 each product and each sum is rounded.
    """
    d, a = BY_PTX[atom.types[0]], BY_PTX[atom.types[1]]
    if d.kind == "int" or atom.contract.agent is Agent.THREAD:
        return np.zeros(magnitude.shape, np.float64)
    k = atom.shape[2]
    if d.bits == 64:
        addend, result, groups = 2.0**-53, 2.0**-53, k
    else:
        addend, result, groups = 2.0**-13 if a.bits == 8 else 2.0**-23, 2.0**-d.fraction, max(1, k // 4)
    return magnitude * ((k + 1) * addend + groups * result) + groups * d.least


class Places:
    """Where the elements of the matrices are among the values of a warp's lanes.

    `a`, `b` and `c` are arrays (groups, M, K), (groups, K, N) and (groups, M, N) of positions in the raveled values;
    `d` holds for each value of each lane its position among the raveled (groups, M, N).
    """

    def __init__(self, atom: MmaAtom) -> None:
        in_registers = all(atom.operand(name).named is Named.VALUE for name in "DABC")
        if atom.contract.agent is not Agent.WARP or not in_registers:
            raise SimulationError(Code.SIM_UNSUPPORTED, f"the simulator does not execute atom {atom.name}")
        self.operation = atom.products.operation
        m, n, k = atom.shape
        groups = complement(atom.thr_id, WARP)
        lanes = distances(groups)[:, None] + distances(atom.thr_id)  # (groups, threads)
        self.a = _homes(atom.layout_a, lanes, (m, k))
        self.b = _homes(atom.layout_b, lanes, (n, k)).transpose(0, 2, 1)
        self.c = _homes(atom.layout_c, lanes, (m, n))
        self.shape_d = (WARP, atom.layout_c[1].size)
        self.d = np.argsort(self.c.ravel())


def _homes(layout: Layout, lanes: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    """Where each element (group, row, column) of an operand is among the raveled values (lanes, values)."""
    threads, values = layout[0].size, layout[1].size
    places = distances(layout).reshape(threads, values, order="F")  # counted first mode fastest
    homes = np.zeros((lanes.shape[0], shape[0] * shape[1]), np.int64)
    homes[:, places] = lanes[:, :, None] * values + np.arange(values)
    return homes.reshape(-1, shape[1], shape[0]).transpose(0, 2, 1)


def _fma(atom: MmaAtom, exact: "Table | None") -> Executor:
    """The atom of one thread, in the type of D: floats rounded once, integers modulo two to the power of its width."""
    dtype = DTYPES[atom.types[0]]

    def of_integers(a: Values, b: Values, c: Values) -> Values:
        products = a.astype(dtype) * b.astype(dtype)
        return products.sum(axis=-1, dtype=dtype, keepdims=True) + c.astype(dtype)

    def of_floats(a: Values, b: Values, c: Values) -> Values:
        return fused_multiply_add(a.astype(dtype), b.astype(dtype), c.astype(dtype), dtype)

    def of_numbers(a: Values, b: Values, c: Values) -> Values:
        assert exact is not None
        return exact.values(exact.numbers(a) * exact.numbers(b) + exact.numbers(c), dtype)

    return of_integers if dtype.kind in "iu" else of_floats if exact is None else of_numbers


_TRUNCATED = np.uint32(0xFFFFE000)
_EIGHT_BITS = {
    name: (np.arange(256, dtype=np.uint8) & np.uint8((1 << element.bits) - 1)).view(DTYPES[name]).astype(np.float64)
    for name, element in BY_PTX.items()
    if element.exponent and element.bits <= 8
}


def widen(name: str, exact: "Table | None" = None) -> Widen:
    """Elements of a PTX type in double precision, exactly; of tf32 without the bits that tensor cores ignore. With a
    table the exact numbers that they stand for.
    """
    if exact is not None and BY_PTX[name].kind == "float":
        return lambda x: exact.numbers(np.ascontiguousarray(x).view(DTYPES[name]))
    if BY_PTX[name].stored:
        return lambda x: (np.ascontiguousarray(x).view(np.uint32) & _TRUNCATED).view(np.float32).astype(np.float64)
    if name in _EIGHT_BITS:
        table = _EIGHT_BITS[name]
        return lambda x: table[np.ascontiguousarray(x).view(np.uint8)]
    return lambda x: x.astype(np.float64, copy=False)


def narrow(name: str, saturates: bool, exact: "Table | None" = None) -> Callable[[NDArray[np.float64]], Values]:
    """Sums in double precision, or of exact numbers, as elements of D's type."""
    if exact is not None and BY_PTX[name].kind == "float":
        return lambda x: exact.values(x, DTYPES[name])
    if name == "s32":  # whole numbers, far below 2**53
        if saturates:
            return lambda x: np.clip(x, -(2.0**31), 2.0**31 - 1).astype(np.int32)
        return lambda x: x.astype(np.int64).astype(np.int32)
    dtype = DTYPES[name]
    return lambda x: x.astype(dtype, copy=False)
