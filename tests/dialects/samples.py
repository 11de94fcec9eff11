# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program for every operation, type and attribute of our dialects, written as it is printed."""

from collections.abc import Mapping
from types import MappingProxyType

from tests.dialects.instruction_samples import INSTRUCTION_SAMPLES
from tests.dialects.tcgen05_samples import TCGEN05_SAMPLES
from tests.dialects.tma_samples import TMA_SAMPLES, TMA_TYPE

TILE_HEAD = """\
!g = !tile.tensor<f16, gmem, align<16>, "(64,32):(1,64)">
gpu.module @m {
tile.kernel @k(%A: !g, %B: !g, %x: i32) threads(32) {
%t = gpu.thread_id x
%w = gpu.block_id y
%s = tile.alloc : !tile.tensor<f16, smem, align<128>, "(64,32):(1,64)">
%r = tile.alloc : !tile.tensor<f16, rmem, align<16>, "8:1">
%c = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16> thr "(8,4):(1,8)" val "(8,1):(1,1)"
"""
"""What the samples of `tile` find defined: tensors %A, %B, %s, %r, a tiled copy %c, coordinates %t and %w."""

_UMMA = '#tile.mma_atom<"SM100_MMA_F16BF16_SS<half_t,half_t,float,64,64,Major::K,Major::K>">'
_MBARRIER = (
    '%bars = tile.alloc : !tile.tensor<i64, smem, align<8>, "1:1">\n%bar = tile.ptr %bars(0)\n'
    "%p = arith.constant 1152921504606846976 : i64\n"
)
PTX_HEAD = """\
gpu.module @m {
ptx.entry @k(%A: !ptx.ptr<global> align 16, %x: i32, %h: f16, %v: i64, %m: !ptx.tensor_map of "f16 A dims (8, x) \
strides (16) box (8, 8)") threads(32) {
%t = gpu.thread_id x
%s = ptx.smem.alloc 4096 align 128
%l = ptx.local.alloc 64 align 16
"""
"""What the samples of `ptx` find defined: pointers %A, %s and %l, scalars %x, %h and %v, a tensor map %m, a
coordinate %t.
"""


def tile_program(body: str) -> str:
    """A kernel at stage `cute` with this body; it starts on line 9."""
    return f"{TILE_HEAD}{body}\ntile.return\n}}\n}}\n"


def ptx_program(body: str) -> str:
    """A kernel at stage `index` with this body; it starts on line 6."""
    return f"{PTX_HEAD}{body}\nptx.ret\n}}\n}}\n"


def run_program(body: str) -> str:
    """A file with a kernel `@k` of a tensor %A and an i32 %n, and this host side, which starts on line 7."""
    return f"""\
!g = !tile.tensor<f32, gmem, align<16>, "32:1">
gpu.module @m {{
tile.kernel @k(%A: !g, %n: i32) threads(32) {{
tile.return
}}
}}
{body}
"""


_G = '!tile.tensor<f16, gmem, align<16>, "(64,32):(1,64)">'

_M = (
    '%m = tile.tiled_mma #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN">'
    ' : !tile.tiled_mma<#tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN">, "(1,1,1):(0,0,0)", "(_,_,_)">\n'
)

NVF4 = "SM120_16x8x64_TN_VS<float_e2m1_t,float_e2m1_t,float,float_ue4m3_t,16>"
MXF8F6F4 = "SM120_16x8x32_TN_VS<float_e4m3_t,float_e2m1_t,float,float_ue8m0_t,32>"
_ATOM = '#tile.mma_atom<"SM80_16x8x8_F32F16F16F32_TN">'
_MMA = f"""\
%m = tile.tiled_mma {_ATOM} : !tile.tiled_mma<{_ATOM}, "(1,1,1):(0,0,0)", "(_,_,_)">
"""
_FRAGMENTS = """\
%a = tile.alloc : !tile.tensor<f16, rmem, align<16>, "(4):(1)">
%b = tile.alloc : !tile.tensor<f16, rmem, align<16>, "2:1">
%d = tile.alloc : !tile.tensor<f32, rmem, align<16>, "4:1">
"""

_WARPGROUP = '#tile.mma_atom<"SM90_64x64x16_F32F16F16_SS<Major::K,Major::K>">'
_WARPGROUPS = tile_program(f"""\
%a = tile.alloc : !tile.tensor<f16, smem, align<1024>, "S<3,3,3> o 0 o (64,64):(64,1)">
%m = tile.tiled_mma {_WARPGROUP}
%p = tile.partition_A %m, %a, %t
%q = tile.partition_B %m, %a, %t
%f = tile.make_fragment_A %m, %p
%h = tile.make_fragment_B %m, %q
%d = tile.alloc : !tile.tensor<f32, rmem, align<16>, "((2,2,8),1,1):((1,2,4),0,0)">
%y = arith.constant true
tile.gemm %m, %f, %h, %d
tile.gemm %m, %f, %h, %d accumulate %y
%0 = tile.slice %f, (_, 0, 1)
%1 = tile.slice %d, (_, 0, 0)
tile.mma_call {_WARPGROUP} %1, %0, %0, %1 accumulate %y""").replace("threads(32)", "threads(128)")

