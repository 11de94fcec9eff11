# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses that are out of bounds, misaligned, or of undefined bytes, in each state space; and those that are
not.
"""

import numpy as np
import pytest

from tests.sim.harness import entry, fault, launch, unwritten

GLOBAL = "!ptx.ptr<global>"
ARGS = "%A: !ptx.ptr<global> align 16, %o: i64"


def access(width: int, store: bool, space: str = "global", pointer: str = "%A") -> str:
    """One access of `width` bytes, `%o` bytes after a pointer, by every thread."""
    type = {1: "i8", 2: "i16", 4: "i32", 8: "vector<2xf32>", 16: "vector<4xf32>"}[width]
    lines = [f"%p = ptx.ptr_add {pointer}, %o : !ptx.ptr<{space}>, i64 -> !ptx.ptr<{space}>"]
    if store:
        zero = "dense<0.0>" if "vector" in type else "0"
        lines.append(f"%v = arith.constant {zero} : {type}")
        lines.append(f"ptx.st %v, %p align {width} : {type}, !ptx.ptr<{space}>")
    else:
        lines.append(f"%v = ptx.ld %p align {width} : !ptx.ptr<{space}> -> {type}")
    return "\n".join(lines)


def used(value: str) -> str:
    """A branch on an i32, which is a use of it."""
    return f"""
        %zero.of = arith.constant 0 : i32
        %is.zero = arith.cmpi eq, {value}, %zero.of : i32
        scf.if %is.zero {{
        }}"""


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
class TestGlobal:
    def test_last_access_in_bounds(self, width: int, store: bool) -> None:
        text = entry(access(width, store), ARGS, "1")
        launch(text, block=(1, 1, 1), A=np.zeros(64, np.uint8), o=64 - width)

    def test_past_the_end(self, width: int, store: bool) -> None:
        text = entry(access(width, store), ARGS, "1")
        error = fault(text, "E3202", block=(1, 1, 1), A=np.zeros(64, np.uint8), o=64)
        assert "0 bytes past the end of argument A (64 bytes)" in error.message
        assert error.site is not None
        assert error.site.location.startswith("test.cute:")
        assert (error.block, error.thread) == ((0, 0, 0), (0, 0, 0))

    def test_before_the_start(self, width: int, store: bool) -> None:
        text = entry(access(width, store), ARGS, "1")
        fault(text, "E3202", block=(1, 1, 1), A=np.zeros(64, np.uint8), o=-16)

    def test_far_away(self, width: int, store: bool) -> None:
        text = entry(access(width, store), ARGS, "1")
        for far in (1 << 46, -(1 << 46)):
            fault(text, "E3202", block=(1, 1, 1), A=np.zeros(64, np.uint8), o=far)


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_misaligned(width: int, store: bool) -> None:
    text = entry(access(width, store), ARGS, "1")
    error = fault(text, "E3203", block=(1, 1, 1), A=np.zeros(64, np.uint8), o=width // 2)
    assert f"not a multiple of the {width} bytes" in error.message


def test_access_that_sticks_out_of_an_odd_size() -> None:
    text = entry(access(4, store=False), ARGS, "1")
    launch(text, block=(1, 1, 1), A=np.zeros(6, np.uint8), o=0)
    fault(text, "E3202", block=(1, 1, 1), A=np.zeros(6, np.uint8), o=4)


def test_unwritten_output_must_not_be_read() -> None:
    text = entry(access(4, store=False) + used("%v"), ARGS, "1")
    error = fault(text, "E3204", block=(1, 1, 1), A=unwritten(np.zeros(4, np.int32)), o=8)
    assert "byte 8 of argument A (16 bytes)" in error.message


def test_output_may_be_read_after_it_was_written() -> None:
    body = access(4, store=True) + "\n%w = ptx.ld %p align 4 : !ptx.ptr<global> -> i32"
    launch(entry(body, ARGS, "1"), block=(1, 1, 1), A=unwritten(np.zeros(4, np.int32)), o=8)


def test_a_partly_written_vector_must_not_be_read() -> None:
    body = access(4, store=True) + "\n%w = ptx.ld %A align 8 : !ptx.ptr<global> -> vector<2xi32>"
    body += "\n%w0 = vector.extract %w[0] : i32 from vector<2xi32>\n%w1 = vector.extract %w[1] : i32 from vector<2xi32>"
    launch(entry(body + used("%w1"), ARGS, "1"), block=(1, 1, 1), A=unwritten(np.zeros(4, np.int32)), o=4)
    fault(entry(body + used("%w0"), ARGS, "1"), "E3204", block=(1, 1, 1), A=unwritten(np.zeros(4, np.int32)), o=4)


def test_the_first_lane_at_fault_is_named() -> None:
    body = """
        %t = gpu.thread_id x
        %c4 = arith.constant 4 : index
        %o = arith.muli %t, %c4 : index
        %p = ptx.ptr_add %A, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
        %v = ptx.ld %p align 4 : !ptx.ptr<global> -> i32"""
    error = fault(entry(body, "%A: !ptx.ptr<global> align 16"), "E3202", A=np.zeros(20, np.int32))
    assert error.thread == (20, 0, 0)
    assert str(error).startswith("E3202: ptx.ld at test.cute:8:")


SHARED = "%s = ptx.smem.addr 0\n"


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_shared_bounds(width: int) -> None:
    text = entry(SHARED + access(width, True, "shared", "%s"), "%o: i64", "1", shared=64)
    launch(text, block=(1, 1, 1), o=64 - width)
    fault(text, "E3202", block=(1, 1, 1), o=64)
    fault(text, "E3202", block=(1, 1, 1), o=-width)


def test_shared_memory_starts_undefined_in_every_block() -> None:
    read = entry(SHARED + access(4, False, "shared", "%s") + used("%v"), "%o: i64", "1", shared=64)
    fault(read, "E3204", block=(1, 1, 1), o=0)
    body = """
        %b = gpu.block_id x
        %zero = arith.constant 0 : index
        %first = arith.cmpi eq, %b, %zero : index
        %s = ptx.smem.addr 0
        %one = arith.constant 1 : i32
        scf.if %first {
          ptx.st %one, %s align 4 : i32, !ptx.ptr<shared>
        }
        %v = ptx.ld %s align 4 : !ptx.ptr<shared> -> i32"""
    error = fault(entry(body + used("%v"), "", "1", shared=64), "E3204", grid=(2, 1, 1), block=(1, 1, 1))
    assert error.block == (1, 0, 0)


def test_two_allocations_do_not_touch() -> None:
    body = """
        %s = ptx.smem.alloc 64 align 16
        %u = ptx.smem.alloc 64 align 16
        """
    fault(entry(body + access(4, True, "shared", "%s"), "%o: i64", "1"), "E3202", block=(1, 1, 1), o=64)


LOCAL = "%l = ptx.local.alloc 32 align 16\n%zero = arith.constant 0 : i64\n"


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_local_bounds(width: int) -> None:
    text = entry(LOCAL + access(width, True, "local", "%l"), "%o: i64")
    launch(text, o=32 - width)
    for outside in (32, -width, 1 << 40, -(1 << 40)):
        fault(text, "E3202", o=outside)
    if width > 1:
        fault(text, "E3203", o=width // 2)


def test_local_memory_is_undefined_until_written() -> None:
    fault(entry(LOCAL + access(4, False, "local", "%l") + used("%v"), "%o: i64"), "E3204", o=0)


def test_each_thread_has_its_own_fragment() -> None:
    body = (
        LOCAL
        + """
        %t = gpu.thread_id x
        %c4 = arith.constant 4 : index
        %c8 = arith.constant 8 : index
        %v = arith.index_cast %t : index to i32
        %slot = arith.remui %t, %c8 : index
        %so = arith.muli %slot, %c4 : index
        %p = ptx.ptr_add %l, %so : !ptx.ptr<local>, index -> !ptx.ptr<local>
        ptx.st %v, %p align 4 : i32, !ptx.ptr<local>
        %w = ptx.ld %p align 4 : !ptx.ptr<local> -> i32
        %go = arith.muli %t, %c4 : index
        %q = ptx.ptr_add %A, %go : !ptx.ptr<global>, index -> !ptx.ptr<global>
        ptx.st %w, %q align 4 : i32, !ptx.ptr<global>"""
    )
    array = np.zeros(64, np.int32)
    result = launch(entry(body, "%A: !ptx.ptr<global> align 16", "64"), block=(64, 1, 1), A=unwritten(array))
    assert array.tolist() == list(range(64))
    assert set(result.counters.instructions) == {"st.global.b32", "ret"}, "fragments are registers: no instructions"


def test_a_fragment_is_undefined_again_in_each_iteration() -> None:
    body = """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %v = arith.constant 5 : i32
        scf.for %i = %c0 to %c2 step %c1 {
          %l = ptx.local.alloc 4 align 4
          %first = arith.cmpi eq, %i, %c0 : index
          scf.if %first {
            ptx.st %v, %l align 4 : i32, !ptx.ptr<local>
          }
          %w = ptx.ld %l align 4 : !ptx.ptr<local> -> i32
          USED
        }"""
    fault(entry(body.replace("USED", used("%w"))), "E3204")


@pytest.mark.parametrize(
    ("type", "dtype", "mnemonic"),
    [
        ("i8", np.int8, "b8"),
        ("f16", np.float16, "b16"),
        ("f64", np.float64, "b64"),
        ("vector<4xf32>", np.float32, "v4.b32"),
        ("vector<8xf16>", np.float16, "v4.b32"),
        ("vector<2xi64>", np.int64, "v2.b64"),
    ],
)
def test_values_move_as_they_are(type: str, dtype: type[np.generic], mnemonic: str) -> None:
    source = np.random.default_rng(0).integers(0, 100, 256).astype(dtype)
    count = int(type.split("x")[0][7:]) if "vector" in type else 1
    size = count * np.dtype(dtype).itemsize
    body = f"""
        %t = gpu.thread_id x
        %c = arith.constant {size} : index
        %o = arith.muli %t, %c : index
        %p = ptx.ptr_add %A, %o : {GLOBAL}, index -> {GLOBAL}
        %q = ptx.ptr_add %B, %o : {GLOBAL}, index -> {GLOBAL}
        %v = ptx.ld %p align {size} : {GLOBAL} -> {type}
        ptx.st %v, %q align {size} : {type}, {GLOBAL}"""
    target = np.zeros_like(source)
    result = launch(entry(body, f"%A: {GLOBAL} align 16, %B: {GLOBAL} align 16"), A=source, B=unwritten(target))
    assert target[: 32 * count].tolist() == source[: 32 * count].tolist()
    assert not target[32 * count :].any()
    assert result.counters.instructions[f"ld.global.{mnemonic}"].threads == 32
