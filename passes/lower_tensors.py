# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`lower-tensors`: stage `atoms` to stage `index`."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp, i8
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..base.errors import Code
from ..base.spaces import Allocation
from ..dialects.cute.values import unknowns
from ..dialects.kernel import kernels_in, scalar_names
from ..dialects.ptx import (
    CustomOp,
    CvtaTensorMapOp,
    EntryOp,
    LocalAllocOp,
    MapaOp,
    PrefetchTensorMapOp,
    PtrType,
    RetOp,
    SmemAllocOp,
    StoreOp,
)
from ..dialects.ptx.tensor_map import CopyTensorMapOp as PtxCopyTensorMapOp
from ..dialects.tile import (
    AliasOp,
    AllocOp,
    AtomCallOp,
    ChooseOp,
    CopyTensorMapOp,
    Crd2IdxOp,
    GetScalarsOp,
    InstructionOp,
    MmaCallOp,
    PeerOp,
    PrefetchOp,
    PrintOp,
    PrintTensorOp,
    PtrOp,
    ReturnOp,
    TensorAtOp,
    TensorMapOp,
    TensorMapPtrOp,
    TensorType,
    TileKernelOp,
    TmaCallOp,
    TmaType,
    TmemAllocOp,
    TmemDeallocOp,
    UpdateTensorMapOp,
    ViewOp,
)
from ..dialects.tile.memory import LoadOp as TileLoadOp
from ..dialects.tile.memory import StoreOp as TileStoreOp
from ..dialects.tile.tma import instruction_of
from ..layout.algebra.core import Layout, plain_layout
from ..layout.atoms.instructions import TmemCp, Umma, WgMma
from ..layout.tma.recipe import MapRecipe
from .analysis.ranges import Ranges, set_range
from .errors import LoweringError
from .writing.addresses import Address, Addresses, place_of, start_offset
from .writing.emitter import INDEX_ARITHMETIC, Emitter, erase_unused, int_type, remark

if TYPE_CHECKING:
    from .writing.tensor_maps import TensorMaps
    from .writing.wgmma_instructions import WarpgroupCalls


@dataclass(frozen=True)
class LowerTensorsPass(ModulePass):
    """Replaces tensors by pointers and layouts by index arithmetic on them.

    A plain tensor becomes a pointer. A swizzled tensor becomes a pointer and an offset, and each access applies the
    swizzle to the offset. Offsets are computed in 32 bits if the layout's extent proves that they fit, otherwise in 64.

    Before:

        %o = tile.crd2idx (%m) in "8:128"
        %v = tile.view %A at %o : !A -> !tile.tensor<f16, gmem, align<16>, "8:1">

    After:

        %0 = arith.index_cast %m : index to i32
        %1 = arith.muli %0, %c256 : i32
        %v = ptx.ptr_add %A, %1 : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    """

    name = "lower-tensors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_in(op, TileKernelOp):
            _Kernel(kernel).lower()


_REPLACED = (
    Crd2IdxOp, ViewOp, AllocOp, AliasOp, ChooseOp, PeerOp, TensorAtOp, GetScalarsOp, TensorMapOp, arith.AddiOp,
)  # fmt: skip
"""Operations that are erased once nothing uses their results."""


