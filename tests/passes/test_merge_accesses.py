# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`merge-accesses`: what is joined, what must stay apart, and that memory holds the same afterwards."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.dialects.ptx import LoadOp, StoreOp, value_bytes
from tilefold.passes.writing.emitter import remarks_in

from tests.examples import examples
from tests.passes.harness import apply, check_pass, entry, execute


@dataclass
class _Body:
    """Lines of a kernel that accesses memory at constant and run-time distances."""

    lines: list[str]
    count: int = 0

    def pointer(self, base: str, offset: int, index: str = "") -> tuple[str, str]:
        """The address `offset` bytes after `base`, plus `index` bytes; its type."""
        spaces = {"%A": "global", "%B": "global", "%s": "shared", "%q": "shared", "%m": "shared_cluster", "%l": "local"}
        space = spaces[base]
        self.count += 1
        type = f"!ptx.ptr<{space}>"
        self.lines += [
            f"%c{self.count} = arith.constant {offset} : i32",
            f"%p{self.count} = ptx.ptr_add {base}, %c{self.count} : {type}, i32 -> {type}",
        ]
        if index:
            self.lines.append(f"%r{self.count} = ptx.ptr_add %p{self.count}, {index} : {type}, i32 -> {type}")
        return f"%{'r' if index else 'p'}{self.count}", type

    def load(self, base: str, offset: int, type: str = "f32", index: str = "") -> str:
        """Loads a value; its name."""
        pointer, of = self.pointer(base, offset, index)
        self.lines.append(f"%v{self.count} = ptx.ld {pointer} align {_SIZE[type]} : {of} -> {type}")
        return f"%v{self.count}"

    def store(self, value: str, base: str, offset: int, type: str = "f32", index: str = "") -> None:
        """Stores a value."""
        pointer, of = self.pointer(base, offset, index)
        self.lines.append(f"ptx.st {value}, {pointer} align {_SIZE[type]} : {type}, {of}")


_SIZE = {"i8": 1, "f16": 2, "i16": 2, "f32": 4, "i32": 4, "i64": 8}
HEAD = """%s = ptx.smem.alloc 64 align 16
%q = ptx.smem.alloc 64 align 16
%l = ptx.local.alloc 64 align 16
%m = ptx.mapa %s, %x"""
ARGS = "%A: !ptx.ptr<global> align {align}, %B: !ptx.ptr<global> align 16, %x: i32, %y: i32, %f: f32, %h: f16"


def accesses(lines: list[str], align: int = 16) -> tuple[list[int], list[int]]:
    """The bytes of each load and of each store that `merge-accesses` leaves, in order."""
    text = entry("\n".join([HEAD, *lines]), ARGS.format(align=align), "1")
    module = apply(text, "merge-accesses")
    loads = [value_bytes(op.result.type) or 0 for op in module.walk() if isinstance(op, LoadOp)]
    return loads, [value_bytes(op.value.type) or 0 for op in module.walk() if isinstance(op, StoreOp)]


@pytest.mark.parametrize(
    ("align", "offsets", "type", "expected"),
    [
        (16, [0, 4, 8, 12], "f32", [16]),
        (16, [12, 4, 0, 8], "f32", [16]),
        (16, [4, 8], "f32", [4, 4]),  # 8 bytes, but not at a multiple of 8
        (16, [8, 12, 16, 20], "f32", [8, 8]),
        (8, [0, 4, 8, 12], "f32", [8, 8]),
        (4, [0, 4, 8, 12], "f32", [4, 4, 4, 4]),
        (16, [0, 4, 12], "f32", [8, 4]),  # a gap
        (16, [0, 2, 4, 6, 8, 10, 12, 14], "f16", [16]),
        (16, [0, 1, 2], "i8", [2, 1]),
        (16, [0, 8, 16], "i64", [16, 8]),
        (16, [0, 32], "i64", [8, 8]),
        (16, [-16, -12, -8, -4], "f32", [16]),
    ],
)
def test_adjacent_loads(align: int, offsets: list[int], type: str, expected: list[int]) -> None:
    body = _Body([])
    for offset in offsets:
        body.load("%A", offset, type)
    assert sorted(accesses(body.lines, align)[0]) == sorted(expected)


def test_adjacent_stores() -> None:
    body = _Body([])
    for offset in (8, 0, 12, 4, 16):
        body.store("%f", "%A", offset)
    assert sorted(accesses(body.lines)[1]) == [4, 16]


def test_an_unknown_index_says_nothing_about_alignment() -> None:
    body = _Body([])
    for offset in (0, 4):
        body.load("%A", offset, index="%x")
    assert accesses(body.lines)[0] == [4, 4]


