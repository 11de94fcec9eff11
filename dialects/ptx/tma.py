# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of boxes of a tensor that a tensor map describes (PTX ISA, section Data Movement and Conversion Instructions:
TMA copy).

A box begins at 1 to 5 coordinates, in elements, that of the contiguous dimension first. One thread has it copied by the
async proxy, as bulk copies are. A box may reach beyond the tensor.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import I16, I32, I64, StringAttr, UnitAttr
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from ...base.target import Target, TargetFamily, Targets
from ...layout.atoms.instructions import MATRIX, ROWS
from ...layout.atoms.ptx_text import tensor_mnemonic
from ...layout.tma.recipe import REDUCTIONS, MapRecipe
from ...layout.tma.tensor_map import MAX_RANK
from ..definitions import irdl_op_definition, operand, row
from .address import MbarrierAddress
from .base import MAP, MAP_BYTES, SHARED, SHARED_CLUSTER, PtrType
from .bulk import BulkOp
from .effects import Group, Mbarrier, Proxy, Unit, Via, arrives, by_thread, issued, issues, reads, updates, writes
from .entry import EntryOp
from .tcgen05.base import TCGEN05
from .warp import check_word

_BAR = Mbarrier("bar")
_BLOCKS_ALONE = 12
"""The generation of GPUs whose clusters have one block."""
_TENSOR, _STORED = reads("map", "box_bytes", Via.BOX), writes("map", "box_bytes", Via.BOX)
_SOURCE, _CHANGED = reads("src", "box_bytes"), updates("map", "box_bytes", Via.BOX)
_MAP = replace(reads("map", MAP_BYTES), proxy=Proxy.TENSORMAP)


class TmaCopyOp(BulkOp):
    """An instruction on a box of a tensor."""

    map = operand_def(MAP)
    coords = var_operand_def(I32)
    policy = opt_operand_def(I64)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def by_rows(self) -> bool:
        """Whether it moves four rows of a matrix instead of a box: by a column and the four numbers of the rows."""
        return False

    def spelled(self, *, loads: bool, multicast: bool = False, reduction: str = "", pair: bool = False) -> str:
        """The instruction with its rank and modifiers."""
        rank = MATRIX if self.by_rows else len(self.coords)
        return self.hinted(tensor_mnemonic(rank, loads, multicast, reduction, pair, self.by_rows))

    def hinted(self, mnemonic: str) -> str:
        """The instruction with the word for its cache policy, if it has one."""
        return f"{mnemonic}{'' if self.policy is None else '.L2::cache_hint'}"

    @property
    def recipe(self) -> MapRecipe | None:
        """The recipe of the map; None if it is not an argument of the kernel."""
        owner = self.map.owner
        entry = owner.parent_op() if isinstance(owner, Block) else None
        return (
            entry.maps.get(self.map.index)
            if isinstance(entry, EntryOp) and isinstance(self.map, BlockArgument)
            else None
        )

    @property
    def box_bytes(self) -> int | None:
        """The bytes of the box in shared memory; None unless the map is an argument of the kernel."""
        boxes = ROWS if self.by_rows else 1
        return None if (recipe := self.recipe) is None else boxes * prod(recipe.box) * recipe.element.type.bits // 8

    def verify_(self) -> None:
        if self.by_rows:
            self._verify_rows()
            return
        if not 1 <= len(self.coords) <= MAX_RANK:
            raise VerifyException(f"the box begins at {len(self.coords)} coordinates; a tensor map has 1 to {MAX_RANK}")
        if (recipe := self.recipe) is not None and len(recipe.box) != len(self.coords):
            raise VerifyException(f"the map has {len(recipe.box)} dimensions, the box {len(self.coords)} coordinates")

    def _verify_rows(self) -> None:
        if len(self.coords) != 1 + ROWS:
            raise VerifyException(
                f"{ROWS} rows are named by a column and their numbers, not by {len(self.coords)} numbers"
            )
        if (recipe := self.recipe) is not None and (len(recipe.box) != MATRIX or recipe.box[1] != 1):
            raise VerifyException(f"the map of single rows has 2 dimensions and boxes of one row, not {recipe.box}")


