# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps at launches: what the driver is asked to encode and when, what is refused before, and what is stored."""

import ctypes
import struct
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tilefold.base.parameters import POINTER, SCALARS
from tilefold.base.target import Target
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.tma.recipe_text import parse_recipe
from tilefold.runtime.arrays.signature import Dynamic
from tilefold.runtime.compiled.artifact import Artifact, Build, Parameter, make_artifact
from tilefold.runtime.cuda.comparison import Rules
from tilefold.runtime.cuda.driver import Driver
from tilefold.runtime.cuda.launcher import Launcher
from tilefold.runtime.cuda.map_encoder import MapEncoder
from tilefold.runtime.cuda.packed_arguments import PackedArguments
from tilefold.runtime.cuda.prepared import Prepared
from tilefold.runtime.engine import TensorArgument
from tilefold.runtime.errors import LaunchError

from tests.emit.harness import kernel, parse
from tests.runtime.fakes import FakeDriver, FakeLibrary, Tensor, prepared, torch_module
from tests.work import calls

__all__ = ["torch_module"]

ROWS = Layout((Unknown(), Unknown()), (Unknown(), 1))
A, B, N = Parameter("A", POINTER, 16, ROWS), Parameter("B", POINTER, 16), Parameter("n", SCALARS["i32"])
MAPS = (
    "f16 v0 dims (v2, v1) strides (v3 * 2) box (64, 128) swizzle 128B",
    "f32 v4 + 64 dims (32, v5) strides (128) box (32, 8) fill nan promotion 128B",
)
"""Of A, whose values are v0 to v3, and of B, v4, with the extent n, v5."""


def _launches(made: Prepared) -> Launcher:
    """A launcher whose kernel is prepared by its first launch."""

    def resolve(args: Any, block: Any, grid: Any, stream: Any, attributes: Any) -> tuple[None, Any]:
        a, b, n = args
        layout = Layout(a.shape, a.stride())
        given = {"A": TensorArgument(np.zeros(1, np.float16), layout), "B": b, "n": n}
        packed = PackedArguments(made.kernel.driver, made.kernel.artifact, given | {"B": given["A"]})
        packed.values[0], packed.values[4] = (struct.pack("<Q", x.address) for x in (a, b))
        frame = made.ready(packed, grid, 0, attributes)
        made.run(frame)
        made.give(frame)
        return None, made

    return Launcher(Rules(("A", "B", "n"), dynamic={"A": Dynamic()}), resolve)


def _launch(
    launcher: Launcher, a: int, b: int, n: int = 40, shape: tuple[int, int] = (100, 72), pitch: int = 80
) -> None:
    tensors = Tensor(a, shape, (pitch, 1), "float16"), Tensor(b, (256, 4))
    launcher.launch((*tensors, n), (32, 1, 1), 1)


def _maps(library: FakeLibrary) -> list[tuple[int, int]]:
    """The address, and the number of the call of the driver, of each map of the last launch."""
    data = library.launched[-1].values[-256:]
    return [struct.unpack("<Q8xI", data[at : at + 20]) for at in (0, 128)]


@pytest.mark.usefixtures("torch_module")
def test_launches_encode_what_has_changed() -> None:
    library = FakeLibrary()
    launcher = _launches(prepared(library, A, B, N, maps=MAPS))
    _launch(launcher, 0x10000, 0x20000)
    first = (6, 0x10000, [72, 100], [160], [64, 128], 3, 0, 0)
    second = (7, 0x20040, [32, 40], [128], [32, 8], 0, 2, 1)
    assert library.encoded == [first, second]
    assert _maps(library) == [(0x10000, 1), (0x20040, 2)]
    assert library.launched[-1].values[:8] == struct.pack("<Q", 0x10000)
    for _ in range(3):
        _launch(launcher, 0x10000, 0x20000)
    assert len(library.encoded) == 2
    assert _maps(library) == [(0x10000, 1), (0x20040, 2)]
    _launch(launcher, 0x30000, 0x20000)  # another address
    assert library.encoded[2:] == [(first[0], 0x30000, *first[2:]), second]
    _launch(launcher, 0x10000, 0x20000)  # the first ones are kept
    assert len(library.encoded) == 4
    assert _maps(library) == [(0x10000, 1), (0x20040, 2)]
    _launch(launcher, 0x10000, 0x20000, 48, (64, 64), 64)
    assert library.encoded[4:] == [
        (6, 0x10000, [64, 64], [128], [64, 128], 3, 2, 0),
        (7, 0x20040, [32, 48], [128], [32, 8], 0, 2, 1),
    ]
    assert len(library.launched) == 7


@pytest.mark.usefixtures("torch_module")
def test_what_no_map_describes_never_reaches_the_driver() -> None:
    library = FakeLibrary()
    launcher = _launches(prepared(library, A, B, N, maps=MAPS))
    _launch(launcher, 0x10000, 0x20000)
    launched = len(library.launched), len(library.encoded)
    for n, pitch, said in (
        (40, 81, r"'A': .* a stride of 162 bytes, which is the stride of mode 0 \* 2"),
        (0, 80, r"'B': .* dimension 1 has the extent 0, which is n"),
        (-5, 80, r"'B': .* dimension 1 has the extent -5, which is n"),
    ):
        with pytest.raises(LaunchError, match=said) as caught:
            _launch(launcher, 0x10000, 0x20000, n, pitch=pitch)
        assert caught.value.code == "E0322"
        assert caught.value.hint
    assert (len(library.launched), len(library.encoded)) == launched
    _launch(launcher, 0x10000, 0x20000)
    assert _maps(library) == [(0x10000, 1), (0x20040, 2)]