TILE_SAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "tile.return": ("",),
    "tile.alloc": (
        '%0 = tile.alloc : !tile.tensor<f32, smem, align<128>, "S<3,2,3> o 0 o (8,32):(32,1)">',
        '%0 = tile.alloc : !tile.tensor<i8, rmem, align<1>, "(2,2):(1,2)">',
    ),
    "tile.tensor_at": (
        '%0 = tile.ptr %A(0, 0)\n%1 = tile.tensor_at %0 {note} : !tile.tensor<f16, gmem, align<16>, "1:0">',
        "%0 = tile.ptr %s(0, 0)\n"
        '%1 = tile.tensor_at %0 : !tile.tensor<f32, smem, align<128>, "S<1,0,1> o 0 o (16,8):(8,1)">',
    ),
    "tile.peer": (
        "%0 = tile.peer %s, %x {note}\n%1 = tile.ptr %0(0, 0)",
        "%0 = tile.peer %s, %t\n%1 = tile.load %0(%t, 0)",
    ),
    "tile.choose": (
        "%0 = tile.choose %t of %s, %s {note}\n%1 = tile.ptr %0(0, 0)",
        "%0 = tile.choose %w of %A\n%1 = tile.load %0(%t, 0)",
    ),
    "tile.alias": (
        '%0 = tile.alias %s at 1024 : !tile.tensor<f32, smem, align<128>, "S<1,0,1> o 0 o (16,8):(8,1)">\n'
        '%1 = tile.alias %0 at 0 : !tile.tensor<i8, smem, align<16>, "512:1">',
        '%0 = tile.alias %r at 4 : !tile.tensor<f32, rmem, align<4>, "3:1">',
    ),
    "tile.rasterize": (
        "%0:2 = tile.rasterize %w in (%t, 4) group 8",
        "%0:2 = tile.rasterize %w in (12, 4) group 1",
    ),
    "tile.local_tile": (
        '%0 = tile.local_tile %A, "(16,8)", (%t, %w) : !tile.tensor<f16, gmem, align<16>, "(16,8):(1,64)">',
        '%0 = tile.local_tile %A, "(48,5)", (%t, %w) ragged : !tile.tensor<f16, gmem, align<16>, "(48,5):(1,64)">',
        '%0 = tile.local_tile %A, "(16,8)", (1, _) : !tile.tensor<f16, gmem, align<16>, "(16,8,4):(1,64,512)">',
        '%0 = tile.local_tile %A, "(16,4,8)", (%t, 3, _) proj "(1,_,1)"'
        ' : !tile.tensor<f16, gmem, align<16>, "(16,8,4):(1,64,512)">',
        '%0 = tile.local_tile %A, "(16,8)", %t : !tile.tensor<f16, gmem, align<16>, "(16,8):(1,64)">',
    ),
    "tile.outer_partition": (
        '%0 = tile.outer_partition %A, "(16,8)", (%t, %w) : !tile.tensor<f16, gmem, align<2>, "(4,4):(16,512)">',
        '%0 = tile.outer_partition %A, "(16,8)", (_, 3) : !tile.tensor<f16, gmem, align<16>, "(16,4,4):(1,16,512)">',
        '%0 = tile.outer_partition %A, "(16,8)", 5 : !tile.tensor<f16, gmem, align<2>, "(4,4):(16,512)">',
        '%0 = tile.outer_partition %A, "(48,4,5)", (1, %w, _) proj "(1,_,1)" ragged'
        ' : !tile.tensor<f16, gmem, align<2>, "(5,2,7):(64,48,320)">',
    ),
    "tile.local_partition": (
        '%0 = tile.local_partition %A, "(8,4):(1,8)", %t : !tile.tensor<f16, gmem, align<2>, "(8,8):(8,256)">',
        '%0 = tile.local_partition %A, "(7,4,5):(1,0,7)", %t proj "(1,_,1)" ragged'
        ' : !tile.tensor<f16, gmem, align<2>, "(10,7):(7,320)">',
    ),
    "tile.recast": ('%0 = tile.recast %A, i32 : !tile.tensor<i32, gmem, align<16>, "(32,32):(1,32)">',),
    "tile.make_tensor": (
        '%0 = tile.make_tensor %A, "(?,?):(?{div=8},1)" (%t, %w, %t)'
        ' : !tile.tensor<f16, gmem, align<16>, "(?,?):(?{div=8},1)">',
        '%0 = tile.make_tensor %s, "16:1" : !tile.tensor<f16, smem, align<128>, "16:1">',
    ),
    "tile.dim": ("%0 = tile.dim %A, 1", "%0 = tile.dim %s, 0"),
    "tile.stride": (
        '%0 = tile.logical_divide %A, "(4,8)"'
        ' : !tile.tensor<f16, gmem, align<16>, "((4,16),(8,4)):((1,4),(64,512))">\n'
        "%1 = tile.stride %0, [1, 0]",
    ),
    "tile.get_scalars": (
        '%0 = tile.make_tensor %A, "?:?" (%t, %w) : !tile.tensor<f16, gmem, align<16>, "?:?">\n'
        "%1:2 = tile.get_scalars %0",
    ),
    "tile.identity": (
        '%0 = tile.identity "(64,(4,8))" : !tile.coord_tensor<"(0,(0,0)) o (64,(4,8)):(1@0,(1@0@1,1@1@1))">',
        '%0 = tile.identity like %A : !tile.coord_tensor<"(0,0) o (64,32):(1@0,1@1)">',
        '%0 = tile.identity "8" : !tile.coord_tensor<"0 o 8:1">',
        "%0 = tile.identity \"(?,(4,?{div=8}))\" (%t, %t)"
        ' : !tile.coord_tensor<"(0,(0,0)) o (?,(4,?{div=8})):(1@0,(1@0@1,1@1@1))">',
    ),
    "tile.coordinate": (
        '%0 = tile.identity "(64,32)" : !tile.coord_tensor<"(0,0) o (64,32):(1@0,1@1)">\n'
        "%1:2 = tile.coordinate %0(%t, 3)",
        '%0 = tile.identity "8" : !tile.coord_tensor<"0 o 8:1">\n%1 = tile.coordinate %0(%t)',
    ),
    "tile.bounds": (
        '%0 = tile.identity "(8,4)" : !tile.coord_tensor<"(0,0) o (8,4):(1@0,1@1)">\n'
        '%1 = tile.bounds %0, (%t, 3) : !tile.tensor<i1, rmem, align<1>, "(8,4):(1,8)">\n'
        '%2 = tile.bounds %0, (_, %w) : !tile.tensor<i1, rmem, align<1>, "(8,4):(1,8)">',
        '%0 = tile.identity "8" : !tile.coord_tensor<"0 o 8:1">\n'
        '%1 = tile.bounds %0, (5) : !tile.tensor<i1, rmem, align<1>, "8:1">',
    ),
    "tile.slice": (
        '%0 = tile.slice %A, (_, %t) : !tile.tensor<f16, gmem, align<16>, "(64):(1)">',
        '%0 = tile.slice %A, (3, _) : !tile.tensor<f16, gmem, align<2>, "(32):(64)">',
    ),
    "tile.domain_offset": (
        '%0 = tile.domain_offset %A, (%t, 2) : !tile.tensor<f16, gmem, align<2>, "(64,32):(1,64)">',
        '%0 = tile.identity "(8,4)" : !tile.coord_tensor<"(0,0) o (8,4):(1@0,1@1)">\n'
        '%1 = tile.domain_offset %0, (%t, 3) : !tile.coord_tensor<"(?,3) o (8,4):(1@0,1@1)">',
    ),
    "tile.logical_divide": (
        '%0 = tile.logical_divide %A, "(4,8)"'
        ' : !tile.tensor<f16, gmem, align<16>, "((4,16),(8,4)):((1,4),(64,512))">',
    ),
    "tile.zipped_divide": (
        '%0 = tile.zipped_divide %A, "(4,8)"'
        ' : !tile.tensor<f16, gmem, align<16>, "((4,8),(16,4)):((1,64),(4,512))">',
        '%0 = tile.zipped_divide %A, "[8:2;8:1]"'
        ' : !tile.tensor<f16, gmem, align<16>, "((8,8),((2,4),4)):((2,64),((1,16),512))">',
    ),
    "tile.tiled_divide": (
        '%0 = tile.tiled_divide %A, "(4,8)"'
        ' : !tile.tensor<f16, gmem, align<16>, "((4,8),16,4):((1,64),4,512)">',
    ),
    "tile.flat_divide": (
        '%0 = tile.flat_divide %A, "(4,8)" : !tile.tensor<f16, gmem, align<16>, "(4,8,16,4):(1,64,4,512)">',
    ),
    "tile.composition": (
        '%0 = tile.composition %A, "(32,64):(64,1)" : !tile.tensor<f16, gmem, align<16>, "(32,64):(64,1)">',
    ),
    "tile.coalesce": ('%0 = tile.coalesce %A : !tile.tensor<f16, gmem, align<16>, "2048:1">',),
    "tile.select": ('%0 = tile.select %A, [1, 0] : !tile.tensor<f16, gmem, align<16>, "(32,64):(64,1)">',),
    "tile.group_modes": (
        '%0 = tile.group_modes %A, [0, 2] : !tile.tensor<f16, gmem, align<16>, "((64,32)):((1,64))">',
    ),
    "tile.tiled_copy": (
        '%0 = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16> cotiled "(32,8):(8,1)" '
        'data "(16,16):(16,1)" : !tile.tiled_copy<#tile.copy_atom<"UniversalCopy<uint128_t>", f16>, '
        '"((2,16),8):((16,1),32)", "[16:1;(2,8):(8,1)]">',
        '%0 = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint16_t>", f16> thr "(4,8):(1,4)" val "(1,1):(1,1)"'
        ' : !tile.tiled_copy<#tile.copy_atom<"UniversalCopy<uint16_t>", f16>, "(32,1):(1,0)", "(4,8)">',
        '%0 = tile.tiled_copy #tile.copy_atom<"SM75_U32x4_LDSM_N", f16>'
        ' tv "((4,8),(2,2,2)):((32,1),(16,8,128))" tiler "(16,16)" : !tile.tiled_copy<'
        '#tile.copy_atom<"SM75_U32x4_LDSM_N", f16>, "((4,8),(2,2,2)):((32,1),(16,8,128))", "(16,16)">',
    ),
    "tile.retile_S": (
        f'{_M}%0 = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint32_t>", f16> C_atom %m'
        ' : !tile.tiled_copy<#tile.copy_atom<"UniversalCopy<uint32_t>", f16>, "((4,8),2):((8,1),32)", '
        '"[8:1;(4,2):(2,1)]">\n'
        '%1 = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint32_t>", f16> D %0'
        ' : !tile.tiled_copy<#tile.copy_atom<"UniversalCopy<uint32_t>", f16>, "((4,8),(2,1)):((8,1),(32,0))", '
        '"[8:1;(4,2):(2,1)]">\n'
        '%f = tile.alloc : !tile.tensor<f16, rmem, align<16>, "((2,2),2,1):((1,2),4,0)">\n'
        '%2 = tile.retile_S %1, %f : !tile.tensor<f16, rmem, align<16>, "((2,2),2,1):((1,2),4,0)">',
    ),
    "tile.retile_D": (
        f'{_M}%0 = tile.tiled_copy #tile.copy_atom<"SM75_U32x4_LDSM_N", f16> A %m'
        ' : !tile.tiled_copy<#tile.copy_atom<"SM75_U32x4_LDSM_N", f16>, '
        '"((4,8),((2,2,2),(1,1))):((32,1),((16,8,128),(0,0)))", "(16,16)">\n'
        '%f = tile.alloc : !tile.tensor<f16, rmem, align<16>, "((2,2,2),3,1):((1,2,4),8,0)">\n'
        '%1 = tile.retile_D %0, %f : !tile.tensor<f16, rmem, align<16>, "((8,1),3,1):((1,0),8,0)">',
    ),
    "tile.tiled_mma": (
        f'%0 = tile.tiled_mma {_ATOM} atoms "(2,2,1):(1,2,4)" permute "(32,16,_)" '
        f': !tile.tiled_mma<{_ATOM}, "(2,2,1):(1,2,4)", "(32,16,_)">',
        f'%0 = tile.tiled_mma {_ATOM} permute "[(16,2):(2,1);_;8]" '
        f': !tile.tiled_mma<{_ATOM}, "(1,1,1):(0,0,0)", "[(16,2):(2,1);_;8]">',
    ),
    "tile.partition_A": (
        f'{_MMA}%0 = tile.partition_A %m, %A, %t : !tile.tensor<f16, gmem, align<2>, "((2,2),4,4):((64,8),16,512)">',
    ),
    "tile.partition_B": (
        f'{_MMA}%0 = tile.partition_B %m, %A, %t : !tile.tensor<f16, gmem, align<2>, "(2,8,4):(64,8,512)">',
    ),
    "tile.partition_C": (
        f'{_MMA}%0 = tile.partition_C %m, %A, %t : !tile.tensor<f16, gmem, align<2>, "((2,2),4,4):((64,8),16,512)">',
    ),
    "tile.make_fragment_A": (
        f'{_MMA}%0 = tile.make_fragment_A %m, %A : !tile.tensor<f16, rmem, align<16>, "(64,(32)):(1,(64))">',
    ),
    "tile.make_fragment_B": (
        f'{_MMA}%0 = tile.make_fragment_B %m, %A : !tile.tensor<f16, rmem, align<16>, "(64,(32)):(1,(64))">',
    ),
    "tile.make_fragment_C": (
        f'{_MMA}%0 = tile.make_fragment_C %m, %A : !tile.tensor<f32, rmem, align<16>, "(64,32):(1,64)">',
        f'{_MMA}%i = tile.identity "(4,2,3)" : !tile.coord_tensor<"(0,0,0) o (4,2,3):(1@0,1@1,1@2)">\n'
        '%0 = tile.make_fragment_C %m, %i : !tile.tensor<f32, rmem, align<16>, "(4,2,3):(1,4,8)">',
    ),
    "tile.tmem_alloc": ("%0 = tile.tmem_alloc 64 cta_group 1 {note}",),
    "tile.tmem_dealloc": (
        "%0 = tile.tmem_alloc 256 cta_group 2\n"
        f'%1 = tile.tiled_mma {_UMMA} : !tile.tiled_mma<{_UMMA}, "(1,1,1):(0,0,0)", "(_,_,_)">\n'
        '%2 = tile.identity "((64,64),1,1)" : '
        '!tile.coord_tensor<"((0,0),0,0) o ((64,64),1,1):((1@0@0,1@1@0),1@1,1@2)">\n'
        "%3 = tile.make_fragment_C %1, %2 at %0 : "
        '!tile.tensor<f32, tmem, align<4>, "(((16,4),64),1,1):(((65536,2097152),1),0,0)">\n'
        '%4 = tile.tiled_copy #tile.copy_atom<"SM100_TMEM_LOAD_16dp256b1x", f32> tmem %3 : '
        '!tile.tiled_copy<#tile.copy_atom<"SM100_TMEM_LOAD_16dp256b1x", f32>, "((32,4),(8,16)):((0,1),(4,32))", '
        '"[(32,16):(16,1);1:0;1:0]">\n'
        "tile.tmem_dealloc %0 {note}",
    ),
    "tile.make_fragment_like": (
        '%0 = tile.make_fragment_like %r : !tile.tensor<f16, rmem, align<16>, "8:1">',
        '%0 = tile.make_fragment_like %A as f32 : !tile.tensor<f32, rmem, align<16>, "(64,(32)):(1,(64))">',
    ),
    "tile.gemm": (
        f"{_MMA}{_FRAGMENTS}tile.gemm %m, %a, %b, %d\ntile.gemm %m, %d, %a, %b, %d",
        f"{_FRAGMENTS}tile.gemm {_ATOM} %a, %b, %d",
        '%a = tile.alloc : !tile.tensor<f32, rmem, align<16>, "(2,3):(1,2)">\n'
        '%b = tile.alloc : !tile.tensor<f32, smem, align<16>, "(4,3):(1,4)">\n'
        '%d = tile.alloc : !tile.tensor<f32, rmem, align<16>, "(2,4):(1,2)">\n'
        "tile.gemm %a, %b, %d",
    ),
    "tile.mma_call": (f"{_FRAGMENTS}tile.mma_call {_ATOM} %d, %a, %b, %d",),
    "tile.partition_S": (
        '%0 = tile.partition_S %c, %A, %t : !tile.tensor<f16, gmem, align<16>, "((8,1),1,8):((1,0),0,256)">',
    ),
    "tile.partition_D": (
        '%0 = tile.partition_D %c, %s, %t : !tile.tensor<f16, smem, align<16>, "((8,1),1,8):((1,0),0,256)">',
    ),
    "tile.copy": (
        "tile.copy %A, %s",
        '%p = tile.partition_S %c, %A, %t : !tile.tensor<f16, gmem, align<16>, "((8,1),1,8):((1,0),0,256)">\n'
        '%q = tile.partition_D %c, %s, %t : !tile.tensor<f16, smem, align<16>, "((8,1),1,8):((1,0),0,256)">\n'
        "tile.copy %c, %p, %q\n"
        'tile.copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16> %p, %q',
        '%p = tile.alloc : !tile.tensor<i1, rmem, align<1>, "(1,32):(0,1)">\ntile.copy %A, %s if %p',
        f'{_MBARRIER}tile.copy #tile.copy_atom<"SM90_BULK_COPY_G2S<512>", f16> %A, %s mbarrier %bar policy %p\n'
        'tile.copy #tile.copy_atom<"SM90_BULK_COPY_AUTO", f16> %s, %B policy %p {note}',
    ),
    "tile.prefetch_tensor": (f"{_MBARRIER}tile.prefetch_tensor %A\ntile.prefetch_tensor %B policy %p {{note}}",),
    "tile.load": ("%0 = tile.load %A(%t, 3)", "%0 = tile.load %A(5)"),
    "tile.store": ("%0 = tile.load %A(%t, 0)\ntile.store %0, %s(63, %w)",),
    "tile.ptr": ("%0 = tile.ptr %A(%t, 3)", "%0 = tile.ptr %s(5) {note}"),
    "tile.fill": ("%0 = arith.constant 0.000000e+00 : f16\ntile.fill %r, %0",),
    "tile.map": (
        "tile.map %r (%old: f16) {\n  %0 = arith.negf %old : f16\n  tile.yield %0 : f16\n}",
        "tile.map %s, %A, %B (%a: f16, %b: f16, %old: f16) {\n"
        "  %0 = math.fma %a, %b, %old : f16\n  tile.yield %0 : f16\n}",
        '%0 = tile.alloc : !tile.tensor<f32, rmem, align<16>, "8:1">\n'
        "tile.map %0, %r (%h: f16) {\n  %1 = arith.extf %h : f16 to f32\n  tile.yield %1 : f32\n} {note}",
    ),
    "tile.yield": ("%0 = arith.constant 1.000000e+00 : f16\ntile.map %r () {\n  tile.yield %0 : f16\n}",),
    "tile.print": ('tile.print "gA \\22quoted\\22" %A',),
    "tile.print_tensor": ('tile.print_tensor "rA" %r',),
    "tile.crd2idx": ('%0 = tile.crd2idx (%t, (1, %w)) in "(8,(2,4)):(1,(8,64))"', '%0 = tile.crd2idx (%t) in "32:4"',
        '%0 = tile.crd2idx (%t, 1) in "(?,4):(1,?{i64 div=8})" with (%w, %t)',
    ),
    "tile.view": (
        '%0 = tile.view %A : !tile.tensor<f16, gmem, align<8>, "8:1">',
        '%0 = tile.view %A at %t : !tile.tensor<f16, gmem, align<2>, "8:1">',
        '%0 = tile.view %A at %t with (%t, %w) : !tile.tensor<f16, gmem, align<2>, "(8,?):(1,?)">',
    ),
    "tile.atom_call": (
        '%0 = tile.view %A : !tile.tensor<f16, gmem, align<16>, "8:1">\n'
        '%1 = tile.view %s : !tile.tensor<f16, smem, align<16>, "8:1">\n'
        'tile.atom_call #tile.copy_atom<"SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>", f16> %0, %1 count %x',
        '%0 = tile.view %A : !tile.tensor<f16, gmem, align<16>, "8:1">\n'
        'tile.atom_call #tile.copy_atom<"UniversalCopy<uint128_t>", f16> %0, %r {remark = "128 bits"}',
        f'{_MBARRIER}%0 = tile.view %A : !tile.tensor<f16, gmem, align<16>, "8:1">\n'
        '%1 = tile.view %s : !tile.tensor<f16, smem, align<16>, "8:1">\n'
        'tile.atom_call #tile.copy_atom<"SM90_BULK_COPY_G2S<128>", f16> %0, %1 mbarrier %bar policy %p\n'
        'tile.atom_call #tile.copy_atom<"SM90_BULK_COPY_S2G<128>", f16> %1, %0',
    ),
})  # fmt: skip
"""Lines of a kernel body, each printed as written, by the operation that they show."""

