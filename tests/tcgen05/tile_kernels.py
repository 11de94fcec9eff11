# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - an operation stands on one line
"""A multiplication into tensor memory in the words of `tile`, by its types, shape and blocks: D = A * B^T, of one tile
whose rows along K have 128 bytes.
"""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Tile:
    """The tile: CuTe's words for the kind and the types of A, B and D, the types of the IR, M and N, and the copy from
    tensor memory. A is in tensor memory where `source` is "TS".
    """

    family: str = "F16BF16"
    cxx: str = "half_t"
    element: str = "f16"
    bits: int = 16
    m: int = 128
    n: int = 64
    d_cxx: str = "float"
    d: str = "f32"
    blocks: int = 1
    source: str = "SS"
    load: str = "32dp32b16x"
    fill: str = "normal(seed={})"
    tolerance: str = "rtol 1.0e-4 atol 1.0e-4"

    @property
    def atom(self) -> str:
        """CuTe's name of the instruction."""
        pair = "_2x1SM" if self.blocks == 2 else ""
        types = f"{self.cxx},{self.cxx},{self.d_cxx}"
        return f"SM100_MMA_{self.family}{pair}_{self.source}<{types},{self.m},{self.n},Major::K,Major::K>"

    @property
    def text(self) -> str:
        """The program."""
        k, rows, columns = 1024 // self.bits, self.m // self.blocks, self.n // self.blocks
        width, unit = 256 // self.bits, 8 - self.bits.bit_length()
        swizzle, each = f"S<3,{unit},3> o 0 o", 128 // self.bits
        threads, group = 128, self.blocks

        def staged(extent: int) -> str:
            return f'!tile.tensor<{self.element}, smem, align<1024>, "{swizzle} (({extent},{width}),1,4):(({k},1),0,{width})">'

        def flat(extent: int) -> str:
            return f'!tile.tensor<{self.element}, smem, align<1024>, "{swizzle} ({extent},{k}):({k},1)">'

        move = f'tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", {self.element}> thr "(16,8):(8,1)" val "(1,{each}):(0,1)"'
        through = f"""
    %move = {move}
    %gA = tile.local_tile %A, "({rows},{k})", (%rank, %c0)
    %fA = tile.alias %sA at 0 : {flat(rows)}
    %tAgA = tile.partition_S %move, %gA, %t
    %tAsA = tile.partition_D %move, %fA, %t
    tile.copy %move, %tAgA, %tAsA"""
        a = "%tCrA = tile.make_fragment_A %mma, %sA"
        if self.source == "TS":
            through += """
    ptx.bar.sync 0"""
            a = f"""%place = arith.constant 128 : i32
    %behind = ptx.ptr_add %x, %place : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %tCrA = tile.make_fragment_A %mma, %sA at %behind
    %in = tile.tiled_copy #tile.copy_atom<"SM100_TMEM_STORE_32dp32b8x", {self.element}> tmem %tCrA
    %tStA = tile.partition_D %in, %tCrA, %t
    %tSsA = tile.partition_S %in, %sA, %t
    %tSrA = tile.make_fragment_like %tSsA
    tile.copy %tSsA, %tSrA
    tile.copy %in, %tSrA, %tStA
    ptx.tcgen05.wait "st"
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    ptx.tcgen05.fence "after_thread_sync\""""
        meet = (
            "ptx.barrier.cluster.arrive aligned\n    ptx.barrier.cluster.wait aligned"
            if group == 2
            else "ptx.bar.sync 0"
        )
        commit = (
            "ptx.tcgen05.commit cta_group 2 %bar multicast %both"
            if group == 2
            else "ptx.tcgen05.commit cta_group 1 %bar"
        )
        return f"""// cute-format 1
!A = !tile.tensor<{self.element}, gmem, align<16>, "({self.m},{k}):({k},1)">
!B = !tile.tensor<{self.element}, gmem, align<16>, "({self.n},{k}):({k},1)">
!D = !tile.tensor<{self.d}, gmem, align<16>, "({self.m},{self.n}):({self.n},1)">
gpu.module @kernels {{
  tile.kernel @multiply(%A: !A, %B: !B, %D: !D) threads({threads}){" cluster(2)" if group == 2 else ""} {{
    %t = gpu.thread_id x
    %rank = gpu.block_id x
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %both = arith.constant 3 : i16
    %sA = tile.alloc : {staged(rows)}
    %sB = tile.alloc : {staged(columns)}
    %bars = tile.alloc : !tile.tensor<i64, smem, align<8>, "1:1">
    %bar = tile.ptr %bars(0)
    %first = arith.cmpi eq, %t, %c0 : index
    %leads = arith.cmpi eq, %rank, %c0 : index
    %issues = arith.andi %first, %leads : i1
    scf.if %first {{
      ptx.mbarrier.init %bar, %one
      ptx.fence.mbarrier_init
    }}
    %x = tile.tmem_alloc 256 cta_group {group}
    %mma = tile.tiled_mma #tile.mma_atom<"{self.atom}">{through}
    %gB = tile.local_tile %B, "({columns},{k})", (%rank, %c0)
    %fB = tile.alias %sB at 0 : {flat(columns)}
    %tBgB = tile.partition_S %move, %gB, %t
    %tBsB = tile.partition_D %move, %fB, %t
    tile.copy %move, %tBgB, %tBsB
    ptx.fence.proxy.async
    {meet}
    {a}
    %tCrB = tile.make_fragment_B %mma, %sB
    %tCgC = tile.partition_C %mma, %D, %rank
    %tCtC = tile.make_fragment_C %mma, %tCgC at %x
    %fresh = arith.constant false
    scf.if %issues {{
      tile.gemm %mma, %tCrA, %tCrB, %tCtC accumulate %fresh
      {commit}
    }}
    ptx.mbarrier.wait %bar, %zero
    ptx.tcgen05.fence "after_thread_sync"
    %out = tile.tiled_copy #tile.copy_atom<"SM100_TMEM_LOAD_{self.load}", {self.d}> tmem %tCtC
    %tDtC = tile.partition_S %out, %tCtC, %t
    %tDgC = tile.partition_D %out, %tCgC, %t
    %tDrC = tile.make_fragment_like %tDgC
    tile.copy %out, %tDtC, %tDrC
    ptx.tcgen05.wait "ld"
    tile.copy %tDrC, %tDgC
    tile.tmem_dealloc %x
    tile.return
  }}
}}
run.launch @kernels::@multiply grid({group}) {{
  run.arg "A" : !A = "{self.fill.format(0)}"
  run.arg "B" : !B = "{self.fill.format(1)}"
  run.arg "D" : !D = "poison"
  run.check "D ~= {self.d}(matmul(A, transpose(B)))" {self.tolerance}
}}
"""
