# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for instructions of warpgroups (PTX ISA, Asynchronous warpgroup-level matrix instructions; setmaxnreg)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation

from ....base.errors import Code
from ....base.target import WARP, WARPGROUP
from ....dialects import ptx
from ....dialects.arith.integer_range import wrap_signed
from ....dialects.kernel import kernel_of
from ....dialects.ptx.tcgen05.base import TensorDescriptorOp
from ....layout.atoms.contract import Named
from ....layout.atoms.mma_atom import MmaAtom
from ....layout.atoms.mma_sync import registers
from ....layout.atoms.summation import summation
from ...engine import NumPyArray
from ..atoms.sparse import Metadata
from ..atoms.wgmma import WgmmaArithmetic
from ..events import Step, Suspending, Suspension, Until
from ..faults import site_of
from ..memory import bulk
from ..memory.arena import IN_FLIGHT, UNWRITTEN
from ..memory.boxes import swizzle_text
from ..memory.local import TOUCHED
from ..memory.matrices import ROW, Matrix, descriptor_at, matrix_of, offsets_of
from ..memory.space_state import count_matrix
from ..ordering import wgmma
from ..ordering.asynchronous import InFlight
from ..ordering.knowledge import executed
from ..ordering.warpgroups import Change, Warpgroup, Warpgroups, pool_of, warpgroup_of, warps_around
from ..ordering.wgmma import InFlightWgmma, WgmmaCall, WgmmaShare, shares_of
from ..translate import Rules, Translator
from ..values import Value, varies
from ..warp import Warp

