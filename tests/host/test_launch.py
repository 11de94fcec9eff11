# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that a host launches: their arguments, sizes, prints and faults, with kernels as written and lowered."""

import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.limits import Limits

from tests.host.harness import C, everywhere, kernel, refused, run


def test_every_thread_prints() -> None:
    body = "%t = gpu.thread_id x\n%b = gpu.block_id x\n%i = arith.index_cast %t : index to i32\n"
    body += '%j = arith.index_cast %b : index to i32\ngpu.printf "%d.%d\\n", %j, %i : i32, i32'
    assert everywhere(kernel(body, threads=3, grid=2)) == "0.0\n0.1\n0.2\n1.0\n1.1\n1.2\n"


def _in_clusters(blocks: int, of: int) -> str:
    """A program that launches blocks in clusters of `of`."""
    call = f"%c = arith.constant {of} : index\ngpu.launch_func @m::@k clusters in (%c, %y, %y) "
    call += "blocks in (%g, %y, %y) threads in (%x, %y, %y)"
    return kernel('gpu.printf "0"', threads=1, grid=blocks, call=call)


def test_launches_in_clusters() -> None:
    assert run(_in_clusters(4, 2)) == "0000"
    assert "x leaves 1" in refused(_in_clusters(5, 2), "E3105").message
    assert "a cluster has at most 8 blocks" in refused(_in_clusters(16, 16), "E3105").hint
    assert "the cluster is (0, 1, 1)" in refused(_in_clusters(4, 0), "E3105").message


def test_kernels_take_numbers_indices_and_layouts() -> None:
    call = """
      %n = arith.constant 5 : i32
      %w = arith.constant 70000000000 : i64
      %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,4)">
      %d = cute.make_stride(%w) : (i64) -> !cute.stride<"(1,?{i64})">
      %l = cute.make_layout(%s, %d)
        : (!cute.shape<"(?,4)">, !cute.stride<"(1,?{i64})">) -> !cute.layout<"(?,4):(1,?{i64})">
      gpu.launch_func @m::@k blocks in (%y, %y, %y) threads in (%y, %y, %y)
        args(%l : !cute.layout<"(?,4):(1,?{i64})">, %x : index, %w : i64)"""
    body = """
      cute.print(%a) : !cute.layout<"(?,4):(1,?{i64})">
      %i = arith.index_cast %b : index to i64
      gpu.printf "%lld %lld\\n", %i, %c : i64, i64"""
    args = '%a: !cute.layout<"(?,4):(1,?{i64})">, %b: index, %c: i64'
    assert everywhere(kernel(body, args, call=call)) == "(5,4):(1,70000000000)\n4 70000000000\n"


def test_composed_layouts_and_tiles_cross_to_the_device() -> None:
    kinds = '!cute.composed_layout<"S<2,4,3> o ? o (8,4):(4,?)">', '!cute.tile<"[?:1;_;(2,?):(?,1)]">'
    call = f"""
      %n = arith.constant 32 : i32
      %o = cute.make_int_tuple(%n) : (i32) -> !cute.int_tuple<"?">
      %d = cute.make_stride(%n) : (i32) -> !cute.stride<"(4,?)">
      %s = cute.static : !cute.shape<"(8,4)">
      %l = cute.make_layout(%s, %d) : (!cute.shape<"(8,4)">, !cute.stride<"(4,?)">) -> !cute.layout<"(8,4):(4,?)">
      %z = cute.static : !cute.swizzle<"S<2,4,3>">
      %c = cute.make_composed_layout(%z, %o, %l)
        : (!cute.swizzle<"S<2,4,3>">, !cute.int_tuple<"?">, !cute.layout<"(8,4):(4,?)">) -> {kinds[0]}
      %t = cute.make_tile(%n, %n, %n) : (i32, i32, i32) -> {kinds[1]}
      gpu.launch_func @m::@k blocks in (%y, %y, %y) threads in (%y, %y, %y) args(%c : {kinds[0]}, %t : {kinds[1]})"""
    body = f"cute.print(%a) : {kinds[0]}\ncute.print(%b) : {kinds[1]}"
    text = everywhere(kernel(body, f"%a: {kinds[0]}, %b: {kinds[1]}", call=call))
    assert text == "S<2,4,3> o 32 o (8,4):(4,32)\n[32:1;_;(2,32):(32,1)]\n"


