# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - an operation stands on one line
"""A multiplication with scale factors in the words of `tile`, of 128 x 128 x K where a row has four of them."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Scaled:
    """The kind and the types by CuTe's words and those of the IR, and the values along K that share a factor."""

    family: str
    cxx: str
    element: str
    bits: int
    scale: str
    vector: int
    k: int
    """The elements of K of an instruction."""
    named_vector: str = ""
    codes: str = "integers(123, 128, seed={})"

    @property
    def text(self) -> str:
        """The program."""
        whole, factors = 4 * self.vector, self.k // self.vector
        deep = 4 // factors
        words = {
            "ELEMENT": self.element, "BITS": f"{8 - self.bits.bit_length()}", "WHOLE": f"{whole}", "KI": f"{self.k}",
            "DEEP": f"{whole // self.k}", "EACH": f"{128 // self.bits}", "VECTOR": f"{self.vector}",
            "FACTORS": f"{factors}", "ALONG": f"{deep}", "SPAN": f"{(whole * self.bits // 256).bit_length()}", "THREADS": f"{whole * self.bits // 128}",
            "ROWS": f"{128 * 128 // (whole * self.bits)}",
            "ATOM": f"SM100_MMA_{self.family}_SS<{self.cxx},{self.cxx},float,{self.scale},128,128,"
            f"{self.named_vector}Major::K,Major::K>", "CODES2": self.codes.format(2), "CODES3": self.codes.format(3),
        }  # fmt: skip
        text = PROGRAM
        for word in sorted(words, key=len, reverse=True):
            text = text.replace(f"@{word}@", words[word])
        return text


PROGRAM = """// cute-format 1
!A = !tile.tensor<@ELEMENT@, gmem, align<16>, "(128,@WHOLE@):(@WHOLE@,1)">
!D = !tile.tensor<f32, gmem, align<16>, "(128,128):(128,1)">
!SF = !tile.tensor<i8, gmem, align<16>, "512:1">
!flat = !tile.tensor<@ELEMENT@, smem, align<1024>, "S<@SPAN@,@BITS@,3> o 0 o (128,@WHOLE@):(@WHOLE@,1)">
!staged = !tile.tensor<@ELEMENT@, smem, align<1024>, "S<@SPAN@,@BITS@,3> o 0 o ((128,@KI@),1,@DEEP@):((@WHOLE@,1),0,@KI@)">
!sSF = !tile.tensor<i8, smem, align<128>, "((((32,4),1),(1,@FACTORS@)),1,(@ALONG@,1)):((((16,4),512),(0,1)),0,(@FACTORS@,512))">
!line = !tile.tensor<i8, smem, align<128>, "512:1">
!tSF = !tile.tensor<i8, tmem, align<4>, "((((32,4),4),(@VECTOR@,@FACTORS@)),1,(@ALONG@,1)):((((262144,4),8388608),(0,1)),0,(@FACTORS@,0))">
!tSFc = !tile.tensor<i8, tmem, align<4>, "((((32,4),4),(1,@FACTORS@)),1,(@ALONG@,1)):((((262144,4),8388608),(0,1)),0,(@FACTORS@,0))">
gpu.module @kernels {
  tile.kernel @multiply(%A: !A, %B: !A, %SFA: !SF, %SFB: !SF, %D: !D) threads(128) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %sA = tile.alloc : !staged
    %sB = tile.alloc : !staged
    %sSFA = tile.alloc : !sSF
    %sSFB = tile.alloc : !sSF
    %bars = tile.alloc : !tile.tensor<i64, smem, align<8>, "1:1">
    %bar = tile.ptr %bars(0)
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      ptx.mbarrier.init %bar, %one
    }
    %x = tile.tmem_alloc 256 cta_group 1
    %move = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", @ELEMENT@> thr "(@ROWS@,@THREADS@):(@THREADS@,1)" val "(1,@EACH@):(0,1)"
    %fA = tile.alias %sA at 0 : !flat
    %tAgA = tile.partition_S %move, %A, %t
    %tAsA = tile.partition_D %move, %fA, %t
    tile.copy %move, %tAgA, %tAsA
    %fB = tile.alias %sB at 0 : !flat
    %tBgB = tile.partition_S %move, %B, %t
    %tBsB = tile.partition_D %move, %fB, %t
    tile.copy %move, %tBgB, %tBsB
    %words = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint32_t>", i8> thr "128:1" val "4:1"
    %lA = tile.alias %sSFA at 0 : !line
    %gSFA = tile.partition_S %words, %SFA, %t
    %oSFA = tile.partition_D %words, %lA, %t
    tile.copy %words, %gSFA, %oSFA
    %lB = tile.alias %sSFB at 0 : !line
    %gSFB = tile.partition_S %words, %SFB, %t
    %oSFB = tile.partition_D %words, %lB, %t
    tile.copy %words, %gSFB, %oSFB
    ptx.fence.proxy.async
    ptx.bar.sync 0
    %mma = tile.tiled_mma #tile.mma_atom<"@ATOM@">
    %tCrA = tile.make_fragment_A %mma, %sA
    %tCrB = tile.make_fragment_B %mma, %sB
    %tCgC = tile.partition_C %mma, %D, %c0
    %tCtC = tile.make_fragment_C %mma, %tCgC at %x
    %n128 = arith.constant 128 : i32
    %n132 = arith.constant 132 : i32
    %xa = ptx.ptr_add %x, %n128 : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %xb = ptx.ptr_add %x, %n132 : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %tSFA = tile.tensor_at %xa : !tSF
    %tSFB = tile.tensor_at %xb : !tSF
    %cSFA = tile.tensor_at %xa : !tSFc
    %cSFB = tile.tensor_at %xb : !tSFc
    %in = tile.tiled_copy #tile.copy_atom<"SM100_UTCCP_4x32dp128bit_1cta", i8> tmem %cSFA
    %iS = tile.partition_S %in, %sSFA, %c0
    %iD = tile.partition_D %in, %cSFA, %c0
    %jS = tile.partition_S %in, %sSFB, %c0
    %jD = tile.partition_D %in, %cSFB, %c0
    %fresh = arith.constant false
    scf.if %first {
      tile.copy %in, %iS, %iD
      tile.copy %in, %jS, %jD
      tile.gemm %mma, %tCrA, %tCrB, %tCtC accumulate %fresh scales %tSFA, %tSFB
      ptx.tcgen05.commit cta_group 1 %bar
    }
    ptx.mbarrier.wait %bar, %zero
    ptx.tcgen05.fence "after_thread_sync"
    %out = tile.tiled_copy #tile.copy_atom<"SM100_TMEM_LOAD_32dp32b32x", f32> tmem %tCtC
    %tDtC = tile.partition_S %out, %tCtC, %t
    %tDgC = tile.partition_D %out, %tCgC, %t
    %tDrC = tile.make_fragment_like %tDgC
    tile.copy %out, %tDtC, %tDrC
    ptx.tcgen05.wait "ld"
    tile.copy %tDrC, %tDgC
    tile.tmem_dealloc %x
    tile.return
  }
}
run.launch @kernels::@multiply grid(1) {
  run.arg "A" : !A = "normal(seed=0)"
  run.arg "B" : !A = "normal(seed=1)"
  run.arg "SFA" : !SF = "@CODES2@"
  run.arg "SFB" : !SF = "@CODES3@"
  run.arg "D" : !D = "poison"
}
"""
