# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - an instruction stands on one line
"""Correct kernels for tensor memory, and small changes that make the mistakes of docs/blackwell-mistakes.md of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from tilefold.base.errors import Code

from tests.kernels.harness import example
from tests.tcgen05.kernels import PROGRAM
from tests.tcgen05.test_tile import KINDS_WITH_SCALES
from tests.tcgen05.tile_kernels import Tile

Changes = tuple[tuple[str, str], ...]


def changed(text: str, *changes: tuple[str, str]) -> str:
    """A text in which each of some parts, which it has once, is another."""
    for old, new in changes:
        assert text.count(old) == 1, (text.count(old), old)
        text = text.replace(old, new)
    return text


@final
@dataclass(frozen=True)
class Correct:
    """A correct kernel: its text and parameters, and the stage at which its mistakes are looked for."""

    text: str
    stage: str = "cute"
    given: Mapping[str, object] = field(default_factory=dict[str, object])


@final
@dataclass(frozen=True)
class Mistake:
    """A mistake by its number on the page: the correct kernel, the changes that make it, the code that follows, and a
    part of the message.
    """

    number: int
    kernel: str
    changes: Changes
    code: Code
    text: str


PAIR = {"PAIR": 2, "M": 256, "N": 128, "K": 64, "TILE_N": 64, "STAGES": 2, "BLOCKS": 2}
BLOCK = {"M": 128, "N": 256, "K": 64, "TILE_N": 64, "STAGES": 2, "BLOCKS": 1}
_GEMM = example("gemm_sm100").read_text()
_MMA = '      ptx.tcgen05.mma "f16" cta_group 1 %X, %da, %db, %idesc, %fresh : i64\n'
_COPIED = changed(
    PROGRAM,
    (_MMA, '      ptx.tcgen05.cp "128x256b" cta_group 1 %X, %da\n'),
    ("to %c64 step %c4", "to %c8 step %c4"),
    ("    %c16 = arith", "    %c8 = arith.constant 8 : index\n    %c16 = arith"),
    ('  run.check "D ~= A @ transpose(B)"\n', ""),
    ('"(128,64):(64,1)"', '"(128,8):(8,1)"'),
)
_BY_LEADER = changed(
    _GEMM,
    ('"SM90_TMA_LOAD" %A', '"SM100_TMA_2SM_LOAD" %A'),
    ('"SM90_TMA_LOAD" %B', '"SM100_TMA_2SM_LOAD" %B'),
    (
        "            ptx.mbarrier.arrive.expect_tx %full_s, %bytes\n",
        "            scf.if %is_leader {\n              ptx.mbarrier.arrive.expect_tx %full_s, %bytes\n            }\n"
        "            %counts = ptx.pair.leader %full_s\n",
    ),
    ("%to_a mbarrier %full_s", "%to_a mbarrier %counts"),
    ("%to_b mbarrier %full_s", "%to_b mbarrier %counts"),
    ("%bytes = arith.constant ${128 * (128 + ROWS_B)}", "%bytes = arith.constant ${256 * (128 + ROWS_B)}"),
    (
        "            ptx.mbarrier.wait %full_s, %p\n            scf.if %is_leader {\n              // if PAIR == 2\n"
        '              ptx.mbarrier.wait %there_s, %p scope "cluster"\n              // end\n',
        '            scf.if %is_leader {\n              ptx.mbarrier.wait %full_s, %p scope "cluster"\n',
    ),
    (
        "            // if PAIR == 2\n            } else {\n              %theirs = ptx.mapa %there_s, %leader\n"
        "              ptx.mbarrier.arrive %theirs\n            // end\n            }\n",
        "            }\n",
    ),
)
"""The GEMM by a pair whose even block waits for the tiles of both."""
_SCALED = KINDS_WITH_SCALES["mxf8"].text
_WAITED = changed(
    _SCALED,
    ('align<8>, "1:1">', 'align<8>, "2:1">'),
    (
        "    %bar = tile.ptr %bars(0)\n",
        "    %c1 = arith.constant 1 : index\n    %bar = tile.ptr %bars(0)\n    %copied = tile.ptr %bars(%c1)\n",
    ),
    (
        "      ptx.mbarrier.init %bar, %one\n",
        "      ptx.mbarrier.init %bar, %one\n      ptx.mbarrier.init %copied, %one\n",
    ),
    (
        "      tile.copy %in, %jS, %jD\n",
        "      tile.copy %in, %jS, %jD\n      ptx.tcgen05.commit cta_group 1 %copied\n      ptx.mbarrier.wait %copied, %zero\n"
        '      ptx.tcgen05.fence "after_thread_sync"\n',
    ),
)
_BY_WARPS = changed(
    _SCALED,
    ("      tile.copy %in, %jS, %jD\n", ""),
    (
        "    %fresh = arith.constant false\n",
        """    %five = arith.constant 5 : i32
    %thread = arith.index_cast %t : index to i32
    %warp = arith.shrui %thread, %five : i32
    %c21 = arith.constant 21 : i32
    %lanes = arith.shli %warp, %c21 : i32
    %own = ptx.ptr_add %xb, %lanes : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %factors = arith.constant dense<2122219134> : vector<4xi32>
    ptx.tcgen05.st "32x32b" x 4 %factors, %own : vector<4xi32>
    ptx.tcgen05.wait "st"
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    ptx.tcgen05.fence "after_thread_sync"
    %fresh = arith.constant false