def test_device_functions_are_called_and_inlined() -> None:
    text = kernel(
        "%t = gpu.thread_id x\n%i = arith.index_cast %t : index to i32\n%r = func.call @twice(%i) : (i32) -> i32\n"
        '%s = func.call @twice(%r) : (i32) -> i32\ngpu.printf "%d\\n", %s : i32'
    )
    function = "func.func @twice(%x: i32) -> i32 {\n%r = arith.addi %x, %x : i32\nreturn %r : i32\n}\n"
    assert everywhere(text.replace("gpu.func @k", function + "gpu.func @k")) == "0\n4\n8\n12\n"


def test_a_kernel_is_launched_with_blocks_of_several_sizes() -> None:
    call = "".join(
        f"%n{n} = arith.constant {n} : index\n"
        f"gpu.launch_func @m::@k blocks in (%y, %y, %y) threads in (%n{n}, %y, %y)\n"
        for n in (2, 1, 3)
    )
    body = '%t = gpu.block_dim x\n%i = arith.index_cast %t : index to i32\ngpu.printf "%d", %i : i32'
    assert everywhere(kernel(body, call=call)) == "221333"


def test_threads_wait_for_each_other_at_a_barrier() -> None:
    body = "%t = gpu.thread_id x\n%z = arith.constant 0 : index\n%f = arith.cmpi eq, %t, %z : index\ngpu.barrier\n"
    assert everywhere(kernel(body + 'scf.if %f {\ngpu.printf "once\\n"\n}', threads=64)) == "once\n"
    broken = kernel(body.replace("gpu.barrier", "scf.if %f {\ngpu.barrier\n}") + 'gpu.printf "after\\n"\n', threads=64)
    assert refused(broken, "E3207").place is not None


def test_host_and_device_print_in_order() -> None:
    call = """
      %l = cute.static : !cute.layout<"4:1">
      cute.print(%l) : !cute.layout<"4:1">
      gpu.launch_func @m::@k blocks in (%y, %y, %y) threads in (%y, %y, %y)
      %t = gpu.wait async
      %u = gpu.launch_func async [%t] @m::@k blocks in (%y, %y, %y) threads in (%y, %y, %y)
      gpu.wait [%u]
      cute.print(%l) : !cute.layout<"4:1">"""
    assert everywhere(kernel('gpu.printf "device\\n"', call=call)) == "4:1\ndevice\ndevice\n4:1\n"


def test_numbers_of_the_environment_reach_the_device() -> None:
    call = "%b = func.call @base() : () -> i32\ngpu.launch_func @m::@k blocks in (%y, %y, %y) threads in (%y, %y, %y) "
    text = C + kernel('gpu.printf "%d\\n", %n : i32', "%n: i32", call=call + "args(%b : i32)")
    assert everywhere(text, BASE="-12") == "-12\n"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (kernel("").replace("@m::@k blocks", "@m::@j blocks"), "E3107", "no kernel @m::@j"),
        (kernel("").replace(") kernel {", ") {"), "E3107", "no kernel @m::@k"),
        (kernel("", threads=2000), "E3105", "2000"),
        (kernel('gpu.printf "%s\\n"'), "E2001", "unknown conversion '%s"),
        (kernel("%x = arith.constant 0 : i32\n%q = arith.divsi %x, %x : i32"), "E3209", "division by zero"),
        (kernel("cf.br ^a\n^a:"), "E2001", "several blocks"),
        (kernel("", grid=0), "E3105", "the grid is (0, 1, 1)"),
        (kernel("", "%n: i32"), "E3106", "takes i32, but the launch passes nothing"),
    ],
)
def test_launches_that_cannot_run_are_refused(text: str, code: str, words: str) -> None:
    error = refused(text, code)
    assert words in error.message
    assert error.place is not None
    assert error.place.file == "test.mlir"


def test_host_and_kernels_share_one_budget() -> None:
    loop = (
        "%t = arith.constant true\n%r = scf.while (%x = %t) : (i1) -> (i1) {\nscf.condition(%t) %x : i1\n} do {\n"
        "^next(%y: i1):\nscf.yield %y : i1\n}"
    )
    with pytest.raises(TilefoldError, match="steps and has not ended"):
        run(kernel(loop), budget=Limits(steps=1000))
    with pytest.raises(TilefoldError, match="printed 50 characters"):
        run(kernel('gpu.printf "0123456789"', threads=6), budget=Limits(characters=50))
