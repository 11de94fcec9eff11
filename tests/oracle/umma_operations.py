# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded operations of tcgen05.mma: its atoms, partitions, fragments in tensor memory, instruction descriptors,
shared memory and its descriptors.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilefold.base.element_types import BY_CXX
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import ComposedLayout, Layout, cosize, join, make_identity_layout, make_layout, size
from tilefold.layout.algebra.integers import add
from tilefold.layout.algebra.inttuple import ceil_div
from tilefold.layout.algebra.product import tile_to_shape
from tilefold.layout.atoms.contract import Major
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.atoms.umma_descriptors import InstructionDescriptor, SmemDescriptor, Swizzling
from tilefold.layout.atoms.umma_encoding import instruction_descriptor, instruction_descriptor_of
from tilefold.layout.atoms.umma_smem import (
    make_umma_descriptor,
    select_umma_mode,
    swizzling_of,
    tile_to_mma_shape,
    umma_smem_atom,
)
from tilefold.layout.tiling.partition import local_tile
from tilefold.layout.tiling.tiled_mma import TiledMma, make_tiled_mma
from tilefold.layout.tmem.cells import add_elements, count_columns
from tilefold.layout.tmem.fragments import Placement, place_matrix, place_operand, place_stationary

from .algebra_operations import Inputs, fnv1a64, values
from .copy_operations import part
from .mma_operations import tiled_mma_facts
from .record import RunTimeInt, parse, show

_TYPE_NAMES = {0: "SWIZZLE_NONE", 1: "SWIZZLE_128B_BASE32B", 2: "SWIZZLE_128B", 4: "SWIZZLE_64B", 6: "SWIZZLE_32B"}
_MODES = {"Interleaved": Placement.INTERLEAVED, "NonInterleaved": Placement.APART, "Duplicated": Placement.DUPLICATED}
_RECORDED_DESCRIPTORS, _RECORDED_VALUES, _RECORDED_CELLS = 32, 64, 16
_UNDECIDED, _PACKED, _RECORDED_SELECTOR = 7, 1, 2
_UNPACKED = re.compile(r"^cute::detail::(float_e[0-9]m[0-9])_unpacksmem_t$")


def width(name: str) -> int:
    """The bits of an element of a C++ type in shared memory."""
    if _UNPACKED.match(name):
        return 8
    return 8 if name == "float_ue4m3_t" else BY_CXX[name].bits


def tiled_umma(inputs: Inputs) -> TiledMma:
    """The tiled MMA that the inputs describe."""
    layout, permutation = inputs.get("atom_layout", "(1,1,1)"), inputs.get("permutation", "(_,_,_)")
    return make_tiled_mma(mma_atom(inputs["mma"]), make_layout(parse(layout, False)), parse(permutation, False))


def _atom(inputs: Inputs, dynamic: bool) -> Inputs:
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
        **_fragment_types(inputs["mma"], atom.types, atom.majors),
        "idesc": _instruction(instruction_descriptor_of(atom)),
    }


def _fragment_types(name: str, types: tuple[str, ...], majors: tuple[Major, Major]) -> Inputs:
    """CuTe's types of fragments, which say where an operand is and how tensor memory has it."""
    atom = mma_atom(name)
    blocks, a_in_cells = atom.threads, "_TS" in name
    cxx = {"s8": "signed char", "u8": "unsigned char", "f32": "float", "s32": "int"}
    d, a = (cxx.get(x, f"cutlass::{next(k for k, v in BY_CXX.items() if v.ptx == x)}") for x in types[:2])
    apart = a_in_cells and blocks == 1
    cells = f"cute::UMMA::tmem_frg<{{}}, {{}}, {blocks}, cute::UMMA::TmemAllocMode::{{}}>"
    of_c = cells.format(d, "int" if apart else "unsigned int", "NonInterleaved" if apart else "Interleaved")
    of_a = cells.format(a, a, "NonInterleaved" if blocks == 1 else "Duplicated")
    sparse = "sparse_" if "_SPARSE" in name else ""
    of_smem = "cute::UMMA::{}smem_desc<cute::UMMA::Major::{}>"
    of_b, in_smem = of_smem.format("", majors[1].value), of_smem.format(sparse, majors[0].value)
    return {"FrgTypeA": of_a if a_in_cells else in_smem, "FrgTypeB": of_b, "FrgTypeC": of_c}


def _tiled_mma(inputs: Inputs, dynamic: bool) -> Inputs:
    return tiled_mma_facts(tiled_umma(inputs))


