# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host functions as calls of JAX (`cutlass.jax`): within `jax.jit`, `shard_map` and `jax.export`, on JAX's CPU devices,
where kernels are simulated.

XLA calls them through its foreign function interface, with its own memory. A call lives as long as the process, so that
an exported function runs in the process that has exported it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from threading import Lock
from types import MappingProxyType, ModuleType
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.scalars.dtypes import DTYPES, DType
from tilefold.cute.runtime import from_dlpack

from .xla_frames import Arrays, handler

__all__ = [
    "TensorSpec", "create_tensor", "cutlass_call", "cutlass_to_jax_dtype", "get_export_disabled_safety_checks",
    "jax_to_cutlass_dtype",
]  # fmt: skip

_TARGET = "tilefold_call"
_NAMES: Mapping[str, str] = MappingProxyType({
    "Boolean": "bool", "Int8": "int8", "Int16": "int16", "Int32": "int32", "Int64": "int64", "Uint8": "uint8",
    "Uint16": "uint16", "Uint32": "uint32", "Uint64": "uint64", "Float16": "float16", "BFloat16": "bfloat16",
    "Float32": "float32", "Float64": "float64", "Float8E4M3FN": "float8_e4m3fn", "Float8E5M2": "float8_e5m2",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """How a kernel sees an array: mode `i` is mode `mode[i]` of the array. Its layout is a constant of the kernel,
    whatever `static` and `divisibility` say.
    """

    mode: Sequence[int] | None = None
    static: bool | None = None
    divisibility: Sequence[int | None] | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """A host function, with the structure of its arguments, and how its kernels see the arrays."""

    function: Callable[..., object]
    structure: Any
    specs: Sequence[TensorSpec]
    aliases: Mapping[int, int]
    words: Mapping[str, object]

    def run(self, args: Arrays, results: Arrays) -> None:
        """Fills the results."""
        for source, result in self.aliases.items():
            results[result][...] = args[source]
        others = [array for place, array in enumerate(results) if place not in self.aliases.values()]
        given = [results[self.aliases[place]] if place in self.aliases else array for place, array in enumerate(args)]
        seen = zip([*given, *others], self._seen(len(args)), strict=True)
        tensors = [from_dlpack(array if spec.mode is None else array.transpose(spec.mode)) for array, spec in seen]
        inputs = _module("jax.tree_util").tree_unflatten(self.structure, tensors[: len(args)])
        self.function(None, *inputs, *tensors[len(args) :], **self.words)

    def _seen(self, args: int) -> list[TensorSpec]:
        results = [spec for place, spec in enumerate(self.specs[args:]) if place not in self.aliases.values()]
        return [*self.specs[:args], *results]


def _module(name: str) -> ModuleType:
    """JAX, or a part of it, which a program that calls this has."""
    return import_module(name)


_CALLS: dict[int, _Call] = {}
_LOCK = Lock()


def cutlass_call(
    fn: Callable[..., object],
    *,
    output_shape_dtype: object,
    input_spec: object = None,
    output_spec: object = None,
    input_output_aliases: Mapping[int, int] | None = None,
    use_static_tensors: bool = False,
    **kwargs: object,
) -> Callable[..., Any]:
    """A function of JAX arrays that calls `fn(stream, *inputs, *outputs, **kwargs)`, a function decorated with
    `cute.jit` or one that calls such. `output_shape_dtype` is a `jax.ShapeDtypeStruct`, or a structure of these, which
    the results have.

    `input_spec` and `output_spec` have a `TensorSpec`, or None, for each array. The layouts of arrays are constants,
    with `use_static_tensors` and without it: a call with other shapes compiles the kernels again.
    `input_output_aliases` maps an input to the output which begins as that input; the function gets it once. Raises
    TilefoldError (E5002) where JAX has GPUs.
    """

    def call(*inputs: object) -> Any:
        leaves, structure = _module("jax.tree_util").tree_flatten(inputs)
        shapes, results = _module("jax.tree_util").tree_flatten(output_shape_dtype)
        specs = [*_specs(input_spec, len(leaves)), *_specs(output_spec, len(shapes))]
        aliases = dict(input_output_aliases or {})
        number = _number(_Call(fn, structure, specs, aliases, kwargs))
        wanted = [_module("jax").ShapeDtypeStruct(shape.shape, shape.dtype) for shape in shapes]
        made = _module("jax.ffi").ffi_call(_target(), wanted, has_side_effect=True)(*leaves, call=number)
        return _module("jax.tree_util").tree_unflatten(results, made)

    return call


def _specs(given: Any, count: int) -> list[TensorSpec]:
    """A spec for each of `count` arrays."""
    specs: list[TensorSpec | None] = [*given] if isinstance(given, tuple | list) else [given] * count
    if len(specs) != count:
        message, hint = f"{len(specs)} specs for {count} arrays", "give one for each array, or None"
        raise TilefoldError(Code.BUILD_VALUE, message, hint)
    return [TensorSpec() if spec is None else spec for spec in specs]


def _number(call: _Call) -> Any:
    """The number by which XLA names a call."""
    import numpy as np

    with _LOCK:
        number = len(_CALLS)
        _CALLS[number] = call
    return np.int64(number)


@cache
def _target() -> str:
    """The name of the handler, which JAX knows from now on."""
    if (backend := _module("jax").default_backend()) != "cpu":
        message = f"cutlass.jax runs kernels on JAX's CPU devices, not on {backend} devices"
        raise TilefoldError(Code.BUILD_VALUE, message, "set JAX_PLATFORMS=cpu, or launch kernels with JAX arrays")
    _module("jax.ffi").register_ffi_target(_TARGET, _module("jax.ffi").pycapsule(_handler()), platform="cpu")
    return _TARGET


@cache
def _handler() -> Any:
    def run(number: int, args: Arrays, results: Arrays) -> None:
        if number not in _CALLS:
            hint = "export the function again in this process"
            raise TilefoldError(Code.BUILD_VALUE, "another process has made this call", hint)
        with _LOCK:
            _CALLS[number].run(args, results)

    return handler(run)


def get_export_disabled_safety_checks() -> Sequence[Any]:
    """The `disabled_checks` of `jax.export.export` for functions with such calls."""
    return (_module("jax.export").DisabledSafetyCheck.custom_call(_TARGET),)


def cutlass_to_jax_dtype(dtype: DType) -> Any:
    """The type of JAX's elements for one of kernels. TilefoldError (E5002) for others."""
    if dtype.name not in _NAMES:
        raise TilefoldError(Code.BUILD_VALUE, f"JAX has no elements of type {dtype}", f"one of {', '.join(_NAMES)}")
    return _module("jax.numpy").dtype(_NAMES[dtype.name])


def jax_to_cutlass_dtype(dtype: object) -> DType:
    """The element type in kernels for JAX's. TilefoldError (E5002) for others."""
    known = {given: name for name, given in _NAMES.items()}
    if (name := _module("jax.numpy").dtype(dtype).name) not in known:
        raise TilefoldError(Code.BUILD_VALUE, f"kernels have no elements of type {name}", f"one of {', '.join(known)}")
    return DTYPES[known[name]]


def create_tensor(shape: Sequence[int], dtype: object, key: object, *, minval: float = -2, maxval: float = 2) -> Any:
    """An array of uniformly distributed numbers from `minval` to `maxval`, integers if the type is one of integers."""
    jax, jnp = import_module("jax"), import_module("jax.numpy")
    if jnp.issubdtype(dtype, jnp.integer):
        return jax.random.randint(key, shape, int(minval), int(maxval) + 1, dtype)
    return jax.random.uniform(key, shape, jnp.float32, minval, maxval).astype(dtype)
