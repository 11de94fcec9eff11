# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Allocation of tensor memory: the columns of a block, and its permit to allocate (PTX ISA, Tensor Memory Allocation
and Management Instructions).

A pair allocates together: a warp in each block, the same columns in both.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ....base.errors import Code
from ....base.occupancy import occupancy
from ....base.target import Target
from ....dialects.ptx.tcgen05.memory import is_allocatable
from ..events import Suspension, Until
from ..faults import Site
from ..memory.arena import Access
from ..memory.memories import CellSpace
from ..memory.spaces import Space
from ..ordering.cluster import Reach
from ..ordering.knowledge import known
from ..warp import Block, Warp
from .cells import COLUMNS, LANES
from .order import Region, TensorOrder, knows_uses

_TARGET = Target("sm_100a")
"""A target with tensor memory; the multiprocessors of the others hold as many blocks."""
_GROW = "allocate the largest number of columns first, and no more than before later"


@dataclass(slots=True, eq=False)
class Columns:
    """The allocations of a block: the size of the last one, whether it has given up its permit, and the number of
    columns that a warp of it is asking for together with the peer.
    """

    block: Block
    last: int = COLUMNS
    relinquished: Site | None = None
    asking: int | None = None
    granted: int = 0
    """How many allocations of the pair it has taken part in."""
    made: list[int] = field(default_factory=list[int])
    """The columns that these begin at."""
    done: tuple[int, int] | None = None
    """The thread of the cluster that has executed the last one, and when it was done."""
    site: Site | None = None
    """The last one."""


def peers(warp: Warp, blocks: int, site: Site) -> list[Block]:
    """The blocks of an instruction of one block, or of a pair. A fault for a block that is in no pair."""
    cluster, rank = warp.block.cluster, warp.block.rank
    if blocks == 1:
        return [warp.block]
    if cluster.size % 2:
        text = f"is an instruction of a pair of blocks, and the cluster has {cluster.size}"
        warp.fault(Code.SIM_TENSOR_PAIR, site, 0, text, "launch clusters of an even number of blocks: cluster(2)")
    first = rank // 2 * 2
    if cluster.state(Reach).ended & {first, first + 1}:
        text = "is an instruction of a pair of blocks, and the other block has ended"
        hint = "let all threads of the cluster meet before a block ends, and before columns are freed"
        warp.fault(Code.SIM_PEER_END, site, 0, text, hint)
    found = {warp.block.rank: warp.block for warp in cluster.warps}
    return [found[first], found[first + 1]]


