# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`scf`: structured control flow as basic blocks, with phis where paths meet."""

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from ...base.errors import Code
from ...passes.analysis.loop_hints import unroll_count
from ...passes.errors import LoweringError
from .writer import FunctionWriter, Rule, rule


def _last(block: Block, parent: Operation, kind: type[Operation]) -> Operation:
    """The terminator of a region's block. LoweringError if the region ends otherwise."""
    last = block.last_op
    if not isinstance(last, kind):
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"a region of '{parent.name}' must end in '{kind.name}'", parent)
    return last


def _yielded_values(w: FunctionWriter, block: Block, parent: Operation, count: int) -> list[str]:
    """The values that the block hands on, as LLVM names, once its operations are written."""
    values = _last(block, parent, scf.YieldOp).operands
    if len(values) != count:
        raise LoweringError(
            Code.EMIT_UNSUPPORTED, f"a region of '{parent.name}' yields {len(values)} values, not {count}", parent
        )
    return [w.ref(value) for value in values]


def join_paths(w: FunctionWriter, joined: Sequence[SSAValue], paths: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Appends a phi for each value that several paths pass on, given the label of each path and its values."""
    for index, value in enumerate(joined):
        incoming = ", ".join(f"[ {values[index]}, %{label} ]" for label, values in paths)
        w.define(value, f"phi {w.type(value)} {incoming}")


def _if(w: FunctionWriter, op: scf.IfOp) -> None:
    n = w.fresh("")
    then, other, end = f"then{n}", f"else{n}", f"endif{n}"
    arms = [(then, op.true_region.block)]
    if op.false_region.blocks:
        arms.append((other, op.false_region.block))
    elif op.output:
        raise LoweringError(Code.EMIT_UNSUPPORTED, "'scf.if' with results needs both regions", op)
    w.emit(f"br i1 {w.ref(op.cond)}, label %{then}, label %{other if len(arms) == 2 else end}")
    paths: list[tuple[str, list[str]]] = []
    for label, block in arms:
        w.start_block(label)
        w.write_block(block)
        paths.append((w.label, _yielded_values(w, block, op, len(op.output))))
        w.emit(f"br label %{end}")
    w.start_block(end)
    join_paths(w, op.output, paths)


class _Header:
    """The first block of a loop: a phi for each carried value, from before the loop and from the loop's end."""

    def __init__(self, w: FunctionWriter, label: str, carried: Sequence[SSAValue], starts: Sequence[str]) -> None:
        before = w.label
        w.emit(f"br label %{label}")
        w.start_block(label)
        self._label = label
        self._writer = w
        self._phis: list[tuple[int, str]] = []
        for value, start in zip(carried, starts, strict=True):
            name = w.fresh()
            w.bind(value, name)
            self._phis.append((w.reserve(), f"{name} = phi {w.type(value)} [ {start}, %{before} ], "))

    def close(self, values: Sequence[str], unroll: int | None) -> None:
        """Branches back, handing on the values of the next iteration. A loop with a hint is unrolled as `unroll` says;
        LLVM leaves all others as they are (see `nvptx`), and the assembler decides.
        """
        w = self._writer
        for (slot, text), value in zip(self._phis, values, strict=True):
            w.fill(slot, f"{text}[ {value}, %{w.label} ]")
        hint = "" if unroll is None else f", !llvm.loop {w.module.loop(unroll)}"
        w.emit(f"br label %{self._label}{hint}")


def _for(w: FunctionWriter, op: scf.ForOp) -> None:
    n = w.fresh("")
    body, end = f"body{n}", f"endfor{n}"
    block = op.body.block
    counter = block.args[0]
    header = _Header(w, f"for{n}", block.args, [w.ref(op.lb), *(w.ref(value) for value in op.iter_args)])
    more = w.temp(f"icmp slt {w.typed(counter)}, {w.ref(op.ub)}")
    w.emit(f"br i1 {more}, label %{body}, label %{end}")
    w.start_block(body)
    w.write_block(block)
    values = _yielded_values(w, block, op, len(op.iter_args))
    following = w.temp(f"add {w.typed(counter)}, {w.ref(op.step)}")
    header.close([following, *values], unroll_count(op))
    w.start_block(end)
    for result, carried in zip(op.res, block.args[1:], strict=True):
        w.bind(result, w.ref(carried))


def _while(w: FunctionWriter, op: scf.WhileOp) -> None:
    n = w.fresh("")
    body, end = f"do{n}", f"endwhile{n}"
    before, after = op.before_region.block, op.after_region.block
    header = _Header(w, f"while{n}", before.args, [w.ref(value) for value in op.arguments])
    w.write_block(before)
    condition = _last(before, op, scf.ConditionOp)
    assert isinstance(condition, scf.ConditionOp)
    passed = [w.ref(value) for value in condition.args]
    if len(passed) != len(after.args) or len(passed) != len(op.res):
        raise LoweringError(
            Code.EMIT_UNSUPPORTED, f"'scf.condition' passes {len(passed)} values, the loop has {len(op.res)}", op
        )
    w.emit(f"br i1 {w.ref(condition.condition)}, label %{body}, label %{end}")
    w.start_block(body)
    for argument, result, text in zip(after.args, op.res, passed, strict=True):
        w.bind(argument, text)
        w.bind(result, text)
    w.write_block(after)
    header.close(_yielded_values(w, after, op, len(op.arguments)), None)
    w.start_block(end)


def nothing(w: FunctionWriter, op: Operation) -> None:
    """A terminator: the operation that owns the region reads its operands."""


CONTROL: tuple[tuple[type[Operation], Rule], ...] = (
    rule(scf.IfOp, _if),
    rule(scf.ForOp, _for),
    rule(scf.WhileOp, _while),
    (scf.YieldOp, nothing),
    (scf.ConditionOp, nothing),
)
