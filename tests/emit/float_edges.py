# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels with every operation on floats and every conversion, at the edges of each type."""

from collections.abc import Callable
from itertools import product
from random import Random

import numpy as np

from tests.emit.float_kernels import BINARY, COMPUTED, INTEGERS, NARROW, PREDICATES, UNARY, WHOLE, WIDTHS, Kernel
from tests.emit.float_programs import EDGES, SPECIAL, numbers
from tests.emit.numbers import FORMATS, rounded


def pairs(type: str, seed: int) -> Kernel:
    """A kernel with two inputs: pairs of special numbers of a type, then of any."""
    kernel = Kernel(threads=1024, blocks=2)
    random = Random(seed)
    edges = np.unique(rounded(np.array(SPECIAL), type).view(np.int64)).view(np.float64)
    both = np.array(list(product(edges, edges)))[: kernel.elements]
    for column in range(2):
        filled = numbers(random, type, kernel.elements)
        filled[: len(both)] = both[:, column]
        kernel.input(type, filled)
    return kernel


def operations(type: str) -> Kernel:
    """Every operation and comparison of a type."""
    k = pairs(type, 1)
    third = k.input(type, numbers(Random(2), type, k.elements))
    with np.errstate(all="ignore"):
        for op in BINARY:
            k.binary(op, "%in0", "%in1")
        for op in UNARY:
            k.unary(op, "%in0")
        k.copysign("%in0", k.ordered("%in1"))
        for order, predicate in product("ou", PREDICATES):
            k.compare(order + predicate, "%in0", "%in1")
        k.compare("uno", "%in0", "%in1")
        k.fma("%in0", "%in1", third)
    return k


def conversions(type: str) -> Kernel:
    """Every conversion from a type of floats: to integers, to other floats, and back of what was rounded."""
    k = pairs(type, 3)
    with np.errstate(all="ignore"):
        if type in COMPUTED:
            for op, result in product(("fptosi", "fptoui"), ("i1", *INTEGERS)):
                k.to_integer(op, "%in0", result)
        for result in (t for t in COMPUTED if FORMATS[t].bits != FORMATS[type].bits):
            if {FORMATS[result].bits, FORMATS[type].bits} != {8, 64}:
                k.resize("%in0", result)
        if type in ("f16", "bf16", "f32"):
            for result in NARROW:
                k.resize("%in0", result)
    return k


def of_integers(type: str) -> Kernel:
    """Every conversion from a type of integers, and arithmetic of them."""
    k = Kernel(threads=256)
    for column in range(2):
        values = numbers(Random(column), type, k.elements)
        edges = np.array([e for e in EDGES if abs(e) < 2 ** (WIDTHS[type] - 1)], np.int64)
        values[: len(edges)] = edges
        k.input(type, values)
    for op, result in product(("sitofp", "uitofp"), COMPUTED):
        k.from_integer(op, "%in0", result)
    for op in WHOLE:
        k.whole(op, "%in0", "%in1")
    for result in (t for t, bits in WIDTHS.items() if bits != WIDTHS[type]):
        for op in ("trunci",) if WIDTHS[result] < WIDTHS[type] else ("extsi", "extui"):
            k.whole_resize(op, "%in0", result)
    return k


def wrapping(type: str) -> Kernel:
    """The negative and the size of integers, the least one among them, where they are compared and extended."""
    k = Kernel(threads=8)
    least = -(1 << WIDTHS[type] - 1)
    edges = np.array([least, least + 1, -8, -7, -1, 0, 1, -(least + 1)])
    x = k.input(type, np.resize(edges, k.elements))
    zero, bound = k.constant(type, 0), k.constant(type, -7)
    negative = k.whole("subi", zero, x)
    chosen = k.select(k.compare("slt", x, zero), negative, x)
    for value in (negative, k.absolute(x), chosen, k.whole("maxsi", x, negative)):
        for predicate in ("sgt", "slt", "ugt"):
            k.compare(predicate, value, bound)
        for result in (t for t in INTEGERS if WIDTHS[t] > WIDTHS[type]):
            k.whole_resize("extsi", value, result)
            k.whole_resize("extui", value, result)
        k.whole("addi", value, zero)
    return k


def constants(type: str) -> Kernel:
    """Operations on constants, which LLVM computes itself."""
    k = Kernel(threads=1)
    k.input("i8", np.zeros(k.elements, np.int64))
    with np.errstate(all="ignore"):
        special = rounded(np.array(SPECIAL), type)
        for number, value in enumerate(special):
            a, b = k.constant(type, value), k.constant(type, special[number - 7])
            match number % 3:
                case 0:
                    k.binary(sorted(BINARY)[number // 3 % len(BINARY)], a, b)
                case 1:
                    k.unary(sorted(UNARY)[number // 3 % len(UNARY)], a)
                case _:
                    k.to_integer(("fptosi", "fptoui")[number % 2], a, (*INTEGERS, "i1")[number % 5])
    for value, op in product((0, -1), ("sitofp", "uitofp")):
        k.from_integer(op, k.constant("i1", value), type)
    for value, op in product((127, -128, 65519, (1 << 30) + (1 << 22) + 1), ("sitofp", "uitofp")):
        k.from_integer(op, k.constant("i32", value), type)
    return k


def narrowed(type: str) -> Kernel:
    """Operations in f32 and f64 on extended numbers of 16 bits, rounded to 16 bits: exact in no narrower type."""
    k = pairs(type, 5)
    with np.errstate(all="ignore"):
        for wide, other, op in product(("f32", "f64"), ("f16", "bf16"), ("arith.addf", "arith.mulf", "arith.divf")):
            second = "%in1" if other == type else k.input(other, rounded(k.values["%in1"][1], other))
            result = k.binary(op, k.resize("%in0", wide), k.resize(second, wide))
            for narrow in ("f16", "bf16"):
                k.resize(result, narrow)
    return k


MAKERS: tuple[tuple[Callable[[str], Kernel], tuple[str, ...]], ...] = (
    (operations, COMPUTED),
    (conversions, (*COMPUTED, *NARROW)),
    (constants, COMPUTED),
    (narrowed, ("f16", "bf16")),
    (of_integers, tuple(WIDTHS)),
    (wrapping, INTEGERS),
)
"""What makes a kernel, and the types that it is made for."""
KERNELS = [(make, type) for make, types in MAKERS for type in types]
IDS = [f"{make.__name__}-{type}" for make, type in KERNELS]


def results(kernel: Kernel) -> list[str]:
    """All that a kernel computes and nothing uses."""
    return [name for name in kernel.values if name not in kernel.inputs and name not in kernel.used]
