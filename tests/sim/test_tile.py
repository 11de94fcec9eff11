# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs at stage `cute`: views, copies, atoms and printing, against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from tilefold.dialects.tile import PartitionDOp, TensorType
from tilefold.layout.algebra.core import make_layout
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.text.layouts import to_text
from tilefold.runtime.sim.atoms.exchange import exchange_of
from tilefold.runtime.sim.faults import SimulationError

from tests.sim.harness import fault, launch, module_of, unwritten


def kernel(body: str, args: str, threads: int = 32) -> str:
    """A module with the tile.kernel `@k`."""
    return f"gpu.module @kernels {{\ntile.kernel @k({args}) threads({threads}) {{\n{body}\nreturn\n}}\n}}\n"


def tensor(element: str, layout: str, space: str = "gmem", align: int = 16) -> str:
    return f'!tile.tensor<{element}, {space}, align<{align}>, "{layout}">'


def test_local_tile_and_element_access() -> None:
    """Each block copies a 4x8 tile of a column-major to a row-major matrix, an element at a time."""
    body = """
        %t = gpu.thread_id x
        %m = gpu.block_id x
        %n = gpu.block_id y
        %c4 = arith.constant 4 : index
        %i = arith.remui %t, %c4 : index
        %j = arith.divui %t, %c4 : index
        %a = tile.local_tile %A, "(4,8)", (%m, %n)
        %b = tile.local_tile %B, "(4,8)", (%m, %n)
        %v = tile.load %a(%i, %j)
        tile.store %v, %b(%i, %j)"""
    a, b = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    args = f"%A: {tensor('f32', '(16,16):(1,16)')}, %B: {tensor('f32', '(16,16):(16,1)')}"
    launch(kernel(body, args), (4, 2, 1), A=a, B=unwritten(b))
    assert (b.reshape(16, 16) == a.reshape(16, 16).T).all()


ORDER = np.arange(96).reshape(8, 12).T
"""ORDER[m, n] is the element (m, n) of (12,8):(1,12)."""
TILES = [ORDER[m : m + 4, n : n + 2].T.ravel().tolist() for n in range(0, 8, 2) for m in range(0, 12, 4)]
BY_TILES = [element for tile in TILES for element in tile]

