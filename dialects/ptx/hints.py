# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cache hints as properties of operations."""

from xdsl.dialects.builtin import StringAttr

from ...layout.atoms.cache import check_hint as check_text
from ...layout.atoms.cache import hint_requires
from ...layout.errors import LayoutError
from ..errors import refuse
from .base import PtxOp


def check_hint(what: str, hint: str, allowed: frozenset[str]) -> None:
    """Refuses, as a verifier does, a hint that the instruction `what` does not have."""
    try:
        check_text(what, hint, allowed)
    except LayoutError as error:
        refuse(error)


def with_hint(op: PtxOp, hint: StringAttr | None) -> tuple[int, int]:
    """The oldest target that has the instruction and its hint: sm and ten times the PTX version."""
    sm, ptx = hint_requires("" if hint is None else hint.data)
    return max(op.MIN_SM, sm), max(op.MIN_PTX, ptx)