_FENCE = "execute ptx.wgmma.fence between the access of the registers and the multiplication"


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of a warp: the descriptors of the operands in shared memory by their names, the address of its
    accumulators, that of its registers of A, if they are there, whether it accumulates, and the metadata of a sparse A.
    """

    descriptors: Mapping[str, Value]
    d: Value
    a: Value | None
    accumulates: Value
    metadata: Value = 0


class WgmmaRule:
    """The multiplications by one operation of the program, whose atom has A and B of these signs."""

    def __init__(
        self, op: Operation, atom: MmaAtom, signs: tuple[int, int], t: Translator, select: int | None = None
    ) -> None:
        self.site, self.shared, self.local = site_of(op), t.spaces.shared, t.spaces.local
        self.local.has_warpgroups = True
        how = None if t.launch.tensor_cores is None else summation(atom, t.launch.tensor_cores)
        self.metadata = None if select is None else Metadata(atom, select)
        self.product = WgmmaArithmetic(atom, signs, t.launch.exact, how, self.metadata)
        self.access = t.access(op, self.shared.row, "matrix", ROW)
        self.bytes_d = 4 * registers(atom, "D").count
        self.bytes_a = 0 if atom.operand("A").named is Named.DESCRIPTOR else 4 * registers(atom, "A").count

    def start(self, warp: Warp, given: Operands) -> None:
        """Executes one multiplication for a warp."""
        group = warpgroup_of(warp, self.site)
        values = {name: self._same(warp, x, f"descriptors of {name}") for name, x in given.descriptors.items()}
        accumulates = bool(self._same(warp, given.accumulates, "values of scale_d"))
        kind = WgmmaCall(self.product, tuple(values.values()), accumulates, warp.state(InFlight).committed)
        whole = self._joined(warp, group, kind, values)
        for name, (matrix, rows) in whole.matrices.items():
            whole.missing[name] = bulk.check_read(self.shared, warp, self.access, 0, rows)
            self._check_swizzle(warp, name, matrix, rows)
        part = self._part(warp, whole, given)
        whole.parts.append(part)
        warp.state(InFlight).multiplications.append(part)
        warp.block.cluster.reads_late = True

    def _joined(self, warp: Warp, group: Warpgroup, kind: WgmmaCall, values: dict[str, int]) -> InFlightWgmma:
        """The multiplication that the warp takes part in. A fault where the warps do not agree on it."""
        made = InFlightWgmma(self.site, kind, group, self.shared, {})
        whole = group.multiplications.join(warp, made)
        assert isinstance(whole, InFlightWgmma)
        if whole is made:
            for name, value in values.items():
                matrix = matrix_of(self.product.atom, name, value)
                made.matrices[name] = matrix, self._rows(warp, name, value, matrix)
        elif whole.kind != kind:
            other = whole.parts[0].warp.index
            text = f"warp {warp.index} starts {kind}, where warp {other} of its warpgroup starts {whole.kind}"
            warp.fault(Code.SIM_CONVERGENCE, self.site, None, text, "let all four warps execute the same")
        return whole

    def _rows(self, warp: Warp, name: str, descriptor: int, matrix: Matrix) -> NumPyArray:
        """The rows of shared memory that hold a matrix; they are counted. A fault for an invalid descriptor."""
        subject = f"the descriptor {descriptor & (1 << 64) - 1:#018x} of {name} of {self.product.atom.name}"
        if matrix.problem:
            hint = "make it by ptx.wgmma.descriptor from an address that is aligned to the pattern of the swizzle"
            warp.fault(Code.SIM_DESCRIPTOR, self.site, 0, f"{subject}: {matrix.problem}", hint)
        space = self.shared
        offsets, where = offsets_of(space, matrix.addresses)
        if where is not None:
            text = f"{subject} leads to {where}, outside the block's shared memory"
            hint = "check its address, its strides, and the major of the atom"
            warp.fault(Code.SIM_DESCRIPTOR, self.site, 0, text, hint)
        count_matrix(self.access, matrix.core_matrices.ravel(), ROW)
        return (offsets + warp.block.rank * space.arena.span) // ROW

    def _check_swizzle(self, warp: Warp, name: str, matrix: Matrix, rows: NumPyArray) -> None:
        """A fault for a matrix that a TMA copy has written by another swizzle."""
        space = self.shared
        written_by = space.swizzles[rows]
        wrong = (written_by != 0) & (written_by != 1 + matrix.swizzle)
        if space.shadow is None or not wrong.any():
            return
        wrong &= space.shadow.by_async(rows, ROW)
        if wrong.any():
            at = int(wrong.argmax())
            where, written = space.show_row(int(rows[at]), ROW), swizzle_text(int(written_by[at]) - 1)
            own = swizzle_text(matrix.swizzle)
            text = f"reads {where} of {name} by {own}, where a TMA copy has written by {written}"
            hint = "let the tensor map and the descriptor have the swizzle of the tile's layout"
            warp.fault(Code.SIM_DESCRIPTOR, self.site, 0, text, hint)

    def _part(self, warp: Warp, whole: InFlightWgmma, given: Operands) -> WgmmaShare:
        """The registers of a warp, which are in flight from now on. A fault for such that may not be used."""
        local, site = self.local, self.site
        d = self._same(warp, given.d, "addresses of accumulators"), self.bytes_d
        before = self._before(warp, d)
        accumulators = local.words(warp, site, *d)
        if before is None:
            self._check_fenced(warp, "accumulators", d[0], accumulators.touched)
            if whole.kind.accumulates:
                self._define(warp, d[0], accumulators.state, accumulators.data)
        a, words_a = None, accumulators.data[:, :0]
        if given.a is not None:
            a = self._same(warp, given.a, "addresses of registers of A"), self.bytes_a
            words = local.words(warp, site, *a)
            if (words.state == IN_FLIGHT).any():
                other = next(part for part in shares_of(warp) if _overlap(part.d, a))
                text = f"multiplies registers of A that {other.describe(0)} is still writing"
                warp.fault(Code.SIM_IN_FLIGHT, site, 0, text, other.cure)
            self._check_fenced(warp, "registers of A", a[0], words.touched)
            self._define(warp, a[0], words.state, words.data)
            words_a = words.data.copy()
        pending = before if whole.kind.accumulates else None
        now = None if self.shared.shadow is None else executed(warp, warp.lane_numbers())
        part = WgmmaShare(whole, warp, local, d, a, accumulators.data.copy(), words_a, pending, now)
        if self.metadata is not None:
            part.metadata = np.broadcast_to(np.asarray(given.metadata), (WARP,)).astype(np.uint32)
            self.metadata.check(warp, site, part.metadata, warp.index % (WARPGROUP // WARP) * WARP)
        accumulators.state[:] = IN_FLIGHT
        warp.defined.clear()
        return part

    def _before(self, warp: Warp, d: tuple[int, int]) -> InFlightWgmma | None:
        """The multiplication in flight that accumulates in the same registers, in the same shape. A fault where one
        uses them otherwise.
        """
        before = None
        for part in shares_of(warp):
            if part.a is not None and _overlap(part.a, d):
                text = f"accumulates in registers of A of {part.describe(0)} while that runs"
                warp.fault(Code.SIM_IN_FLIGHT, self.site, 0, text, part.cure)
            if not _overlap(part.d, d):
                continue
            product = part.whole.kind.product
            if part.d != d or product.atom.shape != self.product.atom.shape:
                text = f"accumulates in registers that {part.describe(0)}, of another shape, is still writing"
                warp.fault(Code.SIM_IN_FLIGHT, self.site, 0, text, part.cure)
            before = part.whole
        return before

    def _check_fenced(self, warp: Warp, subject: str, address: int, touched: NumPyArray) -> None:
        """A fault for registers that were used since the last fence otherwise than as accumulators of the shape."""
        used = touched if subject != "accumulators" else touched * (touched != self.product.shape_number)
        if used.any():
            lane, byte = np.argwhere(used)[0].tolist()
            who = (
                "the thread has used"
                if used[lane, byte] == TOUCHED
                else "a multiplication of another shape has changed"
            )
            text = f"multiplies with {subject}, {self.local.frame.describe(address + byte)}, that {who}"
            text += " since the last ptx.wgmma.fence"
            warp.fault(Code.SIM_WGMMA_FENCE, self.site, lane, text, _FENCE)

    def _define(self, warp: Warp, address: int, state: NumPyArray, data: NumPyArray) -> None:
        """Reads registers, which must be defined."""
        missing = state == UNWRITTEN
        if missing.any():
            lane, byte = np.argwhere(missing)[0].tolist()
            data[missing] = warp.undefined(self.site, lane, self.local.frame.describe(address + byte))

    def _same(self, warp: Warp, value: Value, subject: str) -> int:
        """A value that all lanes have in common. A fault where they do not."""
        if not varies(value):
            return int(value)
        warp.note(self.site, "multiplies by", value)
        if (value != value[0]).any():
            lane = int((value != value[0]).argmax())
            text = f"the lanes of a warp pass different {subject}: {value[0]} and {value[lane]}"
            hint = "compute them from values that are the same in all lanes, such as the number of the warp"
            warp.fault(Code.SIM_CONVERGENCE, self.site, lane, text, hint)
        return int(value[0])


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether registers, by address and size, overlap."""
    return a[0] < sum(b) and b[0] < sum(a)


