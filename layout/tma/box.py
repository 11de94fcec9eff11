# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The box that one TMA copy moves, and the modes of a tensor that are the dimensions of its map.

The box is the longest run of shared memory whose elements are a box of the tensor (CuTe's construct_tma_gbasis).
"""

from math import gcd

from ...base.errors import Code, LayoutError
from ..algebra.coalesce import coalesce, continues
from ..algebra.core import Layout, make_identity_layout
from ..algebra.integers import AnyTuple, IntTuple, ScaledBasis, is_static
from ..algebra.inttuple import flatten_to_tuple, wrap
from ..algebra.recast import recast_layout
from ..algebra.scalars import value_of
from .tensor_map import MAX_BOX, MAX_RANK

Path = tuple[int, ...]
"""A mode of a tensor, the outermost index first."""


def compute_box(
    gmem: Layout, to_mode: Layout, val_bits: int, bits: int, row: int = MAX_BOX, *, merge: bool = True
) -> Layout:
    """The extents of the box in elements of `bits` bits, and the modes of `gmem`, as basis strides: a mode for each
    dimension of the map, innermost first.

    `to_mode` takes positions in shared memory to coordinates of `gmem`, both of values of `val_bits` bits. With `merge`
    modes that are contiguous in both are one dimension, as in CuTe, but the innermost has at most `row` elements then:
    those that a swizzle spans. Without it, a mode longer than a box can be takes several instructions; CuTe C++ asserts
    that there is none. Modes of the tensor outside the tile follow with extent 1. Where there are too many, the last
    dimension stands for the rest.

    Raises `LayoutError` (E0323) if neighbours in shared memory are not adjacent in the tensor, or the last dimension
    stands for modes that the tile extends along as no box does.
    """
    extents, paths = _run(gmem, to_mode, None if merge else MAX_BOX * bits // val_bits)
    strides = tuple(at_path(gmem.stride, path) for path in paths)
    tile: Layout = recast_layout(Layout(extents, strides), val_bits, bits)
    modes = _merged(gmem, tile, paths, row) if merge else _apart(tile, paths)
    modes += [([1], [path]) for path in _outside(recast_layout(gmem, val_bits, bits), paths)]
    if len(modes) >= MAX_RANK:
        rest = [extent for extents, _ in modes[MAX_RANK - 1 :] for extent in extents]
        of_rest = [path for _, paths in modes[MAX_RANK - 1 :] for path in paths]
        if len(modes) > MAX_RANK and not _can_share(gmem, rest, of_rest):
            raise LayoutError(
                Code.TMA_BOX,
                f"a tensor map has {MAX_RANK} dimensions; the tile extends along more modes of {gmem}",
                "use a tile of one element along some of them",
            )
        modes[MAX_RANK - 1 :] = [(rest, of_rest)]
    shape = [_leaf(extents, number) for number, (extents, _) in enumerate(modes)]
    stride = [_leaf([ScaledBasis(1, path) for path in paths], number) for number, (_, paths) in enumerate(modes)]
    return Layout(tuple(shape), tuple(stride))


def _leaf(items: list[AnyTuple], number: int) -> AnyTuple:
    return items[0] if len(items) == 1 and number < MAX_RANK - 1 else tuple(items)


def _can_share(gmem: Layout, extents: list[int], paths: list[Path]) -> bool:
    """Whether one dimension can stand for modes along which a tile has these extents: the tile extends along one of
    them at most, whose neighbours are those of the dimension, and tiles do not reach beyond that mode.
    """
    strides = [value_of(at_path(gmem.stride, path)) for path in paths]
    wide = [number for number, extent in enumerate(extents) if extent > 1]
    if not wide:
        return True
    (number, *others), shape = wide, value_of(at_path(gmem.shape, paths[wide[0]]))
    if others or not all(map(is_static, (*strides, shape))):
        return False
    return strides[number] == gcd(*strides) and shape % extents[number] == 0


def _apart(tile: Layout, paths: list[Path]) -> list[tuple[list[int], list[Path]]]:
    """The dimensions of the box, one for each mode."""
    return [([extent], [path]) for extent, path in zip(wrap(tile.shape), paths, strict=True)]


def _run(gmem: Layout, to_mode: Layout, most: int | None) -> tuple[tuple[int, ...], list[Path]]:
    """The extents of the longest run in shared memory that is a box of `gmem` with at most `most` values along a mode
    that they divide, and the modes along which it goes.
    """
    run: Layout = coalesce(to_mode)
    extents: list[int] = []
    paths: list[Path] = []
    for extent, stride in zip(wrap(run.shape), wrap(run.stride), strict=True):
        basis = stride if isinstance(stride, ScaledBasis) else ScaledBasis(stride, ())
        if not is_static(basis.value) or basis.value != 1:
            break  # no instruction begins in the middle of a mode
        paths.append(basis.path)
        if most is not None and extent > most and extent % most == 0:
            extents.append(most)  # and other instructions move the rest of the mode
            break
        extents.append(extent)
    if not paths:
        raise LayoutError(
            Code.TMA_BOX,
            f"no TMA copy can move this tile: neighbours in shared memory are not adjacent in {gmem}",
            "let shared memory begin with a mode along which the tile's elements are neighbours in the tensor",
        )
    return tuple(extents), paths


def _merged(gmem: Layout, tile: Layout, paths: list[Path], row: int) -> list[tuple[list[int], list[Path]]]:
    """The dimensions of the box. Neighbouring modes are one dimension where both the tile and the tensor are contiguous
    across them: between the end of a row and the next one lies nothing that would be copied too.
    """
    modes: list[tuple[list[int], list[Path]]] = []
    size, first = 0, None
    for extent, stride, path in zip(wrap(tile.shape), wrap(tile.stride), paths, strict=True):
        if modes and size * extent <= (row if len(modes) == 1 else MAX_BOX) and continues(size, first, stride):
            extents, before = modes[-1]
            if continues(at_path(gmem.shape, before[-1]), at_path(gmem.stride, before[-1]), at_path(gmem.stride, path)):
                extents.append(extent)
                before.append(path)
                size *= extent
                continue
        modes.append(([extent], [path]))
        size, first = extent, stride
    return modes


def _outside(gmem: Layout, paths: list[Path]) -> list[Path]:
    """The modes of the tensor that the box does not extend along, but that have several elements."""
    leaves = zip(*map(flatten_to_tuple, (gmem.shape, gmem.stride, unit_bases(gmem.shape))), strict=True)
    return [
        basis.path
        for extent, stride, basis in leaves
        if basis.path not in paths and not _is(extent, 1) and not _is(stride, 0)
    ]


def _is(x: object, value: int) -> bool:
    return is_static(x) and x == value


def unit_bases(shape: IntTuple) -> AnyTuple:
    """The unit basis of each mode of a shape, also of one that is an integer."""
    bases = make_identity_layout(shape).stride
    return bases if isinstance(bases, tuple) else ScaledBasis(1, ())


def at_path(tree: AnyTuple, path: Path) -> AnyTuple:
    """The leaf of a nested tuple at a path."""
    for index in path:
        tree = tree[index]
    return tree
