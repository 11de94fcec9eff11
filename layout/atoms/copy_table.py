# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The copy atoms of tilefold, by their CuTe names."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from types import MappingProxyType

from .bulk_copy import BULK_COPIES, bulk_copy, cp_async, cp_async_name
from .copy_atom import MOVE_BITS, CopyAtom
from .instructions import CP_ASYNC_BYTES
from .ldmatrix import (
    MOVMATRIX_NAME,
    ldmatrix,
    ldmatrix_bytes,
    ldmatrix_bytes_name,
    ldmatrix_columns,
    ldmatrix_columns_name,
    ldmatrix_name,
    ldmatrix_unpacked,
    ldmatrix_unpacked_name,
    movmatrix,
    stmatrix,
    stmatrix_bytes,
    stmatrix_bytes_name,
    stmatrix_name,
)
from .tmem_copy import CP_SHAPES, SHAPES, tmem_cp, tmem_cp_name, tmem_load, tmem_move_name, tmem_store
from .universal import (
    auto_vectorizing_copy,
    auto_vectorizing_name,
    universal_copy,
    universal_name,
    wide_move,
    wide_name,
)


def _all() -> Iterator[tuple[str, Callable[[], CopyAtom]]]:
    for bits in MOVE_BITS:
        yield universal_name(bits), partial(universal_copy, bits)
    for bits in (None, 128, 8, 16, 32, 64):
        yield auto_vectorizing_name(bits), partial(auto_vectorizing_copy, bits)
    for cache, size, zfill in product(CP_ASYNC_BYTES, (4, 8, 16), (False, True)):
        yield cp_async_name(cache, size, zfill), partial(cp_async, cache, size, zfill)
    for n in (1, 2, 4):
        for transposed in (False, True):
            yield ldmatrix_name(n, transposed), partial(ldmatrix, n, transposed)
        for transposed in (False, True):
            yield stmatrix_name(n, transposed), partial(stmatrix, n, transposed)
    yield MOVMATRIX_NAME, movmatrix
    for n in (1, 2):
        yield ldmatrix_bytes_name(n), partial(ldmatrix_bytes, n)
        yield ldmatrix_columns_name(n), partial(ldmatrix_columns, n)
    for n in (1, 2, 4):
        yield stmatrix_bytes_name(n), partial(stmatrix_bytes, n)
        for bits in (4, 6):
            yield ldmatrix_unpacked_name(bits, n), partial(ldmatrix_unpacked, bits, n)
    for name, loads in BULK_COPIES.items():
        yield name, partial(bulk_copy, loads)
    for loads in (True, False):
        yield wide_name(loads), partial(wide_move, loads)


COPY_ATOMS: Mapping[str, Callable[[], CopyAtom]] = MappingProxyType(dict(_all()))
"""How to make each copy atom, for values of one bit, by its CuTe name."""


def _of_tensor_memory() -> Iterator[tuple[str, Callable[[], CopyAtom]]]:
    for shape, (_, _, _, most) in SHAPES.items():
        for num, packs in product([1 << i for i in range(most.bit_length())], (False, True)):
            yield tmem_move_name(True, shape, num, packs), partial(tmem_load, shape, num, packs)
            yield tmem_move_name(False, shape, num, packs), partial(tmem_store, shape, num, packs)
    for word, blocks in product(CP_SHAPES, (1, 2)):
        yield tmem_cp_name(word, blocks), partial(tmem_cp, word, blocks)


TMEM_COPIES: Mapping[str, Callable[[], CopyAtom]] = MappingProxyType(dict(_of_tensor_memory()))
"""The same for the copies that reach tensor memory."""
