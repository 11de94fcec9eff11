# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products, against the ceiling of their instruction, cuBLAS (by PyTorch) and Triton."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks import ceiling
from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.gemm_configurations import configurations
from benchmarks.record import Figure
from benchmarks.timing import Run, Torch
from benchmarks.workloads import Parameters, Workload, spelled

TENSOR_CORES = "examples/gemm.cute"
ORDINARY = "examples/sgemm_tuned.cute"

_TORCH = {
    "f16": ("float16", "float16"),
    "bf16": ("bfloat16", "bfloat16"),
    "f32": ("float32", "float32"),
    "tf32": ("float32", "float32"),
    "f64": ("float64", "float64"),
    "s8": ("int8", "int32"),
    "u8": ("uint8", "int32"),
    "fp8": ("float8_e4m3fn", "float32"),
}
"""The types of A and B, and of D, in PyTorch."""
_OUT = {"f32": "float32", "bf16": "bfloat16"}
"""Types of D that a problem chooses, in PyTorch."""
_AB = {"tf32": "f32", "s8": "i8", "fp8": "f8E4M3FN"}
"""The type of A and B in the kernel, where its name is another."""
ALLOWED = {"f16": 5e-3, "bf16": 3e-2, "f32": 1e-4, "tf32": 3e-2, "f64": 1e-12, "s8": 0.0, "u8": 0.0, "fp8": 1e-1}
"""The error of an element against the square root of K, which is how large elements are; a tile too few is more."""

FAST, ACCURATE = "torch._scaled_mm, fast accumulation", "torch._scaled_mm, accurate accumulation"
"""The products of cuBLAS in fp8: sums of all products within the tensor core, as in our kernels, or parts of them
added in f32.
"""

SCALE = 2.0**-10
"""The factor that brings products of s8 into the range of f16: elements are some hundreds then, and right to within 1.
"""


@dataclass(frozen=True, slots=True)
class Gemm:
    """One product D = A * B^T of a type, and how it is put to the test.

    `target` is of the ceiling, or of cuBLAS where the type has no matrix instruction. `scaled` results of s8 are f16;
    `out` is the type of D where the problem names it.
    """

    type: str
    m: int
    n: int
    k: int
    a_major: str = "K"
    b_major: str = "K"
    gelu: bool = False
    scaled: bool = False
    out: str = ""
    extra: Parameters = field(default_factory=dict[str, int | str])
    triton: bool = False
    target: float | None = None
    small: Parameters | None = None

    @property
    def name(self) -> str:
        """The type, the size, and what is special."""
        shape = f"{self.m}^3" if self.m == self.n == self.k else f"{self.m} x {self.n} x {self.k}"
        majors = "" if self.a_major == self.b_major == "K" else f", A by {self.a_major}, B by {self.b_major}"
        more = ", bias and GELU" if self.gelu else ", scaled to f16" if self.scaled else ""
        out = f", D in {self.out}" if self.out else ""
        return f"{self.type} GEMM {shape}{majors}{more}{out}"

    def workloads(self, multiprocessors: int) -> list[Workload]:
        """The kernel in the configurations that come into question."""
        size: dict[str, int | str] = {"M": self.m, "N": self.n, "K": self.k}
        if self.type == "f32":
            file = ORDINARY
        else:
            file = TENSOR_CORES
            size |= {"AB": _AB.get(self.type, self.type), "A_MAJOR": self.a_major, "B_MAJOR": self.b_major}
            size |= {"BIAS": 1, "ACTIVATION": "gelu"} if self.gelu else {}
            size |= {"OUT": "f16"} if self.scaled else {}
        size |= self.extra
        narrow = "VECTOR" in self.extra
        chosen = configurations(self.type, self.m, self.n, multiprocessors, narrow=narrow, scaled=self.scaled)
        return [
            Workload(
                f"{self.name}: {spelled(options) or 'defaults'}",
                file,
                {**size, **options},
                None if number else self.small,
            )
            for number, options in enumerate(chosen)
        ]

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.n * self.k