""",
    ),
)
"""Scales that each warp writes to its quarter of the lanes."""
_BLOCKS = """
gpu.module @kernels {
  ptx.entry @k() threads(32) cluster(2) shared(8208) {
    %t = ptx.sreg "tid.x"
    %rank = ptx.sreg "cluster_ctarank"
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %sixteen = arith.constant 16 : i32
    %columns = arith.constant 256 : i32
    %step = arith.constant 512 : i32
    %end = arith.constant 6144 : i32
    %b = arith.constant 4096 : i32
    %both = arith.constant 3 : i16
    %shape = arith.constant 0x10A00000 : i32
    %fresh = arith.constant false
    %nothing = arith.constant dense<0> : vector<4xi32>
    %same = arith.constant 0x7F7F7F7F : i32
    %factor = arith.addi %same, %zero : i32
    %factors = vector.broadcast %factor : i32 to vector<4xi32>
    %s = ptx.smem.addr 0
    %slot = ptx.smem.addr 8192
    %bar = ptx.smem.addr 8200
    %first = arith.cmpi eq, %t, %zero : i32
    %is_even = arith.cmpi eq, %rank, %zero : i32
    %issues = arith.andi %first, %is_even : i1
    scf.if %first {
      ptx.mbarrier.init %bar, %one
      ptx.fence.mbarrier_init
    }
    %o = arith.muli %t, %sixteen : i32
    %mine = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    scf.for %k = %zero to %end step %step : i32 {
      %at = ptx.ptr_add %mine, %k : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
      ptx.st %nothing, %at align 16 : vector<4xi32>, !ptx.ptr<shared>
    }
    %behind = ptx.ptr_add %mine, %end : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    ptx.st %factors, %behind align 16 : vector<4xi32>, !ptx.ptr<shared>
    ptx.fence.proxy.async
    ptx.barrier.cluster.arrive aligned
    ptx.barrier.cluster.wait aligned
    ptx.tcgen05.alloc cta_group 2 %slot, %columns
    ptx.tcgen05.relinquish_alloc_permit cta_group 2
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    ptx.barrier.cluster.arrive aligned
    ptx.barrier.cluster.wait aligned
    ptx.tcgen05.fence "after_thread_sync"
    %number = ptx.ld %slot align 4 : !ptx.ptr<shared> -> i32
    %d = ptx.inttoptr %number align 4 : i32 -> !ptx.ptr<tmem>
    %c128 = arith.constant 128 : i32
    %c132 = arith.constant 132 : i32
    %sfa = ptx.ptr_add %d, %c128 : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %sfb = ptx.ptr_add %d, %c132 : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %sb = ptx.ptr_add %s, %b : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    %ss = ptx.ptr_add %s, %end : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    %da = ptx.tcgen05.descriptor %s leading 128 stride 8 swizzling 0
    %db = ptx.tcgen05.descriptor %sb leading 64 stride 8 swizzling 0
    %ds = ptx.tcgen05.descriptor %ss leading 8 stride 8 swizzling 0
    scf.if %issues {
      ptx.tcgen05.cp "32x128b.warpx4" cta_group 2 %sfa, %ds
      ptx.tcgen05.cp "32x128b.warpx4" cta_group 2 %sfb, %ds
      ptx.tcgen05.mma.block_scale "mxf8f6f4" cta_group 2 %d, %da, %db, %shape, %fresh, %sfa, %sfb : i64
      ptx.tcgen05.commit cta_group 2 %bar multicast %both
    }
    ptx.mbarrier.wait %bar, %zero
    ptx.tcgen05.fence "after_thread_sync"
    ptx.barrier.cluster.arrive aligned
    ptx.barrier.cluster.wait aligned
    ptx.tcgen05.dealloc cta_group 2 %d, %columns
    ptx.ret
  }
}
run.launch @kernels::@k grid(2) {
}
"""
"""A multiplication with scales by a pair: 256 x 128 x 32, of zeros."""

PADDED = """
gpu.module @kernels {
  ptx.entry @k(%A: !ptx.ptr<global> align 32, %D: !ptx.ptr<global> align 16, %map: !ptx.tensor_map of "b4x16_p64 A dims (128, 160) strides (64) box (128, 160) swizzle 128B") threads(128) shared(20504) {
    %t = ptx.sreg "tid.x"
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %columns = arith.constant 32 : i32
    %bytes = arith.constant 10240 : i32
    %row = arith.constant 128 : i32
    %of_b = arith.constant 16384 : i32
    %shape = arith.constant 0x8081690 : i32
    %fresh = arith.constant false
    %s = ptx.smem.addr 0
    %full = ptx.smem.addr 20480
    %done = ptx.smem.addr 20488
    %slot = ptx.smem.addr 20496
    %first = arith.cmpi eq, %t, %zero : i32
    %warp = arith.shrui %t, %five : i32
    %first_warp = arith.cmpi eq, %warp, %zero : i32
    scf.if %first {
      ptx.mbarrier.init %full, %one
      ptx.mbarrier.init %done, %one
      ptx.fence.mbarrier_init
    }
    scf.if %first_warp {
      ptx.tcgen05.alloc cta_group 1 %slot, %columns
      ptx.tcgen05.relinquish_alloc_permit cta_group 1
    }
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    ptx.tcgen05.fence "after_thread_sync"
    %number = ptx.ld %slot align 4 : !ptx.ptr<shared> -> i32
    %d = ptx.inttoptr %number align 4 : i32 -> !ptx.ptr<tmem>
    scf.if %first {
      ptx.mbarrier.arrive.expect_tx %full, %bytes
      ptx.cp.async.bulk.tensor.load %map[%zero, %zero], %s, %full
    }
    ptx.mbarrier.wait %full, %zero
    scf.if %first {
      %sb = ptx.ptr_add %s, %of_b : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
      %da = ptx.tcgen05.descriptor %s leading 1 stride 64 swizzling 2
      %db = ptx.tcgen05.descriptor %sb leading 1 stride 64 swizzling 2
      ptx.tcgen05.mma "f8f6f4" cta_group 1 %d, %da, %db, %shape, %fresh : i64
      ptx.tcgen05.commit cta_group 1 %done
    }
    ptx.mbarrier.wait %done, %zero
    ptx.tcgen05.fence "after_thread_sync"
    %c21 = arith.constant 21 : i32
    %lanes = arith.shli %warp, %c21 : i32
    %own = ptx.ptr_add %d, %lanes : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %o = arith.muli %t, %row : i32
    %out = ptx.ptr_add %D, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    scf.for %n = %zero to %columns step %four : i32 {
      %part = ptx.ptr_add %own, %n : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
      %v = ptx.tcgen05.ld "32x32b" x 4 %part : vector<4xi32>
      ptx.tcgen05.wait "ld"
      %byte = arith.muli %n, %four : i32
      %at = ptx.ptr_add %out, %byte : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
      ptx.st %v, %at align 16 : vector<4xi32>, !ptx.ptr<global>
    }
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    scf.if %first_warp {
      ptx.tcgen05.dealloc cta_group 1 %d, %columns
    }
    ptx.ret
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !tile.tensor<i8, gmem, align<32>, "(160,64):(64,1)"> = "integers(-128, 128, seed=0)"
  run.arg "D" : !tile.tensor<f32, gmem, align<16>, "(128,32):(32,1)"> = "poison"
}
"""
"""D = A * B of e2m1, 128 x 32 x 32, whose rows a load pads: the first 128 are A, the others B."""

CORRECT = {
    "block": Correct(PROGRAM),
    "copied": Correct(_COPIED),
    "A in tensor memory": Correct(Tile(source="TS").text),
    "pair": Correct(Tile(blocks=2, m=256).text),
    "gemm": Correct(_GEMM, "instr", BLOCK),
    "gemm of a pair": Correct(_GEMM, "instr", PAIR),
    "tiles counted by the even block": Correct(_BY_LEADER, "instr", PAIR),
    "scales": Correct(_WAITED),
    "scales by warps": Correct(_BY_WARPS),
    "scales of a pair": Correct(_BLOCKS),
    "padded": Correct(PADDED, "instr"),
}

_TO = "ptx.tcgen05.fence"
_AFTER = f'{_TO} "after_thread_sync"\n'
_BEFORE = f'    {_TO} "before_thread_sync"\n    ptx.bar.sync 0\n'
_IDESC = "    %idesc = arith.constant 0x8100010 : i32\n"
_WAIT = "    ptx.mbarrier.wait %bar, %zero\n"


def _idesc(value: int) -> tuple[str, str]:
    """An instruction descriptor that the verifier does not know."""
    return _IDESC, f"    %most = arith.constant {value - 1} : i32\n    %idesc = arith.addi %most, %one : i32\n"


MISTAKES = {
    "one lane frees": Mistake(4, "block", (
        ("      ptx.tcgen05.dealloc cta_group 1 %X, %columns\n", "      scf.if %first {\n        ptx.tcgen05.dealloc cta_group 1 %X, %columns\n      }\n"),
    ), Code.SIM_CONVERGENCE, "1 lanes execute tcgen05.dealloc"),
    "32 lanes of a matrix of 64 rows": Mistake(12, "block", (("0x8100010", "0x4100010"),), Code.SIM_UNINITIALISED, "reads tensor memory at lane 16, column 0, which is unwritten"),
    "the other parity": Mistake(16, "block", (("wait %bar, %zero", "wait %bar, %one"),), Code.SIM_TENSOR_BUSY, "may still be writing"),
    "an mbarrier for two arrivals": Mistake(16, "block", (
        ("ptx.mbarrier.init %bar, %one", "%two = arith.constant 2 : i32\n      ptx.mbarrier.init %bar, %two"),
    ), Code.SIM_BARRIER, "1 of 2 arrivals"),
    "an accumulator is released before it is loaded": Mistake(19, "gemm", (('          ptx.tcgen05.wait "ld"\n', ""),), Code.SIM_TENSOR_BUSY, "may still be reading"),
    "no wait for stores of A": Mistake(21, "A in tensor memory", (('    ptx.tcgen05.wait "st"\n', ""),), Code.SIM_TENSOR_BUSY, "may still be writing"),
    "no fence before A is released": Mistake(21, "A in tensor memory", ((_BEFORE, "    ptx.bar.sync 0\n"),), Code.SIM_TENSOR_FENCE, "without a tcgen05 fence in between"),
    "no fence before A is multiplied": Mistake(21, "A in tensor memory", ((f"    ptx.bar.sync 0\n    {_AFTER}    %tCrB", "    ptx.bar.sync 0\n    %tCrB"),), Code.SIM_TENSOR_FENCE, "without a tcgen05 fence in between"),
    "no barrier before A is multiplied": Mistake(21, "A in tensor memory", ((f"    ptx.bar.sync 0\n    {_AFTER}    %tCrB", f"    {_AFTER}    %tCrB"),), Code.SIM_TENSOR_BUSY, "column 128 of tensor memory"),
    "A is overwritten": Mistake(22, "A in tensor memory", ((_WAIT, f"    tile.copy %in, %tSrA, %tStA\n{_WAIT}"),), Code.SIM_TENSOR_BUSY, "may still be reading"),
    "no commit between a copy and a load": Mistake(23, "copied", ((_WAIT + f"    {_AFTER}", f"    ptx.bar.sync 0\n    {_AFTER}"),), Code.SIM_TENSOR_BUSY, "which ptx.tcgen05.cp"),
    "scales are overwritten": Mistake(24, "scales", (
        ("accumulate %fresh scales %tSFA, %tSFB\n", "accumulate %fresh scales %tSFA, %tSFB\n      tile.copy %in, %iS, %iD\n"),
    ), Code.SIM_TENSOR_BUSY, "which tile.gemm"),
    "both blocks issue": Mistake(27, "pair", (("scf.if %issues {", "scf.if %first {"),), Code.SIM_TENSOR_PAIR, "both blocks of a pair issue multiplications"),
    "a pair without a cluster": Mistake(29, "pair", ((" cluster(2)", ""),), Code.SIM_TENSOR_PAIR, "the cluster has 1"),
    "a cluster of three blocks": Mistake(29, "pair", ((" cluster(2)", " cluster(3)"), ("grid(2)", "grid(3)")), Code.SIM_TENSOR_PAIR, "the cluster has 3"),
    "a block ends while its peer arrives there": Mistake(30, "gemm of a pair", ((
        "    ptx.bar.sync 0\n    // if PAIR == 2\n    ptx.barrier.cluster.arrive aligned\n    ptx.barrier.cluster.wait aligned\n    // end\n",
        "    ptx.bar.sync 0\n",
    ),), Code.SIM_PEER_END, "which may have ended"),
    "tiles are counted by the block that loads them": Mistake(31, "tiles counted by the even block", (
        ("ptx.pair.leader %full_s", "ptx.ptr_add %full_s, %even : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>"),
    ), Code.SIM_BARRIER, "forever"),
    "the bytes of one block are expected": Mistake(32, "tiles counted by the even block", (
        ("arith.constant ${256 * (128 + ROWS_B)}", "arith.constant ${128 * (128 + ROWS_B)}"),
    ), Code.SIM_IN_FLIGHT, "is still writing it"),
    "halves of B at different places": Mistake(34, "gemm of a pair", ((
        "%to_b = tile.slice %tBsB, (_, %s)",
        "%up = arith.addi %s, %rank : index\n            %place = arith.remui %up, %stages : index\n            %to_b = tile.slice %tBsB, (_, %place)",
    ),), Code.SIM_RACE, "in the block of rank 1, which a bulk copy wrote"),
    "each block has all of B": Mistake(35, "gemm of a pair", (
        ("ROWS_B = TILE_N // PAIR", "ROWS_B = TILE_N"), ("%n = arith.addi %n_pair, %rank : index", "%n = arith.addi %at#1, %c0 : index"),
    ), Code.SIM_TENSOR_PAIR, "multiplies by rows of B of which both blocks of the pair have the same half"),
    "a code of wgmma's swizzles": Mistake(36, "block", (
        ("leading 128 stride 8 swizzling 0", "leading 128 stride 8 swizzling 0\n      %code = arith.constant 0x6000000000000000 : i64\n      %dw = arith.ori %da, %code : i64"),
        ("%X, %da, %db", "%X, %dw, %db"),
    ), Code.SIM_DESCRIPTOR, "3 in bits 61 to 63 is not a swizzle"),
    "the form of tf32 for f16": Mistake(37, "block", (("leading 128 stride 8 swizzling 0", "leading 128 stride 8 swizzling 1"),), Code.SIM_DESCRIPTOR, "is that of tf32 that is MN-major"),
    "another form for tf32": Mistake(37, "block", (
        ('"f16" cta_group 1 %X', '"tf32" cta_group 1 %X'), ("0x8100010", f"{0x8108910:#x}"), ("leading 128 stride 8 swizzling 0", "leading 128 stride 8 swizzling 2"),
    ), Code.SIM_DESCRIPTOR, "is that of tf32 that is MN-major"),
    "a type of another kind": Mistake(38, "block", (_idesc(0x8100010 | 5 << 7),), Code.SIM_DESCRIPTOR, "the type of A has code 5; kind::f16 has 0 (f16), 1 (bf16)"),
    "M = 80": Mistake(38, "block", (_idesc(0x5100010),), Code.SIM_DESCRIPTOR, "M = 80; kind::f16 of one block has 64, 128"),
    "sums of integers": Mistake(38, "block", (_idesc(0x8100020),), Code.SIM_DESCRIPTOR, "the type of D has code 2"),
    "the other major": Mistake(38, "gemm", (("IDESC = 16 +", "IDESC = 32784 +"),), Code.SIM_DESCRIPTOR, "its atoms of 1024 bytes overlap, as they are 16 bytes apart; the instruction descriptor says that it is MN-major"),
    "a matrix that begins within its swizzle": Mistake(39, "gemm", (("%pa = tile.ptr %sA(0, 0, %s)", "%pa = tile.ptr %sA(1, 0, %s)"),), Code.SIM_DESCRIPTOR, "begins in row 1 of the pattern of its swizzle"),
    "scales in one quarter": Mistake(43, "scales by warps", ((
        '    ptx.tcgen05.st "32x32b" x 4 %factors, %own : vector<4xi32>\n',
        '    %writes = arith.cmpi eq, %warp, %zero : i32\n    scf.if %writes {\n      ptx.tcgen05.st "32x32b" x 4 %factors, %own : vector<4xi32>\n    }\n',
    ),), Code.SIM_DESCRIPTOR, "the scale factors of B differ between the quarters of the lanes"),
    "an odd number of scales": Mistake(43, "scales of a pair", (
        ('"mxf8f6f4" cta_group 2', '"mxf4" cta_group 2'), ("0x10A00000 : i32", f"{0x10A00480 - 1:#x} : i32"),
        ("    %fresh =", "    %number_of_b = arith.constant 17 : i32\n    %of_b = arith.addi %shape, %number_of_b : i32\n    %fresh ="),
        ("%db, %shape", "%db, %of_b"),
    ), Code.SIM_DESCRIPTOR, "the scale factors of B have the number 1; tcgen05.mma"),
    "the blocks have different scales of B": Mistake(44, "scales of a pair", (("arith.addi %same, %zero", "arith.subi %same, %rank"),), Code.SIM_DESCRIPTOR, "the scale factors of B differ between the blocks of the pair"),
    "elements that are not padded": Mistake(45, "padded", (
        ("b4x16_p64 A", "e2m1 A"), ("swizzle 128B", "swizzle 64B"),
        ("%da = ptx.tcgen05.descriptor %s leading 1 stride 64 swizzling 2", "%da = ptx.tcgen05.descriptor %s leading 1 stride 32 swizzling 4"),
        ("%db = ptx.tcgen05.descriptor %sb leading 1 stride 64 swizzling 2", "%db = ptx.tcgen05.descriptor %sb leading 1 stride 32 swizzling 4"),
        ("arith.constant 16384", "arith.constant 8192"),
    ), Code.SIM_DESCRIPTOR, "as elements of 4 bits that are padded to bytes, but a TMA copy has written elements of 4 bits without gaps"),
    "elements of 6 bits are padded": Mistake(45, "padded", (
        ("b4x16_p64 A dims (128, 160) strides (64)", "b6x16_p32 A dims (128, 100) strides (96)"), ("box (128, 160)", "box (128, 100)"), ("10240", "9600"),
    ), Code.SIM_DESCRIPTOR, "but a TMA copy has written elements of 6 bits that are padded to bytes"),
    "padded elements for mxf4": Mistake(45, "padded", (
        ('ptx.tcgen05.mma "f8f6f4" cta_group 1 %d, %da, %db, %shape, %fresh : i64', 'ptx.tcgen05.mma.block_scale "mxf4" cta_group 1 %d, %da, %db, %shape, %fresh, %d, %d : i64'),
        ("0x8081690", "0x8880480"),
    ), Code.SIM_DESCRIPTOR, "as elements of 4 bits without gaps, but a TMA copy has written elements of 4 bits that are padded to bytes"),
    "twice the bytes are expected": Mistake(46, "padded", (("10240", "20480"),), Code.SIM_BARRIER, "lacks 10240 bytes"),
    "rows of 64 padded elements": Mistake(47, "padded", (("box (128, 160)", "box (64, 160)"),), Code.TMA_BOX, "the rows of the box (64,160) have 64 padded elements"),
    "scales of another type": Mistake(48, "scales of a pair", (("0x10A00000 : i32", "0x10200000 : i32"),), Code.TENSOR_FORM, "the scales are ue4m3, and those of kind::mxf8f6f4 are ue8m0"),
    "lanes that a mask leaves out": Mistake(49, "block", (("%idesc, %fresh : i64", "%idesc, %fresh mask (%one, %zero, %zero, %zero) : i64"),), Code.SIM_UNINITIALISED, "reads tensor memory at lane 0, column 0, which is unwritten"),
    "N = 72 of .ws": Mistake(50, "block", (('ptx.tcgen05.mma "f16"', 'ptx.tcgen05.mma.ws "f16"'), _idesc(0x8120010)), Code.SIM_DESCRIPTOR, "N = 72; kind::f16 of one block with .ws with M = 128 has 64, 128, 256"),
}  # fmt: skip
