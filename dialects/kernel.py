# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels as they are at every stage: a symbol, named arguments and a block of threads. Its parts of the assembly.

A launch passes arguments by name: a tensor counts once, whatever becomes of it on the way to PTX. From stage `index`
on, a tensor whose type has `?` is a pointer and one integer for each `?`, those of the shape first; its layout stays
with the pointer, so that a launch can take the integers from a tensor.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, TypeVar

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def, region_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..base.errors import Code, TilefoldError
from ..base.parameters import SCALARS, ParameterKind
from ..base.target import MAX_BLOCK, MAX_BLOCKS, MAX_CLUSTER, MAX_REGISTERS, MAX_THREADS, PORTABLE_CLUSTER
from ..layout.algebra.core import Layout
from ..layout.text.layouts import parse_layout, to_text
from ..layout.tma.recipe import MapRecipe
from ..layout.tma.recipe_text import parse_recipe, print_recipe
from .cute import parse_quoted
from .definitions import refuse
from .element_types import element_of

ONE_BLOCK = "a kernel's body is one block; use scf.if, scf.for and scf.while for control flow"
"""The rule for the kernels of files."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")


class ParameterType(ABC):
    """The base of a type of the IR whose values a launch does not pass as numbers."""

    @abstractmethod
    def passed_as(self) -> ParameterKind | None:
        """How a launch passes a value; None for one that a launch cannot pass."""


def passed_as(type: Attribute) -> ParameterKind | None:
    """How a launch passes a value of a type, from stage `index` on; None for a type that a launch cannot pass."""
    if isinstance(type, ParameterType):
        return type.passed_as()
    element = element_of(type)
    return None if element is None else SCALARS.get(element.mlir)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel: its name, the type and alignment of its first argument, the layout of a tensor with `?`
    (None for any other), and the block's arguments that it becomes.
    """

    name: str
    type: Attribute
    align: int
    layout: Layout | None
    arguments: Sequence[SSAValue]

    @property
    def kind(self) -> ParameterKind | None:
        """How a launch passes the first argument; None if it cannot, and for a tensor before stage `index`."""
        return passed_as(self.type)


def scalar_names(name: str, count: int, taken: set[str]) -> list[str]:
    """Names for the integers of tensor `name`, none of them in `taken`: `A_0`, `A_1`."""
    names: list[str] = []
    for number in range(count):
        candidate = f"{name}_{number}"
        while candidate in taken:
            candidate += "_"
        names.append(candidate)
    return names


