# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of one block that copy: under predicates, by every matrix instruction, with cache hints."""

from pathlib import Path

from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.text.layouts import to_text

EPILOGUE = Path(__file__).with_name("epilogue.cute").read_text()

MATRICES = [
    ("SM90_U32x1_STSM_N", "SM75_U32x1_LDSM_N", "f16", 16, "sm_90"),
    ("SM90_U32x2_STSM_N", "SM75_U32x2_LDSM_N", "bf16", 16, "sm_90"),
    ("SM90_U32x4_STSM_N", "SM75_U32x4_LDSM_N", "f16", 16, "sm_90"),
    ("SM90_U16x2_STSM_T", "SM75_U16x2_LDSM_T", "f16", 16, "sm_90"),
    ("SM90_U16x4_STSM_T", "SM75_U16x4_LDSM_T", "i16", 16, "sm_90"),
    ("SM90_U16x8_STSM_T", "SM75_U16x8_LDSM_T", "f16", 16, "sm_90"),
    ("SM100_U8x8_STSM_T", "SM100_U8x8_LDSM_T", "i8", 8, "sm_100a"),
    ("SM100_U8x16_STSM_T", "SM100_U8x16_LDSM_T", "i8", 8, "sm_100a"),
]
"""Atoms that store and load the same registers, the type and width of elements, the oldest target."""


def matrices(store: str, load: str, type: str, bits: int) -> str:
    """Registers to shared memory and back, by a pair of `MATRICES`: B is what came back."""
    registers = copy_atom(store, bits).ref
    assert registers == copy_atom(load, bits).ref
    count = registers.size
    made = f'{type}> tv "{to_text(registers)}" tiler "[{count}:1]"'
    tensor = f'!tile.tensor<{type}, gmem, align<16>, "{count}:1">'
    return f"""\
gpu.module @kernels {{
  tile.kernel @k(%A: {tensor}, %B: {tensor}) threads(32) {{
    %t = gpu.thread_id x
    %s = tile.alloc : {tensor.replace("gmem, align<16>", "smem, align<128>")}
    %store = tile.tiled_copy #tile.copy_atom<"{store}", {made}
    %load = tile.tiled_copy #tile.copy_atom<"{load}", {made}
    %a = tile.partition_S %store, %A, %t
    %b = tile.partition_D %load, %B, %t
    %r = tile.make_fragment_like %a
    %q = tile.make_fragment_like %b
    tile.copy %a, %r
    %to = tile.partition_D %store, %s, %t
    tile.copy %store, %r, %to
    ptx.bar.sync 0
    %from = tile.partition_S %load, %s, %t
    tile.copy %load, %from, %q
    tile.copy %q, %b
    return
  }}
}}
run.launch @kernels::@k grid(1) {{
  run.arg "A" : {tensor} = "integers(-100,100)"
  run.arg "B" : {tensor} = "poison"
  run.check "B == A"
}}
"""


TRANSPOSED = """\
!g = !tile.tensor<f16, gmem, align<16>, "64:1">
gpu.module @kernels {
  tile.kernel @k(%A: !g, %B: !g) threads(32) {
    %t = gpu.thread_id x
    %copy = tile.tiled_copy #tile.copy_atom<"SM75_U32x1_MOVM_T", f16> tv "(32,2):(2,1)" tiler "[64:1]"
    %a = tile.partition_S %copy, %A, %t
    %b = tile.partition_D %copy, %B, %t
    %r = tile.make_fragment_like %a
    %q = tile.make_fragment_like %b
    tile.copy %a, %r
    tile.copy %copy, %r, %q
    tile.copy %q, %b
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !g = "arange(0,1)"
  run.arg "B" : !g = "poison"
  run.check "reshape(B, (8,8)) == reshape(A, (8,8)).T"
}
"""
"""Registers transposed by movmatrix: 8 x 8, two elements a thread."""


def predicated(inside: int, elementwise: bool = False) -> str:
    """The corner of `inside` x `inside` of 64 x 64: to shared memory with zero-fill, from there under predicates.

    B has the corner and keeps the rest; Z has zeros around it.
    """
    out = "%oS, %oB if %q" if elementwise else "%out, %oS, %oB if %q"
    corner = f"A[0:{inside}, 0:{inside}]"
    return f"""\
!g = !tile.tensor<f16, gmem, align<16>, "(64,64):(1,64)">
!s = !tile.tensor<f16, smem, align<128>, "(64,64):(1,64)">
gpu.module @kernels {{
  tile.kernel @k(%A: !g, %B: !g, %Z: !g, %n: i32) threads(128) {{
    %t = gpu.thread_id x
    %s = tile.alloc : !s
    %in = tile.tiled_copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>", f16>
        thr "(8,16):(1,8)" val "(8,1):(1,1)"
    %out = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint16_t>", f16> thr "(8,16):(1,8)" val "(8,1):(1,1)"
    %all = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16> thr "(8,16):(1,8)" val "(8,1):(1,1)"
    %I = tile.identity "(64,64)"
    %tI = tile.partition_S %in, %I, %t
    %tA = tile.partition_S %in, %A, %t
    %tS = tile.partition_D %in, %s, %t
    %edge = arith.index_cast %n : i32 to index
    %p = tile.bounds %tI, (%edge, %edge)
    tile.copy %in, %tA, %tS if %p
    ptx.cp.async.wait_all
    ptx.bar.sync 0
    %aS = tile.partition_S %all, %s, %t
    %aZ = tile.partition_D %all, %Z, %t
    tile.copy %all, %aS, %aZ
    %oI = tile.partition_S %out, %I, %t
    %oS = tile.partition_S %out, %s, %t
    %oB = tile.partition_D %out, %B, %t
    %q = tile.bounds %oI, (%edge, %edge)
    tile.copy {out}
    return
  }}
}}
run.launch @kernels::@k grid(1) {{
  run.arg "A" : !g = "arange(1,1)"
  run.arg "B" : !g = "full(-1)"
  run.arg "Z" : !g = "poison"
  run.arg "n" : i32 = "{inside}"
  run.check "B[0:{inside}, 0:{inside}] == {corner} and sum(B) == sum({corner}) - {4096 - inside * inside}"
  run.check "Z[0:{inside}, 0:{inside}] == {corner} and sum(Z) == sum({corner})"
}}
"""


