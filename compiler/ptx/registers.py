# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values of registers while a function becomes operations, in the types in which instructions read them."""

import struct
from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from xdsl.dialects import arith, ub, vector
from xdsl.dialects.builtin import (
    FileLineColLoc,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    VectorType,
    i1,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...base.errors import Code
from ...dialects import ptx
from ...dialects.arith.integer_range import wrap_signed
from ...dialects.ptx.base import (
    GLOBAL,
    SHARED,
    PtrType,
    TensorMapType,
    float_bits,
    integer_bits,
    split_vector,
    value_bytes,
)
from ...dialects.ptx.inline import REGISTER_TEXTS
from ...dialects.ptx.tcgen05.base import TENSOR
from .inference import FLOAT_TYPES
from .syntax import TYPE_BITS, Float, Instruction, Integer, Not, Operand, Place, PtxError, Register, Symbol, Vector
from .variables import GRID_WORKSPACE, RESERVED_SHARED

OpT = TypeVar("OpT", bound=Operation)


def type_of(name: str) -> Attribute:
    """The type in which operations have a type of PTX: `s32` and `b32` are i32, `f16x2` is a vector."""
    if name in FLOAT_TYPES:
        return FLOAT_TYPES[name]
    if name in ("f16x2", "bf16x2", "f32x2"):
        return VectorType(FLOAT_TYPES[name[:-2]], [2])
    if name in ("u16x2", "s16x2"):
        return VectorType(i16, [2])
    if name == "b128":
        return VectorType(i64, [2])
    return i1 if name == "pred" else IntegerType(TYPE_BITS[name])


def bits_of(type: Attribute) -> int:
    """The bits of a register that holds a value."""
    if isinstance(type, PtrType):
        return 32 if type in (SHARED, TENSOR) else 64
    if isinstance(type, TensorMapType):
        return 64
    if (bits := integer_bits(type) or float_bits(type)) is not None:
        return bits
    return 8 * (value_bytes(type) or 0)


def _is_vector(type: Attribute) -> bool:
    return isinstance(type, VectorType)


class Registers:
    """The block that operations are appended to, and the value of each register there."""

    def __init__(self, entry: Block, file: str, types: Mapping[str, str], floats: Mapping[str, Attribute]) -> None:
        """`types` are those that registers are declared with, `floats` those of registers that hold floats."""
        self.entry, self.block, self.file = entry, entry, file
        self.types, self.floats = types, floats
        self.values: dict[str, SSAValue] = {}
        self.location: LocationAttr | None = None
        self.instruction: Instruction | None = None
        self.sources: dict[Operation, Instruction] = {}
        """The instructions that operations come from."""
        self.symbols: dict[str, SSAValue] = {}
        """The addresses of variables, and of parameters that are tensor maps."""
        self.parameters: dict[str, SSAValue] = {}
        """The values of parameters."""
        self.structures: dict[str, SSAValue] = {}
        """The addresses of parameters that are structures."""
        self.contents: dict[str, bytes] = {}
        """The bytes of variables in constant and global memory."""
        self.has_local = False
        """Whether a variable is in local memory, so that a generic address may be one of it."""
        self.shared_bytes = 0
        """The bytes of shared memory of a block."""
        self.constants: set[str] = set()
        """Those in constant memory."""
        self.passed: dict[str, SSAValue] = {}
        """The addresses of those that the launch passes."""
        self.texts: dict[str, str] = {}
        """The names of these variables, and the registers that hold their addresses: the name of the variable."""
        self.arguments: dict[str, Operand] = {}
        """The parameters of the call that follows."""
        self.stored: dict[tuple[SSAValue, int], str] = {}
        """Addresses of variables that are in memory: the variable, by the address of its place and a distance."""
        self.results: dict[str, SSAValue] = {}
        """The results of calls of the device's functions, by their parameters."""
        self.read_names: set[str] = set()
        """The registers that some instruction reads."""
        self.homes: Mapping[str, tuple[Vector, int]] = {}
        """The registers of operands that are memory of the thread, with their places there."""
        self.fragments: dict[Vector, SSAValue] = {}
        """The addresses of these operands."""
        self._constants: dict[tuple[object, Attribute], SSAValue] = {}
        self._made: list[Operation] = []
        self._converted: dict[tuple[SSAValue, Attribute], SSAValue] = {}
        self._sums: dict[tuple[SSAValue, int], SSAValue] = {}

    def enter(self, block: Block) -> None:
        """Appends to another block from now on."""
        self.block = block
        self._converted, self._sums = {}, {}

    def add(self, op: OpT) -> OpT:
        """Appends an operation, with the place of the instruction."""
        if self.location is not None and self.instruction is not None:
            op.location = self.location
            self.sources[op] = self.instruction
        self.block.add_op(op)
        return op

    def emit(self, op: Operation) -> SSAValue:
        """Appends an operation with one result; the result."""
        return self.add(op).results[0]

    def refuse(self, problem: str, hint: str = "") -> PtxError:
        """The error (E1009) of the present instruction, at its line of the source if that is known."""
        assert self.instruction is not None
        place, file, at = self.instruction.place, self.file, self.location
        if isinstance(at, FileLineColLoc):
            place, file = Place(at.line.data, at.column.data), at.filename.data
        return PtxError(Code.PTX_UNSUPPORTED, f"{self.instruction.name}: {problem}", place, hint, file)

    def constant(self, value: int | float, type: Attribute) -> SSAValue:
        """A constant, which stands at the beginning of the kernel."""
        bits = integer_bits(type)
        if bits is not None:
            value = int(bool(value)) if bits == 1 else wrap_signed(int(value), bits)
        key = (repr(value), type)
        if key not in self._constants:
            if bits is not None:
                op = arith.ConstantOp(IntegerAttr(int(value), bits))
            else:
                op = arith.ConstantOp(FloatAttr(float(value), cast("Float32Type", type)))
            self._made.append(op)
            self._constants[key] = op.result
        return self._constants[key]

    def finish(self) -> None:
        """Puts the constants where they are visible everywhere."""
        first = self.entry.first_op
        if self._made and first is not None:
            self.entry.insert_ops_before(self._made, first)

    def read(self, operand: Operand, type: Attribute) -> SSAValue:
        """The value of an operand, in a type. PtxError (E1009) for an operand that has none here."""
        match operand:
            case Register(name):
                return self.convert(self.register(name), type)
            case Not(register):
                return self.emit(arith.XOrIOp(self.read(register, i1), self.constant(1, i1)))
            case Integer(value):
                return self._number(value, type)
            case Float(value, bits):
                if float_bits(type) is not None:
                    return self.constant(value, type)
                raw = struct.pack("<f" if bits == 32 else "<d", value)
                return self.convert(self.constant(int.from_bytes(raw, "little"), IntegerType(bits)), type)
            case Symbol("WARP_SZ"):
                return self.constant(32, type)
            case Symbol(name, offset) if name in self.symbols:
                return self.convert(self.shifted(self.symbols[name], offset), type)
            case Symbol(name, offset) if name in self.contents:
                return self.convert(self.shifted(self.memory_of(name), offset), type)
            case _:
                raise self.refuse(f"the operand {operand} has no value that is supported here")

    def _number(self, value: int, type: Attribute) -> SSAValue:
        if integer_bits(type) is not None:
            return self.constant(value, type)
        return self.convert(self.constant(value, IntegerType(bits_of(type))), type)

    def raw(self, operand: Operand, bits: int) -> SSAValue:
        """The value of an operand in the type that it has, if that has this number of bits; else as an integer."""
        if isinstance(operand, Register):
            value = self.register(operand.name)
            if bits_of(value.type) == bits and not isinstance(value.type, PtrType | TensorMapType):
                return value
        return self.read(
            operand, FLOAT_TYPES["f32"] if isinstance(operand, Float) and bits == 32 else IntegerType(bits)
        )

    def known(self, operand: Operand) -> Operand:
        """The operand; a number instead of a register that holds one wherever the instruction is reached."""
        value = self.values.get(operand.name) if isinstance(operand, Register) else None
        made = None if value is None else value.owner
        if isinstance(made, arith.ConstantOp) and isinstance(made.value, IntegerAttr):
            return Integer(made.value.value.data)
        return operand

    def number(self, operand: Operand, bits: int) -> SSAValue:
        """An address that a register or a constant holds as a number, with as many bits as its memory needs."""
        own = TYPE_BITS.get(self.types.get(operand.name, "")) if isinstance(operand, Register) else None
        return self.resized(self.read(operand, IntegerType(own or bits)), bits)

    def is_predicate(self, operand: Operand) -> bool:
        """Whether an operand is a predicate, or its opposite."""
        return isinstance(operand, Not) or (
            isinstance(operand, Register) and self.types.get(operand.name, "") == "pred"
        )

    def fragment(self, operand: Vector) -> SSAValue:
        """The address of the registers of an operand that are memory of the thread."""
        return self.fragments[operand]

    def _home(self, name: str) -> SSAValue:
        operand, index = self.homes[name]
        return self.shifted(self.fragments[operand], 4 * index)

    def register(self, name: str) -> SSAValue:
        """The value of a register, or of a special register."""
        if name in self.homes:
            return self.emit(ptx.LoadOp(self._home(name), self.floats.get(name, i32), 4))
        value = self.values.get(name)
        if value is not None:
            return value
        return self.memory_of(self.texts[name]) if name in self.texts else self.special(name)

    def memory_of(self, variable: str) -> SSAValue:
        """The address of a variable in constant or global memory, which the launch passes behind the parameters."""
        if variable not in self.passed:
            self.passed[variable] = self.entry.insert_arg(GLOBAL, len(self.entry.args))
        return self.passed[variable]

    def special(self, name: str) -> SSAValue:
        """The value of a special register. PtxError (E1009) for one that is not known."""
        register = name.removeprefix("%")
        if register in ptx.entry.REGISTERS:
            return self.emit(ptx.SregOp(register))
        match register:
            case "laneid":
                return self.emit(arith.AndIOp(self.thread(), self.constant(31, i32)))
            case "lanemask_eq" | "lanemask_lt" | "lanemask_le" | "lanemask_gt" | "lanemask_ge":
                bit = self.emit(arith.ShLIOp(self.constant(1, i32), self.special("%laneid")))
                below = self.emit(arith.SubiOp(bit, self.constant(1, i32)))
                through = self.emit(arith.OrIOp(bit, below))
                chosen = {"eq": bit, "lt": below, "le": through, "gt": through, "ge": below}[register[-2:]]
                return self.emit(arith.XOrIOp(chosen, self.constant(-1, i32))) if register[-2] == "g" else chosen
            case "envreg1" | "envreg2":  # the upper and the lower word of an address
                address = self.convert(self.memory_of(GRID_WORKSPACE), i64)
                upper = self.emit(arith.ShRUIOp(address, self.constant(32, i64)))
                return self.resized(upper if register == "envreg1" else address, 32)
            case "total_smem_size" | "aggr_smem_size":
                return self.constant(self.shared_bytes, i32)
            case _ if name == RESERVED_SHARED and name in self.symbols:
                return self.convert(self.symbols[name], i32)
            case _ if (text := REGISTER_TEXTS.get(register)) is not None:
                letter, type = ("l", i64) if text.startswith("mov.u64") else ("r", i32)
                value = self.emit(ptx.InlineOp(text, f"={letter}", [], [type]))
                return self.resized(value, 1) if register == "is_explicit_cluster" else value  # a predicate
            case _ if name in self.types:  # that no instruction writes
                return self.undefined(type_of(self.types[name]))
            case _:
                raise self.refuse(
                    f"the register {name} is never written, or is a special register that is not supported"
                )

    def thread(self) -> SSAValue:
        """The number of the thread in its block."""
        x, y, z, nx, ny = (
            self.emit(ptx.SregOp(name)) for name in ("tid.x", "tid.y", "tid.z", "ntid.x", "ntid.y")
        )  # fmt: skip
        rows = self.emit(arith.AddiOp(self.emit(arith.MuliOp(z, ny)), y))
        return self.emit(arith.AddiOp(self.emit(arith.MuliOp(rows, nx)), x))

    def convert(self, value: SSAValue, type: Attribute) -> SSAValue:
        """A value as another type: the same bits, of a longer one the lowest."""
        if value.type == type:
            return value
        key = value, type
        if key not in self._converted:
            self._converted[key] = self._convert(value, type)
        return self._converted[key]

    def _convert(self, value: SSAValue, type: Attribute) -> SSAValue:
        given = value.type
        if isinstance(given, PtrType | TensorMapType):
            if isinstance(given, TensorMapType):
                raise self.refuse("the address of a tensor map is used as a number, which is not supported")
            value = self.emit(ptx.PtrToIntOp(value))
            return self.convert(self.resized(value, bits_of(type)), type)
        before, after = bits_of(given), bits_of(type)
        if after > before:
            raise self.refuse(f"a register of {before} bits is read as {after} bits")
        if _is_vector(given) and _is_vector(type) and before == after:
            return self.emit(vector.BitcastOp(value, type))
        if _is_vector(given):
            whole = self.emit(vector.BitcastOp(value, VectorType(IntegerType(before), [1])))
            return self.convert(self.extract(whole, 0), type)
        if integer_bits(given) is None:
            return self.convert(self.emit(arith.BitcastOp(value, IntegerType(before))), type)
        if after < before:
            return self.convert(self.emit(arith.TruncIOp(value, IntegerType(after))), type)
        if _is_vector(type):
            single = self.emit(vector.BroadcastOp(value, VectorType(given, [1])))
            return self.emit(vector.BitcastOp(single, type))
        return self.emit(arith.BitcastOp(value, type))

    def resized(self, value: SSAValue, bits: int, *, signed: bool = False) -> SSAValue:
        """An integer with another number of bits."""
        before = bits_of(value.type)
        if bits == before:
            return value
        type = IntegerType(bits)
        if bits < before:
            return self.emit(arith.TruncIOp(value, type))
        return self.emit((arith.ExtSIOp if signed else arith.ExtUIOp)(value, type))

    def extract(self, value: SSAValue, index: int) -> SSAValue:
        """An element of a vector."""
        element, _ = split_vector(value.type)
        return self.emit(vector.ExtractOp(value, [index], element))

    def vector(self, items: Sequence[SSAValue]) -> SSAValue:
        """A vector of values of one type."""
        type = VectorType(items[0].type, [len(items)])
        whole = self.emit(vector.BroadcastOp(items[0], type))
        for index, item in enumerate(items[1:], 1):
            whole = self.emit(vector.InsertOp(item, whole, [index]))
        return whole

    def shifted(self, pointer: SSAValue, offset: int) -> SSAValue:
        """An address some bytes further on."""
        if offset == 0:
            return pointer
        key = pointer, offset
        if key not in self._sums:
            self._sums[key] = self.emit(ptx.PtrAddOp(pointer, self.constant(offset, i64 if offset >> 31 else i32)))
        return self._sums[key]

    def write(self, operand: Operand, value: SSAValue, *, signed: bool = False) -> None:
        """Gives a register its value; an integer is cut to the register's bits."""
        if isinstance(operand, Symbol) and operand.name == "_":
            return
        if not isinstance(operand, Register):
            raise self.refuse("the destination is not a register")
        bits = TYPE_BITS[self.types[operand.name]] if operand.name in self.types else bits_of(value.type)
        if bits != bits_of(value.type) and not isinstance(value.type, PtrType | TensorMapType):
            if integer_bits(value.type) is None:
                value = self.convert(value, IntegerType(bits_of(value.type)))
            value = self.resized(value, bits, signed=signed)
        if operand.name in self.homes:
            self.add(ptx.StoreOp(self.convert(value, self.floats.get(operand.name, i32)), self._home(operand.name), 4))
            return
        self.values[operand.name] = value
        self.texts.pop(operand.name, None)

    def write_address(self, operand: Operand, variable: str) -> None:
        """Gives a register the address of a variable, which the launch passes only if something but printf uses it."""
        if not isinstance(operand, Register):
            raise self.refuse("the destination is not a register")
        self.values.pop(operand.name, None)
        self.texts[operand.name] = variable

    def held(self, name: str) -> SSAValue | None:
        """The value of a register, if an instruction has written it."""
        value = self.values.get(name)
        return self.memory_of(self.texts[name]) if value is None and name in self.texts else value

    def undefined(self, type: Attribute) -> SSAValue:
        """A value that nothing has written."""
        return self.emit(ub.PoisonOp(type))
