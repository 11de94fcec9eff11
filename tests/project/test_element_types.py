# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An element type is one row: no other table lists them, and one row more is one type more in every layer."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import pytest
from tilefold.base.element_types import ELEMENT_TYPES, ElementType
from tilefold.dialects.element_types import ir_type
from tilefold.runtime.engine import numpy_type

import tilefold.cute.dtypes
from tests.project.tree import ROOT, parsed, product_files, walk
from tilefold import cute

finfo: Any = ml_dtypes.finfo  # pyright: ignore[reportUnknownMemberType]

ROW = """    ElementType(
        name="Float8E5M2FNUZ", kind="float", bits=8, mlir="f8E5M2FNUZ", ptx="e5m2fnuz", library="float8_e5m2fnuz",
        llvm="i8", cxx=("float_e5m2fnuz_t",), dlpack=13, exponent=5, fraction=2, needs=(89, 81), tolerance=(0.25, 0.0),
    ),
"""

ALLOWED = {
    "compiler/emit/convert.py": "the types that LLVM would round to twice",
    "compiler/ptx/moves.py": "the types that an instruction has",
    "dialects/ptx/approx.py": "the types that an instruction has",
    "dialects/ptx/atomic.py": "the types that an instruction has",
    "dialects/ptx/mma.py": "the registers of instructions",
    "layout/atoms/mma_names.py": "the types of scales",
    "layout/atoms/mma_narrow.py": "the types that an instruction has",
    "layout/atoms/mma_sync.py": "the types that an instruction has",
    "layout/atoms/mma_table.py": "the types that an instruction has",
    "layout/atoms/umma_descriptors.py": "the types that an instruction has",
    "layout/atoms/wgmma.py": "the types that an instruction has",
    "builder/tensors/narrow_mma.py": "the types that instructions have",
    "builder/scalars/dtypes.py": "names for the builder's own use",
    "runtime/sim/rules/named_instructions.py": "the types that instructions have",
    "tilefold/cutlass/without_gpu/scaled_products.py": "the types of scales of torch",
    "tilefold/kernels/attentions.py": "the types that its functions take",
    "tilefold/kernels/products.py": "the types that its functions take",
    "tilefold/kernels/elementwise.py": "the types that its functions take",
    "tilefold/kernels/sm80/gemm.py": "the types that its functions take",
    "tilefold/kernels/sm90/parts.py": "the types that its functions take",
    "tilefold/tools/export/tvm_ffi.py": "the types of C",
    "tilefold/kernels/arguments.py": "the types that its functions take",
    "tilefold/cute/__init__.py": "public names",
    "tilefold/cute/dtypes.py": "public names, compared with the table below",
    "tilefold/cute/typing.py": "public names",
    "tilefold/cutlass/__init__.py": "public names",
    "tilefold/cutlass/cutlass_dsl.py": "public names",
    "tilefold/cutlass/jax.py": "names of JAX",
    "tilefold/cutlass/mlir/types.py": "public names",
}


def _by_name() -> Mapping[str, str]:
    """The element type of each name that belongs to one alone: those that integers share with others are left out."""
    found: dict[str, set[str]] = {}
    for element in ELEMENT_TYPES:
        names = {element.name, element.ptx, element.atom_name, element.mlir, element.llvm, element.library}
        for name in (names | {*element.cxx, type(ir_type(element)).__name__}) - {""}:
            found.setdefault(name, set()).add(element.mlir)
    kinds = {element.mlir: element.kind for element in ELEMENT_TYPES}
    of_one = {name: types.pop() for name, types in found.items() if len(types) == 1}
    return {name: type for name, type in of_one.items() if kinds[type] in ("float", "packed")}


def _name_of(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function, args=[]):
            return _name_of(function)
        case _:
            return ""


