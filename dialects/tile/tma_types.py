# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The type of a tensor map with its TMA copies, and their rules for the tensors that they move."""

from functools import lru_cache

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...base.errors import Code, LayoutError
from ...base.target import MAX_CLUSTER
from ...layout.algebra.core import Layout, LayoutLike, Tiler, cosize, plain_layout
from ...layout.algebra.integers import is_static
from ...layout.algebra.inttuple import is_fully_static, leaves
from ...layout.atoms.tma import TMA_ATOMS
from ...layout.text.layouts import parse_layout, parse_tiler, to_text
from ...layout.tma.recipe import MAP_ELEMENTS, MapElement
from ...layout.tma.tensor_map import check_stored_rows, check_stride
from ...layout.tma.tma_copy import TmaCopy, make_tma_copy
from ..cute import LayoutAttr, TilerAttr, parse_quoted
from ..definitions import refusing
from ..element_types import element_of


@irdl_attr_definition
class TmaType(ParametrizedAttribute, TypeAttribute):
    """`!tile.tma<"SM90_TMA_LOAD", f16, "(4096,2048):(2048,1)", "S<3,3,3> o 0 o (128,64):(64,1)", "(128,64)">`: TMA
    copies by CuTe's name of the atom, the elements of the tensor in global memory, its layout, the layout of a tile in
    shared memory, and the tiler that cuts the tile.

    `..., multicast 2>`: two blocks of a cluster load a part of each tile for both; `..., as "tf32">`: the map has other
    elements than the tensor, of as many bits. The value is the tensor map.
    """

    name = "tile.tma"
    kind: StringAttr
    element_type: Attribute
    gmem: LayoutAttr
    smem: LayoutAttr
    tiler: TilerAttr
    multicast: IntAttr
    held: StringAttr

    @property
    def element(self) -> MapElement:
        """The elements of the map."""
        element = map_element(self.element_type, self.tma_copy.atom.reduction, self.held.data)
        assert element is not None, "the verifier checks this"
        return element

    @property
    def tma_copy(self) -> TmaCopy:
        """The TMA copies. `LayoutError` if no map describes the tensor, or none moves the tile."""
        layouts = self.gmem.data, self.smem.data, self.tiler.data
        return make_tma_copies(self.kind.data, self.element_type, *layouts, self.multicast.data, self.held.data)

    def verify(self) -> None:
        with refusing():
            _ = self.tma_copy

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.kind.data)
            printer.print_string(", ")
            printer.print_attribute(self.element_type)
            for part in (self.gmem.data, self.smem.data, self.tiler.data):
                printer.print_string(f', "{to_text(part)}"')
            if self.multicast.data != 1:
                printer.print_string(f", multicast {self.multicast.data}")
            if self.held.data:
                printer.print_string(f', as "{self.held.data}"')

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            kind = StringAttr(parser.parse_str_literal())
            parser.parse_punctuation(",")
            element = parser.parse_type()
            layouts: list[Attribute] = []
            for _ in range(2):  # in global and in shared memory
                parser.parse_punctuation(",")
                layouts.append(LayoutAttr(parse_quoted(parser, parse_layout)))
            parser.parse_punctuation(",")
            tiler = TilerAttr(parse_quoted(parser, parse_tiler))
            multicast, held = 1, ""
            more = parser.parse_optional_punctuation(",") is not None
            if more and parser.parse_optional_keyword("multicast") is not None:
                multicast = parser.parse_integer(allow_boolean=False, allow_negative=False)
                more = parser.parse_optional_punctuation(",") is not None
            if more:
                parser.parse_keyword("as")
                held = parser.parse_str_literal()
            return [kind, element, *layouts, tiler, IntAttr(multicast), StringAttr(held)]


_MOST_SHARED = 1 << 18
"""More bytes of shared memory than any block has."""


def map_element(type: Attribute, reduction: str = "", held: str = "") -> MapElement | None:
    """The map's element type for a tensor's element type and a reduction; None if maps have none. `held` names another
    element type of the same width for the map. Floats of 6 bits lie in bytes, or packed in a map that pads them.

    Integers of the IR have no sign; those of a map are signed where that makes a difference. Integers of 4 bits are
    copied as e2m1.
    """
    element = element_of(type)
    if element is None:
        return None
    bits = element.memory_bits
    if held and (held not in MAP_ELEMENTS or MAP_ELEMENTS[held].type.bits not in (bits, element.bits)):
        return None
    both = element.kind == "int" or not reduction
    packed = ("e2m1",) if bits == 4 and not reduction else ()
    names = (held,) if held else (element.ptx, f"u{bits}", *packed) if both else (element.ptx,)
    known = [MAP_ELEMENTS[name] for name in names if name in MAP_ELEMENTS]
    return next((made for made in known if not reduction or reduction in made.reductions), None)


