# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a fault and its message stand on one line
"""Faults of instructions of tcgen05: forms that PTX does not have, and constants into which no assembler looks."""

from tests.dialects.faults import Fault, ptx_faults, tile_faults
from tests.dialects.tcgen05_samples import CELL


def _mma(
    idesc: int, said: str, kind: str = "f16", before: str = "", more: str = "", a: str = "%v", group: int = 1
) -> tuple[str, str]:
    type = "!ptx.ptr<tmem>" if a == "%0" else "i64"
    head = f"{CELL}%1 = arith.constant {idesc} : i32\n%2 = arith.constant false\n{before}"
    return f'{head}«ptx.tcgen05.mma» "{kind}" cta_group {group} %0, {a}, %v, %1, %2 {more} : {type}', said


def _scaled(words: str, said: str, kind: str = "mxf8f6f4") -> tuple[str, str]:
    return (
        f'{CELL}%1 = arith.constant 144703488 : i32\n%2 = arith.constant false\n«ptx.tcgen05.mma.block_scale» "{kind}" cta_group 1 {words} %0, %v, %v, %1, %2, %0, %0 : i64',
        said,
    )


def _access(text: str, said: str) -> tuple[str, str]:
    return f"{CELL}{text}", said


F16 = 0x8100010
_UMMA = '#tile.mma_atom<"SM100_MMA_F16BF16_SS<half_t,half_t,float,128,64,Major::K,Major::K>">'
_X = "%x0 = tile.tmem_alloc 64 cta_group 1\n"


def _tile_gemm(
    said: str,
    a: str = 'f16, smem, align<1024>, "S<3,3,3> o 0 o ((128,16),1,4):((64,1),0,16)"',
    d: str = "((128,64),1,1):((65536,1),0,0)",
) -> tuple[str, str]:
    b = '!tile.tensor<f16, smem, align<1024>, "S<3,3,3> o 0 o ((64,16),1,4):((64,1),0,16)">'
    return (
        f'{_X}%a = tile.alloc : !tile.tensor<{a}>\n%b = tile.alloc : {b}\n%d = tile.tensor_at %x0 : !tile.tensor<f32, tmem, align<4>, "{d}">\n«tile.gemm» {_UMMA} %a, %b, %d',
        said,
    )


