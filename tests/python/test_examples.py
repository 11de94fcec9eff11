# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in Python: each checks itself; what they compile to is what their `.cute` twins compile to."""

import importlib
import inspect
import re
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.frontend.source import plain_source

from tests.kernels.gemm_variants import HOPPER, gemm
from tests.kernels.harness import STAGES
from tests.kernels.harness import example as kernels_example
from tests.kernels.test_gemm_variants import loop_of
from tests.project.tree import ROOT
from tilefold import cute
from tilefold.driver.lowering import load

FOLDER = ROOT / "examples" / "python"
SMALL = {
    "attention": ["--depth 64", "--causal 1 --sequence 96 --heads 1 --depth 128 --rows 32 --warps 1"],
    "attention_decode": ["--batch 2 --rows 2 --keys 200 --heads 6 --shared 3 --causal 1"],
    "attention_sm100": ["--heads 1 --length 128", "--shared 2 --slack 0 --polynomial 2"],
    "attention_sm90": ["", "--rows 72 --length 40 --heads 2 --shared 2 --causal 1 --depth 96 --blocks 1"],
    "four_ways": [""],
    "gemm": ["--k 64"],
    "gemm_blockscaled": ["", "--kind mxf8 --k 128", "--kind mxf4 --k 256"],
    "gemm_fp8_scaled": ["", "--m 200 --n 264 --k 128"],
    "gemm_grouped": ["--k 64", "--groups 2 --m 72 --n 72 --k 72"],
    "gemm_skinny": ["--m 5 --n 72 --k 200"],
    "gemm_sm100": ["--m 128 --n 64 --k 64", "--pair 2 --n 64 --k 64", "--m 128 --n 64 --dtype s8"],
    "gemm_sm120": ["--k 128", "--k 128 --scaled 32", "--k 64 --scaled 0"],
    "gemm_sm90": ["", "--m 200 --n 264 --k 72"],
    "linear": ["--k 64"],
    "rmsnorm": ["", "--m 2 --n 512 --group 32"],
    "sgemm": ["--m 64 --k 32"],
    "softmax": ["", "--m 2 --n 512 --group 32"],
    "tma_copy": ["", "--m 64 --n 72"],
}
LARGE = {
    "attention": "--sequence 1024 --heads 8 --depth 128 --causal 1 --rows 128 --keys 64 --warps 4",
    "attention_decode": "--batch 3 --rows 2 --keys 4097 --heads 32 --shared 4 --depth 128 --causal 1 --blocks 132",
    "attention_sm100": "--batch 2 --rows 4096 --length 4096 --heads 16 --depth 128",
    "attention_sm90": "--batch 2 --rows 1000 --length 1111 --heads 40 --shared 4 --depth 128 --causal 1 --blocks 132",
    "four_ways": "",
    "gemm": "--m 2048 --n 2048 --k 1024",
    "gemm_blockscaled": "--m 4096 --n 4096 --k 4096",
    "gemm_fp8_scaled": "--m 4000 --n 4104 --k 4096 --blocks 132",
    "gemm_grouped": "--groups 5 --m 1000 --n 2056 --k 1000 --blocks 132",
    "gemm_skinny": "--m 16 --n 28672 --k 4096",
    "gemm_sm100": "--m 4096 --n 4096 --k 4096 --columns 256 --pair 2",
    "gemm_sm120": "--m 2048 --n 4096 --k 4096",
    "gemm_sm90": "--m 4096 --n 4096 --k 4096 --blocks 132",
    "linear": "--m 1024 --n 2048 --k 512",
    "rmsnorm": "--m 1024 --n 8192 --group 256 --rows 1",
    "sgemm": "--m 1024 --n 512 --k 256",
    "softmax": "--m 1024 --n 8192 --group 256 --rows 1",
    "tma_copy": "--m 4096 --n 8008",
}
ARCHS = {
    "attention_sm100": "sm_100a", "gemm_blockscaled": "sm_100a", "gemm_sm100": "sm_100a", "gemm_sm120": "sm_120a",
}  # fmt: skip
"""Targets of the examples that an H200 does not run."""


