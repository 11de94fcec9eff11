# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text, for instructions without an operation (Inline PTX Assembly in CUDA)."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import prop_def, traits_def, var_operand_def, var_result_def
from xdsl.utils.exceptions import VerifyException

from ..definitions import irdl_op_definition
from .base import PtxOp, make_constraint
from .effects import Unit, by_thread, changes

MAX_TEXT = 4096
"""The longest text, in characters."""

HEAP_CALLS: Mapping[str, str] = MappingProxyType({
    "malloc": "call.uni ($0), malloc, ($1);", "free": "call.uni free, ($0);",
})  # fmt: skip
"""The functions of a heap in global memory, and their texts, whose last operand is the heap's address (CUDA C++
Programming Guide, Dynamic Global Memory Allocation and Operations).
"""

DISCARD = "discard.global.L2 [$0], 128;"
"""The text that makes 128 bytes of global memory undefined (PTX ISA, discard)."""

REGISTER_TEXTS: Mapping[str, str] = MappingProxyType({
    "is_explicit_cluster": "{.reg .pred p; mov.pred p, %is_explicit_cluster; selp.u32 $0, 1, 0, p;}",
    **{
        name: f"mov.u64 $0, %{name};" for name in ("clock64", "globaltimer", "gridid", "current_graph_exec")
    },
    **{
        name: f"mov.u32 $0, %{name};"
        for name in (
            "clock", "clock_hi", "globaltimer_lo", "globaltimer_hi", "warpid", "nwarpid", "smid", "nsmid",
            "dynamic_smem_size", *(f"envreg{number}" for number in (0, *range(3, 32))),
        )
    },
})  # fmt: skip
"""The texts that read special registers without an operation, as integers (PTX ISA, Special Registers)."""

_REFUSAL = "refusal"
_PLACES = re.compile(r"\$(\d+|\$)?")


@irdl_op_definition
class InlineOp(PtxOp):
    """`%r = ptx.inline "lop3.b32 $0, $1, $2, $3, 0x96;" constraints "=r,r,r,r"(%a, %b, %c) : (i32, i32, i32) -> (i32)`:
    instructions as text (Inline PTX Assembly in CUDA).

    `$0` and so on stand for the registers of the results, then of the operands; `$$` for a dollar sign. Constraints are
    CUDA's, one for each register, `=` before those of results: h, r, l for 16, 32 and 64 bits, f and d for f32 and f64.
    The text may read and write memory. The simulator executes the operations of its instructions; it rejects a text
    with branches or with an instruction that is not supported, unless it has a function that computes the same.
    """

    name = "ptx.inline"
    text = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    args = var_operand_def()
    res = var_result_def()
    traits = traits_def(by_thread(changes(Unit.ANYTHING)))
    assembly_format = (
        "$text `constraints` $constraints `(` $args `)` attr-dict `:` `(` type($args) `)` `->` `(` type($res) `)`"
    )

    def __init__(self, text: str, constraints: str, args: "list[SSAValue]", result_types: "list[Attribute]") -> None:
        super().__init__(
            operands=[args],
            properties={"text": StringAttr(text), "constraints": StringAttr(constraints)},
            result_types=[result_types],
        )

    @property
    def refusal(self) -> str:
        """The reason why there are no operations for the text; empty if nobody has asked."""
        reason = self.attributes.get(_REFUSAL)
        return reason.data if isinstance(reason, StringAttr) else ""

    def refuse(self, reason: str) -> None:
        """Notes that reason."""
        self.attributes[_REFUSAL] = StringAttr(reason)

    def mnemonic(self) -> None:
        """None: the text may be any number of instructions."""

    def verify_(self) -> None:
        text = self.text.data
        if not text.strip() or len(text) > MAX_TEXT or any(c not in "\t\n" and not " " <= c <= "~" for c in text):
            raise VerifyException(f"the text is ASCII of 1 to {MAX_TEXT} characters")
        if "volatile" in text:
            raise VerifyException("the text has a volatile access; ld.relaxed.sys and st.relaxed.sys are the same")
        registers = [*self.res, *self.args]
        for place in _PLACES.finditer(text):
            if place[1] is None:
                raise VerifyException("a '$' is followed by the number of a register, or by another '$'")
            if place[1] != "$" and int(place[1]) >= len(registers):
                raise VerifyException(f"the text names ${place[1]}, but there are {len(registers)} registers")
        given = [letter.strip() for letter in self.constraints.data.split(",")] if self.constraints.data else []
        if len(given) != len(registers):
            raise VerifyException(f"there are {len(given)} constraints for {len(registers)} registers")
        for index, (value, letter) in enumerate(zip(registers, given, strict=True)):
            self._check(index, value.type, letter)

    def _check(self, index: int, type: Attribute, letter: str) -> None:
        wanted = make_constraint(type)
        if wanted is None:
            raise VerifyException(f"${index} is of type {type}, which no register holds; convert it")
        wanted = f"={wanted}" if index < len(self.res) else wanted
        if letter != wanted:
            raise VerifyException(f"${index} is of type {type}, which is {wanted!r}, not {letter!r}")
