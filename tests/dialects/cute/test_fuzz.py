# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations with operands of all sorts: each program is refused with a message, or goes through the passes."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.frontend.source import Source
from tilefold.compiler.pass_runner import parse_passes, run_passes
from tilefold.compiler.pipeline import PASSES, make_context

from tests.dialects.cute.examples import OPERATIONS, program

VALUES = {
    "int_tuple": ["0", "?", "(2,3)", "(?,0)", "((1,2),?)", "?{i64}", "()", "-3", "(0,1,2)"],
    "coord": ["0", "_", "?", "(_,1)", "(?,_)", "(1,2)", "(_,(_,?))", "((1,_),2)", "()"],
    "shape": ["1", "0", "?", "(2,3)", "(?,4)", "((2,?),3)", "(0,4)", "()", "?{i64}", "(4,8)"],
    "stride": ["0", "1", "?", "(1,2)", "((1,?),3)", "1@0", "(1@0,1@1)", "(?@0,0)", "()", "-1"],
    "layout": [
        "1:0", "?:?", "(2,3):(1,2)", "(?,4):(1,?)", "((2,2),4):((1,?),2)", "(2,3):(1@0,1@1)", "(4,8):(8,1)", "8:0",
        "():()", "4:-1", "(2,3):(0,1@0)", "(4,?{i64}):(?{i64},1)", "6:2", "((4),8):((1),4)", "(4,8):(2@1,1@0)",
    ],
    "tile": ["_", "[_]", "4:1", "[4:1;_]", "[2:1;[4:1;_]]", "[?:1]", "[2:1@0]", "[(2,2):(?,?)]", "(2,2)"],
    "composed_layout": [
        "S<1,0,1> o 0 o (2,2):(2,1)", "S<2,1,3> o ? o (8,8):(8,1)", "4:2 o 1 o 3:1", "?:? o ? o ?:?",
        "(4,5):(1,4) o (0,0) o (2,3):(1@0,1@1)", "S<3,4,3> o 0 o (?,8):(1,?)", "S<2,0,-2> o 0 o (4,4):(1,4)",
    ],
    "swizzle": ["S<1,0,1>", "S<0,0,0>", "S<2,0,-2>"],
}  # fmt: skip
"""Values of each type."""

PIPELINES = ("cute-fold-static,cute-expand-ops,cute-to-base", "cute-expand-ops,cute-to-base")
_TYPE = re.compile(r'!cute\.(\w+)<"[^"]*">')
_INFERRED = re.compile(r"the result is of type (.*?), but (.*) is written$")


def _generic(text: str) -> str:
    return print_program(parse_program(Source("test", text, text), make_context()), generic=True)


PROGRAMS = [_generic(program(op)) for op in OPERATIONS.values()]


@given(st.sampled_from(PROGRAMS), st.data(), st.sampled_from(PIPELINES))
@settings(max_examples=200, deadline=None)
def test_refused_or_lowered(text: str, data: st.DataObject, passes: str) -> None:
    chosen: dict[str, str] = {}
    for match in _TYPE.finditer(text):
        if match[0] not in chosen:
            chosen[match[0]] = f'!cute.{match[1]}<"{data.draw(st.sampled_from(VALUES[match[1]]))}">'
    text = _TYPE.sub(lambda match: chosen[match[0]], text)
    for _ in range(2):
        source, context = Source("test", text, text), make_context()
        try:
            module = parse_program(source, context)
            run_passes(context, module, parse_passes(passes, PASSES), source=source)
        except ProgramError as error:
            inferred = _INFERRED.search(error.diagnostics[0].message)
            if inferred is None:
                return
            left, _, right = text.rpartition(inferred[2])  # once more, with the type that the result has
            text = left + inferred[1] + right
