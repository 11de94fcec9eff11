# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A copy of a row-major tensor into registers, VALUES elements a thread, in four ways that mean the same.

They use the forms of CuTe's literature: names taken from the package itself (`tilefold.range`), a layout taken from a
tensor and put back over its iterator, indexing with None, a shape in redundant parentheses.
"""

import tilefold
from tilefold import cute

# pyright: basic


@cute.kernel
def by_coordinates(source: cute.Tensor, rows: tilefold.Constexpr, columns: tilefold.Constexpr, values: cute.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    across = columns // values
    row, column = thread // across, (thread % across) * values
    fragment = cute.make_rmem_tensor((values), dtype=source.element_type)
    for v in tilefold.range(values):
        fragment[v] = source[row, column + v]
    if thread == 1:
        cute.print_tensor(fragment)


@cute.kernel
def by_division(source: cute.Tensor, rows: cute.Constexpr, columns: cute.Constexpr, values: cute.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    tile = cute.local_tile(source, (rows, columns), (0, 0))
    parts = cute.flat_divide(tile, (1, values))
    by_column_first = cute.make_tensor(parts.iterator, cute.select(parts.layout, [0, 1, 3, 2]))
    mine = cute.group_modes(by_column_first, 2, 4)[0, None, thread]
    fragment = cute.make_rmem_tensor((values), dtype=source.element_type)
    cute.autovec_copy(mine, fragment)
    if thread == 1:
        cute.print_tensor(fragment)


@cute.kernel
def by_composition(source: cute.Tensor, rows: cute.Constexpr, columns: cute.Constexpr, values: cute.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    tile = cute.local_tile(source, (rows, columns), (0, 0))
    layout_tv = cute.make_layout(((columns // values, rows), values), stride=((rows * values, 1), rows))
    mine = cute.composition(tile, layout_tv)[thread, None]
    fragment = cute.make_rmem_tensor((values), dtype=source.element_type)
    cute.autovec_copy(mine, fragment)
    if thread == 1:
        cute.print_tensor(fragment)


@cute.kernel
def by_tiled_copy(source: cute.Tensor, rows: cute.Constexpr, columns: cute.Constexpr, values: cute.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    tile = cute.local_tile(source, (rows, columns), (0, 0))
    layout_tv = cute.make_layout(((columns // values, rows), values), stride=((rows * values, 1), rows))
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), source.element_type)
    copy = cute.make_tiled_copy(atom, layout_tv, (rows, columns))
    part = copy.get_slice(thread)
    mine = part.partition_S(tile)
    fragment = cute.make_rmem_tensor_like(part.partition_D(tile))
    cute.copy(copy, mine, fragment)
    if thread == 1:
        cute.print_tensor(fragment)


KERNELS = (by_coordinates, by_division, by_composition, by_tiled_copy)
