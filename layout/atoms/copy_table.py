# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The copy atoms of tilefold, by their CuTe names."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from .bulk_copy import BULK_COPIES, bulk_copy
from .copy_atom import CopyAtom
from .cp_async import cp_async
from .ldmatrix import ldmatrix, movmatrix, stmatrix
from .ldmatrix_bytes import ldmatrix_bytes, ldmatrix_unpacked, stmatrix_bytes
from .universal import auto_vectorizing_copy, universal_copy


def _all() -> Iterator[tuple[str, Callable[[], CopyAtom]]]:
    for bits in (8, 16, 32, 64, 128):
        yield f"UniversalCopy<uint{bits}_t>", partial(universal_copy, bits)
    yield "DefaultCopy", partial(auto_vectorizing_copy, None)
    yield "AutoVectorizingCopy", auto_vectorizing_copy
    for bits in (8, 16, 32, 64):
        yield f"AutoVectorizingCopyWithAssumedAlignment<{bits}>", partial(auto_vectorizing_copy, bits)
    for operator, word in (("ca", "CACHEALWAYS"), ("cg", "CACHEGLOBAL")):
        for size in (4, 8, 16):
            for zfill in (False, True):
                name = f"SM80_CP_ASYNC_{word}{'_ZFILL' if zfill else ''}<uint{8 * size}_t>"
                yield name, partial(cp_async, operator, size, zfill)
    for n in (1, 2, 4):
        yield f"SM75_U32x{n}_LDSM_N", partial(ldmatrix, n)
        yield f"SM75_U16x{2 * n}_LDSM_T", partial(ldmatrix, n, True)
        yield f"SM90_U32x{n}_STSM_N", partial(stmatrix, n)
        yield f"SM90_U16x{2 * n}_STSM_T", partial(stmatrix, n, True)
    yield "SM75_U32x1_MOVM_T", movmatrix
    for n in (1, 2):
        yield f"SM100_U8x{8 * n}_LDSM_T", partial(ldmatrix_bytes, n)
    for n in (1, 2, 4):
        yield f"SM100_U8x{4 * n}_STSM_T", partial(stmatrix_bytes, n)
        for bits in (4, 6):
            yield f"SM100_SU{bits}_DU8x16_x{n}_LDSM_N", partial(ldmatrix_unpacked, bits, n)
    for name in BULK_COPIES:
        yield name, partial(bulk_copy, name)


COPY_ATOMS: Mapping[str, Callable[[], CopyAtom]] = MappingProxyType(dict(_all()))
"""How to make each copy atom, for values of one bit, by its CuTe name."""
