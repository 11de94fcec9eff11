# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of warps and blocks: barriers, exchanges, matrices, and printing (PTX ISA, Parallel Synchronization and
Communication Instructions, and Warp Level Matrix Multiply-Accumulate Instructions).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from xdsl.dialects import arith, cf, math
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import GLOBAL, LOCAL, SHARED
from ...dialects.ptx.inline import HEAP_CALLS
from ...dialects.ptx.mma import register_types
from ...dialects.ptx.sync import CONVERSION, conversions
from ...layout.atoms.instructions import MmaSync
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.mma_table import MMA_ATOMS, SPARSE_ATOMS, mma_atom
from ...layout.atoms.ptx_text import mma_mnemonic
from .accesses import address
from .clusters import cluster_barrier
from .flow import is_unaligned
from .moves import Rule, address_of
from .registers import Registers, type_of
from .syntax import Arguments, Instruction, Integer, Operand, Pair, Register, Symbol, Vector
from .variables import HEAP


def _mask(r: Registers, operand: Operand) -> SSAValue | None:
    """The mask of an instruction; None if it names all lanes."""
    operand = r.known(operand)
    if isinstance(operand, Integer) and operand.value & 0xFFFFFFFF == 0xFFFFFFFF:
        return None
    return r.read(operand, i32)


def _barrier(r: Registers, i: Instruction) -> None:
    if i.modifiers[:1] == ("cluster",):
        cluster_barrier(r, i)
        return
    words = [word for word in i.modifiers if word not in ("cta", "aligned")]
    unaligned = is_unaligned(i)
    written, i = i.operands[:1], replace(i, operands=tuple(map(r.known, i.operands)))
    match words:
        case ["warp", "sync"] if isinstance(i.operands[0], Integer):
            r.add(ptx.BarWarpSyncOp(-1 if i.operands[0].value == -1 else i.operands[0].value & 0xFFFFFFFF))
        case ["warp", "sync"]:
            r.add(ptx.BarWarpSyncOp(-1, r.read(i.operands[0], i32)))
        case ["sync" | "arrive"]:
            number, *more = i.operands
            op = ptx.BarSyncOp if words == ["sync"] else ptx.BarArriveOp
            r.add(op(*_meeting(r, number, more[0] if more else None), unaligned=unaligned))
        case ["red", kind, "pred" | "u32"] if kind in ptx.BarRedOp.KINDS:
            (target,), (number, *more) = written, i.operands[1:]
            meeting = _meeting(r, number, more[0] if len(more) > 1 else None)
            r.write(target, r.emit(ptx.BarRedOp(kind, r.read(more[-1], i1), *meeting, unaligned=unaligned)))
        case _:
            raise r.refuse("the barrier is not supported")


def _meeting(
    r: Registers, number: Operand, threads: Operand | None
) -> tuple[int, int | None, SSAValue | None, SSAValue | None]:
    """The number of a barrier and that of its threads; then those that only the run knows."""
    first, offset = (number.value, None) if isinstance(number, Integer) else (0, r.read(number, i32))
    if threads is None or isinstance(threads, Integer):
        return first, None if threads is None else threads.value, offset, None
    return first, None, offset, r.read(threads, i32)


def _shuffle(r: Registers, i: Instruction) -> None:
    if i.modifiers[0] != "sync":
        raise r.refuse("shfl without .sync is not supported")
    mode = i.modifiers[1]
    target, value, lane, *others = i.operands
    control, mask = r.known(others[0]), others[1]
    given, at, names = r.raw(value, 32), r.read(lane, i32), _mask(r, mask)
    if isinstance(target, Pair) or not isinstance(control, Integer) or _segment(mode, control.value) is None:
        op = r.add(ptx.ShflSyncValidOp(mode, given, at, r.read(control, i32), names))
        r.write(target.first if isinstance(target, Pair) else target, op.result)
        if isinstance(target, Pair):
            r.write(target.second, op.valid)
        return
    r.write(target, r.emit(ptx.ShflSyncOp(mode, given, at, _segment(mode, control.value), names)))


def _segment(mode: str, control: int) -> int | None:
    """The lanes of a segment by the operand c of shfl.sync, if the segments are whole."""
    width = 32 - (control >> 8 & 31)
    clamp = 0 if mode == "up" else 31
    return width if control & 31 == clamp and width & (width - 1) == 0 else None


