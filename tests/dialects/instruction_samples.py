# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that exchange, compute, synchronise and change memory atomically, each written as it is printed."""

from collections.abc import Mapping
from types import MappingProxyType

INSTRUCTION_SAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "ptx.shfl.sync": (
        '%0 = ptx.shfl.sync "bfly" %x, %x : i32',
        '%0 = arith.constant 1.000000e+00 : f32\n%1 = ptx.shfl.sync "up" %0, %x width 8 mask %x {note} : f32',
        '%0 = ptx.ld %A align 4 : !ptx.ptr<global> -> vector<2xf16>\n'
        '%1 = ptx.shfl.sync "idx" %0, %x mask %x : vector<2xf16>',
    ),
    "ptx.shfl.sync.valid": (
        '%0:2 = ptx.shfl.sync.valid "up" %x, %x, %x {note} : i32',
        '%0 = arith.constant 1.000000e+00 : f32\n%1:2 = ptx.shfl.sync.valid "idx" %0, %x, %x mask %x : f32',
    ),
    "ptx.vote.sync": (
        '%0 = arith.constant true\n%1 = ptx.vote.sync "ballot" %0 : i32\n'
        '%2 = ptx.vote.sync "uni" %0 mask %1 : i1',
    ),
    "ptx.match.any.sync": ("%0 = ptx.match.any.sync %x\n%1 = ptx.match.any.sync %x mask %0",),
    "ptx.redux.sync": (
        '%0 = ptx.redux.sync "umax" %x : i32\n%1 = ptx.redux.sync "xor" %x mask %0 : i32',
        '%0 = arith.constant 1.000000e+00 : f32\n%1 = ptx.redux.sync "max" %0 : f32',
    ),
    "ptx.elect.sync": ("%0 = ptx.elect.sync", "%0 = ptx.elect.sync mask %x"),
    "ptx.activemask": ("%0 = ptx.activemask",),
    **{
        f"ptx.{name}.approx": (
            f"%0 = arith.constant 1.000000e+00 : f32\n%1 = ptx.{name}.approx %0 : f32{more}",
        )
        for name, more in {
            "ex2": "\n%2 = ptx.ex2.approx ftz %1 : f32\n%3 = ptx.ex2.approx %h : f16", "lg2": "", "rcp": "",
            "rsqrt": "\n%2 = ptx.rsqrt.approx ftz %1 {note} : f32", "sqrt": "", "sin": "", "cos": "", "tanh": "",
        }.items()
    },
    "ptx.cvt": (
        "%0 = arith.constant 1.000000e+00 : f32\n"
        '%1 = ptx.cvt "rn.relu.f16x2.f32" %0, %0 : (f32, f32) -> vector<2xf16>\n'
        '%2 = ptx.cvt "rn.satfinite.e4m3x2.f16x2" %1 : (vector<2xf16>) -> i16\n'
        '%3 = ptx.cvt "rn.f16x2.e5m2x2" %2 : (i16) -> vector<2xf16>\n'
        '%4 = ptx.cvt "rna.tf32.f32" %0 : (f32) -> f32',
        "%0 = arith.constant 1.000000e+00 : f32\n"
        '%1 = ptx.cvt "rn.satfinite.e2m1x2.f32" %0, %0 : (f32, f32) -> i8\n'
        '%2 = ptx.cvt "rn.f16x2.e2m1x2" %1 : (i8) -> vector<2xf16>\n'
        '%3 = ptx.cvt "rp.satfinite.ue8m0x2.f32" %0, %0 : (f32, f32) -> i16\n'
        '%4 = ptx.cvt "rn.bf16x2.ue8m0x2" %3 : (i16) -> vector<2xbf16>',
        "%0 = arith.constant 1.000000e+00 : f32\n"
        '%1 = ptx.cvt "rs.relu.satfinite.e5m2x4.f32" %0, %0, %0, %0, %x : (f32, f32, f32, f32, i32) -> i32\n'
        '%2 = ptx.cvt "rs.satfinite.e2m1x4.f32" %0, %0, %0, %0, %1 : (f32, f32, f32, f32, i32) -> i16\n'
        '%3 = ptx.cvt "rs.relu.bf16x2.f32" %0, %0, %1 : (f32, f32, i32) -> vector<2xbf16>',
    ),
    "ptx.f32x2": (
        "%w = ptx.ld %A align 8 : !ptx.ptr<global> -> vector<2xf32>\n"
        '%0 = ptx.f32x2 "fma.rn" %w, %w, %w {note} : vector<2xf32>, vector<2xf32>, vector<2xf32> -> vector<2xf32>\n'
        '%1 = ptx.f32x2 "mul.rn" %0, %w : vector<2xf32>, vector<2xf32> -> vector<2xf32>',
    ),
    "ptx.minmax3": (
        '%0 = arith.constant 1.000000e+00 : f32\n%1 = ptx.minmax3 "max.NaN" %0, %0, %0 {note}',
    ),
    "ptx.prmt": ("%0 = ptx.prmt %x, %x, %x",),
    "ptx.dp4a": ('%0 = ptx.dp4a "s32.u32" %x, %x, %x',),
    "ptx.bar.red": (
        '%0 = arith.constant true\n%1 = ptx.bar.red "or" %0, 1 threads 64 {note} : i1\n'
        '%2 = ptx.bar.red "popc" %0, 0 : i32\n%3 = ptx.bar.red "and" %0, 1 threads 64 unaligned : i1\n'
        '%4 = ptx.bar.red "and" %0, 0 plus %x for %x : i1',
    ),
    "ptx.bar.arrive": (
        "ptx.bar.arrive 1 threads 64\nptx.bar.sync 1 threads 64",
        "ptx.bar.arrive 0 plus %x threads 64\nptx.bar.arrive 1 threads 64 unaligned",
        "ptx.bar.arrive 1 for %x\nptx.bar.sync 0 plus %x for %x unaligned",
    ),
    "ptx.mbarrier.init": ("ptx.mbarrier.init %s, %x {note}", 'ptx.mbarrier.init %s, %x named "ring.empty[0]"'),
    "ptx.st.bulk": ("%0 = arith.constant 64 : i64\nptx.st.bulk %s, %0 {note}",),
    "ptx.mbarrier.inval": ("ptx.mbarrier.inval %s",),
    "ptx.mbarrier.arrive": (
        "ptx.mbarrier.arrive %s\nptx.mbarrier.arrive %s count %x {note}",
        '%0 = ptx.mapa %s, %x\nptx.mbarrier.arrive %0\nptx.mbarrier.arrive %0 count %x scope "cta"',
    ),
    "ptx.mbarrier.arrive.state": (
        "%0 = ptx.mbarrier.arrive.state %s {note}\n%1 = ptx.mbarrier.arrive.state drop %s",
        "%0 = ptx.mbarrier.arrive.state drop %s count %x {note}",
    ),
    "ptx.mbarrier.try_wait.state": (
        "%0 = ptx.mbarrier.arrive.state %s\n%1 = ptx.mbarrier.try_wait.state %s, %0 {note}",
    ),
    "ptx.mbarrier.expect_tx": (
        "ptx.mbarrier.expect_tx %s, %x {note}\n%0 = ptx.mapa %s, %x\nptx.mbarrier.expect_tx %0, %x",
    ),
    "ptx.mbarrier.arrive.expect_tx": (
        "ptx.mbarrier.arrive.expect_tx %s, %x {note}\n%0 = ptx.mapa %s, %x\nptx.mbarrier.arrive.expect_tx %0, %x",
    ),
    "ptx.mbarrier.complete_tx": ("ptx.mbarrier.complete_tx %s, %x {note}",),
    "ptx.mbarrier.test_wait": ('%0 = ptx.mbarrier.test_wait %s, %x scope "cluster" {note}',),
    "ptx.mbarrier.try_wait": ('%0 = ptx.mbarrier.try_wait %s, %x\n%1 = ptx.mbarrier.try_wait %s, %x scope "cluster"',),
    "ptx.mbarrier.wait": ('ptx.mbarrier.wait %s, %x\nptx.mbarrier.wait %s, %x scope "cta"',),
    "ptx.cp.async.mbarrier.arrive": (
        "ptx.cp.async.mbarrier.arrive noinc %s {note}\nptx.cp.async.mbarrier.arrive %s",
    ),
    "ptx.cp.async.bulk.load": (
        "ptx.cp.async.bulk.load %s, %A, %x, %s {note}",
        '%0 = ptx.createpolicy "L2::evict_first"\nptx.cp.async.bulk.load %s, %A, %x, %s policy %0',
    ),
    "ptx.cp.async.bulk.store": (
        "ptx.cp.async.bulk.store %A, %s, %x {note}",
        '%0 = ptx.createpolicy "L2::evict_first"\nptx.cp.async.bulk.store %A, %s, %x policy %0',
        "%0 = arith.constant 255 : i16\nptx.cp.async.bulk.store %A, %s, %x mask %0",
    ),
    "ptx.cp.async.bulk.send": (
        "%0 = ptx.mapa %s, %x\nptx.cp.async.bulk.send %0, %s, %x, %0 {note}",
        '%0 = ptx.mapa %s, %x\nptx.cp.async.bulk.send %0, %s, %x, %0 reduce "add.u64"',
    ),
    "ptx.cp.reduce.async.bulk": (
        'ptx.cp.reduce.async.bulk "add.bf16" %A, %s, %x {note}\n'
        'ptx.cp.reduce.async.bulk "xor.b64" %A, %s, %x policy %v',
    ),
    "ptx.cp.async.bulk.prefetch": (
        "ptx.cp.async.bulk.prefetch %A, %x {note}",
        '%0 = ptx.createpolicy "L2::evict_first"\nptx.cp.async.bulk.prefetch %A, %x policy %0',
    ),
    "ptx.cp.async.bulk.commit_group": ("ptx.cp.async.bulk.commit_group {note}",),
    "ptx.cp.async.bulk.wait_group": (
        "ptx.cp.async.bulk.wait_group 0 {note}\nptx.cp.async.bulk.wait_group 3 read {note}",
    ),
    "ptx.cp.async.bulk.tensor.load": (
        "%0 = arith.trunci %x : i32 to i16\nptx.cp.async.bulk.tensor.load %m[%x, %x], %s, %s {note}\n"
        "ptx.cp.async.bulk.tensor.load %m[%x, %x], %s, %s multicast %0 policy %v",
        "%0 = arith.trunci %x : i32 to i16\n%1 = ptx.pair.leader %s\n"
        "ptx.cp.async.bulk.tensor.load %m[%x, %x], %s, %1 pair multicast %0",
    ),
    "ptx.pair.leader": ("%0 = ptx.pair.leader %s {note}",),
    "ptx.clusterlaunchcontrol.try_cancel": (
        "ptx.clusterlaunchcontrol.try_cancel %s, %s {note}\nptx.clusterlaunchcontrol.try_cancel %s, %s multicast",
    ),
    "ptx.clusterlaunchcontrol.is_canceled": (
        "%0 = ptx.ld %s align 16 : !ptx.ptr<shared> -> vector<2xi64>\n"
        "%1 = ptx.clusterlaunchcontrol.is_canceled %0 {note}",
    ),
    "ptx.clusterlaunchcontrol.get_first_ctaid": (
        "%0 = ptx.ld %s align 16 : !ptx.ptr<shared> -> vector<2xi64>\n"
        "%1:3 = ptx.clusterlaunchcontrol.get_first_ctaid %0",
    ),
    "ptx.cp.async.bulk.tensor.store": (
        "ptx.cp.async.bulk.tensor.store %m[%x, %x], %s {note}\n"
        "ptx.cp.async.bulk.tensor.store %m[%x, %x], %s policy %v",
    ),
    "ptx.cp.reduce.async.bulk.tensor": (
        'ptx.cp.reduce.async.bulk.tensor "add" %m[%x, %x], %s {note}\n'
        'ptx.cp.reduce.async.bulk.tensor "min" %m[%x, %x], %s policy %v',
    ),
    "ptx.cp.async.bulk.tensor.prefetch": (
        "ptx.cp.async.bulk.tensor.prefetch %m[%x, %x] {note}\nptx.cp.async.bulk.tensor.prefetch %m[%x, %x] policy %v",
    ),
    "ptx.prefetch.tensormap": ("ptx.prefetch.tensormap %m {note}",),
    "ptx.cvta.tensor_map": ("%0 = ptx.cvta.tensor_map %A {note}\nptx.prefetch.tensormap %0",),
    "ptx.tensormap.copy": ("ptx.tensormap.copy %m, %A {note}\nptx.tensormap.copy %m, %s",),
    "ptx.tensormap.load": ("%0 = ptx.tensormap.load %m at 120 {note}",),
    "ptx.tensormap.replace": (
        'ptx.tensormap.replace "global_address" %A, %v : i64 {note}\n'
        'ptx.tensormap.replace "global_dim" at 4 %s, %x : i32\n'
        'ptx.tensormap.replace "global_stride" at 0 %s, %v : i64\n'
        'ptx.tensormap.replace "elemtype" "bf16" %s {note}\nptx.tensormap.replace "rank" %s, %x : i32\n'
        'ptx.tensormap.replace "global_address" %s, %A : !ptx.ptr<global>',
    ),
    "ptx.tensormap.cp_fenceproxy": (
        'ptx.tensormap.cp_fenceproxy %A, %s {note}\nptx.tensormap.cp_fenceproxy %A, %s scope "sys"',
    ),
    "ptx.fence.proxy.tensormap.release": (
        'ptx.fence.proxy.tensormap.release {note}\nptx.fence.proxy.tensormap.release scope "cta"',
    ),
    "ptx.fence.proxy.tensormap.acquire": (
        'ptx.fence.proxy.tensormap.acquire %A {note}\nptx.fence.proxy.tensormap.acquire %A scope "cluster"',
    ),
    "ptx.mapa": ("%0 = ptx.mapa %s, %x {note}",),
    "ptx.getctarank": ("%0 = ptx.mapa %s, %x\n%1 = ptx.getctarank %0 {note}",),
    "ptx.st.async": (
        "%0 = ptx.mapa %s, %x\n%1 = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<4xf32>\n"
        "ptx.st.async %1, %0, %0 {note} : vector<4xf32>\nptx.st.async %v, %0, %0 : i64",
    ),
    "ptx.red.async": (
        '%0 = ptx.mapa %s, %x\nptx.red.async "umax" %x, %0, %0 : i32\nptx.red.async "add" %v, %0, %0 {note} : i64',
    ),
    "ptx.barrier.cluster.arrive": (
        "ptx.barrier.cluster.arrive {note}\nptx.barrier.cluster.arrive relaxed\n"
        "ptx.barrier.cluster.arrive aligned\nptx.barrier.cluster.arrive relaxed aligned",
    ),
    "ptx.barrier.cluster.wait": ("ptx.barrier.cluster.wait\nptx.barrier.cluster.wait aligned {note}",),
    "ptx.fence.mbarrier_init": ("ptx.fence.mbarrier_init {note}",),
    "ptx.fence.proxy.async": ("ptx.fence.proxy.async {note}", 'ptx.fence.proxy.async of "shared" {note}'),
    "ptx.wgmma.fence": ("ptx.wgmma.fence {note}",),
    "ptx.wgmma.mma_async": (
        '%0 = arith.constant true\n'
        'ptx.wgmma.mma_async "SM90_64x8x16_F32F16F16_SS<Major::K,Major::MN>" %l, %v, %v, %0 {note} : i64',
        '%0 = arith.constant false\n'
        'ptx.wgmma.mma_async "SM90_64x8x8_F32TF32TF32_RS_TN" negate_a negate_b %l, %l, %v, %0 : !ptx.ptr<local>',
        '%0 = arith.constant false\n'
        'ptx.wgmma.mma_async "SM90_SPARSE_64x8x64_S32S8S8_SS_TN" %l, %v, %v, %0 metadata %x select 0 {note} : i64',
    ),
    "ptx.wgmma.descriptor": ("%0 = ptx.wgmma.descriptor %s leading 1 stride 64 swizzle 3 {note}",),
    "ptx.wgmma.commit_group": ("ptx.wgmma.commit_group {note}",),
    "ptx.wgmma.wait_group": ("ptx.wgmma.wait_group 1 {note}",),
    "ptx.setmaxnreg": ("ptx.setmaxnreg inc 232 {note}\nptx.setmaxnreg dec 40",),
    "ptx.inline": (
        '%0 = ptx.inline "lop3.b32 $0, $1, $2, $1, 0x96;" constraints "=r,r,r"(%x, %x) : (i32, i32) -> (i32)',
        'ptx.inline "membar.gl;" constraints ""() {note} : () -> ()',
    ),
    "ptx.nanosleep": ("ptx.nanosleep %x",),
    "ptx.griddepcontrol.wait": ("ptx.griddepcontrol.wait {note}",),
    "ptx.griddepcontrol.launch_dependents": ("ptx.griddepcontrol.launch_dependents {note}",),
    "ptx.atom": (
        '%0 = ptx.atom "umax" %A, %v order "acq_rel" scope "sys" {note} : !ptx.ptr<global>, i64',
        '%0 = ptx.atom "add" %s, %h : !ptx.ptr<shared>, f16',
        '%0 = ptx.ld %A align 4 : !ptx.ptr<global> -> vector<2xf16>\n'
        '%1 = ptx.atom "max" %A, %0 : !ptx.ptr<global>, vector<2xf16>',
    ),
    "ptx.atom.cas": ('%0 = ptx.atom.cas %A, %x, %x order "acquire" : !ptx.ptr<global>, i32',),
    "ptx.red": (
        'ptx.red "or" %s, %x scope "cta" : !ptx.ptr<shared>, i32',
        '%0 = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<4xf32>\n'
        'ptx.red "add" %A, %0 order "release" : !ptx.ptr<global>, vector<4xf32>',
    ),
    "ptx.ld.acquire": (
        '%0 = ptx.ld.acquire %A scope "cluster" : !ptx.ptr<global> -> f32',
        "%0 = ptx.ld.acquire relaxed %A : !ptx.ptr<global> -> i32",
        "%0 = ptx.ld.acquire relaxed %A : !ptx.ptr<global> -> vector<4xf32>",
    ),
    "ptx.st.release": ("ptx.st.release %v, %s : i64, !ptx.ptr<shared>",),
    "ptx.multimem.ld_reduce": (
        '%0 = ptx.multimem.ld_reduce "umin" %A order "acquire" scope "sys" {note} : !ptx.ptr<global> -> i32',
        '%0 = ptx.multimem.ld_reduce "add" %A : !ptx.ptr<global> -> vector<8xbf16>\n'
        'ptx.multimem.st %0, %A order "release" scope "sys" : vector<8xbf16>, !ptx.ptr<global>',
    ),
    "ptx.multimem.st": ("ptx.multimem.st %x, %A {note} : i32, !ptx.ptr<global>",),
    "ptx.multimem.red": ('ptx.multimem.red "add" %A, %x order "release" scope "sys" : !ptx.ptr<global>, i32',),
    "ptx.fence": ('ptx.fence "acq_rel"\nptx.fence "sc" scope "sys"\nptx.fence "acquire"\nptx.fence "release"',),
})  # fmt: skip
"""Lines of a kernel body at stage `index`, by the operation that they show."""
