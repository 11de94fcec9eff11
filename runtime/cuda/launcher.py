# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The way from a call to the driver, for arguments like those of a call before: one function, written for their kinds.

The function reads from each argument what the kernel's type depends on, looks up the launch that was prepared for
exactly these types, writes the addresses and numbers into its memory and calls the driver. Whatever it does not know
goes to `resolve`, which checks everything and prepares. Nothing that decides about the type is remembered of an object:
all of it is read in each call, since tensors may change in place.

Like `dataclasses`, this writes the text of a function, because a loop over the arguments would take longer than all
the rest.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import error as StructError  # noqa: N812  # it is an exception
from typing import Any, Protocol

from ..arrays import HOST, array_of, is_array, is_torch
from ..signature import Dynamic, Marked, tensor_spec
from ..streams import handle_of
from .prepared import Frame, Prepared

Args = tuple[Any, ...]

_LOW = 15  # bits of an address that decide about its alignment; signature.ALIGN - 1


class Resolve(Protocol):
    """Launches arguments that no prepared launch fits yet, or none ever will: on the simulator, say, or with copies.

    Returns what the launch reports, and the prepared launch for the next time, if there is one.
    """

    def __call__(
        self, args: Args, block: Any, grid: Any, stream: Any, programmatic: bool
    ) -> tuple[Any, Prepared | None]: ...


@dataclass(frozen=True, slots=True)
class Written:
    """The functions for arguments of some kinds: `launch`, which returns NotImplemented for what its `table` lacks, and
    `key`, under which a prepared launch is put there.
    """

    launch: Callable[[Args, Any, Any, Any, bool], Any]
    key: Callable[[Args, Any], tuple[Any, ...]]
    table: dict[tuple[Any, ...], Prepared]


@dataclass
class Launcher:
    """The launches of one kernel. `names` are its parameters, `constants` those that are known while it is built,
    `rules` those that are declared dynamic. `many_devices` says that more than one GPU is there.

    `fast`, with the parameters of `launch`, launches arguments of the kinds of those before; it has done nothing where
    it returns NotImplemented.
    """

    names: tuple[str, ...]
    constants: frozenset[str]
    resolve: Resolve
    rules: Mapping[str, Dynamic] = field(default_factory=lambda: {})
    many_devices: bool = False
    fast: Callable[[Args, Any, Any, Any, bool], Any] = field(init=False)
    _written: dict[tuple[str, ...], Written] = field(init=False)

    def __post_init__(self) -> None:
        self._written = {}
        self.fast = _nothing_yet

    def launch(self, args: Args, block: Any, grid: Any, stream: Any = None, programmatic: bool = False) -> Any:
        """Launches on arguments in the order of the parameters. None, or what `resolve` returns.

        `stream` is a handle, an object of torch, CuPy or cuda.core, one of `runtime.streams`, or None: torch's
        current stream where a tensor of torch is an argument, else the default stream. Raises what `resolve` and the
        driver raise.
        """
        result = self.fast(args, block, grid, stream, programmatic)
        return result if result is not NotImplemented else self._slowly(args, block, grid, stream, programmatic)

    def _slowly(self, args: Args, block: Any, grid: Any, stream: Any, programmatic: bool) -> Any:
        kinds = self._kinds(args)
        written = None if kinds is None else self._written.get(kinds)
        if written is not None and written.launch is not self.fast:
            result = written.launch(args, block, grid, stream, programmatic)
            if result is not NotImplemented:
                self.fast = written.launch  # the last kind of call is likely the next
                return result
        result, prepared = self.resolve(args, block, grid, stream, programmatic)
        if kinds is not None and prepared is not None:
            if written is None:
                written = self._written[kinds] = write(self.names, kinds, self.rules, self.many_devices)
            try:
                written.table[written.key(args, block)] = prepared
            except TypeError:
                return result  # a constant without a hash: each call is resolved
            self.fast = written.launch
        return result

    def _kinds(self, args: Args) -> tuple[str, ...] | None:
        """What each argument is; None where one is of a kind that is resolved in each call."""
        if len(args) != len(self.names):
            return None
        kinds = [self._kind(name, arg) for name, arg in zip(self.names, args, strict=True)]
        return tuple(kind for kind in kinds if kind) if all(kinds) else None

    def _kind(self, name: str, arg: Any) -> str:
        if name in self.constants:
            return "constant"
        host = hasattr(arg, "__tilefold_array__")
        array = arg.__tilefold_array__ if host else arg
        if is_torch(array) and name not in self.rules:
            return "wrapped" if host else "torch"
        if isinstance(array, Marked) or (is_array(array) and hasattr(array, "dtype")):
            return "array" if getattr(array, "shape", True) != () else ""
        if type(arg) in (int, float, bool):
            return "integer" if type(arg) is int else "number"
        return "none" if arg is None else ""