def test_a_multiple_of_an_index_keeps_alignment() -> None:
    body = _Body(["%c = arith.constant 8 : i32", "%i = arith.muli %x, %c : i32"])
    for offset in (0, 4, 8, 12):
        body.load("%A", offset, index="%i")
    assert accesses(body.lines)[0] == [8, 8]


def test_loads_do_not_pass_a_store_to_the_same_space() -> None:
    body = _Body([])
    body.load("%A", 0)
    body.store("%f", "%B", 0)
    body.load("%A", 4)
    assert accesses(body.lines)[0] == [4, 4]


@pytest.mark.parametrize(("loaded", "stored"), [("%s", "%m"), ("%m", "%q"), ("%m", "%m")])
def test_shared_memory_may_be_that_of_a_peer(loaded: str, stored: str) -> None:
    body = _Body([])
    body.load(loaded, 0)
    body.store("%f", stored, 0)
    body.load(loaded, 4)
    assert accesses(body.lines)[0] == [4, 4]


def test_loads_from_a_peer() -> None:
    body = _Body([])
    for offset in (0, 4, 8, 12):
        body.load("%m", offset)
        body.load("%s", offset)
    assert accesses(body.lines)[0] == [16, 16]


def test_loads_pass_a_store_to_another_space() -> None:
    body = _Body([])
    body.load("%A", 0)
    body.store("%f", "%s", 0)
    body.store("%f", "%l", 0)
    body.load("%A", 4)
    assert accesses(body.lines)[0] == [8]


@pytest.mark.parametrize("between", ["%z = arith.remui %x, %x : i32", "%z = arith.extsi %x : i32 to i64"])
def test_loads_pass_arithmetic(between: str) -> None:
    body = _Body([])
    body.load("%A", 0)
    body.lines.append(between)
    body.load("%A", 4)
    assert accesses(body.lines)[0] == [8]


@pytest.mark.parametrize("between", ["ptx.bar.sync 0", 'ptx.printf "x"() : ', "ptx.cp.async.wait_all"])
def test_nothing_passes_a_barrier(between: str) -> None:
    body = _Body([])
    body.load("%A", 0)
    body.store("%f", "%s", 0)
    body.lines.append(between)
    body.load("%A", 4)
    body.store("%f", "%s", 4)
    assert accesses(body.lines) == ([4, 4], [4, 4])


def test_stores_do_not_pass_a_store_that_may_touch_their_bytes() -> None:
    same_index = _Body([])
    same_index.store("%f", "%A", 0, index="%x")
    same_index.store("%f", "%A", 0, index="%y")
    same_index.store("%f", "%A", 4, index="%x")
    other_argument = _Body([])
    other_argument.store("%f", "%A", 0)
    other_argument.store("%f", "%B", 0)
    other_argument.store("%f", "%A", 4)
    overlapping = _Body([])
    overlapping.store("%f", "%A", 0)
    overlapping.store("%h", "%A", 2, "f16")
    overlapping.store("%f", "%A", 4)
    for body in (same_index, other_argument, overlapping):
        assert len(accesses(body.lines)[1]) == 3


def test_of_two_stores_to_one_element_the_second_stays_last() -> None:
    body = _Body([])
    for offset in (0, 4, 0, 4):
        body.store("%f", "%A", offset)
    assert accesses(body.lines)[1] == [8, 8]


def test_types_are_not_mixed() -> None:
    body = _Body([])
    body.load("%A", 0, "f32")
    body.load("%A", 4, "i32")
    assert accesses(body.lines)[0] == [4, 4]


def test_vectors_keep_the_width_that_an_atom_named() -> None:
    lines = ["%v = ptx.ld %A align 8 : !ptx.ptr<global> -> vector<2xf32>"]
    body = _Body(lines)
    pointer, type = body.pointer("%A", 8)
    lines.append(f"%w = ptx.ld {pointer} align 8 : {type} -> vector<2xf32>")
    assert accesses(lines)[0] == [8, 8]


def test_pattern() -> None:
    body = _Body([])
    first, second = body.load("%A", 0, "f16"), body.load("%A", 2, "f16")
    body.store(second, "%B", 0, "f16")
    body.store(first, "%B", 2, "f16")
    check_pass(
        "merge-accesses",
        entry("\n".join([HEAD, *body.lines]), ARGS.format(align=4)),
        """
        // CHECK: [[W:%[0-9a-z]+]] = ptx.ld %{{[0-9a-z]+}} align 4 : !ptx.ptr<global> -> vector<2xf16>
        // CHECK: [[A:%[0-9a-z]+]] = vector.extract [[W]][0]
        // CHECK: [[B:%[0-9a-z]+]] = vector.extract [[W]][1]
        // CHECK: vector.broadcast [[B]]
        // CHECK: vector.insert [[A]]
        // CHECK: ptx.st {{.*}} align 4 : vector<2xf16>, !ptx.ptr<global>
        // CHECK-NOT: ptx.ld
        // CHECK-NOT: ptx.st
        """,
    )


