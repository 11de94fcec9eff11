# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded operations of copy atoms, tiled copies and partitions."""

from collections.abc import Callable
from typing import Any

from tilefold.layout.algebra.core import Layout, make_identity_layout
from tilefold.layout.algebra.integers import add
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.tiling.partition import inner_partition, local_partition, local_tile, outer_partition
from tilefold.layout.tiling.tiled_copy import (
    TiledCopy,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_D,
    make_tiled_copy_S,
)

from .algebra_operations import RECORDED, Inputs, fnv1a64
from .record import RunTimeInt, map_leaves, parse


def number(x: Any) -> int:
    """The value of a static or run-time integer."""
    return x.value if isinstance(x, RunTimeInt) else x


def part(layout: Any, offset: Any) -> Inputs:
    """What is recorded of a part of a tensor."""
    indices = [number(offset + layout(i)) for i in range(number(layout.size))]
    return {"offset": offset, "layout": layout, "idx": indices[:RECORDED], "fnv1a64": fnv1a64(indices)}


def _copy_atom(inputs: Inputs, dynamic: bool) -> Inputs:
    atom = copy_atom(inputs["atom"], inputs["val_bits"])
    return {
        "ThrID": atom.thr_id,
        "ValLayoutSrc": atom.src,
        "ValLayoutDst": atom.dst,
        "ValLayoutRef": atom.ref,
        "BitLayoutSrc": atom.src_bits,
        "BitLayoutDst": atom.dst_bits,
        "BitLayoutRef": atom.ref_bits,
    }


def describe(copy: TiledCopy) -> Inputs:
    """What is recorded of a tiled copy."""
    return {
        "Tiler_MN": copy.tiler,
        "TiledLayout_TV": copy.layout_tv,
        "LayoutS_TV": copy.get_layoutS_TV(),
        "LayoutD_TV": copy.get_layoutD_TV(),
        "num_threads": copy.threads,
        "num_vals": copy.values,
    }


def tiled_copy(inputs: Inputs, dynamic: bool = False) -> TiledCopy:
    """The tiled copy that the inputs describe."""
    atom = copy_atom(inputs["atom"], inputs["val_bits"])
    return make_tiled_copy(atom, parse(inputs["thr_layout"], dynamic), parse(inputs["val_layout"], dynamic))


def _like_other(make: Callable[..., TiledCopy]) -> Callable[[Inputs, bool], Inputs]:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        atom = copy_atom(inputs["atom"], inputs["val_bits"])
        return describe(make(atom, tiled_copy(inputs["src_tiled_copy"])))

    return run


def _cotiled(inputs: Inputs, dynamic: bool) -> Inputs:
    atom = copy_atom(inputs["atom"], inputs["val_bits"])
    return describe(
        make_cotiled_copy(atom, parse(inputs["atom_tv_layout"], dynamic), parse(inputs["data_layout"], dynamic))
    )


def slices(partition: Callable[[Any, Any], tuple[Any, Any]], tensor: Any, tids: list[int]) -> list[Inputs]:
    """The parts of a tensor for some threads."""
    return [{"tid": t, **part(*partition(tensor, RunTimeInt(t)))} for t in tids]


def _partition_S(inputs: Inputs, dynamic: bool) -> Inputs:
    copy = tiled_copy(inputs, dynamic)
    return {"slices": slices(copy.partition_S, parse(inputs["tensor"], dynamic), inputs["tids"])}


def _partition_D(inputs: Inputs, dynamic: bool) -> Inputs:
    copy = tiled_copy(inputs, dynamic)
    return {"slices": slices(copy.partition_D, parse(inputs["tensor"], dynamic), inputs["tids"])}


def _partition_dynamic(inputs: Inputs, dynamic: bool) -> Inputs:
    copy = tiled_copy(inputs, dynamic)
    tensor = parse(inputs["tensor"], dynamic)
    stride = map_leaves(lambda d: d if d == 1 else RunTimeInt(d), tensor.stride)
    return {"slices": slices(copy.partition_S, Layout(map_leaves(RunTimeInt, tensor.shape), stride), inputs["tids"])}


def _partition_identity(inputs: Inputs, dynamic: bool) -> Inputs:
    copy = tiled_copy(inputs, dynamic)
    tensor = make_identity_layout(parse(inputs["shape"], dynamic))
    outputs: list[Inputs] = []
    for tid in inputs["tids"]:
        layout, start = copy.partition_S(tensor, tid)
        assert isinstance(layout, Layout)
        outputs.append(
            {
                "tid": tid,
                "layout": layout,
                "coord0": add(start, layout(0)),
                "coord_last": add(start, layout(layout.size - 1)),
            }
        )
    return {"slices": outputs}


def run_time(x: Any) -> Any:
    """A coordinate with its integers made run-time ones."""
    return map_leaves(lambda c: c if c is None or isinstance(c, RunTimeInt) else RunTimeInt(c), x)


def _local(f: Callable[..., tuple[Any, Any]], tiler: str, coord: str) -> Callable[[Inputs, bool], Inputs]:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        proj = (parse(inputs["proj"], False),) if "proj" in inputs else ()
        where = run_time(parse(inputs[coord], dynamic))
        return part(*f(parse(inputs["tensor"], dynamic), parse(inputs[tiler], dynamic), where, *proj))

    return run


def _tile_then_partition(inputs: Inputs, dynamic: bool) -> Inputs:
    copy = tiled_copy(inputs, dynamic)
    tile, start = cta_tile(inputs, dynamic)
    found = [{"tid": t, **part(*_from(start, copy.partition_S(tile, RunTimeInt(t))))} for t in inputs["tids"]]
    return {"cta_tensor": tile, "slices": found}


def cta_tile(inputs: Inputs, dynamic: bool) -> tuple[Any, Any]:
    """The tile of a block and where it starts."""
    coord = run_time(parse(inputs["cta_coord"], dynamic))
    return local_tile(parse(inputs["tensor"], dynamic), parse(inputs["cta_tiler"], dynamic), coord)


def _from(start: Any, found: tuple[Any, Any]) -> tuple[Any, Any]:
    return found[0], add(start, found[1])


COPY: dict[str, Callable[[Inputs, bool], Inputs]] = {
    "copy_atom": _copy_atom,
    "inner_partition": _local(inner_partition, "tiler", "coord"),
    "local_partition": _local(local_partition, "thr_layout", "index"),
    "local_partition_proj": _local(local_partition, "thr_layout", "index"),
    "local_tile": _local(local_tile, "tiler", "coord"),
    "local_tile_proj": _local(local_tile, "tiler", "coord"),
    "local_tile_then_partition_S": _tile_then_partition,
    "make_cotiled_copy": _cotiled,
    "make_tiled_copy": lambda inputs, dynamic: describe(tiled_copy(inputs, dynamic)),
    "make_tiled_copy_D": _like_other(make_tiled_copy_D),
    "make_tiled_copy_S": _like_other(make_tiled_copy_S),
    "outer_partition": _local(outer_partition, "tiler", "coord"),
    "partition_D": _partition_D,
    "partition_S": _partition_S,
    "partition_S_dynamic": _partition_dynamic,
    "partition_S_identity": _partition_identity,
}
