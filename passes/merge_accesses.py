# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`merge-accesses`: on the way from stage `index` to stage `instr`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialects.arith.semantics import is_side_effect_free
from ..dialects.ptx import LoadOp, PtrAddOp, PtrType, StoreOp, scalar_bits, value_bytes
from ..dialects.ptx.base import GLOBAL, LOCAL, SHARED, SHARED_CLUSTER
from .analysis.affine import AddressSum, Sum, Sums
from .writing.emitter import Emitter, remark

Access: TypeAlias = "LoadOp | StoreOp"
Hint: TypeAlias = "tuple[Attribute | None, SSAValue | None]"
"""The cache hint of an access, and its policy."""

MAX_BYTES = 16
"""The widest access of one instruction."""


@dataclass(frozen=True)
class MergeAccessesPass(ModulePass):
    """Joins loads and stores of adjacent elements into vectors of up to 16 bytes if their alignment is proven.

    Only accesses to single elements are joined; a copy atom keeps the width in its name. Loads move up to the first
    load, stores down to the last store, but never past an operation that may access the same memory.

    Before:

        %a = ptx.ld %p0 align 4 : !ptx.ptr<global> -> f32
        %b = ptx.ld %p1 align 4 : !ptx.ptr<global> -> f32     // 4 bytes after %p0, which is aligned to 8

    After:

        %v = ptx.ld %p0 align 8 : !ptx.ptr<global> -> vector<2xf32>
        %a = vector.extract %v[0] : f32 from vector<2xf32>
        %b = vector.extract %v[1] : f32 from vector<2xf32>
    """

    name = "merge-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        blocks = [block for inner in op.walk() for region in inner.regions for block in region.blocks]
        sums = Sums()
        for run in [run for block in blocks for run in _find_runs(block, sums)]:
            if run.hint is None:
                _merge(run, sums)
            else:
                _tell_hinted(run, sums)


@dataclass(slots=True)
class _Run:
    """Accesses of one kind to one state space that may be reordered. Those of stores are all to different bytes. Those
    with a `hint` on caches keep their width all the same.
    """

    kind: type[Operation]
    hint: "Hint | None" = None
    accesses: list[tuple[Access, AddressSum]] = field(default_factory=list[tuple["LoadOp | StoreOp", AddressSum]])
    stored: set[int] = field(default_factory=set[int])

    def admits(self, access: Access, address: AddressSum) -> bool:
        """Whether an access commutes with those before it: a load with loads, a store with stores to other bytes.

        Addresses with other run-time parts may be equal: two indices, or two pointers to one tensor.
        """
        if self.kind is not type(access) or isinstance(access, LoadOp) or not self.accesses:
            return self.kind is type(access)
        _, other = self.accesses[0]
        same = (address.base, address.offset.terms) == (other.base, other.offset.terms)
        return same and self.stored.isdisjoint(_bytes_of(access, address))

    def add(self, access: Access, address: AddressSum) -> None:
        """Appends an access that `admits` allows."""
        self.accesses.append((access, address))
        self.stored.update(_bytes_of(access, address))


def _bytes_of(access: Access, address: AddressSum) -> range:
    """The bytes that an access touches, counted from its address without the constant."""
    size = value_bytes(_value_type(access))
    assert size is not None, "the verifier checks this"
    return range(address.offset.constant, address.offset.constant + size)


def _value_type(access: Access) -> Attribute:
    return (access.result if isinstance(access, LoadOp) else access.value).type


def _find_runs(block: Block, sums: Sums) -> list[_Run]:
    """The accesses of a block in runs that may be reordered."""
    runs: list[_Run] = []
    current: dict[Attribute, _Run] = {}
    hinted: dict[Hint, _Run] = {}
    for op in block.ops:
        if isinstance(op, LoadOp | StoreOp):
            if op.ptr.type == LOCAL:
                continue
            space = SHARED if op.ptr.type == SHARED_CLUSTER else op.ptr.type  # a rank may be that of the own block
            address = sums.address(op.ptr)
            if isinstance(op, StoreOp) and space == GLOBAL:
                hinted.clear()
            if scalar_bits(_value_type(op)) is None or op.hinted:  # it stays as it is, and ends the run
                current.pop(space, None)
                if isinstance(op, LoadOp) and scalar_bits(_value_type(op)) is not None:
                    hint = op.cache, op.policy
                    if hint not in hinted:
                        runs.append(hinted.setdefault(hint, _Run(LoadOp, hint)))
                    hinted[hint].add(op, address)
                continue
            run = current.get(space)
            if run is None or not run.admits(op, address):
                run = current[space] = _Run(type(op))
                runs.append(run)
            run.add(op, address)
        elif not is_side_effect_free(op):
            current.clear()
            hinted.clear()
    return runs