class _Kernel:
    """The lowering of one kernel: which address each tensor became."""

    def __init__(self, op: TileKernelOp) -> None:
        self.op = op
        self.addresses = Addresses(Ranges(op))
        self.where: dict[SSAValue, Address] = {}
        self.names: dict[SSAValue, str] = {}
        self.map_arguments: dict[SSAValue, SSAValue] = {}
        self.forms: dict[SSAValue, SSAValue] = {}
        """The tensors of maps whose arguments have only their form."""
        ended = [inner for inner in op.walk() if isinstance(inner, TmemDeallocOp)]
        self.allocations = {inner: inner.allocation for inner in ended}

    @cached_property
    def maps(self) -> "TensorMaps":
        """The tensor maps that the kernel's launch makes."""
        from .writing.tensor_maps import TensorMaps

        return TensorMaps(self.op.body.block, self.names)

    @cached_property
    def warpgroup_calls(self) -> "WarpgroupCalls":
        """The multiplications of its warpgroups."""
        from .writing.wgmma_instructions import WarpgroupCalls

        return WarpgroupCalls(self.addresses)

    def lower(self) -> None:
        ops = [op for op in self.op.walk() if op is not self.op]
        for op in ops:
            self._check_no_tensor_results(op)
        self._arguments()
        dead: list[Operation] = []
        for op in ops:
            if isinstance(op, _REPLACED):
                dead.append(op)
            self._lower(op, Emitter(op))
        erase_unused(dead)
        for op in dead:
            if isinstance(op, Crd2IdxOp) and op.parent is not None:
                self._compute(op, Emitter(op))
        self.addresses.erase_unused_conversions()
        erase_unused([op for op in self.op.walk() if isinstance(op, INDEX_ARITHMETIC)])
        self._entry()

    def _check_no_tensor_results(self, op: Operation) -> None:
        """Tensors flow only through views: a loop or branch cannot carry one."""
        values = [*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)]
        if op.regions and any(isinstance(value.type, TensorType | TmaType) for value in values):
            raise LoweringError(
                Code.CARRIED_TENSOR,
                f"a tensor cannot be a result or argument of {op.name}",
                op,
                "carry the coordinate instead, and take the view inside",
            )

    def _arguments(self) -> None:
        block = self.op.body.blocks[0]
        first = block.first_op
        assert first is not None
        emitter = Emitter(first)
        taken = {name.data for name in self.op.arg_names}
        for argument, name in zip(list(block.args), self.op.arg_names, strict=True):
            type = argument.type
            self.names[argument] = name.data
            if isinstance(type, TensorType):
                pointer = block.insert_arg(PtrType(type.space), argument.index)
                pointer.name_hint = argument.name_hint
                scalars = self._scalar_arguments(emitter, argument, pointer.index + 1)
                self.where[argument] = Address(pointer, start_offset(emitter, type), scalars)
                integers = block.args[pointer.index + 1 : argument.index]
                self.names |= zip(integers, scalar_names(name.data, len(integers), taken), strict=True)

    def _scalar_arguments(self, emitter: Emitter, tensor: BlockArgument, place: int) -> list[SSAValue]:
        """New arguments from `place` on for the `?` in the type of `tensor`, as `index` values with their ranges."""
        assert isinstance(tensor.type, TensorType)
        scalars: list[SSAValue] = []
        for number, unknown in enumerate(unknowns(tensor.type.layout.data)):
            argument = tensor.block.insert_arg(int_type(unknown.width), place + number)
            cast = arith.IndexCastOp(argument, IndexType())
            set_range(cast, 0, 2 ** (unknown.width - 1) - 1)
            scalars.append(emitter.value(cast))
        return scalars

    def _entry(self) -> None:
        """Replaces the kernel by an entry whose arguments are the pointers."""
        op = self.op
        types = op.function_type.inputs.data
        block = op.body.blocks[0]
        for argument in [a for a in block.args if isinstance(a.type, TensorType)]:
            block.erase_arg(argument)
        names, aligns, layouts = list[str](), list[int](), dict[int, Layout]()
        for name, type in zip(op.arg_names, types, strict=True):
            scalars = 0
            if isinstance(type, TensorType) and (scalars := len(unknowns(type.layout.data))):
                layouts[len(names)] = plain_layout(type.layout.data)
            taken = {other.data for other in op.arg_names}
            names += [name.data, *scalar_names(name.data, scalars, taken)]
            aligns += [type.align.data if isinstance(type, TensorType) else 0, *[0] * scalars]
        maps: dict[int, MapRecipe] = {}
        for recipe in self.maps.recipes if self.map_arguments else ():
            maps[len(names)] = recipe
            name = f"{recipe.tensor}_map"
            while name in names:
                name += "_"
            names.append(name)
            aligns.append(0)
        bounds, body = op.launch_bounds, op.detach_region(0)
        entry = EntryOp(op.sym_name.data, names, aligns, bounds, body, layouts=layouts, maps=maps)
        entry.location = op.location
        if (summary := self.addresses.summary()) is not None:
            remark(entry, summary)
        Rewriter.replace_op(op, entry)

    def _address(self, tensor: SSAValue) -> Address:
        return self.where[tensor]

    def _lower(self, op: Operation, emitter: Emitter) -> None:
        match op:
            case AllocOp():
                self.where[op.result] = self._allocate(op, emitter)
            case AliasOp():
                pointer = emitter.moved(self._address(op.source).pointer, op.offset.value.data)
                self.where[op.result] = Address(pointer, start_offset(emitter, op.result.type))
            case ChooseOp():
                sources = [self._address(source) for source in op.sources]
                self.where[op.result] = self.addresses.choose(emitter, op.index, sources)
            case PeerOp():
                address, rank = self._address(op.source), op.rank
                if isinstance(rank.type, IndexType):
                    rank = self.addresses.converted(rank, 32, must_fit=True)
                self.where[op.result] = replace(address, pointer=emitter.value(MapaOp(address.pointer, rank)))
            case TensorAtOp():
                self.where[op.result] = Address(op.ptr, start_offset(emitter, op.result.type))
            case ViewOp():
                bits = op.source.type.element_bits, op.result.type.element_bits
                address = self.addresses.recast(emitter, self._address(op.source), *bits)
                moved = self.addresses.advance(emitter, address, op.source.type, op.offset)
                self.where[op.result] = replace(moved, scalars=list(op.scalars))
            case GetScalarsOp():
                for result, scalar in zip(op.scalars, self._address(op.tensor).scalars, strict=True):
                    scalar.name_hint = result.name_hint
                    result.replace_all_uses_with(scalar)
            case Crd2IdxOp():
                pass  # its users compute it, in the unit and width that they need
            case AtomCallOp() if isinstance(op.atom.atom.instruction, TmemCp):
                from .writing.umma_instructions import lower_tmem_cp

                lower_tmem_cp(emitter, self.addresses, op, (self._address(op.src), self._address(op.dst)))
            case AtomCallOp():
                src, dst = [self._first(emitter, tensor) for tensor in (op.src, op.dst)]
                call = AtomCallOp(op.atom, src, dst, op.count, op.mbarrier, op.policy)
                call.attributes |= op.attributes
                emitter.insert(call)
                emitter.replace()
            case TensorMapOp():
                self.map_arguments[op.result], is_whole = self.maps.argument(op, self._address(op.tensor).scalars)
                if not is_whole:
                    self.forms[op.result] = op.tensor
            case TmaCallOp():
                smem = None
                if op.smem is not None:
                    assert isinstance(op.smem.type, TensorType)
                    smem = self.addresses.first(emitter, self._address(op.smem), op.smem.type, swizzled=False)
                coords = [self.addresses.converted(coord, 32, must_fit=True) for coord in op.coords]
                operands = op.mbarrier, op.multicast, op.policy
                map = self.map_arguments[op.tma]
                if op.descriptor is not None:
                    map = emitter.value(CvtaTensorMapOp(op.descriptor))
                made = instruction_of(op.tma.type, map, coords, smem, *operands)
                made.attributes |= op.attributes
                emitter.insert(made)
                emitter.replace()
            case PrefetchOp():
                emitter.insert(PrefetchTensorMapOp(self.map_arguments[op.tma]))
                emitter.replace()
            case TensorMapPtrOp():
                emitter.replace([self.map_arguments[op.tma]])
            case CopyTensorMapOp():
                emitter.insert(PtxCopyTensorMapOp(self.map_arguments[op.tma], op.ptr))
                if op.tma in self.forms:
                    update = UpdateTensorMapOp(op.tma, self.forms[op.tma], op.ptr)
                    emitter.insert(update)
                    self._lower(update, Emitter(update))
                emitter.replace()
            case UpdateTensorMapOp():
                from .writing.tensor_maps import update_tensor_map

                update_tensor_map(emitter, op, self._address(op.tensor), self.addresses)
            case InstructionOp():
                args = [self._first(emitter, x) if isinstance(x.type, TensorType) else x for x in op.args]
                call = CustomOp(op.instruction.data, args)
                call.attributes |= op.attributes
                emitter.insert(call)
                remark(call, op.record.describe())
                emitter.replace()
            case MmaCallOp() if isinstance(op.atom.atom.instruction, WgMma):
                d, a, b = [self._address(tensor) for tensor in (op.d, op.a, op.b)]
                self.warpgroup_calls.lower(emitter, op, (d, a, b))
            case TmemAllocOp():
                from .writing.tensor_memory import lower_tmem_alloc

                lower_tmem_alloc(emitter, op)
            case TmemDeallocOp():
                from .writing.tensor_memory import lower_tmem_dealloc

                lower_tmem_dealloc(emitter, op, self.allocations[op])
            case MmaCallOp() if isinstance(op.atom.atom.instruction, Umma):
                from .writing.umma_instructions import lower_umma_call

                tensors = (op.d, op.a, op.b, *op.scales)
                lower_umma_call(emitter, self.addresses, op, [self._address(tensor) for tensor in tensors])
            case MmaCallOp():
                from .writing.mma_instructions import lower_mma_call

                lower_mma_call(emitter, op, [self._first(emitter, tensor) for tensor in op.operands])
            case TileLoadOp():
                emitter.replace([emitter.element(self._element(emitter, op), op.tensor.type)])
            case PtrOp():
                emitter.replace([self._element(emitter, op)])
            case TileStoreOp():
                pointer = self._element(emitter, op)
                value = emitter.value(arith.ExtUIOp(op.value, i8)) if op.tensor.type.is_predicate else op.value
                emitter.insert(StoreOp(value, pointer, op.tensor.type.element_bytes))
                emitter.replace()
            case PrintOp():
                from .writing.prints import lower_print

                lower_print(emitter, op, self._address(op.tensor))
            case PrintTensorOp():
                from .writing.prints import lower_print_tensor

                lower_print_tensor(emitter, op, self._address(op.tensor), self.addresses)
            case ReturnOp():
                emitter.insert(RetOp())
                emitter.replace()
            case _:
                pass

    def _compute(self, op: Crd2IdxOp, emitter: Emitter) -> None:
        """Replaces an index that other arithmetic uses too."""
        index = self.addresses.index(emitter, place_of(op))
        cast = arith.IndexCastOp(index, IndexType())
        set_range(cast, 0, min(self.addresses.greatest(place_of(op)), 2**63 - 1))
        emitter.replace([emitter.value(cast)])

    def _first(self, emitter: Emitter, tensor: SSAValue) -> SSAValue:
        assert isinstance(tensor.type, TensorType), "the stage's contract"
        return self.addresses.first(emitter, self._address(tensor), tensor.type)

    def _element(self, emitter: Emitter, op: TileLoadOp | TileStoreOp | PtrOp) -> SSAValue:
        address = self._address(op.tensor)
        return self.addresses.element(emitter, address, op.tensor.type, op.coord.data, list(op.coords))

    def _allocate(self, op: AllocOp, emitter: Emitter) -> Address:
        type = op.result.type
        match type.space.data.allocation:
            case Allocation.STATIC:
                pointer = emitter.value(SmemAllocOp(type.bytes, type.align.data))
            case Allocation.COMPILER:
                pointer = emitter.value(LocalAllocOp(type.bytes, type.align.data))
            case Allocation.PARAMETER | Allocation.RUN_TIME | Allocation.MAPPED | Allocation.CONSTANT:
                raise AssertionError("the verifier rejects it")
        pointer.name_hint = op.result.name_hint
        return Address(pointer, start_offset(emitter, type))
