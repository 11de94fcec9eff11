# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that programs import from `cutlass.cutlass_dsl`."""

import ast
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute

from tilefold.base.errors import Code
from tilefold.base.errors import TilefoldError as DSLRuntimeError
from tilefold.builder.control.control_functions import if_
from tilefold.builder.control.loops import while_generate, yield_out
from tilefold.builder.instructions.math import maximum as max
from tilefold.builder.instructions.math import minimum as min
from tilefold.builder.scalars.dtypes import DType as NumericMeta
from tilefold.builder.scalars.values import Value, as_value
from tilefold.cute import (
    BFloat16,
    Boolean,
    Constexpr,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    const_expr,
)
from tilefold.cute.host.compiled import CompiledFunction as JitCompiledFunction
from tilefold.cute.jit import dsl_user_op
from tilefold.cute.missing_name import MissingName
from tilefold.cute.typing import Float, Integer, Numeric
from tilefold.runtime.cuda.driver import CudaError as DSLCudaRuntimeError

from .architectures import Arch, BaseDSL, target_version
from .value_trees import (
    debug_print_mlir_values,
    extract_mlir_attributes,
    extract_mlir_values,
    get_c_pointers,
    get_mlir_types,
    new_from_mlir_values,
    set_dynamic_debug,
)

load_cubin_module_data = MissingName(
    "load_cubin_module_data",
    (Code.BUILD_NAME, "machine code is not loaded by load_cubin_module_data", "TILEFOLD_PTXAS names the assembler"),
)
"""Programs keep the function that they replace by one of their own, which loads machine code of another assembler."""


def checkCudaErrors(result: tuple[Any, ...]) -> Any:
    """The results of a call of cuda-python without its status: None, one result, or a tuple of several.

    `result` is all that a function of `cuda.bindings.driver` or `cuda.bindings.runtime` returned. Raises
    DSLCudaRuntimeError (E3302) for any status but success.
    """
    status, *results = result
    if int(status) != 0:
        raise DSLCudaRuntimeError(status.name, int(status), f"CUDA answers {status.name} ({_description(status)})")
    return results[0] if len(results) == 1 else tuple(results) or None


def _description(status: Any) -> str:
    """CUDA's sentence about a status of its driver or runtime."""
    if status.name.startswith("CUDA_"):
        words: bytes = import_module("cuda.bindings.driver").cuGetErrorString(status)[1]
    else:
        words = import_module("cuda.bindings.runtime").cudaGetErrorString(status)[1]
    return words.decode()


__all__ = [
    "Arch", "BFloat16", "BaseDSL", "Boolean", "Constexpr", "DSLCudaRuntimeError", "DSLPreprocessor", "DSLRuntimeError",
    "Float", "Float16", "Float32", "Float64", "Int16", "Int32", "Int64", "Int8", "Integer", "JitCompiledFunction",
    "Numeric", "NumericMeta", "T", "Uint16", "Uint32", "Uint64", "Uint8", "and_", "checkCudaErrors", "const_expr",
    "debug_print_mlir_values", "dsl_user_op", "extract_mlir_attributes", "extract_mlir_values", "get_c_pointers",
    "get_mlir_types", "if_generate", "is_dynamic_expression", "load_cubin_module_data", "max", "min",
    "new_from_mlir_values", "not_", "set_dynamic_debug", "target_version", "while_generate", "yield_out",
]  # fmt: skip


class T:
    """Types of the IR by MLIR's names: `T.f32()`."""

    @staticmethod
    def bool() -> Attribute:
        """A predicate."""
        return Boolean.mlir_type

    @staticmethod
    def i1() -> Attribute:
        """A predicate."""
        return Boolean.mlir_type

    @staticmethod
    def i(width: int) -> Attribute:
        """An integer of a width in bits."""
        return IntegerType(width)

    @staticmethod
    def i32() -> Attribute:
        """An integer of 32 bits."""
        return Int32.mlir_type

    @staticmethod
    def i8() -> Attribute:
        """An integer of 8 bits."""
        return Int8.mlir_type

    @staticmethod
    def i16() -> Attribute:
        """An integer of 16 bits."""
        return Int16.mlir_type

    @staticmethod
    def i64() -> Attribute:
        """An integer of 64 bits."""
        return Int64.mlir_type

    @staticmethod
    def f16() -> Attribute:
        """A float of 16 bits."""
        return Float16.mlir_type

    @staticmethod
    def bf16() -> Attribute:
        """A bfloat16."""
        return BFloat16.mlir_type

    @staticmethod
    def f32() -> Attribute:
        """A float of 32 bits."""
        return Float32.mlir_type

    @staticmethod
    def f64() -> Attribute:
        """A float of 64 bits."""
        return Float64.mlir_type

    @staticmethod
    def vector(length: int, element: Attribute) -> VectorType:
        """A vector of `length` elements of a type."""
        return VectorType(element, [length])


def not_(x: object) -> Any:
    """Whether a condition does not hold."""
    return ~as_value(x).to(Boolean) if isinstance(x, Value) else not x


def and_(*conditions: object) -> Any:
    """Whether all conditions hold; those of the kernel are all computed."""
    result = all(x for x in conditions if not isinstance(x, Value))
    for x in conditions:
        if result is not False and isinstance(x, Value):
            result = as_value(x).to(Boolean) & result
    return result


def is_dynamic_expression(x: object) -> bool:
    """Whether an object has values that only the kernel knows."""
    return bool(extract_mlir_values(x))


def if_generate(
    cond: object,
    then_body: Callable[..., object],
    else_body: Callable[..., object] | None = None,
    input_args: Sequence[object] | None = None,
    return_types: Sequence[object] | None = None,
) -> Any:
    """`then_body(*input_args)` where a condition holds, else `else_body(*input_args)`, and the result of the one or the
    other. A program that is written anew says `if`.
    """
    given = tuple(input_args or ())
    return if_(cond, lambda: then_body(*given), lambda: None if else_body is None else else_body(*given))


class DSLPreprocessor(ast.NodeTransformer):
    """Leaves trees as they are."""

    def visit_If(self, node: ast.If) -> ast.AST:
        """The same branch."""
        return self.generic_visit(node)
