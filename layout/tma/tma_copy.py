# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The TMA copies that move a tile between global and shared memory (CuTe's copy_traits_sm90_tma.hpp)."""

from dataclasses import dataclass
from math import gcd
from typing import Any, final

from ...base.errors import Code, LayoutError
from ..algebra.coalesce import coalesce
from ..algebra.compose import composition
from ..algebra.core import ComposedLayout, Layout, LayoutLike, Tiler, join, make_identity_layout, plain_layout
from ..algebra.integers import ScaledBasis, add, floordiv, is_static, mul, static
from ..algebra.inttuple import flatten_to_tuple, product, product_each, show, transform_leaves, wrap
from ..algebra.inverse import right_inverse
from ..algebra.product import tile_to_shape
from ..algebra.recast import recast_layout
from ..algebra.scalars import value_of
from ..algebra.swizzle import Swizzle
from ..atoms.copy_atom import CopyAtom
from ..atoms.instructions import MATRIX, ROWS
from ..atoms.tma import TmaFacts, tma_copy_atom
from ..tiling.tiled_copy import TiledCopy
from .box import Path, at_path, compute_box, unit_bases
from .tensor_map import ATOMS_OF_32, MAX_BOX, SHARED_ALIGNMENT, TensorMap, swizzle_span

_SHARED = "the stride of a mode that shares a dimension of the map"


