# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A transpose with bank conflicts, narrow stores and a barrier too many."""

NAIVE = """\
!A = !tile.tensor<f32, gmem, align<16>, "(64,32):(32,1)">
!B = !tile.tensor<f32, gmem, align<16>, "(32,64):(64,1)">
!frag = !tile.tensor<f32, rmem, align<16>, "((1,1),4,1):((0,0),1,0)">

gpu.module @kernels {
  tile.kernel @naive(%A: !A, %B: !B) threads(256) {
    %t = gpu.thread_id x
    %m = gpu.block_id x
    %n = gpu.block_id y
    %gA = tile.local_tile %A, "(32,32)", (%m, %n)
    %gB = tile.local_tile %B, "(32,32)", (%n, %m)
    %s = tile.alloc : !tile.tensor<f32, smem, align<16>, "(32,32):(32,1)">
    %copy = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint32_t>", f32> thr "(8,32):(32,1)" val "(1,1):(1,1)"
    %tAgA = tile.partition_S %copy, %gA, %t
    %tAs = tile.partition_D %copy, %s, %t
    ptx.bar.sync 0
    %rA = tile.alloc : !frag
    tile.copy %copy, %tAgA, %rA
    tile.copy %copy, %rA, %tAs
    ptx.bar.sync 0
    %sT = tile.select %s, [1, 0]
    %tBsT = tile.partition_S %copy, %sT, %t
    %tBgB = tile.partition_D %copy, %gB, %t
    %rB = tile.alloc : !frag
    tile.copy %copy, %tBsT, %rB
    tile.copy %copy, %rB, %tBgB
    return
  }
}

run.launch @kernels::@naive grid(2, 1) {
  run.arg "A" : !A = "arange"
  run.arg "B" : !B = "poison"
  run.check "B == A.T"
}
"""
CONFLICT, REDUNDANT, NEEDED = 25, 16, 20
"""Lines of the access with conflicts, of the barrier too many, and of the one that is needed."""
