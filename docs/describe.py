# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dialects as Markdown: what operations, types and attributes say of themselves."""

import re
from collections.abc import Callable, Iterable, Mapping
from inspect import cleandoc
from types import MappingProxyType
from typing import Any, cast

from tilefold.dialects.ptx import PtxOp
from tilefold.dialects.ptx.effects import declared_by
from tilefold.layout.atoms.contract import Agent
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    SymbolNameConstraint,
)
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import (
    AllOf,
    AnyAttr,
    AnyOf,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    MessageConstraint,
    OpDef,
    OptOperandDef,
    OptPropertyDef,
    OptResultDef,
    ParamAttrConstraint,
    VarConstraint,
    VarOperandDef,
    VarResultDef,
)
from xdsl.traits import (
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoMemoryEffect,
    Pure,
)

_EFFECTS = {
    Pure: "none: unused operations are removed, equal ones are merged",
    NoMemoryEffect: "none on memory",
    MemoryReadEffect: "reads memory",
    MemoryWriteEffect: "writes memory, or orders accesses",
    IsTerminator: "ends its block",
}


def docstring(thing: object) -> str:
    """A docstring as Markdown: indented examples become code blocks. AssertionError where there is none."""
    text = cleandoc(getattr(thing, "__doc__", None) or "")
    assert text, f"{thing} has no docstring"
    return text


def constraint(of: Any) -> str:
    """The constraint of an operand, result or property, in words."""
    kind: type[Any] = of.__class__
    words = _WORDS.get(kind)
    return _other_constraint(of) if words is None else words(of)


def _parameters(of: Any) -> str:
    elements = [str(c.attr) for c in of.param_constrs if c.__class__ is EqAttrConstraint]
    kinds = {IntegerAttr: "integer", DenseArrayBase: "integers", FloatAttr: "float"}
    kind = kinds.get(of.base_attr, f"`{_name(of.base_attr)}`")
    return f"{kind} (`{elements[0]}`)" if elements else kind


_WORDS: Mapping[type[Any], Callable[[Any], str]] = MappingProxyType(
    {
        AnyAttr: lambda of: "any",
        BaseAttr: lambda of: f"`{_name(of.attr)}`",
        EqAttrConstraint: lambda of: f"`{of.attr}`",
        SymbolNameConstraint: lambda of: "a symbol's name",
        AnyOf: lambda of: " or ".join(sorted(constraint(part) for part in of.attr_constrs)),
        AllOf: lambda of: " and ".join(constraint(part) for part in of.attr_constrs),
        ParamAttrConstraint: _parameters,
        VarConstraint: lambda of: constraint(of.constraint),
        MessageConstraint: lambda of: constraint(of.constr),
    }
)


def _other_constraint(of: Any) -> str:
    """Constraints of ranges, of sets of attributes, and of arrays."""
    for inner, words in (("constraint", ""), ("constr", ""), ("elem_range_constraint", "array of ")):
        if hasattr(of, inner):
            return words + constraint(getattr(of, inner))
    values = getattr(of, "values", None) or getattr(of, "attr_set", None)
    if values is not None:
        return " or ".join(sorted(f"`{value}`" for value in values))
    raise AssertionError(f"no words for the constraint {of}")


def _name(attribute: Any) -> str:
    if attribute is AnyFloat:
        return "float"
    return getattr(attribute, "name", attribute.__name__).removeprefix("builtin.")


def _rows(kind: str, definitions: Iterable[tuple[str, Any]]) -> list[str]:
    rows: list[str] = []
    for name, definition in definitions:
        many = isinstance(definition, VarOperandDef | VarResultDef)
        optional = isinstance(definition, OptOperandDef | OptResultDef | OptPropertyDef)
        which = ", any number" if many else ", optional" if optional else ""
        rows.append(f"| {kind} | `{name}` | {constraint(definition.constr)}{which} |")
    return rows


def operation(op: type[Operation]) -> str:
    """The section of an operation."""
    definition: OpDef = cast("type[IRDLOperation]", op).get_irdl_definition()
    lines = [f"## `{op.name}`", "", docstring(op), ""]
    properties = {n: p for n, p in definition.properties.items() if not n.endswith("SegmentSizes")}
    rows = [
        *_rows("operand", definition.operands),
        *_rows("property", sorted(properties.items())),
        *_rows("result", definition.results),
    ]
    if rows:
        lines += ["| | name | |", "|---|---|---|", *rows, ""]
    if definition.assembly_format is not None:
        lines += ["Assembly:", "", f"    {op.name} {_plain_format(definition.assembly_format)}", ""]
    effects = [text for trait, text in _EFFECTS.items() if any(type(t) is trait for t in op.traits.traits)]
    if (trait := declared_by(op)) is not None:
        effects += map(str, trait.declared)
        effects += [] if trait.agent is Agent.THREAD else [f"executed by a whole {trait.agent.value}"]
    if effects:
        lines += [f"Effects: {'; '.join(effects)}.", ""]
    if issubclass(op, PtxOp) and op.TARGETS is not None:
        family = op.TARGETS.oldest
        lines += [f"Needs `sm_{family.min_sm}{family.suffix}` and PTX {family.min_ptx / 10}.", ""]
    elif issubclass(op, PtxOp) and "mnemonic" in dir(op) and op.SINCE[0] > 70:
        lines += [f"Needs `sm_{op.SINCE[0]}` and PTX {op.SINCE[1] / 10}.", ""]
    return "\n".join(lines)


def _plain_format(text: str) -> str:
    """An assembly format without the directives that say how a variable is written, and where errors begin."""
    text = re.sub(r"custom<(?:Marked>\(\)|Implied>\(.*?\)\)) ?", "", text)
    text = re.sub(r"custom<Inferred\w*>\((.*?\))\)", r"(`:` \1^)?", text)
    text = re.sub(r"custom<Written>\((.*?\))\)", r"`:` \1", text)
    return re.sub(r"custom<\w+>\((\$\w+)(?:, (?:type\(\$\w+\)|\$\w+))*\)", r"\1", text).strip()


def attribute(kind: type[Attribute]) -> str:
    """The section of a type or attribute."""
    return f"### `{kind.name}`\n\n{docstring(kind)}\n"


def dialect(of: Dialect, introduction: str, only: str | None = None) -> str:
    """The page of a dialect; `only` names the module whose operations are described, where others are xDSL's."""
    operations = [op for op in of.operations if only is None or op.__module__ == only]
    attributes = [] if only is not None else list(of.attributes)
    parts = [f"# The dialect `{of.name}`", introduction]
    parts += [operation(op) for op in operations]
    parts += ["## Types and attributes", *(attribute(kind) for kind in attributes)] if attributes else []
    return "\n\n".join(part.rstrip() for part in parts) + "\n"