def _vote(r: Registers, i: Instruction) -> None:
    if i.modifiers[0] != "sync" or i.modifiers[1] not in ptx.VoteSyncOp.MODES:
        raise r.refuse("the vote is not supported")
    target, predicate, mask = i.operands
    r.write(target, r.emit(ptx.VoteSyncOp(i.modifiers[1], r.read(predicate, i1), _mask(r, mask))))


def _match(r: Registers, i: Instruction) -> None:
    """match: of 64 bits, the lanes whose halves are both the same; all lanes agree where each sees the whole mask."""
    kind, *form = i.modifiers
    if kind not in ("any", "all") or form not in (["sync", "b32"], ["sync", "b64"]):
        raise r.refuse("the form is not supported")
    target, value, mask = i.operands
    given, lanes = r.read(value, type_of(i.modifiers[-1])), _mask(r, mask)
    same = r.emit(ptx.MatchAnySyncOp(r.resized(given, 32), lanes))
    if i.modifiers[-1] == "b64":
        upper = r.emit(arith.ShRUIOp(given, r.constant(32, i64)))
        same = r.emit(arith.AndIOp(same, r.emit(ptx.MatchAnySyncOp(r.resized(upper, 32), lanes))))
    if kind == "any":
        r.write(target, same)
        return
    every = r.read(mask, i32)
    agree = r.emit(arith.CmpiOp(same, every, "eq"))
    lanes_or_none = r.emit(arith.SelectOp(agree, every, r.constant(0, i32)))
    r.write(target.first if isinstance(target, Pair) else target, lanes_or_none)
    if isinstance(target, Pair):
        r.write(target.second, agree)


def _redux(r: Registers, i: Instruction) -> None:
    _, *words, type = i.modifiers
    kind = ".".join(words)
    target, value, mask = i.operands
    kind = f"u{kind}" if type == "u32" and kind in ("min", "max") else kind
    r.write(target, r.emit(ptx.ReduxSyncOp(kind, r.read(value, type_of(type)), _mask(r, mask))))


def _elect(r: Registers, i: Instruction) -> None:
    target, mask = i.operands
    if not isinstance(target, Pair) and not isinstance(target, Symbol):
        raise r.refuse("the destination is not supported")
    elected = r.emit(ptx.ElectSyncOp(_mask(r, mask)))
    if isinstance(target, Pair):
        r.write(target.second, elected)
    if isinstance(target, Pair) and target.first.name in r.read_names:
        votes = r.emit(ptx.VoteSyncOp("ballot", elected, _mask(r, mask)))
        zeros = r.emit(math.CountLeadingZerosOp(votes))
        r.write(target.first, r.emit(arith.SubiOp(r.constant(31, i32), zeros)))


def _activemask(r: Registers, i: Instruction) -> None:
    r.write(i.operands[0], r.emit(ptx.ActivemaskOp()))


def _matrix(i: Instruction) -> tuple[int, bool, str] | None:
    """The number of matrices, whether they are transposed, and their shape."""
    words = [word for word in i.modifiers if word not in ("sync", "aligned", "shared", "shared::cta", "trans")]
    count = next((word for word in words if word in ("x1", "x2", "x4")), None)
    if count is None:
        return None
    words.remove(count)
    shape, shapes = ".".join(words), ptx.LdMatrixOp.SHAPES | ptx.StMatrixOp.SHAPES
    return (int(count[1]), "trans" in i.modifiers, shape) if shape in shapes else None


def _ldmatrix(r: Registers, i: Instruction) -> None:
    form = _matrix(i)
    if form is None:
        raise r.refuse("the form is not supported")
    target, source = i.operands
    targets = target.items if isinstance(target, Vector) else (target,)
    number, trans, shape = form
    value = r.emit(ptx.LdMatrixOp(number, trans, address(r, source, 16, SHARED), shape))
    for index, part in enumerate(targets):
        r.write(part, r.extract(value, index))


def _stmatrix(r: Registers, i: Instruction) -> None:
    form = _matrix(i)
    if form is None:
        raise r.refuse("the form is not supported")
    target, source = i.operands
    items = source.items if isinstance(source, Vector) else (source,)
    value = r.vector([r.read(item, i32) for item in items])
    number, trans, shape = form
    r.add(ptx.StMatrixOp(number, trans, value, address(r, target, 16, SHARED), shape))


def _movmatrix(r: Registers, i: Instruction) -> None:
    r.write(i.operands[0], r.emit(ptx.MovMatrixOp(r.read(i.operands[1], i32))))


