# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MMA atoms whose fields say how they multiply: whether they add C, and which registers have scale factors."""

from enum import Enum
from typing import Any

from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects.tile import MmaAtomAttr
from ..scalars.dtypes import Boolean
from ..scalars.operators import Operand
from ..scalars.values import convert
from ..tracing.attributes import Stateful
from .tensors import Pointer, Tensor
from .umma import SCALES, adds_at_first


class RegisterScales:
    """The scale factors of A and B in registers, for the warp's next multiplications. Loops do not carry it, since
    the registers of an iteration belong to its tensors.
    """

    __slots__ = ("scales",)

    def __init__(self) -> None:
        self.scales: dict[str, Tensor] = {}

    def copy(self) -> "RegisterScales":
        """The same scale factors, which may change apart from these."""
        made = RegisterScales()
        made.scales.update(self.scales)
        return made

    def set(self, field: Enum, value: Tensor | Pointer) -> None:
        """Sets the scale factors of an operand: those of a tensor, or of the tensor that a pointer begins. Raises
        TilefoldError (E5002) for another field.
        """
        if field.value not in SCALES:
            message = f"an instruction with scales in registers has no field {field}"
            raise TilefoldError(Code.BUILD_VALUE, message, "it has Field.SFA and Field.SFB")
        self.scales[field.value] = value if isinstance(value, Tensor) else value.tensor

    def factors(self) -> list[SSAValue]:
        """The scale factors of A and B; none before they are set."""
        return [self.scales[name].ssa for name in SCALES if name in self.scales]


class ScaledAtom:
    """An MMA atom of a warp with scale factors: `set(Field.SFA, scales.iterator)` says which the following
    multiplications take.
    """

    __slots__ = ("atom", "op", "registers")

    def __init__(self, atom: MmaAtomAttr, op: object) -> None:
        self.atom, self.op, self.registers = atom, op, RegisterScales()

    def set(self, field: Enum, value: Operand) -> None:
        """Sets the scale factors of an operand; see `RegisterScales.set`."""
        self.registers.set(field, value)


class WarpgroupAtom(Stateful):
    """An MMA atom of a warpgroup or of tcgen05, whose field says whether multiplications add C, as that of a tiled MMA
    does.
    """

    __slots__ = ("accumulate", "atom", "op")

    def __init__(self, atom: MmaAtomAttr, op: object) -> None:
        self.atom, self.op = atom, op
        self.accumulate: Any = adds_at_first(atom)

    def set(self, field: Enum, value: Operand) -> None:
        """Sets `ACCUMULATE` for the following multiplications; see `TiledMma.set`."""
        self.accumulate = value if isinstance(value, bool) else convert(value, Boolean)
