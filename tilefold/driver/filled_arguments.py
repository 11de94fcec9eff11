# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values of a launch's arguments: filled by their expressions, or read from `.npy` files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from tilefold.base.errors import Code, TilefoldError
from tilefold.dialects.cute.values import unknowns
from tilefold.dialects.run.grammar import ExpressionError
from tilefold.dialects.tile import TensorType
from tilefold.driver.launches import Argument, Launch
from tilefold.runtime import engine
from tilefold.runtime.arrays.storage import (
    element_indices,
    mode_sizes,
    pack,
    read_logical_array,
    storage_of,
    storage_size,
    unpack,
)
from tilefold.runtime.check import Filled, fill_argument
from tilefold.runtime.engine import NumPyArray, NumPyType, TensorArgument
from tilefold.runtime.sim.values import element_kind, kind_of

_NONE: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True)
class Arguments:
    """The arguments of a launch before it runs, as logical arrays; scalars have rank 0.

    `launchable()` makes fresh storage for one run, so that several runs start from the same values. `offsets` are the
    bytes from an aligned address to each tensor.
    """

    types: Mapping[str, Attribute]
    filled: Mapping[str, Filled]
    offsets: Mapping[str, int] = field(default_factory=dict[str, int])

    def launchable(self) -> dict[str, TensorArgument | np.generic]:
        """The arguments of an engine: tensors in fresh storage, and scalars."""
        given: dict[str, TensorArgument | np.generic] = {}
        for name, filled in self.filled.items():
            type = self.types[name]
            if isinstance(type, TensorType):
                storage, offset = _storage(filled, type), self.offsets.get(name, 0)
                given[name] = TensorArgument(storage, type.layout.data, filled.initialised, offset)
            else:
                given[name] = filled.values.reshape(-1)[0]
        return given

    def logical(self, given: Mapping[str, engine.Argument], exact: Mapping[str, Any] = _NONE) -> dict[str, Any]:
        """The arguments after a run, as expressions see them: logical arrays, and numbers; `exact` are the storages of
        those that hold exact numbers.
        """
        values: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, TensorArgument):
                assert value.layout is not None
                if name in exact:
                    values[name] = exact[name][element_indices(value.layout)]
                    continue
                values[name] = read_logical_array(unpacked(value.storage, self.types[name]), value.layout)
            else:
                values[name] = value.item() if isinstance(value, np.generic) else value
        return values


def prepare(launch: Launch, files: Mapping[str, str], *, seed: int, max_bytes: int) -> Arguments:
    """Fills the arguments of a launch in their order, those in `files` from `.npy` files.

    `max_bytes` bounds the bytes of all arguments together. Raises TilefoldError for an argument without a value, for a
    file of the wrong shape or type, and for a fill that cannot be evaluated.
    """
    filled: dict[str, Filled] = {}
    names: dict[str, object] = {}
    total = 0
    for argument in launch.arguments:
        shape, dtype = infer_shape_and_dtype(argument)
        total += _bytes(argument.type, dtype)
        if total > max_bytes:
            raise TilefoldError(
                Code.RUN_ARGUMENT,
                f"the arguments up to '{argument.name}' take {total} bytes; the run's limit is {max_bytes}",
                "use smaller tensors, or raise --max-memory",
            )
        filled[argument.name] = _value(argument, shape, dtype, names, files, seed, max_bytes)
        if filled[argument.name].initialised:
            _check_packed(argument, filled[argument.name].values, from_file=argument.name in files)
        values = filled[argument.name].values
        names[argument.name] = values if shape else values.item()
    return Arguments({argument.name: argument.type for argument in launch.arguments}, filled)


def infer_shape_and_dtype(argument: Argument) -> tuple[tuple[int, ...], NumPyType]:
    """The logical shape and the element type of an argument. Raises TilefoldError if the type does not say."""
    if isinstance(argument.type, TensorType) and not unknowns(argument.type.layout.data):
        kind = element_kind(argument.type.element_type)
        shape = mode_sizes(argument.type.layout.data)
    else:
        kind = kind_of(argument.type)
        shape = ()
    if kind is None or kind.count is not None or str(argument.type).startswith("!ptx."):
        raise TilefoldError(
            Code.RUN_ARGUMENT,
            f"argument '{argument.name}' of type {argument.type} cannot be filled",
            'declare its tensor type in the file: run.launch ... { run.arg "A" : !tile.tensor<...> = "..." }',
        )
    return shape, kind.dtype