GEMMS = (
    Gemm("f16", 4096, 4096, 4096, triton=True, target=0.80, small={"TILE_N": 128, "M": 256, "N": 128, "BLOCKS": 1}),
    Gemm("f16", 8192, 8192, 8192, triton=True, target=0.72),
    Gemm("f16", 2048, 2048, 2048, triton=True),
    Gemm("f16", 1024, 1024, 1024, triton=True),
    Gemm("f16", 4000, 4008, 4016, extra={"RAGGED": 1}, triton=True),
    Gemm("f16", 1000, 777, 321, extra={"RAGGED": 1, "VECTOR": 1}),
    Gemm("f16", 4096, 4096, 4096, a_major="M"),
    Gemm("f16", 4096, 4096, 4096, b_major="N"),
    Gemm("f16", 4096, 4096, 4096, a_major="M", b_major="N"),
    Gemm("f16", 4096, 4096, 4096, gelu=True),
    Gemm("bf16", 4096, 4096, 4096, triton=True, target=0.75),
    Gemm("tf32", 4096, 4096, 4096, triton=True, target=0.75),
    Gemm("s8", 4096, 4096, 4096, triton=True, target=0.75),
    Gemm("s8", 4096, 4096, 4096, scaled=True),
    Gemm("f32", 4096, 4096, 4096, target=0.95),
    Gemm("f64", 4096, 4096, 4096),
    Gemm("fp8", 4096, 4096, 4096),
)


def cases(multiprocessors: int) -> list[Case]:
    """Every product of `GEMMS`. Each type's ceiling is sought once, and timed with each product."""
    ceilings: dict[str, ceiling.Queued] = {}
    return [
        Case(
            gemm.name,
            (*gemm.workloads(multiprocessors), *_ceilings(gemm, multiprocessors)),
            partial(_measure, gemm=gemm, multiprocessors=multiprocessors, ceilings=ceilings),
            gemm.target,
        )
        for gemm in GEMMS
    ]


def _ceilings(gemm: Gemm, multiprocessors: int) -> list[Workload]:
    return ceiling.workloads(gemm.type, multiprocessors) if gemm.type in ceiling.CEILINGS else []


def _measure(bench: Bench, gemm: Gemm, multiprocessors: int, ceilings: dict[str, ceiling.Queued]) -> list[Figure]:
    torch = bench.torch
    operands = Operands(torch, gemm)
    launchers = {
        workload.name: bench.launcher(workload, operands.arguments()) for workload in gemm.workloads(multiprocessors)
    }
    peers = operands.peers()
    inputs = (operands.a, operands.b)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = gemm.type == "tf32"
    try:
        bench.check(launchers, operands.d, operands.expected, inputs, atol=operands.allowed)
        peers = bench.right(peers, operands.d, operands.expected, inputs, atol=operands.allowed)
        chosen = bench.fastest(launchers)
        contenders = {"tilefold": launchers[chosen], **peers}
        work = dict.fromkeys(contenders, gemm.operations)
        notes = {"tilefold": chosen.removeprefix(f"{gemm.name}: ")}
        if gemm.type in ceiling.CEILINGS:
            if gemm.type not in ceilings:
                ceilings[gemm.type] = ceiling.best(bench.engine, gemm.type, bench.built_for)
            queued = ceilings[gemm.type]
            contenders["ceiling"], work["ceiling"] = queued.run, queued.operations
            notes["ceiling"] = queued.ceiling.label
        times = bench.time(contenders)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    unit = "TOP/s" if gemm.type == "s8" else "TFLOP/s"
    figures = {
        name: rate(f"{gemm.name}, {name}", work[name], timed, unit, notes.get(name, ""))
        for name, timed in times.items()
    }
    return _ratios(gemm, figures)


def _ratios(gemm: Gemm, figures: Mapping[str, Figure]) -> list[Figure]:
    """Ours and the peers against the ceiling, and ours against each peer."""
    top = figures.get("ceiling")
    ours = figures["tilefold"]
    peers = [figure for name, figure in figures.items() if name not in ("tilefold", "ceiling")]
    rows: list[Figure] = []
    if top is not None:
        rows += [top, ratio(ours, top, gemm.target), *(ratio(peer, top) for peer in peers)]
    else:
        rows += peers
    of_peers = gemm.target if top is None else None
    return [*rows, *(ratio(ours, peer, of_peers if peer is peers[0] else None) for peer in peers)]