def _listed(node: ast.AST) -> list[ast.expr]:
    """The keys or elements that an expression lists: of a display, a union, or alternatives of a pattern."""
    match node:
        case ast.Dict(keys=keys):
            return [key for key in keys if key is not None]
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            return items
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [left, right]
        case ast.MatchOr(patterns=patterns):
            classes = [pattern.cls for pattern in patterns if isinstance(pattern, ast.MatchClass)]
            return classes + [pattern.value for pattern in patterns if isinstance(pattern, ast.MatchValue)]
        case _:
            return []


def tables(module: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """The lines of a module that list several floats or packed types, and their names there."""
    known = _by_name()
    for node in walk(module):
        names = [name for each in _listed(node) if (name := _name_of(each)) in known]
        if len({known[name] for name in names}) > 1 and isinstance(node, ast.expr | ast.pattern):
            yield node.lineno, names


@pytest.mark.parametrize(
    "text",
    [
        '_BITS = {"f16": 16, "bf16": 16}',
        "x = {Float16Type: 1, Float8E5M2Type: 2}",
        "isinstance(t, Float16Type | BFloat16Type)",
        'name in ("e4m3", "e5m2")',
        '{np.float16: "e", ml_dtypes.bfloat16: "H"}',
        "match t:\n    case Float16Type() | BFloat16Type():\n        pass",
    ],
)
def test_a_table_is_seen(text: str) -> None:
    assert len(list(tables(ast.parse(text)))) == 1


def test_no_other_table_lists_element_types() -> None:
    for path in product_files():
        name = str(path.relative_to(ROOT))
        found = list(tables(parsed(path)))
        if name in ALLOWED:
            assert found, f"{name} lists no element types; take it from the list of those that may"
        else:
            assert not found, f"{name} lists element types; read them from base/element_types.py: {found}"


def _with_row(module: str, row: str) -> list[str]:
    command = [sys.executable, "-m", f"tests.project.{module}", row]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_a_row_is_all_that_a_type_needs() -> None:
    assert _with_row("another_type", ROW) == [
        "NumPy, builder, simulator: [-8, -6, -4, -2, 0, 2, 4, 6]",
        "PTX: True",
        "file: kernels::copy, stage instr",
        "  B ~= f8E5M2FNUZ(f32(A) * 1.1): 32 elements within rtol 0.25, atol 0: ok",
        "names: 8 8 8 8",
    ]


def test_a_row_is_all_that_a_target_needs() -> None:
    row = '        Capability(88, 90, "", threads=1536, blocks=16, shared_kib=100, units=84),\n'
    assert _with_row("another_target", row) == [
        "PTX: .version 9.0 .target sm_88",
        "device: sm_88 101376",
        "occupancy: 12",
    ]


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=lambda element: element.name)
def test_rows_are_those_of_xdsl_and_ml_dtypes(element: ElementType) -> None:
    type: Any = ir_type(element)
    assert (type.bitwidth, str(type)) == (element.bits, element.mlir)
    dtype = numpy_type(element)
    assert dtype.itemsize == element.bytes
    if element.exponent and not element.stored:
        info = finfo(dtype)
        assert (info.nexp, info.nmant, info.bits) == (element.exponent, element.fraction, element.bits)
        assert (float(info.max), float(info.smallest_subnormal)) == (element.greatest, element.least)


def test_names_are_of_one_type() -> None:
    for names in (
        [element.name for element in ELEMENT_TYPES],
        [element.ptx for element in ELEMENT_TYPES],
        [element.signed_name for element in ELEMENT_TYPES if not element.stored],
        [name for element in ELEMENT_TYPES for name in element.cxx],
        [(element.dlpack, element.bits) for element in ELEMENT_TYPES if element.dlpack is not None],
    ):
        assert len(set(names)) == len(names)


def test_every_type_has_its_public_name() -> None:
    names = {element.name for element in ELEMENT_TYPES}
    packed = {element.name for element in ELEMENT_TYPES if element.kind == "packed"}
    assert set(tilefold.cute.dtypes.__all__) == names - packed
    assert names <= set(cute.__all__)
    assert all(getattr(cute, name).name == name for name in names)
