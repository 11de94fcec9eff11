# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Listings of a program while passes change it: values keep their names, and only changed lines differ."""

from collections.abc import Iterator

import pytest
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.frontend.source import Source
from tilefold.compiler.pass_runner import parse_passes
from tilefold.compiler.pipeline import PASSES, make_context, pipeline_to
from tilefold.compiler.reports.listing import Lister, Listing, changed_lines, hunks
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tests.project.tree import ROOT

SUM = """
gpu.module @m {
  ptx.entry @k(%a: i32) threads(32) {
    %0 = arith.constant 1 : i32
    %x = arith.addi %a, %0 : i32
    %1 = arith.muli %x, %x : i32
    %2 = arith.subi %1, %0 : i32
    ptx.ret
  }
}
"""


def parsed(text: str) -> ModuleOp:
    return parse_program(Source("k.cute", text, text), make_context())


def listings(name: str) -> Iterator[tuple[str, Listing, ModuleOp]]:
    path = ROOT / "examples" / name
    context = make_context()
    module = parse_program(expand(path.read_text(), name, {}), context)
    lister = Lister()
    yield "", lister.list(module), module
    for applied in parse_passes(",".join(pipeline_to("instr", "sm_90a", "cute")), PASSES):
        applied.apply(context, module)
        yield str(applied), lister.list(module), module


def changes(before: Listing, after: Listing) -> list[str]:
    return [mark + line.text.strip() for hunk in hunks(before.lines, after.lines) for mark, line in hunk.lines]


def number_of_changes(before: Listing, after: Listing) -> int:
    return sum(changed_lines(hunks(before.lines, after.lines)))


@pytest.mark.parametrize("name", ["ragged_copy.cute", "tma_copy.cute", "hgemm.cute"])
@pytest.mark.sampled(2)
def test_listings_read_back_as_the_program_that_they_show(name: str) -> None:
    for number, (applied, listing, module) in enumerate(listings(name)):
        plain = print_program(module)
        if not number:
            assert listing.text == plain
        assert parsed(listing.text).is_structurally_equivalent(parsed(plain)), applied


def test_only_changed_operations_differ() -> None:
    steps = {applied: (listing, print_program(module)) for applied, listing, module in listings("hgemm.cute")}
    names = list(steps)
    at = names.index("expand-atoms")
    (before, plain), (after, now) = steps[names[at - 1]], steps["expand-atoms"]
    assert number_of_changes(before, after) == 20
    assert number_of_changes(*(Lister().list(parsed(text)) for text in (plain, now))) > 200
    assert number_of_changes(after, steps["expand-conversions"][0]) == 0


def test_a_new_value_takes_the_name_of_the_one_that_it_replaces() -> None:
    module, lister = parsed(SUM), Lister()
    before = lister.list(module)
    product = next(op for op in module.walk() if isinstance(op, arith.MuliOp))
    Rewriter.replace_op(product, other := arith.AddiOp(product.lhs, product.rhs))
    other.result.name_hint = None
    assert changes(before, lister.list(module)) == [
        " %0 = arith.constant 1 : i32",
        " %x = arith.addi %a, %0 : i32",
        "-%1 = arith.muli %x, %x : i32",
        "+%1 = arith.addi %x, %x : i32",
        " %2 = arith.subi %1, %0 : i32",
        " ptx.ret",
    ]


def test_names_are_not_given_twice() -> None:
    """A value that lives keeps its name, and a new one of the same hint gets another."""
    module, lister = parsed(SUM), Lister()
    lister.list(module)
    total = next(op for op in module.walk() if isinstance(op, arith.AddiOp))
    block = total.parent_block()
    assert block is not None
    for _ in range(2):
        block.insert_op_before(again := arith.AddiOp(total.lhs, total.rhs), total)
        again.result.name_hint = "x"
    block.insert_op_before(arith.AddiOp(total.lhs, total.lhs), total)
    names = [line.text.split()[0] for line in lister.list(module).lines if "arith" in line.text]
    assert names == ["%0", "%x_1", "%x_2", "%3", "%x", "%1", "%2"]


def test_a_copy_has_the_names_of_what_it_was_copied_from() -> None:
    module, lister = parsed(SUM), Lister()
    before = lister.list(module)
    block = next(op for op in module.walk() if isinstance(op, arith.AddiOp)).parent_block()
    assert block is not None
    block.insert_op_before(arith.AddiOp(block.args[0], block.args[0]), block.ops.first)  # pyright: ignore[reportArgumentType]
    lister.list(module)
    copy = module.clone()
    lister.follow(module, copy)
    assert changes(before, lister.list(copy))[2] == "+%3 = arith.addi %a, %a : i32"


def test_lines_know_their_operations() -> None:
    module = parsed(SUM)
    listing = Lister().list(module)
    defined: list[SSAValue] = [line.op.results[0] for line in listing.lines if line.op is not None and line.op.results]
    assert [type(value.owner) for value in defined] == [arith.ConstantOp, arith.AddiOp, arith.MuliOp, arith.SubiOp]
    assert listing.lines[-1].op is None


def test_a_module_that_stays_is_listed_once() -> None:
    """Whatever changes in place counts: operands, properties, and places of operations."""
    module, lister = parsed(SUM), Lister()
    listing = lister.list(module)
    assert lister.list(module) is listing
    assert lister.list(module, generic=True) is not listing
    one, total, product, _ = [op for op in module.walk() if op.name.startswith("arith.")]

    def now() -> str:
        return lister.list(module).text

    before = now()
    product.operands[1] = total.operands[0]
    assert now() == (before := before.replace("muli %x, %x", "muli %x, %a"))
    one.properties["value"] = IntegerAttr(2, i32)
    assert now() == (before := before.replace("constant 1", "constant 2"))
    block = one.parent_block()
    assert block is not None
    one.detach()
    block.insert_op_after(one, total)
    assert now() != before
