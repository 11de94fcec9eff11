# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of kernels by the protocol of their kinds: one of 128 bytes at multiples of 64, as tensor maps of a GPU
are, goes the whole way from the type in the IR to the driver, to C, to the disk and into the simulator.
"""

import ctypes
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.limits import Limits
from tilefold.base.parameters import (
    POINTER,
    SCALARS,
    ParameterKind,
    Placed,
    kind_named,
    offsets_of,
)
from tilefold.base.spaces import GMEM, SMEM
from tilefold.base.target import Target
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pipeline import make_context
from tilefold.dialects.kernel import ParameterType, passed_as
from tilefold.dialects.ptx import GLOBAL, SHARED, EntryOp
from tilefold.layout.algebra.core import Layout
from tilefold.runtime.arrays.host_tensors import Placing
from tilefold.runtime.compiled.artifact import Artifact, Build, Parameter, make_artifact
from tilefold.runtime.compiled.store import Store, digest
from tilefold.runtime.cuda.comparison import Rules
from tilefold.runtime.cuda.driver import Driver
from tilefold.runtime.cuda.launcher import Launcher
from tilefold.runtime.cuda.packed_arguments import PackedArguments
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.sim.grids import Grids
from tilefold.runtime.sim.launch import LaunchState
from tilefold.runtime.sim.memory.arena import Arena
from tilefold.runtime.sim.memory.local import LocalSpace
from tilefold.runtime.sim.memory.memories import Memories
from tilefold.runtime.sim.memory.spaces import Space
from tilefold.runtime.sim.preparation import bind
from tilefold.runtime.sim.rules import rule_of
from tilefold.runtime.sim.translate import Translator
from xdsl.dialects.builtin import Float8E5M2Type, VectorType, f32, i64
from xdsl.ir import ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition

from tests.cuda.test_arguments import RecordingDriver
from tests.runtime.fakes import FakeLibrary, Tensor, prepared, torch_module
from tilefold.driver.lowering import Program
from tilefold.tools.export.c_names import arguments
from tilefold.tools.export.exporting import header

__all__ = ["torch_module"]

SM90 = Target("sm_90a")


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor of a tensor, which a launch makes of its address and its layout, and of a `box`."""

    box: int
    size: int = 128
    align: int = 64
    is_tensor: bool = True
    packing: str = "128s"
    c: str = "CUtensorMap"
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"descriptor {self.box}")

    def llvm(self, align: int) -> str:
        return f'ptr byval([{self.size} x i8]) align {self.align} "nvvm.grid_constant"'

    def pack(self, value: Placed) -> bytes:
        if self.box > value.layout.shape[0]:
            raise ValueError(value)
        return struct.pack("<Q3I108x", value.address, self.box, *value.layout.shape)

    def unpack(self, data: bytes) -> Any:
        return struct.unpack("<Q3I108x", data)


@irdl_attr_definition
class DescriptorType(ParametrizedAttribute, TypeAttribute, ParameterType):
    name = "testing.descriptor"

    def passed_as(self) -> Descriptor:
        return Descriptor(16)


MAP = Descriptor(16)
LAYOUT = Layout((32, 8), (8, 1))
PARAMETERS = (
    Parameter("n", SCALARS["i8"]),
    Parameter("map", MAP, 16),
    Parameter("A", POINTER, 16),
    Parameter("m", SCALARS["i32"]),
)
KERNEL = """
!A = !tile.tensor<f32, gmem, align<16>, "(32,8):(8,1)">

gpu.module @kernels {
  tile.kernel @k(%n: i8, %map: !testing.descriptor, %A: !A) threads(32) {
    %x = arith.constant 1.0 : f32
    %i = arith.constant 0 : index
    tile.store %x, %A(%i, %i)
    return
  }
}
"""


def _kinds(name: str) -> ParameterKind:
    return MAP if name == MAP.name else kind_named(name)


def _program(target: Target = SM90) -> Program:
    context = make_context()
    context.load_attr_or_type(DescriptorType)
    source = plain_source(KERNEL, "k.cute")
    return Program(source, parse_program(source, context), context, target)


def _storage() -> NDArray[np.float32]:
    return np.zeros(256, np.float32)


def _given(address: int) -> tuple[int, int, int, int]:
    return address, 16, 32, 8


def test_places_of_values() -> None:
    assert offsets_of(each.kind for each in PARAMETERS) == ([0, 64, 192, 200], 204)
    assert offsets_of([]) == ([], 0)
    assert offsets_of([SCALARS["i1"], SCALARS["i64"], SCALARS["f16"]]) == ([0, 8, 16], 18)


def test_a_launch_packs_it_at_a_multiple_of_its_alignment() -> None:
    library, driver, storage = FakeLibrary(), RecordingDriver(), _storage()
    made = prepared(library, *PARAMETERS)
    tensor = TensorArgument(storage, LAYOUT)
    given = {"n": -1, "map": tensor, "A": tensor, "m": 7}
    packed = PackedArguments(cast(Driver, driver), made.kernel.artifact, given)
    (address,) = driver.memory
    assert MAP.unpack(packed.values[1]) == _given(address)
    frames = [made.frame() for _ in range(20)]
    for frame in frames:
        frame.fill(packed)
        begin = ctypes.addressof(frame.memory)
        assert begin % 64 == 0
        assert MAP.unpack(ctypes.string_at(begin + 64, 128)) == _given(address)
    made.run(made.ready(packed, 1, 0, ()))
    (launched,) = library.launched
    assert launched.values == b"".join(packed.values)
    assert launched.values == b"\xff" + MAP.pack(Placed(address, LAYOUT)) + struct.pack("<Qi", address, 7)
    memory = bytearray(204)
    made.pack(memory, 0, 255, packed.values[1], address, 7)
    assert bytes(memory) == ctypes.string_at(frames[0].memory, 204)


