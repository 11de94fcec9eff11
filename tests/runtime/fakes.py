# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A device, a driver's library and tensors like torch's, for tests of what happens before the driver is reached."""

import ctypes
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from tilefold.base.parameters import TENSOR_MAP, ParameterKind
from tilefold.layout.tma.recipe_text import parse_recipe
from tilefold.runtime.compiled.artifact import Artifact, Parameter
from tilefold.runtime.cuda.driver import Driver, LaunchConfiguration, Library, NativeAttribute
from tilefold.runtime.cuda.loaded_kernel import Kernel
from tilefold.runtime.cuda.prepared import Prepared

from tests.cuda.test_arguments import RecordingDriver
from tests.emit.harness import SM80


@dataclass
class Launched:
    """One call of the driver's launch."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    attributes: list[tuple[int, tuple[int, ...]]]
    function: int
    values: bytes
    context: int


@dataclass
class FakeLibrary:
    """Keeps the launches that it is asked for. `statuses` are the answers to the next ones, 0 after them."""

    current: int = 77
    launched: list[Launched] = field(default_factory=lambda: [])
    statuses: list[int] = field(default_factory=lambda: [])
    kinds: Sequence[ParameterKind] = ()
    multiprocessors: int = 132
    asked: list[Any] = field(default_factory=lambda: [])
    cluster_status: int = 0
    encoded: list[tuple[Any, ...]] = field(default_factory=lambda: [])
    map_status: int = 0

    def encode_tensor_map(
        self, memory: Any, kind: int, rank: Any, address: Any, dims: Any, strides: Any, box: Any, steps: Any,
        interleave: int, swizzle: int, promotion: int, fill: int,
    ) -> int:  # fmt: skip
        """Writes the address, then 8 bytes of ones, then the number of the call."""
        assert memory.value % 64 == 0
        assert list(steps) == [1] * rank.value
        assert interleave == 0
        given = list(dims), list(strides)[: rank.value - 1], list(box)
        self.encoded.append((kind, address.value, *given, swizzle, promotion, fill))
        ctypes.memmove(memory.value, struct.pack("<QqI108x", address.value, -1, len(self.encoded)), 128)
        return self.map_status

    def max_active_clusters(self, count: Any, function: Any, configuration: Any) -> int:
        """As many as multiprocessors without those of a GPC that are left over, of 16 each."""
        given = configuration._obj
        (attribute,) = _attributes(given)
        self.asked.append((given.grid_x, given.shared_bytes, attribute.id, tuple(attribute.value[:3])))
        count._obj.value = self.multiprocessors // 16 * (16 // prod(attribute.value[:3]))
        return self.cluster_status

    def launch(self, configuration: Any, function: Any, parameters: Any, extra: None) -> int:
        if self.statuses and (status := self.statuses.pop(0)):
            return status
        given, addresses = configuration._obj, parameters._obj
        values = b"".join(ctypes.string_at(addresses[i], kind.size) for i, kind in enumerate(self.kinds))
        self.launched.append(
            Launched(
                (given.grid_x, given.grid_y, given.grid_z),
                (given.block_x, given.block_y, given.block_z),
                given.shared_bytes,
                given.stream or 0,
                [(each.id, tuple(each.value[:4])) for each in _attributes(given)],
                function.value,
                values,
                self.current,
            )
        )
        return 0


class NativeLibrary(FakeLibrary):
    """The same, whose launch is a function of C that machine code can call; its parameters are addresses."""

    def __init__(self) -> None:
        super().__init__()
        kind: Any = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
        self.launch = kind(self._launch)

    def _launch(self, configuration: int, function: int, parameters: int, extra: None) -> int:
        given = SimpleNamespace(_obj=LaunchConfiguration.from_address(configuration))
        addresses = SimpleNamespace(_obj=(ctypes.c_void_p * max(len(self.kinds), 1)).from_address(parameters))
        return FakeLibrary.launch(self, given, SimpleNamespace(value=function), addresses, extra)


def _attributes(configuration: Any) -> Any:
    """The attributes behind a configuration's address, which must stay valid until the launch."""
    count = configuration.attribute_count
    return (NativeAttribute * count).from_address(configuration.attributes) if count else ()


class FakeDriver(RecordingDriver):
    """A device with a context, 77, and kernels whose handles are 1000 and more."""

    _context = 77
    device_count = 1
    current = Driver.current

    def __init__(self, library: FakeLibrary) -> None:
        super().__init__()
        self.library = library
        self.api.CUdevice_attribute = SimpleNamespace(
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT=132, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE=50 << 20
        )

    def attribute(self, which: int) -> int:
        return which

    def activate(self) -> None:
        self.library.current = self._context

    def call(self, function: str, *args: Any, doing: str = "") -> Any:
        if function == "cuCtxGetCurrent":
            return self.library.current
        if function == "cuCtxSetCurrent":
            (self.library.current,) = args
            return None
        if function == "cuEventElapsedTime":
            return 2.0
        result = super().call(function, *args, doing=doing)
        return 1000 + len(self.calls) if function == "cuModuleGetFunction" else result

    def fail(self, function: str, status: int, doing: str = "") -> None:
        raise RuntimeError(f"{doing}: {function} {status}")


def prepared(
    library: FakeLibrary, *parameters: Parameter, dynamic_shared: int = 0, maps: Sequence[str] = ()
) -> Prepared:
    """A prepared kernel of blocks of 32 threads on a fake device, with tensor maps by these recipes."""
    recipes = tuple(map(parse_recipe, maps))
    artifact = Artifact("k", "code", SM80, parameters, (32, 1, 1), dynamic_shared=dynamic_shared, maps=recipes)
    library.kinds = [*artifact.kinds, *[TENSOR_MAP] * len(maps)]
    return Prepared(Kernel(cast(Driver, FakeDriver(library)), artifact), cast(Library, library))


class Tensor:
    """What a launch reads of a tensor of torch. `reads` counts nothing: all of it may change in place."""

    def __init__(
        self, address: int, shape: tuple[int, ...] = (4, 8), stride: tuple[int, ...] | None = None,
        dtype: str = "float32", device: int = 0,
    ) -> None:  # fmt: skip
        self.address, self.shape, self._stride, self._device = address, shape, stride, device
        self.dtype = f"torch.{dtype}"
        self.layout = "torch.strided"
        self.negated = False
        self.is_cuda = device >= 0
        self.device = SimpleNamespace(type="cuda" if device >= 0 else "cpu")

    def data_ptr(self) -> int:
        return self.address

    def stride(self) -> tuple[int, ...]:
        from tilefold.runtime.arrays.array import row_major

        return row_major(self.shape) if self._stride is None else self._stride

    def storage_offset(self) -> int:
        return 0

    def element_size(self) -> int:
        return 4

    def get_device(self) -> int:
        return self._device

    def is_neg(self) -> bool:
        return self.negated


Tensor.__module__ = "torch"


@pytest.fixture
def torch_module(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A module `torch` whose current stream is `stream` of the fixture's value, 0 at first."""
    state = SimpleNamespace(stream=0)

    def current(device: int) -> int:
        return state.stream + device

    module: Any = ModuleType("torch")
    module._C = SimpleNamespace(_cuda_getCurrentRawStream=current)
    monkeypatch.setitem(sys.modules, "torch", module)
    return state
