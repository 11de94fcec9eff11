# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which instructions of a kernel a target does not have."""

from collections.abc import Iterator

from xdsl.ir import Operation

from ..target import Target
from .base import PtxOp


def unavailable(root: Operation, target: Target) -> Iterator[tuple[PtxOp, str]]:
    """The `ptx` operations under `root` that are newer than the target, each with a message that says so."""
    for op in root.walk():
        if isinstance(op, PtxOp) and not target.supports(op.MIN_SM, op.MIN_PTX):
            needs, has = (
                f"PTX ISA {version // 10}.{version % 10}" for version in (op.MIN_PTX, target.ptx_version)
            )
            what = op.mnemonic() or op.name
            yield op, f"{what} needs sm_{op.MIN_SM} and {needs}; the target is {target} with {has}"
