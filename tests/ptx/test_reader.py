# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reader of PTX text: what it makes of each part, and how it refuses what it does not understand."""

import random
import re
from contextlib import suppress

import pytest
from tilefold.base.errors import Code
from tilefold.compiler.ptx.parser import parse_ptx
from tilefold.compiler.ptx.places import locations
from tilefold.compiler.ptx.syntax import (
    Address,
    Float,
    Instruction,
    Integer,
    Label,
    Location,
    Not,
    Pair,
    PtxError,
    Register,
    Statement,
    Symbol,
    Vector,
)
from tilefold.compiler.ptx.tokens import MAX_CHARACTERS
from tilefold.compiler.ptx.translate import translate
from tilefold.dialects import ptx
from tilefold.dialects.ptx.base import GLOBAL
from xdsl.ir import Operation

from tests.kernels.harness import EXAMPLES, program, target_of
from tests.ptx.texts import HEAD, kernel


def body_of(text: str) -> list[Statement]:
    (function,) = parse_ptx(kernel(text)).entries
    return list(function.body or ())


def test_an_instruction_has_its_parts_and_its_place() -> None:
    (first, second) = body_of("@!%p1 ld.global.v2.b32 {%r1, %r2}, [%d1+-16];\n\tmov.b32 %r3, 0f3F800000;")
    assert isinstance(first, Instruction)
    assert isinstance(second, Instruction)
    assert (first.name, first.guard) == ("ld.global.v2.b32", Not(Register("%p1")))
    assert first.operands == (Vector((Register("%r1"), Register("%r2"))), Address(Register("%d1"), -16))
    assert second.operands == (Register("%r3"), Float(1.0, 32))
    assert (second.place.line, second.place.column) == (8, 2)


def test_pairs_coordinates_symbols_and_numbers() -> None:
    (first, second, third) = body_of(
        "elect.sync %r1|%p1, -1; cp.x [%d1, {%r1, %r2}], [s+8]; mov.u32 %r1, 0x1F;\n.shared .align 8 .b8 s[16];"
    )
    assert isinstance(first, Instruction)
    assert isinstance(second, Instruction)
    assert isinstance(third, Instruction)
    assert first.operands == (Pair(Register("%r1"), Register("%p1")), Integer(-1))
    assert second.operands[0] == Address(Register("%d1"), 0, (Register("%r1"), Register("%r2")))
    assert second.operands[1] == Address(Symbol("s"), 8)
    assert third.operands[1] == Integer(31)


def test_scopes_have_their_own_registers_and_labels() -> None:
    text = "{ .reg .pred done; AGAIN: @done bra AGAIN; } { .reg .pred done; AGAIN: @done bra AGAIN; }"
    first, jump, second, other = body_of(text)
    assert isinstance(first, Label)
    assert isinstance(second, Label)
    assert isinstance(jump, Instruction)
    assert isinstance(other, Instruction)
    assert first.name != second.name
    assert jump.operands == (Symbol(first.name),)
    assert other.operands == (Symbol(second.name),)
    assert jump.guard != other.guard


def test_loc_says_where_an_instruction_comes_from() -> None:
    text = "ret; .loc 1 2 3\nret; .loc 2 7 3, function_name $L0+4, inlined_at 1 2 3\nret;"
    locations = [statement.location for statement in body_of(text) if isinstance(statement, Instruction)]
    assert locations == [None, Location(1, 2, 3), Location(2, 7, 3, Location(1, 2, 3))]


def test_a_module_has_variables_with_initial_bytes_files_and_kernels() -> None:
    text = HEAD + '.const .align 4 .u16 t[3] = {1, 2, 0x203};\n.file 1 "a.cu"\n.extern .shared .align 16 .b8 s[];\n'
    module = parse_ptx(
        text + ".entry k(.param .align 8 .b8 P[16]) .reqntid 32, 4 { ret; }\n.section .debug_x { .b8 1 }"
    )
    assert module.variables["t"].initial == b"\1\0\2\0\3\2"
    assert (module.variables["s"].size, module.variables["s"].align) == (0, 16)
    assert (module.version, module.target, module.files) == ("8.0", "sm_80", {1: "a.cu"})
    (function,) = module.entries
    assert (function.block, function.parameters[0].size, function.parameters[0].align) == ((32, 4, 1), 16, 8)


def test_prototypes_of_the_first_versions_have_no_semicolon() -> None:
    first, second = ".visible .func f (.param .u64 a)", ".extern .func (.param .b32 r) g ()"
    module = parse_ptx(f"{HEAD}{first}\n{second}\n{first} {{ ret; }}")
    assert [(f.name, f.body is not None) for f in module.functions.values()] == [("f", True), ("g", False)]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("mov.u32 %r1 %r2;", 7, "expected ','"),
        ("mov.u32 %r1, ;", 7, "expected an integer"),
        ("mov.u32 %r1, 5", 8, "expected ','"),
        (".reg .b33 %x;", 7, "unknown type '.b33'"),
        (".foo 3;", 7, "unknown directive"),
        ("#", 7, "unexpected character '#'"),
        ("{" * 70, 7, "scopes nest"),
        ("mov.u32 %r1, " + "{" * 70, 7, "operands nest"),
        ("mov.u32 %r1, " + "9" * 100 + ";", 7, "expected an integer"),
        (".reg .b32 %x<2000000>;", 7, "at most"),
        (".shared .b8 s[99999999999];", 7, "at most"),
    ],
)
def test_malformed_text_is_refused_at_its_place(text: str, line: int, message: str) -> None:
    with pytest.raises(PtxError, match=re.escape(message)) as error:
        parse_ptx(kernel(text))
    assert error.value.code == Code.PTX_SYNTAX
    assert error.value.place.line == line


