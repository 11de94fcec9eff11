# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of an access of a warp to shared and to global memory.

Shared memory has 32 banks of 4 bytes; a wavefront serves each bank once, and any number of lanes that read one word
of a bank (CUDA C++ Programming Guide, Shared Memory). Accesses of 8 bytes are served by half warps and of 16 bytes by
quarter warps; ldmatrix and stmatrix serve each 8x8 matrix, of eight 16-byte rows, by itself.

Global memory is moved in sectors of 32 bytes; one that several lanes touch is moved once (CUDA C++ Best Practices
Guide, Coalesced Access to Global Memory).
"""

from collections.abc import Sequence

from ...base.target import BANK_BYTES, BANKS, SECTOR_BYTES, WARP


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
