# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verifies a module and reports every operation that breaks a rule, not only the first."""

from collections.abc import Iterator, Set
from itertools import islice

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, TilefoldError
from ...dialects.kernel import ONE_BLOCK, KernelOp
from .diagnostics import Diagnostic, ProgramError, Severity, place_of
from .rule_errors import broken_rule
from .source import Source

MAX_REPORTED = 20
"""Most errors reported at once."""

MAX_BLOCKS = 500
"""Most blocks of one region."""


def verify_program(module: ModuleOp, source: Source | None = None) -> None:
    """Checks every operation and that each value is defined before its uses. Raises ProgramError with all faults.

    `source` is the text that the module came from; its lines are shown where locations name it.
    """
    faults = _check_control_flow(module, source)  # first: xDSL's scf.while does not raise a VerifyException
    if not faults:
        try:
            module.verify()
        except (VerifyException, ValueError):
            faults = list(islice(_broken_rules(module, source), MAX_REPORTED))
        faults += _early_uses(module, source)
    if faults:
        raise ProgramError(faults[:MAX_REPORTED])


def _broken_rules(module: ModuleOp, source: Source | None) -> Iterator[Diagnostic]:
    """Each operation that does not verify by itself, outermost first."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except (VerifyException, ValueError) as error:
            yield refusal_of(op, error, source)
        for region in op.regions:
            yield from _empty_blocks(op, list(region.blocks), source)


def _empty_blocks(op: Operation, blocks: list[Block], source: Source | None) -> Iterator[Diagnostic]:
    for block in blocks:
        if block.first_op is None:
            try:
                block.verify()
            except VerifyException as error:
                yield refusal_of(op, error, source)


def refusal_of(op: Operation, error: Exception, source: Source | None) -> Diagnostic:
    """The diagnostic for an operation that a verifier refuses, with the code and hint of the error that caused it."""
    parent = op.parent_op()
    code = Code.IR_VERIFY
    text, hint = broken_rule(str(error), parent.name if parent else "")
    if isinstance(cause := error.__cause__, TilefoldError):
        code, hint = cause.code, cause.hint
    message = f"'{op.name}': {text}"
    return Diagnostic(Severity.ERROR, message, place_of(op.location, source), code, hint)


def _check_control_flow(module: ModuleOp, source: Source | None) -> list[Diagnostic]:
    """Checks that xDSL leaves out: the operands of terminators in scf regions, and the number of blocks."""
    faults: list[Diagnostic] = []
    for op in module.walk():
        for region in op.regions:
            if len(region.blocks) > MAX_BLOCKS:
                text = f"'{op.name}': {len(region.blocks)} blocks; at most {MAX_BLOCKS} are accepted"
                faults.append(Diagnostic(Severity.ERROR, text, place_of(op.location, source), Code.IR_TOO_LARGE))
        if isinstance(op, KernelOp) and len(op.body.blocks) > 1:
            faults.append(refusal_of(op, VerifyException(ONE_BLOCK), source))
        match op:
            case scf.IfOp() if len(op.regions) == 2:
                if op.results and not op.false_region.blocks:
                    faults.append(refusal_of(op, VerifyException("results need an else"), source))
                wanted = [(region, op.result_types) for region in op.regions if region.blocks]
            case scf.WhileOp() if [len(region.blocks) for region in op.regions] == [1, 1]:
                test, body = op.before_region.block, op.after_region.block
                wanted = [(op.before_region, [i1, *body.arg_types]), (op.after_region, test.arg_types)]
                if list(body.arg_types) != list(op.result_types):
                    faults.append(
                        refusal_of(op, VerifyException("the body's arguments and the results differ in type"), source)
                    )
                if list(test.arg_types) != list(op.operand_types):
                    error = VerifyException("the condition's arguments and the operands differ in type")
                    faults.append(refusal_of(op, error, source))
            case _:
                continue
        for region, types in wanted:
            end = region.blocks[-1].last_op
            if end is None or list(end.operand_types) != list(types):
                lists = [f"({', '.join(map(str, side))})" for side in (types, end.operand_types if end else ())]
                error = VerifyException(f"expected operands of types {lists[0]}, got {lists[1]}")
                faults.append(refusal_of(end or op, error, source))
    return faults


def _early_uses(module: ModuleOp, source: Source | None) -> list[Diagnostic]:
    """Uses of a value that its definition does not dominate (xDSL resolves forward references without that check)."""
    faults: list[Diagnostic] = []
    _check_uses(module, frozenset(), source, faults)
    return faults


def _check_uses(op: Operation, visible: Set[SSAValue], source: Source | None, faults: list[Diagnostic]) -> None:
    for region in op.regions:
        inherited = frozenset[SSAValue]() if op.has_trait(IsolatedFromAbove) else visible
        dominance = DominanceInfo(region) if len(region.blocks) > 1 else None
        for block in region.blocks:
            seen = {*inherited, *block.args}
            if dominance is not None:
                for other in region.blocks:
                    if dominance.strictly_dominates(other, block):
                        seen.update(other.args, *(inner.results for inner in other.ops))
            for inner in block.ops:
                for operand in dict.fromkeys(inner.operands):
                    if operand not in seen:
                        faults.append(_early_use(inner, operand, source))
                if inner.regions:
                    _check_uses(inner, seen, source, faults)
                seen.update(inner.results)


def _early_use(op: Operation, operand: SSAValue, source: Source | None) -> Diagnostic:
    name = f"%{operand.name_hint}" if operand.name_hint else "a value"
    return Diagnostic(
        Severity.ERROR,
        f"'{op.name}': {name} is used before it is defined, or outside its scope",
        place_of(op.location, source),
        Code.IR_USE_BEFORE_DEFINITION,
    )