class KernelOp(IRDLOperation, ABC):
    """The base of `tile.kernel` and `ptx.entry`: both have these properties and one body block of arguments."""

    body = region_def()
    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    arg_names = prop_def(ArrayAttr[StringAttr])
    threads = prop_def(DenseArrayBase.constr(i64))
    min_blocks = opt_prop_def(IntegerAttr[I64])
    max_registers = opt_prop_def(IntegerAttr[I64])
    cluster = opt_prop_def(DenseArrayBase.constr(i64))
    non_portable = opt_prop_def(UnitAttr)
    BRANCHES: ClassVar[bool] = False
    """Whether the body may have several blocks, with branches of `cf` between them."""

    @property
    def block(self) -> tuple[int, int, int]:
        """The size of the block in threads: x, y, z."""
        return _three(self.threads.get_values())

    @property
    def cluster_size(self) -> tuple[int, int, int] | None:
        """The size of a cluster in blocks: x, y, z. None if the launch decides."""
        if self.cluster is None:
            return None
        return _three(self.cluster.get_values())

    @property
    def launch_bounds(self) -> "LaunchBounds":
        """The kernel's requirements on its launches."""
        blocks, registers = self.min_blocks, self.max_registers
        return LaunchBounds(
            self.block,
            None if blocks is None else blocks.value.data,
            None if registers is None else registers.value.data,
            self.cluster_size,
            self.non_portable is not None,
        )

    @property
    def symbol(self) -> str:
        """The kernel's name with that of its module, `module::kernel`."""
        parent = self.parent_op()
        outer = None if parent is None else parent.properties.get("sym_name")
        return self.sym_name.data if outer is None else f"{getattr(outer, 'data', '')}::{self.sym_name.data}"

    @abstractmethod
    def parameters(self) -> list[Parameter]:
        """The parameters that a launch passes, in order."""

    def verify_kernel(self) -> None:
        """Checks the rules that hold at every stage. VerifyException names a broken rule."""
        if _NAME.fullmatch(self.sym_name.data) is None:
            raise VerifyException(
                f"the kernel's name {self.sym_name.data[:40]!r} must consist of letters, digits and underscores, "
                "and not begin with a digit"
            )
        size = self.threads.get_values()
        if len(size) != 3 or any(not 1 <= n <= most for n, most in zip(size, MAX_BLOCK, strict=False)):
            raise VerifyException(f"the block is {tuple(size)} threads; x, y, z can be at most {MAX_BLOCK}, at least 1")
        if size[0] * size[1] * size[2] > MAX_THREADS:
            raise VerifyException(
                f"the block has {size[0] * size[1] * size[2]} threads; at most {MAX_THREADS} are possible"
            )
        for bound, bound_name, most in (
            (self.min_blocks, "min_blocks", MAX_BLOCKS),
            (self.max_registers, "max_registers", MAX_REGISTERS),
        ):
            if bound is not None and not 1 <= bound.value.data <= most:
                raise VerifyException(f"{bound_name} is {bound.value.data}; 1 to {most} are possible")
        self._check_cluster()
        names = [name.data for name in self.arg_names]
        if len(names) != len(self.function_type.inputs):
            raise VerifyException(f"{len(names)} names for {len(self.function_type.inputs)} arguments")
        if len(set(names)) != len(names):
            raise VerifyException("two arguments have the same name")
        for name in names:
            if _NAME.fullmatch(name) is None:
                raise VerifyException(
                    f"the argument's name {name[:40]!r} must consist of letters, digits and underscores, and not begin "
                    "with a digit"
                )
        if len(self.body.blocks) != 1 and not self.BRANCHES:
            raise VerifyException(ONE_BLOCK)
        if tuple(self.body.blocks[0].arg_types) != tuple(self.function_type.inputs):
            raise VerifyException("the body's arguments differ from the function type")

    def _check_cluster(self) -> None:
        size = (1, 1, 1) if self.cluster is None else self.cluster.get_values()
        if len(size) != 3 or min(size) < 1:
            raise VerifyException(f"the cluster is {tuple(size)} blocks; x, y, z are at least 1")
        most = PORTABLE_CLUSTER if self.non_portable is None else MAX_CLUSTER
        if prod(size) > most:
            text = f"the cluster has {prod(size)} blocks; at most {most} are possible"
            hint = f"`non_portable` allows up to {MAX_CLUSTER}" if self.non_portable is None else "use a smaller one"
            refuse(TilefoldError(Code.IR_VERIFY, text, hint))


KernelT = TypeVar("KernelT", bound=KernelOp)


def kernels_in(program: Operation, kind: type[KernelT]) -> list[KernelT]:
    """The kernels of a class in a program, in its order. Their bodies are not searched: no kernel is within another."""
    if isinstance(program, KernelOp):
        return [program] if isinstance(program, kind) else []
    inner = (op for region in program.regions for block in region.blocks for op in block.ops if op.regions)
    return [kernel for op in inner for kernel in kernels_in(op, kind)]


def kernel_of(op: Operation) -> KernelOp | None:
    """The kernel that an operation is in; None outside kernels."""
    around = op.parent_op()
    while around is not None and not isinstance(around, KernelOp):
        around = around.parent_op()
    return around


@dataclass(frozen=True, slots=True)
class KernelArgs:
    """A kernel's arguments as they stand in the text: with their alignments, 0 if not given, the layouts of
    tensors, by the number of the pointer, and the recipes of tensor maps.
    """

    arguments: list[Parser.Argument]
    aligns: list[int]
    layouts: dict[int, Layout]
    maps: dict[int, MapRecipe]

    @property
    def names(self) -> list[str]:
        """The names of the arguments."""
        return [argument.name.text[1:] for argument in self.arguments]


def parse_kernel_args(parser: Parser) -> KernelArgs:
    """Parses `(%A: type align 16 layout "(?,4):(1,?)", %A_0: i32, %m: !ptx.tensor_map of "f16 A ...", ...)`."""
    parsed = KernelArgs([], [], {}, {})

    def parse_argument() -> None:
        argument = parser.parse_argument()
        align = 0
        if parser.parse_optional_keyword("align") is not None:
            align = parser.parse_integer(allow_boolean=False, allow_negative=False)
        if parser.parse_optional_keyword("layout") is not None:
            start = parser.pos
            layout = parse_quoted(parser, parse_layout)
            if not isinstance(layout, Layout):
                parser.raise_error("expected a plain layout, without a swizzle", start, parser.pos)
            parsed.layouts[len(parsed.arguments)] = layout
        if parser.parse_optional_keyword("of") is not None:
            parsed.maps[len(parsed.arguments)] = parse_quoted(parser, parse_recipe)
        parsed.arguments.append(argument)
        parsed.aligns.append(align)

    parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parse_argument, " in the kernel's arguments")
    return parsed


