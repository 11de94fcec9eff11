# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel at the stages `index` and `instr`: `ptx.entry`, PTX's `.entry` directive, the end of a thread, and special
registers: where a thread is in its block, its block in the cluster and the grid, and the cluster in the grid (PTX ISA,
Special Registers).
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    I32,
    I64,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i64,
)
from xdsl.ir import Region
from xdsl.irdl import opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ...layout.algebra.core import Layout
from ...layout.text.layouts import to_text
from ...layout.tma.recipe import MapRecipe
from ..cute import LayoutAttr
from ..cute.values import unknowns
from ..definitions import irdl_op_definition, prop, row, text
from ..kernel import (
    KernelOp,
    LaunchBounds,
    Parameter,
    parse_kernel_args,
    parse_launch_bounds,
    parse_optional_number,
    print_kernel_args,
)
from .base import GLOBAL, MAP, PtrType, PtxOp, RecipeAttr
from .effects import Unit, by_thread, ends

CLUSTER_REGISTERS = (
    *(f"{n}.{axis}" for n in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid") for axis in "xyz"),
    "cluster_ctarank", "cluster_nctarank",
)  # fmt: skip
"""Those of clusters, from sm_90 on."""
REGISTERS = (*(f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"), *CLUSTER_REGISTERS)
"""The special registers that hold coordinates and sizes."""


@irdl_op_definition
class EntryOp(KernelOp):
    """`ptx.entry @k(%A: !ptx.ptr<global> align 16) threads(32, 1, 1) shared(4096) { ... }`: a kernel on pointers.

    `threads`, `min_blocks` and `max_registers` are those of `tile.kernel` (PTX ISA, .reqntid, .minnctapersm, .maxnreg).
    `shared` is the number of bytes of shared memory that a block needs (from stage `instr` on), and `align` the
    alignment in bytes that the caller promises for a pointer argument. `layout "(?,4):(1,?)"` says that the pointer is
    a tensor's, and that the arguments after it are the values of the `?` of its layout, i32 or i64 by their widths.

    `%m: !ptx.tensor_map of "f16 A dims (A_1, A_0) strides (A_2 * 2) box (64, 128) swizzle 128B"` is a tensor map that
    each launch makes of other arguments, by this recipe (`layout.tma.recipe_text`). Such arguments are the last ones.
    """

    name = "ptx.entry"
    BRANCHES: ClassVar[bool] = True
    arg_aligns = prop_def(DenseArrayBase.constr(i64))
    arg_layouts = opt_prop_def(DictionaryAttr)
    arg_maps = opt_prop_def(DictionaryAttr)
    shared_bytes = opt_prop_def(IntegerAttr[I64])
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        arg_names: Sequence[str],
        arg_aligns: Sequence[int],
        bounds: LaunchBounds,
        body: Region,
        shared_bytes: int | None = None,
        layouts: Mapping[int, Layout] | None = None,
        maps: Mapping[int, MapRecipe] | None = None,
    ):
        types = tuple(body.blocks[0].arg_types)
        by_name = {arg_names[index]: LayoutAttr(layout) for index, layout in (layouts or {}).items()}
        recipes = {arg_names[index]: RecipeAttr(recipe) for index, recipe in (maps or {}).items()}
        super().__init__(
            regions=[body],
            properties={
                "sym_name": StringAttr(name),
                "function_type": FunctionType.from_lists(types, ()),
                "arg_names": ArrayAttr(StringAttr(n) for n in arg_names),
                "arg_aligns": DenseArrayBase.from_list(i64, arg_aligns),
                "arg_layouts": DictionaryAttr(by_name) if by_name else None,
                "arg_maps": DictionaryAttr(recipes) if recipes else None,
                **bounds.properties(),
                "shared_bytes": None if shared_bytes is None else IntegerAttr(shared_bytes, i64),
            },
        )

    @property
    def layouts(self) -> dict[int, Layout]:
        """The layouts of tensors whose pointers are followed by integers, by the number of the pointer."""
        by_index: dict[int, Layout] = {}
        for index, name in enumerate(self.arg_names if self.arg_layouts is not None else ()):
            assert self.arg_layouts is not None
            layout = self.arg_layouts.data.get(name.data)
            if isinstance(layout, LayoutAttr) and isinstance(layout.data, Layout):
                by_index[index] = layout.data
        return by_index

    @property
    def maps(self) -> dict[int, MapRecipe]:
        """The recipes of the tensor maps that a launch derives, by the numbers of the arguments, in their order."""
        if self.arg_maps is None:
            return {}
        recipes = [self.arg_maps.data.get(name.data) for name in self.arg_names]
        return {index: recipe.data for index, recipe in enumerate(recipes) if isinstance(recipe, RecipeAttr)}

    def parameters(self) -> list[Parameter]:
        block, layouts, aligns = self.body.blocks[0], self.layouts, self.arg_aligns.get_values()
        result: list[Parameter] = []
        index, end = 0, len(block.args) - len(self.maps)
        while index < end:
            layout = layouts.get(index)
            after = index + 1 + (0 if layout is None else len(unknowns(layout)))
            name, type = self.arg_names.data[index].data, block.args[index].type
            result.append(Parameter(name, type, aligns[index], layout, block.args[index:after]))
            index = after
        return result

    def _check_layouts(self) -> None:
        """VerifyException unless each layout is followed by integers for its `?`."""
        types = list(self.function_type.inputs)
        if len(self.layouts) != len([] if self.arg_layouts is None else self.arg_layouts.data):
            raise VerifyException("a layout names something that is not a pointer argument")
        for index, layout in self.layouts.items():
            expected = [IntegerType(unknown.width) for unknown in unknowns(layout)]
            given = types[index + 1 : index + 1 + len(expected)]
            if not isinstance(types[index], PtrType) or given != expected:
                raise VerifyException(
                    f"a pointer with the layout {to_text(layout)} is followed by "
                    f"{', '.join(map(str, expected)) or 'nothing'}, not by {', '.join(map(str, given)) or 'nothing'}"
                )

    def _check_maps(self) -> None:
        """VerifyException unless the last arguments are the tensor maps, made of tensors and integers before them."""
        types, maps = list(self.function_type.inputs), self.maps
        passed = len(types) - len(maps)
        if len(maps) != len([] if self.arg_maps is None else self.arg_maps.data) or any(i < passed for i in maps):
            raise VerifyException("a recipe names something that is not among the last arguments, the tensor maps")
        for index, type in enumerate(types):
            if (type == MAP) != (index >= passed):
                raise VerifyException("each argument of type !ptx.tensor_map, and no other, has a recipe")
        given = {name.data: type for name, type in zip(self.arg_names, types[:passed], strict=False)}
        for recipe in maps.values():
            if given.get(recipe.tensor) != GLOBAL:
                raise VerifyException(f"a tensor map is of '{recipe.tensor}', which is not a pointer to global memory")
            for name in sorted(recipe.names):
                if not isinstance(given.get(name), IntegerType):
                    raise VerifyException(f"a tensor map depends on '{name}', which is not an integer")

    def verify_(self) -> None:
        self.verify_kernel()
        aligns = self.arg_aligns.get_values()
        if len(aligns) != len(self.function_type.inputs):
            raise VerifyException(f"{len(aligns)} alignments for {len(self.function_type.inputs)} arguments")
        self._check_layouts()
        self._check_maps()
        for name, type, align in zip(self.arg_names, self.function_type.inputs, aligns, strict=True):
            if isinstance(type, PtrType) and (align < 1 or align & (align - 1)):
                raise VerifyException(f"the alignment of argument '{name.data}' is {align}, not a power of two")
        if self.shared_bytes is not None and self.shared_bytes.value.data < 0:
            raise VerifyException("the bytes of shared memory are negative")

    @classmethod
    def parse(cls, parser: Parser) -> "EntryOp":
        name = parser.parse_symbol_name().data
        args = parse_kernel_args(parser)
        bounds = parse_launch_bounds(parser)
        shared = parse_optional_number(parser, "shared")
        return cls(
            name, args.names, args.aligns, bounds, parser.parse_region(args.arguments), shared, args.layouts, args.maps
        )

    def print(self, printer: Printer) -> None:
        print_kernel_args(printer, self, self.arg_aligns.get_values(), self.layouts, self.maps)
        if self.shared_bytes is not None:
            printer.print_string(f" shared({self.shared_bytes.value.data})")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class RetOp(PtxOp):
    """`ptx.ret`: the thread ends (PTX ISA, ret)."""

    name = "ptx.ret"
    MNEMONIC: ClassVar[str | None] = "ret"
    traits = traits_def(IsTerminator(), by_thread(ends(Unit.THREAD)))
    assembly_format = "attr-dict"


@row
class SregOp(PtxOp):
    """`%t = ptx.sreg "tid.x"`: a special register: tid, ntid (block size), ctaid (block) or nctaid (grid size), by
    axis. From sm_90 on also cluster_ctaid and cluster_nctaid (block in the cluster, and blocks of a cluster), clusterid
    and nclusterid (cluster in the grid, and clusters of the grid), by axis, and cluster_ctarank and cluster_nctarank
    (the number of the block in the cluster, x the fastest, and how many a cluster has).

    LLVM may read it several times or not at all, so it is not counted as an instruction.
    """

    name = "ptx.sreg"
    register: StringAttr = prop(converter=text)
    result = result_def(I32)
    traits = traits_def(Pure())
    assembly_format = "$register attr-dict"

    def requires(self) -> tuple[int, int]:
        return (90, 78) if self.register.data in CLUSTER_REGISTERS else super().requires()

    def verify_(self) -> None:
        if self.register.data not in REGISTERS:
            raise VerifyException(f"unknown special register '{self.register.data}'; known: {', '.join(REGISTERS)}")
