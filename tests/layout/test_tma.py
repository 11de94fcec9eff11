# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies: each element lands in its place, and tensors and tiles without a map are refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import Code, LayoutError
from tilefold.base.spaces import GMEM
from tilefold.layout.algebra.core import Layout, make_ordered_layout, plain_layout
from tilefold.layout.algebra.integers import Unknown, mul
from tilefold.layout.algebra.inttuple import flatten_to_tuple
from tilefold.layout.algebra.modes import group_modes
from tilefold.layout.algebra.product import tile_to_shape
from tilefold.layout.atoms.tma import TMA_ATOMS, TmaFacts, tma_copy_atom
from tilefold.layout.atoms.wgmma_smem import wgmma_smem_atom
from tilefold.layout.tiling.partition import local_tile
from tilefold.layout.tma.launch_int import LaunchInt
from tilefold.layout.tma.partition import compute_multicast_mask, tma_partition
from tilefold.layout.tma.recipe import MAP_ELEMENTS, MapRecipe
from tilefold.layout.tma.tensor_map import TensorMap
from tilefold.layout.tma.tma_copy import TmaCopy, make_tma_copy

from tests.oracle.tma_model import moves_tiles

LOAD = TmaFacts(loads=True, multicast=False, reduction="")
ROWS = Layout((4096, 2048), (2048, 1))


