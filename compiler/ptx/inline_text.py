# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text in a kernel, `ptx.inline`, as the operations of its instructions (Inline PTX Assembly in CUDA)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, cf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...base.errors import TilefoldError
from ...dialects.ptx import InlineOp
from .parser import parse_ptx
from .syntax import PtxError
from .translate import locations, translate

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


def read_texts(module: ModuleOp, is_known: Callable[[InlineOp], bool]) -> ModuleOp:
    """A program with operations in place of its PTX as text, in a copy; the program itself if it has none to read.

    Texts that are known stay. So does one with branches, or with an instruction that is not supported: the operation
    then says why, `InlineOp.refusal`.
    """
    known = [is_known(op) for op in _texts(module)]
    if all(known):
        return module
    result = module.clone()
    read: dict[tuple[object, ...], Region | str] = {}
    for op, stays in zip(_texts(result), known, strict=True):
        if stays:
            continue
        types = [value.type for value in (*op.res, *op.args)]
        key = op.text, op.constraints, *types, *map(_constant, op.args)
        body = read.get(key)
        if body is None:
            read[key] = body = _body(op)
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
    results = list(end.operands)
    end.detach()
    end.erase()
    Rewriter.inline_block(block, InsertPoint.before(op), list(op.args))
    Rewriter.replace_op(op, [], results)


def _body(op: InlineOp) -> Region | str:
    """The operations of a text, in a block that takes the operands and yields the results; or why there are none."""
    text = _Text.of(op)
    try:
        module = parse_ptx(text.kernel(), _FILE)
        types, wanted = [value.type for value in op.args], [value.type for value in op.res]
        results = dict(zip(text.results, wanted, strict=True))
        body = translate(module, module.functions["text"], types, _FILE, locations({}, _FILE), results=results)
    except TilefoldError as error:
        return error.problem if isinstance(error, PtxError) else error.message
    entry, *others = body.region.blocks
    if len(others) != 1:
        return "it has branches"
    if body.variables or body.shared_bytes:
        return "it declares memory"
    branch = entry.last_op
    assert isinstance(branch, cf.BranchOp), "the block of the parameters goes on to that of the instructions"
    Rewriter.erase_op(branch)
    Rewriter.inline_block(others[0], InsertPoint.at_end(entry))
    return body.region


@dataclass(frozen=True, slots=True)
class _Text:
    """A text with its registers: for each a name, its type, and the number of an integer constant, which may stand
    where PTX wants no register.
    """

    text: str
    names: Sequence[str]
    types: Sequence[str]
    constants: Sequence[int | None]
    result_count: int

    @staticmethod
    def of(op: InlineOp) -> "_Text":
        """That of an operation."""
        letters = [letter.strip().removeprefix("=") for letter in op.constraints.data.split(",") if letter.strip()]
        names = [f"%text{number}" for number in range(len(letters))]
        constants = [*(None for _ in op.res), *map(_constant, op.args)]
        return _Text(op.text.data, names, [_TYPES[letter] for letter in letters], constants, len(op.res))

    @property
    def results(self) -> Sequence[str]:
        """The names of the registers of the results."""
        return self.names[: self.result_count]

    def kernel(self) -> str:
        """A kernel of the text whose parameters are the operands."""
        operands = list(zip(self.types, self.names, strict=True))[self.result_count :]
        declared = [f".reg .{type} {name};" for type, name in zip(self.types, self.names, strict=True)]
        loaded = [f"ld.param.{type} {name}, [of_{name[1:]}];" for type, name in operands]
        return _KERNEL.format(
            parameters=", ".join(f".param .{type} of_{name[1:]}" for type, name in operands),
            registers="\n".join([*declared, *loaded]),
            text=_PLACE.sub(self._written, self.text) + ";",
        )

    def _written(self, place: re.Match[str]) -> str:
        if place[1] == "$":
            return "$"
        number = self.constants[int(place[1])]
        return self.names[int(place[1])] if number is None else str(number)


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None
