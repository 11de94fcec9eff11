# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel with one tcgen05.mma: D = A * B, 128x64x16, from shared memory that the threads fill."""

PROGRAM = """
!ga = !tile.tensor<f16, gmem, align<16>, "(128,16):(16,1)">
!gb = !tile.tensor<f16, gmem, align<16>, "(64,16):(16,1)">
!gd = !tile.tensor<f32, gmem, align<16>, "(128,64):(64,1)">
!sa = !tile.tensor<f16, smem, align<1024>, "((8,16),(8,2)):((8,64),(1,1024))">
!sb = !tile.tensor<f16, smem, align<1024>, "((8,8),(8,2)):((8,64),(1,512))">

gpu.module @kernels {
  tile.kernel @multiply(%A: !ga, %B: !gb, %D: !gd) threads(128) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %columns = arith.constant 64 : i32
    %idesc = arith.constant 0x8100010 : i32
    %fresh = arith.constant false

    %sA = tile.alloc : !sa
    %sB = tile.alloc : !sb
    %slot = ptx.smem.alloc 4 align 4
    %bar = ptx.smem.alloc 8 align 8
    %warp = arith.divui %t, %c32 : index
    %first_warp = arith.cmpi eq, %warp, %c0 : index
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first_warp {
      ptx.tcgen05.alloc cta_group 1 %slot, %columns
      ptx.tcgen05.relinquish_alloc_permit cta_group 1
    }
    scf.if %first {
      ptx.mbarrier.init %bar, %one
      ptx.fence.mbarrier_init
    }
    scf.for %k = %c0 to %c16 step %c1 {
      %a = tile.load %A(%t, %k)
      tile.store %a, %sA(%t, %k)
    }
    %holds = arith.cmpi ult, %t, %c64 : index
    scf.if %holds {
      scf.for %k = %c0 to %c16 step %c1 {
        %b = tile.load %B(%t, %k)
        tile.store %b, %sB(%t, %k)
      }
    }
    ptx.fence.proxy.async
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    ptx.tcgen05.fence "after_thread_sync"
    %number = ptx.ld %slot align 4 : !ptx.ptr<shared> -> i32
    %X = ptx.inttoptr %number align 4 : i32 -> !ptx.ptr<tmem>
    scf.if %first {
      %pa = tile.ptr %sA(0, 0)
      %pb = tile.ptr %sB(0, 0)
      %da = ptx.tcgen05.descriptor %pa leading 128 stride 8 swizzling 0
      %db = ptx.tcgen05.descriptor %pb leading 64 stride 8 swizzling 0
      ptx.tcgen05.mma "f16" cta_group 1 %X, %da, %db, %idesc, %fresh : i64
      ptx.tcgen05.commit cta_group 1 %bar
    }
    ptx.mbarrier.wait %bar, %zero
    ptx.tcgen05.fence "after_thread_sync"
    %w = arith.index_cast %warp : index to i32
    %c21 = arith.constant 21 : i32
    %lane = arith.shli %w, %c21 : i32
    %own = ptx.ptr_add %X, %lane : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    scf.for %n = %c0 to %c64 step %c4 {
      %column = arith.index_cast %n : index to i32
      %part = ptx.ptr_add %own, %column : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
      %v = ptx.tcgen05.ld "32x32b" x 4 %part : vector<4xi32>
      ptx.tcgen05.wait "ld"
      %at = tile.ptr %D(%t, %n)
      ptx.st %v, %at align 16 : vector<4xi32>, !ptx.ptr<global>
    }
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    scf.if %first_warp {
      ptx.tcgen05.dealloc cta_group 1 %X, %columns
    }
    tile.return
  }
}
run.launch @kernels::@multiply grid(1) {
  run.arg "A" : !ga = "normal(seed=0)"
  run.arg "B" : !gb = "normal(seed=1)"
  run.arg "D" : !gd = "poison"
  run.check "D ~= A @ transpose(B)"
}
"""
