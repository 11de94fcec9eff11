# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of warpgroups: matrix multiplications that read shared memory while the threads go on, and the registers
of the threads (PTX ISA, Asynchronous warpgroup-level matrix instructions, and setmaxnreg).

A warpgroup is four warps; the number of the first is a multiple of 4. All its threads execute these instructions
together. The async proxy reads the matrices: it sees the threads' writes to shared memory only after a
`ptx.fence.proxy.async`.
"""

from collections.abc import Mapping
from typing import ClassVar

from xdsl.dialects.builtin import I1, I32, I64, IntegerAttr, UnitAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import EqAttrConstraint, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.element_types import BY_PTX
from ...base.errors import Code, TilefoldError
from ...base.spaces import RMEM
from ...base.target import MAX_SET_REGISTERS, MIN_SET_REGISTERS, REGISTER_UNIT, TargetFamily, Targets
from ...layout.atoms.contract import Named
from ...layout.atoms.instructions import WgMma
from ...layout.atoms.mma_sync import OPERANDS, registers
from ...layout.atoms.wgmma import WGMMA_TARGETS
from ...layout.atoms.wgmma_smem import START_MASK, MatrixDescriptor
from ..definitions import (
    flag,
    irdl_op_definition,
    number,
    operand,
    optional_operand,
    optional_prop,
    prop,
    refuse,
    row,
    some_number,
)
from .base import LOCAL, SHARED, PtxOp
from .effects import Group, Proxy, Unit, Via, by_warpgroup, ends, fences, issued, reads, waits, writes
from .mma import MmaAtomOp, check_selector

SETMAXNREG_TARGETS = Targets(WGMMA_TARGETS.families | {TargetFamily(100, 86, "f")})
"""sm_90a, and from sm_100 on the targets with the features of their family (PTX ISA, setmaxnreg)."""
MAX_WGMMA_GROUPS = 7
"""The most groups that a `ptx.wgmma.wait_group` leaves running."""

_MATRICES = (
    reads("d", "d_bytes"),
    writes("d", "d_bytes"),
    reads("a", "a_bytes", Via.DESCRIPTOR),
    reads("b", "b_bytes", Via.DESCRIPTOR),
)


class _WarpgroupOp(PtxOp):
    """An instruction of a warpgroup."""

    TARGETS: ClassVar[Targets | None] = WGMMA_TARGETS


@irdl_op_definition
class WgmmaFenceOp(_WarpgroupOp):
    """`ptx.wgmma.fence`: orders the threads' earlier accesses to their registers before the `ptx.wgmma.mma_async` after
    it (PTX ISA, wgmma.fence).

    It stands before the first of these, and wherever the threads have changed its accumulators, or registers of A, in
    between. Instructions of one shape that accumulate in the same registers need none between each other.
    """

    name = "ptx.wgmma.fence"
    MNEMONIC: ClassVar[str | None] = "wgmma.fence.sync.aligned"
    traits = traits_def(by_warpgroup(fences(Proxy.ASYNC, RMEM.ptx)))
    assembly_format = "attr-dict"


@irdl_op_definition
class WgmmaCommitGroupOp(_WarpgroupOp):
    """`ptx.wgmma.commit_group`: the warpgroup's `ptx.wgmma.mma_async` since the last commit become one group (PTX ISA,
    wgmma.commit_group).
    """

    name = "ptx.wgmma.commit_group"
    MNEMONIC: ClassVar[str | None] = "wgmma.commit_group.sync.aligned"
    traits = traits_def(by_warpgroup(ends(Group.WGMMA)))
    assembly_format = "attr-dict"


@row
class WgmmaWaitGroupOp(_WarpgroupOp):
    """`ptx.wgmma.wait_group 1`: waits until at most this number of the warpgroup's latest groups, 0 to 7, is running
    (PTX ISA, wgmma.wait_group). Registers and shared memory of the others may be used again.
    """

    name = "ptx.wgmma.wait_group"
    MNEMONIC: ClassVar[str | None] = "wgmma.wait_group.sync.aligned"
    n: IntegerAttr[I64] = prop(converter=number)
    traits = traits_def(by_warpgroup(waits(Group.WGMMA)))
    assembly_format = "$n attr-dict"

    def verify_(self) -> None:
        if not 0 <= self.n.value.data <= MAX_WGMMA_GROUPS:
            raise VerifyException(f"the number of groups is {self.n.value.data}; it is 0 to {MAX_WGMMA_GROUPS}")


@row
class WgmmaMmaAsyncOp(MmaAtomOp):
    """`ptx.wgmma.mma_async "SM90_64x256x16_F32F16F16_SS<Major::K,Major::K>" %d, %a, %b, %scale_d : i64`: starts D =
    A * B + D, or where `scale_d` does not hold D = A * B, by the instruction of an MMA atom (PTX ISA, wgmma.mma_async).

    `d` points to the thread's accumulators, in the order of the instruction, 32 bits each, from the lowest bits up. `b`
    is the descriptor of B in shared memory, and so is `a`, or it points to the thread's registers of A
    (`!ptx.ptr<local>`), by the name of the atom. `negate_a` and `negate_b` change the sign of a matrix of floats.

    An atom with a sparse A, `SM90_SPARSE_...`, takes `metadata %e`, an i32, and its sparsity selector, `select 0`: of
    elements of 16 and 32 bits 1 names the threads 2 and 3 of four instead of 0 and 1 (PTX ISA, wgmma.mma_async.sp).
    Registers or shared memory have half of the elements of A.

    Preconditions: the fragments come from `ptx.local.alloc`; all threads of the warpgroup execute it, with the same
    descriptors. Postcondition: until the threads have waited for its group, they do not read or write the accumulators,
    and do not write A and B, in registers or shared memory.
    """

    name = "ptx.wgmma.mma_async"
    d: SSAValue = operand(LOCAL)
    a: SSAValue = operand(EqAttrConstraint(i64) | EqAttrConstraint(LOCAL))
    b: SSAValue = operand(I64)
    scale_d: SSAValue = operand(I1)
    negate_a: UnitAttr | None = optional_prop(converter=flag, default=False)
    negate_b: UnitAttr | None = optional_prop(converter=flag, default=False)
    metadata: SSAValue | None = optional_operand(I32, default=None)
    select: IntegerAttr[I64] | None = optional_prop(converter=some_number, default=None)
    traits = traits_def(by_warpgroup(*issued(Group.WGMMA, Proxy.ASYNC, *_MATRICES)))
    assembly_format = (
        "$atom_name (`negate_a` $negate_a^)? (`negate_b` $negate_b^)? $d `,` $a `,` $b `,` $scale_d "
        "(`metadata` $metadata^)? (`select` $select^)? attr-dict `:` type($a)"
    )

    @property
    def described(self) -> Mapping[str, SSAValue]:
        """The descriptors of the operands in shared memory, by their names."""
        given = {"A": self.a, "B": self.b}
        return {name: value for name, value in given.items() if self.atom.operand(name).named is Named.DESCRIPTOR}

    @property
    def d_bytes(self) -> int:
        """The bytes of the warpgroup's accumulators."""
        return self._register_bytes("D")

    @property
    def a_bytes(self) -> int:
        """The bytes of A, in the registers of the warpgroup or in shared memory."""
        m, _, _ = self.atom.shape
        return self._register_bytes("A") if self.a.type == LOCAL else m * self.atom.stored_k * self._bits("A") // 8

    @property
    def b_bytes(self) -> int:
        """The bytes of B in shared memory."""
        _, n, k = self.atom.shape
        return n * k * self._bits("B") // 8

    def _bits(self, operand: str) -> int:
        return BY_PTX[self.atom.types[OPERANDS.index(operand)]].bits

    def _register_bytes(self, operand: str) -> int:
        return 4 * registers(self.atom, operand).count * self.atom.threads

    @property
    def signs(self) -> tuple[int, int]:
        """The factors of A and of B, 1 or -1."""
        return (1 if self.negate_a is None else -1), (1 if self.negate_b is None else -1)

    def verify_(self) -> None:
        atom = self.checked_atom(WgMma, "a warpgroup")
        in_registers = "A" not in self.described
        if in_registers != (self.a.type == LOCAL):
            wanted = f"in registers, {LOCAL}" if in_registers else "in shared memory, a descriptor of type i64"
            raise VerifyException(f"A of {atom.name} is {wanted}, not {self.a.type}")
        if self.signs != (1, 1) and atom.types[0] == "s32":
            raise VerifyException(f"{atom.name} multiplies integers, whose sign cannot be changed")
        if atom.is_sparse != (self.metadata is not None and self.select is not None):
            wanted = "takes metadata and a selector" if atom.is_sparse else "has no metadata"
            raise VerifyException(f"{atom.name} {wanted}")
        if self.select is not None:
            check_selector(atom, self.select.value.data)