def _check_neighbours(warp: Warp, space: CellSpace, shared: Space, site: Site, count: int) -> None:
    """A fault for a block that holds columns and asks for more, if the launch has others: where a multiprocessor has
    several blocks that hold as much, the columns may be too few for any of them to go on. The kernel is assembled only
    where its registers decide that.
    """
    config, held = warp.block.cluster.config, sum(space.columns.get(warp.block.rank, {}).values())
    if not held or config.blocks == warp.block.cluster.size:
        return

    def together(registers: int) -> int:
        fitting = occupancy(_TARGET, config.threads, registers, shared.arena.allocated).resident
        return min(fitting, COLUMNS // held)

    def waits(blocks: int) -> bool:
        return blocks > 1 and COLUMNS - blocks * held < count

    if waits(together(1)) and waits(blocks := together(warp.launch.facts.registers() or 1)):
        left = COLUMNS - blocks * held
        text = f"allocates {count} more columns of tensor memory while the block has {held}: if {blocks} blocks of "
        text += f"a multiprocessor have as many, {left} are left, and each waits for the others forever"
        hint = "allocate all columns at once, and give up the permit then by ptx.tcgen05.relinquish_alloc_permit"
        warp.fault(Code.SIM_TENSOR_RESIDENT, site, None, text, hint)


def allocate(warp: Warp, space: CellSpace, shared: Space, site: Site, blocks: int, count: int) -> Suspension:
    """Allocates columns in the block or the pair; waits until they are free, and for the peer. `shared` is the shared
    memory, whose size says how many blocks a multiprocessor has.
    """
    own = warp.block.state(Columns)
    if not is_allocatable(count):
        text = f"allocates {count} columns of tensor memory"
        warp.fault(Code.SIM_TENSOR_COLUMNS, site, None, text, "allocate 32, 64, 128, 256 or 512 columns")
    if own.relinquished is not None:
        text = f"allocates columns of tensor memory, and {own.relinquished} has given up the permit"
        warp.fault(Code.SIM_TENSOR_COLUMNS, site, None, text, "allocate before ptx.tcgen05.relinquish_alloc_permit")
    if count > own.last:
        text = f"allocates {count} columns of tensor memory after {own.last} in the same block"
        warp.fault(Code.SIM_TENSOR_COLUMNS, site, None, text, _GROW)
    own.last = count
    _check_neighbours(warp, space, shared, site, count)
    pair = peers(warp, blocks, site)
    access = Access(site, space.row.ptx, "matrix", 4)
    if len(pair) == 1:
        if _place(space, pair, count) is None:
            yield _until(lambda: _place(space, pair, count) is not None, site, space, pair, count)
        space.allocate(warp, access, count)
        return
    (other,) = [block.state(Columns) for block in pair if block is not warp.block]
    own.asking, turn, own.done, own.site = count, own.granted, None, site
    while own.granted == turn:
        if other.asking is not None and other.asking != count:
            text = f"allocates {count} columns of tensor memory, and the other block of the pair {other.asking}"
            warp.fault(Code.SIM_TENSOR_PAIR, site, None, text, "let both blocks allocate the same number")
        if other.asking == count and _place(space, pair, count) is not None:
            for block in pair:
                first = space.allocate(block.warps[0], access, count)
                state = block.state(Columns)
                state.made.append(first)
                state.asking, state.granted = None, state.granted + 1
            break
        yield Until(
            lambda: own.granted > turn or (other.asking is not None and _place(space, pair, count) is not None),
            site,
            lambda: (
                "the other block of its pair, to allocate columns together",
                "which does not allocate" if other.asking is None else _held(space, pair),
            ),
            Code.SIM_TENSOR_PAIR,
            "let a warp of each block of the pair execute the allocation",
        )
    own.done = warp.first_index, warp.launch.clock


def _until(holds: Callable[[], bool], site: Site, space: CellSpace, pair: list[Block], count: int) -> Until:
    return Until(
        holds, site, lambda: (f"{count} free columns of tensor memory", _held(space, pair)), Code.SIM_TENSOR_COLUMNS,
        "free columns first, or allocate fewer",
    )  # fmt: skip


def _held(space: CellSpace, pair: list[Block]) -> str:
    held = [sum(space.columns.get(block.rank, {}).values()) for block in pair]
    return f"of which {max(held)} of {COLUMNS} are allocated"


def _place(space: CellSpace, pair: list[Block], count: int) -> int | None:
    """Where all blocks have as many neighbouring columns free."""
    taken = sorted({item for block in pair for item in space.columns.get(block.rank, {}).items()})
    first = 0
    for start, number in taken:
        if start - first >= count:
            break
        first = max(first, start + number)
    return first if first + count <= COLUMNS else None


def release(
    warp: Warp, space: CellSpace, site: Site, address: tuple[int, int], blocks: int, count: int, is_ordered: bool
) -> None:
    """Frees columns of the warp's block, whose uses must be over; those of a pair once the warp knows that the other
    block has them, too.
    """
    lane, first = address
    if blocks == 2 and is_ordered and warp.launch.tensor_fences:
        _know_allocation(warp, site)
    held = space.columns.setdefault(warp.block.rank, {})
    if lane or held.get(first) != count:
        known = ", ".join(f"{number} from column {start} on" for start, number in sorted(held.items())) or "nothing"
        text = f"frees {count} columns of tensor memory from lane {lane}, column {first} on; the block has {known}"
        warp.fault(Code.SIM_TENSOR_COLUMNS, site, None, text, "free the whole allocation, once")
    order = warp.block.cluster.state(TensorOrder)
    region = Region(warp.block.rank, (1 << LANES) - 1, first, first + count)
    if is_ordered and (use := order.in_use(region, warp)) is not None:
        text = f"frees columns of tensor memory that {use.describe()} may still be using"
        hint = "wait for the use, and order the threads, before the columns are freed"
        warp.fault(Code.SIM_TENSOR_BUSY, site, 0, text, hint, other=use.site)
    order.forget(region)
    space.free(warp, Access(site, space.row.ptx, "matrix", 4), first, count)


def _know_allocation(warp: Warp, site: Site) -> None:
    """A fault unless the warp knows that the allocation of the other block of its pair is done."""
    cluster, rank = warp.block.cluster, warp.block.rank
    (other,) = {peer.block for peer in (*cluster.warps, *cluster.ended) if peer.block.rank == rank ^ 1}
    state = other.state(Columns)
    done = state.done
    if done is None or not (known(warp).times[done[0]] > done[1] or knows_uses(warp, other)):
        text = f"frees columns of the pair, and {cluster.name(rank ^ 1)} may still be allocating them"
        hint = "let all threads of the cluster meet after the allocation, or before columns are freed"
        warp.fault(Code.SIM_TENSOR_PAIR, site, 0, text, hint, other=state.site)


def relinquish(warp: Warp, site: Site) -> None:
    """The block allocates nothing more."""
    warp.block.state(Columns).relinquished = site