@st.composite
def _random_body(draw: Any) -> list[str]:
    """Loads and stores of a few types at a few places, also at run-time distances; their order matters."""
    body = _Body(["%k = arith.constant 8 : i32", "%i = arith.muli %x, %k : i32", "%j = arith.muli %y, %k : i32"])
    values = {"f32": ["%f"], "f16": ["%h"]}
    for _ in range(draw(st.integers(2, 14))):
        type = draw(st.sampled_from(["f32", "f32", "f16"]))
        offset = draw(st.integers(0, 3)) * _SIZE[type]
        index = draw(st.sampled_from(["", "", "%i", "%j"]))
        if draw(st.booleans()):
            values[type].append(body.load(draw(st.sampled_from(["%A", "%B"])), offset, type, index))
        else:
            body.store(draw(st.sampled_from(values[type])), draw(st.sampled_from(["%A", "%B"])), offset, type, index)
    return body.lines


@given(_random_body(), st.integers(0, 1), st.integers(0, 1), st.sampled_from([4, 8, 16]))
@settings(max_examples=examples(30))
def test_memory_is_the_same(lines: list[str], x: int, y: int, align: int) -> None:
    text = entry("\n".join(lines), ARGS.format(align=align), "1")
    results: list[bytes] = []
    for passes in ("", "merge-accesses"):
        a, b = np.arange(64, dtype=np.float16), np.arange(64, 128, dtype=np.float16)
        arguments = {"A": a, "B": b, "x": np.int32(x), "y": np.int32(y), "f": np.float32(-1), "h": np.float16(-2)}
        execute(apply(text, passes), arguments, threads=1)
        results.append(a.tobytes() + b.tobytes())
    assert results[0] == results[1]


@pytest.mark.parametrize(("factor", "remarks"), [
    (4, ["2 neighbouring loads of 4 bytes would be one of 8, but an offset that only the run knows is known to be a "
         "multiple of 4 bytes only"]),
    (8, []),  # they are one
])  # fmt: skip
def test_an_offset_of_the_run_is_told_as_the_reason_that_loads_stay_apart(factor: int, remarks: list[str]) -> None:
    body = _Body([f"%k = arith.constant {factor} : i32", "%row = arith.muli %x, %k : i32"])
    for offset in (0, 4):
        body.load("%A", offset, index="%row")
    assert _told(body.lines) == remarks


@pytest.mark.parametrize(("first", "second", "between", "count"), [
    (' cache "cs"', ' cache "cs"', "", 1),
    (" policy %z", " policy %z", "", 1),
    (' cache "cs"', ' cache "cg"', "", 0),  # no instruction can take both
    (' cache "cs"', "", "", 0),
    (' cache "cs"', ' cache "cs"', "ptx.bar.sync 0", 0),
    (' cache "cs"', ' cache "cs"', "ptx.st %f, %B align 4 : f32, !ptx.ptr<global>", 0),
    (' cache "cs"', ' cache "cs"', "ptx.st %f, %s align 4 : f32, !ptx.ptr<shared>", 1),
    ("", "", "", 0),  # they are one
])  # fmt: skip
def test_a_cache_hint_is_told_as_the_reason_that_loads_stay_apart(
    first: str, second: str, between: str, count: int
) -> None:
    body = _Body(["%z = arith.constant 7 : i64"])
    body.load("%A", 8)
    body.lines += [between] * bool(between)
    body.load("%A", 12)
    body.lines[3] = body.lines[3].replace(" align", f"{first} align")
    body.lines[-1] = body.lines[-1].replace(" align", f"{second} align")
    told = (
        "2 neighbouring loads of 4 bytes would be one of 8, but accesses with a cache hint or a policy keep their width"
    )
    assert _told(body.lines) == [told] * count
    if first or second:
        assert _told(body.lines, align=4) == []  # the hint is not the only reason


def _told(lines: list[str], align: int = 16) -> list[str]:
    module = apply(entry("\n".join([HEAD, *lines]), ARGS.format(align=align), "1"), "merge-accesses")
    return [text for _, text in remarks_in(module)]
