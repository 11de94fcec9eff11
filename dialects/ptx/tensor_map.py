# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps in memory, which a kernel changes before its TMA copies use them (PTX ISA, section Tensors:
Tensor-map, and tensormap.replace).

TMA copies read a map by a proxy of their own. Writes of the map are before them only behind a release fence of the
thread that wrote and, after it, an acquire fence of the thread that copies.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, final

from xdsl.dialects.builtin import I64, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.spaces import GMEM, SMEM, Space
from ...base.target import TargetFamily, Targets
from ...layout.tma.recipe import MAP_ELEMENTS
from ...layout.tma.tensor_map import MAX_RANK, SWIZZLE_NAMES
from ..definitions import (
    fields,
    number,
    operand,
    optional_operand,
    optional_prop,
    prop,
    row,
    some_number,
    some_text,
    text,
)
from ..operands import Defined
from .atomic import SCOPES
from .base import GLOBAL, MAP, MAP_BYTES, SHARED, PtrType, pointer
from .bulk import BulkOp
from .effects import Proxy, by_thread, by_warp, fences, reads, writes
from .warp import check_word

_FENCE = fences(Proxy.TENSORMAP, "tensor maps")
_WORDS = tuple(element.packed or element.name for element in MAP_ELEMENTS.values())
_ELEMENTS = tuple(word for name in _WORDS for word in ((name, f"{name}.ftz") if "f32" in name else (name,)))
"""The types of elements in the order of their numbers in tensormap.replace."""


@final
@dataclass(frozen=True, slots=True)
class MapField:
    """A field of a tensor map: the bits of its value, for how many dimensions it has one (0: one for the map), and the
    words for its values by their numbers, where the instruction has them as constants.
    """

    bits: int = 32
    dimensions: int = 0
    words: tuple[str, ...] = ()


REPLACE_TARGETS = Targets(frozenset((TargetFamily(90, 83, "a"), TargetFamily(100, 86, "f"))))
"""The targets of tensormap.replace: sm_90a, and from sm_100 on those with the features of their family."""

MAP_PLACES: Mapping[Space, str] = MappingProxyType({GMEM: GMEM.ptx, SMEM: "shared::cta"})
"""The memories that a map can be changed in, as the instruction names them."""

MAP_FIELDS: Mapping[str, MapField] = MappingProxyType({
    "global_address": MapField(64), "rank": MapField(), "box_dim": MapField(32, MAX_RANK),
    "global_dim": MapField(32, MAX_RANK), "global_stride": MapField(64, MAX_RANK - 1),
    "element_stride": MapField(32, MAX_RANK), "elemtype": MapField(words=_ELEMENTS),
    "interleave_layout": MapField(words=("none", "16B", "32B")),
    "swizzle_mode": MapField(words=("none", *SWIZZLE_NAMES[1:])), "fill_mode": MapField(words=("zero", "nan")),
})  # fmt: skip
"""The fields that tensormap.replace has for tiled maps (PTX ISA, tensormap.replace)."""


class _MapOp(BulkOp):
    """An instruction on a tensor map in memory."""

    SINCE: ClassVar = 90, 83


@row
class CvtaTensorMapOp(_MapOp):
    """`%m = ptx.cvta.tensor_map %p`: a tensor map in global memory, as TMA copies take it (PTX ISA, cvta).

    Precondition: 128 bytes that hold a map, at a multiple of 128.
    """

    name = "ptx.cvta.tensor_map"
    ptr: SSAValue = operand(GLOBAL)
    result = result_def(MAP)
    traits = traits_def(Pure())
    assembly_format = "$ptr attr-dict"


@row
class LoadTensorMapOp(_MapOp):
    """`%w = ptx.tensormap.load %m at 8`: eight bytes of a tensor map, at a byte offset (PTX ISA, ld):
    for kernels that copy maps to memory word by word. The hardware defines the meaning of the bytes.
    """

    name = "ptx.tensormap.load"
    MNEMONIC: ClassVar[str | None] = "ld.b64"
    map: SSAValue = operand(MAP)
    offset: IntegerAttr[I64] = prop(converter=number)
    result = result_def(I64)
    traits = traits_def(by_thread(reads("map", 8)))
    assembly_format = "$map `at` $offset attr-dict"

    def verify_(self) -> None:
        if self.offset.value.data not in range(0, MAP_BYTES, 8):
            raise VerifyException(
                f"a word of a map is at a multiple of 8 below {MAP_BYTES}, not at {self.offset.value.data}"
            )


class MapMemory(Defined):
    """The address of a tensor map in global memory, or in the shared memory of the block."""

    KINDS = (PtrType,)
    EXPECTED = "an address in global or shared memory"


def _check_memory(ptr: SSAValue) -> None:
    if ptr.type not in (GLOBAL, SHARED):
        raise VerifyException(f"a map can change only in global or shared memory, not at a {ptr.type}")


@row
class CopyTensorMapOp(_MapOp):
    """`ptx.tensormap.copy %m, %p`: copies a tensor map to global or shared memory, by loads and stores of the thread.
    It is for a map that the kernel changes there. Precondition: `%p` is a multiple of 128.
    """

    name = "ptx.tensormap.copy"
    map: SSAValue = operand(MAP)
    ptr: SSAValue[PtrType] = operand(PtrType, converter=pointer)
    custom_directives = (MapMemory,)
    traits = traits_def(by_thread(reads("map", MAP_BYTES), writes("ptr", MAP_BYTES)))
    assembly_format = "$map `,` custom<MapMemory>($ptr, type($ptr)) attr-dict"

    def verify_(self) -> None:
        _check_memory(self.ptr)


