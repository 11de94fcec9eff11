# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A memory space is one row: no other file names one as text, and every row is complete."""

import ast
import copy
import pickle
from collections.abc import Iterator

import pytest
from tilefold.base.spaces import SPACES, TMEM, Allocation, Bytes, Cells, Sharer, Space, known_space, tensor_spaces
from tilefold.base.target import Target, known_targets
from tilefold.builder.tensors.address_space import AddressSpace

from docs.spaces import instructions_of
from tests.project.tree import ROOT, parsed, product_files, walk

NAMES = {name for row in SPACES.values() for name in (row.name, row.ptx, row.keyword)}
ALLOWED = {
    "compiler/ptx/": "the words of PTX that is read",
    "builder/instructions/memory_texts.py": "the words of PTX that a program writes",
    "dialects/ptx/entry.py": "a word of an assembly format",
    "dialects/tile/tma.py": "the name of a property",
    "builder/tensors/tma.py": "the name of a property",
    "runtime/options.py": "the names of arguments of launches",
}


def _strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts of a module but for its docstrings."""
    documented = {
        id(node.body[0].value)
        for node in walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body
        and isinstance(node.body[0], ast.Expr)
    }  # fmt: skip
    for node in walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node


def test_no_other_file_names_a_space() -> None:
    found: list[str] = []
    for path in product_files():
        name = path.relative_to(ROOT).as_posix()
        if name == "base/spaces.py" or name.startswith(tuple(ALLOWED)):
            continue
        found += [f"{name}:{node.lineno}: {node.value!r}" for node in _strings(parsed(path)) if node.value in NAMES]
    assert not found


def test_the_allowed_files_need_it() -> None:
    for allowed in ALLOWED:
        paths = [path for path in product_files() if path.relative_to(ROOT).as_posix().startswith(allowed)]
        assert any(node.value in NAMES for path in paths for node in _strings(parsed(path))), allowed


@pytest.mark.parametrize("row", SPACES.values(), ids=str)
def test_a_row_is_complete(row: Space) -> None:
    assert all((row.name, row.ptx, row.pointer, row.llvm))
    assert isinstance(row.form, Bytes | Cells)
    assert row.address_bits in (32, 64)
    for name in known_targets():
        limit = row.limit(Target(name))
        assert limit is None or limit >= 0
    limits = {row.limit(Target(name)) for name in known_targets()}
    match row.allocation:
        case Allocation.PARAMETER:
            assert limits == {None}
        case Allocation.STATIC | Allocation.MAPPED | Allocation.RUN_TIME:
            assert len(limits) > 1
        case Allocation.COMPILER | Allocation.CONSTANT:
            assert len(limits) == 1
    assert copy.deepcopy(row) is pickle.loads(pickle.dumps(row)) is known_space(row.name) is row


def test_rows_differ() -> None:
    for attribute in ("name", "ptx", "keyword", "llvm"):
        assert len({getattr(row, attribute) for row in SPACES.values()}) == len(SPACES)
    assert {row.sharer for row in SPACES.values()} == set(Sharer)
    assert {row.allocation for row in SPACES.values()} == set(Allocation)


def test_tensors_are_in_spaces_that_instructions_reach() -> None:
    reached = [row.name for row in SPACES.values() if instructions_of(row) or row is TMEM]  # that by `ptx` alone
    assert [row.name for row in tensor_spaces()] == reached


def test_the_public_names_are_those_of_the_table() -> None:
    public = {space.name: space.value for space in AddressSpace}
    assert public.pop("generic") == 0
    assert public == {row.name: row.llvm for row in SPACES.values() if row.name != "cmem"}


FACTS = {"Sharer", "Allocation", "Traffic", "Bytes", "Cells", *(row.keyword.upper() for row in SPACES.values())}
"""The facts of a row by which code branches, and the rows themselves."""


def _matches_over_facts() -> Iterator[tuple[str, bool]]:
    """The matches over facts of spaces, each with its file, and whether a default of its own follows its cases."""
    for path in product_files():
        for node in walk(parsed(path)):
            if not isinstance(node, ast.Match):
                continue
            *named, last = [case.pattern for case in node.cases]
            words = {part.id for pattern in (*named, last) for part in walk(pattern) if isinstance(part, ast.Name)}
            if words & FACTS:
                is_default = isinstance(last, ast.MatchAs) and last.pattern is None
                ends = ast.unparse(node.cases[-1].body[0]) if is_default else ""
                yield f"{path.relative_to(ROOT)}:{node.lineno}", is_default and "assert_never" not in ends


def test_no_match_over_the_facts_of_a_space_has_a_default() -> None:
    """pyright then names each of them that lacks a case for a new fact."""
    found = list(_matches_over_facts())
    assert len(found) > 5
    assert not [place for place, has_default in found if has_default]