@st.composite
def _cases(draw: st.DrawFn) -> tuple[TmaCopy, Layout, tuple[int, ...]] | None:
    """A copy of values of 32 bits with its layout of shared memory and its tiler; None for what is refused."""
    rank = draw(st.integers(1, 4))
    order = draw(st.permutations(range(rank)))
    fastest = order.index(0)
    tiler = tuple(draw(st.sampled_from([4, 8, 16] if mode == fastest else [1, 2, 3, 8])) for mode in range(rank))
    shape = tuple(draw(st.integers(1, 2 * tile + 1)) for tile in tiler)
    stride, step = [0] * rank, 1
    for mode in sorted(range(rank), key=order.__getitem__):
        stride[mode] = step
        step *= shape[mode] if draw(st.booleans()) else -(-shape[mode] // 8) * 8
    of_smem = order if draw(st.integers(0, 4)) else draw(st.permutations(range(rank)))
    smem = make_ordered_layout(tiler, tuple(of_smem))
    multicast = draw(st.sampled_from([1, 1, 1, 2, 4]))
    instruction = TmaFacts(loads=True, multicast=multicast > 1, reduction="")
    try:
        copy = make_tma_copy(instruction, Layout(shape, tuple(stride)), smem, tiler, val_bits=32, multicast=multicast)
        copy.tensor_map()
    except LayoutError as error:
        if error.code not in (Code.TMA_BOX.id, Code.TENSOR_MAP.id):
            raise
        return None
    return copy, smem, tiler


@given(_cases())
def test_every_element_lands_in_its_place(case: tuple[TmaCopy, Layout, tuple[int, ...]] | None) -> None:
    assert case is None or moves_tiles(*case)


@given(_cases(), st.data())
def test_maps_of_extents_and_strides_at_run_time(
    case: tuple[TmaCopy, Layout, tuple[int, ...]] | None, data: st.DataObject
) -> None:
    """A copy that is made without some of the integers moves each element to its place once a launch has them, by the
    map that its recipe gives then.
    """
    if case is None:
        return
    known, smem, tiler = case
    shape, stride = (flatten_to_tuple(part) for part in (known.gmem.shape, known.gmem.stride))
    hides = st.lists(st.booleans(), min_size=len(shape), max_size=len(shape))
    hidden = (data.draw(hides), [step != 1 and hide for step, hide in zip(stride, data.draw(hides), strict=True)])

    def replaced(make: Callable[[str, int], Any]) -> Layout:
        """The tensor with what `make` gives for the name and the value of each integer that is hidden."""
        parts: list[Any] = []
        for part, (values, which) in enumerate(zip((shape, stride), hidden, strict=True)):
            made = [make(f"v{part}{i}", x) if w else x for i, (x, w) in enumerate(zip(values, which, strict=True))]
            parts.append(tuple(made))
        return Layout(*parts)

    try:
        unknown = replaced(lambda _, value: Unknown(32, 4 if value % 4 == 0 else 1))
        copy = make_tma_copy(TMA_ATOMS[known.atom.name], unknown, smem, tiler, val_bits=32, multicast=known.multicast)
        dimensions = copy.dimensions(replaced(lambda name, _: LaunchInt(name)))
    except LayoutError as error:
        if error.code not in (Code.TMA_BOX, Code.TENSOR_MAP, Code.DYNAMIC_UNSUPPORTED):
            raise
        return
    dims, strides = tuple(extent for extent, _ in dimensions), tuple(mul(step, 4) for _, step in dimensions[1:])
    values = {f"v{part}{i}": x for part, numbers in enumerate((shape, stride)) for i, x in enumerate(numbers)}
    try:  # the recipe refuses a stride that it knows, a launch the others
        recipe = MapRecipe("A", MAP_ELEMENTS["f32"], dims, strides, copy.box, copy.swizzle_bits)
        placed = recipe.place(0, values)
    except LayoutError as error:  # a mode that the copy could leave out where its extent or stride was known
        if error.code is not Code.TENSOR_MAP:
            raise
        return
    launched = replace(copy, gmem=Layout(shape, stride))
    assert placed.map == launched.tensor_map()
    assert moves_tiles(launched, smem, tiler)


def test_a_mode_of_unknown_extent_takes_part_in_the_map_with_its_stride() -> None:
    """A mode of extent 1 needs no dimension, and its stride does not matter. Where the extent is known only at run
    time, the map has a dimension for it: the driver demands strides of whole 16 bytes, whatever the extent is.
    """
    tile = Layout((1, 4), (4, 1))
    for stride, refused in ((1, True), (3, True), (4, False)):
        one = make_tma_copy(LOAD, Layout((1, 1), (stride, 1)), tile, (1, 4), val_bits=32)
        assert one.tensor_map() == TensorMap(32, (1,), (), (4,))
        copy = make_tma_copy(LOAD, Layout((Unknown(32), 1), (stride, 1)), tile, (1, 4), val_bits=32)
        shape: Any = (LaunchInt("n"), 1)
        dimensions = copy.dimensions(Layout(shape, (stride, 1)))
        assert [step for _, step in dimensions] == [1, stride]
        arguments = ("A", MAP_ELEMENTS["f32"], (1, LaunchInt("n")), (4 * stride,), copy.box)
        if refused:
            with pytest.raises(LayoutError, match=f"dimension 1 has a stride of {4 * stride} bytes") as caught:
                MapRecipe(*arguments)
            assert caught.value.code == "E0322"
        else:
            assert MapRecipe(*arguments).place(0, {"n": 1}).map == TensorMap(32, (1, 1), (16,), (4, 1))


def test_modes_without_strides_that_share_a_dimension_are_refused() -> None:
    copy = make_tma_copy(LOAD, Layout((8, 2, 4), (1, 0, 0)), Layout((8, 2, 4), (1, 8, 16)), val_bits=32)
    with pytest.raises(LayoutError, match="modes with strides of 0 share a dimension") as caught:
        copy.coordinates()
    assert caught.value.code == "E0322"
    repeated = Layout((8, 8), (1, 0))
    copy = make_tma_copy(LOAD, repeated, Layout((8, 8), (1, 8)), val_bits=32)
    assert moves_tiles(copy, Layout((8, 8), (1, 8)), (8, 8))


@pytest.mark.parametrize(
    ("smem", "order", "box", "instructions"),
    [
        ((128, 64), None, (64, 8), 16),  # of wgmma's MN-major layouts, by default
        ((128, 64), (1, 0), (64, 64), 2),
    ],
)
def test_the_order_of_shared_memory_decides_how_many_instructions_move_a_tile(
    smem: tuple[int, int], order: tuple[int, int] | None, box: tuple[int, int], instructions: int
) -> None:
    layout = tile_to_shape(wgmma_smem_atom("MN", "SW128", 16), smem, order)
    copy = make_tma_copy(LOAD, Layout((4096, 2048), (1, 4096)), layout, val_bits=16)
    assert (copy.box, copy.instructions, copy.swizzle_bits) == (box, instructions, 3)
    assert copy.tensor_map().bytes * instructions == 128 * 64 * 2


def test_one_copy_serves_tensors_of_other_extents() -> None:
    n = Unknown(64, 8)
    copy = make_tma_copy(LOAD, Layout((Unknown(), Unknown()), (n, 1)), Layout((64, 32), (32, 1)), val_bits=16)
    assert str(copy.coordinates()) == "(?,?):(1@1,1@0)"
    for rows, columns in ((100, 40), (1, 8)):
        tensor_map = copy.tensor_map(Layout((rows, columns), (columns, 1)))
        assert tensor_map == TensorMap(16, (columns, rows), (2 * columns,), (32, 64))


@pytest.mark.parametrize(
    ("gmem", "smem", "bits", "code", "hint"),
    [
        (Layout((4096, 1001), (1001, 1)), Layout((64, 64), (64, 1)), 16, Code.TENSOR_MAP, "pad the rows"),
        (Layout((64, 64), (4096, 16)), Layout((64, 64), (64, 1)), 16, Code.TENSOR_MAP, "must be contiguous in global"),
        (Layout((2, 1 << 33), (1 << 33, 1)), Layout((2, 64), (64, 1)), 8, Code.TENSOR_MAP, "extents are 1 to"),
        (Layout((2, 64), (1 << 40, 1)), Layout((2, 64), (64, 1)), 8, Code.TENSOR_MAP, "strides are below"),
        (ROWS, Layout((4, 512), (512, 1)), 16, Code.TMA_BOX, "smaller tile"),
        (ROWS, Layout((64, 4), (4, 1)), 16, Code.TMA_BOX, "wider tile"),
        (ROWS, tile_to_shape(wgmma_smem_atom("K", "SW32", 16), (64, 64)).outer, 16, None, ""),
        (ROWS, Layout((64, (8, 8)), (8, (1, 520))), 16, Code.TMA_BOX, "multiples of 128 bytes"),
        (ROWS, Layout((64, 64), (1, 64)), 16, Code.TENSOR_MAP, "contiguous in shared memory"),
        (Layout((8,) * 7, tuple(16**i for i in range(7))),
         Layout((8, 2, 2, 2, 2, 2, 1), (1, 8, 16, 32, 64, 128, 0)), 16,
         Code.TMA_BOX, "one element along some of them"),
    ],
)  # fmt: skip
def test_tensors_and_tiles_without_a_map_are_refused(
    gmem: Layout, smem: Layout, bits: int, code: Code | None, hint: str
) -> None:
    if code is None:
        assert make_tma_copy(LOAD, gmem, smem, val_bits=bits).tensor_map()
        return
    with pytest.raises(LayoutError) as caught:
        make_tma_copy(LOAD, gmem, smem, val_bits=bits).tensor_map()
    assert (caught.value.code, hint in caught.value.hint) == (code.id, True), caught.value


def test_a_mode_longer_than_a_box_takes_several_instructions() -> None:
    for gmem, smem, box, count in (
        (ROWS, Layout((4, 512), (512, 1)), (256, 1), 8),
        (Layout(1 << 20, 1), Layout(16384, 1), (256,), 64),
    ):
        copy = make_tma_copy(LOAD, gmem, smem, val_bits=16, merge=False)
        assert (copy.tensor_map().box, copy.instructions) == (box, count)


def test_addresses_are_multiples_of_16_bytes() -> None:
    tensor_map = make_tma_copy(LOAD, ROWS, Layout((64, 64), (64, 1)), val_bits=16).tensor_map()
    tensor_map.check_address(0x7F0000000010)
    with pytest.raises(LayoutError, match="0x7f0000000008"):
        tensor_map.check_address(0x7F0000000008)


def test_partition_of_stages_by_a_block_of_a_multicast() -> None:
    stages = tile_to_shape(wgmma_smem_atom("K", "SW128", 16), (128, 64, 4))
    copy = make_tma_copy(
        TMA_ATOMS["SM90_TMA_LOAD_MULTICAST"], ROWS, stages((None, None, 0)), (128, 64), val_bits=16, multicast=2
    )
    tile, start = local_tile(copy.coordinates(), (128, 64), (2, None))
    assert (copy.box, start) == ((64, 64), (0, 256))
    for block in (0, 1):
        smem, gmem = tma_partition(copy, block, Layout(2, 1), group_modes(stages, 0, 2), group_modes(tile, 0, 2))
        assert (str(plain_layout(smem[0])), smem[1]) == ("((8192,1),(1,4)):((1,0),(0,8192))", 4096 * block)
        assert (str(gmem[0]), gmem[1]) == ("(((64,128),1),32):(((1@0,1@1),0),64@0)", (0, 64 * block))


def test_masks_of_rows_and_columns_of_a_cluster() -> None:
    cluster = Layout((1, 2, 4, 1), (0, 1, 2, 0))
    assert compute_multicast_mask(cluster, (0, 1, 2, 0)) == 1 << 5
    assert compute_multicast_mask(cluster, (0, 1, 2, 0), (1,)) == 0b110000
    assert compute_multicast_mask(cluster, (0, 1, 2, 0), (2,)) == 0b10101010
    assert compute_multicast_mask(cluster, (0, 1, 2, 0), (1, 2)) == 0xFF
    with pytest.raises(LayoutError, match="rank 16"):
        compute_multicast_mask(Layout((17, 1), (1, 0)), (16, 0))


def test_atoms_name_their_spaces_and_targets() -> None:
    for name, facts in TMA_ATOMS.items():
        atom = tma_copy_atom(facts, 1024)
        assert (atom.name, atom.loads, atom.targets.oldest.min_sm) == (name, facts.loads, 100 if facts.by_rows else 90)
        assert (atom.is_multicast, atom.reduction) == (facts.multicast, facts.reduction)
        assert (atom.source if facts.loads else atom.destination).spaces == (GMEM,)
    with pytest.raises(LayoutError, match="loads may multicast"):
        TmaFacts(loads=False, multicast=True, reduction="")
