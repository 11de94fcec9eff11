# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matrix multiplication of 128 x 256 by three warpgroups: one loads stages of 64 of K into a ring, two multiply."""

import numpy as np
from numpy.typing import NDArray
from tilefold.layout.atoms.mma_table import mma_atom

from tests.warpgroups import Operand, accumulators

ATOM = "SM90_64x256x16_F32F16F16_SS<Major::K,Major::K>"
STAGES = 4
_BYTES_A, _BYTES_B = 128 * 64 * 2, 256 * 64 * 2
_BYTES = _BYTES_A + _BYTES_B
SHARED = STAGES * _BYTES + 16 * STAGES
THREADS = 384


def _constants(**values: int) -> str:
    return "\n".join(f"%{name} = arith.constant {value} : i32" for name, value in values.items())


def _bars(stage: str) -> str:
    """`%f` and `%e`, the mbarriers of a stage that say whether it is full and whether it is empty."""
    return f"""
      %at = arith.muli {stage}, %eight : i32
      %f = ptx.ptr_add %full, %at : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
      %e = ptx.ptr_add %empty, %at : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>"""


def _place(stage: str) -> str:
    """`%sa` and `%sb`, where A and B of a stage are."""
    return f"""
      %o = arith.muli {stage}, %bytes : i32
      %sa = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
      %sb = ptx.ptr_add %sa, %bytes_a : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>"""


def _multiplications() -> str:
    lines = ["ptx.wgmma.fence"]
    for block in range(4):
        lines += [
            f"%k{block} = arith.constant {2 * block} : i64",
            f"%a{block} = arith.addi %da, %k{block} : i64",
            f"%b{block} = arith.addi %db, %k{block} : i64",
            f'ptx.wgmma.mma_async "{ATOM}" %acc, %a{block}, %b{block}, {"%true" if block else "%later"} : i64',
        ]
    return "\n".join([*lines, "ptx.wgmma.commit_group"])


def text(running: int = 1) -> str:
    """The kernel `@k` of `n` stages of A and B, which lets so many groups of multiplications run at a time. It writes
    the accumulators of each thread of the two last warpgroups.
    """
    return f"""gpu.module @kernels {{
  ptx.entry @k(%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16, %C: !ptx.ptr<global> align 16, %n: i32)
      threads({THREADS}) min_blocks(1) shared({SHARED}) {{
    %t = ptx.sreg "tid.x"
    {
        _constants(
            zero=0,
            one=1,
            two=2,
            four=4,
            seven=7,
            eight=8,
            last=127,
            words=128,
            threads=128,
            line=512,
            half=8192,
            stages=STAGES,
            bytes=_BYTES,
            bytes_a=_BYTES_A,
            bytes_b=_BYTES_B,
        )
    }
    %true = arith.constant true
    %s = ptx.smem.addr 0
    %full = ptx.smem.addr {STAGES * _BYTES}
    %empty = ptx.smem.addr {STAGES * _BYTES + 8 * STAGES}
    %first = arith.cmpi eq, %t, %zero : i32
    scf.if %first {{
      scf.for %i = %zero to %stages step %one : i32 {{{_bars("%i")}
        ptx.mbarrier.init %f, %one
        ptx.mbarrier.init %e, %two
      }}
      ptx.fence.mbarrier_init
    }}
    ptx.bar.sync 0
    %group = arith.shrui %t, %seven : i32
    %loads = arith.cmpi eq, %group, %zero : i32
    scf.if %loads {{
      ptx.setmaxnreg dec 40
      scf.if %first {{
        scf.for %i = %zero to %n step %one : i32 {{
          %stage = arith.remui %i, %stages : i32
          %round = arith.divui %i, %stages : i32
          %odd = arith.andi %round, %one : i32
          %parity = arith.xori %odd, %one : i32{_bars("%stage")}{_place("%stage")}
          ptx.mbarrier.wait %e, %parity
          ptx.mbarrier.arrive.expect_tx %f, %bytes
          %oa = arith.muli %i, %bytes_a : i32
          %ob = arith.muli %i, %bytes_b : i32
          %ga = ptx.ptr_add %A, %oa : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
          %gb = ptx.ptr_add %B, %ob : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
          ptx.cp.async.bulk.load %sa, %ga, %bytes_a, %f
          ptx.cp.async.bulk.load %sb, %gb, %bytes_b, %f
        }}
      }}
    }} else {{
      ptx.setmaxnreg inc 232
      %m = arith.subi %group, %one : i32
      %rows = arith.muli %m, %half : i32
      %acc = ptx.local.alloc 512 align 16
      %lane = arith.andi %t, %last : i32
      %leads = arith.cmpi eq, %lane, %zero : i32
      scf.for %i = %zero to %n step %one : i32 {{
        %stage = arith.remui %i, %stages : i32
        %round = arith.divui %i, %stages : i32
        %parity = arith.andi %round, %one : i32{_bars("%stage")}{_place("%stage")}
        ptx.mbarrier.wait %f, %parity
        %own = ptx.ptr_add %sa, %rows : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
        %da = ptx.wgmma.descriptor %own leading 1 stride 64 swizzle 3
        %db = ptx.wgmma.descriptor %sb leading 1 stride 64 swizzle 3
        %later = arith.cmpi ne, %i, %zero : i32
        {_multiplications()}
        ptx.wgmma.wait_group {running}
        %before = arith.subi %i, %one : i32
        %release = arith.andi %leads, %later : i1
        scf.if %release {{
          %previous = arith.remui %before, %stages : i32
          %released = arith.muli %previous, %eight : i32
          %last_e = ptx.ptr_add %empty, %released : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
          ptx.mbarrier.arrive %last_e
        }}
      }}
      ptx.wgmma.wait_group 0
      %mine = arith.subi %t, %threads : i32
      %to = arith.muli %mine, %line : i32
      %c = ptx.ptr_add %C, %to : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
      scf.for %j = %zero to %words step %one : i32 {{
        %w = arith.muli %j, %four : i32
        %p = ptx.ptr_add %acc, %w : !ptx.ptr<local>, i32 -> !ptx.ptr<local>
        %q = ptx.ptr_add %c, %w : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
        %v = ptx.ld %p align 4 : !ptx.ptr<local> -> f32
        ptx.st %v, %q align 4 : f32, !ptx.ptr<global>
      }} {{unroll}}
    }}
    ptx.ret
  }}
}}
"""


def stages_of(matrix: NDArray[np.float16]) -> NDArray[np.uint8]:
    """A matrix (MN, K) as the stages of the ring have it in shared memory, one after the other."""
    operand = Operand(len(matrix), 16, 4, 16, "K", "SW128")
    return np.concatenate([operand.image(matrix[:, k : k + 64]) for k in range(0, matrix.shape[1], 64)])


def result(output: NDArray[np.float32]) -> NDArray[np.float32]:
    """D (128, 256) of the accumulators that the kernel has written."""
    return np.concatenate([accumulators(mma_atom(ATOM), half) for half in np.split(output, 2)])