def test_a_text_that_ends_early_or_is_too_long_is_refused() -> None:
    with pytest.raises(PtxError, match="expected a statement"):
        parse_ptx(HEAD + ".entry k() { ret;")
    with pytest.raises(PtxError, match="characters"):
        parse_ptx(" " * (MAX_CHARACTERS + 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frobnicate.u32 %r1, %r2;", "the instruction frobnicate.u32 is not supported"),
        ("add.frob.u32 %r1, %r2, %r2;", "the modifier .frob is not supported"),
        ("add.u32 %r1;", "combination of operands and modifiers is not supported"),
        ("brx.idx %r1, ts;", "the form of brx is not supported"),
        ("call 7, (%r1);", "the form of the call"),
        ("mov.u32 %r1, %pm0;", "special register"),
        ("call foo, (%r1);", "calls of functions"),
    ],
)
def test_what_is_not_supported_is_an_error_before_anything_runs(text: str, message: str) -> None:
    module = parse_ptx(kernel(f"mov.u32 %r2, 0; mov.u64 %d1, 0; {text} ret;"), "k.ptx")
    (function,) = module.entries
    with pytest.raises(PtxError, match=message) as error:
        translate(module, function, [GLOBAL], "k.ptx", locations({}, "k.ptx"))
    assert error.value.code == Code.PTX_UNSUPPORTED
    assert error.value.place.line == 7
    assert error.value.message.startswith("k.ptx:7:")


def test_a_branch_leads_to_a_label() -> None:
    module = parse_ptx(kernel("bra nowhere;"))
    with pytest.raises(PtxError, match="leads to no label: nowhere") as error:
        translate(module, module.entries[0], [GLOBAL], "k", locations({}, "k"))
    assert error.value.code == Code.PTX_SYNTAX


def test_changed_texts_are_read_or_refused() -> None:
    """Words of the examples' PTX are dropped, doubled, cut and exchanged; no such text is an internal error."""
    texts = [program(path).ptx(target_of(path)) for path in EXAMPLES if path.stem in ("softmax", "tma_copy", "reduce")]
    chance = random.Random(0)
    for _ in range(150):
        words = re.split(r"(\s+|[,;{}\[\]()])", chance.choice(texts))
        at = chance.randrange(len(words))
        words[at] = chance.choice(("", words[at] * 2, words[at][:-1], chance.choice(words), "{", "-1", "%r99999"))
        with suppress(PtxError):
            module = parse_ptx("".join(words))
            for function in module.entries:
                types = [GLOBAL] * len(function.parameters)
                translate(module, function, types, "k", locations({}, "k"), 64)


def read(text: str, *, as_written: bool = False) -> list[Operation]:
    """The operations of a kernel that are not arithmetic."""
    module = parse_ptx(kernel(text), "k")
    body = translate(module, module.entries[0], [GLOBAL], "k", locations({}, "k"), as_written=as_written)
    return [op for block in body.region.blocks for op in block.ops if isinstance(op, ptx.PtxOp)]


def test_policies_and_barriers_of_clusters() -> None:
    policy, load, store, copy, *others = read(
        "createpolicy.fractional.L2::evict_last.b64 %d2, 0f3F000000; ld.param.b64 %d1, [A];"
        "ld.global.L1::no_allocate.L2::cache_hint.b32 %r1, [%d1], %d2; st.global.L2::cache_hint.b32 [%d1], %r1, %d2;"
        "cp.async.cg.shared.global.L2::cache_hint [s], [%d1], 16, %d2;"
        "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned; griddepcontrol.wait;"
        "griddepcontrol.launch_dependents; ret;".replace("[s]", "[0]")
    )[:-1]  # fmt: skip
    assert isinstance(policy, ptx.CreatePolicyOp)
    assert (policy.priority.data, policy.share) == ("L2::evict_last", 0.5)
    assert isinstance(load, ptx.LoadOp)
    assert load.mnemonic() == "ld.global.L1::no_allocate.L2::cache_hint.b32"
    assert isinstance(store, ptx.StoreOp)
    assert store.policy is not None
    (copied, arrive, *rest) = [op for op in (copy, *others) if not isinstance(op, ptx.IntToPtrOp)]
    assert isinstance(copied, ptx.CpAsyncOp)
    assert copied.policy is not None
    assert isinstance(arrive, ptx.ClusterArriveOp)
    assert arrive.mnemonic() == "barrier.cluster.arrive.relaxed.aligned"
    assert [op.name for op in rest] == [
        "ptx.barrier.cluster.wait", "ptx.griddepcontrol.wait", "ptx.griddepcontrol.launch_dependents",
    ]  # fmt: skip


def test_a_body_as_written_has_stand_ins_and_loops() -> None:
    text = (
        "frobnicate.u32 %r1, %r2; add.u32 %r1, %r1, 1; bar.sync 0; $L: mbarrier.try_wait.parity.shared.b64 %p, [0], 0;"
        "@%p bra $E; bra.uni $L; $E: brx.idx %r1, $T; $T: .branchtargets $A, $B; $A: trap; $B: exit;"
    )
    with pytest.raises(PtxError):
        read(text)
    names = [op.name for op in read(text, as_written=True) if not isinstance(op, ptx.IntToPtrOp)]
    assert names == ["ptx.inline", "ptx.bar.sync", "ptx.mbarrier.try_wait", "ptx.ret"]
