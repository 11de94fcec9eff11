# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what tilefold computes with a recorded case.

Layouts must be equal as text; a difference only in the strides of size-1 modes passes and is counted apart.
Slices of swizzled tensors are compared as functions, and register fragments made like such slices by the
sizes of their modes, if they are compact: CuTe turns the slice into a plain layout first, which reorders
registers. A case marked as untrusted passes if tilefold refuses it or computes the right function, and so does
a product in which CuTe puts two elements at one index. A case that CuTe refuses passes if tilefold refuses it.
"""

from dataclasses import dataclass
from typing import Any, cast

from tilefold.base.errors import TilefoldError
from tilefold.layout.algebra.coalesce import filter_layout
from tilefold.layout.algebra.core import ComposedLayout, Layout
from tilefold.layout.algebra.scalars import value_of

from .operations import OPERATIONS, is_right
from .record import Case, Tuple, parse, show

_PARTITION = {"idx", "fnv1a64"}
_MALFORMED = {"((4,8),(32,2)):((512,1),((16,8)))": "((4,8),(32,2)):((512,1),(16,8))"}
"""Layouts of CuTe whose stride is nested differently from the shape, with those of the same numbers."""


@dataclass(frozen=True)
class Verdict:
    """The outcome for one case."""

    case_id: str
    passed: bool
    message: str = ""
    size_one_strides: bool = False


def judge(case: Case) -> Verdict:
    """Runs one case."""
    operation = OPERATIONS.get(case.op)
    if operation is None:
        return Verdict(case.id, False, f"unknown operation {case.op}")
    try:
        outputs = operation(case.inputs, case.dynamic)
    except TilefoldError as error:
        if case.outputs is None or not case.trusted or _collides(case):
            return Verdict(case.id, True)
        return Verdict(case.id, False, f"{case.inputs} refused: {error}")
    if case.outputs is None and case.trusted:
        return Verdict(case.id, False, f"{case.inputs} should be refused, gives {_shown(outputs, case.dynamic)}")
    if not case.trusted:
        return Verdict(case.id, is_right(case.op, case.inputs, outputs), f"{case.inputs}: wrong function")
    exact = relaxed = True
    wrong = ""
    for key, want in expected(case.inputs, case.outputs).items():
        got = outputs.get(key)
        same, almost = _equal(want, got, case.dynamic)
        if key == "fragment" and not almost and _is_swizzled(case.inputs):
            same = almost = _equal_registers(parse(want, case.dynamic), got)
        exact, relaxed = exact and same, relaxed and almost
        if not almost and not wrong:
            wrong = f"{case.inputs}: {key} should be {want}, is {_shown(got, case.dynamic)}"
    return Verdict(case.id, relaxed, wrong, relaxed and not exact)


def _collides(case: Case) -> bool:
    """Whether the recorded product of a layout puts two elements at one index, though the layout does not."""
    block, product = case.inputs.get("layout"), (case.outputs or {}).get("result")
    is_product = case.op.endswith(("_product", "tile_to_shape"))
    if not is_product or not isinstance(block, str) or not isinstance(product, str):
        return False
    return _is_injective(parse(block, case.dynamic)) and not _is_injective(parse(product, case.dynamic))


def _is_injective(layout: Any) -> bool:
    size = value_of(layout.size)
    return len({value_of(layout(i)) for i in range(size)}) == size


def expected(inputs: dict[str, Any], outputs: Any) -> Any:
    """The outputs to compare: of swizzled slices only the indices, since their layout has several right
    forms.
    """
    if isinstance(outputs, list):
        return [expected(inputs, x) for x in cast(list[Any], outputs)]
    if not isinstance(outputs, dict):
        return outputs
    fields = cast(dict[str, Any], outputs)
    if "values_without_offset" in fields:
        return {"idx": [fields["offset"] + v for v in fields["values_without_offset"]]}
    if "idx" in fields and _is_swizzled(inputs):
        return {k: v for k, v in fields.items() if k in _PARTITION}
    return {k: _unswizzled(inputs, v) if k == "layout" else expected(inputs, v) for k, v in fields.items()}


def _unswizzled(inputs: dict[str, Any], text: Any) -> Any:
    """The layout of a part of shared memory without the swizzle that the input has: TMA copies swizzle addresses,
    and the offsets of their instructions are recorded without it.
    """
    swizzle, _, rest = str(inputs.get("smem", "")).partition(" o ")
    parts = str(text).split(" o ")
    swizzles_addresses = len(parts) == 3 and parts[0] == swizzle and parts[1] in ("0", rest.partition(" o ")[0])
    return parts[2] if swizzles_addresses else text


def _is_swizzled(inputs: dict[str, Any]) -> bool:
    return any(isinstance(x, str) and x.startswith("Sw") for x in inputs.values())


def _equal_registers(want: Layout, got: Any) -> bool:
    """Whether two fragments have modes of the same sizes, the first equal, and `got` is compact."""
    sizes = [m.size for m in want] == [m.size for m in got]
    first = all(want[0](i) == got[0](i) for i in range(got[0].size))
    kept = filter_layout(got)
    return sizes and first and sorted(kept(i) for i in range(kept.size)) == list(range(kept.size))


def _shown(x: Any, dynamic: bool) -> Any:
    if isinstance(x, dict):
        return {k: _shown(v, dynamic) for k, v in cast(dict[str, Any], x).items()}
    if isinstance(x, list):
        return [_shown(v, dynamic) for v in cast(list[Any], x)]
    return x if isinstance(x, str) else show(x, dynamic)


def _equal(want: Any, got: Any, dynamic: bool) -> tuple[bool, bool]:
    """Whether two outputs are equal, exactly and but for strides of size-1 modes."""
    if isinstance(want, list):
        wants, gots = cast(list[Any], want), cast(list[Any], got)
        if not isinstance(got, list) or len(gots) != len(wants):
            return False, False
        pairs = [_equal(w, g, dynamic) for w, g in zip(wants, gots, strict=True)]
        return all(p[0] for p in pairs), all(p[1] for p in pairs)
    if isinstance(want, dict):
        pairs = [_equal(w, got.get(k), dynamic) for k, w in cast(dict[str, Any], want).items()]
        return all(p[0] for p in pairs), all(p[1] for p in pairs)
    if isinstance(want, int):
        value = getattr(got, "value", got)
        return value == want, value == want
    text = got if isinstance(got, str) else show(got, dynamic)
    if text == want:
        return True, True
    if ":" not in want or isinstance(got, str):
        return False, False
    if (malformed := _MALFORMED.get(want)) is not None:
        return False, text == malformed
    if "_ptr[" in want:
        return False, False
    relaxed = show(normal(parse(want, dynamic)), dynamic) == show(normal(got), dynamic)
    return False, relaxed


def normal(x: Any) -> Any:
    """`x` with stride 0 in all modes of size 1."""
    if isinstance(x, ComposedLayout):
        return ComposedLayout(x.inner, x.offset, normal(x.outer))
    if isinstance(x, Layout):
        return Layout(x.shape, _normal_stride(x.shape, x.stride))
    return tuple([normal(y) for y in cast(Tuple, x)]) if isinstance(x, tuple) else x


def _normal_stride(shape: Any, stride: Any) -> Any:
    if isinstance(shape, tuple):
        return tuple([_normal_stride(s, d) for s, d in zip(cast(Tuple, shape), stride, strict=True)])
    return 0 if value_of(shape) == 1 else stride