@row
class TensorMapReplaceOp(_MapOp):
    """`ptx.tensormap.replace "global_dim" at 1 %p, %extent`, `ptx.tensormap.replace "swizzle_mode" "128B" %p`: changes
    a field of a map in global or shared memory (PTX ISA, tensormap.replace; sm_90a, and the families from sm_100 on).

    The fields are `global_address` (an address or i64), `rank` (i32, less 1), `box_dim`, `global_dim` and
    `element_stride` (i32, of a dimension from 0 for the innermost), `global_stride` (i64, in bytes, from 0 for that of
    dimension 1) and, with words for constants, `elemtype`, `interleave_layout`, `swizzle_mode` and
    `fill_mode`. One thread changes a map.
    """

    name = "ptx.tensormap.replace"
    field: StringAttr = prop(converter=text)
    ptr: SSAValue[PtrType] = operand(PtrType, converter=pointer)
    value: SSAValue | None = optional_operand(IntegerType | PtrType, default=None)
    ordinal: IntegerAttr[I64] | None = optional_prop(converter=some_number, default=None)
    word: StringAttr | None = optional_prop(converter=some_text, default="")
    custom_directives = (MapMemory,)
    traits = traits_def(by_thread(reads("ptr", MAP_BYTES), writes("ptr", MAP_BYTES)))
    assembly_format = (
        "$field (`at` $ordinal^)? ($word^)? custom<MapMemory>($ptr, type($ptr)) (`,` $value^ `:` type($value))? "
        "attr-dict"
    )

    @property
    def targets(self) -> Targets:
        return REPLACE_TARGETS

    @property
    def dimension(self) -> int:
        """The dimension of the field; 0 where it has none."""
        return 0 if self.ordinal is None else self.ordinal.value.data

    def mnemonic(self) -> str:
        space = MAP_PLACES[self.ptr.type.space.data]
        return f"tensormap.replace.tile.{self.field.data}.{space}.b1024.b{MAP_FIELDS[self.field.data].bits}"

    def verify_(self) -> None:
        name = self.field.data
        check_word("tensormap.replace", name, tuple(MAP_FIELDS))
        _check_memory(self.ptr)
        field = MAP_FIELDS[name]
        if (self.ordinal is None) == (field.dimensions > 0) or self.dimension not in range(field.dimensions or 1):
            has = f"values at 0 to {field.dimensions - 1}" if field.dimensions else "one value, without a dimension"
            raise VerifyException(f"the field {name} has {has}")
        if field.words:
            check_word(name, "" if self.word is None else self.word.data, field.words)
            if self.value is not None:
                raise VerifyException(f"the field {name} takes only constants")
            return
        takes = [IntegerType(field.bits), *([GLOBAL] if name == "global_address" else [])]
        if self.word is not None or self.value is None or self.value.type not in takes:
            raise VerifyException(f"the value of {name} is of type {' or '.join(map(str, takes))}")


@fields
class _FencingOp(_MapOp):
    """A fence between writes of maps and the TMA copies that read these."""

    scope: StringAttr | None = optional_prop(converter=some_text, default=None, kw_only=True)

    @property
    def scope_name(self) -> str:
        """The scope in PTX's words."""
        return "gpu" if self.scope is None else self.scope.data

    def verify_(self) -> None:
        check_word("scope", self.scope_name, SCOPES)


@row
class FenceTensorMapReleaseOp(_FencingOp):
    """`ptx.fence.proxy.tensormap.release scope "gpu"`: the thread's writes of maps before it are before the TMA
    copies behind an acquire fence that follows (PTX ISA, membar: fence.proxy.tensormap::generic.release).
    """

    name = "ptx.fence.proxy.tensormap.release"
    traits = traits_def(by_thread(_FENCE))
    assembly_format = "(`scope` $scope^)? attr-dict"

    def mnemonic(self) -> str:
        return f"fence.proxy.tensormap::generic.release.{self.scope_name}"


@row
class FenceTensorMapAcquireOp(_FencingOp):
    """`ptx.fence.proxy.tensormap.acquire %p scope "gpu"`: the thread's TMA copies after it see the map at `%p` as it
    was released before (PTX ISA, membar: fence.proxy.tensormap::generic.acquire).
    """

    name = "ptx.fence.proxy.tensormap.acquire"
    ptr: SSAValue = operand(GLOBAL)
    traits = traits_def(by_thread(_FENCE))
    assembly_format = "$ptr (`scope` $scope^)? attr-dict"

    def mnemonic(self) -> str:
        return f"fence.proxy.tensormap::generic.acquire.{self.scope_name}"


@row
class TensorMapCpFenceOp(_FencingOp):
    """`ptx.tensormap.cp_fenceproxy %dst, %src scope "gpu"`: the threads of a warp together copy a map from shared to
    global memory, and fence as `ptx.fence.proxy.tensormap.release` does (PTX ISA, tensormap.cp_fenceproxy).

    Preconditions: all threads of the warp execute it with the same addresses, which are multiples of 128; a
    `ptx.bar.warp.sync` lies between it and the changes of the map by one of them.
    """

    name = "ptx.tensormap.cp_fenceproxy"
    dst: SSAValue = operand(GLOBAL)
    src: SSAValue = operand(SHARED)
    traits = traits_def(by_warp(reads("src", MAP_BYTES), writes("dst", MAP_BYTES), _FENCE))
    assembly_format = "$dst `,` $src (`scope` $scope^)? attr-dict"

    def mnemonic(self) -> str:
        route = "global.shared::cta.tensormap::generic.release"
        return f"tensormap.cp_fenceproxy.{route}.{self.scope_name}.sync.aligned"
