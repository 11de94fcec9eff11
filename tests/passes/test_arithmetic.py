# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index arithmetic keeps its values: ranges, conversion to 32 bits, strength reduction, sums."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.compiler.emit import emit_llvm
from tilefold.dialects.ptx import EntryOp, StoreOp
from tilefold.passes.analysis.affine import Sums
from tilefold.passes.analysis.ranges import FULL, Ranges
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from tests.emit.cpu import SM80, run_on_cpu
from tests.examples import examples
from tests.passes.expressions import Arithmetic, Operation, arithmetic, signed
from tests.passes.harness import apply, entry, execute

THREADS = 5
HEAD = """\
%t = gpu.thread_id x
%b = gpu.block_id x
%d = gpu.block_dim x
%n = arith.index_cast %x : i32 to index
%w = arith.index_cast %y : i64 to index
"""
INPUTS = ["%t", "%b", "%d", "%n", "%w"]
ARGS = "%x: i32, %y: i64, %out: !ptx.ptr<global> align 16"
SCALARS = st.tuples(
    st.sampled_from([0, 1, -1, 7, -8, 2**31 - 1, -(2**31)]), st.sampled_from([0, 3, -3, 2**31, 2**40, -(2**63)])
)


def inputs_of(thread: int, block: int, scalars: tuple[int, int]) -> dict[str, int]:
    """The values of INPUTS for one thread."""
    return {"%t": thread, "%b": block, "%d": THREADS, "%n": scalars[0], "%w": scalars[1]}


def storing(made: Arithmetic) -> str:
    """A kernel in which each thread stores all results: out[block * THREADS + thread][number of the result]."""
    lines = [HEAD, *made.lines, f"%size = arith.constant {8 * len(made.values)} : index"]
    lines += ["%row = arith.muli %b, %d : index", "%place = arith.addi %row, %t : index"]
    lines += ["%bytes = arith.muli %place, %size : index"]
    lines += ["%p = ptx.ptr_add %out, %bytes : !ptx.ptr<global>, index -> !ptx.ptr<global>"]
    for number, name in enumerate(made.values):
        lines += [
            f"%s{number} = arith.index_cast {name} : index to i64",
            f"%o{number} = arith.constant {8 * number} : index",
            f"%p{number} = ptx.ptr_add %p, %o{number} : !ptx.ptr<global>, index -> !ptx.ptr<global>",
            f"ptx.st %s{number}, %p{number} align 8 : i64, !ptx.ptr<global>",
        ]
    return entry("\n".join(lines), ARGS, str(THREADS))


@given(arithmetic("index", 64, INPUTS), SCALARS)
def test_ranges_hold_every_value(made: Arithmetic, scalars: tuple[int, int]) -> None:
    module = apply(storing(made), "")
    kernel = next(op for op in module.walk() if isinstance(op, EntryOp))
    ranges = Ranges(kernel)
    named: dict[str, SSAValue] = {f"%{r.name_hint}": r for op in kernel.walk() for r in op.results if r.name_hint}
    for name, value in made.values.items():
        low, high = ranges.of(named[name])
        for thread, block in ((0, 0), (THREADS - 1, 0), (2, 2**31 - 2), (1, 77)):
            assert low <= value(inputs_of(thread, block, scalars)) <= high, name


@given(st.data(), st.sampled_from([8, 16, 32, 64]), st.integers(-(2**63), 2**63 - 1), st.integers(0, 200))
def test_ranges_hold_values_that_wrap(data: st.DataObject, bits: int, x: int, y: int) -> None:
    made = data.draw(arithmetic(f"i{bits}", bits, ["%a", "%b"]))
    cut = [f"%{n} = arith.trunci %{m} : i64 to i{bits}" for n, m in (("a", "x"), ("b", "u"))]
    same = [f"%{n} = arith.ori %{m}, %{m} : i64" for n, m in (("a", "x"), ("b", "u"))]
    head = ["%k = arith.constant 255 : i64", "%u = arith.andi %y, %k : i64", *(cut if bits < 64 else same)]
    text = entry("\n".join([*head, *made.lines]), "%x: i64, %y: i64", "1")
    kernel = next(op for op in apply(text, "").walk() if isinstance(op, EntryOp))
    ranges = Ranges(kernel)
    named: dict[str, SSAValue] = {f"%{r.name_hint}": r for op in kernel.walk() for r in op.results if r.name_hint}
    for name, value in made.values.items():
        low, high = ranges.of(named[name])
        assert low <= value({"%a": signed(x, bits), "%b": signed(y, bits)}) <= high, name


TYPES = ("i1", "i8", "i16", "i32", "i64", "index")


