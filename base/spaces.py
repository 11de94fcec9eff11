# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory spaces: one row each, with every fact that other layers need.

Readers never ask for the name of a space. They match over the closed enumerations of a row (`AddressForm`, `Sharer`,
`Allocation`), so a row that a package brings works wherever its form, its sharer and its allocation do, and a new
member of an enumeration is an error of the type checker in each reader that lacks a case for it.

A package adds rows by an entry point of the group `tilefold.spaces`: a function without arguments that returns `Space`
records. They are looked up when no row here has a name, and cannot change a row.

An access of a warp costs wavefronts of shared memory or sectors of global memory. Shared memory has 32 banks of 4
bytes; a wavefront serves each bank once, and any number of lanes that read one word of a bank (CUDA C++ Programming
Guide, Shared Memory). Accesses of 8 bytes are served by half warps and of 16 bytes by quarter warps; ldmatrix and
stmatrix serve each 8x8 matrix, of eight 16-byte rows, by itself. Global memory is moved in sectors of 32 bytes; one
that several lanes touch is moved once (CUDA C++ Best Practices Guide, Coalesced Access to Global Memory).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TypeAlias, final

from .errors import Code, TilefoldError
from .packages import installed_records
from .target import BANK_BYTES, BANKS, MAX_CLUSTER, MAX_LOCAL_BYTES, SECTOR_BYTES, WARP, Target, TargetFamily

GROUP = "tilefold.spaces"
"""The group of the entry points (Python Packaging User Guide, Entry points specification)."""


@final
@dataclass(frozen=True, slots=True)
class Bytes:
    """An address is a number of bytes, of `bits` bits."""

    bits: int

    @property
    def unit_bits(self) -> int:
        """The bits of data that addresses which differ by 1 are apart."""
        return 8


@final
@dataclass(frozen=True, slots=True)
class Cells:
    """An address is the lane of a cell in its upper 16 bits and the column in its lower 16 (PTX ISA, Tensor Memory
    Addressing). There are `lanes` times `columns` cells of `unit_bits` each. Instructions that a warp executes reach
    `warp_lanes` lanes: the warp of number w in its warpgroup those from `warp_lanes` * w on.
    """

    lanes: int
    columns: int
    warp_lanes: int
    unit_bits: int

    @property
    def bits(self) -> int:
        """The bits of an address."""
        return 2 * LANE_SHIFT


AddressForm: TypeAlias = Bytes | Cells
"""The form of an address."""

LANE_SHIFT = 16
"""The bits of an address of a cell that hold the column."""


class Sharer(Enum):
    """The threads that have a memory in common: each other group of them has another one."""

    THREAD = "thread"
    BLOCK = "block"
    CLUSTER = "cluster"
    GRID = "grid"


class Allocation(Enum):
    """How memory of a space comes to a kernel."""

    PARAMETER = "parameter"
    """The host allocates it and passes addresses."""
    STATIC = "static"
    """The kernel declares it; its place is known before the launch."""
    RUN_TIME = "run time"
    """An instruction allocates it and returns its address."""
    COMPILER = "compiler"
    """It is the variables of a thread, for which the compiler finds a place."""
    MAPPED = "mapped"
    """It is memory of another space: an instruction makes an address of it from an address there."""
    CONSTANT = "constant"
    """It is part of the program, and nothing writes it."""