@row
class SetMaxNRegOp(PtxOp):
    """`ptx.setmaxnreg inc 232`, `ptx.setmaxnreg dec 40`: each thread of the warpgroup has this number of registers from
    now on (PTX ISA, setmaxnreg). `dec` gives registers back to the block, `inc` waits until the block has enough of
    them. The last warps of a block may be fewer than four.

    The number is a multiple of 8, from 24 to 256. The launch gave the block as many registers for each thread as the
    kernel says by `max_registers`, or as fit its multiprocessor, but no more than the greatest number of the kernel's
    instructions.
    """

    name = "ptx.setmaxnreg"
    TARGETS: ClassVar[Targets | None] = SETMAXNREG_TARGETS
    n: IntegerAttr[I64] = prop(converter=number)
    inc: UnitAttr | None = optional_prop(converter=flag)
    traits = traits_def(by_warpgroup(waits(Unit.REGISTERS).given("inc"), ends(Unit.REGISTERS).given("not inc")))
    assembly_format = "(`inc` $inc^) : (`dec`)? $n attr-dict"

    def mnemonic(self) -> str:
        return f"setmaxnreg.{'dec' if self.inc is None else 'inc'}.sync.aligned.u32"

    def verify_(self) -> None:
        n = self.n.value.data
        if not MIN_SET_REGISTERS <= n <= MAX_SET_REGISTERS or n % REGISTER_UNIT:
            hint = f"the number is a multiple of {REGISTER_UNIT} from {MIN_SET_REGISTERS} to {MAX_SET_REGISTERS}"
            refuse(TilefoldError(Code.IR_VERIFY, f"a thread cannot have {n} registers by setmaxnreg", hint))


