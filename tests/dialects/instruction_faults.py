# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a fault and its message stand on one line
"""Faults of instructions that exchange, compute, synchronise and change memory atomically."""

from tests.dialects.faults import ptx_faults

INSTRUCTIONS = [
    *ptx_faults(
        "ptx.bar.sync",
        ("«ptx.bar.sync» 16", "a block has barriers 0 to 15"),
        ("«ptx.bar.sync» 1 threads 33", "33 threads meet at the barrier; it is a multiple of 32, up to 1024"),
    ),
    *ptx_faults("ptx.bar.arrive", ("«ptx.bar.arrive» 1 threads 2048", "a multiple of 32, up to 1024")),
    *ptx_faults(
        "ptx.bar.red",
        ('%0 = arith.constant true\n%1 = «ptx.bar.red» "xor" %0, 0 : i1', 'bar.red has and, or, popc; not "xor"'),
        ('%0 = arith.constant true\n%1 = «ptx.bar.red» "or" %0, 16 : i1', "a block has barriers 0 to 15"),
        ('%0 = arith.constant true\n%1 = «ptx.bar.red» "or" %0, 0 : i32', "the result of bar.red.or is i1, not i32"),
    ),
    *ptx_faults("ptx.mbarrier.arrive.state", ("%0 = ptx.mbarrier.arrive.state «%A»", "shared"), ("%0 = «ptx.mbarrier.arrive.state» %s count %x", "with `drop`")),
    *ptx_faults("ptx.mbarrier.try_wait.state", ("%0 = ptx.mbarrier.try_wait.state %s, «%x»", "i64")),
    *ptx_faults("ptx.mbarrier.init", ("ptx.mbarrier.init «%A», %x", "shared"), ("ptx.mbarrier.init %s, «%v»", "i32")),
    *ptx_faults("ptx.st.bulk", ("%0 = arith.constant 64 : i64\nptx.st.bulk «%A», %0", "shared")),
    *ptx_faults("ptx.mbarrier.inval", ("ptx.mbarrier.inval «%l»", "shared")),
    *ptx_faults(
        "ptx.mbarrier.arrive",
        ("ptx.mbarrier.arrive %s count «%v»", "i32"),
        ('«ptx.mbarrier.arrive» %s scope "cta"', 'scope "cta" is for arrivals at mbarriers of the cluster'),
        ('«"ptx.mbarrier.arrive"»(%A) : (!ptx.ptr<global>) -> ()', "expected an address in shared memory"),
        ("ptx.mbarrier.arrive «%A»", "expected an address in shared memory, got a value of type !ptx.ptr<global>"),
    ),
    *ptx_faults(
        "ptx.mbarrier.arrive.expect_tx",
        (f"%far = arith.constant {1 << 20} : i32\n«ptx.mbarrier.arrive.expect_tx» %s, %far", "0 to 1048575 bytes, not 1048576"),
    ),
    *ptx_faults("ptx.mbarrier.expect_tx", ("ptx.mbarrier.expect_tx «%A», %x", "shared")),
    *ptx_faults("ptx.mbarrier.arrive.expect_tx", ("ptx.mbarrier.arrive.expect_tx %s, «%v»", "i32")),
    *ptx_faults("ptx.mbarrier.complete_tx", ("ptx.mbarrier.complete_tx «%A», %x", "shared")),
    *ptx_faults("ptx.mbarrier.test_wait", ("%0 = ptx.mbarrier.test_wait %s, «%v»", "i32")),
    *ptx_faults("ptx.mbarrier.try_wait", ("%0 = ptx.mbarrier.try_wait «%A», %x", "shared")),
    *ptx_faults(
        "ptx.mbarrier.wait",
        ("ptx.mbarrier.wait %s, «%v»", "i32"),
        ("%0 = ptx.mapa %s, %x\nptx.mbarrier.wait «%0», %x", "shared"),
        ('«ptx.mbarrier.wait» %s, %x scope "gpu"', 'the scope of a wait is cta or cluster, not "gpu"'),
    ),
    *ptx_faults("ptx.cp.async.mbarrier.arrive", ("ptx.cp.async.mbarrier.arrive noinc «%A»", "shared")),
    *ptx_faults(
        "ptx.cp.async.bulk.load",
        ("ptx.cp.async.bulk.load «%A», %A, %x, %s", "shared"),
        ("ptx.cp.async.bulk.load %s, %A, %x, «%A»", "shared"),
    ),
    *ptx_faults("ptx.cp.async.bulk.send", ("ptx.cp.async.bulk.send «%s», %s, %x, %s", "shared_cluster")),
    *ptx_faults(
        "ptx.cp.reduce.async.bulk",
        ('«ptx.cp.reduce.async.bulk» "max.f32" %A, %s, %x', 'not "max.f32"'),
        ('ptx.cp.reduce.async.bulk "add.f32" «%s», %s, %x', "global"),
    ),
    *ptx_faults("ptx.cp.async.bulk.store", ("ptx.cp.async.bulk.store «%s», %s, %x", "global")),
    *ptx_faults("ptx.cp.async.bulk.prefetch", ("ptx.cp.async.bulk.prefetch «%s», %x", "global")),
    *ptx_faults("ptx.cp.async.bulk.wait_group", ("«ptx.cp.async.bulk.wait_group» -1", "it must be 0 or more")),
    *ptx_faults("ptx.mapa", ("%0 = ptx.mapa «%A», %x", "shared"), ("%0 = ptx.mapa %s, «%v»", "i32")),
    *ptx_faults("ptx.getctarank", ("%0 = ptx.getctarank «%s»", "shared_cluster")),
    *ptx_faults(
        "ptx.st.async",
        ("ptx.st.async %x, «%s», %s : i32", "shared_cluster"),
        ("%0 = ptx.mapa %s, %x\n«ptx.st.async» %h, %0, %0 : f16", "are stored so, not f16"),
    ),
    *ptx_faults(
        "ptx.red.async",
        ('%0 = ptx.mapa %s, %x\n«ptx.red.async» "min" %v, %0, %0 : i64', 'not "min" of i64'),
        ('%0 = ptx.mapa %s, %x\n«ptx.red.async» "exch" %x, %0, %0 : i32', 'not "exch" of i32'),
    ),
    *ptx_faults(
        "ptx.cp.async.bulk.tensor.load",
        ("«ptx.cp.async.bulk.tensor.load» %m[], %s, %s", "begins at 0 coordinates; a tensor map has 1 to 5"),
        ("«ptx.cp.async.bulk.tensor.load» %m[%x, %x, %x, %x, %x, %x], %s, %s", "begins at 6 coordinates"),
        ("ptx.cp.async.bulk.tensor.load %m[%x, %x], «%A», %s", "shared"),
        ("ptx.cp.async.bulk.tensor.load «%A»[%x, %x], %s, %s", "tensor_map"),
        ("«ptx.cp.async.bulk.tensor.load» %m[%x], %s, %s", "the map has 2 dimensions"),
        ("«ptx.cp.async.bulk.tensor.load» gather4 %m[%x, %x], %s, %s", "4 rows are named by a column and their numbers"),
        ("«ptx.cp.async.bulk.tensor.load» gather4 %m[%x, %x, %x, %x, %x], %s, %s", "boxes of one row"),
        ("%0 = ptx.pair.leader %s\n«ptx.cp.async.bulk.tensor.load» %m[%x, %x], %s, %0", "or with `pair` in its pair"),
    ),
    *ptx_faults("ptx.pair.leader", ("%0 = ptx.pair.leader «%A»", "shared")),
    *ptx_faults("ptx.clusterlaunchcontrol.try_cancel", ("ptx.clusterlaunchcontrol.try_cancel %s, «%A»", "shared")),
    *ptx_faults(
        "ptx.clusterlaunchcontrol.is_canceled", ("%0 = ptx.clusterlaunchcontrol.is_canceled «%x»", "vector<2xi64>")
    ),
    *ptx_faults(
        "ptx.clusterlaunchcontrol.get_first_ctaid",
        ("%0, %1, %2 = ptx.clusterlaunchcontrol.get_first_ctaid «%x»", "vector<2xi64>"),
    ),
    *ptx_faults("ptx.cp.async.bulk.tensor.store", ("ptx.cp.async.bulk.tensor.store %m[%x, «%v»], %s", "i32")),
    *ptx_faults("ptx.cp.async.bulk.tensor.prefetch", ("ptx.cp.async.bulk.tensor.prefetch «%s»[%x]", "tensor_map")),
    *ptx_faults("ptx.prefetch.tensormap", ("ptx.prefetch.tensormap «%l»", "tensor_map")),
    *ptx_faults("ptx.cvta.tensor_map", ("%0 = ptx.cvta.tensor_map «%s»", "global")),
    *ptx_faults(
        "ptx.tensormap.copy",
        ("ptx.tensormap.copy %m, «%x»", "expected an address in global or shared memory, got a value of type i32"),
        ("«ptx.tensormap.copy» %m, %l", "a map can change only in global or shared memory, not at a !ptx.ptr<local>"),
    ),
    *ptx_faults("ptx.tensormap.load", ("%0 = «ptx.tensormap.load» %m at 4", "a multiple of 8 below 128")),
    *ptx_faults(
        "ptx.tensormap.replace",
        ('«ptx.tensormap.replace» "address" %A, %v : i64', 'global_address, rank, box_dim'),
        ('«ptx.tensormap.replace» "rank" %l, %x : i32', "not at a !ptx.ptr<local>"),
        ('«ptx.tensormap.replace» "global_dim" %A, %x : i32', "the field global_dim has values at 0 to 4"),
        ('«ptx.tensormap.replace» "global_stride" at 4 %A, %v : i64', "the field global_stride has values at 0 to 3"),
        ('«ptx.tensormap.replace» "rank" at 0 %A, %x : i32', "the field rank has one value, without a dimension"),
        ('«ptx.tensormap.replace» "rank" %A, %v : i64', "the value of rank is of type i32"),
        ('«ptx.tensormap.replace» "global_address" %A, %x : i32', "is of type i64 or !ptx.ptr<global>"),
        ('«ptx.tensormap.replace» "rank" %A', "the value of rank is of type i32"),
        ('«ptx.tensormap.replace» "rank" "none" %A, %x : i32', "the value of rank is of type i32"),
        ('«ptx.tensormap.replace» "swizzle_mode" "16B" %A', 'swizzle_mode has none, 32B, 64B, 128B, 128B_ATOM_32B; not "16B"'),
        ('«ptx.tensormap.replace» "swizzle_mode" %A', 'swizzle_mode has none, 32B, 64B, 128B, 128B_ATOM_32B; not ""'),
        ('«ptx.tensormap.replace» "fill_mode" "nan" %A, %x : i32', "the field fill_mode takes only constants"),
    ),
    *ptx_faults(
        "ptx.tensormap.cp_fenceproxy",
        ("ptx.tensormap.cp_fenceproxy «%s», %s", "global"),
        ('«ptx.tensormap.cp_fenceproxy» %A, %s scope "all"', 'scope has cta, cluster, gpu, sys; not "all"'),
    ),
    *ptx_faults(
        "ptx.fence.proxy.tensormap.release",
        ('«ptx.fence.proxy.tensormap.release» scope "warp"', 'not "warp"'),
    ),
    *ptx_faults(
        "ptx.fence.proxy.tensormap.acquire",
        ("ptx.fence.proxy.tensormap.acquire «%s»", "global"),
        ('«ptx.fence.proxy.tensormap.acquire» %A scope "warp"', 'not "warp"'),
    ),
    *ptx_faults(
        "ptx.cp.reduce.async.bulk.tensor",
        ('«ptx.cp.reduce.async.bulk.tensor» "sub" %m[%x, %x], %s', 'add, min, max, inc, dec, and, or, xor; not "sub"'),
        ('«ptx.cp.reduce.async.bulk.tensor» "inc" %m[%x, %x], %s', 'there is no "inc" of f16'),
    ),
    *ptx_faults(
        "ptx.wgmma.mma_async",
        *(
            (f'%0 = arith.constant true\n«ptx.wgmma.mma_async» "{name}" {operands} : {type}', said)
            for name, operands, type, said in (
                ("SM90_64x12x16_F32F16F16_SS<Major::K,Major::K>", "%l, %v, %v, %0", "i64", "E0302"),
                ("SM90_64x40x32_S32S8S8_SS_TN", "%l, %v, %v, %0", "i64", "E0302"),
                ("SM90_64x8x16_F32F16F16_RS<Major::MN,Major::K>", "%l, %l, %v, %0", "!ptx.ptr<local>", "E0302"),
                ("SM90_64x8x16_F32F16F16_XX", "%l, %v, %v, %0", "i64", "E0302"),
                ("SM80_16x8x16_F32F16F16F32_TN", "%l, %v, %v, %0", "i64", "is not an instruction of a warpgroup"),
                ("SM90_64x8x8_F32TF32TF32_SS_TN", "%l, %l, %v, %0", "!ptx.ptr<local>", "A of SM90_64x8x8_F32TF32TF32_SS_TN is in shared memory"),
                ("SM90_64x8x8_F32TF32TF32_RS_TN", "%l, %v, %v, %0", "i64", "is in registers, !ptx.ptr<local>, not i64"),
                ("SM90_64x8x32_S32S8S8_SS_TN", "negate_b %l, %v, %v, %0", "i64", "multiplies integers, whose sign cannot be changed"),
            )
        ),
    ),
    *ptx_faults("ptx.wgmma.wait_group", ("«ptx.wgmma.wait_group» 8", "the number of groups is 8; it is 0 to 7")),
    *ptx_faults(
        "ptx.setmaxnreg",
        ("«ptx.setmaxnreg» inc 100", "a thread cannot have 100 registers by setmaxnreg"),
        ("«ptx.setmaxnreg» dec 16", "cannot have 16 registers"),
        ("«ptx.setmaxnreg» inc 264", "cannot have 264 registers"),
    ),
    *ptx_faults(
        "ptx.inline",
        ('«ptx.inline» "" constraints "" () : () -> ()', "ASCII of 1 to 4096 characters"),
        ('«ptx.inline» "ld.volatile.b32 $0, [$1];" constraints "r,l" (%x, %A) : (i32, !ptx.ptr<global>) -> ()', "volatile access"),
        ('«ptx.inline» "mov.b32 $0, $2;" constraints "r,r" (%x, %x) : (i32, i32) -> ()', "names $2, but there are 2"),
        ('«ptx.inline» "mov.b32 $a, 1;" constraints "r" (%x) : (i32) -> ()', "followed by the number"),
        ('«ptx.inline» "nop $0;" constraints "r,r" (%x) : (i32) -> ()', "2 constraints for 1 registers"),
        ('%0 = «ptx.inline» "mov.b32 $0, $1;" constraints "=f,r" (%x) : (i32) -> (i32)', "which is '=r', not '=f'"),
        ('«ptx.inline» "nop $0;" constraints "l" (%l) : (!ptx.ptr<local>) -> ()', "which no register holds"),
    ),
    *ptx_faults("ptx.nanosleep", ("ptx.nanosleep «%v»", "i32")),
    *ptx_faults(
        "ptx.atom",
        ('%0 = «ptx.atom» "mul" %A, %x : !ptx.ptr<global>, i32', 'not "mul" of i32'),
        ('%0 = «ptx.atom» "min" %A, %h : !ptx.ptr<global>, f16', 'not "min" of f16'),
        ('%0 = «ptx.atom» "add" %l, %x : !ptx.ptr<local>, i32', "a fragment belongs to its thread"),
        ('%0 = «ptx.atom» "add" %A, %x order "seq_cst" : !ptx.ptr<global>, i32', 'atom has relaxed, acquire, release, acq_rel; not "seq_cst"'),
        ('%0 = «ptx.atom» "add" %A, %x scope "warp" : !ptx.ptr<global>, i32', 'atom has cta, cluster, gpu, sys; not "warp"'),
    ),
    *ptx_faults("ptx.atom.cas", ("%0 = «ptx.atom.cas» %A, %h, %h : !ptx.ptr<global>, f16", "compares i16, i32, i64 or vector<2xi64>, not f16")),
    *ptx_faults(
        "ptx.red",
        ('«ptx.red» "exch" %A, %x : !ptx.ptr<global>, i32', 'not "exch" of i32'),
        ('«ptx.red» "add" %A, %x order "acquire" : !ptx.ptr<global>, i32', "red has relaxed, release"),
        ('%0 = ptx.ld %A align 8 : !ptx.ptr<global> -> vector<2xf32>\n«ptx.red» "add" %s, %0 : !ptx.ptr<shared>, vector<2xf32>', "only in global memory"),
    ),
    *ptx_faults("ptx.ld.acquire", ("%0 = «ptx.ld.acquire» %A : !ptx.ptr<global> -> f16", "i8 to i64, f32, f64, vector<2xi64>, or two or four i32 or f32 can be accessed in this way, not f16")),
    *ptx_faults("ptx.st.release", ("«ptx.st.release» %h, %A : f16, !ptx.ptr<global>", "not f16")),
    *ptx_faults(
        "ptx.multimem.ld_reduce",
        ('%0 = «ptx.multimem.ld_reduce» "mul" %A : !ptx.ptr<global> -> i32', 'not "mul" of i32'),
        ('%0 = «ptx.multimem.ld_reduce» "add" %s : !ptx.ptr<shared> -> i32', "takes an address of global memory"),
        ('%0 = «ptx.multimem.ld_reduce» "add" %A order "release" : !ptx.ptr<global> -> i32', "multimem.ld_reduce has relaxed, acquire"),
    ),
    *ptx_faults("ptx.multimem.st", ("«ptx.multimem.st» %h, %A : f16, !ptx.ptr<global>", "multimem.st writes i32, i64, f32")),
    *ptx_faults(
        "ptx.multimem.red",
        ('%0 = ptx.ld %A align 8 : !ptx.ptr<global> -> vector<2xf32>\n«ptx.multimem.red» "min" %A, %0 : !ptx.ptr<global>, vector<2xf32>', 'not "min" of vector<2xf32>'),
    ),
    *ptx_faults("ptx.fence.proxy.async", ('«ptx.fence.proxy.async» of "local"', 'space has shared, global; not "local"')),
    *ptx_faults("ptx.fence", ('«ptx.fence» "relaxed"', 'fence has acq_rel, sc, acquire, release; not "relaxed"')),
    *ptx_faults(
        "ptx.shfl.sync",
        ('%0 = «ptx.shfl.sync» "left" %x, %x : i32', 'shfl.sync has up, down, bfly, idx; not "left"'),
        ('%0 = «ptx.shfl.sync» "up" %h, %x : f16', "shfl.sync exchanges a value of 32 bits, not f16"),
        ('%0 = «ptx.shfl.sync» "up" %x, %x width 12 : i32', "1, 2, 4, 8, 16 or 32 lanes, not 12"),
        ('%0 = «"ptx.shfl.sync"»(%x, %x) <{mode = "up"}> : (i32, i32) -> f32', "the types differ: i32 and f32"),
    ),
    *ptx_faults(
        "ptx.shfl.sync.valid",
        ('%0, %1 = «ptx.shfl.sync.valid» "left" %x, %x, %x : i32', 'shfl.sync has up, down, bfly, idx; not "left"'),
        ('%0, %1 = «ptx.shfl.sync.valid» "up" %h, %x, %x : f16', "shfl.sync exchanges a value of 32 bits, not f16"),
    ),
    *ptx_faults(
        "ptx.vote.sync",
        ('%0 = arith.constant true\n%1 = «ptx.vote.sync» "none" %0 : i1', "vote.sync has all, any, uni, ballot"),
        ('%0 = arith.constant true\n%1 = «ptx.vote.sync» "all" %0 : i32', "the result of vote.sync.all is i1, not i32"),
    ),
    *ptx_faults("ptx.match.any.sync", ("%0 = ptx.match.any.sync «%v»", "i32")),
    *ptx_faults("ptx.redux.sync", ('%0 = «ptx.redux.sync» "add" %v : i64', "reduces i32 or f32, not i64"), ('%0 = «ptx.redux.sync» "mul" %x : i32', 'not "mul"'), ('%0 = «ptx.redux.sync» "max.abs" %x : i32', 'not "max.abs"')),
    *ptx_faults("ptx.elect.sync", ("%0 = ptx.elect.sync mask «%v»", "i32")),
    *ptx_faults(
        "ptx.ex2.approx",
        ("%0 = «ptx.ex2.approx» %x : i32", "ex2.approx has f32, f16, f16x2, bf16, bf16x2; not i32"),
        ("%0 = «ptx.ex2.approx» ftz %h : f16", "ex2.approx.f16 has no ftz"),
    ),
    *(
        fault
        for name in ("lg2", "rcp", "rsqrt", "sqrt", "sin", "cos")
        for fault in ptx_faults(f"ptx.{name}.approx", (f"%0 = «ptx.{name}.approx» %h : f16", f"{name}.approx has f32; not f16"))
    ),
    *ptx_faults("ptx.tanh.approx", ("%0 = arith.constant 1.0 : f32\n%1 = «ptx.tanh.approx» ftz %0 : f32", "tanh.approx.f32 has no ftz")),
    *ptx_faults(
        "ptx.cvt",
        ('%0 = «ptx.cvt» "rz.f16.f32" %x : (i32) -> f16', 'not "rz.f16.f32"'),
        ('%0 = «ptx.cvt» "rna.tf32.f32" %x : (i32) -> f32', "cvt.rna.tf32.f32 is (f32) -> f32"),
    ),
    *ptx_faults(
        "ptx.f32x2",
        ('%w = ptx.ld %A align 8 : !ptx.ptr<global> -> vector<2xf32>\n'
         '%0 = «ptx.f32x2» "add.rz" %w, %w : vector<2xf32>, vector<2xf32> -> vector<2xf32>', 'not "add.rz"'),
        ('%w = ptx.ld %A align 8 : !ptx.ptr<global> -> vector<2xf32>\n'
         '%0 = «ptx.f32x2» "fma.rn" %w, %w : vector<2xf32>, vector<2xf32> -> vector<2xf32>', "takes 3 operands"),
    ),
    *ptx_faults(
        "ptx.minmax3",
        ('%0 = arith.constant 1.0 : f32\n%1 = «ptx.minmax3» "max.abs" %0, %0, %0', 'not "max.abs"'),
    ),
    *ptx_faults("ptx.prmt", ("%0 = ptx.prmt %x, %x, «%v»", "i32")),
    *ptx_faults("ptx.dp4a", ('%0 = «ptx.dp4a» "s8.s8" %x, %x, %x', 'not "s8.s8"')),
]  # fmt: skip
