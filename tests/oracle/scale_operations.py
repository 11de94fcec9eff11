# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded operations of scale factors: in global, shared and tensor memory, and the copies that bring them there;
and of matrix instructions of a warp that have them.
"""

from collections.abc import Callable
from typing import Any

from tilefold.base.element_types import BY_PTX
from tilefold.layout.algebra.coalesce import filter_zeros
from tilefold.layout.algebra.core import Layout, cosize, make_layout, size
from tilefold.layout.algebra.product import blocked_product
from tilefold.layout.algebra.recast import recast_layout
from tilefold.layout.algebra.scalars import RunTimeInt, value_of
from tilefold.layout.atoms.contract import Role
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.instructions import Umma
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_sync import registers
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.atoms.umma_descriptors import UNIT
from tilefold.layout.tiling.tiled_mma import TiledMma, make_tiled_mma
from tilefold.layout.tiling.tmem_copies import make_utccp_copy, values_descriptor
from tilefold.layout.tmem.cells import count_columns
from tilefold.layout.tmem.scales import place_scales, scale_block, scales_in_smem, tile_scales

from .algebra_operations import Inputs, fnv1a64, values
from .copy_operations import slices
from .mma_operations import tiled_mma_facts
from .record import parse, show
from .umma_operations import descriptor_fields, plus

_FACTOR = 8
_RECORDED_DESCRIPTORS = 32


def _hash(layout: Any) -> str:
    return fnv1a64(values(_known(filter_zeros(layout))))


def _known(layout: Any) -> Layout:
    """The same with the values of its run-time integers."""
    return Layout(value_of(layout.shape), value_of(layout.stride))


def _atom(inputs: Inputs, dynamic: bool) -> Inputs:
    block, major = scale_block(inputs["SFVecSize"], inputs["major"]), inputs["major"]
    none: Any = RunTimeInt(0)
    stride: Any = (none, 1, none) if major == "K" else (1, none, none)
    return {
        "SfAtom": block,
        "LayoutSF": blocked_product(block, Layout((none, none, none), stride)),
        "fnv1a64": fnv1a64(values(block)),
    }


def _tiled(operand: str) -> Callable[[Inputs, bool], Inputs]:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        vector, problem = inputs["SFVecSize"], parse(inputs["problem_shape"], inputs["ints"] == "dynamic")
        m, n, k, *batch = problem
        of = {"A": (m, k, *batch), "B": (n, k, *batch), "D": (m, n, *(batch or [1]))}[operand]
        layout = tile_scales(vector, of, inputs.get("major", "K"))
        zeros = filter_zeros(layout)
        rest = (0,) * (len(layout) - 2)
        probes = [(0, 0), (33, 0), (1, vector), (0, 4 * vector), tuple([value_of(n) - 1 for n in of[:2]])]
        return {
            "layout": _known(layout),
            "layout_typed": show(layout, True),
            "size": value_of(size(layout)),
            "cosize": value_of(cosize(layout)),
            "filter_zeros": _known(zeros),
            "fnv1a64": _hash(layout),
            "probe": [value_of(layout((*p, *rest))) for p in probes],
        }

    return run


def _in_smem(inputs: Inputs, operand: str) -> Layout:
    atom, (m, n, k) = mma_atom(inputs["mma"]), parse(inputs["tile_shape"], False)
    rows = m // atom.threads if operand == "A" else n
    return scales_in_smem(inputs["SFVecSize"], atom.shape[2], rows, k)


def _smem(operand: str) -> Callable[[Inputs, bool], Inputs]:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        layout = _in_smem(inputs, operand)
        return {
            "layout": layout,
            "cosize": cosize(layout),
            "filter_zeros": filter_zeros(layout),
            "fnv1a64": _hash(layout),
        }

    return run


def _in_cells(inputs: Inputs, operand: str) -> Layout:
    atom = mma_atom(inputs["mma"])
    assert isinstance(atom.instruction, Umma)
    halved = atom.threads == 2 and atom.shape[0] == 128
    return place_scales(_in_smem(inputs, operand).shape, of_b=operand == "B", two_by_two=halved)


def _cells(operand: str) -> Callable[[Inputs, bool], Inputs]:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        layout = _in_cells(inputs, operand)
        return {
            "layout": layout,
            "addr": "0x00000000",
            "value_bits": _FACTOR,
            "columns": count_columns(layout, _FACTOR),
            "shape": layout.shape,
            "filter_zeros": filter_zeros(layout),
            "fnv1a64": _hash(layout),
        }

    return run


def _copied(operand: str) -> Callable[[Inputs, bool], Inputs]:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        atom = copy_atom(inputs["op"], _FACTOR)
        source, target = filter_zeros(_in_smem(inputs, operand)), filter_zeros(_in_cells(inputs, operand))
        copy = make_utccp_copy(atom, target)
        read, written = copy.partition_S(source, 0)[0], copy.partition_D(target, 0)[0]
        assert isinstance(read, Layout)
        first, steps = (
            values_descriptor(atom, read[0][0], inputs["smem_base"]),
            recast_layout(read, atom.val_bits, 8 * UNIT),
        )
        own = Layout(steps[0].shape, steps[0].stride)
        rest = make_layout(tuple([mode.shape for mode in steps][1:]))
        starts = [steps((0, *_coordinates(i, rest))) for i in range(size(rest))]
        assert own.size
        return {
            "Tiler_MN": copy.tiler,
            "TiledLayout_TV": copy.layout_tv,
            "partition_S": read,
            "partition_D": written,
            "desc_layout": steps,
            "descs": [f"0x{plus(first.value, x):016x}" for x in starts[:_RECORDED_DESCRIPTORS]],
            "desc0": descriptor_fields(first),
        }

    return run


def _coordinates(index: int, layout: Layout) -> tuple[int, ...]:
    found: list[int] = []
    for mode in layout:
        found.append(index % mode.size)
        index //= mode.size
    return tuple(found)


def _warp_mma(inputs: Inputs) -> TiledMma:
    layout = make_layout(parse(inputs.get("atom_layout", "(1,1,1)"), False))
    return make_tiled_mma(mma_atom(inputs["mma"]), layout, parse(inputs.get("permutation", "(_,_,_)"), False))


def _warp_atom(inputs: Inputs, dynamic: bool) -> Inputs:
    atom = mma_atom(inputs["mma"])
    _, a, b, c = atom.bits
    return {
        "Shape_MNK": atom.shape,
        "ThrID": atom.thr_id,
        "LayoutA_TV": atom.layout_a,
        "LayoutB_TV": atom.layout_b,
        "LayoutC_TV": atom.layout_c,
        "bitsA": a,
        "bitsB": b,
        "bitsC": c,
        **{f"regs{x}": registers(atom, x).count for x in "ABC"},
        **(_warp_scales(atom) if atom.has_scales else {}),
    }


def _warp_scales(atom: MmaAtom) -> Inputs:
    a, b = (atom.contract.operand(role) for role in (Role.SCALE_A, Role.SCALE_B))
    vector, bits = atom.products.scaled, BY_PTX[a.element].bits
    return {"LayoutSFA_TV": a.layout, "LayoutSFB_TV": b.layout, "SFVecSize": vector, "bitsSF": bits}


def _warp_tiled(inputs: Inputs, dynamic: bool) -> Inputs:
    return tiled_mma_facts(_warp_mma(inputs))


def _warp_partition(operand: str) -> Callable[[Inputs, bool], Inputs]:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        mma, tensor = _warp_mma(inputs), parse(inputs["tensor"], dynamic)
        return {"slices": slices(lambda t, thread: mma.partition(operand, t, thread), tensor, inputs["tids"])}

    return run


SCALES: dict[str, Callable[[Inputs, bool], Inputs]] = {
    "sf_atom": _atom,
    "sm120_atom": _warp_atom,
    "sm120_tiled_mma": _warp_tiled,
    **{f"deduce_smem_layoutSF{x}": _smem(x) for x in "AB"},
    **{f"sm120_partition_{x}": _warp_partition(x) for x in "ABC"},
    **{f"tile_atom_to_shape_SF{x}": _tiled(x) for x in "ABD"},
    **{f"tmem_fragment_SF{x}": _cells(x) for x in "AB"},
    **{f"utccp_SF{x}": _copied(x) for x in "AB"},
}
