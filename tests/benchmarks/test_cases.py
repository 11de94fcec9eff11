# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is measured on a GPU, without one: kernels that compile, arguments that fit them, complete records."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble

from benchmarks import attention_decode, attention_sm90, ceiling, gemm_grouped, gemm_scaled, gemm_skinny, gpu
from benchmarks.__main__ import main
from benchmarks.contest import Case
from benchmarks.gpu import FAMILIES
from benchmarks.timing import Timed
from benchmarks.workloads import Workload, build_all

SM90 = Target("sm_90a")
CASES: list[Case] = [case for cases in FAMILIES.values() for case in cases(132)]
TARGETS = {
    "copy": 0.97,
    "transpose": 0.85,
    "f16 GEMM 4096^3": 0.80,
    "f16 GEMM 8192^3": 0.72,
    "bf16 GEMM 4096^3": 0.75,
    "tf32 GEMM 4096^3": 0.75,
    "s8 GEMM 4096^3": 0.75,
    "f32 GEMM 4096^3": 0.95,
    **{f"{kernel}, rows of {n}": 0.90 for kernel in ("softmax", "rmsnorm") for n in (1024, 2048, 4096, 8192, 16384)},
    "attention, b4 h32 s4096 d128 f16": 1.0,
    "attention, b4 h32 s4096 d128 f16, causal": 1.0,
    "f16 GEMM 4096^3 in Python": 0.98,
    "softmax, rows of 4096 in Python": 0.98,
    "rmsnorm, rows of 4096 in Python": 0.98,
    "attention, b1 h128 s4096 d128 f16 in Python": 0.98,
    "f16 GEMM 1024^3, by wgmma": 1.0,
    "f16 GEMM 2048^3, by wgmma": 1.0,
    "f16 GEMM 4096^3, by wgmma": 1.0,
    "f16 GEMM 8192^3, by wgmma": 1.06,
    "f16 GEMM 4000 x 4008 x 4016, by wgmma": 1.0,
    "f16 GEMM 8192 x 8192 x 512, by wgmma": 1.0,
    **{f"f16 GEMM 4096^3, A by {a}, B by {b}, by wgmma": 1.0 for a, b in ("MK", "KN", "MN")},
    **{f"{type} GEMM 4096^3, by wgmma": 1.0 for type in ("bf16", "tf32", "s8", "u8")},
    **{
        f"fp8 GEMM {size}, D in {out}, by wgmma": 1.0
        for size in ("4096^3", "8192^3", "2048 x 7168 x 4096")
        for out in ("f32", "bf16")
    },
    "f16 GEMM 4096^3, bias and GELU, by wgmma": 1.05,
    **{f"fp8 GEMM {m} x {n} x {k} with scales of blocks": 1.0 for m, n, k in gemm_scaled.SHAPES},
    **{
        problem.name: 1.0
        for family in (gemm_grouped, gemm_skinny, attention_sm90, attention_decode)
        for problem in family.PROBLEMS
    },
}
SIZES = {"M", "N", "K"}


def _kernels() -> dict[str, Workload]:
    """The first workload of each case, once for each set of parameters beside those of size."""
    found: dict[object, Workload] = {}
    for case in CASES:
        if not case.workloads:  # a kernel in Python, tested as an example
            continue
        first = case.workloads[0]
        sizes = SIZES if "GEMM" in case.name and "VECTOR" not in first.size else set[str]()
        key = first.file, tuple((name, value) for name, value in first.size.items() if name not in sizes)
        found.setdefault(key, first)
    return {workload.name: workload for workload in found.values()}


KERNELS = _kernels()


def test_targets() -> None:
    assert {case.name: case.target for case in CASES if case.target is not None} == TARGETS
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.sampled(2)
def test_the_kernels_compile_at_full_size(name: str) -> None:
    workload = KERNELS[name]
    program, launch = workload.loaded()
    (resources,) = assemble(program.ptx(SM90), SM90).kernels.values()
    x, y, z = launch.block
    assert resources.registers * x * y * z <= 65536
    assert resources.spill_stores <= 128  # bytes, outside the loops
    assert ".local" not in program.ptx(SM90)


def test_what_cannot_be_built_is_told() -> None:
    file = "benchmarks/kernels/copy.cute"
    good, bad = Workload("good", file, {"N": 8192}), Workload("bad", file, {"N": 8192, "THREADS": 2048})
    built = build_all([good, bad, good], SM90)
    assert isinstance(built["bad"], str)
    assert "2048" in built["bad"]
    assert not isinstance(built["good"], str)
    assert built["good"][1].threads == 128
    with pytest.raises(TilefoldError, match="name 'good'"):
        build_all([good, Workload("good", file, {"N": 4096})], SM90)


@pytest.mark.parametrize("family", sorted({*FAMILIES} - gpu.IN_PYTHON))  # whose kernels are examples, tested as such
def test_the_kernels_are_right_on_the_simulator(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "sim", "--only", family]) == 0
    assert "sectors" in capsys.readouterr().out


