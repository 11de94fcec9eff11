# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded operations of MMA atoms, tiled MMAs, and the copies that serve them."""

from collections.abc import Callable
from typing import Any

from tilefold.layout.algebra.core import ComposedLayout, Layout, make_layout, make_row_major_layout
from tilefold.layout.algebra.integers import add
from tilefold.layout.algebra.swizzled_slice import slice_as_cute
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.tiling.tiled_copy import (
    TiledCopy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
)
from tilefold.layout.tiling.tiled_mma import TiledMma, make_tiled_mma

from .algebra_operations import Inputs, values
from .copy_operations import cta_tile, describe, number, part, slices
from .record import RunTimeInt, parse

Operation = Callable[[Inputs, bool], Inputs]


def _mma_atom(inputs: Inputs, dynamic: bool) -> Inputs:
    atom = mma_atom(inputs["mma"])
    d, a, b, c = atom.bits
    return {
        "ThrID": atom.thr_id,
        "Shape_MNK": atom.shape,
        "LayoutA_TV": atom.layout_a,
        "LayoutB_TV": atom.layout_b,
        "LayoutC_TV": atom.layout_c,
        "bitsA": a,
        "bitsB": b,
        "bitsC": c,
        "bitsD": d,
    }


def holds_its_matrices(outputs: Inputs) -> bool:
    """Whether the threads of an atom together hold every element of A, B and C."""
    m, n, k = outputs["Shape_MNK"]
    sizes = {"LayoutA_TV": m * k, "LayoutB_TV": n * k, "LayoutC_TV": m * n}
    return all(set(values(outputs[name])) == set(range(size)) for name, size in sizes.items())


def tiled_mma(inputs: Inputs, dynamic: bool = False) -> TiledMma:
    """The tiled MMA that the inputs describe."""
    atom_layout, permutation = parse(inputs["atom_layout"], dynamic), parse(inputs["permutation"], dynamic)
    return make_tiled_mma(mma_atom(inputs["mma"]), atom_layout, permutation)


def tiled_mma_facts(mma: TiledMma) -> Inputs:
    """The recorded facts of a tiled MMA as a whole."""
    outputs: Inputs = {f"tile_size_{i}": mma.tile_size(i) for i in range(3)}
    outputs |= {f"Layout{x}_TV": mma.layout_tv(x) for x in "ABC"}
    return {
        **outputs,
        "thr_layout_vmnk": mma.thr_layout_vmnk,
        "tile_shape": mma.tile_shape,
        "num_threads": mma.threads,
    }


def _tiled_mma(inputs: Inputs, dynamic: bool) -> Inputs:
    return tiled_mma_facts(tiled_mma(inputs, dynamic))


def _thr_vmnk(inputs: Inputs, dynamic: bool) -> Inputs:
    mma = tiled_mma(inputs, dynamic)
    return {"slices": [{"tid": t, "thr_vmnk": mma.thread_coord(RunTimeInt(t))} for t in inputs["tids"]]}


def _partition(operand: str) -> Operation:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        mma = tiled_mma(inputs, dynamic)

        def of_thread(tensor: Any, thread: Any) -> tuple[Any, Any]:
            return mma.partition(operand, tensor, thread)

        return {"slices": slices(of_thread, parse(inputs["tensor"], dynamic), inputs["tids"])}

    return run


def _tile_then_partition(operand: str) -> Operation:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        mma = tiled_mma(inputs, dynamic)
        tile, start = cta_tile(inputs, dynamic)
        found: list[Inputs] = []
        for tid in inputs["tids"]:
            layout, offset = mma.partition(operand, tile, RunTimeInt(tid))
            found.append({"tid": tid, **part(layout, add(start, offset))})
        return {"cta_tensor": tile, "slices": found}

    return run


def _partition_shape(operand: str) -> Operation:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        return {"partition_shape": tiled_mma(inputs).partition_shape(operand, parse(inputs["shape"], dynamic))}

    return run


def _fragment(operand: str) -> Operation:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        mma = tiled_mma(inputs, dynamic)
        return {"fragment": mma.make_fragment(operand, mma.partition(operand, parse(inputs["tensor"], dynamic), 0)[0])}

    return run


def _fragment_C(inputs: Inputs, dynamic: bool) -> Inputs:
    shape = tiled_mma(inputs).partition_shape("C", parse(inputs["shape"], dynamic))
    return {"partition_shape": shape, "fragment": make_layout(shape)}


Maker = Callable[[Any, TiledMma], TiledCopy]


def _copy(make: Maker) -> Operation:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        return describe(make(copy_atom(inputs["atom"], inputs["val_bits"]), tiled_mma(inputs)))

    return run


def _copy_partition(make: Maker, side: str) -> Operation:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        copy = make(copy_atom(inputs["atom"], inputs["val_bits"]), tiled_mma(inputs))
        partition = copy.partition_S if side == "S" else copy.partition_D
        threads = copy.tidfrg_S if side == "S" else copy.tidfrg_D

        def of_thread(tensor: Any, thread: Any) -> tuple[Any, Any]:
            found = partition(tensor, thread)
            if isinstance(tensor, ComposedLayout) and _reaches(found[0]) >= tensor.outer.size:
                return slice_as_cute((thread, *(None,) * (len(threads(tensor)) - 1)), threads(tensor))
            return found

        return {"slices": slices(of_thread, parse(inputs["tensor"], dynamic), inputs["tids"])}

    return run


def _reaches(part: Any) -> int:
    """The last index of a swizzled part, before the swizzle.

    Where an MMA has threads along K, CuTe gives the others places beyond the tile in copies of C. There its
    plain form of a swizzled slice is another function than the swizzle of the index.
    """
    return number(part.offset + part.outer(part.outer.size - 1))


def _retile(make: Maker, operand: str) -> Operation:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        mma = tiled_mma(inputs)
        copy = make(copy_atom(inputs["atom"], inputs["val_bits"]), mma)
        tensor: Layout = make_row_major_layout(parse(inputs["tensor_shape"], dynamic))
        fragment = mma.make_fragment(operand, mma.partition(operand, tensor, 0)[0])
        return {"fragment": fragment, "retiled": copy.retile(fragment)}

    return run


MMA: dict[str, Operation] = {
    "make_tiled_copy_A": _copy(make_tiled_copy_A),
    "make_tiled_copy_B": _copy(make_tiled_copy_B),
    "make_tiled_copy_C": _copy(make_tiled_copy_C),
    "make_tiled_copy_C_atom": _copy(make_tiled_copy_C_atom),
    "mma_atom": _mma_atom,
    "mma_fragment_A": _fragment("A"),
    "mma_fragment_B": _fragment("B"),
    "mma_fragment_C": _fragment_C,
    "mma_partition_shape_A": _partition_shape("A"),
    "mma_partition_shape_B": _partition_shape("B"),
    "retile_D_A": _retile(make_tiled_copy_A, "A"),
    "retile_D_B": _retile(make_tiled_copy_B, "B"),
    "retile_S_C": _retile(make_tiled_copy_C, "C"),
    "thr_vmnk": _thr_vmnk,
    "tiled_copy_A_partition_S": _copy_partition(make_tiled_copy_A, "S"),
    "tiled_copy_B_partition_S": _copy_partition(make_tiled_copy_B, "S"),
    "tiled_copy_C_partition_D": _copy_partition(make_tiled_copy_C, "D"),
    "tiled_mma": _tiled_mma,
    **{f"local_tile_then_mma_partition_{x}": _tile_then_partition(x) for x in "ABC"},
    **{f"mma_partition_{x}": _partition(x) for x in "ABC"},
}