@irdl_op_definition
class TensorLoadOp(TmaCopyOp):
    """`ptx.cp.async.bulk.tensor.load %map[%c0, %c1], %dst, %bar pair multicast %mask policy %p`: starts copying a
    box to shared memory; the mbarrier at `bar` counts the bytes of the whole box when they are there (PTX ISA,
    cp.async.bulk.tensor). Elements outside the tensor are zero, or NaN by the map.

    With a mask, whose bit i stands for the block of rank i in the cluster, the box goes to the same place in each of
    these blocks, whose own mbarrier at the place of `bar` counts it.

    With `pair` (`.cta_group::2`), the mbarrier is one of either block of the destination's pair: of the one whose rank
    is as even or odd as that of the block that `bar` is in. `ptx.pair.leader` has the place in the even one.

    With `gather4`, the coordinates are a column and the numbers of four rows, whose parts come one after the other.
    The map has two dimensions and boxes of one row. Rows outside the tensor are as elements outside it.

    Preconditions: `dst` is a multiple of 128; where the map swizzles, the swizzle applies to the address in shared
    memory. Postcondition: the bytes at `dst` are undefined until the phase is complete.
    """

    name = "ptx.cp.async.bulk.tensor.load"
    dst = operand_def(SHARED)
    bar = operand_def(PtrType)
    multicast = opt_operand_def(I16)
    pair = opt_prop_def(UnitAttr)
    gather4 = opt_prop_def(UnitAttr)
    custom_directives = (MbarrierAddress,)
    traits = traits_def(by_thread(*issued(_BAR, Proxy.ASYNC, _TENSOR, writes("dst", "box_bytes"), arrives(_BAR)), _MAP))
    assembly_format = (
        "(`gather4` $gather4^)? $map `[` $coords `]` `,` $dst `,` custom<MbarrierAddress>($bar, type($bar)) "
        "(`pair` $pair^)? (`multicast` $multicast^)? (`policy` $policy^)? attr-dict"
    )

    def __init__(
        self,
        map: SSAValue,
        coords: Sequence[SSAValue],
        dst: SSAValue,
        bar: SSAValue,
        multicast: SSAValue | None = None,
        policy: SSAValue | None = None,
        pair: bool = False,
        gather4: bool = False,
    ):
        super().__init__(
            operands=[dst, bar, multicast, map, coords, policy],
            properties={"pair": UnitAttr() if pair else None, "gather4": UnitAttr() if gather4 else None},
        )

    @property
    def by_rows(self) -> bool:
        return self.gather4 is not None

    @property
    def targets(self) -> TargetFamily | Targets:
        return super().targets if self.pair is None and not self.by_rows else TCGEN05

    def mnemonic(self) -> str:
        return self.spelled(loads=True, multicast=self.multicast is not None, pair=self.pair is not None)

    def mnemonic_on(self, target: Target) -> str:
        """The instruction on a target. On sm_120 ptxas makes a function call of a copy to the shared memory of the
        cluster, and gives up `setmaxnreg` (C7506); one to that of the block is an instruction.
        """
        if target.sm // 10 != _BLOCKS_ALONE or self.multicast is not None or self.pair is not None:
            return self.mnemonic()
        return self.mnemonic().replace("shared::cluster.global", "shared::cta.global")

    def verify_(self) -> None:
        super().verify_()
        if self.bar.type == SHARED_CLUSTER and self.pair is None:
            raise VerifyException(
                "the mbarrier of a copy is in the block that it copies to, or with `pair` in its pair"
            )


