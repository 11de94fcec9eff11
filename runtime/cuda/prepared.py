# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel whose launches are prepared: the memory that a launch needs is there, and holds all that does not change.

A *frame* is that memory for one launch at a time: the driver's configuration, the values of the arguments where their
kinds align them, and the array of their addresses. A launch takes a frame, writes the values that differ, calls the
driver, which copies it all, and gives the frame back; so any number of threads can launch at once.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct
from typing import Any

from ...base.parameters import TENSOR_MAP, ParameterKind, offsets_of
from ..engine import LaunchConfig
from ..options import LaunchAttributes, dim3
from .driver import LaunchConfiguration, Library, make_native_attributes
from .loaded_kernel import Kernel, check_cluster, check_launch
from .map_encoder import MapEncoder
from .packed_arguments import PackedArguments

GridOf = Callable[[Any], Any]
"""The grid for the argument of a launch. For None it is always the same."""

_UNPLACED = object()
"""Stands for a forgotten grid; it differs from every grid."""

_OTHER_CONTEXT = (201, 400)
"""CUDA_ERROR_INVALID_CONTEXT and CUDA_ERROR_INVALID_HANDLE: another context is current than the kernel's, or none."""


class Frame:
    """The memory of one launch. `grid`, `stream` and `attributes` are those of the launch before, and `mapped` the
    values from which its tensor maps were made.
    """

    __slots__ = (
        "_configuration", "_grid_of", "_library", "_maps", "_native", "_offsets", "_parameters", "attributes", "call",
        "grid", "mapped", "memory", "stream",
    )  # fmt: skip

    def __init__(self, kernel: Kernel, library: Library, grid_of: GridOf | None = None) -> None:
        passed, maps = kernel.artifact.kinds, kernel.artifact.maps
        kinds: list[ParameterKind] = [*passed, *[TENSOR_MAP] * len(maps)]
        offsets, size = offsets_of(kinds)
        self._offsets = offsets[: len(passed)]
        self.mapped: tuple[int, ...] = ()
        align = max((kind.align for kind in kinds), default=1)
        memory = (ctypes.c_char * (size + align))()
        begin = -ctypes.addressof(memory) % align
        self.memory: Any = (ctypes.c_char * (size + 1)).from_buffer(memory, begin)
        first = size - TENSOR_MAP.size * len(maps)  # they are the last values, without gaps
        self._maps = memoryview(self.memory).cast("B")[first:size]
        places = (ctypes.addressof(self.memory) + offset for offset in offsets)
        self._parameters = (ctypes.c_void_p * max(len(kinds), 1))(*places)
        x, y, z = kernel.artifact.block
        self._configuration = LaunchConfiguration(1, 1, 1, x, y, z, kernel.artifact.dynamic_shared, None, None, 0)
        self.call: Callable[[], int] = partial(
            library.launch,
            ctypes.byref(self._configuration),
            ctypes.c_void_p(kernel.handle),
            ctypes.byref(self._parameters),
            None,
        )
        self._grid_of, self._library = grid_of, library
        self.grid: Any = _UNPLACED
        self.stream = 0
        self.attributes: LaunchAttributes = ()
        self._native = make_native_attributes(())

    def place(self, kernel: Kernel, grid: object) -> None:
        """The grid of the next launches: one to three sizes, or an argument of `grid_of`. LaunchError for one that no
        GPU launches.
        """
        self.grid = _UNPLACED  # of a grid that is refused, nothing is remembered
        x, y, z = dim3("grid", grid if self._grid_of is None else self._grid_of(grid))
        config = LaunchConfig((x, y, z), kernel.artifact.block, attributes=self.attributes)
        config = check_launch(kernel.artifact, config)
        check_cluster(kernel, self._library, config.cluster)
        configuration = self._configuration
        configuration.grid_x, configuration.grid_y, configuration.grid_z = x, y, z
        self.grid = grid if grid is None or isinstance(grid, tuple | int) else _UNPLACED  # a list may change

    def queue(self, stream: int) -> None:
        """The stream of the next launches, by its handle."""
        self._configuration.stream = stream
        self.stream = stream

    def attach(self, attributes: LaunchAttributes) -> None:
        """The attributes of the next launches. Their grid must be placed again, since it depends on the cluster."""
        self._native = make_native_attributes(attributes)
        self._configuration.attributes = ctypes.addressof(self._native) if attributes else None
        self._configuration.attribute_count = len(attributes)
        self.attributes = attributes
        self.grid = _UNPLACED

    def fill(self, packed: PackedArguments) -> None:
        """The values of arguments that are packed one by one."""
        for offset, value in zip(self._offsets, packed.values, strict=True):
            self.memory[offset : offset + len(value)] = value

    @property
    def map_bytes(self) -> bytes:
        """The tensor maps of the launch before."""
        return bytes(self._maps)

    def map(self, values: tuple[int, ...], maps: bytes) -> None:
        """The tensor maps of the next launches, made of these values."""
        self._maps[:] = maps
        self.mapped = values


