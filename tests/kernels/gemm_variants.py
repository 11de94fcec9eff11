# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Variants of examples/gemm.cute: small ones for the simulator, and those that a GPU runs."""

from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand

from tests.kernels.harness import example
from tilefold.driver.lowering import Program, load

Parameters = dict[str, int | str]

HOPPER = Target("sm_90a")
"""What the variants are compiled for."""


def gemm(parameters: Parameters) -> Program:
    """The example with these parameters."""
    path = example("gemm")
    given = {name: str(value) for name, value in parameters.items()}
    return load(expand(path.read_text(), path.name, given), HOPPER.arch)


def name_of(parameters: Parameters) -> str:
    """A name for a test: the parameters that are not sizes."""
    plain = [f"{name}={value}" for name, value in parameters.items() if name not in _SIZES]
    return ",".join(plain) or "default"


_SIZES = {"M", "N", "K", "TILE_M", "TILE_N", "TILE_K", "WARPS_M", "WARPS_N"}
_SMALL: Parameters = {"M": 32, "N": 64, "K": 96, "TILE_M": 32, "TILE_N": 64, "TILE_K": 32, "WARPS_M": 1, "WARPS_N": 2}


def _small(**changes: int | str) -> Parameters:
    return {**_SMALL, **changes}


_BYTES: Parameters = {"TILE_K": 64, "K": 128}

SIMULATED: list[Parameters] = [
    _small(),
    _small(A_MAJOR="M", TILE_M=64, M=64, B_MAJOR="N", BLOCKS=1, N=128, BETA=1, ACTIVATION="relu"),
    _small(RAGGED=1, M=24, N=40, K=72, BATCH=2, BIAS=1, ACTIVATION="gelu", STAGES=2),
    _small(RAGGED=1, VECTOR=1, M=21, N=43, K=35, B_MAJOR="N", OUT="f32", BETA=1),
    _small(ACC="f16", SPLITS=3, GROUP=1, A_MAJOR="M", TILE_M=64, M=64, BIAS=1),
    _small(AB="bf16", DYNAMIC=1, VECTOR=2, M=30, N=62, K=70, SPLITS=2, BETA=1, STAGES=4),
    _small(AB="bf16", RAGGED=1, BLOCKS=2, M=40, N=72, K=104, B_MAJOR="N", OUT="f32", ACTIVATION="gelu", D_PARTS=2),
    _small(PIPELINE="mbarriers", BLOCKS=2, M=64, N=128, STAGES=2, OUT="f32"),
    _small(PIPELINE="mbarriers", BLOCKS=1, RAGGED=1, AB="bf16", M=56, N=104, TILE_N=128, K=104, BETA=1, BIAS=1),
    _small(AB="f32", TILE_K=16, K=48, B_MAJOR="N", BATCH=2, ACTIVATION="relu"),
    _small(AB="f32", TILE_K=16, K=30, VECTOR=2, DYNAMIC=1, M=30, N=62, A_MAJOR="M", BIAS=1, STAGES=2),
    _small(AB="f64", TILE_K=16, K=32, BETA=1, BIAS=1, ACTIVATION="relu", STAGES=2),
    _small(AB="f64", TILE_K=16, K=17, VECTOR=1, DYNAMIC=1, M=31, N=33, A_MAJOR="M", B_MAJOR="N", SPLITS=2),
    _small(AB="i8", **_BYTES, BETA=1, BIAS=1, ACTIVATION="relu", BATCH=2, N=64),
    _small(AB="i8", RAGGED=1, VECTOR=1, TILE_K=64, K=70, M=30, N=61, OUT="f32", ACTIVATION="gelu"),
    _small(AB="f8E4M3FN", **_BYTES, BLOCKS=1, M=64, BIAS=1, OUT="f16"),
    _small(AB="f8E5M2", RAGGED=1, VECTOR=4, TILE_K=64, K=68, M=30, N=60, BETA=1, STAGES=2),
]
"""Between them every parameter has each of its values, and every element type several of each other's."""