def _mma_async(op: ptx.WgmmaMmaAsyncOp, t: Translator) -> Step:
    multiply = WgmmaRule(op, op.atom, op.signs, t, None if op.select is None else op.select.value.data)
    word = None if op.metadata is None else t.slot(op.metadata)
    in_shared = op.described
    slots = {name: t.slot(value) for name, value in in_shared.items()}
    d, a, scale_d = t.slot(op.d), None if "A" in in_shared else t.slot(op.a), t.slot(op.scale_d)

    def step(warp: Warp) -> None:
        held = warp.registers
        descriptors = {name: held[slot] for name, slot in slots.items()}
        more = 0 if word is None else held[word]
        multiply.start(warp, Operands(descriptors, held[d], None if a is None else held[a], held[scale_d], more))

    return step


def _fence(op: ptx.WgmmaFenceOp, t: Translator) -> Step:
    site, local = site_of(op), t.spaces.local
    local.has_warpgroups = True

    def step(warp: Warp) -> None:
        warpgroup_of(warp, site)
        local.fence(warp)

    return step


def _commit_group(op: ptx.WgmmaCommitGroupOp, t: Translator) -> Step:
    site = site_of(op)
    return lambda warp: wgmma.commit(warp, site)


def _wait_group(op: ptx.WgmmaWaitGroupOp, t: Translator) -> Suspending:
    site, running = site_of(op), op.n.value.data
    return Suspending(lambda warp: wgmma.wait(warp, site, running))


def _setmaxnreg(op: ptx.SetMaxNRegOp, t: Translator) -> Suspending:
    site, number, grows = site_of(op), op.n.value.data, op.inc is not None
    kernel = kernel_of(op)
    assert kernel is not None, "an instruction is in a kernel"
    greatest = max(each.n.value.data for each in kernel.walk() if isinstance(each, ptx.SetMaxNRegOp))
    bounds, hint = kernel.launch_bounds, "let other warpgroups return registers, by dec, or ask for fewer"

    def run(warp: Warp) -> Suspension:
        group, block = warps_around(warp, site), warp.block
        warpgroups = block.state(Warpgroups)
        pool = warpgroups.registers = warpgroups.registers or pool_of(block, bounds, greatest)
        requested = group.changes.join(warp, Change(number, grows, site)).number
        if requested != number:
            text = (
                f"warp {warp.index} asks for {number} registers a thread, another warp of its warpgroup for {requested}"
            )
            cure = "let all warps of the warpgroup execute the same setmaxnreg"
            warp.fault(Code.SIM_REGISTERS, site, None, text, cure)
        before = pool.held[warp]
        if (number < before) if grows else (number > before):
            text = f"setmaxnreg {'inc' if grows else 'dec'} to {number} registers a thread, where it has {before}"
            warp.fault(Code.SIM_REGISTERS, site, None, text, f"write {'dec' if grows else 'inc'}")

        def describe() -> tuple[str, str]:
            lacks = f"the block lacks {pool.missing(warp, number)}"
            return f"{number} registers a thread", f"for which {lacks}: {pool.describe()}"

        while pool.missing(warp, number):  # several may be woken, and the first takes the free ones
            yield Until(lambda: not pool.missing(warp, number), site, describe, Code.SIM_REGISTERS, hint)
        pool.change(warp, number)

    return Suspending(run)


def matrix_descriptor(op: ptx.WgmmaDescriptorOp | TensorDescriptorOp, t: Translator) -> Step:
    """The rule for a matrix descriptor of an address, of wgmma or of tcgen05."""
    pointer, result, site = t.slot(op.ptr), t.slot(op.result), site_of(op)
    fields = wrap_signed(op.fields.value, 64)

    def step(warp: Warp) -> None:
        warp.registers[result] = descriptor_at(warp, site, warp.registers[pointer], fields)

    return step


PTX_WGMMA: Rules = {
    ptx.WgmmaDescriptorOp: matrix_descriptor,
    ptx.WgmmaMmaAsyncOp: _mma_async,
    ptx.WgmmaFenceOp: _fence,
    ptx.WgmmaCommitGroupOp: _commit_group,
    ptx.WgmmaWaitGroupOp: _wait_group,
    ptx.SetMaxNRegOp: _setmaxnreg,
}