def _encoder(library: FakeLibrary, text: str, capability: tuple[int, int] = (9, 0)) -> MapEncoder:
    driver = FakeDriver(library)
    driver.capability = capability
    artifact = Artifact("k", "code", Target("sm_90a"), (B,), (32, 1, 1), maps=(parse_recipe(text),))
    return MapEncoder(artifact, cast(Any, library), cast(Driver, driver))


def test_a_misaligned_address() -> None:
    encoder = _encoder(FakeLibrary(), "f16 v0 dims (64) box (64)")
    assert len(encoder.encoded((0x100,))) == 128
    with pytest.raises(LaunchError, match=r"argument 'B': .* begins at the address 0x108"):
        encoder.encoded((0x108,))


def test_the_driver_refuses() -> None:
    library = FakeLibrary(map_status=1)
    with pytest.raises(RuntimeError, match="describing a tensor to kernel 'k': cuTensorMapEncodeTiled 1"):
        _encoder(library, "f16 v0 dims (64) box (64)").encoded((0x100,))


def test_the_map_of_a_tensor_of_other_extents_takes_few_calls() -> None:
    library = FakeLibrary()
    encoder = MapEncoder(_artifact(), cast(Any, library), cast(Driver, FakeDriver(library)))
    encoder.encoded((0x1000, 100, 72, 80, 0))
    assert calls(lambda: encoder.encoded((0x1000, 108, 64, 88, 0))) < 200
    assert len(library.encoded) == 2


def test_a_driver_without_maps() -> None:
    library = FakeLibrary()
    old: Any = SimpleNamespace(encode_tensor_map=None)
    with pytest.raises(LaunchError, match="tensor maps, which the driver does not support"):
        MapEncoder(_artifact(), old, cast(Driver, FakeDriver(library)))


def test_small_tensors_on_blackwell_with_an_old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(self: FakeDriver, function: str, *_: Any, doing: str = "") -> int:
        assert function == "cuDriverGetVersion"
        return 13010

    monkeypatch.setattr(FakeDriver, "call", call)
    for rows, capability, bit in ((511, (10, 0), 0), (512, (10, 0), 0), (513, (10, 0), 1), (512, (9, 0), 1)):
        text = f"f16 v0 dims (64, {rows}) strides (256) box (64, 8)"
        encoded = _encoder(FakeLibrary(), text, capability).encoded((0x100,))
        assert int.from_bytes(encoded[8:16], "little") == 2**64 - 1 - ((1 - bit) << 21)


def test_the_cache_does_not_grow_without_end() -> None:
    library = FakeLibrary()
    encoder = _encoder(library, "f16 v0 dims (64) box (64)")
    for number in range(1000):
        encoder.encoded((0x100 * (number + 1),))
    assert len(library.encoded) == 1000
    encoder.encoded((0x100 * 1000,))
    assert len(library.encoded) == 1000


def _artifact() -> Artifact:
    arguments = (
        '%A: !ptx.ptr<global> align 16 layout "(?,?):(?,1)", %A_0: i32, %A_1: i32, %A_2: i32, %n: i64, '
        '%m: !ptx.tensor_map of "f16 A + n dims (A_1, A_0) strides (A_2 * 2) box (64, 8) swizzle 128B"'
    )
    module = parse(kernel("", arguments))
    (entry,) = (op for op in module.walk() if op.name == "ptx.entry")
    return make_artifact(cast(Any, entry), b"code", Target("sm_90a"))


def test_the_recipe_is_kept_on_disk() -> None:
    artifact = _artifact()
    assert [parameter.name for parameter in artifact.parameters] == ["A", "n"]
    (recipe,) = artifact.maps
    assert recipe == parse_recipe("f16 v0 + v4 dims (v2, v1) strides (v3 * 2) box (64, 8) swizzle 128B")
    build = Build("ptx", b"code", "log", (artifact,))
    assert Build.from_bytes(build.to_bytes()) == build


def test_arguments_one_by_one() -> None:
    """Storage is copied to the device first, and the map has the address of the copy."""
    library = FakeLibrary()
    artifact = _artifact()
    made = prepared(library, *artifact.parameters, maps=[str(MAPS[0])])
    tensor = TensorArgument(np.zeros(100 * 80, np.float16), Layout((100, 72), (80, 1)))
    packed = PackedArguments(made.kernel.driver, made.kernel.artifact, {"A": tensor, "n": 0})
    frame = made.ready(packed, 1, 0, ())
    ((kind, address, *_),) = library.encoded
    assert (kind, address) == (6, int.from_bytes(packed.values[0], "little"))
    assert ctypes.addressof(frame.memory) % 64 == 0
