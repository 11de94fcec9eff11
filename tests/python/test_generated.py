# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generated functions, whose control flow nests in all ways, mean in a kernel what they mean in Python."""

import linecache
from itertools import count
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.examples import examples
from tilefold import cute

THREADS = 8
VARIABLES = ("a", "b", "c")
_NUMBERS = count()


@st.composite
def expressions(draw: DrawFn) -> str:
    """An integer that stays small."""
    left = draw(st.sampled_from((*VARIABLES, "t", "n")))
    right = draw(st.sampled_from((*VARIABLES, "t", "n", "1", "2", "5", "xs[0]", "xs[1]")))
    operator = draw(st.sampled_from(("+", "-", "*", "or", "and")))
    return f"({left} {operator} {right}) % {draw(st.sampled_from((7, 11, 16)))}"


@st.composite
def conditions(draw: DrawFn) -> str:
    """A comparison, a chain of them, or two combined."""
    names = st.sampled_from((*VARIABLES, "t", "n", "3", "xs[1]"))
    one = f"{draw(names)} {draw(st.sampled_from(('<', '<=', '==', '!=', '>')))} {draw(names)}"
    match draw(st.integers(0, 5)):
        case 0:
            return f"{one} {draw(st.sampled_from(('<', '>=')))} {draw(names)}"
        case 1:
            return f"{one} {draw(st.sampled_from(('and', 'or')))} {draw(names)} < {draw(names)}"
        case 2:
            return f"not ({one})"
        case 3:
            return f"{draw(names)} in ({draw(names)}, 2, {draw(names)})"
        case _:
            return one


@st.composite
def blocks(draw: DrawFn, depth: int, in_loop: bool) -> list[str]:
    """Statements, each on lines of its own."""
    found: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        found += draw(statements(depth, in_loop))
    return found


@st.composite
def statements(draw: DrawFn, depth: int, in_loop: bool) -> list[str]:
    """A statement: an assignment, or one with blocks in it."""
    kinds = ["assign", "assign", "element", "choose"] + ["if", "if", "for", "unrolled", "while", "match", "try"] * (
        depth > 0
    )
    kinds += ["leave"] * in_loop + ["return"] * (depth < 2)
    kind = draw(st.sampled_from(kinds))
    inner = blocks(depth - 1, in_loop or kind in ("for", "unrolled", "while"))
    name = draw(st.sampled_from(VARIABLES))
    match kind:
        case "assign":
            return [f"{name} = {draw(expressions())}"]
        case "element":
            return [f"xs[{draw(st.integers(0, 1))}] = {draw(expressions())}"]
        case "choose":
            return [f"{name} = {draw(expressions())} if {draw(conditions())} else {draw(expressions())}"]
        case "leave":
            return [f"if {draw(conditions())}:", f"    {draw(st.sampled_from(('break', 'continue')))}"]
        case "return":
            return [f"if {draw(conditions())}:", f"    return {draw(expressions())}"]
        case "if":
            lines = [f"if {draw(conditions())}:", *_indented(draw(inner))]
            if draw(st.booleans()):
                lines += [f"elif {draw(conditions())}:", *_indented(draw(inner))]
            return lines + (["else:", *_indented(draw(inner))] if draw(st.booleans()) else [])
        case "match":
            cases = ["0 | 3", f"{draw(st.sampled_from(('1', 'k', '2')))} if {draw(conditions())}", "_"]
            parts = [[f"    case {case}:", *_indented(_indented(draw(inner)))] for case in cases]
            return [f"match {name} % 4:", *(line for part in parts for line in part)]
        case "try":
            words = draw(st.sampled_from((("finally",), ("except KeyError", "else"), ("except KeyError", "finally"))))
            last = blocks(depth - 1, False).filter(lambda lines: not any("return" in line for line in lines))
            parts = [[f"{word}:", *_indented(draw(last if word == "finally" else inner))] for word in ("try", *words)]
            return [line for part in parts for line in part]
        case "for" | "unrolled":
            bound = draw(st.sampled_from(("n", "a % 4", "t"))) if kind == "for" else "2"
            lines = [f"for i{depth} in range({bound}):", *_indented([f"{name} = {name} + i{depth}", *draw(inner)])]
            outer = blocks(depth - 1, in_loop)
            return lines + (["else:", *_indented(draw(outer))] if draw(st.integers(0, 3)) == 0 else [])
        case _:
            counter = f"w{depth}"
            test = f"{counter} < 3 and ({draw(conditions())})"
            lines = [f"{counter} = 0", f"while {test}:", f"    {counter} = {counter} + 1", *_indented(draw(inner))]
            outer = blocks(depth - 1, in_loop)
            return lines + (["else:", *_indented(draw(outer))] if draw(st.integers(0, 3)) == 0 else [])


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@st.composite
def functions(draw: DrawFn) -> str:
    """The text of a function of two integers."""
    body = [
        "a, b, c, xs = t, 2, n, [t, 1]",
        *draw(blocks(3, False)),
        "return a + 20 * b + 400 * c + xs[0] * 8000 + xs[1]",
    ]
    return "\n".join(["def generated(t, n):", *_indented(body), ""])


def defined(text: str) -> Any:
    """The function of a text, whose source Python can find."""
    file = f"<generated {next(_NUMBERS)}>"
    linecache.cache[file] = (len(text), None, [f"{line}\n" for line in text.splitlines()], file)
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, file, "exec"), names)
    return names["generated"]


@cute.kernel
def call(function: cute.Constexpr, out: cute.Tensor, n: int):
    t, _, _ = cute.arch.thread_idx()
    out[t] = cute.Int32(cute.jit(function)(cute.Int32(t), n))


@settings(max_examples=examples(16), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(text=functions(), n=st.integers(0, 3), stage=st.sampled_from(("cute", "instr")))
def test_a_generated_function(text: str, n: int, stage: str) -> None:
    function = defined(text)
    out = np.full(THREADS, -7, np.int32)
    call(function, out, n).launch(grid=1, block=THREADS, device="sim", stage=stage)
    assert out.tolist() == [function(t, n) for t in range(THREADS)], text