class Anything:
    """A stand-in for PyTorch and its tensors: any attribute, call and operation gives another."""

    nbytes = 1 << 30

    def __getattr__(self, name: str) -> "Anything":
        return Anything()

    def __call__(self, *args: Any, **options: Any) -> "Anything":
        return Anything()

    def __getitem__(self, place: Any) -> "Anything":
        return Anything()

    def __enter__(self) -> "Anything":
        return Anything()

    def __exit__(self, *fault: Any) -> None:
        pass

    def __matmul__(self, other: Any) -> "Anything":
        return Anything()

    __add__ = __mul__ = __imul__ = __matmul__

    @property
    def shape(self) -> tuple[int, int]:
        return 4096, 4096


@cache
def _arguments(file: str, bias: bool) -> set[str]:
    _, launch = Workload("", file, {"BIAS": 1} if bias else {}).loaded()
    return {argument.name for argument in launch.arguments}


@dataclass(frozen=True)
class Fast:
    """A bench whose contenders all take a millisecond; it compares the arguments with the kernels' parameters."""

    torch: Any
    engine: Any
    built: Any
    warmup: int
    repeat: int
    failed: list[str] = field(default_factory=list[str])

    def launcher(self, workload: Workload, args: Mapping[str, Any]) -> Callable[[], None]:
        assert set(args) == _arguments(workload.file, "BIAS" in workload.size), workload.file
        return lambda: None

    def built_for(self, workload: Workload) -> Any:
        return None

    def check(self, contenders: Mapping[str, Any], *args: Any, **options: Any) -> None:
        assert contenders

    def right(self, peers: Mapping[str, Any], *args: Any, **options: Any) -> Mapping[str, Any]:
        return peers

    def errors(self, contenders: Mapping[str, Any], *args: Any) -> Mapping[str, float]:
        return dict.fromkeys(contenders, 1e-3)

    def repeated(self, contenders: Mapping[str, Any], count: int) -> Mapping[str, Any]:
        assert count >= 4
        return contenders

    def fastest(self, contenders: Mapping[str, Any]) -> str:
        return next(iter(contenders))

    def time(self, contenders: Mapping[str, Any]) -> dict[str, Timed]:
        return {name: Timed((1.0,)) for name in contenders}


@dataclass(frozen=True)
class Known:
    """A ceiling that is found already."""

    ceiling: Any
    operations: float = 1e12

    def run(self) -> None:
        pass


class Engine:
    """A stand-in for the engine of a GPU."""

    class Driver:
        name, target = "GPU X-1", SM90

        def call(self, name: str) -> int:
            return 13000

    driver = Driver()


def _without_gpu(monkeypatch: pytest.MonkeyPatch, bench: type) -> None:
    def best(engine: Any, name: str, built: Any) -> Known:
        return Known(ceiling.CEILINGS[name][0])

    def built(workloads: Iterable[Workload], target: Target) -> dict[str, str]:
        return {each.name: "" for each in workloads}

    def multiprocessors(engine: Any) -> int:
        return 132

    def nothing(compilations: Any) -> None:
        """Compiles nothing."""

    monkeypatch.setattr(gpu, "load_torch", Anything)
    monkeypatch.setattr(gpu, "CudaEngine", Engine)
    monkeypatch.setattr(gpu, "Bench", bench)
    monkeypatch.setattr(gpu, "build_all", built)
    monkeypatch.setattr(gpu, "compile_ahead", nothing)
    monkeypatch.setattr(ceiling, "multiprocessors", multiprocessors)
    monkeypatch.setattr(ceiling, "best", best)


def test_the_problems_of_the_library_are_different_ones() -> None:
    names = [case.name for cases in gpu.LIBRARY.values() for case in cases(132)]
    assert len(names) == len(set(names))
    assert len([name for name in names if name.startswith("gemm ")]) == 100


def test_records_are_complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _without_gpu(monkeypatch, Fast)
    record, failed = gpu.measure(commit="abc")
    assert failed == []
    assert record.circumstances["commit"] == "abc"
    assert record.subject == ""
    targets = [figure.target for figure in record.figures if figure.target is not None]
    assert set(targets) == set(TARGETS.values())
    for name, target in TARGETS.items():  # a case has one for each peer
        of_case = [figure for figure in record.figures if name.removesuffix(", causal") in figure.name]
        assert any(figure.ratio is not None and figure.target == target for figure in of_case), name
    assert f"[{len(CASES)}/{len(CASES)}]" in capsys.readouterr().out


def test_a_case_that_fails_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(Fast):
        def check(self, contenders: Mapping[str, Any], *args: Any, **options: Any) -> None:
            if any("softmax, rows of 2048" in name for name in contenders):
                raise TilefoldError(Code.CHECK_FAILED, "wrong")

    _without_gpu(monkeypatch, Wrong)
    record, failed = gpu.measure(["rows"])
    assert len(failed) == 1
    assert failed[0].startswith("softmax, rows of 2048: TilefoldError: ")
    assert record.subject == "rows"
    assert sum(figure.target is not None for figure in record.figures) == 9
