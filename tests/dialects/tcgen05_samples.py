# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - an instruction stands on one line
"""Instructions of tcgen05, each written as it is printed."""

from collections.abc import Mapping
from types import MappingProxyType

CELL = "%0 = ptx.inttoptr %x align 4 : i32 -> !ptx.ptr<tmem>\n"
_MMA = f"{CELL}%1 = arith.constant 135266320 : i32\n%2 = arith.constant false\n"

TCGEN05_SAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "ptx.tcgen05.alloc": ("ptx.tcgen05.alloc cta_group 1 %s, %x {note}", "ptx.tcgen05.alloc cta_group 2 %s, %x"),
    "ptx.tcgen05.dealloc": (f"{CELL}ptx.tcgen05.dealloc cta_group 1 %0, %x",),
    "ptx.tcgen05.relinquish_alloc_permit": ("ptx.tcgen05.relinquish_alloc_permit cta_group 2 {note}",),
    "ptx.tcgen05.fence": (
        'ptx.tcgen05.fence "before_thread_sync" {note}\nptx.tcgen05.fence "after_thread_sync"',
    ),
    "ptx.tcgen05.wait": ('ptx.tcgen05.wait "ld"\nptx.tcgen05.wait "st" {note}',),
    "ptx.tcgen05.ld": (
        f'{CELL}%1 = ptx.tcgen05.ld "32x32b" x 1 %0 : vector<1xi32>',
        f'{CELL}%1 = ptx.tcgen05.ld "16x256b" x 32 pack %0 {{note}} : vector<128xi32>',
        f'{CELL}%1 = ptx.tcgen05.ld "16x32bx2" x 4 %0 offset 16 : vector<4xi32>',
    ),
    "ptx.tcgen05.st": (
        f"{CELL}%1 = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<4xi32>\n"
        'ptx.tcgen05.st "16x128b" x 2 unpack %1, %0 : vector<4xi32>\n'
        'ptx.tcgen05.st "16x32bx2" x 4 %1, %0 offset 8 : vector<4xi32>',
    ),
    "ptx.tcgen05.ld.red": (
        f'{CELL}%1:2 = ptx.tcgen05.ld.red "32x32b" x 8 "max.abs.NaN.f32" %0 : vector<8xi32>, f32\n'
        '%2:2 = ptx.tcgen05.ld.red "16x32bx2" x 2 "min.u32" %0 offset 4 : vector<2xi32>, i32',
    ),
    "ptx.tcgen05.cp": (
        f'{CELL}ptx.tcgen05.cp "32x128b.warpx4" cta_group 1 %0, %v\n'
        'ptx.tcgen05.cp "128x256b" cta_group 1 unpack "b4x16_p64" %0, %v {note}',
    ),
    "ptx.tcgen05.shift": (f"{CELL}ptx.tcgen05.shift cta_group 1 %0",),
    "ptx.tcgen05.mma": (
        f'{_MMA}ptx.tcgen05.mma "f16" cta_group 1 %0, %v, %v, %1, %2 : i64',
        f'{_MMA}ptx.tcgen05.mma "f16" cta_group 1 %0, %0, %v, %1, %2 mask(%x, %x, %x, %x) scale_d 3 ashift collector "a::lastuse" {{note}} : !ptx.ptr<tmem>',
        f'{CELL}%1 = arith.constant 135266324 : i32\n%2 = arith.constant true\nptx.tcgen05.mma "f16" cta_group 1 %0, %v, %v, %1, %2 sparse %0 : i64',
    ),
    "ptx.tcgen05.mma.ws": (
        f'{_MMA}ptx.tcgen05.mma.ws "f16" cta_group 1 %0, %v, %v, %1, %2 zero_columns %v collector "b2::fill" : i64',
    ),
    "ptx.tcgen05.mma.block_scale": (
        f'{CELL}%1 = arith.constant 144703488 : i32\n%2 = arith.constant false\nptx.tcgen05.mma.block_scale "mxf8f6f4" cta_group 1 scale "block32" %0, %v, %v, %1, %2, %0, %0 : i64',
    ),
    "ptx.tcgen05.commit": (
        "ptx.tcgen05.commit cta_group 1 %s {note}",
        "%0 = arith.constant 3 : i16\nptx.tcgen05.commit cta_group 2 %s multicast %0",
    ),
    "ptx.tcgen05.descriptor": ("%0 = ptx.tcgen05.descriptor %s leading 1 stride 64 swizzling 2 {note}",),
})  # fmt: skip