class Operands:
    """A and B of N(0,1) (of integers, uniform), the expected result, and where the kernels write it.

    A and B are (M,K) and (N,K) views, whatever their majors, and D is (M,N) of rows. The kernel of ordinary arithmetic
    has all three by columns; it computes the transposed product of the same operands for PyTorch.
    """

    def __init__(self, torch: Torch, gemm: Gemm) -> None:
        self._torch, self._gemm = torch, gemm
        torch.manual_seed(0)
        by_column = gemm.type == "f32"
        self.a = self._operand(gemm.m, gemm.k, by_column or gemm.a_major == "M")
        self.b = self._operand(gemm.n, gemm.k, by_column or gemm.b_major == "N")
        kind = torch.float16 if gemm.scaled else getattr(torch, _OUT.get(gemm.out, _TORCH[gemm.type][1]))
        self.d: Any = torch.empty((gemm.n, gemm.m) if by_column else (gemm.m, gemm.n), device="cuda", dtype=kind)
        self.bias: Any = torch.randn(gemm.n, device="cuda").half() if gemm.gelu else None
        self.expected = self._product(torch.float32 if gemm.type in ("f16", "bf16", "fp8") else torch.float64)
        self.allowed = 1.0 if gemm.scaled else ALLOWED[gemm.type] * gemm.k**0.5

    def _operand(self, rows: int, columns: int, by_column: bool) -> Any:
        torch = self._torch
        shape = (columns, rows) if by_column else (rows, columns)
        if self._gemm.type == "s8":
            stored = torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8)
        elif self._gemm.type == "u8":  # what is right as s8, too, which is all that cuBLAS has
            stored = torch.randint(0, 128, shape, device="cuda", dtype=torch.uint8)
        else:
            wide = torch.float64 if self._gemm.type == "f64" else torch.float32
            stored = torch.randn(shape, device="cuda", dtype=wide).to(getattr(torch, _TORCH[self._gemm.type][0]))
        return stored.T if by_column else stored

    @property
    def exact(self) -> Any:
        """The expected result, computed in f64."""
        return self._product(self._torch.float64)

    def _product(self, wide: Any) -> Any:
        """The expected result, computed in a type of PyTorch."""
        torch = self._torch
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = False
        product = self.a.to(wide) @ self.b.to(wide).T
        torch.backends.cuda.matmul.allow_tf32 = before
        if self._gemm.gelu:
            product = torch.nn.functional.gelu(product + self.bias.to(wide), approximate="tanh")
        if self._gemm.scaled:
            product *= SCALE
        return product.T if self._gemm.type == "f32" else product

    def arguments(self) -> dict[str, Any]:
        """The kernel's arguments."""
        if self._gemm.type == "f32":
            return {"A": self.a, "B": self.b, "C": self.d.T}
        alpha = SCALE if self._gemm.scaled else 1 if self._gemm.type == "s8" else 1.0
        given: dict[str, Any] = {"A": self.a, "B": self.b, "D": self.d, "alpha": alpha}
        if self._gemm.type == "fp8":  # DLPack need not know the type: the address is what counts
            given |= {name: given[name].view(self._torch.uint8) for name in ("A", "B")}
        return given | ({"bias": self.bias.float()} if self._gemm.gelu else {})

    @property
    def peer(self) -> str:
        """PyTorch's function for the same problem."""
        if self._gemm.gelu:
            return "F.gelu(F.linear)"
        if self._gemm.scaled:
            return "torch._int_mm, mul, half"
        return {"s8": "torch._int_mm", "u8": "torch._int_mm of s8", "fp8": FAST}.get(self._gemm.type, "torch.mm")

    def peers(self) -> dict[str, Run]:
        """The product by cuBLAS and, where the problem asks for it and it is installed, by Triton."""
        runs = {f"cuBLAS ({self.peer})": self.cublas()}
        if self._gemm.gelu:
            runs["cuBLAS (torch._addmm_activation)"] = partial(
                self._torch._addmm_activation, self.bias, self.a, self.b.T, use_gelu=True
            )
        if self._gemm.type == "fp8":
            runs[f"cuBLAS ({ACCURATE})"] = self._scaled_mm(fast=False)
        if self._gemm.triton and find_spec("triton") is not None:
            runs["Triton"] = partial(import_module("benchmarks.triton_gemm").matmul, self.a, self.b, self.d)
        return runs

    def _scaled_mm(self, fast: bool) -> Run:
        """The product in fp8; `fast` sums stay in the tensor core, which keeps fewer bits than f32."""
        one = self._torch.ones((), device="cuda")
        return partial(
            self._torch._scaled_mm, self.a, self.b.T, scale_a=one, scale_b=one, out_dtype=self.d.dtype,
            use_fast_accum=fast,
        )  # fmt: skip

    def cublas(self) -> Run:
        """The product by PyTorch."""
        torch, a, b, d, bias = self._torch, self.a, self.b, self.d, self.bias
        functional = torch.nn.functional
        match self._gemm.type:
            case _ if self._gemm.scaled:
                return lambda: (torch._int_mm(a, b.T) * SCALE).half()
            case "s8":
                return lambda: torch._int_mm(a, b.T, out=d)
            case "u8":
                return lambda: torch._int_mm(a.view(torch.int8), b.view(torch.int8).T, out=d)
            case "fp8":
                return self._scaled_mm(fast=True)
            case "f32":
                return lambda: torch.mm(b, a.T, out=d)
            case _ if self._gemm.gelu:
                return lambda: functional.gelu(functional.linear(a, b, bias), approximate="tanh")
            case _:
                return lambda: torch.mm(a, b.T, out=d)