@dataclass(frozen=True, slots=True)
class LaunchBounds:
    """A kernel's requirements on its launches: the block's size in threads, the fewest blocks that a multiprocessor is
    to hold at a time, and the most registers that a thread may have; None leaves these to the assembler. `cluster` is
    the size of its clusters in blocks, where not the launch says it; more than 8 blocks are `non_portable`.
    """

    threads: Sequence[int]
    min_blocks: int | None = None
    max_registers: int | None = None
    cluster: tuple[int, int, int] | None = None
    non_portable: bool = False

    def properties(self) -> dict[str, Attribute | None]:
        """The properties of a kernel."""
        return {
            "threads": DenseArrayBase.from_list(i64, self.threads),
            "min_blocks": None if self.min_blocks is None else IntegerAttr(self.min_blocks, i64),
            "max_registers": None if self.max_registers is None else IntegerAttr(self.max_registers, i64),
            "cluster": None if self.cluster is None else DenseArrayBase.from_list(i64, self.cluster),
            "non_portable": UnitAttr() if self.non_portable else None,
        }


def parse_launch_bounds(parser: Parser) -> LaunchBounds:
    """Parses `threads(x, y, z) cluster(x, y, z) non_portable min_blocks(2) max_registers(128)`; missing y and z are
    1.
    """
    parser.parse_keyword("threads")
    threads, cluster, non_portable = parse_dim3(parser), None, False
    if parser.parse_optional_keyword("cluster") is not None:
        cluster = _three(parse_dim3(parser))
        non_portable = parser.parse_optional_keyword("non_portable") is not None
    blocks, registers = (parse_optional_number(parser, word) for word in ("min_blocks", "max_registers"))
    return LaunchBounds(threads, blocks, registers, cluster, non_portable)


def _three(size: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = size
    return x, y, z


def parse_optional_number(parser: Parser, keyword: str) -> int | None:
    """Parses `keyword(4096)`, or nothing."""
    if parser.parse_optional_keyword(keyword) is None:
        return None
    with parser.in_parens():
        return parser.parse_integer(allow_boolean=False, allow_negative=False)


def parse_dim3(parser: Parser) -> list[int]:
    """Parses `(x)`, `(x, y)` or `(x, y, z)`; missing sizes are 1."""
    at = parser.pos
    sizes = parser.parse_comma_separated_list(
        Parser.Delimiter.PAREN, lambda: parser.parse_integer(allow_boolean=False, allow_negative=False)
    )
    if not 1 <= len(sizes) <= 3:
        parser.raise_error("expected one to three sizes: x, y, z", at, parser.pos)
    return sizes + [1] * (3 - len(sizes))


def format_dim3(size: Sequence[int]) -> str:
    """`(32)`, `(8, 32)` or `(8, 4, 2)`: trailing ones are left out."""
    sizes = list(size)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return f"({', '.join(map(str, sizes))})"


def print_kernel_args(
    printer: Printer,
    op: KernelOp,
    aligns: Sequence[int] = (),
    layouts: Mapping[int, Layout] | None = None,
    maps: Mapping[int, MapRecipe] | None = None,
) -> None:
    """Prints ` @name(%A: type align 16, ...) threads(32) min_blocks(2)`. The arguments keep the names that they had in
    the source, up to numbers at their ends; recipes have the names that are printed.
    """
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name.data)
    with printer.in_parens():
        printed: dict[str, str] = {}
        for index, (argument, name) in enumerate(zip(op.body.blocks[0].args, op.arg_names, strict=True)):
            if index:
                printer.print_string(", ")
            argument.name_hint = name.data
            printed[name.data] = printer.print_ssa_value(argument)
            printer.print_string(": ")
            printer.print_attribute(argument.type)
            if index < len(aligns) and aligns[index]:
                printer.print_string(f" align {aligns[index]}")
            if layouts and index in layouts:
                printer.print_string(f' layout "{to_text(layouts[index])}"')
            if maps and index in maps:
                printer.print_string(f' of "{print_recipe(maps[index].renamed(printed))}"')
    printer.print_string(f" threads{format_dim3(op.threads.get_values())}")
    if op.cluster is not None:
        portable = " non_portable" if op.non_portable is not None else ""
        printer.print_string(f" cluster{format_dim3(op.cluster.get_values())}{portable}")
    if op.min_blocks is not None:
        printer.print_string(f" min_blocks({op.min_blocks.value.data})")
    if op.max_registers is not None:
        printer.print_string(f" max_registers({op.max_registers.value.data})")
