# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The module tree by both names, and programs that are run with their import lines as they are."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold.cutlass as cutlass
from tilefold import cute
from tilefold.cute.public import MissingModules
from tilefold.cute.runtime import from_dlpack
from tilefold.cutlass.architectures import Arch, BaseDSL

PROGRAM = """
import sys
import numpy as np
import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
from cutlass.cute.runtime import from_dlpack
from cutlass.cute.nvgpu import cpasync, warp


@cutlass.dsl_user_op
def twice(x, *, loc=None, ip=None):
    return cute.where(x > 0, x + x, x, loc=loc, ip=ip)


@cute.kernel
def kernel(A: cute.Tensor, op: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    A[t] = op(A[t])


@cute.jit
def host(A: cute.Tensor, op: cutlass.Constexpr):
    cute.printf("{} elements", A.shape[0])
    kernel(A, op).launch(grid=(1, 1, 1), block=(A.shape[0], 1, 1))


a = np.arange(-2, 6, dtype=np.float32)
compiled = cute.compile(host, from_dlpack(a), twice)
compiled(from_dlpack(a))
compiled(from_dlpack(a))
print(sys.argv[1:], a.tolist())
time = testing.benchmark(compiled, kernel_arguments=testing.JitArguments(a), warmup_iterations=1, iterations=2)
print(time > 0, cutlass.Float16.width, cutlass.dtype("Int8").is_integer)
"""


@cutlass.dsl_user_op
def sums_of_pairs(values: tuple[Any, ...], *, loc: object = None, ip: object = None) -> list[Any]:
    """A loop of Python, as in every function that is not preprocessed."""
    sums: list[Any] = []
    for i in range(0, len(values), 2):
        sums = [*sums, values[i] + values[i + 1]]
    return sums


@cute.kernel
def by_pairs(A: cute.Tensor, B: cute.Tensor):
    for i, total in enumerate(sums_of_pairs(tuple(A[j] for j in cute.range_constexpr(8)))):
        B[i] = total


def test_user_ops_are_not_preprocessed() -> None:
    A, B = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    by_pairs(A, B).launch(grid=1, block=1, device="sim")
    assert B.tolist() == [1, 5, 9, 13]


@cutlass.dsl_user_op
def descending(values: Any, lanes: int, *, loc: object = None, ip: object = None) -> list[Any]:
    """A loop of Python whose limits are computed from constants of a type."""
    upper: Any = cute.Int32(lanes.bit_length() - 1)
    return [values[1 << i] for i in range(upper - 1, -1, -1)]


@cute.kernel
def by_powers(A: cute.Tensor, B: cute.Tensor):
    for i, value in enumerate(descending(A, 8)):
        B[i] = value


def test_constants_are_numbers_of_python() -> None:
    A, B = np.arange(8, dtype=np.float32), np.zeros(3, np.float32)
    by_powers(A, B).launch(grid=1, block=1, device="sim")
    assert B.tolist() == [4, 2, 1]


@cute.jit
@cutlass.dsl_user_op
def rectified(x: Any, *, loc: object = None, ip: object = None) -> Any:
    return x if cutlass.Boolean(x > 0) else cute.Float32(0.0)


@cute.kernel
def by_rectified(A: cute.Tensor):
    A[0] = rectified(A[0])


def test_user_ops_below_jit_are_preprocessed() -> None:
    for before, after in ((-2.0, 0.0), (3.0, 3.0)):
        A = np.array([before], np.float32)
        by_rectified(A).launch(grid=1, block=1, device="sim")
        assert A[0] == after


def test_functions_have_the_defaults_of_the_python_function() -> None:
    assert rectified.__kwdefaults__ == {"loc": None, "ip": None}
    assert rectified.__defaults__ is None