@cache
def _atoms() -> Mapping[str, MmaAtom]:
    """The MMA atoms of a warp by their instructions."""
    atoms = map(mma_atom, (*MMA_ATOMS, *SPARSE_ATOMS))
    return {mma_mnemonic(atom): atom for atom in atoms if isinstance(atom.instruction, MmaSync)}


def _canonical(i: Instruction) -> str:
    """The instruction with its words in the order of the PTX ISA; with the number of scales where there is one."""
    words = ["sp" if word == _ORDERED else word for word in i.modifiers]
    if words[-1] == "satfinite":  # ptxas takes it behind the types, too
        words.insert(words.index("col") + 1 if "col" in words else len(words) - 1, words.pop())
    kind = next((word for word in words if word.startswith("kind::")), "")
    moved = [word for word in words if word == kind or word == "block_scale" or word.startswith("scale_vec::")]
    if "popc" in words and i.opcode == "mma":  # of bits: ptxas takes them at either place
        bits = [word for word in words if word in ("xor", "and", "popc")]
        rest = [word for word in words if word not in bits]
        at = rest.index("col") + 1 if "col" in rest else len(rest)
        return ".".join((i.opcode, *rest[:at], *bits, *rest[at:]))
    if not kind:
        return ".".join((i.opcode, *words))
    if moved[-1] == "block_scale" and kind in _ONLY_SCALES:
        moved.append(f"scale_vec::{_ONLY_SCALES[kind]}X")
    rest = [word for word in words if word not in moved]
    at = rest.index("col") + 1 if "col" in rest else len(rest)
    return ".".join((i.opcode, *rest[:at], *moved, *rest[at:]))


_ORDERED = "sp::ordered_metadata"
_ONLY_SCALES = {"kind::mxf8f6f4": 1, "kind::mxf4": 2}
"""The number of scales along K, where a kind has no other."""


def _selector(r: Registers, given: object) -> list[int]:
    """Byte and thread of the scales of an operand."""
    items = given.items if isinstance(given, Vector) else (given,)
    if len(items) != 2 or not all(isinstance(item, Integer) for item in items):
        raise r.refuse("which scales an instruction takes must be said by two constants")
    return [item.value for item in items if isinstance(item, Integer)]


def _mma(r: Registers, i: Instruction) -> None:
    atom = _atoms().get(_canonical(i))
    if atom is None:
        raise r.refuse("unknown MMA atom of this instruction")
    groups: list[list[SSAValue]] = []
    for letter, operand in zip("ABC", i.operands[1:4], strict=True):
        items = operand.items if isinstance(operand, Vector) else (operand,)
        types = register_types(atom, letter)
        if len(items) != len(types):
            raise r.refuse(f"operand {letter} has {len(types)} registers, not {len(items)}")
        groups.append([r.read(item, type) for item, type in zip(items, types, strict=True)])
    if atom.has_scales:
        if len(i.operands) != 8:
            raise r.refuse("the scales need two operands each")
        words = [item.items[0] if isinstance(item, Vector) else item for item in i.operands[4::2]]
        select = [number for given in i.operands[5::2] for number in _selector(r, given)]
        op = r.add(ptx.MmaSyncScaledOp(atom.name, groups, [r.read(word, i32) for word in words], select))
    elif atom.is_sparse:
        metadata, select = i.operands[4:]
        if not isinstance(select, Integer):
            raise r.refuse("the sparsity selector is a constant")
        op = r.add(ptx.MmaSyncSparseOp(atom.name, groups, r.read(metadata, i32), select.value, _ORDERED in i.modifiers))
    else:
        op = r.add(ptx.MmaSyncOp(atom.name, *groups))
    target = i.operands[0]
    targets = target.items if isinstance(target, Vector) else (target,)
    for part, value in zip(targets, op.d, strict=True):
        r.write(part, value)