def _nothing_yet(args: Args, block: Any, grid: Any, stream: Any, programmatic: bool) -> Any:
    return NotImplemented


def write(names: Sequence[str], kinds: Sequence[str], rules: Mapping[str, Dynamic], many_devices: bool) -> Written:
    """The functions for arguments of these kinds; see `Launcher` for the parameters."""
    table: dict[tuple[Any, ...], Prepared] = {}
    scope: dict[str, Any] = {
        "described": described, "Frame": Frame, "handle_of": handle_of, "table": table,
        "UNKNOWN": (LookupError, AttributeError, TypeError, ValueError, RuntimeError), "StructError": StructError,
    }  # fmt: skip
    lines, key, values = _read(names, kinds, rules, scope)
    by_torch = any(kind in ("torch", "wrapped") for kind in kinds)
    if by_torch:
        scope["raw_stream"] = sys.modules["torch"]._C._cuda_getCurrentRawStream
    unpack = f"{', '.join(f'a{i}' for i in range(len(kinds)))}, = args" if kinds else "() = args"
    text = "\n".join(
        [
            "def key(args, block):",
            f"    {unpack}",
            *(f"    {line}" for line in lines),
            f"    return {key}",
            "def launch(args, block, grid, stream, programmatic):",
            "    try:",
            f"        {unpack}",
            *(f"        {line}" for line in lines),
            f"        prepared = table[{key}]",
            "    except UNKNOWN:",
            "        return NotImplemented",
            "    try:",
            "        frame = prepared.take()",
            "    except IndexError:",
            "        frame = prepared.frame()",
            "    try:",
            f"        prepared.pack(frame.memory, 0{values})",
            "    except (StructError, OverflowError, TypeError):",
            "        return NotImplemented",
            "    if grid != frame.grid:",
            "        frame.place(prepared.kernel, grid)",
            "    if stream is None:",
            f"        stream = {'raw_stream(prepared.ordinal)' if by_torch else '0'}",
            "    elif stream.__class__ is not int:",
            "        stream = handle_of(stream)",
            "    if stream != frame.stream:",
            "        frame.queue(stream)",
            "    if programmatic is not frame.programmatic:",
            "        frame.order(programmatic)",
            f"    status = {'prepared.call(frame)' if many_devices else 'frame.call()'}",
            "    prepared.give(frame)",
            "    if status:",
            "        prepared.recover(frame, status)",
        ]
    )
    exec(compile(text, "<launch of a kernel>", "exec"), scope)
    return Written(scope["launch"], scope["key"], table)


def _read(
    names: Sequence[str], kinds: Sequence[str], rules: Mapping[str, Dynamic], scope: dict[str, Any]
) -> tuple[list[str], str, str]:
    """The lines that read the arguments, the expression of the key, and the values to pack, each after a comma."""
    lines: list[str] = []
    key, values = ["block"], ""
    addresses: list[str] = []
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        match kind:
            case "torch" | "wrapped":
                if kind == "wrapped":
                    key.append(f"a{i}.__class__")
                    lines.append(f"a{i} = a{i}.__tilefold_array__")
                lines.append(f"p{i} = a{i}.data_ptr()")
                key += [f"a{i}.dtype", f"a{i}.shape", f"a{i}.is_contiguous() or a{i}.stride()", f"a{i}.get_device()"]
                addresses.append(f"p{i}")
                values += f", p{i}"
            case "array":
                scope[f"rule{i}"], scope[f"name{i}"] = rules.get(name), name
                lines.append(f"k{i}, v{i} = described(name{i}, a{i}, rule{i})")
                key.append(f"k{i}")
                values += f", *v{i}"
            case "integer":
                key += [f"a{i}.__class__", f"-2147483648 <= a{i} < 2147483648"]
                values += f", a{i}"
            case "number":
                key.append(f"a{i}.__class__")
                values += f", a{i}"
            case "none":
                key.append(f"a{i}")
            case _:
                key += [f"a{i}.__class__", f"a{i}"]
    if addresses:
        low = " | ".join(addresses)
        each = ", ".join(f"{address} & {_LOW}" for address in addresses)
        key.append(f"({low}) & {_LOW} and ({each},)")
    return lines, f"({', '.join(key)},)", values


def described(name: str, argument: Any, rule: Dynamic | None) -> tuple[Any, list[int]]:
    """The part of the key of an array that is read by its interface, and its values: address, extents, strides.

    LookupError for an array of the host, which has no prepared launches; LaunchError as `tensor_spec`.
    """
    argument = getattr(argument, "__tilefold_array__", argument)
    if isinstance(argument, Marked):
        argument, rule = getattr(argument.array, "__tilefold_array__", argument.array), argument.rule
    array = array_of(name, argument)
    if array.device is HOST:
        raise LookupError(name)
    spec = tensor_spec(name, array, rule)
    return (spec, array.device), [array.address, *spec.scalars(array)]