@final
@dataclass(frozen=True, slots=True)
class TmaCopy:
    """TMA copies between tiles of `gmem`, whose values have `val_bits` bits, and shared memory.

    The tensor map has elements of `bits` bits; `basis` has a mode for each of its dimensions, innermost first: the
    extents of the box, and the modes of `gmem` for which the dimension stands. The box is that of all `multicast`
    blocks of a cluster, which load a part of it each. `swizzle_bits` bits of the addresses in shared memory are
    swizzled. `tiled_copy` partitions tiles.
    """

    gmem: Layout
    val_bits: int
    bits: int
    basis: Layout
    swizzle_bits: int
    multicast: int
    tiled_copy: TiledCopy

    @property
    def atom(self) -> CopyAtom:
        """The instruction."""
        return self.tiled_copy.atom

    @property
    def loads(self) -> bool:
        """Whether it copies to shared memory."""
        return bool(self.atom.loads)

    @property
    def values(self) -> int:
        """The values that an instruction moves, with those of all blocks of a multicast."""
        return self.tiled_copy.atom.values

    @property
    def instructions(self) -> int:
        """How many instructions move a tile."""
        return self.tiled_copy.values // self.values

    @property
    def box(self) -> tuple[int, ...]:
        """The box that each block of a multicast loads: the outermost dimensions are divided first.

        Raises `LayoutError` (E0323) if the blocks do not divide them.
        """
        box, left = [mode.size for mode in self.basis], self.multicast
        for mode in reversed(range(len(box))):
            if left % box[mode] and box[mode] % left:
                problem = f"{self.multicast} blocks cannot share the box {product_each(self.basis.shape)}"
                raise LayoutError(
                    Code.TMA_BOX, problem, "share it among a power of two of blocks, or use a larger tile"
                )
            box[mode], left = -(-box[mode] // left), -(-left // box[mode])
        return (box[0], 1) if self.atom.by_rows else tuple(box)

    @property
    def shared_dimensions(self) -> tuple[int, ...]:
        """The dimensions of the map that stand for several modes."""
        return tuple(number for number, paths in enumerate(self._paths()) if len(paths) > 1)

    @property
    def outermost_steps(self) -> dict[int, int | None]:
        """The step of the outermost mode, in coordinates, of each dimension that stands for several modes; None where
        the other modes of the dimension may reach as far.
        """
        coordinates = self.coordinates()
        modes = list(zip(flatten_to_tuple(coordinates.shape), flatten_to_tuple(coordinates.stride), strict=True))
        steps: dict[int, int | None] = {}
        for number in self.shared_dimensions:
            along = [
                (n, static(d.value, _SHARED)) for n, d in modes if isinstance(d, ScaledBasis) and d.path[0] == number
            ]
            outer = max(step for _, step in along)
            inner = [(n, step) for n, step in along if step != outer]
            known = len(along) == len(inner) + 1 and all(is_static(n) for n, _ in inner)
            steps[number] = outer if known and sum((n - 1) * step for n, step in inner) < outer else None
        return steps

    @property
    def layout_tv(self) -> Layout:
        """(block of the multicast, value) to a place in the tile."""
        values = self.tiled_copy.layout_tv[1]
        return join([composition(values, Layout(self.multicast, self._share)), values])

    def tensor_map(self, gmem: Layout | None = None, *, padded: bool = False) -> TensorMap:
        """The map of `gmem`, or of another tensor of its profile, whose integers are known; of `padded` elements.

        Raises `LayoutError` for a tensor without a map (E0322) or a box that TMA does not move (E0323).
        """
        layout = self.gmem if gmem is None else gmem
        dimensions = self.dimensions(Layout(value_of(layout.shape), value_of(layout.stride)))
        strides = tuple(stride * self.bits // 8 for _, stride in dimensions[1:])
        dims = tuple(extent for extent, _ in dimensions)
        return TensorMap(self.bits, dims, strides, self.box, self.swizzle_bits, padded)

    def dimensions(self, gmem: Layout) -> list[tuple[Any, Any]]:
        """The dimensions of the map of a tensor of the profile of `gmem`, innermost first: extents and strides in
        elements of the map. Its integers may be dynamic, but for strides of modes that share a dimension (E0207).

        Raises `LayoutError` (E0322) unless the innermost dimension is contiguous.
        """
        layout: Layout = recast_layout(gmem, self.val_bits, self.bits)
        dimensions = [_dimension(layout, paths) for paths in self._paths()]
        if not is_static(dimensions[0][1]) or dimensions[0][1] != 1:
            raise LayoutError(
                Code.TENSOR_MAP,
                f"no tensor map describes {layout}: neighbours in its tile are {dimensions[0][1]} elements apart",
                "the mode that is contiguous in shared memory must be contiguous in global memory, with a stride of 1 "
                "in its layout",
            )
        return dimensions

    def coordinates(self, gmem: Layout | None = None) -> Layout:
        """The coordinates in the map of the elements of a tensor: its shape with basis strides (CuTe's get_tma_tensor).

        A mode without a dimension has stride 0. Modes that share a dimension have their strides in units of its own;
        `LayoutError` (E0207) if they are dynamic, (E0322) if all are 0.
        """
        layout = self.gmem if gmem is None else gmem
        paths_of = {path: (number, paths) for number, paths in enumerate(self._paths()) for path in paths}

        def step(basis: ScaledBasis) -> Any:
            number, paths = paths_of.get(basis.path, (0, ()))
            if not paths:
                return 0
            stride = at_path(layout.stride, basis.path)
            if number == 0:
                from fractions import Fraction  # with decimal numbers, which take long to import

                scale = mul(stride, Fraction(self.val_bits, self.bits))
                return ScaledBasis(int(scale) if scale == int(scale) else scale, (0,))
            if len(paths) == 1:
                return ScaledBasis(1, (number,))
            strides = [value_of(at_path(layout.stride, path)) for path in paths]
            common = gcd(*(static(d, _SHARED) for d in strides))
            if not common:
                problem = f"no tensor map describes {layout}: modes with strides of 0 share a dimension"
                raise LayoutError(Code.TENSOR_MAP, problem, "repeat the elements along one mode, or use narrower tiles")
            return ScaledBasis(stride // common, (number,))

        return Layout(layout.shape, transform_leaves(step, unit_bases(layout.shape)))

    def partition_gmem(self, tiles: Layout, block: object = 0) -> tuple[Layout, Any]:
        """Tiles of the coordinates of a tensor by instructions, ((TMA,TMA_Iter),RestM,...), and where a block of a
        multicast begins. The number of the block may be dynamic.
        """
        part, start = self.tiled_copy.partition_S(tiles, 0)
        assert isinstance(part, Layout)
        return part, add(start, start_of_part(part, mul(block, self._share)))

    def partition_smem(self, tiles: LayoutLike, block: object = 0) -> tuple[LayoutLike, Any]:
        """The same of tiles in shared memory."""
        part, start = self.tiled_copy.partition_D(tiles, 0)
        return part, add(start, start_of_part(plain_layout(part), mul(block, self._share)))

    @property
    def _share(self) -> int:
        return self.values // self.multicast

    def _paths(self) -> list[tuple[Path, ...]]:
        return [tuple(basis.path for basis in flatten_to_tuple(mode.stride)) for mode in self.basis]


def in_bytes(elements: object, bits: int) -> Any:
    """A distance in elements of `bits` bits, in bytes; it is a whole number of them."""
    if bits >= 8:
        return mul(elements, bits // 8)
    return floordiv(mul(elements, bits), 8) if 8 % bits else floordiv(elements, 8 // bits)


def start_of_part(parts: Layout, value: Any) -> Any:
    """The start of a block of a multicast in a tensor ((TMA,TMA_Iter),Rest...): at a value of the first instruction."""
    return parts(((value, 0), *(0,) * (len(parts) - 1)))


def make_tma_copy(
    facts: TmaFacts,
    gmem: Layout,
    smem: LayoutLike,
    tiler: "Tiler | None" = None,
    *,
    val_bits: int,
    multicast: int = 1,
    bits: int | None = None,
    smem_bits: int | None = None,
    merge: bool = True,
) -> TmaCopy:
    """The TMA copies between tiles of `gmem` that `tiler` cuts, and `smem`, the layout of a tile in shared memory.

    Values have `val_bits` bits, elements of the map `bits` (default: as many), and in shared memory `smem_bits`, where
    TMA pads them. `smem` may be swizzled as TMA does it:
    S<B,4,3> of bytes, with B up to 3. The default tiler is the shape of `smem`. `multicast` blocks of a cluster load a
    part of each box for all of them. With `merge`, neighbouring modes that the tile covers are one dimension of the
    map, as in CuTe: a tile that is shifted along one of them then has elements of the next row, not zeros.

    Raises `LayoutError` (E0323) where no instruction moves a part of the tile: sizes differ, TMA has no such swizzle,
    or `smem` begins with a mode in which the tile does not take neighbours of `gmem`; and the errors of composition.
    """
    outer = plain_layout(smem)
    to_gmem: Layout = composition(
        make_identity_layout(gmem.shape), product_each(outer.shape) if tiler is None else tiler
    )
    return copy_of_tile(
        facts, gmem, smem, to_gmem, val_bits=val_bits, multicast=multicast, bits=bits, merge=merge, smem_bits=smem_bits
    )


def contiguous_mode(gmem: Layout, smem: LayoutLike, tiler: Tiler) -> Path | None:
    """The mode of `gmem` along which neighbours in shared memory lie, in a tile that `tiler` cuts; None if they lie
    along none. Raises `LayoutError` as `make_tma_copy` does.
    """
    to_gmem: Layout = composition(make_identity_layout(gmem.shape), tiler)
    steps = wrap(coalesce(composition(to_gmem, right_inverse(plain_layout(smem)))).stride)
    return steps[0].path if isinstance(steps[0], ScaledBasis) else None


def copy_of_tile(
    facts: TmaFacts,
    gmem: Layout,
    smem: LayoutLike,
    to_gmem: Layout,
    *,
    val_bits: int,
    multicast: int,
    bits: int | None,
    merge: bool = True,
    smem_bits: int | None = None,
) -> TmaCopy:
    """The TMA copies of the tile that `to_gmem` takes to coordinates of `gmem`; see `make_tma_copy`. Values take
    `smem_bits` in shared memory (default: as many as in global memory): TMA can pad elements to bytes.
    """
    bits, placed = val_bits if bits is None else bits, val_bits if smem_bits is None else smem_bits
    outer, swizzle_bits = plain_layout(smem), _swizzle_bits(smem, placed)
    if product(to_gmem.shape) != outer.size:
        problem = f"the tile {show(to_gmem.shape)} and the shared memory {outer} differ in size"
        raise LayoutError(Code.TMA_BOX, problem, "give shared memory the shape of the tile")
    order: Layout = right_inverse(outer)
    row = min(8 * swizzle_span(swizzle_bits) // max(bits, placed), MAX_BOX) if swizzle_bits else MAX_BOX
    basis = compute_box(gmem, composition(to_gmem, order), val_bits, bits, row, merge=merge)
    values = basis.size * bits // val_bits
    atom = tma_copy_atom(facts, values * val_bits).with_value_bits(val_bits)
    places: Layout = tile_to_shape(join([composition(order, values)]), outer.size)
    tiled = TiledCopy(atom, join([Layout(1, 0), places]), product_each(to_gmem.shape))
    copy = TmaCopy(gmem, val_bits, bits, basis, swizzle_bits, multicast, tiled)
    if atom.by_rows and (len(basis) != MATRIX or basis[1].size != ROWS or copy.instructions != 1):
        problem = f"{atom.name} moves {ROWS} whole rows of a matrix, not a tile {show(to_gmem.shape)} to {outer}"
        raise LayoutError(Code.TMA_BOX, problem, f"make a map of a tile ({ROWS},n), whose rows are contiguous")
    _ = copy.box  # raises where the blocks of a multicast cannot share it
    _check_addresses(copy, outer, placed)
    return copy


def _swizzle_bits(smem: LayoutLike, val_bits: int) -> int:
    """The bits that a layout of shared memory swizzles. `LayoutError` (E0323) for a swizzle that TMA does not have."""
    if not isinstance(smem, ComposedLayout):
        return 0
    match smem.inner:
        case Swizzle(2, base, 2) if smem.offset == 0 and val_bits << base == 256:
            return ATOMS_OF_32
        case Swizzle(bits, base, 3) if smem.offset == 0 and bits <= 3 and val_bits << base == 128:
            return bits
        case _:
            pass
    base = (128 // val_bits).bit_length() - 1
    raise LayoutError(
        Code.TMA_BOX,
        f"TMA does not swizzle shared memory as {smem}",
        f"its swizzles are S<1,{base},3>, S<2,{base},3> and S<3,{base},3> for values of {val_bits} bits, as in the "
        "layouts of wgmma_smem_atom",
    )


def _dimension(gmem: Layout, paths: tuple[Path, ...]) -> tuple[Any, Any]:
    """Extent and stride, in elements, of the dimension that stands for some modes of a tensor."""
    extent, stride = at_path(gmem.shape, paths[0]), at_path(gmem.stride, paths[0])
    for path in paths[1:]:
        s, d = at_path(gmem.shape, path), at_path(gmem.stride, path)
        common = gcd(static(stride, _SHARED), static(d, _SHARED))
        if common == 0:
            extent = s
            continue
        extent = (extent - 1) * (stride // common) + (s - 1) * (d // common) + 1
        stride = common
    return extent, stride


def _check_addresses(copy: TmaCopy, smem: Layout, bits: int) -> None:
    """Raises `LayoutError` (E0323) if an instruction of an aligned tile begins at an address that TMA does not take."""
    for block in range(copy.multicast):
        part, start = copy.partition_smem(smem, block)
        iterations = plain_layout(part)[0][1]
        for i in range(iterations.size):
            offset = (start + iterations(i)) * bits
            if offset % (8 * SHARED_ALIGNMENT):
                raise LayoutError(
                    Code.TMA_BOX,
                    f"a TMA copy would begin {offset // 8} bytes after the tile in shared memory",
                    f"addresses are multiples of {SHARED_ALIGNMENT} bytes: use a larger tile, or another layout",
                )