def _call(r: Registers, i: Instruction) -> None:
    """The device's printf, assertions, malloc and free; other functions are refused."""
    names = [operand.name for operand in i.operands if isinstance(operand, Symbol)]
    if len(names) == 1 and names[0] in HEAP_CALLS:
        _call_heap(r, i, names[0])
        return
    if names == ["__assertfail"]:
        r.add(cf.AssertOp(r.constant(0, i1), _assertion(r, i)))
        return
    if names != ["vprintf"]:
        raise r.refuse(f"calls of functions other than vprintf, malloc and free are not supported: {', '.join(names)}")
    lists = [operand for operand in i.operands if isinstance(operand, Arguments)]
    results, arguments = lists[0], lists[-1]
    format, buffer = [r.arguments.get(item.name) for item in arguments.items if isinstance(item, Symbol)]
    name = r.texts.get(format.name, "") if isinstance(format, Register) else ""
    text = r.contents.get(name)
    if text is None:
        raise r.refuse("the format is not the address of a constant text")
    format_text = text.split(b"\0")[0].decode("utf-8", "surrogateescape")
    try:
        kinds = conversions(format_text, strings=True)
    except ValueError as error:
        raise r.refuse(str(error)) from None
    pointer = None if buffer is None else address_of(r, buffer)
    if kinds and (pointer is None or pointer.type != LOCAL):
        raise r.refuse("the values are not in local memory")
    values: list[SSAValue] = []
    strings: list[str] = []
    at = 0
    for kind in kinds:
        type = type_of("f64") if kind in "feg" else i64 if kind in "ps" or kind.startswith("ll") else i32
        bytes = 4 if type == i32 else 8
        at = -(-at // bytes) * bytes
        assert pointer is not None
        known = r.stored.get((pointer, at)) if kind == "s" else None
        if known is not None:
            strings.append(r.contents[known].split(b"\0")[0].decode("utf-8", "surrogateescape"))
        else:
            value = r.emit(ptx.LoadOp(r.shifted(pointer, at), type, bytes))
            values.append(r.emit(ptx.IntToPtrOp(value, 1, GLOBAL)) if kind in "ps" else value)
            strings += ["%p"] if kind == "s" else []
        at += bytes
    r.add(ptx.PrintfOp(_with_strings(format_text, strings), values))
    r.results |= {item.name: r.constant(len(kinds), i32) for item in results.items if isinstance(item, Symbol)}


def _call_heap(r: Registers, i: Instruction, name: str) -> None:
    """malloc or free. The number that malloc returns is an address of any memory, and the simulator knows its end."""
    *results, given = [operand.items for operand in i.operands if isinstance(operand, Arguments)]
    (parameter,) = [r.arguments[item.name] for item in given if isinstance(item, Symbol)]
    arguments = [r.read(parameter, i64), r.convert(r.memory_of(HEAP), i64)]
    types: list[Attribute] = [i64] * len(results)
    op = r.add(ptx.InlineOp(HEAP_CALLS[name], ",".join(["=l"] * len(results) + ["l", "l"]), arguments, types))
    r.results |= {item.name: value for (item,), value in zip(results, op.res, strict=True) if isinstance(item, Symbol)}


def _with_strings(format: str, strings: list[str]) -> str:
    """A format that has these texts for its strings, in order: those of constants, or `%p` for an address."""
    rest = iter(strings)

    def text(match: "re.Match[str]") -> str:
        if match["kind"] != "s":
            return match[0]
        given = next(rest)
        return given if given == "%p" else (f"%{match['form']}s" % given).replace("%", "%%")

    return CONVERSION.sub(text, format)


def _assertion(r: Registers, i: Instruction) -> str:
    """The text of a failing assertion, whose address is the first argument."""
    (*_, arguments) = [operand for operand in i.operands if isinstance(operand, Arguments)]
    given = r.arguments.get(arguments.items[0].name) if isinstance(arguments.items[0], Symbol) else None
    name = r.texts.get(given.name, "") if isinstance(given, Register) else ""
    return r.contents.get(name, b"assert").split(b"\0")[0].decode("utf-8", "replace")


def _trap(r: Registers, i: Instruction) -> None:
    r.add(cf.AssertOp(r.constant(0, i1), i.opcode))


def _dependent(r: Registers, i: Instruction) -> None:
    r.add(ptx.GridDependencyWaitOp() if i.modifiers == ("wait",) else ptx.LaunchDependentsOp())


def _nanosleep(r: Registers, i: Instruction) -> None:
    r.add(ptx.NanosleepOp(r.read(i.operands[0], i32)))


WARPS: Mapping[str, Rule] = MappingProxyType({
    "bar": _barrier, "barrier": _barrier, "shfl": _shuffle, "vote": _vote, "match": _match, "redux": _redux,
    "elect": _elect, "activemask": _activemask, "ldmatrix": _ldmatrix, "stmatrix": _stmatrix,
    "movmatrix": _movmatrix, "mma": _mma, "call": _call, "nanosleep": _nanosleep,
    "trap": _trap, "brkpt": _trap, "griddepcontrol": _dependent,
})  # fmt: skip
"""The rules by opcode."""
