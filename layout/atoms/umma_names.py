# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuTe's names of multiplications into tensor memory: to facts, and from facts.

`SM100_MMA_F16BF16_2x1SM_SS<half_t,half_t,float,256,128,Major::K,Major::MN>` says the types of A, B and D, M and N of
the pair, and the contiguous modes of A and B. After D there is the type of scale factors, and for 4-bit elements after
N the values along K that share one. Signs and saturation may follow. CuTe has no name for `.ws`; here it is `_WS`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from ...base.element_types import BY_CXX, BY_PTX
from ...base.errors import Code, LayoutError
from ...base.spaces import SMEM, TMEM
from .contract import Major
from .mma_atom import MmaAtom
from .umma import UMMA_KINDS, UmmaFacts, umma

_T = TypeVar("_T")
_ULTRA = "SM103_MXF4_ULTRA"
_NAME = re.compile(
    rf"(?:SM100_MMA_(?P<family>[A-Z0-9]+?)|(?P<ultra>{_ULTRA}))(?P<ws>_WS)?(?P<pair>_2x1SM)?_(?P<from>SS|TS)"
    r"(?P<vs>_VS)?(?P<sparse>_SPARSE)?<(?P<arguments>[A-Za-z0-9_:,]+)>"
)
_QUALIFIED = re.compile(r"cute::UMMA::|UMMA::|cute::detail::|cute::|cutlass::|SM103::|\s")
_FAMILIES = {kind.family for kind in UMMA_KINDS.values()} | {"MXF4NVF4"}
_SCALES = {"float_ue8m0_t": "ue8m0", "float_ue4m3_t": "ue4m3"}
_MAJORS = {"Major::K": Major.K, "Major::MN": Major.MN}
_SIGNS = {"ScaleIn::One": False, "ScaleIn::Neg": True}
_SATURATES = {"Saturate::False": False, "Saturate::True": True}


def umma_name(facts: UmmaFacts) -> str:
    """CuTe's name, without the namespaces of its arguments."""
    kind = UMMA_KINDS[facts.kind]
    family = "MXF4NVF4" if kind.family == "MXF4" and facts.is_sparse else kind.family
    stem = f"SM103::{_ULTRA}" if facts.ultra else f"SM100_MMA_{family}"
    d, a, b = (BY_PTX[name].cxx[0] for name in facts.types)
    scale = [f"float_{facts.scale}_t"] if facts.scale else []
    vector = [str(facts.scale_vector)] if kind.family == "MXF4" else []
    arguments = [a, b, d, *scale, str(facts.m), str(facts.n), *vector, *(f"Major::{x.value}" for x in facts.majors)]
    if any(facts.negates):
        arguments += [f"ScaleIn::{'Neg' if x else 'One'}" for x in facts.negates]
    if facts.saturates:
        arguments.append("Saturate::True")
    ws, pair = "_WS" if facts.is_stationary else "", "_2x1SM" if facts.blocks == 2 else ""
    source = "TS" if facts.a_space is TMEM else "SS"
    ending = "_VS" if facts.ultra else "_SPARSE" if facts.is_sparse else ""
    return f"{stem}{ws}{pair}_{source}{ending}<{','.join(arguments)}>"


@lru_cache(maxsize=256)
def umma_atom(name: str) -> MmaAtom | None:
    """The atom of a name; None for a name of another family. Raises `LayoutError` (E0302) for arguments that no atom
    has, (E0304) for types, extents or majors that the instruction does not have.
    """
    match = _NAME.fullmatch(_QUALIFIED.sub("", name[:300]))
    if match is None or not (match["ultra"] or match["family"] in _FAMILIES):
        return None
    return make_umma(_facts(match, name))


def make_umma(facts: UmmaFacts) -> MmaAtom:
    """The atom of these facts; see `umma`."""
    return umma(facts, umma_name(facts))


def with_signs(atom: MmaAtom, negates: tuple[bool, bool]) -> MmaAtom:
    """An atom of tcgen05.mma that changes the signs of A and of B, or does not. Raises `LayoutError` (E0304) for
    integers.
    """
    match = _NAME.fullmatch(_QUALIFIED.sub("", atom.name))
    assert match is not None, "its name is one of this file"
    return make_umma(replace(_facts(match, atom.name), negates=negates))


def _facts(match: re.Match[str], name: str) -> UmmaFacts:
    arguments = match["arguments"].split(",")
    family = match["family"] or "MXF4"
    scaled, vectors = family.startswith("MX"), family.startswith("MXF4")
    fixed = 5 + scaled + vectors + 2
    if len(arguments) < fixed:
        raise _unknown(name, f"it has {len(arguments)} arguments, not {fixed} or more")
    a, b, d = [_element(x, name) for x in arguments[:3]]
    scale = _choose(_SCALES, arguments[3], name) if scaled else ""
    m, n, *vector = [_number(x, name) for x in arguments[3 + scaled : fixed - 2]]
    values = vector[0] if vectors else 32 if scaled else 0
    majors = [_choose(_MAJORS, x, name) for x in arguments[fixed - 2 : fixed]]
    more = arguments[fixed:]
    negates = [_choose(_SIGNS, more.pop(0), name) for _ in range(2) if more and more[0] in _SIGNS]
    saturates = _choose(_SATURATES, more.pop(0), name) if more else False
    if more or len(negates) == 1:
        raise _unknown(name, "signs are two, and saturation comes last")
    return UmmaFacts(
        kind=_kind(family, values, bool(match["ultra"]), bool(match["sparse"])),
        blocks=2 if match["pair"] else 1,
        m=m,
        n=n,
        types=(d, a, b),
        majors=(majors[0], majors[1]),
        a_space=TMEM if match["from"] == "TS" else SMEM,
        scale=scale,
        scale_vector=values,
        negates=(negates[0], negates[1]) if negates else (False, False),
        saturates=saturates,
        is_sparse=bool(match["sparse"]),
        is_stationary=bool(match["ws"]),
        ultra=bool(match["ultra"]),
    )


def _kind(family: str, values: int, ultra: bool, sparse: bool) -> str:
    """The kind of PTX. Two have 4-bit elements; this is the one with fewer types of scale factors where it has them."""
    if family.startswith("MXF4"):
        return "mxf4nvf4" if ultra or values != (64 if sparse else 32) else "mxf4"
    return next(kind.name for kind in UMMA_KINDS.values() if kind.family == family)


def _element(text: str, name: str) -> str:
    element = BY_CXX.get(text.replace("_unpacksmem_t", "_t"))
    if element is None:
        raise _unknown(name, f"{text} is not an element type")
    return element.ptx


def _number(text: str, name: str) -> int:
    if not text.isdecimal() or len(text) > 4:
        raise _unknown(name, f"{text} is no extent")
    return int(text)


def _choose(known: Mapping[str, _T], text: str, name: str) -> _T:
    if text not in known:
        raise _unknown(name, f"{text} is not one of {', '.join(known)}")
    return known[text]


def _unknown(name: str, problem: str) -> LayoutError:
    return LayoutError(Code.ATOM_UNKNOWN, f"unknown MMA atom {name[:120]!r}: {problem}", "names are CuTe's")