PTX_SAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "ptx.ret": ("",),
    "ptx.sreg": ('%0 = ptx.sreg "ctaid.y"',),
    "ptx.ptr_add": (
        "%0 = ptx.ptr_add %A, %x : !ptx.ptr<global>, i32 -> !ptx.ptr<global>",
        "%0 = ptx.ptr_add %s, %t : !ptx.ptr<shared>, index -> !ptx.ptr<shared>",
        "%0 = ptx.ptr_add %l, %v : !ptx.ptr<local>, i64 -> !ptx.ptr<local>",
        "%0 = ptx.ptr_add %A, %x within (%x < 8, 2 < %x) : !ptx.ptr<global>, i32 -> !ptx.ptr<global>",
        "%0 = ptx.ptr_add %A, %x within (%t < 8, %t < %t : index) : !ptx.ptr<global>, i32 -> !ptx.ptr<global>",
    ),
    "ptx.inttoptr": (
        "%0 = ptx.inttoptr %v align 16 : i64 -> !ptx.ptr<global>",
        "%0 = ptx.inttoptr %x align 4 : i32 -> !ptx.ptr<shared>",
    ),
    "ptx.ptrtoint": (
        "%0 = ptx.ptrtoint %A : !ptx.ptr<global> -> i64",
        "%0 = ptx.ptrtoint %s : !ptx.ptr<shared> -> i32",
        "%0 = ptx.ptrtoint %l : !ptx.ptr<local> -> i64",
    ),
    "ptx.ld": (
        "%0 = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<4xf32>",
        "%0 = ptx.ld %s align 4 : !ptx.ptr<shared> -> i8",
        '%0 = ptx.ld %A cache "nc.L1::no_allocate.L2::128B" align 16 : !ptx.ptr<global> -> vector<4xi32>',
        '%0 = ptx.ld %A cache "L2::64B" policy %v align 4 : !ptx.ptr<global> -> i32',
    ),
    "ptx.st": (
        "ptx.st %x, %A align 4 : i32, !ptx.ptr<global>",
        "ptx.st %h, %l align 16 : f16, !ptx.ptr<local>",
        'ptx.st %x, %A cache "cs" align 4 : i32, !ptx.ptr<global>',
        'ptx.st %x, %A policy %v align 4 {note} : i32, !ptx.ptr<global>',
    ),
    "ptx.createpolicy": (
        '%0 = ptx.createpolicy "L2::evict_last"',
        '%0 = ptx.createpolicy "L2::evict_first.L2::evict_unchanged" fraction 2.500000e-01 {note}',
    ),
    "ptx.local.alloc": ("%0 = ptx.local.alloc 12 align 4",),
    "ptx.smem.alloc": ("%0 = ptx.smem.alloc 1 align 1024",),
    "ptx.smem.addr": ("%0 = ptx.smem.addr 0\n%1 = ptx.smem.addr 512 bytes 64",),
    "ptx.cp.async": (
        'ptx.cp.async "ca" 4 %s, %A',
        'ptx.cp.async "cg" 16 %s, %A size %x',
        'ptx.cp.async "cg" 16 %s, %A prefetch "L2::128B"',
        'ptx.cp.async "ca" 8 %s, %A size %x prefetch "L2::256B"',
        'ptx.cp.async "ca" 8 %s, %A policy %v\nptx.cp.async "ca" 8 %s, %A size %x policy %v prefetch "L2::64B" {note}',
    ),
    "ptx.cp.async.commit_group": ("ptx.cp.async.commit_group",),
    "ptx.cp.async.wait_group": ("ptx.cp.async.wait_group 3",),
    "ptx.cp.async.wait_all": ("ptx.cp.async.wait_all",),
    "ptx.mma.sync": (
        "%f = arith.constant 1.000000e+00 : f32\n"
        '%0:4 = ptx.mma.sync "SM80_16x8x8_F32F16F16F32_TN" (%x, %x), (%x), (%f, %f, %f, %f)',
        "%d = arith.constant 1.000000e+00 : f64\n"
        '%0:2 = ptx.mma.sync "SM80_8x8x4_F64F64F64F64_TN" (%d), (%d), (%d, %d)',
    ),
    "ptx.mma.sync.block_scale": (
        "%f = arith.constant 1.000000e+00 : f32\n"
        f'%0:4 = ptx.mma.sync.block_scale "{NVF4}" (%x, %x, %x, %x), (%x, %x), (%f, %f, %f, %f)'
        " scales (%x, %x) select (0, 1, 0, 3)",
        "%f = arith.constant 1.000000e+00 : f32\n"
        f'%0:4 = ptx.mma.sync.block_scale "{MXF8F6F4}" (%x, %x, %x, %x), (%x, %x), (%f, %f, %f, %f)'
        " scales (%x, %x) select (3, 0, 1, 2)",
    ),
    "ptx.mma.sync.sp": (
        "%f = arith.constant 1.000000e+00 : f32\n"
        '%0:4 = ptx.mma.sync.sp "SM80_SPARSE_16x8x32_F32F16F16F32_TN" (%x, %x, %x, %x), (%x, %x, %x, %x),'
        " (%f, %f, %f, %f) metadata %x select 1 ordered",
        '%0:2 = ptx.mma.sync.sp "SM80_SPARSE_16x8x16_F16F16F16F16_TN" (%x, %x), (%x, %x), (%x, %x)'
        " metadata %x select 3",
    ),
    "ptx.ldmatrix": (
        "%0 = ptx.ldmatrix x 4 %s : vector<4xi32>",
        "%0 = ptx.ldmatrix x 1 trans %s : vector<1xi32>",
        '%0 = ptx.ldmatrix x 2 trans "m16n16.b8" %s : vector<4xi32>',
        '%0 = ptx.ldmatrix x 4 "m8n16.b8x16.b6x16_p32" %s : vector<4xi32>',
    ),
    "ptx.stmatrix": (
        "%0 = ptx.ldmatrix x 4 %s : vector<4xi32>\nptx.stmatrix x 4 %0, %s : vector<4xi32>",
        "%0 = ptx.ldmatrix x 1 %s : vector<1xi32>\nptx.stmatrix x 1 trans %0, %s : vector<1xi32>",
        '%0 = ptx.ldmatrix x 4 %s : vector<4xi32>\nptx.stmatrix x 4 trans "m16n8.b8" %0, %s : vector<4xi32>',
    ),
    "ptx.movmatrix": ("%0 = ptx.movmatrix trans %x",),
    "ptx.bar.sync": ("ptx.bar.sync 15", "ptx.bar.sync 1 plus %x threads 64", "ptx.bar.sync 0 unaligned"),
    "ptx.bar.warp.sync": ("ptx.bar.warp.sync -1", "ptx.bar.warp.sync 4294967295", "ptx.bar.warp.sync -1 lanes %x"),
    **INSTRUCTION_SAMPLES, **TCGEN05_SAMPLES,
    "ptx.printf": (
        'ptx.printf "100%% of %d at %p\\0A"(%x, %A) : i32, !ptx.ptr<global>',
        'ptx.printf "done"() : ',
    ),
})  # fmt: skip
"""Lines of a kernel body at stage `index`, each printed as written, by the operation that they show."""

