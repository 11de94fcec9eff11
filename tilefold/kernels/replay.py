# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of a function of the library, and functions that repeat them for torch tensors alike.

The first call for tensors of some shapes, strides and types checks them and chooses kernels. What it launches on a GPU
becomes a Python function: of the kernels' arguments, only addresses differ from call to call.
"""

import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilefold.cute.kernel import Kernel
from tilefold.runtime.arrays.torch_guards import tensor_check
from tilefold.runtime.options import launch_attributes

from .arguments import Array

ALIGNED = 15
"""The bits of an address on which the choice of a kernel depends."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with its arguments, grid and block, and further options of the launch."""

    kernel: Kernel
    args: tuple[Any, ...]
    grid: Any
    block: int
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def run(self, first: object, device: str, **more: object) -> None:
        """Launches, with more options; `first` is the first argument of the function."""
        self.kernel(*self.made(first)).launch(self.grid, self.block, device=device, **self.options, **more)

    def made(self, first: object) -> tuple[Any, ...]:
        """The arguments, with those that each launch makes."""
        return tuple([arg.make(first) if isinstance(arg, PerCallArgument) else arg for arg in self.args])


@dataclass(frozen=True, slots=True)
class PerCallArgument:
    """An argument that each launch makes, from the first argument of the function."""

    make: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that a function takes for its kernels, whose bytes mean nothing before the launches and after them."""

    array: Any


Launches = Iterator[Launch | Scratch | None]
"""The launches of a function, one after the other; None for anything else that it does, which cannot be repeated."""
Replay = Callable[..., Any]
"""Repeats a call on other arguments, or returns NotImplemented, and has done nothing, if they are not alike."""


def key_of(args: Sequence[object]) -> tuple[Any, ...] | None:
    """A key that is equal for arguments whose launches are the same: torch tensors, numbers and texts. None where a
    tensor is of a class of its own.
    """
    torch = sys.modules["torch"]
    tensor, classes = torch.Tensor, (torch.Tensor, torch.nn.Parameter)
    parts, addresses = list[Any]([torch.is_inference_mode_enabled()]), list[int]()
    for arg in args:
        if isinstance(arg, tensor):
            x: Any = arg
            if x.__class__ not in classes:
                return None
            address = x.data_ptr()
            addresses.append(address)
            parts += x.__class__, x.shape, x.stride(), x.dtype, address & ALIGNED, x.get_device()
            parts += x.requires_grad, x.is_inference()
        else:
            parts.append(arg)
    if len(set(addresses)) < len(addresses):  # which of the tensors are one
        parts += map(addresses.index, addresses)
    return tuple(parts)


def replay_of(args: Sequence[object], places: Sequence[object], steps: Sequence[object], device: str) -> Replay | None:
    """A function of the arguments that makes places for the results, repeats the launches and returns the places.

    `steps` are the launches of the function, and its scratch memory. None if a kernel was not launched on the memory
    of torch tensors on a GPU, or has an address that lies in none of the arguments and places.
    """
    text = _Text(args)
    for i, place in enumerate(places):
        text.make(f"p{i}", place)
    for i, scratch in enumerate(step.array for step in steps if isinstance(step, Scratch)):
        text.make(f"s{i}", scratch)
    for launch in steps:
        if isinstance(launch, Launch) and not text.add(launch, device):
            return None
    results = [f"p{i}" for i in range(len(places))]
    return text.written(results[0] if len(results) == 1 else f"({', '.join(results)})")


class _Text:
    """The lines of a replay, and the `scope` with the names that they use."""

    def __init__(self, args: Sequence[Any]) -> None:
        self.args, self.scope = args, dict[str, Any]()
        self.known = [(f"a{i}", x) for i, x in enumerate(args) if _is_tensor(x)]
        self.lines, self.packing, self.queueing = list[str](), list[str](), list[str]()
        self.steps = 0
        self.compare()

    def name(self, value: object) -> str:
        """A name for an object."""
        name = f"c{len(self.scope)}"
        self.scope[name] = value
        return name

    def compare(self) -> None:
        """The lines that return where the arguments are not like these."""
        first: dict[int, str] = {}
        conditions, tensors = list[str](), list[Any]()
        for i, x in enumerate(self.args):
            if x is None:
                conditions.append(f"a{i} is None")
            elif not _is_tensor(x):
                conditions.append(f"a{i} == {self.name(x)}")
            elif id(x) in first:
                conditions.append(f"a{i} is {first[id(x)]}")
            else:
                first[id(x)] = f"a{i}"
                tensors.append(x)
        names = list(first.values())
        if any(x.requires_grad for x in tensors):
            conditions.append(f"not {self.name(sys.modules['torch'].is_grad_enabled)}()")
        check = tensor_check(tensors, [x.shape for x in tensors], [x.stride() for x in tensors])
        conditions.append(f"{self.name(check or _alike(tensors))}({', '.join(names)})")
        self.name([x.__class__ for x in tensors])  # torch knows classes by their address: they must stay
        self.lines += [f"if not ({' and '.join(conditions)}):", "    return NotImplemented"]
        self.lines += [f"x{name} = {name}.data_ptr()" for name in names]
        self.known = [(name, x) for name, x in self.known if name in names]
        addresses = [x.data_ptr() for x in tensors]
        bits = [address & ALIGNED for address in addresses]
        conditions = [f"x{name} & {ALIGNED} != {bit}" for name, bit in zip(names, bits, strict=True)]
        if not any(bits):
            conditions = [f"({' | '.join(f'x{name}' for name in names)}) & {ALIGNED}"]
        for name, address in zip(names, addresses, strict=True):
            if (other := names[addresses.index(address)]) != name:
                conditions.append(f"x{name} != x{other}")
        self.lines += [f"if {' or '.join(conditions)}:", "    return NotImplemented"]

    def make(self, name: str, place: Any) -> None:
        """The line that makes a place, by the fastest of torch's functions that does."""
        torch = sys.modules["torch"]
        if place is None:
            self.lines.append(f"{name} = None")
            return
        for other, x in self.known:
            if x.shape == place.shape and x.dtype == place.dtype and x.is_contiguous() and place.is_contiguous():
                self.lines.append(f"{name} = {self.name(torch.empty_like)}({other})")
                break
        else:
            given = self.name(tuple(place.shape)), self.name(place.stride())
            options = f"dtype={self.name(place.dtype)}, device={self.name(place.device)}"
            self.lines.append(f"{name} = {self.name(torch.empty_strided)}({', '.join(given)}, {options})")
        self.lines.append(f"x{name} = {name}.data_ptr()")
        self.known.append((name, place))

    def add(self, launch: Launch, device: str) -> bool:
        """Whether a launch can be repeated: the lines that pack its arguments, and those that queue it."""
        from tilefold.runtime.cuda.direct import Step, write_packing, write_queueing

        args = launch.made(self.args[0])
        packed = prepared_for(launch, args, device)
        if packed is None:
            return False
        prepared, values, arrays = packed
        late = {
            id(y): f"{self.name(x.make)}(a0).data_ptr()"
            for x, y in zip(launch.args, args, strict=True) if isinstance(x, PerCallArgument)
        }  # fmt: skip
        given, parts = iter(arrays), list[str]()
        for kind, value in zip(prepared.kernel.artifact.kinds, values, strict=True):
            if kind.is_tensor:
                array = next(given)
                address = late.get(id(array)) or self._address(array)
                if address is None:
                    return False
                parts.append(address)
            else:
                parts.append(self.name(*struct.unpack(f"={kind.packing}", value)))
        options = launch.options
        attributes = launch_attributes(options.get("cluster"), options.get("use_pdl", False)) if options else ()
        number, grid = self.steps, self.name(launch.grid)
        self.steps += 1
        step = Step(prepared, parts, True, grid, "None", self.name(attributes))
        self.packing += write_packing(number, step, self.scope)
        self.queueing += write_queueing(number, step)
        return True

    def _address(self, array: Array) -> str | None:
        """The address of an array as an expression; None where it is not known."""
        address = array.data_ptr()
        for name, x in self.known:
            if x is array or (x.data_ptr() == address and x.numel()):
                return f"x{name}"
        inside = [
            f"x{name} + {address - x.data_ptr()}" for name, x in self.known
            if 0 < address - x.data_ptr() < _span(x)
        ]  # fmt: skip
        return inside[0] if len(inside) == 1 else None

    def written(self, result: str) -> Replay:
        """The function."""
        from tilefold.runtime.streams import current_stream_of, handle_of

        torch = sys.modules["torch"]
        self.scope.update(StructError=struct.error, handle_of=handle_of, raw_stream=current_stream_of(torch))
        names = ", ".join(f"a{i}" for i in range(len(self.args)))
        lines = [f"    {line}" for line in self.lines] + self.packing + self.queueing
        exec(f"def replay({names}):\n" + "\n".join([*lines, f"    return {result}"]), self.scope)
        return self.scope["replay"]


def _span(x: Array) -> int:
    """The bytes from the first element of a tensor to the end of its last one."""
    return x.element_size() * (1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True)))


def _alike(tensors: Sequence[object]) -> Callable[..., bool]:
    """A function that says whether other tensors are like these."""
    key = key_of(tensors)
    return lambda *others: key_of(others) == key


def prepared_for(launch: Launch, args: Sequence[object], device: str) -> tuple[Any, list[bytes], list[Any]] | None:
    """The prepared kernel of a launch on a GPU, the bytes of the values that it takes, and its arrays in their order.
    None where it is not launched on the memory of its arrays.
    """
    bound = launch.kernel(*args).bound
    found = launch.kernel.on_gpus.prepared(bound, launch.block, device)
    if found is None:
        return None
    prepared, values = found
    tensors = [each.name for each in prepared.kernel.artifact.parameters if each.kind.is_tensor]
    return prepared, values, [bound.values[name] for name in tensors]


def _is_tensor(x: object) -> bool:
    return isinstance(x, sys.modules["torch"].Tensor)