@pytest.fixture(autouse=True)
def _import_from_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])


def example(name: str) -> Any:
    """An example as a module, as `python examples/python/NAME.py` runs it."""
    return importlib.import_module(name)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("gemm", "--m 100", "M = 100 is not a multiple"),
        ("gemm", "--stages 1", "at least two stages"),
        ("softmax", "--group 48", "a row has 48 threads"),
        ("tma_copy", "--n 100", "rows of 100 elements"),
    ],
)
def test_sizes_that_an_example_does_not_take_are_refused(name: str, arguments: str, said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        example(name).main(["--device", "sim", *arguments.split()])


def test_every_example_is_tested() -> None:
    scripts = {path.stem for path in FOLDER.glob("*.py") if "def main(" in path.read_text()}
    assert scripts == set(SMALL) == set(LARGE)


def kernels_of(module: Any) -> list[cute.Kernel]:
    """The kernels of an example, or those of the modules of the library whose functions it runs."""
    names: list[Any] = [each for _, each in inspect.getmembers(module)]
    own = [each for each in names if isinstance(each, cute.Kernel)]
    homes = {str(each.__module__) for each in names if inspect.isfunction(each)}
    library = [sys.modules[home] for home in sorted(homes) if home.startswith("tilefold.kernels.sm90.")]
    return own or [each for part in library for _, each in inspect.getmembers(part) if isinstance(each, cute.Kernel)]


def is_built(kernel: cute.Kernel) -> bool:
    """Whether a kernel has been launched."""
    try:
        return bool(kernel.last)
    except TilefoldError:
        return False


@pytest.mark.parametrize(("name", "options"), [(name, each) for name, runs in SMALL.items() for each in runs])
@pytest.mark.sampled(4)
def test_the_example_is_right_on_the_simulator(name: str, options: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = example(name)
    module.main(["--device", "sim", *options.split()])
    assert re.search(r"^\w+: \d+ elements are right$", capsys.readouterr().out, re.MULTILINE)
    if options == SMALL[name][0]:
        kernels = [each for each in kernels_of(module) if is_built(each)]
        assert kernels or name == "linear"  # whose kernel is that of gemm
        for kernel in kernels:
            text, arch = plain_source(kernel.to_cute(), "kernel.cute"), ARCHS.get(name, "sm_90a")
            assert load(text, arch).ptx(Target(arch), lines=False) == kernel.ptx(arch, lines=False)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in LARGE if name not in ARCHS])