def _partition(operand: str) -> Callable[[Inputs, bool], Inputs]:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        mma, tensor = tiled_umma(inputs), parse(inputs["tensor"], dynamic)
        found = [mma.partition(operand, tensor, RunTimeInt(v)) for v in range(inputs["vs"])]
        return {"slices": [{"v": v, **part(*x)} for v, x in enumerate(found)]}

    return run


def _partition_identity(inputs: Inputs, dynamic: bool) -> Inputs:
    mma, tensor = tiled_umma(inputs), make_identity_layout(parse(inputs["shape"], dynamic))
    slices: list[Inputs] = []
    for v in range(inputs["vs"]):
        layout, start = mma.partition(inputs["operand"], tensor, v)
        slices.append({"v": v, "layout": layout, "coord": add(start, layout(0))})
    return {"slices": slices}


def _partition_shape(inputs: Inputs, dynamic: bool) -> Inputs:
    mma = tiled_umma(inputs)
    return {x: mma.partition_shape(x, parse(inputs[f"shape_{x}"], dynamic)) for x in "ABC"}


def cells(layout: Layout, bits: int, address: int = 0) -> Inputs:
    """What is recorded of a tensor in tensor memory."""
    indices = values(layout)
    return {
        "layout": layout,
        "addr": f"0x{address:08x}",
        "value_bits": bits,
        "shape": layout.shape,
        "cosize": cosize(layout),
        "columns": count_columns(layout, bits),
        "idx": indices[:_RECORDED_CELLS],
        "fnv1a64": fnv1a64(indices),
    }


def accumulator(inputs: Inputs) -> tuple[Layout, int]:
    """The accumulator that the inputs describe, in tensor memory, and the bits of its elements."""
    mma = tiled_umma(inputs)
    shape = mma.partition_shape("C", parse(inputs.get("shape") or inputs["tile_mn"], False))
    stages = (inputs["stages"],) if "stages" in inputs else ()
    return place_operand(mma.atom, "C", (*shape, *stages)), mma.atom.bits[3]


def _fragment_C(inputs: Inputs, dynamic: bool) -> Inputs:
    return cells(*accumulator(inputs))


def _fragment_A(inputs: Inputs, dynamic: bool) -> Inputs:
    mma = tiled_umma(inputs)
    shape = mma.partition_shape("A", parse(inputs["shape"], dynamic))
    stages = (inputs["stages"],) if "stages" in inputs else ()
    return cells(place_operand(mma.atom, "A", (*shape, *stages)), mma.atom.bits[1])


def _tmem_frg(inputs: Inputs, dynamic: bool) -> Inputs:
    bits, storage = width(inputs["value"]), width(inputs["storage"])
    shape, blocks = parse(inputs["shape"], dynamic), inputs["N_SM"]
    return cells(place_matrix(shape, blocks, bits, storage, _MODES[inputs["mode"]]), bits)


def _tmem_frg_ws(inputs: Inputs, dynamic: bool) -> Inputs:
    bits = width(inputs["value"])
    return cells(place_stationary(parse(inputs["shape"], dynamic), bits, width(inputs["storage"])), bits)


def _accumulator_stages(inputs: Inputs, dynamic: bool) -> Inputs:
    mma = tiled_umma(inputs)
    shape = mma.partition_shape("C", parse(inputs["tile_mn"], False))
    if not inputs["overlapping"]:
        return cells(place_operand(mma.atom, "C", (*shape, inputs["stages"])), mma.atom.bits[3])
    one = place_operand(mma.atom, "C", shape)
    apart = 256 - parse(inputs["epi_tile"], False)[1]  # the last columns of one buffer are the first of the other
    return cells(join((*one, Layout(2, apart))), mma.atom.bits[3])


def descriptor_fields(found: SmemDescriptor) -> Inputs:
    return {
        "hex": f"0x{found.value:016x}",
        "start_address": found.start & 0x3FFF,
        "leading_byte_offset": found.leading,
        "stride_byte_offset": found.stride,
        "version": found.version,
        "base_offset": found.base_offset,
        "lbo_mode": int(found.is_absolute),
        "layout_type": found.swizzling,
        "layout_type_name": _TYPE_NAMES[found.swizzling],
    }


def smem_layout_atom(name: str, bits: int) -> tuple[Any, str]:
    """The layout `UMMA::Layout_K_SW128_Atom` and its major."""
    major, mode = name.removeprefix("UMMA::Layout_").removesuffix("_Atom").split("_", 1)
    return umma_smem_atom(major, mode, bits), major


