# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A PTX function as operations of stage `instr`: a body of blocks with branches between them.

Arithmetic becomes operations of `arith` and `math`, branches those of `cf`, a guarded instruction an `scf.if`, and each
other instruction one operation of `ptx`. Registers become SSA values; where several meet, the block takes an argument.
An instruction that is not known is an error before anything runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import (
    DenseIntElementsAttr,
    IntegerType,
    VectorType,
    i1,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, TilefoldError
from ...dialects.ptx import InlineOp, LocalAllocOp, RetOp, SmemAddrOp
from ...dialects.ptx.base import GLOBAL, MAP, PtrType, TensorMapType
from .accesses import MEMORY, clear_reserved
from .arithmetic import ARITHMETIC
from .atomics import MULTIMEM
from .conversions import CONVERSIONS
from .custom import custom_fragments, custom_of, normalised, read_custom
from .expansion import expanded
from .flow import BasicBlock, blocks_of, reverse_postorder
from .fragments import FragmentMemory, find_fragments
from .guesses import relax_guesses
from .hopper import HOPPER, fragments_in
from .inference import SPACES, PointerType, find_addresses, find_floats
from .moves import MOVES, Rule
from .operands import written_and_read
from .places import Locate
from .registers import Registers, type_of
from .syntax import Address, Function, Instruction, Module, PtxError, Register, Symbol, Variable
from .tcgen05 import TCGEN05
from .unread import replace_unread
from .variables import RESERVED_SHARED, variables_of_driver
from .video import VIDEO
from .warps import WARPS
from .wmma import WMMA

WITH_EFFECTS: Mapping[str, Rule] = {**MEMORY, **WARPS, **WMMA, **HOPPER, **MULTIMEM, **TCGEN05}
"""The rules of instructions that have effects, by opcode."""
RULES: Mapping[str, Rule] = {**ARITHMETIC, **VIDEO, **MOVES, **CONVERSIONS, **WITH_EFFECTS}
"""The rules of all instructions by opcode."""


@dataclass(frozen=True, slots=True)
class Body:
    """A translated function: its blocks, and the bytes of shared memory of a block that its variables take. `sources`
    are the instructions that operations come from.
    """

    region: Region
    shared_bytes: int
    variables: tuple[Variable, ...] = ()
    """The variables in constant and global memory whose addresses the launch passes behind the parameters."""
    sources: Mapping[Operation, Instruction] = field(default_factory=dict[Operation, Instruction])


def translate(
    module: Module,
    function: Function,
    types: Sequence[Attribute],
    file: str,
    locate: Locate,
    dynamic: int | None = None,
    *,
    as_written: bool = False,
    results: Mapping[str, Attribute] = MappingProxyType({}),
) -> Body:
    """The body of a kernel whose parameters have these types. `dynamic` are the bytes of shared memory that the launch
    gives beyond those of variables; None for the greatest that there can be. With `results`, registers with the types
    in which they are read, a body of one block yields these.

    With `as_written` the body is to be looked at, and not executed: loops that wait for a phase stay loops, and a
    `ptx.inline` with its name stands for an instruction that is not supported.

    PtxError (E1009) for an instruction, or another thing, that is not supported.
    """
    whole = function if as_written else expanded(module, function, file)
    return _Translation(module, normalised(whole, RULES), types, file, locate, as_written).run(dynamic or 0, results)


class _Translation:
    """The translation of one function."""

    def __init__(
        self,
        module: Module,
        function: Function,
        types: Sequence[Attribute],
        file: str,
        locate: Locate,
        as_written: bool,
    ) -> None:
        self.as_written = as_written
        self.module, self.function, self.file, self.locate = module, function, file, locate
        self.types = {parameter.name: type for parameter, type in zip(function.parameters, types, strict=True)}
        self.variables = {**module.variables, **{variable.name: variable for variable in function.variables}}
        self.variables |= {variable.name: variable for variable in variables_of_driver(function.place)}
        self.floats = {name: type_of(type) for name, type in function.registers.items() if type[0] == "f"}
        self.floats |= find_floats(function)
        self.fragments = self._find_fragments()
        self.pointers = find_addresses(function, self._address_of, self._parameter)

    def _find_fragments(self) -> FragmentMemory:
        """The memory of the registers that are in use while a multiplication runs."""
        instructions = (s for s in self.function.body or () if isinstance(s, Instruction))
        operands = ((i, v) for i in instructions for v in (fragments_in if i.opcode in RULES else custom_fragments)(i))
        return find_fragments(operands, self.file, as_written=self.as_written)

    def _address_of(self, name: str) -> PointerType | None:
        """The type of the address of a variable or a parameter."""
        if name in self.types:
            if self.types[name] == MAP:
                return MAP
            structures = (p.name for p in self.function.parameters if p.is_structure)
            return GLOBAL if self.types[name] == GLOBAL and name in structures else None
        variable = self.variables.get(name)
        return None if variable is None else SPACES.get(variable.space)

    def _parameter(self, name: str) -> PointerType | None:
        type = self.types.get(name)
        return type if isinstance(type, PtrType) and self._address_of(name) is None else None

    def run(self, dynamic: int, results: Mapping[str, Attribute]) -> Body:
        """The whole function."""
        self.results = results
        blocks = blocks_of(self.function, self.file, self.fragments.homes, as_written=self.as_written)
        if not self.as_written:
            self.fragments.check(blocks, self.file)
        made = {blocks[0]: Block(arg_types=list(self.types.values()))}
        for block in blocks[1:]:
            made[block] = Block(arg_types=[self._type(name) for name in block.arguments])
        self.registers = r = Registers(made[blocks[0]], self.file, self.function.registers, self.floats)
        r.read_names = self._read_names()
        shared_bytes = self._declare(r, made[blocks[0]], dynamic)
        ends: dict[BasicBlock, tuple[dict[str, SSAValue], dict[str, str]]] = {}
        order = reverse_postorder(blocks[0])
        for block in order:
            if block.parent is not None:
                values, texts = ends[block.parent]
                r.values, r.texts = dict(values), dict(texts)
                r.enter(made[block])
                for name, argument in zip(block.arguments, made[block].args, strict=True):
                    r.values[name] = argument
                    r.texts.pop(name, None)
                    argument.name_hint = None
            for instruction in block.instructions:
                self._instruction(instruction)
            ends[block] = r.values, r.texts
        leave = Block([RetOp()])
        for block in order:
            r.values, r.texts = ends[block]
            r.enter(made[block])
            self._end(block, made, leave)
        r.finish()
        region = Region(list(made.values()))
        if self.leaves:
            region.add_block(leave)
        if not self.as_written:
            self._verify(region)
            replace_unread(region)
            relax_guesses(region)
        return Body(region, shared_bytes, tuple(self.variables[name] for name in r.passed), r.sources)

    leaves = False

    def _type(self, name: str) -> Attribute:
        """The type of a register where its values meet."""
        return self.pointers.get(name) or self.floats.get(name) or type_of(self.function.registers[name])

    def _declare(self, r: Registers, entry: Block, dynamic: int) -> int:
        """Gives parameters their values, and variables their memory; the bytes of shared memory."""
        structures = {parameter.name for parameter in self.function.parameters if parameter.is_structure}
        for (name, type), argument in zip(self.types.items(), entry.args, strict=True):
            if isinstance(type, TensorMapType):
                r.symbols[name] = argument
            elif name in structures:
                r.symbols[name] = r.structures[name] = argument
            else:
                r.parameters[name] = argument
        memory = {vector: r.emit(LocalAllocOp(4 * len(vector.items), 16)) for vector in self.fragments.wholes}
        r.fragments = {vector: memory[whole] for vector, whole in self.fragments.names.items()}
        r.homes = self.fragments.homes
        used = {name for name in self._used() if name in self.variables}
        end = 0
        shared = [v for v in self.variables.values() if v.space == "shared" and v.name in used]
        for variable in sorted(shared, key=lambda v: v.size == 0):
            offset = -(-end // max(variable.align, 1)) * max(variable.align, 1)
            size = variable.size or dynamic
            r.symbols[variable.name] = r.emit(SmemAddrOp(offset, size or None))
            r.symbols[variable.name].name_hint = variable.plain_name
            end = max(end, offset + size)
        r.shared_bytes = end
        if RESERVED_SHARED in r.symbols:
            clear_reserved(r)
        for variable in self.variables.values():
            if variable.space == "local" and variable.name in used and variable.size:
                r.symbols[variable.name] = r.emit(LocalAllocOp(variable.size, _power(variable)))
                r.has_local = True
            elif variable.space in ("const", "global"):
                r.texts[variable.name] = variable.name
                r.contents[variable.name] = variable.initial or b""
                if variable.space == "const":
                    r.constants.add(variable.name)
        return end

    def _read_names(self) -> set[str]:
        statements = [s for s in self.function.body or () if isinstance(s, Instruction)]
        return {name for statement in statements for name in written_and_read(statement)[1]}

    def _used(self) -> set[str]:
        operands = [o for s in self.function.body or () if isinstance(s, Instruction) for o in s.operands]
        bases = [o.base if isinstance(o, Address) else o for o in operands]
        return {base.name for base in bases if isinstance(base, Symbol | Register)}

    def _instruction(self, instruction: Instruction) -> None:
        r = self.registers
        r.instruction, r.location = instruction, self.locate(instruction)
        block = r.block
        try:
            self._by_rule(instruction)
        except PtxError:
            if not self.as_written:
                raise
            r.enter(block)
            names = [name for name in written_and_read(instruction)[0] if name in r.types]
            results = [self._type(name) for name in names]
            stand_in = r.add(InlineOp(instruction.name, "", [], results))
            r.values |= zip(names, stand_in.results, strict=True)

    def _by_rule(self, instruction: Instruction) -> None:
        """The operations of an instruction by the rule of its opcode."""
        r = self.registers
        rule = RULES.get(instruction.opcode)
        if rule is None and custom_of(instruction) is not None:
            rule = read_custom
        if rule is None:
            near = get_close_matches(instruction.opcode, RULES, 1)
            hint = f"a similar one: {near[0]}" if near else ""
            text = f"the instruction {instruction.name[:80]} is not supported"
            raise PtxError(Code.PTX_UNSUPPORTED, text, instruction.place, hint, self.file)
        try:
            if instruction.guard is None:
                rule(r, instruction)
            else:
                self._guarded(rule, instruction)
        except PtxError:
            raise
        except TilefoldError as error:
            raise r.refuse(error.message, error.hint) from error
        except (ValueError, IndexError, KeyError, AttributeError, TypeError, AssertionError) as error:
            raise r.refuse("this combination of operands and modifiers is not supported") from error

    def _verify(self, region: Region) -> None:
        """PtxError (E1009) for an instruction whose operation has operands that it does not accept."""
        ops = (op for block in region.blocks for top in block.ops for op in top.walk())
        for op in (op for op in ops if not op.successors):  # xDSL counts all blocks for each branch; they fit
            try:
                op.verify(verify_nested_ops=False)
            except (VerifyException, ValueError) as error:
                self.registers.instruction = self.registers.sources.get(op, self.registers.instruction)
                self.registers.location = op.location
                text = str(error).splitlines()[0]
                raise self.registers.refuse(f"this combination of operands is not supported: {text}") from error

    def _guarded(self, rule: Rule, instruction: Instruction) -> None:
        """A guarded instruction: a branch without successors of its own."""
        r = self.registers
        assert instruction.guard is not None
        condition = r.read(instruction.guard, IntegerType(1))
        written = written_and_read(instruction)[0]
        olds = {name: r.held(name) for name in written if name in r.types and name not in self.fragments.homes}
        outer, before = r.block, dict(r.values)
        then, otherwise = Block(), Block()
        r.enter(then)
        rule(r, instruction)
        news = {name: value for name in olds if (value := r.held(name)) is not None}
        types = {name: new.type if (old := olds[name]) is None or old.type == new.type else type_of(r.types[name])
                 for name, new in news.items()}  # fmt: skip
        r.add(scf.YieldOp(*[r.convert(news[name], type) for name, type in types.items()]))
        r.enter(otherwise)
        kept = [r.undefined(type) if (old := olds[name]) is None else r.convert(old, type)
                for name, type in types.items()]  # fmt: skip
        r.add(scf.YieldOp(*kept))
        r.enter(outer)
        op = r.add(scf.IfOp(condition, list(types.values()), [then], [otherwise] if types else None))
        r.values = before
        for name, result in zip(types, op.results, strict=True):
            r.values[name] = result
            r.texts.pop(name, None)

    def _end(self, block: BasicBlock, made: Mapping[BasicBlock, Block], leave: Block) -> None:
        """The branch at the end of a block, with the values of the registers that meet at its successors."""
        r = self.registers
        if block.branch is not None:
            r.instruction, r.location = block.branch, self.locate(block.branch)
        successors = [(made[successor], self._passed(successor)) for successor in block.successors]
        if not successors and self.results:
            r.add(scf.YieldOp(*[r.read(Register(name), type) for name, type in self.results.items()]))
        elif not successors:
            r.add(RetOp())
        elif block.branch is not None and block.branch.opcode == "brx":
            (target, values), *others = successors
            cases = DenseIntElementsAttr.from_list(VectorType(i32, [len(others)]), range(1, len(successors)))
            blocks, passed = [other for other, _ in others], [given for _, given in others]
            r.add(cf.SwitchOp(r.undefined(i32), target, values, cases, blocks, passed))
        elif block.branch is None or block.guard is None:
            target, values = successors[0]
            r.add(cf.BranchOp(target, *values))
        else:
            guard = block.guard
            condition = self._or_undefined(i1, lambda: r.read(guard, i1))
            if len(successors) == 1:  # a guarded end of the thread, or a branch to the end
                self.leaves = True
                successors.insert(0, (leave, []))
            (then, given), (otherwise, others) = successors
            r.add(cf.ConditionalBranchOp(condition, then, given, otherwise, others))

    def _passed(self, successor: BasicBlock) -> list[SSAValue]:
        return [
            self._or_undefined(self._type(name), lambda name=name: self._pass(name, successor))
            for name in successor.arguments
        ]

    def _pass(self, name: str, successor: BasicBlock) -> SSAValue:
        """The value of a register for a block where its values meet."""
        r = self.registers
        type, value = self._type(name), r.held(name)
        if value is not None and isinstance(type, PtrType | TensorMapType) and value.type != type:
            text = f"the register {name} holds addresses of several memories"
            raise PtxError(Code.PTX_UNSUPPORTED, text, successor.place, file=self.file)
        return r.undefined(type) if value is None else r.convert(value, type)

    def _or_undefined(self, type: Attribute, read: Callable[[], SSAValue]) -> SSAValue:
        """The value that `read` returns; an undefined one where it refuses, if the body is only looked at."""
        try:
            return read()
        except PtxError:
            if not self.as_written:
                raise
            return self.registers.undefined(type)


def _power(variable: Variable) -> int:
    """The alignment of a variable, a power of two."""
    return 1 << max(variable.align, 1).bit_length() - 1