def ran(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_runs_with_its_import_lines(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    lines = ran("-m", "tilefold.cutlass", str(file), "--", "--M", "3").splitlines()
    assert lines[:3] == ["8 elements", "8 elements", "['--M', '3'] [-2.0, -1.0, 0.0, 4.0, 8.0, 12.0, 16.0, 20.0]"]
    assert lines[-1] == "True 16 True"


def test_a_file_that_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tilefold.cutlass", "no.py"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "there is no file no.py\n")


@pytest.mark.parametrize("name", ["cute", "cute.runtime", "cute.nvgpu.warp", "utils", "pipeline", "torch"])
@pytest.mark.sampled(3)
def test_modules_are_one_by_each_name(name: str) -> None:
    code = (
        f"import tilefold.cutlass as c; c.install(); import cutlass.{name} as a, tilefold.cutlass.{name} as b; "
        "print(a is b)"
    )
    assert ran("-c", code) == "True\n"


def test_another_package_of_the_name_is_not_replaced() -> None:
    code = "import sys, types; sys.modules['cutlass'] = types.ModuleType('cutlass'); import tilefold.cutlass as c"
    done = subprocess.run([sys.executable, "-c", f"{code}; c.install()"], capture_output=True, text=True, check=False)
    assert "a package named cutlass has been imported" in done.stderr


NEAREST = {
    "cute.arch.thread_indx": ("cute.arch has no 'thread_indx'", "did you mean thread_idx"),
    "cute.nvgpu.cpasync.CopyG2sOp": ("cute.nvgpu.cpasync has no 'CopyG2sOp'", "did you mean CopyG2SOp"),
    "cute.nvgpu.tcgen05.Tmem": ("cute.nvgpu.tcgen05 has no 'Tmem'", "to sm_100 and later"),
    "cute.make_layot": ("cute has no 'make_layot'", "did you mean make_layout"),
    "cute.runtime.from_dlpak": ("cute.runtime has no 'from_dlpak'", "did you mean from_dlpack"),
    "utilities": ("cutlass has no 'utilities'", "did you mean utils"),
}


@pytest.mark.parametrize("name", NEAREST)
def test_a_name_that_is_missing_has_a_hint(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, MissingModules()])  # as `install` does
    message, hint = NEAREST[name]
    module, _, last = f"tilefold.cutlass.{name}".rpartition(".")
    assert not hasattr(import_module(module), last)
    for way in (
        f"from importlib import import_module; import_module({module!r}).{last}",
        f"from {module} import {last}",
        f"import {module}.{last}",
    ):
        with pytest.raises(TilefoldError, match=message) as caught:
            exec(way, {})
        assert caught.value.code == "E5009"
        assert hint in caught.value.hint
        assert isinstance(caught.value, AttributeError if "importlib" in way else ImportError)


def test_the_gpu_and_the_tools_that_programs_ask_for() -> None:
    arch = BaseDSL._get_dsl().get_arch_enum()  # pyright: ignore[reportPrivateUsage]
    assert arch >= Arch.sm_80
    assert sorted([Arch.sm_100f, Arch.sm_90a, Arch.sm_90, Arch.sm_120]) == [
        Arch.sm_90, Arch.sm_90a, Arch.sm_100f, Arch.sm_120,
    ]  # fmt: skip
    assert (Arch.sm_103a.major, Arch.sm_103a.minor) == (10, 3)
    major, minor = cutlass.CUDA_VERSION
    assert cutlass.target_version(min_version="12.0", max_version=f"{major}.{minor}")
    assert not cutlass.target_version(min_version=f"{major}.{minor + 1}")
    assert not cutlass.target_version(max_version="12.0")
    assert [int(part) for part in cutlass.__version__.split(".")[:2]] >= [4, 4]


@cute.kernel
def at_addresses(start: cute.Int64, out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    pointer: Any = cutlass.inttoptr(start, mem_space=1, dtype=cute.Float32)
    ones = cutlass.full([4], 1.0, cute.Float32)
    for i in cutlass.range(2, vectorize=True):
        out[i, t] = pointer[t] + ones[0]


def test_addresses_by_number() -> None:
    held, out = np.arange(32, dtype=np.float32), np.zeros((2, 32), np.float32)
    registered = from_dlpack(held)
    at_addresses(registered.data_ptr, out).launch(grid=1, block=32, device="sim")
    assert (out == held + 1).all()