class Prepared:
    """The launches of a kernel that is loaded on a device.

    `pack(frame.memory, 0, *values)` writes all values of a launch; `take` and `give` are those of the pool of frames,
    of which `take` raises IndexError if it is empty.
    """

    __slots__ = ("_grid_of", "encoder", "give", "kernel", "library", "ordinal", "pack", "take")

    def __init__(self, kernel: Kernel, library: Library, grid_of: GridOf | None = None) -> None:
        self.kernel = kernel
        self.library = library
        self._grid_of = grid_of
        self.encoder = MapEncoder(kernel.artifact, library, kernel.driver) if kernel.artifact.maps else None
        self.ordinal: int = kernel.driver.ordinal
        self.pack: Callable[..., None] = Struct(_format(kernel.artifact.kinds)).pack_into
        pool: list[Frame] = []
        self.take: Callable[[], Frame] = pool.pop
        self.give: Callable[[Frame], None] = pool.append

    @property
    def has_grid_of(self) -> bool:
        """Whether a launch's grid is an argument from which a function computes it."""
        return self._grid_of is not None

    def frame(self) -> Frame:
        """A new frame; `give` keeps it for later launches."""
        return Frame(self.kernel, self.library, self._grid_of)

    def recover(self, frame: Frame, status: int) -> None:
        """Launches once more, in the kernel's context, where another was current in this thread. CudaError otherwise.

        Most launches find the right one, and asking for it before each would take longer than some can.
        """
        driver = self.kernel.driver
        if status in _OTHER_CONTEXT:
            with driver.current():
                status = frame.call()
        if status:
            driver.fail("cuLaunchKernelEx", status, doing=f"launching kernel '{self.kernel.artifact.kernel}'")

    def ready(self, packed: PackedArguments, grid: object, stream: int, attributes: LaunchAttributes) -> Frame:
        """A frame for a launch on arguments that are packed one by one. LaunchError for a grid that cannot be."""
        try:
            frame = self.take()
        except IndexError:
            frame = self.frame()
        frame.fill(packed)
        if self.encoder is not None:
            values = tuple(int.from_bytes(packed.values[place], "little") for place in self.encoder.places)
            frame.map(values, self.encoder.encoded(values))
        frame.attach(attributes)
        frame.place(self.kernel, grid)
        frame.queue(stream)
        return frame

    def run(self, frame: Frame) -> None:
        """Queues the launch of a frame. CudaError if the driver refuses it."""
        status = frame.call()
        if status:
            self.recover(frame, status)


def _format(kinds: Sequence[ParameterKind]) -> str:
    """How `struct` writes all values, in the machine's order, which is fastest, with the bytes between them."""
    text, end = "@", 0
    for kind, offset in zip(kinds, offsets_of(kinds)[0], strict=True):
        text += f"{offset - end}x{kind.packing}"
        end = offset + kind.size
    return text
