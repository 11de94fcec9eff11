# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A launch as machine code, for arguments that are torch tensors of known shapes, numbers and constants.

It makes the same comparisons as the function of [direct](direct.py), and calls that function for all else: other
arguments, attributes, streams that are objects, and statuses of the driver. Of each tensor it reads device, element
type, shape, strides and address in one call of DLPack's C functions (`DLPackExchangeAPI` in dlpack.h, DLPack 1.3),
where torch has them. One function ([native_launch.ll](native_launch.ll)) serves all kernels; LLVM makes it in some 20
ms, so a launch becomes native after it has been repeated.
"""

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ...base.held_signals import holding_signals
from ...base.parameters import TENSOR_MAP, offsets_of
from ...base.target import MAX_GRID
from ..native_code import compiled
from ..options import dim3
from .comparison import Comparison, Exact, Number, Tensor
from .driver import LaunchConfiguration
from .prepared import Prepared

_BYTES, _VALUES = 4096, 512
"""The space for values, and the most of them, in native_launch.ll."""
_FUNCTIONS = (
    "PyTuple_GetItem", "PyTuple_Size", "PyLong_AsVoidPtr", "PyLong_AsLongLongAndOverflow", "PyFloat_AsDouble",
    "PyObject_Vectorcall", "PyErr_Clear", "Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
_METH_FASTCALL = 0x80
_NUMBERS = {"f": 2, "d": 3, "i": 4, "I": 4, "q": 5, "Q": 5}
"""The kinds of numbers by their formats in `struct`."""

Launch = Callable[[tuple[Any, ...], Any, Any, Any, Any], Any]
_THREE = ctypes.c_int64 * 3


class _State(ctypes.Structure):
    """`%State` in native_launch.ll."""

    _fields_ = (
        ("count", ctypes.c_int64), ("entries", ctypes.c_void_p), ("otherwise", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p), ("none", ctypes.c_void_p), ("int", ctypes.c_void_p),
        ("tuple", ctypes.c_void_p), ("float", ctypes.c_void_p), ("false", ctypes.c_void_p),
        ("is_neg", ctypes.c_void_p), ("block", _THREE), ("least_grid", _THREE), ("greatest_grid", _THREE),
        ("torch_type", ctypes.c_int32), ("torch_number", ctypes.c_int32), ("read", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p), ("driver", ctypes.c_void_p), ("function", ctypes.c_void_p),
        ("configuration", LaunchConfiguration), ("parameter_count", ctypes.c_int64), ("offsets", ctypes.c_void_p),
        ("mapped_count", ctypes.c_int64), ("mapped_offsets", ctypes.c_void_p), ("mapped", ctypes.c_void_p),
        ("maps", ctypes.c_void_p), ("map_bytes", ctypes.c_int64), ("map_offset", ctypes.c_int64),
        ("not_implemented", ctypes.c_void_p),
    )  # fmt: skip


class _Entry(ctypes.Structure):
    """`%Entry` in native_launch.ll."""

    _fields_ = (
        ("kind", ctypes.c_int64), ("object", ctypes.c_void_p), ("device", ctypes.c_uint64), ("type", ctypes.c_uint64),
        ("modes", ctypes.c_void_p), ("mask", ctypes.c_uint64), ("bits", ctypes.c_uint64), ("least", ctypes.c_int64),
        ("greatest", ctypes.c_int64), ("offset", ctypes.c_int64),
    )  # fmt: skip


class _DLTensor(ctypes.Structure):
    """DLTensor, with DLDevice as one number, and its rank and DLDataType as another."""

    _fields_ = (
        ("data", ctypes.c_uint64), ("device", ctypes.c_uint64), ("type", ctypes.c_uint64),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class _Exchange(ctypes.Structure):
    """DLPackExchangeAPI, which begins with a version."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("before", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p), ("managed", ctypes.c_void_p), ("to_object", ctypes.c_void_p),
        ("read", ctypes.c_void_p), ("current_stream", ctypes.c_void_p),
    )  # fmt: skip


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int), ("text", ctypes.c_char_p),
    )  # fmt: skip


def native(text: Comparison, prepared: Prepared, grid: object, otherwise: Launch) -> Launch | None:
    """The launch of a prepared kernel for arguments that a text compares; `otherwise` launches all others. None if an
    argument, the kernel or this Python are not for it. `grid` is one that a kernel in clusters was launched with.
    """
    try:
        return _native(text, prepared, grid, otherwise) if _works() else None
    except (AttributeError, TypeError, ValueError, ctypes.ArgumentError, OSError, RuntimeError):
        return None  # torch, DLPack or LLVM are others than this file knows


