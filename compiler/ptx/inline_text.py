# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text in a kernel, `ptx.inline`, as the operations of its instructions (Inline PTX Assembly in CUDA)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects import arith, cf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...base.errors import TilefoldError
from ...dialects.ptx import InlineOp
from .parser import parse_ptx
from .places import locations
from .syntax import PtxError
from .translate import translate

_FILE = "the text"
_TYPES: Mapping[str, str] = {"h": "b16", "r": "b32", "l": "b64", "f": "f32", "d": "f64"}
"""The types of registers by the letters of constraints."""
_PLACE = re.compile(r"\$(\d+|\$)")
_KERNEL = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry text({parameters})
{{
{registers}
{text}
ret;
}}
"""


def read_texts(module: ModuleOp, stays: Callable[[InlineOp], bool]) -> ModuleOp:
    """A program with operations in place of its PTX as text, but for texts that stay, in a copy; the program itself if
    it has no others.

    A text with branches stays too, or one with an instruction that is not supported: the operation then says why,
    `InlineOp.refusal`.
    """
    if all(map(stays, _texts(module))):
        return module
    result = module.clone()
    for op in _texts(result):
        if stays(op):
            continue
        body = _body(_Text.of(op))
        if isinstance(body, Region):
            _replace(op, body)
        else:
            op.refuse(body)
    return result


def _texts(module: ModuleOp) -> Sequence[InlineOp]:
    return [op for op in module.walk() if isinstance(op, InlineOp)]


def _replace(op: InlineOp, body: Region) -> None:
    """Puts a copy of the operations of a body in place of a text."""
    block = body.clone().block
    for inner in block.walk():
        inner.location = op.location
    end = block.last_op
    assert end is not None, "the body yields the results"
    Rewriter.inline_block(block, InsertPoint.before(op), list(op.args))
    results = list(end.operands)
    Rewriter.erase_op(end)
    Rewriter.replace_op(op, [], results)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text with the letters of its registers, those of results first, the types of results and of operands, and the
    numbers of operands that are integer constants, which may stand where PTX wants no register.
    """

    text: str
    letters: tuple[str, ...]
    results: tuple[Attribute, ...]
    operands: tuple[Attribute, ...]
    constants: tuple[int | None, ...]

    @staticmethod
    def of(op: InlineOp) -> "_Text":
        """That of an operation."""
        letters = [letter.strip().removeprefix("=") for letter in op.constraints.data.split(",") if letter.strip()]
        results, operands = (tuple([value.type for value in values]) for values in (op.res, op.args))
        return _Text(op.text.data, tuple(letters), results, operands, tuple(map(_constant, op.args)))

    @property
    def names(self) -> Sequence[str]:
        """The names of the registers."""
        return [f"%text{number}" for number in range(len(self.letters))]

    def kernel(self) -> str:
        """A kernel of the text whose parameters are the operands."""
        registers = [(_TYPES[letter], name) for letter, name in zip(self.letters, self.names, strict=True)]
        operands = registers[len(self.results) :]
        declared = [f".reg .{type} {name};" for type, name in registers]
        loaded = [f"ld.param.{type} {name}, [of_{name[1:]}];" for type, name in operands]
        return _KERNEL.format(
            parameters=", ".join(f".param .{type} of_{name[1:]}" for type, name in operands),
            registers="\n".join([*declared, *loaded]),
            text=_PLACE.sub(self._written, self.text) + ";",
        )

    def _written(self, place: re.Match[str]) -> str:
        if place[1] == "$":
            return "$"
        at = int(place[1])
        number = None if at < len(self.results) else self.constants[at - len(self.results)]
        return self.names[at] if number is None else str(number)


@lru_cache(maxsize=256)  # launches have the same texts again and again
def _body(text: _Text) -> Region | str:
    """The operations of a text, in a block that takes the operands and yields the results; or why there are none."""
    try:
        module = parse_ptx(text.kernel(), _FILE)
        results = dict(zip(text.names, text.results, strict=False))
        place = locations({}, _FILE)
        body = translate(module, module.functions["text"], text.operands, _FILE, place, results=results)
    except TilefoldError as error:
        return error.problem if isinstance(error, PtxError) else error.message
    entry, *others = body.region.blocks
    if len(others) != 1:
        return "it has branches"
    if body.variables or body.shared_bytes:
        return "it declares memory"
    branch = entry.last_op
    assert isinstance(branch, cf.BranchOp), "the entry block branches to the block of instructions"
    Rewriter.erase_op(branch)
    Rewriter.inline_block(others[0], InsertPoint.at_end(entry))
    return body.region


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None
