# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of a module that may call themselves."""

from collections.abc import Iterator

from .syntax import Arguments, Instruction, Module, Register, Symbol


def recursive_functions(module: Module, taken: frozenset[str]) -> frozenset[str]:
    """The functions from which calls may lead back to them; a call by a register leads to each function in `taken` with
    as many parameters.
    """
    calls = {name: tuple(_called(module, name, taken)) for name in module.functions}
    found: set[str] = set()
    numbers, lowest, path, open = dict[str, int](), dict[str, int](), list[str](), set[str]()
    for start in calls:  # Tarjan, Depth-First Search and Linear Graph Algorithms, 1972
        work = [] if start in numbers else [(start, iter(calls[start]))]
        while work:
            name, rest = work[-1]
            if name not in numbers:
                numbers[name] = lowest[name] = len(numbers)
                path.append(name)
                open.add(name)
            target = next(rest, None)
            if target is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                if lowest[name] == numbers[name]:
                    part = path[path.index(name) :]
                    del path[-len(part) :]
                    open -= set(part)
                    if len(part) > 1 or name in calls[name]:
                        found |= set(part)
            elif target not in numbers:
                work.append((target, iter(calls[target])))
            elif target in open:
                lowest[name] = min(lowest[name], numbers[target])
    return frozenset(found)


def _called(module: Module, name: str, taken: frozenset[str]) -> Iterator[str]:
    """The functions that a function may call."""
    for call in module.functions[name].body or ():
        if not isinstance(call, Instruction) or call.opcode != "call":
            continue
        for operand in call.operands:
            if isinstance(operand, Symbol) and (function := module.function(operand.name)) is not None:
                yield function.name
            elif isinstance(operand, Register):
                given = sum(len(o.items) for o in call.operands if isinstance(o, Arguments))
                for other in taken & module.functions.keys():
                    if len(module.functions[other].parameters) + len(module.functions[other].results) == given:
                        yield other