def plain(layout: Any) -> Layout:
    """The layout without its swizzle."""
    return layout.outer if isinstance(layout, ComposedLayout) else layout


def in_bytes(layout: Any, bits: int) -> str:
    """A layout of shared memory as CuTe prints it: the swizzle is one of bytes."""
    form = swizzling_of(layout, bits)
    swizzle = "2,5,2" if form is Swizzling.BYTES_128_ATOM_32 else f"{form.bits},4,3"
    return f"Sw<{swizzle}> o smem_ptr[{bits}b](unset) o {show(plain(layout), False)}"


def _smem(layout: Any, bits: int) -> Inputs:
    everything = values(layout)
    return {
        "layout": in_bytes(layout, bits),
        "shape": layout.shape,
        "position_independent": layout,
        "fnv1a64_all": fnv1a64(everything),
        "values": everything[:_RECORDED_VALUES],
        "cosize": cosize(layout),
    }


def _smem_atom(inputs: Inputs, dynamic: bool) -> Inputs:
    return _smem(smem_layout_atom(inputs["atom"], inputs["val_bits"])[0], inputs["val_bits"])


def _order(inputs: Inputs) -> Any:
    return parse(inputs["order"], False) if "order" in inputs else None


def _tile_to_shape(inputs: Inputs, dynamic: bool) -> Inputs:
    layout, _ = smem_layout_atom(inputs["atom"], inputs["val_bits"])
    return _smem(tile_to_shape(layout, parse(inputs["target"], False), _order(inputs)), inputs["val_bits"])


def _tile_to_mma_shape(inputs: Inputs, dynamic: bool) -> Inputs:
    layout, _ = smem_layout_atom(inputs["atom"], inputs["val_bits"])
    return _smem(tile_to_mma_shape(layout, parse(inputs["mma_tile_shape"], False), _order(inputs)), inputs["val_bits"])


def _selector(inputs: Inputs, dynamic: bool) -> Inputs:
    name, major = _UNPACKED.sub(r"\1_t", inputs["type"]), inputs["major"]  # CuTe counts the elements as they are
    bits = width(name)
    mode = select_umma_mode(major, bits, inputs["BLK_MN"], inputs["BLK_K"])
    return {"atom_layout": in_bytes(umma_smem_atom(major, mode, bits), bits)}


def _descriptors(inputs: Inputs, dynamic: bool) -> Inputs:
    bits = inputs["val_bits"]
    atom, major = smem_layout_atom(inputs["atom"], bits)
    shape, tiler = parse(inputs["smem_shape"], False), parse(inputs["mma_tile"], False)
    layout = tile_to_shape(atom, shape, _order(inputs))
    outputs: Inputs = {"descs": {}}
    rest: Any = ceil_div(shape, tiler)
    for m in range(rest[0]):
        for k in range(rest[1]):
            tile, start = local_tile(plain(layout), tiler, (m, k))
            assert isinstance(tile, Layout)
            address = inputs["smem_base"] + start * bits // 8
            found = make_umma_descriptor(tile, swizzling_of(layout, bits), bits, major, address)
            outputs["descs"][f"({m},{k})"] = descriptor_fields(found)
            outputs["tile_layout"] = tile
    return outputs


def _fragment_descriptors(inputs: Inputs, dynamic: bool) -> Inputs:
    bits, operand, mma = width(inputs["type"]), inputs["operand"], tiled_umma(inputs)
    atom, major = smem_layout_atom(inputs["smem_atom"], bits)
    layout = tile_to_mma_shape(atom, parse(inputs["smem_mma_shape"], False), _order(inputs))
    first = make_umma_descriptor(plain(layout)[0], swizzling_of(layout, bits), bits, major, inputs["smem_base"])
    fragment = mma.make_fragment(operand, plain(layout))
    steps = values(fragment)[: min(size(fragment), _RECORDED_DESCRIPTORS)]
    return {
        "fragment": fragment,
        "descs": [f"0x{plus(first.value, step):016x}" for step in steps],
        "desc0": descriptor_fields(first),
    }


def plus(descriptor: int, step: int) -> int:
    """A descriptor whose lower half has grown."""
    return descriptor & ~0xFFFFFFFF | (descriptor + step) & 0xFFFFFFFF


