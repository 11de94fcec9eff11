# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel with the instructions of the family: D = A * B + C, where C and D are in its memory."""

PROGRAM = """
!ga = !tile.tensor<f16, gmem, align<16>, "(16,32):(1,16)">
!gb = !tile.tensor<f16, gmem, align<16>, "(16,8):(1,16)">
!gc = !tile.tensor<f32, gmem, align<16>, "(8,32):(1,8)">
!sa = !tile.tensor<f16, smem, align<128>, "(16,32):(1,16)">
!sb = !tile.tensor<f16, smem, align<128>, "(16,8):(1,16)">
!sc = !tile.tensor<f32, smem, align<128>, "(8,32):(1,8)">
!slot = !tile.tensor<i32, smem, align<4>, "1:0">
!cells = !tile.tensor<f32, xmem, align<4>, "(8,32):(1,65536)">
!part = !tile.tensor<f32, rmem, align<16>, "8:1">

gpu.module @kernels {
  tile.kernel @multiply(%A: !ga, %B: !gb, %C: !gc, %D: !gc) threads(32) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %bytes = arith.constant 1024 : i32
    %accumulate = arith.constant true

    // memory: shared tensors, an mbarrier, and cells
    %sA = tile.alloc : !sa
    %sB = tile.alloc : !sb
    %sC = tile.alloc : !sc
    %slot = tile.alloc : !slot
    %bar = ptx.smem.alloc 8 align 8
    tile.instruction "acme.alloc"(%slot : !slot)
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      ptx.mbarrier.init %bar, %one
      ptx.fence.mbarrier_init
    }

    // operands to shared memory
    scf.for %k = %c0 to %c16 step %c1 {
      %a = tile.load %A(%k, %t)
      tile.store %a, %sA(%k, %t)
    }
    %column = arith.remui %t, %c8 : index
    %quarter = arith.divui %t, %c8 : index
    scf.for %k = %c0 to %c4 step %c1 {
      %row = arith.muli %quarter, %c4 : index
      %at = arith.addi %row, %k : index
      %b = tile.load %B(%at, %column)
      tile.store %b, %sB(%at, %column)
    }
    scf.for %n = %c0 to %c8 step %c1 {
      %c = tile.load %C(%n, %t)
      tile.store %c, %sC(%n, %t)
    }
    ptx.fence.proxy.async
    ptx.bar.sync 0

    // the accumulator
    %held = tile.ptr %slot(0)
    %number = ptx.ld %held align 4 : !ptx.ptr<shared> -> i32
    %address = ptx.inttoptr %number align 4 : i32 -> !ptx.ptr<xmem>
    %X = tile.tensor_at %address : !cells
    scf.if %first {
      ptx.mbarrier.arrive.expect_tx %bar, %bytes
      tile.instruction "acme.copy"(%X, %sC, %bar : !cells, !sc, !ptx.ptr<shared>)
    }
    ptx.mbarrier.wait %bar, %zero                                        // the copy
    scf.if %first {
      tile.instruction "acme.mma"(%X, %sA, %sB, %accumulate : !cells, !sa, !sb, i1)
      tile.instruction "acme.mma"(%X, %sA, %sB, %accumulate : !cells, !sa, !sb, i1)
      tile.instruction "acme.commit"(%bar : !ptx.ptr<shared>)
    }
    ptx.mbarrier.wait %bar, %one                                         // the multiplications

    // the result
    %r = tile.alloc : !part
    tile.instruction "acme.load"(%r, %X : !part, !cells)
    tile.instruction "acme.wait"()                                       // the load
    scf.for %n = %c0 to %c8 step %c1 {
      %d = tile.load %r(%n)
      tile.store %d, %D(%n, %t)
    }
    tile.instruction "acme.free"(%address : !ptx.ptr<xmem>)
    tile.return
  }
}
run.launch @kernels::@multiply grid(1) {
  run.arg "A" : !ga = "normal(seed=0)"
  run.arg "B" : !gb = "normal(seed=1)"
  run.arg "C" : !gc = "normal(seed=2)"
  run.arg "D" : !gc = "poison"
  run.check "D ~= C + 2 * (transpose(B) @ A)"
}
"""