class Traffic(Enum):
    """The unit in which accesses are moved and counted; the value is its name in tables."""

    WAVEFRONTS = "wavefronts"
    """Passes over banks (CUDA C++ Programming Guide, Shared Memory)."""
    SECTORS = "sectors"
    """32 bytes (CUDA C++ Best Practices Guide, Coalesced Access to Global Memory)."""
    UNCOUNTED = ""
    """Nothing is known of the costs."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Space:
    """A memory space.

    `name` is that of tensors in it (CuTe), `ptx` that of the state space (PTX ISA, State Spaces), `pointer` that of
    CuTe's pointers to it, `llvm` its number (User Guide for NVPTX, Address Spaces).

    `targets` are those that have the space. `limit` returns how many units a sharer can have on a target; None if the
    target does not limit it. Contents are undefined until something writes them, except of constant memory. Tensor
    types name only spaces that instructions reach: those that `has_tensors`.

    Raises `TilefoldError` (E0320) for addresses that no register holds.
    """

    name: str
    ptx: str
    pointer: str
    llvm: int
    form: AddressForm
    sharer: Sharer
    allocation: Allocation
    has_tensors: bool
    targets: TargetFamily
    limit: Callable[[Target], int | None]

    def __post_init__(self) -> None:
        unit, bits = self.unit_bits, self.address_bits
        if unit < 8 or unit & (unit - 1) or bits not in (32, 64) or not self.name.isidentifier():
            raise TilefoldError(
                Code.ATOM_PACKAGE,
                f"the space {self.name!r} has units of {unit} bits and addresses of {bits} bits",
                "units have a power of two of bits from 8 on, addresses 32 or 64 bits",
            )

    def __reduce__(self) -> tuple[Callable[[str], "Space"], tuple[str]]:
        """Copies and pickles are the row itself."""
        return known_space, (self.name,)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def keyword(self) -> str:
        """The name of the state space as an identifier: `shared_cluster`."""
        return self.ptx.replace("::", "_")

    @property
    def llvm_pointer(self) -> str:
        """The type of an address in LLVM IR: of a cell a number; variables of a thread are generic until LLVM promotes
        them.
        """
        match self.form:
            case Cells():
                return f"i{self.address_bits}"
            case Bytes():
                pass
        match self.allocation:
            case Allocation.COMPILER:
                return "ptr"
            case (
                Allocation.PARAMETER | Allocation.STATIC | Allocation.RUN_TIME | Allocation.MAPPED | Allocation.CONSTANT
            ):
                return f"ptr addrspace({self.llvm})"

    @property
    def traffic(self) -> Traffic:
        """How its accesses are counted."""
        match self.allocation:
            case Allocation.STATIC | Allocation.MAPPED:
                return Traffic.WAVEFRONTS
            case Allocation.PARAMETER | Allocation.CONSTANT:
                return Traffic.SECTORS
            case Allocation.COMPILER | Allocation.RUN_TIME:
                return Traffic.UNCOUNTED

    @property
    def unit_bits(self) -> int:
        """The bits of data that addresses which differ by 1 are apart."""
        return self.form.unit_bits

    @property
    def address_bits(self) -> int:
        """The bits of an address."""
        return self.form.bits

    def step_bits(self, bits: int) -> int:
        """The distance between neighbours of `bits` each, in eighths of a unit of addresses: of bytes, in bits."""
        return bits * 8 // self.unit_bits


_EVERY = TargetFamily(0, 0)


def _shared_bytes(target: Target) -> int:
    return target.max_shared_bytes


def _cluster_bytes(target: Target) -> int:
    return MAX_CLUSTER * target.max_shared_bytes if target.has_clusters else 0


def _tensor_cells(target: Target) -> int:
    """512 columns of 128 lanes (PTX ISA, Tensor Memory)."""
    return 512 * 128 if target.sm // 10 in (10, 11) and target.suffix else 0


LOCAL_WINDOW = 3 << 30
"""Where the simulator puts a thread's own memory among generic addresses; PTX leaves that open. Those of shared memory
are below, those of global memory from 2**32 on.
"""

GMEM = Space(
    "gmem", "global", "gmem_ptr", llvm=1, form=Bytes(64), sharer=Sharer.GRID,
    allocation=Allocation.PARAMETER, has_tensors=True, targets=_EVERY, limit=lambda target: None,
)  # fmt: skip
SMEM = Space(
    "smem", "shared", "smem_ptr", llvm=3, form=Bytes(32), sharer=Sharer.BLOCK,
    allocation=Allocation.STATIC, has_tensors=True, targets=_EVERY, limit=_shared_bytes,
)  # fmt: skip
RMEM = Space(
    "rmem", "local", "ptr", llvm=5, form=Bytes(64), sharer=Sharer.THREAD,
    allocation=Allocation.COMPILER, has_tensors=True, targets=_EVERY,
    limit=lambda target: MAX_LOCAL_BYTES,
)  # fmt: skip
DSMEM = Space(
    "dsmem", "shared::cluster", "smem_ptr", llvm=7, form=Bytes(32),
    sharer=Sharer.CLUSTER, allocation=Allocation.MAPPED, has_tensors=True,
    targets=TargetFamily(90, 78), limit=_cluster_bytes,
)  # fmt: skip
CMEM = Space(
    "cmem", "const", "ptr", llvm=4, form=Bytes(64), sharer=Sharer.GRID,
    allocation=Allocation.CONSTANT, has_tensors=False, targets=_EVERY,
    limit=lambda target: 64 * 1024,
)  # fmt: skip
TMEM = Space(
    "tmem", "tmem", "tmem_ptr", llvm=6, form=Cells(lanes=128, columns=512, warp_lanes=32, unit_bits=32),
    sharer=Sharer.BLOCK, allocation=Allocation.RUN_TIME, has_tensors=True,
    targets=TargetFamily(100, 86, "f"), limit=_tensor_cells,
)  # fmt: skip

SPACES: Mapping[str, Space] = MappingProxyType({row.name: row for row in (GMEM, SMEM, RMEM, DSMEM, CMEM, TMEM)})
"""The built-in rows by name."""


ADDRESSED = (GMEM, SMEM, RMEM, DSMEM)
"""The spaces that loads and stores of PTX reach, and registers."""


@cache
def installed_spaces() -> Mapping[str, Space]:
    """The rows of installed packages by name. Raises `TilefoldError` (E0320), which names the package."""
    spaces: dict[str, Space] = {}
    for where, row in installed_records(GROUP, Space):
        taken = {space.keyword for space in (*SPACES.values(), *spaces.values())}
        if row.name in SPACES or row.name in spaces or row.keyword in taken:
            raise TilefoldError(Code.ATOM_PACKAGE, f"{where}: there already is a space {row.name}")
        spaces[row.name] = row
    return MappingProxyType(spaces)


def tensor_spaces() -> Iterator[Space]:
    """The spaces that tensors can be in, those of packages last."""
    yield from (row for row in (*SPACES.values(), *installed_spaces().values()) if row.has_tensors)


def space_named(name: str) -> Space | None:
    """The space that types of tensors call `name`; None for an unknown name. Raises `TilefoldError` (E0320)."""
    row = SPACES.get(name) or installed_spaces().get(name)
    return row if row is not None and row.has_tensors else None


def space_of_pointer(keyword: str) -> Space | None:
    """The space of `!ptx.ptr<keyword>`; None if there is none. Raises `TilefoldError` (E0320)."""
    built_in = next((row for row in SPACES.values() if row.keyword == keyword and row.has_tensors), None)
    return built_in or next((row for row in installed_spaces().values() if row.keyword == keyword), None)


def traffic_of(ptx: str) -> Traffic:
    """How accesses to the state space of a name are counted. Raises `TilefoldError` (E0320)."""
    built_in = next((row for row in SPACES.values() if row.ptx == ptx), None)
    return (built_in or next(row for row in installed_spaces().values() if row.ptx == ptx)).traffic


def known_space(name: str) -> Space:
    """The row of a name that is known to exist."""
    return SPACES.get(name) or installed_spaces()[name]


def wavefronts(addresses: Sequence[int], lanes: Sequence[int], width: int) -> tuple[int, int]:
    """Wavefronts of an access of `width` bytes by `lanes` at byte `addresses`, and the least possible for their
    number."""
    together = lanes_together(width)
    served: dict[int, set[int]] = {}
    for lane, address in zip(lanes, addresses, strict=True):
        first = address // BANK_BYTES
        served.setdefault(lane // together, set()).update(range(first, first + max(1, width // BANK_BYTES)))
    total = 0
    for words in served.values():
        banks = [0] * BANKS
        for word in words:
            banks[word % BANKS] += 1
        total += max(banks)
    return total, len(served)


def find_worst_bank(addresses: Sequence[int], lanes: Sequence[int], width: int) -> tuple[int, int, list[int]]:
    """The bank that holds up an access the longest: the words of it that are wanted together, its number, and for each
    of these words the first lane that wants it.
    """
    together = lanes_together(width)
    words: dict[tuple[int, int], dict[int, int]] = {}
    for lane, address in zip(lanes, addresses, strict=True):
        first = address // BANK_BYTES
        for word in range(first, first + max(1, width // BANK_BYTES)):
            words.setdefault((lane // together, word % BANKS), {}).setdefault(word, lane)
    (_, bank), wanted = max(words.items(), key=lambda entry: len(entry[1]))
    return len(wanted), bank, sorted(wanted.values())


def lanes_together(width: int) -> int:
    """How many lanes are served together in an access of `width` bytes each."""
    return WARP if width <= BANK_BYTES else BANKS * BANK_BYTES // width


def sectors(addresses: Sequence[int], width: int) -> tuple[int, int]:
    """Sectors that an access of `width` bytes at byte `addresses` touches, and the least that could hold the bytes.

    Addresses are multiples of `width`, and bytes that several lanes access count once.
    """
    touched = {address // SECTOR_BYTES for address in addresses}
    return len(touched), -(-len(set(addresses)) * width // SECTOR_BYTES)
