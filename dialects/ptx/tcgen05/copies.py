# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads from tensor memory to registers and stores, and copies from shared memory (PTX ISA, Tensor Memory and Register
Load/Store Instructions, and Data Movement Instructions).

A warp reaches the 32 lanes from 32 * (its number % 4) on.
"""

from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr, VectorType, f32, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def

from ....base.target import Targets
from ....layout.atoms.tcgen05_shapes import COPY_SHAPES, UNPACKED, AccessShape, shape_named
from ...definitions import irdl_op_definition, operand, optional_prop, prop, row, some_text, text
from ..effects import Group, Proxy, Via, by_thread, by_warp, issued, reads, writes
from .base import REDUCING, SINGLE, TENSOR, GroupOp, Tcgen05Op, refuse_form

SHIFTED = 128 * 32
"""The bytes that a shift of all lanes moves: 32 of each."""


class _AccessOp(Tcgen05Op):
    """A load or a store of `num` units of a shape."""

    shape = prop_def(StringAttr)
    num = prop_def(IntegerAttr[I64])
    offset = opt_prop_def(IntegerAttr[I64])

    @property
    def packs(self) -> bool:
        """Whether registers have the lower halves of two cells."""
        return False

    @property
    def form(self) -> AccessShape:
        """The shape. KeyError for a name that the verifier refuses."""
        return shape_named(self.shape.data)

    @property
    def count(self) -> int:
        """The units."""
        return self.num.value.data

    @property
    def registers(self) -> int:
        """The 32-bit registers of each lane."""
        return self.count * self.form.registers

    @property
    def moved(self) -> int:
        """The bytes that the warp moves."""
        return 4 * 32 * self.registers

    @property
    def distance(self) -> int:
        """The columns between the halves of the warp, for the shape that has them."""
        return 0 if self.offset is None else self.offset.value.data

    def spelled(self, verb: str, packing: str) -> str:
        """The instruction with its modifiers."""
        pack = f".{packing}::16b" if self.packs else ""
        return f"tcgen05.{verb}.sync.aligned.{self.shape.data}.x{self.count}{pack}.b32"

    def check(self, type: Attribute) -> None:
        """Checks the form, and the type of the registers."""
        known = [shape.name for shape in map(shape_named, ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"))]
        if self.shape.data not in known:
            refuse_form(f'tensor memory is accessed by {", ".join(known)}, not by "{self.shape.data}"')
        most = self.form.most
        if not 1 <= self.count <= most or self.count & (self.count - 1):
            refuse_form(f"{self.shape.data} is executed 1 to {most} times, a power of two, not {self.count}")
        if (self.offset is not None) != self.form.has_offset:
            refuse_form(f"{self.shape.data} has {'an' if self.form.has_offset else 'no'} offset of columns")
        if type != VectorType(i32, [self.registers]):
            refuse_form(
                f"the registers of {self.shape.data}.x{self.count} are vector<{self.registers}xi32>, not {type}"
            )


def _given(shape: str, num: int, offset: int | None) -> dict[str, Attribute | None]:
    return {
        "shape": StringAttr(shape),
        "num": IntegerAttr(num, i64),
        "offset": None if offset is None else IntegerAttr(offset, i64),
    }


@irdl_op_definition
class TensorLoadRegistersOp(_AccessOp):
    """`%r = ptx.tcgen05.ld "32x32b" x 8 %address : vector<8xi32>`: loads cells of tensor memory to registers (PTX ISA,
    tcgen05.ld).

    In the shape 32x32b register j of lane t is column j of lane t behind the address. The shapes 16x64b, 16x128b and
    16x256b are those of matrix fragments on 16 lanes; `offset` is the distance of the columns of lanes 16 to 31 with
    16x32bx2. `pack` puts the lower halves of two neighbouring columns into a register.

    Preconditions: all lanes of the warp execute it, with one address, in the lanes that the warp reaches.
    Postcondition: the registers can be used; others may change the cells only after `ptx.tcgen05.wait "ld"`.
    """

    name = "ptx.tcgen05.ld"
    packed = opt_prop_def(UnitAttr)
    address = operand_def(TENSOR)
    result = result_def(VectorType)
    traits = traits_def(by_warp(*issued(Group.TENSOR_ACCESSES, Proxy.TENSOR, reads("address", "moved"))))
    assembly_format = "$shape `x` $num (`pack` $packed^)? $address (`offset` $offset^)? attr-dict `:` type($result)"

    def __init__(
        self, shape: str, num: int, address: SSAValue | Operation, *, packed: bool = False, offset: int | None = None
    ):
        registers = num * shape_named(shape).registers
        super().__init__(
            operands=[address],
            properties=_given(shape, num, offset) | {"packed": UnitAttr() if packed else None},
            result_types=[VectorType(i32, [registers])],
        )

    @property
    def packs(self) -> bool:
        return self.packed is not None

    def mnemonic(self) -> str:
        return self.spelled("ld", "pack")

    def verify_(self) -> None:
        self.check(self.result.type)


@irdl_op_definition
class TensorStoreRegistersOp(_AccessOp):
    """`ptx.tcgen05.st "32x32b" x 8 %r, %address : vector<8xi32>`: stores registers to cells of tensor memory (PTX ISA,
    tcgen05.st). Shapes are those of `ptx.tcgen05.ld`; `unpack` puts the halves of a register into the lower halves of
    two neighbouring columns, whose upper halves are undefined then.

    Preconditions: those of the load. Postcondition: until `ptx.tcgen05.wait "st"` nobody uses the cells.
    """

    name = "ptx.tcgen05.st"
    packed = opt_prop_def(UnitAttr)
    value = operand_def(VectorType)
    address = operand_def(TENSOR)
    traits = traits_def(by_warp(*issued(Group.TENSOR_ACCESSES, Proxy.TENSOR, writes("address", "moved"))))
    assembly_format = (
        "$shape `x` $num (`unpack` $packed^)? $value `,` $address (`offset` $offset^)? attr-dict `:` type($value)"
    )

    def __init__(
        self,
        shape: str,
        num: int,
        value: SSAValue | Operation,
        address: SSAValue | Operation,
        *,
        packed: bool = False,
        offset: int | None = None,
    ):
        super().__init__(
            operands=[value, address],
            properties=_given(shape, num, offset) | {"packed": UnitAttr() if packed else None},
        )

    @property
    def packs(self) -> bool:
        return self.packed is not None

    def mnemonic(self) -> str:
        return self.spelled("st", "unpack")

    def verify_(self) -> None:
        self.check(self.value.type)


@irdl_op_definition
class TensorLoadReducedOp(_AccessOp):
    """`%r, %m = ptx.tcgen05.ld.red "32x32b" x 8 "max.f32" %address : vector<8xi32>, f32`: loads as `ptx.tcgen05.ld`,
    and reduces the registers of each lane to one value (PTX ISA, tcgen05.ld.red): by min or max of f32, also `.abs` and
    `.NaN` (`max.abs.NaN.f32`), of u32 or s32.

    Preconditions and postcondition: those of the load.
    """

    name = "ptx.tcgen05.ld.red"
    TARGETS: ClassVar[Targets | None] = REDUCING
    kind = prop_def(StringAttr)
    address = operand_def(TENSOR)
    result = result_def(VectorType)
    reduced = result_def()
    traits = traits_def(by_warp(*issued(Group.TENSOR_ACCESSES, Proxy.TENSOR, reads("address", "moved"))))
    assembly_format = (
        "$shape `x` $num $kind $address (`offset` $offset^)? attr-dict `:` type($result) `,` type($reduced)"
    )
    KINDS: ClassVar[tuple[str, ...]] = (
        *[f"{act}{more}.f32" for act in ("min", "max") for more in ("", ".abs", ".NaN", ".abs.NaN")],
        *[f"{act}.{type}" for act in ("min", "max") for type in ("u32", "s32")],
    )

    def __init__(self, shape: str, num: int, kind: str, address: SSAValue | Operation, offset: int | None = None):
        registers = num * shape_named(shape).registers
        super().__init__(
            operands=[address],
            properties={**_given(shape, num, offset), "kind": StringAttr(kind)},
            result_types=[VectorType(i32, [registers]), f32 if kind.endswith("f32") else i32],
        )

    def mnemonic(self) -> str:
        act, *more, type = self.kind.data.split(".")
        words = ".".join((act, *more, type))
        return f"tcgen05.ld.red.sync.aligned.{self.shape.data}.x{self.count}.{words}"

    def verify_(self) -> None:
        self.check(self.result.type)
        if self.shape.data not in ("32x32b", "16x32bx2") or self.count < 2:
            refuse_form("tcgen05.ld.red loads 32x32b or 16x32bx2, of 2 units or more")
        if self.kind.data not in self.KINDS:
            refuse_form(f'tcgen05.ld.red has {", ".join(self.KINDS)}; not "{self.kind.data}"')
        wanted = f32 if self.kind.data.endswith("f32") else i32
        if self.reduced.type != wanted:
            refuse_form(f"{self.kind.data} gives {wanted}, not {self.reduced.type}")


@row
class TmaCopySharedOp(GroupOp):
    """`ptx.tcgen05.cp "32x128b.warpx4" cta_group 1 %address, %matrix`: starts a copy of a matrix in shared memory, of
    this descriptor, to tensor memory (PTX ISA, tcgen05.cp). Rows become lanes; `unpack` ("b4x16_p64" or
    "b6x16_p32") puts elements of 4 or 6 bits into bytes.

    Preconditions: one thread executes it, in a pair a thread of one block. Postcondition: a `ptx.tcgen05.mma` of the
    same pipe sees it; others after a `ptx.tcgen05.commit`.
    """

    name = "ptx.tcgen05.cp"
    shape: StringAttr = prop(converter=text)
    address: SSAValue = operand(TENSOR)
    matrix: SSAValue = operand(I64)
    unpack: StringAttr | None = optional_prop(converter=some_text, default=None)
    traits = traits_def(
        by_thread(
            *issued(
                Group.TENSOR_CORE,
                Proxy.TENSOR,
                reads("matrix", "source_bytes", Via.DESCRIPTOR),
                writes("address", "copied"),
            )
        )
    )
    assembly_format = "$shape `cta_group` $group (`unpack` $unpack^)? $address `,` $matrix attr-dict"

    @property
    def source_bytes(self) -> int:
        """The bytes of the matrix in each block."""
        return COPY_SHAPES[self.shape.data].bytes

    @property
    def copied(self) -> int:
        """The bytes that are written in each block."""
        shape = COPY_SHAPES[self.shape.data]
        return shape.bytes * shape.copies

    def mnemonic(self) -> str:
        unpack = "" if self.unpack is None else f".b8x16.{self.unpack.data}"
        return f"tcgen05.cp.{self.suffix}.{self.shape.data}{unpack}"

    def verify_(self) -> None:
        super().verify_()
        if self.shape.data not in COPY_SHAPES:
            refuse_form(f'tcgen05.cp has {", ".join(COPY_SHAPES)}; not "{self.shape.data}"')
        if self.unpack is not None and self.unpack.data not in UNPACKED:
            refuse_form(f'tcgen05.cp unpacks {", ".join(UNPACKED)}; not "{self.unpack.data}"')


@row
class TensorShiftOp(GroupOp):
    """`ptx.tcgen05.shift cta_group 1 %address`: starts to move the rows of tensor memory from an address on one lane
    down: each lane gets the values of the next one, and the last keeps its own (PTX ISA, tcgen05.shift).

    Preconditions: those of `ptx.tcgen05.cp`; the lane of the address is a multiple of 32.
    """

    name = "ptx.tcgen05.shift"
    TARGETS: ClassVar[Targets | None] = SINGLE
    address: SSAValue = operand(TENSOR)
    traits = traits_def(
        by_thread(*issued(Group.TENSOR_CORE, Proxy.TENSOR, reads("address", SHIFTED), writes("address", SHIFTED)))
    )
    assembly_format = "`cta_group` $group $address attr-dict"

    def mnemonic(self) -> str:
        return f"tcgen05.shift.{self.suffix}.down"
