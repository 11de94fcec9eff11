# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the operand that a fault concerns was computed: the index that leads outside, the mask that names the wrong
lanes. The mistake is often there, and not at the access.
"""

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ...base.errors import Code
from ...dialects import ptx, tile
from .faults import SimulationError, Site, site_of

_SCALES = (arith.MuliOp, arith.ShLIOp)
_COMPUTES = (*_SCALES, arith.AddiOp, arith.SubiOp, arith.SelectOp)
_PASSES_ON = (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, ptx.PtrAddOp)
_MOST = 64
"""The most values that are looked at."""


def origin_of(kernel: Operation, fault: SimulationError) -> tuple[Site, str] | None:
    """The operation that computes the index or the mask of a faulty one, and its role in words. None where that is on
    the line of the fault, or not an operation of arithmetic.
    """
    if fault.site is None or not fault.site.file:
        return None
    op = next((op for op in kernel.walk() if site_of(op) == fault.site), None)
    if op is None:
        return None
    given, role = _operands(op, fault.code)
    found = list(_computed(given, fault.site))
    if not found:
        return None
    latest = max(found, key=lambda owner: site_of(owner).line)
    return site_of(next((owner for owner in found if not _scales(owner)), latest)), role


def _operands(op: Operation, code: Code) -> tuple[Sequence[SSAValue], str]:
    """The operands of a faulty operation that cause the fault, and the values that come from them."""
    if code is Code.SIM_CONVERGENCE:
        mask = getattr(op, "mask", None)  # an attribute where it is constant
        given: list[SSAValue] = [mask] if isinstance(mask, SSAValue) else []
        return given, "the mask comes from here"
    if isinstance(op, tile.LoadOp | tile.StoreOp):
        computed = [value for value in op.coords if not isinstance(value.owner, arith.ConstantOp)]
        # of several, the fault does not say which leads outside
        return computed if len(computed) == 1 else (), "the coordinate comes from here"
    return [value for value in op.operands if isinstance(value.type, ptx.PtrType)], "the address comes from here"


def _scales(op: Operation) -> bool:
    """Whether an operation multiplies by a constant, as those do that make bytes of an index."""
    return isinstance(op, _SCALES) and any(isinstance(value.owner, arith.ConstantOp) for value in op.operands)


def _computed(values: Sequence[SSAValue], fault: Site) -> Iterator[Operation]:
    """The operations on other lines than the fault from which values come, the nearest first."""
    waiting = list(values)
    for _ in range(_MOST):
        if not waiting:
            return
        value = waiting.pop(0)
        owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
        is_number = isinstance(owner, scf.ForOp) or (isinstance(owner, arith.ConstantOp) and value in values)
        elsewhere = owner is not None and site_of(owner).file and site_of(owner).line != fault.line
        if owner is not None and elsewhere and (is_number or isinstance(owner, _COMPUTES)):
            yield owner
            if not _scales(owner):
                continue
        if isinstance(owner, (*_PASSES_ON, *_COMPUTES)):
            waiting += owner.operands
