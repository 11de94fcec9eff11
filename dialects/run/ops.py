# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`run.launch` with its arguments and checks. Host side: no pass changes them, so every stage of a file can run."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, Float64Type, FloatAttr, StringAttr, SymbolRefAttr, f64, i64
from xdsl.ir import Attribute, Block, Region
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, NoTerminator, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError, TilefoldError
from ...base.spaces import GMEM
from ...base.target import MAX_GRID
from ...layout.algebra.core import Layout
from ...layout.algebra.scalars import scalars_of
from ...layout.text.layouts import to_text
from ..cute.values import unknowns
from ..definitions import irdl_op_definition, refuse
from ..kernel import KernelOp, Parameter, format_dim3, parse_dim3
from ..ptx.base import scalar_bits
from ..tile.types import TensorType


class _LaunchedKernel(SymbolUserOpInterface):
    """The kernel that a launch names must exist and take the launch's arguments."""

    def verify(self, op: "LaunchOp") -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        kernel = SymbolTable.lookup_symbol(op, op.kernel)
        if not isinstance(kernel, KernelOp):
            raise VerifyException(f"there is no kernel {op.kernel_text} to launch")
        parameters = {parameter.name: parameter for parameter in kernel.parameters()}
        names = list(parameters)
        given = [arg.arg_name.data for arg in op.arguments]
        for name in names:
            if name not in given:
                raise VerifyException(f"the kernel's argument '{name}' is not given; add run.arg \"{name}\"")
        for name in given:
            if name not in names:
                raise VerifyException(f"the kernel has no argument '{name}'; it has {', '.join(names) or 'none'}")
        for arg in op.arguments:
            parameter = parameters[arg.arg_name.data]
            expected = parameter.type
            if parameter.layout is not None:
                _check_scalars(arg, parameter, parameter.layout)
                continue
            if isinstance(expected, TensorType) and arg.arg_type != expected:
                raise VerifyException(
                    f"argument '{arg.arg_name.data}' is {arg.arg_type}, but the kernel takes {expected}"
                )
            if scalar_bits(expected) is not None and arg.arg_type != expected:
                raise VerifyException(
                    f"argument '{arg.arg_name.data}' is {arg.arg_type}, but the kernel takes {expected}"
                )
        if op.block is not None and tuple(op.block.get_values()) != kernel.block:
            raise VerifyException(
                f"the block is {format_dim3(op.block.get_values())}, but the kernel has "
                f"threads{format_dim3(kernel.block)}"
            )
        for axis, blocks, extent in zip("xyz", op.grid.get_values(), kernel.cluster_size or (1, 1, 1), strict=False):
            if blocks % extent:
                text = f"the grid does not consist of whole clusters: {blocks} blocks along {axis}, {extent} in each"
                refuse(TilefoldError(Code.RUN_LAUNCH, text, "make each size of the grid a multiple of the cluster's"))


def _check_scalars(arg: "ArgOp", parameter: Parameter, layout: Layout) -> None:
    """VerifyException unless an argument fits a parameter whose layout has `?`."""
    name, given, expected = parameter.name, arg.arg_type, parameter.type
    if not isinstance(given, TensorType):
        raise VerifyException(f"argument '{name}' is {given}, but the kernel takes {expected}")
    if isinstance(expected, TensorType) and given != expected.with_layout(given.layout.data, given.align.data):
        raise VerifyException(f"argument '{name}' is {given}, but the kernel takes {expected}")
    if given.align.data % parameter.align:
        raise VerifyException(
            f"argument '{name}' is aligned to {given.align.data} bytes, but the kernel needs {parameter.align}"
        )
    try:
        scalars_of(layout, given.layout.data)
    except LayoutError as error:
        raise VerifyException(f"argument '{name}' does not fit: {error.message}") from error


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """`run.launch @kernels::@k grid(8, 32) block(32) { ... }`: launches a kernel on arguments, then checks them.

    The block may be left out: it is the kernel's. `name "first"` tells several launches of one kernel apart.
    """

    name = "run.launch"
    kernel = prop_def(SymbolRefAttr)
    launch_name = opt_prop_def(StringAttr)
    grid = prop_def(DenseArrayBase.constr(i64))
    block = opt_prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), _LaunchedKernel())

    def __init__(
        self,
        kernel: SymbolRefAttr,
        grid: Sequence[int],
        block: Sequence[int] | None,
        body: Region,
        launch_name: str | None = None,
    ):
        super().__init__(
            regions=[body],
            properties={
                "kernel": kernel,
                "launch_name": None if launch_name is None else StringAttr(launch_name),
                "grid": DenseArrayBase.from_list(i64, grid),
                "block": None if block is None else DenseArrayBase.from_list(i64, block),
            },
        )

    @property
    def kernel_text(self) -> str:
        """The kernel's symbol as written: `@kernels::@k`."""
        return str(self.kernel)

    @property
    def arguments(self) -> "list[ArgOp]":
        """The arguments in the order in which they are written, which is that of their evaluation."""
        return [op for op in self.body.block.ops if isinstance(op, ArgOp)]

    @property
    def checks(self) -> "list[CheckOp]":
        """The checks in order."""
        return [op for op in self.body.block.ops if isinstance(op, CheckOp)]

    def verify_(self) -> None:
        grid = self.grid.get_values()
        if len(grid) != 3 or any(not 1 <= n <= most for n, most in zip(grid, MAX_GRID, strict=False)):
            raise VerifyException(f"the grid is {tuple(grid)}; x, y, z are at least 1 and at most {MAX_GRID}")
        names = [arg.arg_name.data for arg in self.arguments]
        for name in names:
            if names.count(name) > 1:
                raise VerifyException(f"argument '{name}' is given twice")

    @classmethod
    def parse(cls, parser: Parser) -> "LaunchOp":
        at = parser.pos
        kernel = parser.parse_attribute()
        if not isinstance(kernel, SymbolRefAttr):
            parser.raise_error("expected the kernel to launch, such as @kernels::@k", at, parser.pos)
        name = parser.parse_str_literal() if parser.parse_optional_keyword("name") is not None else None
        parser.parse_keyword("grid")
        grid = parse_dim3(parser)
        block = parse_dim3(parser) if parser.parse_optional_keyword("block") is not None else None
        body = parser.parse_region()
        if not body.blocks:  # `{}`: neither arguments nor checks
            body.add_block(Block())
        return cls(kernel, grid, block, body, name)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.kernel)
        if self.launch_name is not None:
            printer.print_string(" name ")
            printer.print_string_literal(self.launch_name.data)
        printer.print_string(f" grid{format_dim3(self.grid.get_values())}")
        if self.block is not None:
            printer.print_string(f" block{format_dim3(self.block.get_values())}")
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)