TCGEN05_FAULTS: list[Fault] = [
    *tile_faults(
        "tile.tmem_alloc",
        ("%0 = «tile.tmem_alloc» 96 cta_group 1", "96 columns cannot be allocated"),
        ("%0 = «tile.tmem_alloc» 64 cta_group 3", "cta_group is 1 or 2, not 3"),
        (f"{_X}%0 = «tile.tmem_alloc» 64 cta_group 1", "allocates tensor memory once"),
    ),
    *tile_faults("tile.tmem_dealloc", (f"{_X}%0 = arith.constant 1 : i32\n%1 = ptx.ptr_add %x0, %0 : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>\n«tile.tmem_dealloc» %1", "the address is that of tile.tmem_alloc")),
    *tile_faults(
        "tile.gemm",
        _tile_gemm("are in tensor memory at", d="((128,64),1,1):((65536,2),0,0)"),
        _tile_gemm("E0315", a='f16, smem, align<1024>, "((128,16),1,4):((24,1),0,4096)"'),
        _tile_gemm("as the hardware swizzles 128 bytes", a='f16, smem, align<512>, "S<3,3,3> o 0 o ((128,16),1,4):((64,1),0,16)"'),
        _tile_gemm("is in rmem; it can be in smem", a='f16, rmem, align<16>, "((128,16),1,4):((16,1),0,2048)"'),
    ),
    *tile_faults("tile.make_fragment_C", (f"%m = tile.tiled_mma {_UMMA}\n%0 = tile.make_fragment_C «%m, %A»", "is in tensor memory")),
    *tile_faults("tile.tiled_copy", ('%0 = tile.tiled_copy «#tile.copy_atom<"SM100_TMEM_LOAD_32dp32b1x", f16> tmem %A»', "is made for a tensor there, not in gmem")),
    *ptx_faults(
        "ptx.tcgen05.alloc",
        ("«ptx.tcgen05.alloc» cta_group 3 %s, %x", "cta_group is 1 or 2, not 3"),
        ("%0 = arith.constant 48 : i32\n«ptx.tcgen05.alloc» cta_group 1 %s, %0", "48 columns cannot be allocated"),
        ("ptx.tcgen05.alloc cta_group 1 %s, %x\n«ptx.tcgen05.alloc» cta_group 2 %s, %x", "instructions of cta_group 1 and of cta_group 2"),
    ),
    *ptx_faults("ptx.tcgen05.dealloc", (f"{CELL}%1 = arith.constant 16 : i32\n«ptx.tcgen05.dealloc» cta_group 1 %0, %1", "16 columns")),
    *ptx_faults("ptx.tcgen05.relinquish_alloc_permit", ("«ptx.tcgen05.relinquish_alloc_permit» cta_group 0", "cta_group is 1 or 2")),
    *ptx_faults("ptx.tcgen05.fence", ('«ptx.tcgen05.fence» "after"', 'tcgen05.fence has before_thread_sync, after_thread_sync; not "after"')),
    *ptx_faults("ptx.tcgen05.wait", ('«ptx.tcgen05.wait» "mma"', 'tcgen05.wait has ld, st; not "mma"')),
    *ptx_faults(
        "ptx.tcgen05.ld",
        _access('%1 = «ptx.tcgen05.ld» "8x8b" x 1 %0 : vector<1xi32>', 'not by "8x8b"'),
        _access('%1 = «ptx.tcgen05.ld» "16x256b" x 64 %0 : vector<256xi32>', "16x256b is executed 1 to 32 times"),
        _access('%1 = «ptx.tcgen05.ld» "32x32b" x 4 %0 offset 8 : vector<4xi32>', "32x32b has no offset"),
        _access('%1 = «ptx.tcgen05.ld» "32x32b" x 4 %0 : vector<8xi32>', "are vector<4xi32>, not vector<8xi32>"),
    ),
    *ptx_faults("ptx.tcgen05.st", _access('%1 = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<4xi32>\n«ptx.tcgen05.st» "32x32b" x 3 %1, %0 : vector<4xi32>', "a power of two, not 3")),
    *ptx_faults(
        "ptx.tcgen05.ld.red",
        _access('%1, %2 = «ptx.tcgen05.ld.red» "16x64b" x 2 "max.f32" %0 : vector<2xi32>, f32', "loads 32x32b or 16x32bx2"),
        _access('%1, %2 = «ptx.tcgen05.ld.red» "32x32b" x 2 "sum.f32" %0 : vector<2xi32>, f32', 'not "sum.f32"'),
        _access('%1, %2 = «ptx.tcgen05.ld.red» "32x32b" x 2 "max.s32" %0 : vector<2xi32>, f32', "max.s32 gives i32, not f32"),
    ),
    *ptx_faults(
        "ptx.tcgen05.cp",
        _access('«ptx.tcgen05.cp» "64x128b" cta_group 1 %0, %v', 'not "64x128b"'),
        _access('«ptx.tcgen05.cp» "128x256b" cta_group 1 unpack "b5" %0, %v', 'not "b5"'),
    ),
    *ptx_faults("ptx.tcgen05.shift", _access("«ptx.tcgen05.shift» cta_group 4 %0", "cta_group is 1 or 2")),
    *ptx_faults(
        "ptx.tcgen05.mma",
        _mma(F16, 'the kinds f16, tf32, f8f6f4, i8; not "mxf4"', "mxf4"),
        _mma(F16, 'not "a::keep"', more='collector "a::keep"'),
        _mma(F16 + (1 << 17), "N = 72; kind::f16 of a pair", group=2),
        _mma(F16 | 1 << 2, "bit 2 says sparse"),
        (f'{CELL}%1 = arith.constant {F16} : i32\n%2 = arith.constant false\n%3 = arith.constant {1 << 62} : i64\n«ptx.tcgen05.mma» "f16" cta_group 1 %0, %v, %3, %1, %2 : i64', "the descriptor of B has version 0"),
        _mma(F16, "a mask of lanes has 4 words with cta_group 1, not 2", more="mask (%x, %x)"),
        _mma(F16, "scale_d is 0 to 15", more="scale_d 16"),
        _mma(F16, "ashift is for A in tensor memory", more="ashift"),
        _mma(F16, "ashift excludes", more='ashift collector "a::use"', a="%0"),
    ),
    *ptx_faults("ptx.tcgen05.mma.ws", (f'{CELL}%1 = arith.constant false\n«ptx.tcgen05.mma.ws» "f16" cta_group 2 %0, %v, %v, %x, %1 : i64', "tcgen05.mma.ws is of one block")),
    *ptx_faults("ptx.tcgen05.mma.block_scale", _scaled('scale "block16"', "the scales of mxf8f6f4 are none, scale_vec::1X, block32")),
    *ptx_faults("ptx.tcgen05.commit", ("ptx.tcgen05.commit cta_group 1 «%A»", "shared")),
    *ptx_faults(
        "ptx.tcgen05.descriptor",
        ("%0 = «ptx.tcgen05.descriptor» %s leading 16384 stride 8 swizzling 0", "the field `leading` is 16384; it has 14 bits"),
        ("%0 = «ptx.tcgen05.descriptor» %s leading 1 stride 8 swizzling 3", "the form is 0, 1, 2, 4, 6, not 3"),
    ),
]  # fmt: skip