RUN_SAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "run.launch": (
        'run.launch @m::@k name "first" grid(8, 32) block(32) {\n'
        '  run.arg "A" : !tile.tensor<f32, gmem, align<16>, "32:1"> = "poison"\n'
        '  run.arg "n" : i32 = "3"\n'
        "}",
    ),
    "run.arg": (
        "run.launch @m::@k grid(1) {\n"
        '  run.arg "n" : i32 = "-1"\n'
        '  run.arg "A" : !tile.tensor<f32, gmem, align<16>, "32:1"> = "normal(seed=0)"\n'
        "}",
    ),
    "run.check": (
        "run.launch @m::@k grid(1, 2, 3) {\n"
        '  run.arg "A" : !tile.tensor<f32, gmem, align<16>, "32:1"> = "0"\n'
        '  run.arg "n" : i32 = "1"\n'
        '  run.check "A == 0"\n'
        '  run.check "A ~= 0" rtol 0.001 atol 1.0e-05\n'
        "}",
    ),
})  # fmt: skip
"""Host sides, each printed as written, by the operation that they show."""

PROGRAM_SAMPLES: Mapping[str, str] = MappingProxyType({
    "tile.gemm": _WARPGROUPS,
    "tile.mma_call": _WARPGROUPS,
    "gpu.module": "gpu.module @m attributes {note = 1 : i32} {\n}\n",
    "gpu.thread_id": tile_program("%0 = gpu.thread_id z"),
    "gpu.block_id": tile_program("%0 = gpu.block_id x"),
    "gpu.block_dim": tile_program("%0 = gpu.block_dim y"),
    "gpu.grid_dim": tile_program("%0 = gpu.grid_dim z {note}"),
    "gpu.cluster_block_id": tile_program("%0 = gpu.cluster_block_id x"),
    "gpu.cluster_dim_blocks": tile_program("%0 = gpu.cluster_dim_blocks y"),
    "gpu.cluster_id": tile_program("%0 = gpu.cluster_id z {note}"),
    "gpu.cluster_dim": tile_program("%0 = gpu.cluster_dim x"),
    "tile.kernel": 'gpu.module @m {\ntile.kernel @k(%A: !tile.tensor<i32, gmem, align<4>, "4:1">, %n: f32)'
    " threads(8, 4, 2) cluster(2, 4) min_blocks(2) max_registers(96) {\ntile.return\n}\n}\n",
    "ptx.entry": "gpu.module @m {\nptx.entry @k(%A: !ptx.ptr<global> align 16, %n: i64, "
    '%m: !ptx.tensor_map of "f16 A + n * 2 dims (n // 2 + 1, (n - 1) * 8 % 7) strides (256) box (8, 4) swizzle 32B '
    'fill nan promotion 0B", %b: !ptx.tensor_map of "u8 A dims (n) box (256)") threads(32) '
    "cluster(16) non_portable shared(4096) {\n"
    "ptx.ret\n}\n}\n",
})  # fmt: skip
"""Whole programs, by the operation that they show."""