def _merge(run: _Run, sums: Sums) -> None:
    """Joins adjacent accesses in a run, widest first."""
    for (base, terms, type), places in _by_address(run).items():
        for start in sorted(places):
            if start in places:
                aligned = sums.alignment(AddressSum(base, Sum(start, terms)))
                _merge_from(places, start, aligned, type, sums)
        if run.kind is LoadOp:
            whole = AddressSum(base, Sum(0, terms))
            _tell_neighbours(places, sums.alignment(whole), MAX_BYTES, type, _why_unaligned(whole, sums))


def _tell_hinted(run: _Run, sums: Sums) -> None:
    """Leaves remarks on adjacent loads with a hint on caches that would be one without it."""
    for (base, terms, type), places in _by_address(run).items():
        widest = min(sums.alignment(AddressSum(base, Sum(0, terms))) or MAX_BYTES, MAX_BYTES)
        _tell_neighbours(places, 0, widest, type, "but accesses with a cache hint or a policy keep their width")


def _by_address(run: _Run) -> dict[tuple[SSAValue, frozenset[tuple[SSAValue, int]], Attribute], dict[int, Access]]:
    """The accesses of a run by base and run-time terms of their addresses, and by type; each by its constant offset."""
    groups: dict[tuple[SSAValue, frozenset[tuple[SSAValue, int]], Attribute], dict[int, Access]] = {}
    for access, address in run.accesses:
        places = groups.setdefault((address.base, address.offset.terms, _value_type(access)), {})
        places.setdefault(address.offset.constant, access)  # of two loads of one element, the first
    return groups


def _why_unaligned(address: AddressSum, sums: Sums) -> str:
    """The reason that an address without its constant is not known to be a multiple of more bytes: its base, or the
    index or stride that the run adds to it.
    """
    aligned, base = sums.alignment(address), sums.alignment(AddressSum(address.base, Sum(0)))
    subject = "the address of the tensor" if base == aligned else "an offset that only the run knows"
    return f"but {subject} is known to be a multiple of {_in_bytes(aligned)} only"


def _in_bytes(count: int) -> str:
    return f"{count} byte{'s' if count > 1 else ''}"


def _tell_neighbours(places: dict[int, Access], least: int, widest: int, type: Attribute, why: str) -> None:
    """Leaves a remark on adjacent loads that could be one of more than `least` and at most `widest` bytes, with the
    reason that they are not.
    """
    size, width = (scalar_bits(type) or 0) // 8, widest
    while width > max(size, least):
        for start in sorted(places):
            offsets = range(start, start + width, size)
            if start % width == 0 and all(offset in places for offset in offsets):
                first, *_ = [places.pop(offset) for offset in offsets]
                remark(first, f"{len(offsets)} neighbouring loads of {_in_bytes(size)} would be one of {width}, {why}")
        width //= 2


def _merge_from(places: dict[int, Access], start: int, aligned: int, type: Attribute, sums: Sums) -> None:
    """Joins the widest possible access that begins at `start`, a multiple of `aligned` bytes; takes its parts out of
    `places`.
    """
    width, size = MAX_BYTES, (scalar_bits(type) or 0) // 8
    while width > size:
        offsets = range(start, start + width, size)
        if aligned % width == 0 and all(offset in places for offset in offsets):
            parts = [places.pop(offset) for offset in offsets]
            _join(parts, start, type, width, sums)
            return
        width //= 2


def _join(parts: Sequence[Access], start: int, type: Attribute, width: int, sums: Sums) -> None:
    """Replaces accesses of adjacent elements, lowest address first, by one."""
    from .writing.emitter import extract_elements, join_vector

    order = {op: index for index, op in enumerate(_block_of(parts[0]).ops)}
    wide = VectorType(type, [len(parts)])
    if isinstance(parts[0], LoadOp):
        anchor = min(parts, key=lambda part: order[part])
        emitter = Emitter(anchor)
        loaded = emitter.value(LoadOp(_lowest(emitter, anchor, start, sums), wide, width))
        loads = [part for part in parts if isinstance(part, LoadOp)]
        for load, element in zip(loads, extract_elements(emitter, loaded), strict=True):
            element.name_hint = load.result.name_hint
            load.result.replace_all_uses_with(element)
    else:
        anchor = max(parts, key=lambda part: order[part])
        emitter = Emitter(anchor)
        values = [part.value for part in parts if isinstance(part, StoreOp)]
        stored = join_vector(emitter, values)
        emitter.insert(StoreOp(stored, _lowest(emitter, anchor, start, sums), width))
    for part in parts:
        Rewriter.erase_op(part)


def _block_of(op: Operation) -> Block:
    block = op.parent_block()
    assert block is not None
    return block


def _lowest(emitter: Emitter, anchor: Access, start: int, sums: Sums) -> SSAValue:
    """The address `start`, made from that of `anchor`, which is defined where the joined access stands."""
    distance = start - sums.address(anchor.ptr).offset.constant
    assert isinstance(anchor.ptr.type, PtrType)
    if distance == 0:
        return anchor.ptr
    return emitter.value(PtrAddOp(anchor.ptr, emitter.index(distance)))