@lru_cache(maxsize=256)
def make_tma_copies(
    kind: str, element: Attribute, gmem: LayoutLike, smem: LayoutLike, tiler: Tiler, multicast: int, as_: str = ""
) -> TmaCopy:
    """The TMA copies of a type by its parameters; kept, since every use of a map asks for them. Each mode has a
    dimension of the map, unless there are too many or the map needs longer rows: modes share dimensions only then.

    Raises `LayoutError` for an unknown atom (E0302), a tensor that no map describes (E0322) and a tile that no
    instruction moves (E0323).
    """
    facts, held = TMA_ATOMS.get(kind), map_element(element, held=as_)
    if facts is None:
        text = f"unknown TMA copy {kind[:80]!r}"
        raise LayoutError(Code.ATOM_UNKNOWN, text, f"TMA copies: {', '.join(TMA_ATOMS)}")
    if not isinstance(gmem, Layout):
        raise LayoutError(Code.TENSOR_MAP, f"no tensor map describes {gmem}: the layout is swizzled")
    if held is None:
        hint = "elements have whole bytes: see tile.recast"
        if as_:
            hint = f"elements of a map, of as many bits as the tensor's: {', '.join(MAP_ELEMENTS)}"
        text = f"no tensor map has elements of type {element}" + (f" as {as_}" if as_ else "")
        raise LayoutError(Code.TENSOR_MAP, text, hint)
    inner = plain_layout(smem)
    if not all(type(leaf) is int and leaf >= 0 for leaf in (*leaves(inner.shape), *leaves(inner.stride))):
        raise LayoutError(Code.TMA_BOX, f"the layout of a tile in shared memory is static, unlike {smem}")
    if max(inner.size, cosize(inner)) * held.type.bits > 8 * _MOST_SHARED:
        text = f"a tile {smem} of elements of {held.type.bits} bits does not fit in shared memory"
        raise LayoutError(Code.TMA_BOX, text, "use a smaller tile")
    if map_element(element, facts.reduction, as_) is None:
        text, hint = (
            f"{kind} does not combine elements of type {element}",
            "see cp.reduce.async.bulk.tensor in the PTX ISA",
        )
        raise LayoutError(Code.ATOM_OPERAND, text, hint)
    if not 1 <= multicast <= MAX_CLUSTER or (multicast > 1 and (not facts.multicast or facts.by_rows)):
        raise LayoutError(
            Code.TMA_BOX,
            f"{kind} does not load tiles for {multicast} blocks",
            f"SM90_TMA_LOAD_MULTICAST is for up to {MAX_CLUSTER} blocks, other loads are for one",
        )

    def make(*, merge: bool) -> TmaCopy:
        bits, placed = held.type.bits, 8 if held.padded else None
        made = make_tma_copy(
            facts, gmem, smem, tiler, val_bits=bits, multicast=multicast, merge=merge, smem_bits=placed
        )
        return _checked(made, held.padded)

    if facts.by_rows:
        return make(merge=False)
    try:
        apart = make(merge=False)
    except LayoutError as error:
        try:
            return make(merge=True)
        except LayoutError:
            raise error from None
    if not apart.shared_dimensions:
        return apart
    try:
        return make(merge=True)
    except LayoutError:
        return apart


def _checked(copy: TmaCopy, padded: bool) -> TmaCopy:
    """The copy. `LayoutError` where it is already known that the tensor has no map."""
    (extent, _), *outer = copy.dimensions(copy.gmem)
    for mode, (_, stride) in enumerate(outer, 1):
        if is_static(stride):
            check_stride(mode, stride * copy.bits // 8)
    if is_static(extent) and not copy.loads:
        check_stored_rows(extent, copy.bits)
    if is_fully_static((copy.gmem.shape, copy.gmem.stride)):
        _ = copy.tensor_map(padded=padded)
    _ = copy.coordinates()  # raises where strides of modes that share a dimension are not static
    return copy
