# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GEMM example in its variants: every stage against NumPy, bank conflicts, its main loop, registers; on a GPU."""

import re
from collections import Counter

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.machine.assemble import assemble
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig

from tests.kernels.gemm_variants import HOPPER, MEASURED, SIMULATED, Parameters, gemm, name_of
from tests.kernels.harness import MAX_BYTES, STAGES, assert_checks_hold, on_gpu, simulate
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, read_launches


@pytest.mark.parametrize("parameters", SIMULATED, ids=name_of)
@pytest.mark.sampled(2)
def test_every_stage_computes_what_numpy_does(parameters: Parameters) -> None:
    found = gemm(parameters)
    (launch,) = read_launches(found.module, found.source, Changes())
    for stage in STAGES:
        assert_checks_hold(launch, simulate(found, launch, stage).after)


def test_every_parameter_has_each_of_its_values() -> None:
    taken = {name: {str(p[name]) for p in SIMULATED if name in p} for name in {name for p in SIMULATED for name in p}}
    assert taken["AB"] == {"bf16", "f32", "f64", "i8", "f8E4M3FN", "f8E5M2"}
    assert taken["ACTIVATION"] == {"relu", "gelu"}
    assert {
        "A_MAJOR",
        "B_MAJOR",
        "ACC",
        "OUT",
        "BETA",
        "BIAS",
        "BATCH",
        "SPLITS",
        "BLOCKS",
        "GROUP",
        "PIPELINE",
    } <= set(taken)
    assert {"RAGGED", "DYNAMIC", "VECTOR", "STAGES"} <= set(taken)


@pytest.mark.parametrize("majors", ["KK", "MN"])
@pytest.mark.parametrize(("ab", "tile_k", "rows"), [("f16", 32, 64), ("f32", 32, 32), ("f64", 16, 32), ("i8", 64, 128)])
@pytest.mark.sampled(3)
def test_no_access_to_shared_memory_has_a_bank_conflict(ab: str, tile_k: int, rows: int, majors: str) -> None:
    rows = rows if majors == "MN" else 64
    sizes: Parameters = {"M": rows, "N": rows, "K": tile_k, "TILE_M": rows, "TILE_N": rows, "TILE_K": tile_k}
    found = gemm({**sizes, "WARPS_N": 2, "STAGES": 2, "AB": ab, "A_MAJOR": majors[0], "B_MAJOR": majors[1], "BETA": 1})
    (launch,) = read_launches(found.module, found.source, Changes())
    accesses = simulate(found, launch, "instr").result.counters.accesses
    shared = [access for access in accesses if access.space == "shared"]
    assert {access.kind for access in shared} >= {"async", "load", "store"}
    assert [access for access in shared if access.excess] == []


def loop_of(ptx: str) -> list[str]:
    """The instructions of the innermost loop: from the last label that is branched back to."""
    lines = [line.strip() for line in ptx.splitlines()]
    labels = {line[:-1]: i for i, line in enumerate(lines) if line.startswith("$L") and line.endswith(":")}
    backward = [
        (labels[m[1]], i) for i, line in enumerate(lines) if (m := re.search(r"bra(?:\.uni)?\s+(\$\w+);", line))
    ]
    start, end = min(((a, b) for a, b in backward if a < b), key=lambda ends: ends[1] - ends[0])
    return [line for line in lines[start : end + 1] if line.endswith(";") and not line.startswith(".")]


@pytest.mark.parametrize(
    ("changes", "most", "wide"),
    [({}, 34, 4), ({"BLOCKS": 132}, 44, 4), ({"RAGGED": 1, "BLOCKS": 132}, 48, 4), ({"DYNAMIC": 1}, 54, 12)],
    ids=["", "blocks", "ragged", "dynamic"],
)
def test_the_main_loop_is_what_moves_and_multiplies(changes: Parameters, most: int, wide: int) -> None:
    loop = loop_of(gemm({"M": 4096, "N": 4096, "K": 4096, **changes}).ptx(HOPPER))
    names = Counter(line.split(None, 1)[0].rstrip(";") for line in loop)
    moved = {name: names.pop(name) for name in list(names) if re.match(r"mma|ldmatrix|cp\.async|bar", name)}
    assert moved == {
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 128,
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16": 32,
        "cp.async.cg.shared.global": 12,
        "cp.async.commit_group": 1,
        "cp.async.wait_group": 1,
        "bar.sync": 1,
    }
    assert not any(name.startswith(("xor", "and.b", "or.b", "shr", "mul.lo", "mad", "div", "rem")) for name in names), (
        names
    )
    assert names.total() <= most, names
    assert sum(count for name, count in names.items() if name.endswith("64")) <= wide, names


