# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`scf` as blocks and branches: loops by a condition here, which xDSL lacks, the others by xDSL's patterns."""

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker
from xdsl.rewriter import BlockInsertPoint, InsertPoint, Rewriter
from xdsl.transforms.convert_scf_to_cf import ForLowering, IfLowering


def scf_to_cf(module: ModuleOp) -> None:
    """Replaces every `scf.if`, `scf.for` and `scf.while`; dead code stays, unlike with xDSL's `convert-scf-to-cf`."""
    for op in list(module.walk()):
        if isinstance(op, scf.WhileOp):
            lower_while(op)
    patterns = GreedyRewritePatternApplier([IfLowering(), ForLowering()], dce_enabled=False)
    PatternRewriteWalker(patterns).rewrite_module(module)


def lower_while(op: scf.WhileOp) -> None:
    """Replaces a loop by the blocks that decide, the body, and the code after it, whose arguments are the results.

    Its regions may hold other loops, and more than one block where such loops have been replaced.
    """
    block = op.parent_block()
    condition, body = op.before_region.last_block, op.after_region.last_block
    assert block is not None
    assert condition is not None
    assert body is not None
    decision, end_of_body = condition.last_op, body.last_op
    assert isinstance(decision, scf.ConditionOp)
    assert isinstance(end_of_body, scf.YieldOp)
    before, after = op.before_region.blocks[0], op.after_region.blocks[0]
    rest = block.split_before(op)
    results = [rest.insert_arg(type, index) for index, type in enumerate(op.result_types)]
    branches = (
        (cf.ConditionalBranchOp(decision.condition, after, decision.args, rest, decision.args), decision),
        (cf.BranchOp(before, *end_of_body.operands), end_of_body),
    )
    for branch, old in branches:
        branch.location = op.location
        Rewriter.insert_op(branch, InsertPoint.before(old))
        Rewriter.erase_op(old)
    entry = cf.BranchOp(before, *op.arguments)
    entry.location = op.location
    block.add_op(entry)
    for region in (op.before_region, op.after_region):
        Rewriter.inline_region(region, BlockInsertPoint.before(rest))
    for old, new in zip(op.results, results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    Rewriter.erase_op(op)