MEASURED: list[Parameters] = [
    {"M": 512, "N": 512, "K": 512},
    {"M": 512, "N": 512, "K": 512, "BLOCKS": 3},
    {"M": 512, "N": 512, "K": 512, "BLOCKS": 3, "STAGES": 4},
    {"M": 512, "N": 1024, "K": 512, "BLOCKS": 3, "PIPELINE": "mbarriers"},
    {"M": 512, "N": 1024, "K": 512, "BLOCKS": 3, "PIPELINE": "mbarriers", "STAGES": 4, "BETA": 1, "BIAS": 1},
    {"M": 1000, "N": 1016, "K": 520, "RAGGED": 1, "BLOCKS": 7, "PIPELINE": "mbarriers", "OUT": "f32"},
    {"M": 512, "N": 512, "K": 512, "BLOCKS": 3, "AB": "i8", "PIPELINE": "mbarriers", "A_MAJOR": "M"},
    {"M": 512, "N": 512, "K": 512, "BLOCKS": 3, "OUT": "f32", "BIAS": 1, "BETA": 1},
    {"M": 512, "N": 512, "K": 512, "STAGES": 4, "LOAD_A": 0, "LOAD_B": 0},
    {"M": 256, "N": 512, "K": 512, "SPLITS": 4, "BETA": 1, "BIAS": 1, "ACTIVATION": "gelu"},
    {"M": 256, "N": 512, "K": 256, "BATCH": 3, "ACTIVATION": "relu"},
    {"M": 256, "N": 512, "K": 256, "ACC": "f16"},
    {"M": 256, "N": 512, "K": 256, "OUT": "f32", "BLOCKS": 2, "STAGES": 2, "TILE_N": 128},
    {"M": 1000, "N": 777, "K": 321, "VECTOR": 1, "RAGGED": 1},
    {"M": 1000, "N": 1016, "K": 520, "RAGGED": 1},
    {"M": 1000, "N": 1016, "K": 520, "DYNAMIC": 1, "BIAS": 1, "BETA": 1},
    {"M": 1000, "N": 1016, "K": 520, "RAGGED": 1, "BLOCKS": 7},
    {"M": 1000, "N": 776, "K": 3000, "DYNAMIC": 1, "SPLITS": 5, "BATCH": 2},
    {"M": 333, "N": 555, "K": 222, "DYNAMIC": 1, "VECTOR": 1, "BIAS": 1, "A_MAJOR": "M", "B_MAJOR": "N"},
    *({"M": 512, "N": 512, "K": 256, "A_MAJOR": a, "B_MAJOR": b} for a, b in ("MK", "KN", "MN")),
    {"M": 520, "N": 776, "K": 200, "A_MAJOR": "M", "B_MAJOR": "N", "RAGGED": 1},
    *({"M": 512, "N": 512, "K": 256, "AB": ab} for ab in ("bf16", "f32", "f64", "i8", "f8E4M3FN", "f8E5M2")),
    *(
        {"M": 512, "N": 512, "K": 256, "AB": ab, "A_MAJOR": "M", "B_MAJOR": "N"}
        for ab in ("bf16", "f32", "f64", "i8", "f8E4M3FN", "f8E5M2")
    ),
    *(
        {"M": 510, "N": 514, "K": 258, "AB": ab, "DYNAMIC": 1, "VECTOR": 2, "BETA": 1, "BIAS": 1}
        for ab in ("bf16", "f32", "f64", "i8", "f8E4M3FN", "f8E5M2")
    ),
    {"M": 512, "N": 512, "K": 256, "AB": "f64", "ATOM_M": 16},
    {"M": 512, "N": 512, "K": 256, "AB": "f64", "ATOM_M": 16, "ATOM_K": 8},
    {"M": 512, "N": 512, "K": 256, "AB": "i8", "OUT": "f32", "SPLITS": 2},
]
"""What a GPU of sm_90 runs, at the sizes of tiles that the example chooses."""
