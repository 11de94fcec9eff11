# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters of blocks: addresses in the shared memory of a peer, asynchronous stores there, and barriers of all threads
(PTX ISA, sections mapa, getctarank, st.async, red.async, barrier.cluster and membar: fence.mbarrier_init).

A block must not access the shared memory of a peer before the peer has begun or after it has ended. A cluster barrier
ensures both.
"""

from typing import ClassVar

from xdsl.dialects.builtin import I32, StringAttr, UnitAttr, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..definitions import fields, flag, operand, optional_prop, prop, row, text
from .base import SHARED, SHARED_CLUSTER, PtxOp, access_registers, scalar_bits, split_vector, value_bytes
from .effects import Mbarrier, Proxy, Unit, arrives, by_thread, by_warp, fences, issued, updates, waits, writes

_BAR = Mbarrier("bar")
PEER_BIT = 1 << 24
"""The lowest bit of the rank of a block in an address of shared memory."""


class _ClusterOp(PtxOp):
    """An instruction that targets have since there are clusters."""

    SINCE: ClassVar = 90, 78


@row
class MapaOp(_ClusterOp):
    """`%q = ptx.mapa %p, %rank`: the address in the shared memory of the block of this rank in the cluster that `p` is
    in the own one's (PTX ISA, mapa).

    Precondition: the cluster has a block of this rank.
    """

    name = "ptx.mapa"
    MNEMONIC: ClassVar[str | None] = "mapa.shared::cluster.u32"
    ptr: SSAValue = operand(SHARED)
    rank: SSAValue = operand(I32)
    result = result_def(SHARED_CLUSTER)
    traits = traits_def(Pure())
    assembly_format = "$ptr `,` $rank attr-dict"


@row
class PairLeaderOp(_ClusterOp):
    """`%q = ptx.pair.leader %p`: the address in the shared memory of the even block of the pair that `p` is in the own
    one's. Addresses of shared memory have the rank of the block from bit 24 on, also those of the own block; this
    clears the lowest of these bits.

    Preconditions: `p` is the address of a variable or a sum of it; the cluster has an even number of blocks.
    """

    name = "ptx.pair.leader"
    ptr: SSAValue = operand(SHARED)
    result = result_def(SHARED_CLUSTER)
    traits = traits_def(Pure())
    assembly_format = "$ptr attr-dict"


@row
class GetCtaRankOp(_ClusterOp):
    """`%rank = ptx.getctarank %q`: the rank in the cluster of the block in whose shared memory an address is (PTX ISA,
    getctarank).
    """

    name = "ptx.getctarank"
    MNEMONIC: ClassVar[str | None] = "getctarank.shared::cluster.u32"
    ptr: SSAValue = operand(SHARED_CLUSTER)
    result = result_def(I32)
    traits = traits_def(Pure())
    assembly_format = "$ptr attr-dict"


@fields
class _AsyncOp(PtxOp):
    """A store to shared memory of the cluster; an mbarrier counts its bytes."""

    SINCE: ClassVar = 90, 81
    value: SSAValue = operand()
    ptr: SSAValue = operand(SHARED_CLUSTER)
    bar: SSAValue = operand(SHARED_CLUSTER)


@row
class StAsyncOp(_AsyncOp):
    """`ptx.st.async %v, %q, %bar : vector<4xf32>`: starts a store to the shared memory of a block of the cluster; the
    mbarrier at `bar`, in the same block, counts its bytes when they are there (PTX ISA, st.async).

    Values of 32 or 64 bits, and vectors of two or four in at most 16 bytes. Precondition: the address is a multiple of
    the size of the access. Postcondition: who waits for the phase sees the value.
    """

    name = "ptx.st.async"
    traits = traits_def(by_thread(*issued(_BAR, Proxy.GENERIC, writes("ptr", "value"), arrives(_BAR))))
    assembly_format = "$value `,` $ptr `,` $bar attr-dict `:` type($value)"

    def mnemonic(self) -> str:
        count, bits = access_registers(self.value.type)
        vector = f".v{count}" if count > 1 else ""
        return f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{vector}.b{bits}"

    def verify_(self) -> None:
        element, count = split_vector(self.value.type)
        if scalar_bits(element) not in (32, 64) or count not in (0, 2, 4) or (value_bytes(self.value.type) or 32) > 16:
            text = f"values of 32 or 64 bits, or two or four in 16 bytes, are stored so, not {self.value.type}"
            raise VerifyException(text)


_REDUCTIONS = {"inc": "u32", "dec": "u32", "min": "s32", "max": "s32", "umin": "u32", "umax": "u32", "and": "b32",
               "or": "b32", "xor": "b32"}  # fmt: skip


@row
class RedAsyncOp(_AsyncOp):
    """`ptx.red.async "add" %v, %q, %bar : i32`: starts an atomic change of shared memory of a block of the cluster; the
    mbarrier at `bar`, in the same block, counts its bytes when it is done (PTX ISA, red.async).

    add of i32 and i64; min, max, umin, umax, and, or, xor, inc and dec of i32. inc counts up to the value and then
    from 0 on, dec counts down from the value.
    """

    name = "ptx.red.async"
    kind: StringAttr = prop(converter=text)
    traits = traits_def(by_thread(*issued(_BAR, Proxy.GENERIC, updates("ptr", "value"), arrives(_BAR))))
    assembly_format = "$kind $value `,` $ptr `,` $bar attr-dict `:` type($value)"

    @property
    def _suffix(self) -> str | None:
        if self.kind.data == "add" and self.value.type in (i32, i64):
            return f"u{scalar_bits(self.value.type)}"
        return _REDUCTIONS.get(self.kind.data) if self.value.type == i32 else None

    def mnemonic(self) -> str:
        kind = self.kind.data.removeprefix("u")
        return f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{kind}.{self._suffix}"

    def verify_(self) -> None:
        if self._suffix is None:
            kinds = f"add of i32 and i64, and {', '.join(_REDUCTIONS)} of i32"
            raise VerifyException(f'red.async has {kinds}; not "{self.kind.data}" of {self.value.type}')


@fields
class _BarrierOp(_ClusterOp):
    """The barrier of all threads of a cluster. `aligned` says that all threads of a warp execute it together."""

    aligned: UnitAttr | None = optional_prop(converter=flag, default=False, kw_only=True)


@row
class ClusterArriveOp(_BarrierOp):
    """`ptx.barrier.cluster.arrive relaxed aligned`: the thread arrives at the barrier of the cluster and does not wait
    there. Its earlier accesses happen before those after a wait; with `relaxed`, only what lies before a fence
    (PTX ISA, barrier.cluster).

    Precondition: the thread has waited since it arrived last.
    """

    name = "ptx.barrier.cluster.arrive"
    relaxed: UnitAttr | None = optional_prop(converter=flag, default=False)
    traits = traits_def(by_warp(arrives(Unit.CLUSTER_BARRIER)))
    assembly_format = "(`relaxed` $relaxed^)? (`aligned` $aligned^)? attr-dict"

    def mnemonic(self) -> str:
        relaxed, aligned = ("" if given is None else word for given, word in (
            (self.relaxed, ".relaxed"), (self.aligned, ".aligned")))  # fmt: skip
        return f"barrier.cluster.arrive{relaxed}{aligned}"


@row
class ClusterWaitOp(_BarrierOp):
    """`ptx.barrier.cluster.wait aligned`: waits until all threads of the cluster that have not ended have arrived at
    its barrier, and sees their earlier accesses (PTX ISA, barrier.cluster).

    Precondition: the thread has arrived.
    """

    name = "ptx.barrier.cluster.wait"
    traits = traits_def(by_warp(waits(Unit.CLUSTER_BARRIER)))
    assembly_format = "(`aligned` $aligned^)? attr-dict"

    def mnemonic(self) -> str:
        return f"barrier.cluster.wait{'' if self.aligned is None else '.aligned'}"


@row
class FenceMbarrierInitOp(_ClusterOp):
    """`ptx.fence.mbarrier_init`: the thread's `ptx.mbarrier.init` before it are before the uses of the mbarriers that a
    cluster barrier after it lets go on: those by other blocks and by copies (PTX ISA, membar: fence.mbarrier_init).
    """

    name = "ptx.fence.mbarrier_init"
    MNEMONIC: ClassVar[str | None] = "fence.mbarrier_init.release.cluster"
    SINCE: ClassVar = 90, 80
    traits = traits_def(by_thread(fences(Proxy.GENERIC, "mbarriers")))
    assembly_format = "attr-dict"