@row
class WgmmaDescriptorOp(PtxOp):
    """`%d = ptx.wgmma.descriptor %p leading 1 stride 64 swizzle 3`: the matrix descriptor of an operand that begins at
    `p`, for `ptx.wgmma.mma_async` (PTX ISA, Asynchronous warpgroup-level matrix instructions: matrix descriptors). No
    instruction of its own.

    `leading` and `stride` are its byte offsets in units of 16 bytes. `swizzle` is the number of address bits that the
    hardware xors: none, or 1 in 32 bytes, 2 in 64 and 3 in 128. A descriptor plus 1 begins 16 bytes further on.
    """

    name = "ptx.wgmma.descriptor"
    ptr: SSAValue = operand(SHARED)
    leading: IntegerAttr[I64] = prop(converter=number)
    stride: IntegerAttr[I64] = prop(converter=number)
    swizzle: IntegerAttr[I64] = prop(converter=number)
    result = result_def(I64)
    traits = traits_def(Pure())
    assembly_format = "$ptr `leading` $leading `stride` $stride `swizzle` $swizzle attr-dict"

    TARGETS: ClassVar[Targets | None] = WGMMA_TARGETS

    @property
    def fields(self) -> MatrixDescriptor:
        """The descriptor of an operand at address 0."""
        leading, stride, swizzle = (field.value.data for field in (self.leading, self.stride, self.swizzle))
        return MatrixDescriptor.of(0, leading, stride, swizzle)

    def verify_(self) -> None:
        for name, field in (("leading", self.leading), ("stride", self.stride)):
            if not 0 <= field.value.data <= START_MASK:
                raise VerifyException(f"the field `{name}` is {field.value.data}; it has 14 bits")
        if not 0 <= self.swizzle.value.data <= 3:
            raise VerifyException(f"the swizzle xors {self.swizzle.value.data} bits; 0 to 3 are possible")
