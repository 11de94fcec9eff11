# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: instructions of warpgroups, as inline assembly.

Accumulators are in fragments, whose loads and stores LLVM turns into registers: those that the assembly takes are those
that it returns. The same holds for a fence and a wait, although they name no register: LLVM moves no access to the
fragments that they protect across them.
"""

from collections.abc import Sequence

from xdsl.ir import Operation

from ...base.element_types import BY_PTX, ElementType
from ...dialects import ptx
from ...layout.atoms.mma_sync import registers
from ...layout.atoms.ptx_text import write_wgmma
from .inline_assembly import call_ordered, effect, ordered
from .writer import FunctionWriter, Rule, rule


class Words:
    """Words of fragments that an instruction reads and, where it is `returned` them, writes."""

    def __init__(self, w: FunctionWriter) -> None:
        self._w = w
        self.types: list[str] = []
        self.letters: list[str] = []
        self.values: list[str] = []
        self._places: list[tuple[str, str]] = []

    def add(self, pointer: str, count: int, element: ElementType, in_floats: bool) -> None:
        """Adds `count` words from `pointer` on, of numbers of a type; `in_floats` takes registers of f32.

        Words have the type of their numbers, so that LLVM converts and packs all of a word at once. From an i32 that is
        loaded, or cast from them, it would assemble the halves one by one.
        """
        per_word = 32 // element.bits
        word = element.llvm if per_word == 1 else f"<{per_word} x {element.llvm}>" if per_word <= 4 else "i32"
        type = word if per_word > 1 or in_floats else "i32"
        for index in range(count):
            place = self._w.temp(f"getelementptr i8, ptr {pointer}, i32 {4 * index}") if index else pointer
            value = self._w.temp(f"load {word}, ptr {place}, align 4")
            self._places.append((place, word))
            self.types.append(type)
            self.letters.append("f" if in_floats else "r")
            self.values.append(f"{type} {value if word == type else self._w.temp(f'bitcast {word} {value} to {type}')}")

    def tie(self, text: str, letters: Sequence[str] = (), given: Sequence[str] = ()) -> None:
        """Writes assembly that takes and returns the words, and takes other operands after them."""
        w, count = self._w, len(self.values)
        returned = self.types[0] if count == 1 else f"{{ {', '.join(self.types)} }}"
        constraints = [*(f"={letter}" for letter in self.letters), *map(str, range(count)), *letters]
        call = w.temp(f"{effect(text, constraints, [*self.values, *given], returned)} convergent nounwind")
        for index, (type, (place, word)) in enumerate(zip(self.types, self._places, strict=True)):
            value = call if count == 1 else w.temp(f"extractvalue {returned} {call}, {index}")
            if word != type:
                value = w.temp(f"bitcast {type} {value} to {word}")
            w.emit(f"store {word} {value}, ptr {place}, align 4")


def _mma_async(w: FunctionWriter, op: ptx.WgmmaMmaAsyncOp) -> None:
    held = registers(op.atom, "D")
    d, a = Words(w), Words(w)
    d.add(w.ref(op.d), held.count, BY_PTX[op.atom.types[0]], held.kind == "f32")
    if "A" not in op.described:
        a.add(w.ref(op.a), registers(op.atom, "A").count, BY_PTX[op.atom.types[1]], in_floats=False)
    else:
        a.letters, a.values = ["l"], [w.typed(op.a)]
    scale = f"i32 {w.temp(f'zext {w.typed(op.scale_d)} to i32')}"
    first = 2 * held.count
    last, more = first + len(a.values) + 1, ""
    given = [*a.values, w.typed(op.b), scale]
    if op.metadata is not None and op.select is not None:
        given.append(w.typed(op.metadata))
        more = f"${last + 1}, {op.select.value.data}"
    instruction = write_wgmma(op.atom, held.count, first, len(a.types), "p", op.signs, metadata=more)
    lines = ("{", ".reg .pred p;", f"setp.ne.b32 p, ${last}, 0;", instruction, "}")
    d.tie("\n\t".join(lines), [*a.letters, "l", "r", *(["r"] if more else [])], given)


def _call_tied(w: FunctionWriter, op: Operation, text: str) -> None:
    words = Words(w)
    for fragment in w.tied.get(op, ()):
        if w.has(fragment.alloc.result):  # a fragment that a loop allocates behind this is not in use here
            count, element = fragment.alloc.bytes.value.data // 4, fragment.element
            words.add(w.ref(fragment.alloc.result), count, element, in_floats=element.llvm == "float")
    if words.values:
        words.tie(text)
    else:
        _alone(w, text)


def _fence(w: FunctionWriter, op: ptx.WgmmaFenceOp) -> None:
    _call_tied(w, op, f"{op.mnemonic()};")


def _wait_group(w: FunctionWriter, op: ptx.WgmmaWaitGroupOp) -> None:
    _call_tied(w, op, f"{op.mnemonic()} {op.n.value.data};")


def _setmaxnreg(w: FunctionWriter, op: ptx.SetMaxNRegOp) -> None:
    _alone(w, f"{op.mnemonic()} {op.n.value.data};")


def _alone(w: FunctionWriter, text: str) -> None:
    w.emit(f"{call_ordered(w, text, '', ())} convergent nounwind")


PTX_WGMMA: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.WgmmaFenceOp, _fence),
    (ptx.WgmmaCommitGroupOp, ordered(convergent=True)),
    rule(ptx.WgmmaWaitGroupOp, _wait_group),
    rule(ptx.WgmmaMmaAsyncOp, _mma_async),
    rule(ptx.SetMaxNRegOp, _setmaxnreg),
)