@irdl_op_definition
class TensorStoreOp(TmaCopyOp):
    """`ptx.cp.async.bulk.tensor.store %map[%c0, %c1], %src policy %p`: starts copying a box from shared memory to the
    tensor, as a part of the thread's bulk group (PTX ISA, cp.async.bulk.tensor). Elements outside the tensor are
    left out. With `scatter4` it writes four rows, see `gather4`.

    Preconditions: `src` is a multiple of 128; a `ptx.fence.proxy.async` lies after the writes of the bytes.
    """

    name = "ptx.cp.async.bulk.tensor.store"
    src = operand_def(SHARED)
    traits = traits_def(by_thread(*issued(Group.BULK, Proxy.ASYNC, _SOURCE, _STORED), _MAP))
    scatter4 = opt_prop_def(UnitAttr)
    assembly_format = "(`scatter4` $scatter4^)? $map `[` $coords `]` `,` $src (`policy` $policy^)? attr-dict"

    def __init__(
        self,
        map: SSAValue,
        coords: Sequence[SSAValue],
        src: SSAValue,
        policy: SSAValue | None = None,
        scatter4: bool = False,
    ):
        super().__init__(operands=[src, map, coords, policy], properties={"scatter4": UnitAttr() if scatter4 else None})

    @property
    def by_rows(self) -> bool:
        return self.scatter4 is not None

    @property
    def targets(self) -> TargetFamily | Targets:
        return TCGEN05 if self.by_rows else super().targets

    def mnemonic(self) -> str:
        return self.spelled(loads=False)


@irdl_op_definition
class TensorReduceOp(TmaCopyOp):
    """`ptx.cp.reduce.async.bulk.tensor "add" %map[%c0, %c1], %src policy %p`: as a store, but the elements of the box
    are combined with those of the tensor, one by one and atomically; the map has their type (PTX ISA,
    cp.reduce.async.bulk.tensor). The kinds are `add min max inc dec and or xor`, and those of a type
    `layout.tma.recipe.MAP_ELEMENTS`.
    """

    name = "ptx.cp.reduce.async.bulk.tensor"
    kind = prop_def(StringAttr)
    src = operand_def(SHARED)
    traits = traits_def(by_thread(*issued(Group.BULK, Proxy.ASYNC, _SOURCE, _CHANGED), _MAP))
    assembly_format = "$kind $map `[` $coords `]` `,` $src (`policy` $policy^)? attr-dict"

    def __init__(
        self, kind: str, map: SSAValue, coords: Sequence[SSAValue], src: SSAValue, policy: SSAValue | None = None
    ):
        super().__init__(operands=[src, map, coords, policy], properties={"kind": StringAttr(kind)})

    def mnemonic(self) -> str:
        return self.spelled(loads=False, reduction=self.kind.data)

    def verify_(self) -> None:
        super().verify_()
        kind, recipe = self.kind.data, self.recipe
        check_word("cp.reduce.async.bulk.tensor", kind, REDUCTIONS)
        if recipe is not None and kind not in recipe.element.reductions:
            hint = f"its reductions are {', '.join(recipe.element.reductions) or 'none'}"
            raise VerifyException(f'there is no "{kind}" of {recipe.element.name}; {hint}')


@irdl_op_definition
class TensorPrefetchOp(TmaCopyOp):
    """`ptx.cp.async.bulk.tensor.prefetch %map[%c0, %c1] policy %p`: the L2 cache may fetch a box (PTX ISA,
    cp.async.bulk.prefetch.tensor).
    """

    name = "ptx.cp.async.bulk.tensor.prefetch"
    traits = traits_def(by_thread(issues(Unit.CACHE), _MAP))
    assembly_format = "$map `[` $coords `]` (`policy` $policy^)? attr-dict"

    def __init__(self, map: SSAValue, coords: Sequence[SSAValue], policy: SSAValue | None = None):
        super().__init__(operands=[map, coords, policy])

    def mnemonic(self) -> str:
        return self.hinted(f"cp.async.bulk.prefetch.tensor.{len(self.coords)}d.L2.global.tile")


@row
class PrefetchTensorMapOp(BulkOp):
    """`ptx.prefetch.tensormap %map`: the cache of tensor maps may fetch a map that copies will use (PTX ISA,
    prefetch.tensormap).
    """

    name = "ptx.prefetch.tensormap"
    MNEMONIC: ClassVar[str | None] = "prefetch.tensormap"
    map: SSAValue = operand(MAP)
    traits = traits_def(by_thread(issues(Unit.CACHE)))
    assembly_format = "$map attr-dict"
