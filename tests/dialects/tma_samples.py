# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program for every operation of tensor maps and TMA copies, written as it is printed."""

from collections.abc import Mapping
from types import MappingProxyType

_LAYOUT = "(64,32):(1,64)"
TMA_TYPE = f'!tile.tma<"SM90_TMA_LOAD", f16, "{_LAYOUT}", "{_LAYOUT}", "(64,32)">'
_MULTICAST = f'!tile.tma<"SM90_TMA_LOAD_MULTICAST", f16, "{_LAYOUT}", "{_LAYOUT}", "(64,32)", multicast 2>'
_SMEM = '!tile.tensor<f16, smem, align<128>, "((2048,1)):((1,0))">'
_BOX = '!tile.tensor<f16, smem, align<128>, "2048:1">'
_TILE = '!tile.coord_tensor<"(0,0) o (((64,32),1)):(((1@0,1@1),0))">'


def tma_setup(kind: str = "LOAD", multicast: int = 1) -> str:
    """Operations before a TMA copy: the map %a of %A, the tile %sp of shared memory and %cp of coordinates, an
    mbarrier at %bar, a mask %mask and a policy %p.
    """
    type = _MULTICAST if multicast > 1 else TMA_TYPE.replace("LOAD", kind)
    several = f" multicast {multicast}" if multicast > 1 else ""
    word, blocks = (kind, '0 in "1:0"') if multicast == 1 else ("LOAD_MULTICAST", 'LINEAR in "2:1"')
    blocks = blocks.replace("LINEAR", "%w")
    smem, tile = _SMEM, _TILE
    if multicast > 1:
        tile = '!tile.coord_tensor<"(0,?{div=16}) o (((64,32),1)):(((1@0,1@1),0))">'
    return (
        f'%a = tile.tensor_map "SM90_TMA_{word}" %A smem "{_LAYOUT}"{several} : {type}\n'
        '%c0 = tile.tma_tensor %a : !tile.coord_tensor<"(0,0) o (64,32):(1@0,1@1)">\n'
        '%cg = tile.group_modes %c0, [0, 2] : !tile.coord_tensor<"(0,0) o ((64,32)):((1@0,1@1))">\n'
        '%sg = tile.group_modes %s, [0, 2] : !tile.tensor<f16, smem, align<128>, "((64,32)):((1,64))">\n'
        f"%cp = tile.tma_partition %a, %cg, {blocks} : {tile}\n"
        f"%sp = tile.tma_partition %a, %sg, {blocks} : {smem}\n"
        '%bars = tile.alloc : !tile.tensor<i64, smem, align<8>, "1:1">\n'
        "%bar = tile.ptr %bars(0)\n"
        "%mask = arith.constant 3 : i16\n"
        "%p = arith.constant 1152921504606846976 : i64\n"
    )


_DESCRIPTOR = "%d = tile.ptr %B(0, 0)\n"
_CALL = f"%i = arith.constant 0 : index\n%sb = tile.view %s : {_BOX}\n"

TMA_SAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "tile.tensor_map": (
        tma_setup(),
        tma_setup(multicast=2),
        '%0 = tile.tensor_map "SM90_TMA_LOAD" %A smem "(64,8):(1,64)" tiler "(64,8)" as "bf16"'
        ' : !tile.tma<"SM90_TMA_LOAD", f16, "(64,32):(1,64)", "(64,8):(1,64)", "(64,8)", as "bf16">',
        '%0 = tile.tensor_map "SM90_TMA_STORE" %A smem "(64,8):(1,64)" tiler "(64,8)"'
        ' : !tile.tma<"SM90_TMA_STORE", f16, "(64,32):(1,64)", "(64,8):(1,64)", "(64,8)">',
    ),
    "tile.tma_tensor": (tma_setup(),),
    "tile.tma_partition": (tma_setup(), tma_setup(multicast=2)),
    "tile.copy": (
        f"{tma_setup()}tile.copy %a, %cp, %sp mbarrier %bar policy %p {{note}}",
        f"{tma_setup(multicast=2)}tile.copy %a, %cp, %sp mbarrier %bar multicast %mask {{note}}",
        f"{tma_setup('STORE')}tile.copy %a, %sp, %cp {{note}}",
        f"{tma_setup('REDUCE_ADD')}tile.copy %a, %sp, %cp policy %p {{note}}",
        f"{tma_setup()}{_DESCRIPTOR}tile.copy %a, %cp, %sp mbarrier %bar descriptor %d {{note}}",
    ),
    "tile.tensor_map_ptr": (
        f"{tma_setup()}%m = tile.tensor_map_ptr %a {{note}}\n%i = arith.constant 0 : i32\n"
        "ptx.cp.async.bulk.tensor.prefetch %m[%i, %i]",
    ),
    "tile.copy_tensor_map": (f"{tma_setup()}{_DESCRIPTOR}tile.copy_tensor_map %a, %d {{note}}",),
    "tile.update_tensor_map": (f"{tma_setup()}{_DESCRIPTOR}tile.update_tensor_map %a, %B at %d {{note}}",),
    "tile.prefetch": (
        f"{tma_setup()}tile.prefetch %a {{note}}\ntile.prefetch %a, %cp policy %p {{note}}\ntile.prefetch %a, %cp",
    ),
    "tile.coord_tensor": (f"%i = arith.constant 0 : index\n%0 = tile.coord_tensor (%i, %t) : {_TILE}",),
    "tile.tma_call": (
        f"{tma_setup()}{_CALL}tile.tma_call %a(%i, %i), %sb mbarrier %bar policy %p {{note}}\n"
        "tile.tma_call %a(%i, %i) {note}",
        f"{tma_setup('STORE')}{_CALL}tile.tma_call %a(%i, %i), %sb {{note}}",
        f"{tma_setup('STORE')}{_CALL}{_DESCRIPTOR}tile.tma_call %a(%i, %i), %sb descriptor %d {{note}}",
        f"{tma_setup(multicast=2)}{_CALL}tile.tma_call %a(%i, %i), %sb mbarrier %bar multicast %mask {{note}}",
    ),
})  # fmt: skip
"""What stands in kernels whose beginning is `tests.dialects.samples.TILE_HEAD`."""