def _bytes(type: Attribute, dtype: NumPyType) -> int:
    if not isinstance(type, TensorType):
        return dtype.itemsize
    elements = max(prod(mode_sizes(type.layout.data)), type.bytes * 8 // type.element_bits)
    return elements * dtype.itemsize


def _storage(filled: Filled, type: TensorType) -> NumPyArray:
    if filled.initialised:
        storage = storage_of(filled.values, type.layout.data)
        return pack(storage, type.element_bits) if type.is_packed else storage
    storage = np.empty(-(-storage_size(type.layout.data) // type.per_byte), filled.values.dtype)
    storage.view(np.uint8)[:] = 0xFF
    return storage


def unpacked(storage: NumPyArray, type: Attribute) -> NumPyArray:
    """The elements of a tensor's storage, one each, where those narrower than a byte are packed."""
    if isinstance(type, TensorType) and type.is_packed:
        kind = element_kind(type.element_type)
        assert kind is not None
        return unpack(storage.view(np.uint8), kind.bits, signed=kind.dtype.kind == "i").view(kind.dtype)
    return storage


def _check_packed(argument: Argument, values: NumPyArray, *, from_file: bool) -> None:
    """TilefoldError unless elements narrower than a byte hold `values`, which the fill gave, or a file."""
    type = argument.type
    if isinstance(type, TensorType) and type.is_packed:
        kind = element_kind(type.element_type)
        assert kind is not None
        if kind.dtype.kind not in "iu":
            return
        span = 1 << kind.bits
        low = -span // 2 if kind.dtype.kind == "i" else 0
        if values.size and not low <= int(values.min()) <= int(values.max()) < low + span:
            message = (
                f"argument '{argument.name}' holds {type.element_type}, but its values range from {values.min()} to "
                f"{values.max()}"
            )
            hint = f"fill it with integers({low}, {low + span})"
            if argument.fill is None or from_file:
                raise TilefoldError(Code.RUN_ARGUMENT, message, hint)
            raise argument.fill.error(
                ExpressionError(Code.RUN_ARGUMENT, message, 0, len(argument.fill.text), hint=hint)
            )


def _value(
    argument: Argument,
    shape: tuple[int, ...],
    dtype: NumPyType,
    earlier: Mapping[str, Any],
    files: Mapping[str, str],
    seed: int,
    max_bytes: int,
) -> Filled:
    if argument.name in files:
        return Filled(load_array(files[argument.name], argument.name, shape, dtype), initialised=True)
    if argument.values is not None:
        return Filled(argument.values, initialised=True)
    if argument.fill is None:
        raise TilefoldError(
            Code.RUN_ARGUMENT,
            f"argument '{argument.name}' has no value",
            f"set it by --fill '{argument.name}=normal', by --arg {argument.name}=file.npy, or by run.arg in the file",
        )
    try:
        return fill_argument(argument.fill.text, argument.name, shape, dtype, earlier, seed=seed, max_bytes=max_bytes)
    except ExpressionError as error:
        raise argument.fill.error(error) from error


def load_array(path: str, name: str, shape: tuple[int, ...], dtype: NumPyType) -> NumPyArray:
    """The array in a `.npy` file, which must have the argument's shape and element type.

    NumPy writes a bfloat16 array as two bytes without a meaning (`|V2`), which are accepted for one. Raises
    TilefoldError.
    """
    array = read_array(path)
    if array.dtype == np.dtype(f"V{dtype.itemsize}"):
        array = array.view(dtype)
    if array.shape != shape or array.dtype != dtype:
        raise TilefoldError(
            Code.RUN_ARGUMENT,
            f"{path} holds {array.dtype} of shape {array.shape}; argument '{name}' is {dtype} of shape {shape}",
        )
    return array


def read_array(path: str) -> NumPyArray:
    """The array in a `.npy` file. TilefoldError (E4001) for another file, and for one that cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise TilefoldError(Code.CLI_READ, f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise TilefoldError(
            Code.CLI_READ, f"{path}: is not an array file: {error}", "write it with numpy.save"
        ) from None