@irdl_op_definition
class ArgOp(IRDLOperation):
    """`run.arg "A" : !gmem = "normal(seed=0)"`: an argument, its type, and the expression that fills it.

    A tensor in global memory is filled element by element; a scalar is the value of the expression.
    """

    name = "run.arg"
    arg_name = prop_def(StringAttr)
    arg_type = prop_def()
    fill = prop_def(StringAttr)
    traits = traits_def(HasParent(LaunchOp))
    assembly_format = "$arg_name `:` $arg_type `=` $fill attr-dict"

    def __init__(self, arg_name: str, arg_type: Attribute, fill: str):
        super().__init__(properties={"arg_name": StringAttr(arg_name), "arg_type": arg_type, "fill": StringAttr(fill)})

    def verify_(self) -> None:
        if isinstance(self.arg_type, TensorType):
            self.arg_type.check_whole()
            layout = self.arg_type.layout.data
            if unknowns(layout):
                raise VerifyException(f"an argument must have a static layout, not {to_text(layout)}")
            if self.arg_type.space.data is not GMEM:
                raise VerifyException("an argument's tensor must be in gmem: a kernel allocates the others itself")
        elif scalar_bits(self.arg_type) is None:
            raise VerifyException(f"an argument must be a tensor, an integer or a float, not {self.arg_type}")


@irdl_op_definition
class CheckOp(IRDLOperation):
    """`run.check "C ~= A @ B" rtol 1.0e-3`: a condition on the arguments after the launch."""

    name = "run.check"
    expr = prop_def(StringAttr)
    rtol = opt_prop_def(FloatAttr[Float64Type])
    atol = opt_prop_def(FloatAttr[Float64Type])
    traits = traits_def(HasParent(LaunchOp))

    def __init__(self, expr: str, rtol: float | None = None, atol: float | None = None):
        super().__init__(
            properties={
                "expr": StringAttr(expr),
                "rtol": None if rtol is None else FloatAttr(rtol, f64),
                "atol": None if atol is None else FloatAttr(atol, f64),
            }
        )

    @classmethod
    def parse(cls, parser: Parser) -> "CheckOp":
        expr = parser.parse_str_literal()
        rtol = _tolerance(parser, "rtol")
        return cls(expr, rtol, _tolerance(parser, "atol"))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.expr.data)
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if value is not None:
                printer.print_string(f" {name} {_decimal(value.value.data)}")

    def verify_(self) -> None:
        for value in (self.rtol, self.atol):
            if value is not None and not 0 <= value.value.data < float("inf"):
                raise VerifyException("a tolerance must be a finite number, 0 or more")


def _decimal(value: float) -> str:
    """The shortest text that MLIR reads as this number: `0.001`, `1.0e-05`."""
    mantissa, e, exponent = repr(value).partition("e")
    return mantissa + (".0" if "." not in mantissa else "") + e + exponent


def _tolerance(parser: Parser, name: str) -> float | None:
    if parser.parse_optional_keyword(name) is None:
        return None
    value = parser.parse_number(allow_boolean=False)
    return float(value)
