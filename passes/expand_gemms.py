# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`expand-gemms`: the first pass from stage `folded` to stage `atoms`."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntAttr, ModuleOp, i1
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ..base.spaces import RMEM
from ..dialects.cute import CoordAttr, LayoutAttr
from ..dialects.ptx import SpaceAttr
from ..dialects.tile import AllocOp, CopyOp, Crd2IdxOp, GemmOp, InstructionOp, MmaCallOp, TensorType, ViewOp
from ..dialects.tile.custom import call_instruction
from ..dialects.tile.fragments import FRAGMENT_ALIGN
from ..dialects.tile.gemm import scale_types
from ..dialects.tile.gemm_rules import infer_gemm_modes
from ..dialects.tile.view_base import infer_shifted_type
from ..layout.algebra.core import ComposedLayout, Layout, LayoutLike, flat_modes, join, plain_layout, size
from ..layout.algebra.integers import Unknown
from ..layout.algebra.modes import append
from ..layout.algebra.product import make_fragment_like
from ..layout.atoms.contract import Act, Named, Role
from ..layout.atoms.instructions import Custom
from ..layout.tiling.copy_loops import with_outer
from .writing.emitter import Emitter, remark


@dataclass(frozen=True)
class ExpandGemmsPass(ModulePass):
    """Expands each matrix multiplication into executions of its atom, in loops over K, M and N.

    The order through M and N is serpentine, so that each execution shares an operand with the one before. The widths of
    A and B decide which of M and N is the outer loop, as in CuTe. Operands in shared memory are copied to a fragment
    for each K, unless the atom is a warpgroup's, which reads them there: it is executed for each M and N in turn, and
    from the second K on it accumulates.

    Before:

        tile.gemm #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN"> %A, %B, %C

    After:

        scf.for %k = %c0 to %c2 step %c1 {
          %Ak = tile.view %A at %ka : ...
          %Bk = tile.view %B at %kb : ...
          scf.for %n = %c0 to %c4 step %c1 {
            scf.for %i = %c0 to %c2 step %c1 {
              %m = arith.select %odd, %back, %i : index
              ...
              tile.mma_call #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN"> %c, %a, %b, %c
            } {unroll}
          } {unroll}
        } {unroll}
    """

    name = "expand-gemms"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for gemm in list(op.walk()):
            if isinstance(gemm, GemmOp):
                _Expansion(gemm).expand()


@dataclass(frozen=True, slots=True)
class _Operand:
    """A tensor, and its layout with the modes that its rank stands for."""

    tensor: SSAValue
    type: TensorType
    layout: LayoutLike

    def at(self, emitter: Emitter, coords: Sequence[SSAValue]) -> "_Operand":
        """The view of the first modes at a coordinate of the last ones; a single mode counts by its submodes."""
        inner, count = plain_layout(self.layout), len(self.layout) - len(coords)
        kept = inner[0] if count == 1 else join([inner[i] for i in range(count)])
        moving = [(at, mode) for at, mode in zip(coords, list(inner)[count:], strict=True) if _moves(mode)]
        offset, distance = None, 0
        if moving:
            modes = join([mode for _, mode in moving])
            where = (Unknown(),) * len(moving)
            offset = emitter.value(Crd2IdxOp(CoordAttr(where), [at for at, _ in moving], LayoutAttr(modes)))
            distance = modes(where)
        if isinstance(self.layout, ComposedLayout):
            type = self.type.with_layout(with_outer(self.layout, kept, distance))
        else:
            type = infer_shifted_type(self.type, kept, distance)
        tensor = (
            self.tensor if offset is None and type == self.type else emitter.value(ViewOp(self.tensor, offset, type))
        )
        return _Operand(tensor, type, type.layout.data)


def _moves(mode: Layout) -> bool:
    """Whether places of a mode are not all the same element."""
    return any(extent != 1 and step != 0 for extent, step in flat_modes(mode))