def test_the_example_is_right_on_a_gpu(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example(name).main(["--device", "cuda", *LARGE[name].split()])
    assert re.search(r"^\w+: \d+ elements are right$", capsys.readouterr().out, re.MULTILINE)


def test_a_wrong_result_ends_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    common = example("common")
    with pytest.raises(SystemExit, match=r"D: 1 of 4 elements are wrong, first \(2,\): 0.0"):
        common.check("D", np.zeros(4), np.array([0.0, 0.0, 1.0, 0.0]))


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [np.empty(shape, np.float16) for shape in shapes]


def test_each_of_the_four_ways_is_one_load_and_one_store() -> None:
    A, B = arrays((8, 128), (8, 128))
    for kernel in example("four_ways").KERNELS:
        ptx = kernel(A, B, 8, 128, 8).build(128).ptx("sm_80")
        assert re.findall(r"(?:ld|st)\.global\.\S+", ptx) == ["ld.global.v4.b32", "st.global.v4.b32"]


def names_of(instructions: list[str]) -> Counter[str]:
    """How often each instruction is there."""
    return Counter(line.split(None, 1)[0].rstrip(";") for line in instructions)


def test_the_gemm_has_the_main_loop_of_its_twin() -> None:
    module = example("gemm")
    A, B, D = arrays((4096, 4096), (4096, 4096), (4096, 4096))
    ours = loop_of(module.gemm_kernel(A, B, D, None, module.DEFAULT, None).build(module.DEFAULT.threads).ptx("sm_90a"))
    twin = loop_of(gemm({"M": 4096, "N": 4096, "K": 4096}).ptx(HOPPER))
    names, expected = names_of(ours), names_of(twin)
    moved = re.compile(r"mma|ldmatrix|cp\.async|bar")
    assert {name: n for name, n in names.items() if moved.match(name)} == {
        name: n for name, n in expected.items() if moved.match(name)
    }
    assert names["cp.async.cg.shared.global"] == 12
    assert names.total() <= expected.total()


def built(name: str) -> Any:
    """An example as the tests compare it with its twin."""
    module = example(name)
    if name == "attention":
        config = module.Config(rows=128, keys=64, warps=4, causal=True)
        return module.attention_kernel(*arrays(*[(1024, 2, 64)] * 4), 0.125, config).build(128)
    config = example("rows").Config(rows=1, group=256)
    matrix, weights = arrays((16, 8192), (8192,))
    if name == "softmax":
        return module.softmax_kernel(matrix, matrix, config).build(256)
    return module.rmsnorm_kernel(matrix, weights, matrix, 1e-5, config).build(256)


@pytest.mark.parametrize(("name", "given"), [
    ("softmax", "M=16 N=8192 ROWS=1 GROUP=256"),
    ("rmsnorm", "M=16 N=8192 ROWS=1 GROUP=256"),
    ("attention", "S=1024 D=64 HEADS=2 CAUSAL=1 TILE_Q=128 TILE_K=64 WARPS=4 STAGES=1 LAZY=8 GROUP=8"),
])  # fmt: skip
@pytest.mark.sampled(1)
def test_the_kernel_has_the_instructions_of_its_twin(name: str, given: str) -> None:
    path = kernels_example(name)
    params = dict(each.split("=") for each in given.split())
    twin = load(expand(path.read_text(), path.name, params), "sm_90").ptx(Target("sm_90"))
    names, expected = (
        names_of([line.strip() for line in ptx.splitlines() if line.endswith(";")])
        for ptx in (built(name).ptx("sm_90"), twin)
    )
    # everything but integers, and what is computed of constants
    same = re.compile(r"mma|ldmatrix|cp\.async|bar|ld\.|st\.|shfl|cvt.*f|ex2|fma|(mul|add|sub)\.rn|max|div|\w+\.local")
    assert {each: n for each, n in names.items() if same.match(each)} == {
        each: n for each, n in expected.items() if same.match(each)
    }
    assert names.total() <= 1.02 * expected.total()


def test_every_stage_of_the_gemm_gives_the_same_bytes() -> None:
    module = example("gemm")
    config = module.Config(32, 64, 32, (1, 2))
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal((rows, 64), np.float32).astype(np.float16) for rows in (32, 64))
    results: set[bytes] = set()
    for stage in STAGES:
        D = np.empty((32, 64), np.float16)
        call = module.gemm_kernel(A, B, D, None, config, None)
        call.launch(grid=1, block=config.threads, device="sim", stage=stage)
        results.add(D.tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("name", ["gemm", "attention"])
def test_shared_memory_has_no_bank_conflicts_and_fragments_are_registers(name: str) -> None:
    module = example(name)
    if name == "gemm":
        config = module.Config(64, 64, 64, (1, 2))
        call = module.gemm_kernel(*arrays((64, 64), (64, 64), (64, 64)), None, config, None)
        kernel = call.build(config.threads)
    else:
        config = module.Config(64, 32, 2)
        kernel = module.attention_kernel(*arrays(*[(64, 1, 64)] * 4), 1.0, config).build(64)
    ptx = kernel.ptx("sm_80")
    assert "ldmatrix" in ptx
    assert ".local" not in ptx
    conflicts = {match[1] for match in re.finditer(r"(\w+) bank conflicts", kernel.explain("sm_80"))}
    assert conflicts == {"no"}
