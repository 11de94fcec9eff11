# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel of a warp that executes each instruction of tcgen05 once."""

from tests.sim.harness import entry

CELLS = """
%t = ptx.sreg "tid.x"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%sixteen = arith.constant 16 : i32
%more = arith.constant 32 : i32
%columns = arith.constant 64 : i32
%row = arith.constant 512 : i32
%end = arith.constant 8192 : i32
%plain = arith.constant 134348816 : i32
%stationary = arith.constant 34603024 : i32
%scaled = arith.constant 142737408 : i32
%fresh = arith.constant false
%nothing = arith.constant dense<0> : vector<4xi32>
%s = ptx.smem.addr 0
%slot = ptx.smem.addr 8192
%bar = ptx.smem.addr 8200
%leads = arith.cmpi eq, %t, %zero : i32
%o = arith.muli %t, %sixteen : i32
%mine = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
ptx.tcgen05.alloc cta_group 1 %slot, %columns
ptx.tcgen05.relinquish_alloc_permit cta_group 1
scf.if %leads {
ptx.mbarrier.init %bar, %one
ptx.fence.mbarrier_init
}
scf.for %k = %zero to %end step %row : i32 {
%at = ptx.ptr_add %mine, %k : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
ptx.st %nothing, %at align 16 : vector<4xi32>, !ptx.ptr<shared>
}
ptx.fence.proxy.async
ptx.tcgen05.fence "before_thread_sync"
ptx.bar.sync 0
%number = ptx.ld %slot align 4 : !ptx.ptr<shared> -> i32
%d = ptx.inttoptr %number align 4 : i32 -> !ptx.ptr<tmem>
%e = ptx.ptr_add %d, %sixteen : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
%f = ptx.ptr_add %d, %more : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
%g = ptx.ptr_add %f, %sixteen : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
%four = arith.constant 4 : i32
%h = ptx.ptr_add %g, %four : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
%half = arith.constant 4096 : i32
%r = ptx.ptr_add %s, %half : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%m = ptx.tcgen05.descriptor %s leading 128 stride 8 swizzling 0
%n = ptx.tcgen05.descriptor %r leading 128 stride 8 swizzling 0
scf.if %leads {
ptx.tcgen05.cp "128x256b" cta_group 1 %g, %m
ptx.tcgen05.commit cta_group 1 %bar
}
ptx.mbarrier.wait %bar, %zero
ptx.tcgen05.fence "after_thread_sync"
scf.if %leads {
ptx.tcgen05.shift cta_group 1 %g
ptx.tcgen05.mma "f16" cta_group 1 %d, %m, %n, %plain, %fresh : i64
ptx.tcgen05.mma.ws "f16" cta_group 1 %e, %m, %n, %stationary, %fresh : i64
ptx.tcgen05.mma.block_scale "mxf8f6f4" cta_group 1 %f, %m, %n, %scaled, %fresh, %g, %h : i64
ptx.tcgen05.commit cta_group 1 %bar
}
ptx.mbarrier.wait %bar, %one
ptx.tcgen05.fence "after_thread_sync"
%v = ptx.tcgen05.ld "32x32b" x 4 %d : vector<4xi32>
%w:2 = ptx.tcgen05.ld.red "32x32b" x 2 "max.f32" %d : vector<2xi32>, f32
ptx.tcgen05.wait "ld"
ptx.tcgen05.st "16x64b" x 4 %v, %d : vector<4xi32>
ptx.tcgen05.wait "st"
ptx.tcgen05.dealloc cta_group 1 %d, %columns
"""

TEXT = entry(CELLS, "%A: !ptx.ptr<global> align 16", "32", shared=8208)