@pytest.mark.parametrize("stages", [3, 4])
def test_warps_do_not_meet_in_the_main_loop_with_mbarriers(stages: int) -> None:
    sizes: Parameters = {"M": 4096, "N": 4096, "K": 4096, "BLOCKS": 132}
    ptx = gemm({**sizes, "PIPELINE": "mbarriers", "STAGES": stages}).ptx(HOPPER)
    names = Counter(line.split(None, 1)[0].rstrip(";") for line in loop_of(ptx))
    assert {
        name: names.pop(name) for name in list(names) if re.match(r"mma|ldmatrix|cp\.async|bar|mbarrier", name)
    } == {
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 128,
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16": 32,
        "cp.async.cg.shared.global": 12,
        "cp.async.mbarrier.arrive.noinc.shared.b64": 1,
        "mbarrier.try_wait.parity.shared.b64": 2,  # the next stage is full, the one before is empty
        "bar.warp.sync": 1,  # before one lane arrives for its warp, after the loop in the text
    }
    assert ptx.count("mbarrier.arrive.shared.b64") == 1
    assert ptx.count("bar.sync") == 1, "once the mbarriers are there"
    assert names.total() <= 62, names
    assert sum(count for name, count in names.items() if name.endswith("64")) <= 4, names


FITTING: list[Parameters] = [
    {},
    {"M": 4096, "N": 4096, "K": 4096, "BLOCKS": 132},
    {"M": 4096, "N": 4096, "K": 4096, "BLOCKS": 132, "STAGES": 4, "OUT": "f32"},
    {"M": 4096, "N": 4096, "K": 4096, "BLOCKS": 132, "STAGES": 4, "PIPELINE": "mbarriers", "BIAS": 1, "BETA": 1},
    {"A_MAJOR": "M", "B_MAJOR": "N", "RAGGED": 1, "BLOCKS": 132},
    {"DYNAMIC": 1, "BETA": 1, "BIAS": 1, "ACTIVATION": "gelu"},
    {"DYNAMIC": 1, "VECTOR": 1},
    {"SPLITS": 2, "OUT": "f32"},
    *({"AB": ab, "A_MAJOR": "M"} for ab in ("f32", "f64", "i8", "f8E4M3FN")),
]


@pytest.mark.parametrize("parameters", FITTING, ids=name_of)
@pytest.mark.sampled(3)
def test_registers_suffice(parameters: Parameters) -> None:
    ptx = gemm(parameters).ptx(HOPPER)
    assert ".local" not in ptx
    used = assemble(ptx, HOPPER).kernels["gemm"]
    assert (used.spill_stores, used.spill_loads, used.stack) == (0, 0, 0)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"M": 100}, "set RAGGED=1"),
        ({"LOAD_B": 3}, "steps 0 to 2, A first"),
        ({"STAGES": 1}, "at least two"),
        ({"BLOCKS": 2, "SPLITS": 2}, "of one split"),
        ({"PIPELINE": "mbarriers"}, "for several tiles a block"),
        ({"A_MAJOR": "M", "TILE_M": 32, "M": 32}, "multiples of 128 bytes"),
        ({"D_PARTS": 8}, "multiple of 128 bytes of D"),
        ({"AB": "f32", "ACC": "f16"}, "f32 is not accumulated in f16"),
        ({"AB": "f8", "ACC": "f32"}, "AB is f16, bf16"),
        ({"OUT": "f64"}, "OUT is f32, or"),
        ({"A_MAJOR": "N"}, "A_MAJOR is K or M"),
        ({"ACTIVATION": "gelu", "AB": "f64"}, "computed in f32"),
    ],
)
def test_what_cannot_be_is_refused(parameters: Parameters, said: str) -> None:
    with pytest.raises(ProgramError) as caught:
        gemm(parameters)
    assert caught.value.code == "E1106"
    assert said in caught.value.message


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of the first device. There is no skip: without a device this fails."""
    return CudaEngine()


@pytest.mark.gpu
@pytest.mark.parametrize("parameters", MEASURED, ids=lambda p: ",".join(f"{n}={v}" for n, v in p.items()))
def test_a_gpu_computes_what_numpy_does(engine: CudaEngine, parameters: Parameters) -> None:
    found = gemm(parameters)
    (launch,) = read_launches(found.module, found.source, Changes())
    assert_checks_hold(launch, on_gpu(found, launch, engine))


@pytest.mark.gpu
def test_splits_of_k_are_added_in_one_order(engine: CudaEngine) -> None:
    found = gemm({"M": 256, "N": 512, "K": 4096, "SPLITS": 8, "OUT": "f32"})
    (launch,) = read_launches(found.module, found.source, Changes())
    artifact = found.artifact(launch.kernel, engine.driver.target)
    results: set[bytes] = set()
    for _ in range(5):
        arguments = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
        given = arguments.launchable()
        engine.launch(artifact, LaunchConfig(launch.grid, launch.block), given)
        results.add(arguments.logical(given)["D"].tobytes())
    assert len(results) == 1