@pytest.mark.usefixtures("torch_module")
def test_prepared_launches_pack_it_anew() -> None:
    library = FakeLibrary()
    made = prepared(library, Parameter("map", MAP, 16))
    asked: list[Any] = []

    def resolve(args: Any, block: Any, grid: Any, stream: Any, attributes: Any) -> tuple[None, Any]:
        asked.append(args)
        packed = PackedArguments(made.kernel.driver, made.kernel.artifact, {"map": args[0]})
        frame = made.ready(packed, grid, 0, attributes)
        made.run(frame)
        made.give(frame)
        return None, made

    launcher = Launcher(Rules(("map",)), resolve)
    for address in (0x1000, 0x2000):
        launcher.launch((Tensor(address, (32, 8)),), (32, 1, 1), 1)
    assert [MAP.unpack(each.values) for each in library.launched] == [_given(0x1000), _given(0x2000)]
    assert len(asked) == 2


def test_a_tensor_that_it_cannot_describe_is_refused() -> None:
    artifact = Artifact("k", "", SM90, (Parameter("map", MAP, 16),), (32, 1, 1))
    small = TensorArgument(_storage(), Layout((8, 8), (8, 1)))
    with pytest.raises(LaunchError, match="E3106: argument 'map' is of type descriptor 16") as caught:
        PackedArguments(cast(Driver, RecordingDriver()), artifact, {"map": small})
    assert caught.value.hint
    with pytest.raises(LaunchError, match="'map' is a tensor"):
        PackedArguments(cast(Driver, RecordingDriver()), artifact, {"map": 3})


def test_its_type_is_lowered_and_becomes_a_parameter_of_llvm_and_ptx() -> None:
    program = _program()
    llvm = program.llvm(SM90)
    assert 'i8 %a0, ptr byval([128 x i8]) align 64 "nvvm.grid_constant" %a1, ptr addrspace(1) align 16 %a2' in llvm
    assert ".param .align 64 .b8 k_param_1[128]" in program.ptx(SM90)
    (entry,) = program.entries(SM90)
    assert [each.kind for each in make_artifact(entry, "", SM90).parameters] == [SCALARS["i8"], MAP, POINTER]


def test_its_declaration_in_c() -> None:
    artifact = Artifact("k", b"", SM90, PARAMETERS, (32, 1, 1))
    text = header(artifact, arguments(artifact, {}))
    assert "CUstream stream,\n    int8_t n,\n    CUtensorMap map,\n    CUdeviceptr A,\n    int32_t m)" in text
    assert "{&n, &map, &A, &m}" in text


def test_it_is_kept_on_disk(tmp_path: Path) -> None:
    artifact = Artifact("k", b"code", SM90, PARAMETERS, (32, 1, 1))
    build, store = Build("ptx", b"code", "log", (artifact,)), Store(tmp_path, 1 << 20)
    store.put(digest("k"), build.to_bytes())
    data = store.get(digest("k"))
    assert data is not None
    assert Build.from_bytes(data, _kinds) == build
    with pytest.raises(ValueError, match="unknown parameter kind 'descriptor 16'"):
        Build.from_bytes(data)


def test_the_simulator_reads_it() -> None:
    (entry,) = (op for op in _program().reached("instr", SM90).walk() if isinstance(op, EntryOp))
    launch = LaunchState(Grids.single(LaunchConfig((1, 1, 1), (32, 1, 1))), Limits(), lambda _: None)
    spaces = Memories(Space(GMEM, 4096, False, Arena()), Space(SMEM, 0, False), LocalSpace())
    t = Translator(rule_of, launch, spaces)
    tensor = TensorArgument(_storage(), LAYOUT)
    arguments = {"n": 200, "map": tensor, "A": tensor}
    bindings = bind(entry, arguments, t, Placing.of([arguments]))
    address = 4096 + bindings[0].offset
    values = [t.initial[t.slot(argument)] for argument in entry.body.block.args]
    assert values == [-56, _given(address), address]


def test_types_that_a_launch_passes() -> None:
    assert passed_as(GLOBAL) == POINTER
    assert passed_as(i64) is SCALARS["i64"]
    for type in (SHARED, Float8E5M2Type(), VectorType(f32, [4])):
        assert passed_as(type) is None
    for name in ("i8", "bf16", "pointer"):
        assert kind_named(name).name == name
    with pytest.raises(ValueError, match="unknown parameter kind 'i128'"):
        kind_named("i128")


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_floats_are_rounded_as_numpy_does(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = SCALARS[name]
    dtype = np.dtype(getattr(ml_dtypes, kind.element.library, None) or kind.element.library)
    rng = np.random.default_rng(0)
    edges = [np.inf, -np.inf, -0.0, 65504, 65519.9, 65520, 3.39615e38, 3.4e38, 1e39, -1e39, 1e-45, 1e-46, np.nan]
    values = [*edges, *(rng.standard_normal(500) * 2.0 ** rng.integers(-140, 140, 500)).tolist()]
    with np.errstate(over="ignore"):
        for value in values:
            expected = np.array(value, dtype)
            assert kind.pack(value) == expected.tobytes(), value
            assert np.array_equal(kind.unpack(kind.pack(value)), float(expected), equal_nan=True)