@pytest.mark.parametrize("value", [0, 1, -1, -2, 127, 128, 70000, 2**31, -(2**31), 2**40 + 5, -(2**63)])
def test_casts_of_constants(value: int) -> None:
    """Each constant, through two casts, is the same folded and computed at stage `instr`."""
    lines, expected = list[str](), list[int]()
    for bits, type in zip((1, 8, 16, 32, 64, 64), TYPES, strict=True):
        start = signed(value, bits)
        lines.append(f"%s{type} = arith.constant {'true' if start else 'false'}" if bits == 1 else "")
        lines[-1] = lines[-1] or f"%s{type} = arith.constant {start} : {type}"
        for width, target in zip((1, 8, 16, 32, 64, 64), TYPES, strict=True):
            for cast in ("index_cast", "extsi", "extui", "trunci"):
                if (cast == "index_cast") != ("index" in (type, target)) or type == target:
                    continue
                if (cast == "trunci" and width >= bits) or (cast[:3] == "ext" and width <= bits):
                    continue
                found = signed(start & ((1 << bits) - 1) if cast == "extui" else start, width)
                name = f"%v{len(expected)}"
                lines.append(f"{name} = arith.{cast} %s{type} : {type} to {target}")
                widen = "index_cast" if target == "index" else "extsi"
                lines.append(f"{name}w = arith.{widen} {name} : {target} to i64" if target != "i64" else "")
                lines.append(f"%o{len(expected)} = arith.constant {8 * len(expected)} : i64")
                place = f"%p{len(expected)} = ptx.ptr_add %out, %o{len(expected)}"
                lines.append(f"{place} : !ptx.ptr<global>, i64 -> !ptx.ptr<global>")
                stored = name if target == "i64" else f"{name}w"
                lines.append(f"ptx.st {stored}, %p{len(expected)} align 8 : i64, !ptx.ptr<global>")
                expected.append(found)
    text = entry("\n".join(lines), "%out: !ptx.ptr<global> align 16", "1")
    for passes in ("", "convert-index", "convert-index,strength-reduce,cse"):
        out = np.zeros(len(expected), np.int64)
        module = apply(text, passes)
        execute(module, {"out": out}, threads=1, outputs=["out"])
        assert out.tolist() == expected, passes
    out = np.zeros(len(expected), np.int64)
    run_on_cpu(emit_llvm(module, SM80), [out])
    assert out.tolist() == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["%r = gpu.thread_id x"], (0, 4)),
        (["%r = gpu.block_dim x"], (5, 5)),
        (["%r = gpu.block_id y"], (0, 65534)),
        (["%r = gpu.grid_dim z"], (1, 65535)),
        (["%c = arith.constant 4 : index", "%r = arith.muli %t, %c : index"], (0, 16)),
        (["%c = arith.constant 3 : index", "%r = arith.remui %b, %c : index"], (0, 2)),
        (["%c = arith.constant 3 : index", "%r = arith.andi %w, %c : index"], (0, 3)),
        (["%c = arith.constant 3 : index", "%r = arith.shli %d, %c : index"], (40, 40)),
        (["%r = arith.subi %t, %d : index"], (-5, -1)),
        (["%r = arith.muli %w, %w : index"], FULL),
        (["%s = arith.addi %x, %x : i32", "%r = arith.index_cast %s : i32 to index"], (-(2**31), 2**31 - 1)),
        (["%s = arith.index_cast %t : index to i32", "%r = arith.addi %s, %s : i32"], (0, 8)),
        (["%c = arith.constant 1103515245 : i32", "%r = arith.muli %x, %c : i32"], (-(2**31), 2**31 - 1)),
        (["%r = arith.addi %x, %x overflow<nsw> : i32"], (-(2**31), 2**31 - 1)),
        (["%c = arith.constant -7 : i32", "%r = arith.divsi %x, %c : i32"], (-((2**31 - 1) // 7), 2**31 // 7)),
        (["%c = arith.constant -7 : i32", "%r = arith.remsi %x, %c : i32"], (-6, 6)),
        (["%c = arith.constant 28 : i32", "%r = arith.shrui %x, %c : i32"], (0, 15)),
        (["%s = arith.trunci %x : i32 to i8", "%r = arith.extui %s : i8 to i32"], (0, 255)),
        (["%r = arith.muli %n, %n : index"], (-(2**31) * (2**31 - 1), 2**62)),
    ],
)
def test_ranges_are_as_narrow_as_they_can_be(lines: list[str], expected: tuple[int, int]) -> None:
    module = apply(entry(HEAD + "\n".join(lines), ARGS, str(THREADS)), "")
    kernel = next(op for op in module.walk() if isinstance(op, EntryOp))
    value = next(r for op in kernel.walk() for r in op.results if r.name_hint == "r")
    assert Ranges(kernel).of(value) == expected


def test_ranges_of_loops() -> None:
    body = (
        HEAD
        + """
    %z = arith.constant 2 : index
    %s = arith.constant 3 : index
    %r = scf.for %i = %z to %b step %s iter_args(%a = %t) -> (index) {
      %q = arith.addi %a, %i : index
      scf.yield %q : index
    }"""
    )
    kernel = next(op for op in apply(entry(body, ARGS, str(THREADS)), "").walk() if isinstance(op, EntryOp))
    loop = next(op for op in kernel.walk() if op.name == "scf.for")
    ranges = Ranges(kernel)
    assert ranges.of(loop.regions[0].block.args[0]) == (2, 2**31 - 3)
    trips, largest = -(-(2**31 - 4) // 3), 2**31 - 3  # of a block's number up to 2^31 - 2, from 2 on in steps of 3
    sums = (0, THREADS - 1 + trips * largest)
    assert ranges.of(loop.regions[0].block.args[1]) == sums
    assert ranges.of(loop.results[0]) == sums


@given(arithmetic("index", 64, INPUTS), SCALARS)
@settings(max_examples=examples(16))
def test_conversion_to_registers_keeps_every_value(made: Arithmetic, scalars: tuple[int, int]) -> None:
    everyone = [inputs_of(thread, block, scalars) for block in range(2) for thread in range(THREADS)]
    expected = [[value(inputs) for value in made.values.values()] for inputs in everyone]
    for passes in ("", "convert-index", "convert-index,strength-reduce", "convert-index,strength-reduce,cse"):
        module = apply(storing(made), passes)
        out = np.zeros(2 * THREADS * len(made.values), np.int64)
        arguments = {"x": np.int32(scalars[0]), "y": np.int64(scalars[1]), "out": out}
        execute(module, arguments, grid=(2, 1, 1), threads=THREADS, outputs=["out"])
        assert out.reshape(2 * THREADS, -1).tolist() == expected, passes
        left = [
            value for op in module.walk() for value in (*op.operands, *op.results) if isinstance(value.type, IndexType)
        ]
        assert not left or not passes


def test_conversion_of_loops_and_branches() -> None:
    body = (
        HEAD
        + """
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %size = arith.constant 8 : index
    %sum = scf.for %i = %zero to %d step %one iter_args(%a = %t) -> (index) {
      %odd = arith.andi %i, %one : index
      %is = arith.cmpi eq, %odd, %one : index
      %more = scf.if %is -> (index) {
        %m = arith.muli %i, %w : index
        scf.yield %m : index
      } else {
        scf.yield %i : index
      }
      %c = arith.addi %a, %more : index
      scf.yield %c : index
    }
    %count = scf.while (%k = %sum) : (index) -> index {
      %big = arith.cmpi sgt, %k, %three : index
      scf.condition(%big) %k : index
    } do {
    ^bb0(%k : index):
      %h = arith.divsi %k, %three : index
      scf.yield %h : index
    }
    %bytes = arith.muli %t, %size : index
    %p = ptx.ptr_add %out, %bytes : !ptx.ptr<global>, index -> !ptx.ptr<global>
    %both = arith.addi %count, %sum : index
    %v = arith.index_cast %both : index to i64
    ptx.st %v, %p align 8 : i64, !ptx.ptr<global>"""
    )
    expected: list[int] = []
    for t in range(THREADS):
        total = t + sum(i * 2**33 if i % 2 else i for i in range(THREADS))
        count = total
        while count > 3:
            count //= 3
        expected.append(total + count)
    for passes in ("", "convert-index", "convert-index,strength-reduce"):
        out = np.zeros(THREADS, np.int64)
        arguments = {"x": np.int32(0), "y": np.int64(2**33), "out": out}
        execute(apply(entry(body, ARGS, str(THREADS)), passes), arguments, threads=THREADS, outputs=["out"])
        assert out.tolist() == expected


@given(st.data(), st.sampled_from([8, 16, 32, 64]), st.integers(-(2**63), 2**63 - 1), st.integers(-5, 200))
def test_strength_reduction_keeps_every_value(data: st.DataObject, bits: int, x: int, y: int) -> None:
    made = data.draw(arithmetic(f"i{bits}", bits, ["%a", "%b"]))
    lines = [f"%z = arith.constant 0 : i{bits}"]
    for name, source in (("a", "x"), ("b", "y")):
        cast = f"%{name}0 = arith.trunci %{source} : i64 to i{bits}" if bits < 64 else ""
        lines += [cast, f"%{name} = arith.addi %{name + '0' if cast else source}, %z : i{bits}"]
    lines += made.lines
    for number, name in enumerate(made.values):
        lines += [
            f"%s{number} = arith.extsi {name} : i{bits} to i64" if bits < 64 else "",
            f"%o{number} = arith.constant {8 * number} : i64",
            f"%p{number} = ptx.ptr_add %out, %o{number} : !ptx.ptr<global>, i64 -> !ptx.ptr<global>",
            f"ptx.st {f'%s{number}' if bits < 64 else name}, %p{number} align 8 : i64, !ptx.ptr<global>",
        ]
    text = entry("\n".join(lines), "%x: i64, %y: i64, %out: !ptx.ptr<global> align 16", "1")
    inputs = {"%a": signed(x, bits), "%b": signed(y, bits)}
    expected = [value(inputs) for value in made.values.values()]
    for passes in ("", "strength-reduce"):
        out = np.zeros(len(expected), np.int64)
        execute(apply(text, passes), {"x": np.int64(x), "y": np.int64(y), "out": out}, threads=1, outputs=["out"])
        assert out.tolist() == expected, passes


SUMS: Mapping[str, Operation] = MappingProxyType(
    {
        "addi": lambda a, b, n: a + b,
        "muli": lambda a, b, n: a * b,
        "andi": lambda a, b, n: a & b,
        "remui": lambda a, b, n: a % b,
        "shli": lambda a, b, n: a << b,
    }
)
"""What offsets are made of, on numbers that are not negative."""


@st.composite
def _offsets(draw: Any) -> Arithmetic:
    """An offset of a pointer, made of two small unknowns as addresses are."""
    made = Arithmetic("i32", 32)
    for name in ("%u", "%v"):
        made.input(name)
    for _ in range(draw(st.integers(1, 7))):
        left = draw(st.sampled_from(list(made.values)))
        op = draw(st.sampled_from(["addi", "addi", "muli", "andi", "remui", "shli"]))
        if op == "addi" and draw(st.booleans()):
            made.apply("addi", SUMS["addi"], left, draw(st.sampled_from(list(made.values))))
        else:
            made.apply(op, SUMS[op], left, made.constant(draw(st.sampled_from([1, 2, 3, 4, 6, 8]))))
    return made


@given(_offsets(), st.integers(0, 9), st.integers(0, 9), st.sampled_from([1, 4, 16, 64]))
def test_sums_equal_the_offset_and_its_alignment_divides_it(made: Arithmetic, u: int, v: int, align: int) -> None:
    value = {name: compute({"%u": u, "%v": v}) for name, compute in made.values.items()}
    if max(map(abs, value.values())) >= 2**30:
        return  # index arithmetic is taken not to wrap
    last = list(made.values)[-1]
    body = [
        *made.lines, f"%p = ptx.ptr_add %out, {last} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>",
        "%c = arith.constant 12 : i64", "%q = ptx.ptr_add %p, %c : !ptx.ptr<global>, i64 -> !ptx.ptr<global>",
        "ptx.st %u, %q align 4 : i32, !ptx.ptr<global>",
    ]  # fmt: skip
    module = apply(entry("\n".join(body), f"%u: i32, %v: i32, %out: !ptx.ptr<global> align {align}", "1"), "")
    store = next(op for op in module.walk() if isinstance(op, StoreOp))
    sums = Sums()
    address = sums.address(store.ptr)
    assert address.base.name_hint == "out"
    offset = address.offset.constant + sum(c * value[f"%{v.name_hint}"] for v, c in address.offset.terms)
    assert offset == value[last] + 12
    assert offset % sums.alignment(address) == 0
    assert align % sums.alignment(address) == 0


def test_a_sum_knows_multiples() -> None:
    body = (
        "%c = arith.constant 24 : i32\n%m = arith.muli %u, %c : i32\n%k = arith.constant 16 : i32\n"
        "%r = arith.remui %m, %k : i32\n%p = ptx.ptr_add %out, %r : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
        "ptx.st %u, %p align 4 : i32, !ptx.ptr<global>"
    )
    module = apply(entry(body, "%u: i32, %out: !ptx.ptr<global> align 16", "1"), "")
    store = next(op for op in module.walk() if isinstance(op, StoreOp))
    sums = Sums()
    assert sums.alignment(sums.address(store.ptr)) == 8
    multiple = next(r for op in module.walk() for r in op.results if r.name_hint == "m")
    assert sums.of(multiple).terms == frozenset({(next(iter(sums.of(multiple).terms))[0], 24)})