ATTRIBUTE_SAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "cute.layout": ('#cute.layout<"(8,(4,2)):(1,(8,64))">', '#cute.layout<"S<3,4,3> o 0 o (8,64):(64,1)">'),
    "cute.coord": ('#cute.coord<"(?,_,(0,3))">', '#cute.coord<"7">'),
    "cute.tile": ('#cute.tile<"(128,32)">', '#cute.tile<"8:1">', '#cute.tile<"[(8,2):(2,1);16:1]">'),
    "tile.tensor": (
        _G,
        '!tile.tensor<bf16, smem, align<128>, "S<2,3,3> o ?{div=8} o ((8,1),4):((1,0),16)">',
        '!tile.tensor<f64, rmem, align<8>, "1:0">',
    ),
    "tile.coord_tensor": (
        '!tile.coord_tensor<"(?{div=128},?) o ((8,1),4):((1@0,0),16@1)">',
        '!tile.coord_tensor<"(0,(?{i64},4)) o (?,8):(1@0,2@1@1)">',
        '!tile.coord_tensor<"0 o 8:1">',
    ),
    "tile.tiled_copy": (
        '!tile.tiled_copy<#tile.copy_atom<"UniversalCopy<uint128_t>", f16>, "(32,8):(8,1)", "(64,4)">',
    ),
    "tile.tiled_mma": (f'!tile.tiled_mma<{_ATOM}, "(2,2,1):(1,2,4)", "[(8,2):(1,8);16;_]">',),
    "tile.mma_atom": (
        _ATOM,
        '#tile.mma_atom<"UniversalFMA<float>">',
        '#tile.mma_atom<"UniversalFMA<int32_t,uint8_t,int8_t,int16_t>">',
        '#tile.mma_atom<"SM61_DP4A">',
    ),
    "tile.copy_atom": (
        '#tile.copy_atom<"SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", bf16>',
        '#tile.copy_atom<"AutoVectorizingCopy", i8>',
        '#tile.copy_atom<"UniversalCopy<double>", f32>',
        '#tile.copy_atom<"UniversalCopy<uint128_t>", f16, load "nc.L1::no_allocate", store "cs">',
        '#tile.copy_atom<"UniversalCopy<uint128_t>", f16, load "nc.L2::evict_first.L2::64B", store "L2::evict_last">',
    ),
    "tile.tma": (
        TMA_TYPE,
        '!tile.tma<"SM90_TMA_LOAD_MULTICAST", bf16, "(?,(?,4)):(1,(?{div=8},64))", '
        '"S<3,3,3> o 0 o (64,(8,4)):(1,(64,512))", "[64:1;[8:1;4:1]]", multicast 4>',
    ),
    "ptx.ptr": ("!ptx.ptr<global>", "!ptx.ptr<shared>", "!ptx.ptr<local>", "!ptx.ptr<shared_cluster>"),
    "ptx.tensor_map": ("!ptx.tensor_map",),
    "ptx.recipe": ('#ptx.recipe<"tf32 A dims (x, 7) strides (4 * (x + 1)) box (32, 1) swizzle 128B">',),
    "ptx.space": ("#ptx.space<smem>", "#ptx.space<dsmem>"),
})  # fmt: skip
"""Types and attributes, each printed as written, by name."""


def programs() -> list[tuple[str, str, str]]:
    """Every sample of an operation: its name, the program, and the lines that must be printed as they are."""
    of_tiles = [*TILE_SAMPLES.items(), *TMA_SAMPLES.items()]
    found = [(name, tile_program(text), text) for name, texts in of_tiles for text in texts]
    found += [(name, ptx_program(text), text) for name, texts in PTX_SAMPLES.items() for text in texts]
    found += [(name, run_program(text), text) for name, texts in RUN_SAMPLES.items() for text in texts]
    return found + [(name, text, "") for name, text in PROGRAM_SAMPLES.items()]
