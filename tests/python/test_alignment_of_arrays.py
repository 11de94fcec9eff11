# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The alignment of the host's arrays: that of a CUDA array at the same offset of its allocation."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from tilefold.base.errors import TilefoldError
from tilefold.runtime.arrays.array import array_of
from tilefold.runtime.arrays.signature import infer_array_spec

from tests.kernels.harness import STAGES
from tilefold import cute
from tilefold.cute.runtime import from_dlpack


@cute.kernel
def vectors(X: cute.Tensor, Y: cute.Tensor, bits: cute.Constexpr[int]):
    """Y gets X, by accesses of so many bits of both."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), X.element_type, num_bits_per_copy=bits)
    t, n = cute.arch.thread_idx()[0], bits // X.element_type.width
    x, y = (cute.local_tile(tensor, (n,), (t,)) for tensor in (X, Y))
    values = cute.make_fragment_like(x)
    cute.copy(atom, x, values)
    cute.copy(atom, values, y)


@cute.kernel
def addressed(X: cute.Tensor, Y: cute.Tensor, bits: cute.Constexpr[int]):
    """The same with a promise of alignment that is the kernel's."""
    aligned = cute.make_tensor(X.iterator.align(bits // 8), X.layout)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), X.element_type, num_bits_per_copy=bits)
    t, n = cute.arch.thread_idx()[0], bits // X.element_type.width
    x, y = (cute.local_tile(tensor, (n,), (t,)) for tensor in (aligned, Y))
    values = cute.make_fragment_like(x)
    cute.copy(atom, x, values)
    cute.autovec_copy(values, y)


BASE = np.arange(512, dtype=np.float32)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("bits", [32, 64, 128])
@pytest.mark.parametrize("offset", range(6))
def test_an_access_needs_the_alignment_of_the_offset(offset: int, bits: int, stage: str) -> None:
    n = 32 * bits // 32
    X, Y = BASE[offset : offset + n], np.zeros(n, np.float32)
    for call, code in ((vectors(X, Y, bits), "E0312"), (addressed(X, Y, bits), "E3203")):
        Y[:] = 0
        if offset * 32 % bits == 0:
            call.launch(grid=1, block=32, device="sim", stage=stage)
            assert np.array_equal(X, Y)
            continue
        with pytest.raises(TilefoldError) as caught:
            call.launch(grid=1, block=32, device="sim", stage=stage)
        assert caught.value.code == code
        assert not Y.any()


def _buffer(make: Callable[[int], Any]) -> Any:
    return np.frombuffer(make(1024), np.float32, offset=12)


class _Interface:
    """Memory of a library that is not NumPy."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize(
    ("array", "align"),
    [
        (BASE, 16),
        (BASE[1:], 4),
        (BASE[2:][2:], 16),
        (BASE[3:].reshape(-1)[3:], 8),
        (BASE.reshape(2, 256)[1, 1:], 4),
        (BASE.view(np.uint8)[6:16].view(np.float16), 2),
        (as_strided(BASE[2:], (4, 4), (4, 4)), 8),
        (np.asfortranarray(BASE.reshape(2, 256))[1:], 4),
        (_buffer(bytearray), 4),
        (_buffer(bytes), 4),
        (_buffer(lambda n: (ctypes.c_char * n)()), 4),
        (_buffer(lambda n: memoryview(bytearray(n + 4))[4:]), 4),
        (np.frombuffer(np.zeros(1024, np.uint8)[4:], np.float32, offset=12), 16),
    ],
)
def test_alignment_follows_from_the_offset_in_the_memory_that_is_allocated(array: Any, align: int) -> None:
    assert infer_array_spec("X", array_of("X", array)).align == align


def test_alignment_does_not_depend_on_the_address_of_the_allocation() -> None:
    """An allocation that begins at any address counts as aligned."""
    room = np.zeros(1024, np.uint8)
    for begin in range(0, 64, 4):
        owner: Any = (ctypes.c_uint8 * 512).from_address(room.ctypes.data + begin)
        whole = np.frombuffer(owner, np.float32)
        assert infer_array_spec("X", array_of("X", whole)).align == 16
        assert infer_array_spec("X", array_of("X", whole[2:])).align == 8
        X, Y = whole[4:], np.zeros(124, np.float32)
        X[:] = BASE[:124]
        vectors(X, Y, 128).launch(grid=1, block=31, device="sim")
        assert np.array_equal(X, Y)


def test_memory_of_an_unknown_owner_has_the_alignment_of_its_address() -> None:
    room = np.zeros(64, np.float32)
    first = -room.ctypes.data // 4 % 16
    for step in range(5):
        array = array_of("X", _Interface(room[first + step :]))
        assert infer_array_spec("X", array).align == (16, 4, 8, 4, 16)[step]


def test_promises_are_those_of_the_offset() -> None:
    for align in (4, 8, 16, 256):
        assert infer_array_spec("X", array_of("X", BASE), cute.Dynamic(align=align)).align == align
        from_dlpack(BASE, assumed_align=align)
    for X, align, said in ((BASE[1:], 8, "4 bytes after its allocation"), (BASE, 512, "aligned to 256 bytes at most")):
        for promise in (cute.dynamic(X, align=align), None):
            with pytest.raises(TilefoldError, match=said):
                from_dlpack(X, assumed_align=align) if promise is None else vectors(promise, BASE, 32).build(32)


def test_tensors_of_torch_have_the_alignment_of_their_storage_offset() -> None:
    torch = pytest.importorskip("torch", reason="these are tensors of torch")
    whole = torch.arange(64, dtype=torch.float32)
    for begin, align in ((0, 16), (1, 4), (2, 8), (4, 16), (6, 8)):
        part = whole[begin:]
        assert infer_array_spec("X", array_of("X", part)).align == align
        assert infer_array_spec("X", array_of("X", part.numpy())).align == align
        assert infer_array_spec("X", array_of("X", from_dlpack(part).array)).align == align


def test_compiled_functions_are_for_an_alignment() -> None:
    @cute.jit
    def run(X: cute.Tensor, Y: cute.Tensor):
        vectors(X, Y, 128).launch(grid=(1, 1, 1), block=(31, 1, 1))

    Y = np.zeros(124, np.float32)
    compiled: Any = cute.compile(run, from_dlpack(BASE[4:128]), from_dlpack(Y))
    compiled(from_dlpack(BASE[8:132]), from_dlpack(Y))
    assert np.array_equal(Y, BASE[8:132])
    with pytest.raises(TilefoldError, match="only known to be aligned to 8") as caught:
        compiled(from_dlpack(BASE[6:130]), from_dlpack(Y))
    assert caught.value.code == "E0312"