class _Expansion:
    """The expansion of one multiplication."""

    def __init__(self, op: GemmOp) -> None:
        self.op = op
        self.atom = op.mma_atom
        modes = infer_gemm_modes(self.atom, *op.types)
        d, a, b, c = op.types
        self.d, self.c = _Operand(op.d, d, modes.d), _Operand(op.c, c, modes.c)
        self.a, self.b = _Operand(op.a, a, modes.a), _Operand(op.b, b, modes.b)
        given = zip(op.scales, scale_types(op), strict=True)
        self.scales = [_Operand(value, type, append(type.layout.data, 3)) for value, type in given]

    def expand(self) -> None:
        emitter = Emitter(self.op)
        k = size(self.a.layout[2])
        if self.atom.atom.contract.operand(Role.D).act is Act.UPDATE:
            self._in_place(emitter)
        elif self.op.d is self.op.c or k == 1:
            self._products(emitter, _loop(emitter, k), self.c)
        else:  # the first product is added to C, the others to D
            self._products(emitter, emitter.index(0), self.c)
            emitter = Emitter(self.op)
            again = _loop(emitter, k - 1)
            one = emitter.index(1)
            self._products(emitter, emitter.value(arith.AddiOp(again, one)), self.d)
        emitter.replace()

    def _in_place(self, emitter: Emitter) -> None:
        """All products of an instruction that updates D and reads its operands where they are."""
        times_m, times_n, times_k = self._executions
        k, m, n = [_loop(emitter, times) for times in (times_k, times_m, times_n)]
        accumulate = self.op.accumulate
        if accumulate is not None and times_k > 1:
            later = emitter.value(arith.CmpiOp(k, emitter.index(0), "ne"))
            accumulate = emitter.value(arith.OrIOp(accumulate, later))
        a, b, c = self.a.at(emitter, [m, k]), self.b.at(emitter, [n, k]), self.c.at(emitter, [m, n])
        scales = [scale.at(emitter, [at, k]) for scale, at in zip(self.scales, (m, n), strict=False)]
        self._call(emitter, c, a, b, c, accumulate, scales)

    def _products(self, emitter: Emitter, k: SSAValue, c: _Operand) -> None:
        """All products of one K."""
        a = self._in_registers(emitter, self.a.at(emitter, [k]))
        b = self._in_registers(emitter, self.b.at(emitter, [k]))
        scales = [scale.at(emitter, [k]) for scale in self.scales]
        m, n = self._path(emitter)
        left, right, addend = a.at(emitter, [m]), b.at(emitter, [n]), c.at(emitter, [m, n])
        result = addend if c is self.d or self.op.d is self.op.c else self.d.at(emitter, [m, n])
        factors = [scale.at(emitter, [at]) for scale, at in zip(scales, (m, n), strict=False)]
        self._call(emitter, result, left, right, addend, scales=factors)

    def _call(
        self,
        emitter: Emitter,
        d: _Operand,
        a: _Operand,
        b: _Operand,
        c: _Operand,
        accumulate: SSAValue | None = None,
        scales: Sequence[_Operand] = (),
    ) -> None:
        """One execution of the atom."""
        of_scales = [scale.tensor for scale in scales]
        call = self._execution(emitter, (d.tensor, a.tensor, b.tensor, c.tensor), accumulate, of_scales)
        remark(call, self._remark())
        emitter.insert(call)

    def _execution(
        self,
        emitter: Emitter,
        matrices: tuple[SSAValue, SSAValue, SSAValue, SSAValue],
        accumulate: SSAValue | None,
        scales: Sequence[SSAValue],
    ) -> MmaCallOp | InstructionOp:
        contract, (d, a, b, c) = self.atom.atom.contract, matrices
        if not isinstance(contract.instruction, Custom):
            return MmaCallOp(self.atom, d, a, b, c, accumulate, scales)
        flag = emitter.constant(1, i1) if accumulate is None else accumulate
        return call_instruction(contract, {Role.D: d, Role.A: a, Role.B: b, Role.C: c, Role.ACCUMULATE: flag})

    @property
    def _executions(self) -> tuple[int, int, int]:
        """How often the atom is executed along M, N and K."""
        return size(self.c.layout[1]), size(self.c.layout[2]), size(self.a.layout[2])

    def _remark(self) -> str:
        """Counts and copies of the expanded multiplication."""
        m, n, k = self._executions
        shared = [name for name, x in (("A", self.a), ("B", self.b)) if x.type.space.data is not RMEM]
        read = all(self.atom.atom.operand(name).named is not Named.VALUE for name in shared)
        how = "read where they are" if read else "copied from shared memory for each K"
        copied = f"; {' and '.join(shared)} {how}" if shared else ""
        return f"{self.atom.atom.name}: {m} x {n} x {k} executions along M, N and K{copied}"

    def _in_registers(self, emitter: Emitter, operand: _Operand) -> _Operand:
        """An operand of one K; where it is in shared memory, a copy of it in a fragment."""
        type = operand.type
        if type.space.data is RMEM:
            return operand
        layout = make_fragment_like(operand.layout)
        fragment = TensorType(type.element_type, SpaceAttr(RMEM), IntAttr(FRAGMENT_ALIGN), LayoutAttr(layout))
        copy = emitter.value(AllocOp(fragment))
        emitter.insert(CopyOp(operand.tensor, copy))
        return _Operand(copy, fragment, layout)

    def _path(self, emitter: Emitter) -> tuple[SSAValue, SSAValue]:
        """Opens the loops over M and N; where the present execution is."""
        m, n = size(self.c.layout[1]), size(self.c.layout[2])
        bits = [size(x.layout[0]) * x.type.element_bits for x in (self.a, self.b)]
        if bits in ([64, 64], [64, 32]):
            outer = _loop(emitter, m)
            return outer, _open_serpentine_loop(emitter, outer, m, n)
        if bits == [32, 32] and m % 2 == 0:  # two rows of M at a time
            outer = _loop(emitter, m // 2)
            column = _open_serpentine_loop(emitter, outer, m // 2, n)
            first = emitter.value(arith.MuliOp(outer, emitter.index(2)))
            return emitter.value(arith.AddiOp(first, emitter.loop(2))), column
        outer = _loop(emitter, n)
        return _open_serpentine_loop(emitter, outer, n, m), outer


def _loop(emitter: Emitter, extent: int) -> SSAValue:
    """Opens a loop, unless there is nothing to repeat; its place."""
    return emitter.loop(extent) if extent > 1 else emitter.index(0)


def _open_serpentine_loop(emitter: Emitter, outer: SSAValue, times: int, extent: int) -> SSAValue:
    """Opens a loop that runs back where `outer`, of `times` values, is odd; its place."""
    if times == 1 or extent == 1:
        return _loop(emitter, extent)
    one, last = emitter.index(1), emitter.index(extent - 1)
    odd = emitter.value(arith.CmpiOp(emitter.value(arith.AndIOp(outer, one)), one, "eq"))
    inner = emitter.loop(extent)
    back = emitter.value(arith.SubiOp(last, inner))
    return emitter.value(arith.SelectOp(odd, back, inner))