CACHED = """\
!g = !tile.tensor<f16, gmem, align<16>, "(64,32):(1,64)">
!s = !tile.tensor<f16, smem, align<16>, "(64,32):(1,64)">
gpu.module @kernels {
  tile.kernel @k(%A: !g, %B: !g, %C: !g) threads(32) {
    %t = gpu.thread_id x
    %s = tile.alloc : !s
    %in = tile.tiled_copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", f16, load "L2::128B">
        thr "(8,4):(1,8)" val "(8,1):(1,1)"
    %through = tile.tiled_copy
        #tile.copy_atom<"UniversalCopy<uint128_t>", f16, load "nc.L1::no_allocate.L2::256B", store "cs">
        thr "(8,4):(1,8)" val "(8,1):(1,1)"
    %out = tile.tiled_copy #tile.copy_atom<"AutoVectorizingCopyWithAssumedAlignment<16>", f16, store "L1::evict_last">
        thr "(8,4):(1,8)" val "(8,1):(1,1)"
    %a = tile.partition_S %through, %A, %t
    %b = tile.partition_D %through, %B, %t
    tile.copy %through, %a, %b
    %to = tile.partition_D %in, %s, %t
    tile.copy %in, %a, %to
    ptx.cp.async.wait_all
    ptx.bar.sync 0
    %from = tile.partition_S %out, %s, %t
    %c = tile.partition_D %out, %C, %t
    tile.copy %out, %from, %c
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !g = "arange(1,1)"
  run.arg "B" : !g = "poison"
  run.arg "C" : !g = "poison"
  run.check "B == A and C == A"
}
"""
"""Copies with a cache hint each: 8 of cp.async, 8 through registers, 64 stores of single elements."""

POLICIES = (
    CACHED.replace('load "L2::128B"', 'load "L2::evict_last.L2::128B"')
    .replace('load "nc.L1::no_allocate.L2::256B"', 'load "nc.L1::no_allocate.L2::evict_first.L2::256B"')
    .replace('store "cs"', 'store "L2::evict_normal"')
    .replace('store "L1::evict_last"', 'store "L1::evict_last.L2::evict_last"')
)
"""The same copies by policies of the L2 cache, of three priorities."""

WAYS = """\
!g = !tile.tensor<f16, gmem, align<16>, "(64,32):(32,1)">
gpu.module @kernels {
  tile.kernel @k(%A: !g, %B: !g, %C: !g) threads(32) {
    %t = gpu.thread_id x
    %mma = tile.tiled_mma #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN"> permute "(16,16,16)"
    %s = tile.alloc : !tile.tensor<f16, smem, align<128>, "(64,32):(32,1)">
    %rows = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16>
        cotiled "(32,8):(8,1)" data "(16,16):(16,1)"
    %tS = tile.partition_S %rows, %A, %t
    %tD = tile.partition_D %rows, %s, %t
    tile.copy %rows, %tS, %tD
    ptx.bar.sync 0
    %a = tile.partition_A %mma, %s, %t
    %ra = tile.make_fragment_A %mma, %a
    %ld = tile.tiled_copy #tile.copy_atom<"SM75_U32x4_LDSM_N", f16> A %mma
    %from = tile.partition_S %ld, %s, %t
    %to = tile.retile_D %ld, %ra
    tile.copy %ld, %from, %to
    %st = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint32_t>", f16> D %ld
    %o = tile.retile_S %st, %ra
    %oB = tile.partition_D %st, %B, %t
    tile.copy %st, %o, %oB
    %b = tile.partition_B %mma, %s, %t
    %rb = tile.make_fragment_B %mma, %b
    tile.copy %b, %rb
    %stb = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint32_t>", f16> B %mma
    %p = tile.retile_S %stb, %rb
    %pC = tile.partition_D %stb, %C, %t
    tile.copy %stb, %p, %pC
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !g = "arange(1,1)"
  run.arg "B" : !g = "poison"
  run.arg "C" : !g = "poison"
  run.check "B == A and C == A"
}
"""
"""To shared memory by a cotiled copy, to fragments of A and B by ldmatrix and by elements, and out as they lie."""