def _instruction(found: InstructionDescriptor) -> Inputs:
    fields: Inputs = {
        "hex": f"0x{found.value:08x}",
        "sparse_id2": found.selector,
        "sparse_flag": int(found.sparse),
        "saturate": int(found.saturate),
        "c_format": found.d,
        "a_format": found.a,
        "b_format": found.b,
        "a_negate": int(found.negate_a),
        "b_negate": int(found.negate_b),
        "a_major": int(found.a_is_mn),
        "b_major": int(found.b_is_mn),
        "n_dim": found.n >> 3,
        "m_dim": found.m >> 4,
        "max_shift": found.shift,
    }
    if found.kind.is_scaled:
        fields |= {
            "scale_format": found.scale_type,
            "a_sf_id": found.a_scale,
            "b_sf_id": found.b_scale,
            "k_size": int(found.is_k96),
        }
    return fields


def _make_instruction(inputs: Inputs, dynamic: bool) -> Inputs:
    types = [_element(inputs[f"{x}_type"]) for x in "cab"]
    packed = "sf_type" not in inputs and types[1] == "e2m1"  # which no instruction has, but the function takes
    if packed:
        types = [types[0], "e4m3", "e4m3"]
    found = instruction_descriptor(
        (types[0], types[1], types[2]),
        inputs["M"],
        inputs["N"],
        (Major(inputs["a_major"]), Major(inputs["b_major"])),
        negates=(inputs["a_neg"] == "Neg", inputs["b_neg"] == "Neg"),
        sparse=inputs["sparse"],
        saturate=inputs.get("saturate") == "True",
        shift=int(inputs.get("max_shift", "NoShift").removeprefix("MaxShift").replace("NoShift", "0")),
        scale=_scale(inputs["sf_type"]) if "sf_type" in inputs else "",
    )
    if packed:
        found = replace(found, a=_PACKED, b=_PACKED)
    if "type_erased" in inputs["a_type"]:  # a type that the launch will write there
        found = replace(found, a=_UNDECIDED, b=_UNDECIDED)
    ids = [inputs.get(f"tmem_sf{x}_addr", 0) >> 30 for x in "ab"]
    selector = _RECORDED_SELECTOR if found.sparse and not found.kind.is_scaled else 0
    launched = replace(found, a_scale=ids[0], b_scale=ids[1], selector=selector)
    return {"desc": _instruction(found), "runtime": f"0x{launched.value << 32:016x}"}


def _element(name: str) -> str:
    erased = {"type_erased_dynamic_float4_t": "float_e2m1_t", "type_erased_dynamic_float8_t": "float_e4m3_t"}
    name = erased.get(name, name)
    unpacked = _UNPACKED.match(name)
    element = BY_CXX.get(f"{unpacked[1]}_t" if unpacked else name)
    if element is None:
        raise LayoutError(Code.ATOM_OPERAND, f"there is no element type {name}")
    return f"{element.ptx} in bytes" if unpacked else element.ptx


def _scale(name: str) -> str:
    return name.removeprefix("float_").removesuffix("_t")


def _tmem_ptr_add(inputs: Inputs, dynamic: bool) -> Inputs:
    bits = width(inputs["value"])
    return {
        "addr": f"0x{add_elements(inputs['base'], inputs['index'], bits):08x}",
        "OffsetShift": (32 // bits).bit_length() - 1,
    }


def is_divided_evenly(outputs: Inputs) -> bool:
    """Whether the blocks of a tiled MMA hold each element of its tiles of A, B and C."""
    m, n, k = outputs["tile_shape"]
    sizes = {"LayoutA_TV": m * k, "LayoutB_TV": n * k, "LayoutC_TV": m * n}
    return all(sorted(values(outputs[name])) == list(range(size)) for name, size in sizes.items())


UMMA: dict[str, Callable[[Inputs, bool], Inputs]] = {
    "make_instr_desc": _make_instruction,
    "make_instr_desc_block_scaled": _make_instruction,
    "make_sm100_accumulator": _accumulator_stages,
    "make_umma_desc": _descriptors,
    "sm100_smem_selector": _selector,
    "tile_to_mma_shape": _tile_to_mma_shape,
    "tmem_frg": _tmem_frg,
    "tmem_frg_ws": _tmem_frg_ws,
    "tmem_ptr_add": _tmem_ptr_add,
    "umma_atom": _atom,
    "umma_fragment_A_tmem": _fragment_A,
    "umma_fragment_C": _fragment_C,
    "umma_fragment_desc": _fragment_descriptors,
    "umma_partition_identity": _partition_identity,
    "umma_partition_shape": _partition_shape,
    "umma_smem_atom": _smem_atom,
    "umma_tile_to_shape": _tile_to_shape,
    "umma_tiled_mma": _tiled_mma,
    **{f"umma_partition_{x}": _partition(x) for x in "ABC"},
}
