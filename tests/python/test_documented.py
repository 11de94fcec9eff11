# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forms that docs/python.md lists, and those that it says are refused, are those that tests have."""

import inspect
import re
from pathlib import Path
from types import ModuleType

from tests.python import test_control_flow, test_errors, test_forms, test_functions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"

# For each row of a table, by the first words of its first cell, the functions that have the form.
SUPPORTED = {
    "`if`, `elif`": "branches nested_branches returns_in_branches",
    "`A if C else B`": "conditional_values",
    "`for i in cute.range": "with_names",
    "`for i in range": "counted_with_bounds nested_loops steps_of_any_sign",
    "`while`": "whiles while_true while_that_returns",
    "`break`, `continue`": "breaks_of_both_loops returns_from_loops always_returns while_with_else",
    "`match` on literals": "matches match_statement",
    "`a and b`": "logic short_circuit values_of_and_and_or named_in_conditions",
    "`x in xs`": "membership",
    "`min`, `max`": "python_functions rounding",
    "`with`, `try`": "with_statement else_of_try suppressed matches_objects",
    "functions and classes": "inner_functions classes_and_generators_within methods_with_private_names",
}
REFUSED = {
    "a value as a condition in a helper": "plain_helper sorted_values",
    "a value as a condition of a comprehension": "comprehension assertion guard",
    "a value as an index of a list": "element_of_a_list formatted",
    "`enumerate(cute.range(n))`": "enumerated reversed_range length_of_a_range",
    "a number that the type": "number_that_is_too_large",
    "`:=` in an operand": "walrus",
    "`yield` in a kernel": "generator coroutine global_statement",
    "`break`, `continue` and `return` in `finally`": "break_in_finally return_in_finally",
    "a kernel that returns": "returned",
    "a `lambda`": "test_what_is_no_function test_a_file_that_has_changed",
    "endless loops and recursion": "never_ends recursion",
    "operands of `and`": "operands_of_other_types part_of_a_global value_of_a_condition",
    "a variable without a value": "only_one_branch types_of_branches types_of_iterations after_a_loop",
    "`xs.append(...)`": "appended grown_set other_lists",
    "an assignment in a branch or loop to an attribute": "attribute",
    "a variable that is a view": "carried_tensor",
}


def rows(title: str) -> list[str]:
    """The first cells of the rows of the table under the head of this title."""
    lines = PAGE.read_text().splitlines()
    start = lines.index(title) + 2
    end = next(i for i, line in enumerate(lines[start:], start) if not line.startswith("|"))
    return [re.split(r"(?<!\\) \| ", line[2:])[0] for line in lines[start:end]]


def functions(names: str, *modules: ModuleType) -> list[str]:
    """The texts of functions. KeyError for one that no module has."""
    known = {name: value for module in modules for name, value in vars(module).items()}
    return [inspect.getsource(known[name]) for name in names.split()]


def test_forms_that_become_operations() -> None:
    found = rows("| form | on values |")
    assert len(found) == len(SUPPORTED)
    for row, (words, names) in zip(found, SUPPORTED.items(), strict=True):
        assert row.startswith(words)
        assert functions(names, test_control_flow, test_forms, test_functions)


def test_forms_that_are_refused() -> None:
    found = rows("| form | alternative |")
    assert len(found) == len(REFUSED)
    for row, (words, names) in zip(found, REFUSED.items(), strict=True):
        assert row.startswith(words)
        code = row[-6:-1]
        for text in functions(names, test_errors):
            assert f"error: {code}" in text or f'"{code}"' in text or "_helper" in text, (row, text)