MATRIX, NESTED = "(12,8):(1,12)", "((2,6),8):((1,2),12)"
VIEWS: dict[str, tuple[str, str, str, list[int]]] = {
    "slice": ("tile.slice %A, (_, %j)", MATRIX, "[0, 1]", [i + 36 for i in range(12)]),
    "slice by a static number": ("tile.slice %A, (2, _)", MATRIX, "[0, 1]", [2 + 12 * i for i in range(8)]),
    "slice of a nested mode": ("tile.slice %A, ((_, %j), 5)", NESTED, "[0, 1]", [66, 67]),
    "logical_divide": ('tile.logical_divide %A, "(4,2)"', MATRIX, "[0, 2]", list(range(96))),
    "zipped_divide": ('tile.zipped_divide %A, "(4,2)"', MATRIX, "[0, 2]", BY_TILES),
    "tiled_divide": ('tile.tiled_divide %A, "(4,2)"', MATRIX, "[0, 3]", BY_TILES),
    "flat_divide": ('tile.flat_divide %A, "(4,2)"', MATRIX, "[0, 4]", BY_TILES),
    "local_tile": ('tile.local_tile %A, "(4,2)", (1, %j)', MATRIX, "[0, 2]", TILES[10]),
    "local_tile that keeps a mode": (
        'tile.local_tile %A, "(4,2)", (1, _)', MATRIX, "[0, 3]", [e for i in (1, 4, 7, 10) for e in TILES[i]]
    ),
    "local_tile with projection": (
        'tile.local_tile %A, "(4,5,2)", (1, 7, %j) proj "(1,_,1)"', MATRIX, "[0, 2]", TILES[10]
    ),
    "composition": (
        'tile.composition %A, "(4,3):(24,1)"', MATRIX, "[0, 2]", [(i % 4) * 24 + i // 4 for i in range(12)]
    ),
    "coalesce": ("tile.coalesce %A", NESTED, "[0, 1]", list(range(96))),
    "select": ("tile.select %A, [1, 0]", MATRIX, "[0, 2]", [i % 8 * 12 + i // 8 for i in range(96)]),
    "group_modes": ("tile.group_modes %A, [0, 2]", "(3,4,8):(1,3,12)", "[0, 2]", list(range(96))),
}  # fmt: skip


@pytest.mark.parametrize("varying", [False, True], ids=["uniform", "by lane"])
@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, varying: bool) -> None:
    """Element i (colexicographically) of each view is where the view's definition says."""
    op, layout, modes, expected = VIEWS[name]
    body = f"""
        %t = gpu.thread_id x
        %c3 = arith.constant 3 : index
        %zero = arith.constant 0 : index
        %none = arith.muli %t, %zero : index
        %j = arith.addi %c3, {"%none" if varying else "%zero"} : index
        %v = {op}
        %f = tile.group_modes %v, {modes}
        %first = arith.cmpi eq, %t, %zero : index
        scf.if %first {{
          tile.print_tensor "v" %f
        }}"""
    text = kernel(body, f"%A: {tensor('i32', layout)}", 2)
    printed = launch(text, block=(2, 1, 1), A=np.arange(96, dtype=np.int32)).output.splitlines()
    assert [int(line) for line in printed[1:]] == expected


SWIZZLED = tensor("i32", "S<2,1,3> o 0 o (8,16):(16,1)", "smem", 128)


def swizzled_rows(how: str) -> np.ndarray:
    """Stores 0 to 127 row by row in a swizzled tile, and reads them back in another way."""
    body = f"""
        %t = gpu.thread_id x
        %c16 = arith.constant 16 : index
        %i = arith.divui %t, %c16 : index
        %j = arith.remui %t, %c16 : index
        %v = arith.index_cast %t : index to i32
        %s = tile.alloc : {SWIZZLED}
        tile.store %v, %s(%i, %j)
        ptx.bar.sync 0
        {how}
        tile.store %w, %A(%t)"""
    out = np.zeros(128, np.int32)
    launch(kernel(body, f"%A: {tensor('i32', '128:1')}", 128), block=(128, 1, 1), A=unwritten(out))
    return out


def test_swizzled_tensors_slice_by_their_offset() -> None:
    assert swizzled_rows("%w = tile.load %s(%i, %j)").tolist() == list(range(128))
    assert swizzled_rows("%r = tile.slice %s, (%i, _)\n%w = tile.load %r(%j)").tolist() == list(range(128))
    assert swizzled_rows("%r = tile.slice %s, (_, %j)\n%w = tile.load %r(%i)").tolist() == list(range(128))
    tile = """%c4 = arith.constant 4 : index
        %q = arith.divui %j, %c4 : index
        %e = arith.remui %j, %c4 : index
        %r = tile.local_tile %s, "(1,4)", (%i, %q)
        %w = tile.load %r(0, %e)"""
    assert swizzled_rows(tile).tolist() == list(range(128))


def test_a_swizzle_moves_the_elements() -> None:
    """The bytes behind the swizzled tile are those of the plain one, permuted by the swizzle."""
    body = """
        %t = gpu.thread_id x
        %c4 = arith.constant 4 : index
        %o = arith.muli %t, %c4 : index
        %v = arith.index_cast %t : index to i32
        %c16 = arith.constant 16 : index
        %i = arith.divui %t, %c16 : index
        %j = arith.remui %t, %c16 : index
        %b = tile.composition %A, "(8,16):(16,1)"
        tile.store %v, %A(%i, %j)"""
    out = np.zeros(128, np.int32)
    type = tensor("i32", "S<2,1,3> o 0 o (8,16):(16,1)")
    launch(kernel(body, f"%A: {type}", 128), block=(128, 1, 1), A=unwritten(out))
    for index in range(128):
        assert out[index ^ ((index >> 3) & 0b110)] == index


M, K = "(64,8):(1,64)", "(64,8):(8,1)"
COPIES: dict[str, tuple[str, str, str, str, str, set[int]]] = {
    "16 bytes along columns": ("UniversalCopy<uint128_t>", "(8,4):(1,8)", "8:1", M, M, {16}),
    "4 bytes": ("UniversalCopy<uint32_t>", "(16,2):(1,16)", "(4,2):(1,4)", M, M, {4}),
    "one element": ("UniversalCopy<uint16_t>", "(8,4):(1,8)", "(2,2):(1,2)", K, M, {2}),
    "as wide as possible": ("AutoVectorizingCopy", "(8,4):(1,8)", "8:1", M, M, {16}),
    "auto, but transposed": ("AutoVectorizingCopy", "(8,4):(1,8)", "8:1", K, M, {2}),
}  # fmt: skip


@pytest.mark.parametrize("through", ["", "rmem"])
@pytest.mark.parametrize("name", COPIES)
def test_tiled_copies(name: str, through: str) -> None:
    atom, thr, val, source, target, widths = COPIES[name]
    middle = "tile.copy %copy, %a, %b"
    if through:
        middle = "%r = tile.alloc : FRAGMENT\ntile.copy %copy, %a, %r\ntile.copy %copy, %r, %b"
    body = f"""
        %t = gpu.thread_id x
        %copy = tile.tiled_copy #tile.copy_atom<"{atom}", f16> thr "{thr}" val "{val}"
        %a = tile.partition_S %copy, %A, %t
        %b = tile.partition_D %copy, %B, %t
        {middle}"""
    args = f"%A: {tensor('f16', source)}, %B: {tensor('f16', target)}"
    if through:
        body = body.replace("FRAGMENT", tensor("f16", fragment_of(kernel(body.split("%r =")[0], args)), "rmem"))
    a, b = np.arange(512, dtype=np.float16), np.zeros(512, np.float16)
    counters = launch(kernel(body, args), A=a, B=unwritten(b)).counters
    order = "C" if source == K else "F"
    assert (b.reshape(64, 8, order="F") == a.reshape(64, 8, order=order)).all()
    assert {access.width for access in counters.accesses if access.kind == "load"} == widths
    if not through:
        assert {access.width for access in counters.accesses} == widths


def fragment_of(text: str) -> str:
    """A compact layout of the shape of `%b`, with space and so on missing."""
    types = [op.result.type for op in module_of(text).walk() if isinstance(op, PartitionDOp)]
    assert isinstance(types[0], TensorType)
    return to_text(make_layout(types[0].layout.data.shape))


def test_fewer_than_a_warp() -> None:
    """The copy of a 4x9 matrix by six threads."""
    body = """
        %t = gpu.thread_id x
        %copy = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint64_t>", f64> thr "(2,3):(3,1)" val "(2,3):(1,2)"
        %a = tile.partition_S %copy, %A, %t
        %b = tile.partition_D %copy, %B, %t
        %c2 = arith.constant 2 : index
        %some = arith.cmpi ult, %t, %c2 : index
        scf.if %some {
          tile.copy %copy, %a, %b
        }"""
    type = tensor("f64", "(4,9):(1,4)")
    a, b = np.arange(36, dtype=np.float64) + 1, np.zeros(36)
    launch(kernel(body, f"%A: {type}, %B: {type}", 6), block=(6, 1, 1), A=a, B=b)
    want = np.zeros((4, 9))
    want[0:2, 0:6] = a.reshape(4, 9, order="F")[0:2, 0:6]
    assert (b.reshape(4, 9, order="F") == want).all()


ASYNC = """
    %t = gpu.thread_id x
    %s = tile.alloc : SMEM
    %load = tile.tiled_copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> thr "(8,4):(1,8)" val "8:1"
    %a = tile.partition_S %load, %A, %t
    %sd = tile.partition_D %load, %s, %t
    tile.copy %load, %a, %sd
    WAIT
    %store = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16> thr "(8,4):(1,8)" val "8:1"
    %ss = tile.partition_S %store, %s, %t
    %b = tile.partition_D %store, %B, %t
    tile.copy %store, %ss, %b"""


def async_kernel(wait: str, layout: str) -> str:
    body = ASYNC.replace("SMEM", tensor("f16", layout, "smem", 128)).replace("WAIT", wait)
    type = tensor("f16", "(64,8):(1,64)")
    return kernel(body, f"%A: {type}, %B: {type}")


@pytest.mark.parametrize("layout", ["(64,8):(1,64)", "(64,8):(1,72)", "S<3,3,3> o 0 o (64,8):(1,64)"])
def test_asynchronous_tiled_copies(layout: str) -> None:
    a = np.arange(512, dtype=np.float16)
    for wait in ("ptx.cp.async.wait_all", "ptx.cp.async.commit_group\nptx.cp.async.wait_group 0"):
        b = np.zeros_like(a)
        launch(async_kernel(wait, layout), A=a, B=unwritten(b))
        assert (a == b).all()
    for wait in ("ptx.bar.sync 0", "ptx.cp.async.commit_group", "ptx.cp.async.wait_group 0"):
        error = fault(async_kernel(wait, layout), "E3206", A=a, B=unwritten(np.zeros_like(a)))
        assert error.site is not None
        assert error.site.op == "tile.copy"


PTX_ROW: dict[str, Callable[[int, int, int], tuple[int, int]]] = {
    "N": lambda lane, matrix, j: (8 * matrix + lane // 4, 2 * (lane % 4) + j),
    "T": lambda lane, matrix, j: (8 * matrix + 2 * (lane % 4) + j, lane // 4),
}
"""(row of the stack of matrices, column) of element j of a lane's register (PTX ISA, ldmatrix)."""


@pytest.mark.parametrize("num", [1, 2, 4])
@pytest.mark.parametrize("kind", ["N", "T"])
def test_the_table_of_ldmatrix_is_the_figure_of_the_isa(kind: str, num: int) -> None:
    name = f"SM75_U32x{num}_LDSM_N" if kind == "N" else f"SM75_U16x{2 * num}_LDSM_T"
    exchange = exchange_of(copy_atom(name, 16), 32)
    assert exchange is not None
    assert exchange.readers.tolist() == [lane < 8 * num for lane in range(32)]
    for lane in range(32):
        for value in range(2 * num):
            row, column = PTX_ROW[kind](lane, value // 2, value % 2)
            assert (exchange.source_lane[lane, value], exchange.source_value[lane, value]) == (row, column)


@pytest.mark.parametrize(("name", "bits"), [("SM80_CP_ASYNC_CACHEGLOBAL<uint32_t>", 16), ("SM75_U32x1_MOVM_T", 32)])
def test_atoms_that_a_table_does_not_describe(name: str, bits: int) -> None:
    assert exchange_of(copy_atom(name, bits), 32) is None


def test_movmatrix_exchanges_rows_and_columns() -> None:
    exchange = exchange_of(copy_atom("SM75_U32x1_MOVM_T", 16), 32)
    assert exchange is not None
    for lane in range(32):
        for value in range(2):
            row, column = 2 * (lane % 4) + value, lane // 4  # where element (lane / 4, 2 (lane % 4) + value) comes from
            source = exchange.source_lane[lane, value], exchange.source_value[lane, value]
            assert source == (4 * row + column // 2, column % 2)


@pytest.mark.parametrize(("coord", "inside"), [("(3, 7)", True), ("(4, 0)", False), ("(0, 8)", False), ("(31)", True)])
def test_coordinates_are_checked_against_the_shape(coord: str, inside: bool) -> None:
    """(4, 0) is in the bounds of the memory, but it is not an element of the tensor."""
    numbers = coord.strip("()").split(", ")
    lines = [f"%c{i} = arith.constant {n} : index" for i, n in enumerate(numbers)]
    lines.append(f"%v = tile.load %A({', '.join(f'%c{i}' for i in range(len(numbers)))})")
    text = kernel("\n".join(lines), f"%A: {tensor('f32', '(4,8):(1,4)')}")
    if inside:
        launch(text, A=np.zeros(32, np.float32))
    else:
        error = fault(text, "E3202", A=np.zeros(32, np.float32))
        assert "outside" in error.message


@pytest.mark.parametrize("number", ["%t", "%two", "%less"])
def test_one_of_several_tensors_is_one_of_them(number: str) -> None:
    body = f"""
        %t = gpu.thread_id x
        %two = arith.constant 2 : index
        %less = arith.constant -1 : index
        %zero = arith.constant 0 : index
        %c = tile.choose {number} of %A, %A
        %v = tile.load %c(%zero)"""
    error = fault(kernel(body, f"%A: {tensor('f32', '4:1')}"), "E3202", A=np.zeros(4, np.float32))
    assert error.thread == ((2, 0, 0) if number == "%t" else (0, 0, 0))


def test_printing() -> None:
    body = f"""
        %t = gpu.thread_id x
        %f = tile.alloc : {tensor("f32", "(2,3):(1,2)", "rmem")}
        %v = arith.constant 1.5 : f32
        tile.store %v, %f(0, 0)
        tile.store %v, %f(1, 0)
        tile.store %v, %f(0, 1)
        tile.store %v, %f(1, 1)
        tile.store %v, %f(0, 2)
        tile.store %v, %f(1, 2)
        tile.print "A" %A
        tile.print_tensor "f" %f"""
    text = kernel(body, f"%A: {tensor('f16', '(4,8):(1,4)')}", 1)
    lines = launch(text, block=(1, 1, 1), A=np.zeros(32, np.float16)).output.splitlines()
    assert lines[0].startswith("A: gmem_ptr[16b](0x7f")
    assert lines[0].endswith(") o (4,8):(1,4)")
    assert lines[1].startswith("f: ptr[32b](0x")
    assert lines[2:] == ["  1.5  1.5  1.5"] * 2


def test_fragments_are_undefined_at_first() -> None:
    body = f'%f = tile.alloc : {tensor("f32", "2:1", "rmem")}\n%v = tile.load %f(1)\ntile.print_tensor "f" %f'
    assert "tile.print_tensor at test.cute:5:" in fault(kernel(body, ""), "E3204").message


BIG = "%big = arith.constant 9223372036854775807 : index\n"


@pytest.mark.parametrize("lane", ["", "%t = gpu.thread_id x\n%big2 = arith.addi %big, %t : index\n"])
def test_coordinates_beyond_64_bits(lane: str) -> None:
    name = "%big2" if lane else "%big"
    args = f"%A: {tensor('f32', '(4,8):(1,4)')}"
    view = f'%v = tile.local_tile %A, "(4,2)", (0, {name})\n%f = arith.constant 1.0 : f32\ntile.store %f, %v(0, 0)'
    with pytest.raises(SimulationError) as error:
        launch(kernel(BIG + lane + view, args), A=np.zeros(32, np.float32))
    assert error.value.code in ("E3202", "E3209")


def test_more_elements_than_a_simulation_can_go_through() -> None:
    body = """
        %v = tile.composition %A, "(1000000,1000000):(0,0)"
        tile.copy %v, %v"""
    error = fault(kernel(body, f"%A: {tensor('f32', '(4,8):(1,4)')}"), "E3211", A=np.zeros(32, np.float32))
    assert "1000000000000 elements" in error.message