def _native(text: Comparison, prepared: Prepared, grid: object, otherwise: Launch) -> Launch | None:
    artifact, maps = prepared.kernel.artifact, prepared.kernel.artifact.maps
    kinds = [*artifact.kinds, *[TENSOR_MAP] * len(maps)]
    offsets, size = offsets_of(kinds)
    arguments = [text.arguments[number] for number in sorted(text.arguments)]  # `write` has one for each
    if prepared.has_grid_of or size > _BYTES or len(kinds) > _VALUES:
        return None
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    exchange = _exchange() if tensors else _Exchange()
    torch: Any = sys.modules["torch"] if tensors else None
    entries = (_Entry * len(arguments))()
    kept: list[object] = [arguments, entries, otherwise, prepared, torch]
    for entry, argument in zip(entries, arguments, strict=True):
        match argument:
            case Tensor():
                if not _fill_tensor(entry, argument, exchange, kept):
                    return None
                entry.offset = offsets[argument.first]
            case Exact():
                entry.kind, entry.object = 1, id(argument.value)
            case Number():
                known = _NUMBERS.get(argument.kind.packing)
                if known is None:
                    return None
                entry.kind, entry.offset = known, offsets[argument.first]
                entry.least, entry.greatest = argument.least, argument.greatest
    least, greatest = ((1, 1, 1), MAX_GRID) if artifact.cluster is None else (dim3("grid", grid),) * 2
    places = (ctypes.c_int64 * max(len(offsets), 1))(*offsets)
    configuration = LaunchConfiguration(1, 1, 1, *artifact.block, artifact.dynamic_shared, None, None, 0)
    device = _read(exchange, tensors[0].given).device if tensors else 0
    state = _State(
        count=len(arguments), entries=ctypes.addressof(entries), otherwise=id(otherwise), attributes=id(()),
        none=id(None), int=id(int), tuple=id(tuple), float=id(float), false=id(False),
        is_neg=id(torch.Tensor.is_neg) if tensors else None, block=_THREE(*artifact.block), least_grid=_THREE(*least),
        greatest_grid=_THREE(*greatest), torch_type=device & 0xFFFFFFFF, torch_number=device >> 32,
        read=exchange.read, current_stream=exchange.current_stream, driver=_address(prepared.library.launch),
        function=prepared.kernel.handle, configuration=configuration, parameter_count=len(kinds),
        offsets=ctypes.addressof(places), not_implemented=id(NotImplemented),
    )  # fmt: skip
    kept += [places, state, torch.Tensor.is_neg if tensors else None]
    if prepared.encoder is not None:
        known = [offsets[place] for place in prepared.encoder.places]
        if not all(artifact.kinds[place].is_tensor for place in prepared.encoder.places):
            return None
        otherwise = _keeping_maps(state, known, len(maps) * TENSOR_MAP.size, offsets[-len(maps)], prepared, otherwise)
        state.otherwise = id(otherwise)
        kept.append(otherwise)
    return _maker()(state, kept)


def _fill_tensor(entry: _Entry, tensor: Tensor, exchange: _Exchange, kept: list[object]) -> bool:
    """Notes the expected tensor; returns whether DLPack describes it as torch does."""
    given, array = tensor.given, tensor.array
    read, rank = _read(exchange, given), len(array.shape)
    modes = (ctypes.c_int64 * max(2 * rank, 1))(*array.shape, *array.strides)
    told = [*read.shape[:rank], *read.strides[:rank]] if rank else []
    kept += [modes, type(given)]
    entry.object, entry.device, entry.type, entry.modes = (
        id(kept[-1]),
        read.device,
        read.type,
        ctypes.addressof(modes),
    )
    entry.mask, entry.bits = tensor.aligned
    return told == list(modes[: 2 * rank]) and read.data + read.byte_offset == array.address and not given.is_neg()


def _keeping_maps(
    state: _State, offsets: Sequence[int], size: int, offset: int, prepared: Prepared, otherwise: Launch
) -> Launch:
    """`otherwise`, which afterwards shows the tensor maps of its launch to the native one."""
    memory = ctypes.create_string_buffer(8 * len(offsets) + size)
    places = (ctypes.c_int64 * len(offsets))(*offsets)
    view, address = memoryview(memory).cast("B"), ctypes.addressof(memory)
    state.mapped_offsets, state.mapped, state.maps = ctypes.addressof(places), address, address + 8 * len(offsets)
    state.mapped_count, state.map_bytes, state.map_offset = len(offsets), size, offset

    def show(keep: object = places) -> None:
        try:
            frame = prepared.take()
        except IndexError:  # another thread has it
            return
        if len(frame.mapped) == len(offsets):
            # at once, since a native launch in another thread may read it before or after, but not between
            view[:] = b"".join(value.to_bytes(8, "little") for value in frame.mapped) + frame.map_bytes
        prepared.give(frame)

    def launch(*given: Any) -> Any:
        result = otherwise(*given)
        if result is None:
            show()
        return result

    show()
    return launch


def _read(exchange: _Exchange, tensor: object) -> _DLTensor:
    """DLPack's description of a tensor. ValueError if it has none."""
    made = _DLTensor()
    read = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_DLTensor))(exchange.read)
    if read(tensor, ctypes.byref(made)):
        raise ValueError
    return made


@cache
def _exchange() -> _Exchange:
    """Torch's functions of DLPack. AttributeError for a torch without them, ValueError for those of other versions."""
    capsule = sys.modules["torch"].Tensor.__dlpack_c_exchange_api__
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    exchange = _Exchange.from_address(get(capsule, b"dlpack_exchange_api"))
    if exchange.major != 1 or not exchange.read or not exchange.current_stream:
        raise ValueError
    return exchange


@cache
def _works() -> bool:
    """Whether objects of this Python begin with a count of references and their type, and it has one lock."""
    is_locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    return (
        sys.implementation.name == "cpython"
        and is_locked
        and object.__basicsize__ == 16
        and ctypes.c_void_p.from_address(id(object) + 8).value == id(type)
    )


def _address(function: Any) -> int:
    """The address of a function of C. ArgumentError or TypeError for any other."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
@holding_signals
def _maker() -> Callable[[_State, object], Launch]:
    """Makes functions of Python that launch by a state, and keep objects alive."""
    text = Path(__file__).with_suffix(".ll").read_text(encoding="utf-8")
    symbols = {name: _address(getattr(ctypes.pythonapi, name)) for name in _FUNCTIONS}
    engine = compiled(text, symbols)
    method = _Method(b"launch", engine.get_function_address("launch"), _METH_FASTCALL, None)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )

    def function(state: _State, kept: object) -> Launch:
        own = ctypes.addressof(state), state, kept, method, engine  # which must live as long as the function
        return make(ctypes.addressof(method), own, None)

    return function
