# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps are read where the launch puts them, and copies have the operands that PTX wants."""

import re

import pytest
from tilefold.base.target import Target

from tests.emit.harness import kernel, llvm_of, ptx_of
from tests.passes.harness import filecheck

SM90 = Target("sm_90a")
ARGS = (
    '%A: !ptx.ptr<global> align 16 layout "(?,?):(?,1)", %A_0: i32, %A_1: i32, %A_2: i32, %i: i32, %mask: i16, '
    '%policy: i64, %map: !ptx.tensor_map of "f16 A dims (A_1, A_0) strides (A_2 * 2) box (64, 8) swizzle 128B", '
    '%other: !ptx.tensor_map of "f32 A dims (64) box (64)"'
)
START = "%s = ptx.smem.addr 0\n%bar = ptx.smem.addr 2048\n"


def _instruction(line: str) -> str:
    """The instruction of a copy, with its registers numbered as they come."""
    ptx = ptx_of(kernel(START + line, ARGS, shared=4096), SM90)
    (found,) = re.findall(r"^\t((?:cp|prefetch)\..*);$", ptx, re.M)
    names = dict.fromkeys(re.findall(r"%\w+", found))
    for number, name in enumerate(names):
        found = re.sub(rf"{name}\b", f"${number}", found)
    return found


@pytest.mark.parametrize(("line", "expected"), [
    (
        "ptx.cp.async.bulk.tensor.load %map[%i, %A_0], %s, %bar",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3}], [$4]",
    ),
    (
        "ptx.cp.async.bulk.tensor.load %map[%i, %A_0], %s, %bar multicast %mask policy %policy",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        ".L2::cache_hint [$0], [$1, {$2, $3}], [$4], $5, $6",
    ),
    (
        "ptx.cp.async.bulk.tensor.store %other[%i], %s policy %policy",
        "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group.L2::cache_hint [$0, {$1}], [$2], $3",
    ),
    (
        'ptx.cp.reduce.async.bulk.tensor "add" %other[%i], %s',
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [$0, {$1}], [$2]",
    ),
    (
        "ptx.cp.async.bulk.tensor.prefetch %map[%i, %i] policy %policy",
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile.L2::cache_hint [$0, {$1, $1}], $2",
    ),
    ("ptx.prefetch.tensormap %map", "prefetch.tensormap [$0]"),
])  # fmt: skip
def test_instruction(line: str, expected: str) -> None:
    assert _instruction(line) == expected


@pytest.mark.parametrize(("target", "route"), [("sm_100a", "shared::cluster"), ("sm_120a", "shared::cta")])
def test_copies_go_to_the_block_where_clusters_have_one(target: str, route: str) -> None:
    line = "ptx.cp.async.bulk.tensor.load %map[%i, %A_0], %s, %bar"
    ptx = ptx_of(kernel(START + line, ARGS, shared=4096), Target(target))
    assert f"cp.async.bulk.tensor.2d.{route}.global.tile.mbarrier::complete_tx::bytes [" in ptx
    many = ptx_of(kernel(f"{START}{line} multicast %mask", ARGS, shared=4096), Target(target))
    assert "cp.async.bulk.tensor.2d.shared::cluster.global.tile" in many


def test_maps_stay_among_the_parameters() -> None:
    copies = "".join(
        f"ptx.cp.async.bulk.tensor.load %map[%i, %i], %s, %bar\nptx.cp.async.bulk.tensor.store %{name}, %s\n"
        for name in ("map[%i, %i]", "other[%i]")
    )
    text = kernel(f"{START}scf.for %k = %i to %A_0 step %A_1 : i32 {{\n{copies}}}", ARGS, shared=4096)
    assert 'ptr byval([128 x i8]) align 64 "nvvm.grid_constant" %a7' in llvm_of(text, SM90)
    ptx = ptx_of(text, SM90)
    assert ptx.count(".param .align 64 .b8 k_param_") == 2
    assert ptx.count("cvta.param.u64") == 2
    assert "k_param_7" in ptx
    for word in (".local", "ld.param.v", "st.local", "__local_depot"):
        assert word not in ptx


def test_maps_that_change_in_memory() -> None:
    """One instruction for each operation, in the order of the program; the copy of a map is loads and stores."""
    changes = (
        "ptx.tensormap.copy %map, %A\n"
        'ptx.tensormap.replace "global_address" %A, %A : !ptx.ptr<global>\n'
        'ptx.tensormap.replace "global_dim" at 1 %A, %i : i32\n'
        'ptx.tensormap.replace "global_stride" at 0 %A, %policy : i64\n'
        'ptx.tensormap.replace "swizzle_mode" "128B" %A\n'
        "ptx.fence.proxy.tensormap.release\nptx.fence.proxy.tensormap.acquire %A\n"
        "%m = ptx.cvta.tensor_map %A\nptx.cp.async.bulk.tensor.load %m[%i, %A_0], %s, %bar\n"
        'ptx.tensormap.replace "rank" %s, %i : i32\nptx.bar.warp.sync -1\nptx.tensormap.cp_fenceproxy %A, %s\n'
    )
    text = ptx_of(kernel(START + changes, ARGS, shared=4096), SM90)
    filecheck(
        text,
        """
        CHECK: .entry k(
        CHECK: ld.param
        CHECK: st.global
        CHECK: tensormap.replace.tile.global_address.global.b1024.b64 {{.*}}, {{%.*}};
        CHECK: tensormap.replace.tile.global_dim.global.b1024.b32 {{.*}}, 1, {{%.*}};
        CHECK: tensormap.replace.tile.global_stride.global.b1024.b64 {{.*}}, 0, {{%.*}};
        CHECK: tensormap.replace.tile.swizzle_mode.global.b1024.b32 {{.*}}, 3;
        CHECK: fence.proxy.tensormap::generic.release.gpu;
        CHECK: fence.proxy.tensormap::generic.acquire.gpu {{.*}}, 128;
        CHECK: cp.async.bulk.tensor.2d.shared::cluster.global
        CHECK: tensormap.replace.tile.rank.shared::cta.b1024.b32 {{.*}}, {{%.*}};
        CHECK: bar.warp.sync
        CHECK: tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned {{.*}}, 128;
        CHECK: ret;
        """,
    )
