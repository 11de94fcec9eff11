# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A launch that can be repeated on any form of its kernel, and everything that can be seen of it."""

from collections import Counter
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tilefold.runtime.arrays.storage import element_indices
from tilefold.runtime.check.limits import is_floating, tolerance, widen
from tilefold.runtime.engine import Argument, LaunchConfig, TensorArgument
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.memory.journal import Journal, Sighting
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine, discard

History = tuple[NDArray[np.int64], NDArray[np.uint8]]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a launch: the arguments afterwards, the text that it prints, every value that it writes, if that
    was asked for, or the fault that ends it.
    """

    arguments: Mapping[str, Argument]
    printed: str = ""
    history: History | None = None
    fault: SimulationError | None = None
    seconds: float = 0.0
    exact: Mapping[str, object] = field(default_factory=dict[str, Any])
    """The tensors as arrays of exact numbers, where the launch ran in exact arithmetic."""
    executed: Set[str] = frozenset()
    """The instructions of PTX that were executed, unless a fault has ended the launch."""


@dataclass(frozen=True)
class Difference:
    """How two outcomes differ, in words, and the byte of an argument's storage that differs first, if one does."""

    text: str
    argument: str | None = None
    byte: int = 0


@dataclass(frozen=True)
class Trial:
    """A launch of the kernel `kernel`, with the same arguments each time: `arguments` makes them anew.

    `stores` says that every value written to global memory is compared, not only the last.
    """

    kernel: str
    config: LaunchConfig
    arguments: Callable[[], Mapping[str, Argument]]
    engine: SimEngine
    stores: bool = False

    def run(self, module: ModuleOp) -> Outcome:
        """Launches the kernel of a module on the simulator."""
        journal = Journal(keeps_values=True) if self.stores else None
        arguments, printed = self.arguments(), list[str]()
        engine = replace(self.engine, sink=printed.append, journal=journal)
        try:
            result = engine.launch(SimProgram(module, self.kernel), self.config, arguments)
        except SimulationError as fault:
            return Outcome(arguments, "".join(printed), None if journal is None else journal.history(), fault)
        history = None if journal is None else journal.history()
        executed = result.counters.instructions.keys()
        return Outcome(arguments, result.output, history, None, result.seconds, result.exact, executed)

    def writer(self, module: ModuleOp, difference: Difference) -> Sighting | None:
        """The operation that writes the byte that differs last. None for a byte that the launch does not write."""
        arguments = self.arguments()
        tensor = arguments[difference.argument or ""]
        assert isinstance(tensor, TensorArgument)
        journal = Journal((tensor.storage, difference.byte))
        options = replace(self.engine.options, races=False)
        engine = replace(self.engine, options=options, sink=discard, journal=journal)
        with suppress(SimulationError):  # a fault comes after the byte was written, if it was
            engine.launch(SimProgram(module, self.kernel), self.config, arguments)
        return journal.writer


def difference(first: Outcome, second: Outcome, *, exact: bool = True) -> Difference | None:
    """How the second outcome differs from the first; None if both are the same, or unless `exact` where floats
    differ by no more than the tolerance of their type.
    """
    if first.fault is not None or second.fault is not None:
        return _different_faults(first.fault, second.fault)
    for name, before in first.arguments.items():
        after = second.arguments[name]
        if isinstance(before, TensorArgument) and isinstance(after, TensorArgument):
            numbers = (first.exact[name], second.exact[name]) if name in first.exact and name in second.exact else None
            first_difference = _different_tensors(name, before, after, exact, numbers)
            if first_difference is not None:
                return first_difference
    if Counter(first.printed.splitlines()) != Counter(second.printed.splitlines()):
        return Difference("the kernel prints different text")
    if first.history is not None and second.history is not None:
        return _different_writes(first.history, second.history)
    return None


def _different_faults(first: SimulationError | None, second: SimulationError | None) -> Difference | None:
    if first is not None and second is not None:
        if first.code == second.code:
            return None
        return Difference(f"another fault: {second.code}: {second.message}")
    if second is not None:
        return Difference(f"a fault: {second.code}: {second.message}")
    assert first is not None
    return Difference(f"the fault {first.code} is gone")


def _different_tensors(
    name: str, before: TensorArgument, after: TensorArgument, exact: bool, numbers: tuple[object, object] | None
) -> Difference | None:
    """The smallest coordinate at which two tensors of a layout differ, or the first element of their storage; by the
    exact `numbers` in them, if they have such.
    """
    size = before.storage.itemsize
    differs = (before.storage.view(np.uint8) != after.storage.view(np.uint8)).reshape(-1, size).any(axis=1)
    if numbers is not None:
        differs = np.asarray(numbers[0] != numbers[1], np.bool_)
    elif not exact and is_floating(before.storage.dtype):
        rtol, atol = tolerance(before.storage.dtype, before.storage.dtype)
        differs &= ~np.isclose(widen(after.storage), widen(before.storage), rtol, atol, equal_nan=True)
    if not differs.any():
        return None
    index, place = int(differs.argmax()), f"element {int(differs.argmax())} of its storage"
    count, total = int(differs.sum()), differs.size
    layout = before.layout
    if layout is not None:
        indices = element_indices(layout)
        if int(indices.max()) < differs.size and differs[indices].any():
            where = np.argwhere(differs[indices])
            index = int(indices[tuple(where[0])])
            place = "(" + ", ".join(map(str, where[0].tolist())) + ")"
            count, total = len(where), indices.size
    old, new = before.storage[index].item(), after.storage[index].item()
    text = f"{name} at {place} is {new!r} instead of {old!r}; {count} of {total} elements differ"
    return Difference(text, name, index * size)


def _different_writes(first: History, second: History) -> Difference | None:
    """The first byte of global memory to which other values were written, though the last may be the same."""
    if first[0].size == second[0].size and np.array_equal(first[0], second[0]):
        wrong = np.flatnonzero(first[1] != second[1])
        if not wrong.size:
            return None
        count = len(np.unique(first[0][wrong]))
        return Difference(f"the results agree, but other values were written to {count} bytes on the way")
    counts = first[0].size, second[0].size
    return Difference(f"the results agree, but {counts[1]} bytes were written on the way instead of {counts[0]}")
