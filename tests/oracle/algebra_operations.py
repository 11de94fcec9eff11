# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded operations of the layout algebra."""

from collections.abc import Callable, Iterable
from typing import Any

import tilefold.layout as cute
from tilefold.layout.algebra.coordinates import crd2crd, crd2idx_in_shape, idx2crd
from tilefold.layout.algebra.inttuple import ceil_div, product_each, shape_div

from .record import parse

Inputs = dict[str, Any]

RECORDED = 64
"""How many indices of a slice are recorded at most."""


def fnv1a64(values: Iterable[int]) -> str:
    """FNV-1a over the values as 32-bit little-endian words, as 16 hexadecimal digits."""
    state = 1469598103934665603
    for value in values:
        for byte in (value & 0xFFFFFFFF).to_bytes(4, "little"):
            state = ((state ^ byte) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    return f"{state:016x}"


def values(layout: Any) -> list[Any]:
    """The indices of a layout in the order of its integer coordinates."""
    return [layout(i) for i in range(cute.size(layout))]


def _result(f: Callable[..., Any], *names: str, raw: tuple[str, ...] = ()) -> Callable[[Inputs, bool], Inputs]:
    """An operation that calls `f` with the named inputs, parsed, and those in `raw` as they are."""

    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        arguments = [parse(inputs[n], dynamic) for n in names if n in inputs]
        return {"result": f(*arguments, *(inputs[n] for n in raw))}

    return run


def _composed(f: Callable[..., Any], *names: str, raw: tuple[str, ...] = ()) -> Callable[[Inputs, bool], Inputs]:
    """Like `_result`, with the hash of the resulting function."""
    plain = _result(f, *names, raw=raw)

    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        outputs = plain(inputs, dynamic)
        return {**outputs, "fnv1a64_all": fnv1a64(values(outputs["result"]))}

    return run


def is_composition(inputs: Inputs, result: Any) -> bool:
    """Whether `result` is the function A after B wherever B stays within A."""
    a, b = parse(inputs["A"], False), parse(inputs["B"], False)
    return all(result(i) == a(b(i)) for i in range(b.size) if b(i) < a.size)


def _layout_props(inputs: Inputs, dynamic: bool) -> Inputs:
    layout = parse(inputs["layout"], dynamic)
    outputs = {
        "size": layout.size,
        "cosize": cute.cosize(layout),
        "rank": cute.rank(layout),
        "depth": cute.depth(layout),
    }
    for i, mode in enumerate(layout):
        outputs |= {f"size_{i}": mode.size, f"cosize_{i}": cute.cosize(mode)}
    return outputs


def _crd2idx(inputs: Inputs, dynamic: bool) -> Inputs:
    layout = parse(inputs["layout"], dynamic)
    return {str(i): layout(parse(c, dynamic)) for i, c in enumerate(inputs["coords"])}


def _idx2crd_shape(inputs: Inputs, dynamic: bool) -> Inputs:
    shape = parse(inputs["shape"], dynamic)
    return {str(i): idx2crd(index, shape) for i, index in enumerate(inputs["indices"])}


def _idx2crd_layout(inputs: Inputs, dynamic: bool) -> Inputs:
    layout = parse(inputs["layout"], dynamic)
    outputs: Inputs = {}
    for i, index in enumerate(inputs["indices"]):
        coord = idx2crd(index, layout.shape, layout.stride)
        outputs[f"hier{i}"] = coord
        outputs[f"flat{i}"] = crd2crd(coord, layout.shape, (1,) * len(layout) if len(layout) > 1 else 1)
        outputs[f"1d{i}"] = crd2idx_in_shape(coord, layout.shape)
    return outputs


def _select(inputs: Inputs, dynamic: bool) -> Inputs:
    return {"result": cute.select(parse(inputs["layout"], dynamic), *inputs["modes"])}


def _slice(inputs: Inputs, dynamic: bool) -> Inputs:
    layout, offset = cute.slice_and_offset(parse(inputs["coord"], dynamic), parse(inputs["layout"], dynamic))
    return {"result": layout, "offset": offset}


def _composed_slice(inputs: Inputs, dynamic: bool) -> Inputs:
    layout, offset = cute.slice_and_offset(parse(inputs["coord"], dynamic), parse(inputs["layout"], dynamic))
    return {"idx": [offset + v for v in values(layout)[:RECORDED]]}


def _max_common(inputs: Inputs, dynamic: bool) -> Inputs:
    a, b = parse(inputs["A"], dynamic), parse(inputs["B"], dynamic)
    return {"vector": cute.max_common_vector(a, b), "layout": cute.max_common_layout(a, b)}


def _swizzle(inputs: Inputs, dynamic: bool) -> Inputs:
    swizzle = parse(inputs["swizzle"], dynamic)
    return {"values": [swizzle(x) for x in inputs["x"]]}


def _composed_eval(inputs: Inputs, dynamic: bool) -> Inputs:
    layout = parse(inputs["layout"], dynamic)
    everything = values(layout)
    return {
        "values": everything[:: inputs["step"]][: inputs["max"]],
        "fnv1a64_all": fnv1a64(everything),
        "size": layout.size,
        "cosize": cute.cosize(layout),
    }


ALGEBRA: dict[str, Callable[[Inputs, bool], Inputs]] = {
    "append": _result(cute.append, "layout", raw=("n",)),
    "blocked_product": _result(cute.blocked_product, "layout", "tiler"),
    "ceil_div": _result(ceil_div, "A", "B"),
    "coalesce": _result(cute.coalesce, "layout"),
    "coalesce_by_profile": _result(cute.coalesce, "layout", "profile"),
    "complement": _result(cute.complement, "layout", "cotarget"),
    "complement_default": _result(cute.complement, "layout"),
    "composed_composition": _composed(cute.composition, "A", "B"),
    "composed_composition_by_mode": _composed(cute.composition, "A", "tiler"),
    "composed_eval": _composed_eval,
    "composed_max_alignment": _result(cute.max_alignment, "layout"),
    "composed_max_common_vector": _result(cute.max_common_vector, "A", "B"),
    "composed_recast_layout": _composed(cute.recast_layout, "layout", raw=("old_bits", "new_bits")),
    "composed_right_inverse": _composed(cute.right_inverse, "layout"),
    "composed_slice_dynamic": _composed_slice,
    "composed_slice_static": _composed_slice,
    "composed_tile_to_shape": _composed(cute.tile_to_shape, "layout", "target", "order"),
    "composed_zipped_divide": _composed(cute.zipped_divide, "layout", "tiler"),
    "composition": _result(cute.composition, "A", "B"),
    "composition_by_mode": _result(cute.composition, "layout", "tiler"),
    "cosize": _result(cute.cosize, "layout"),
    "crd2idx": _crd2idx,
    "dice": _result(cute.dice, "coord", "layout"),
    "downcast": _result(cute.downcast, "layout", raw=("n",)),
    "filter": _result(cute.filter, "layout"),
    "filter_zeros": _result(cute.filter_zeros, "layout"),
    "flat_divide": _result(cute.flat_divide, "layout", "tiler"),
    "flat_product": _result(cute.flat_product, "layout", "tiler"),
    "flatten": _result(cute.flatten, "layout"),
    "group": _result(cute.group_modes, "layout", raw=("begin", "end")),
    "idx2crd_layout": _idx2crd_layout,
    "idx2crd_shape": _idx2crd_shape,
    "layout_props": _layout_props,
    "left_inverse": _result(cute.left_inverse, "layout"),
    "logical_divide": _result(cute.logical_divide, "layout", "tiler"),
    "logical_product": _result(cute.logical_product, "layout", "tiler"),
    "make_fragment_like": _result(cute.make_fragment_like, "layout"),
    "make_identity_layout": _result(cute.make_identity_layout, "shape"),
    "make_layout_left": _result(cute.make_layout, "shape"),
    "make_layout_like": _result(cute.make_layout_like, "layout"),
    "make_layout_right": _result(cute.make_row_major_layout, "shape"),
    "make_ordered_layout": _result(cute.make_ordered_layout, "shape", "order"),
    "max_alignment": _result(cute.max_alignment, "layout"),
    "max_common": _max_common,
    "nullspace": _result(cute.nullspace, "layout"),
    "prepend": _result(cute.prepend, "layout", raw=("n",)),
    "product_each": _result(product_each, "shape"),
    "raked_product": _result(cute.raked_product, "layout", "tiler"),
    "recast_layout": _result(cute.recast_layout, "layout", raw=("old_bits", "new_bits")),
    "right_inverse": _result(cute.right_inverse, "layout"),
    "select": _select,
    "shape_div": _result(shape_div, "A", "B"),
    "size": _result(cute.size, "layout"),
    "slice": _slice,
    "swizzle": _swizzle,
    "take": _result(cute.take, "layout", raw=("begin", "end")),
    "tile_to_shape": _result(cute.tile_to_shape, "layout", "target", "order"),
    "tiled_divide": _result(cute.tiled_divide, "layout", "tiler"),
    "tiled_product": _result(cute.tiled_product, "layout", "tiler"),
    "upcast": _result(cute.upcast, "layout", raw=("n",)),
    "with_shape": _result(cute.with_shape, "layout", "shape"),
    "zip": _result(cute.zip_layouts, "A", "B"),
    "zipped_divide": _result(cute.zipped_divide, "layout", "tiler"),
    "zipped_product": _result(cute.zipped_product, "layout", "tiler"),
}
