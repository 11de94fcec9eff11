# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The driver holds as many blocks on a multiprocessor as the report says."""

import pytest
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.reports.kernel_report import make_report
from tilefold.dialects.ptx import EntryOp
from tilefold.runtime.cuda.driver import Driver

from tests.emit.harness import kernel, parse, ptx_of

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize(("threads", "bounds", "shared"), [
    (32, "", 0), (96, "", 1024), (128, "max_registers(32)", 16384), (256, "", 40960), (1024, "", 0), (160, "", 8192),
    (32, "", 256), (128, "min_blocks(4)", 65536), (128, "", 100 * 1024), (64, "max_registers(64)", 20000),
])  # fmt: skip
def test_blocks_of_a_multiprocessor(threads: int, bounds: str, shared: int, used: bool) -> None:
    lines: list[str] = []
    for i in range(48):
        lines.append(f"%c{i} = arith.constant {4 * i} : i32")
        lines.append(f"%p{i} = ptx.ptr_add %A, %c{i} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>")
        lines.append(f"%v{i} = ptx.ld %p{i} align 4 : !ptx.ptr<global> -> f32")
    lines += [f"ptx.st %v{i}, %p{47 - i} align 4 : f32, !ptx.ptr<global>" for i in range(48)]
    if used and shared:
        lines += ["%s = ptx.smem.addr 0", "ptx.st %v0, %s align 4 : f32, !ptx.ptr<shared>"]
    text = kernel("\n".join(lines), "%A: !ptx.ptr<global> align 16", str(threads), shared)
    text = text.replace(f"threads({threads})", f"threads({threads}) {bounds}")
    driver = Driver(0)
    driver.activate()
    ptx = ptx_of(text, driver.target)
    cubin = assemble(ptx, driver.target)
    entries = [op for op in parse(text).walk() if isinstance(op, EntryOp)]
    said = make_report(ptx, cubin, driver.target, entries).kernels[0]
    module = driver.call("cuModuleLoadData", cubin.code)
    function = driver.call("cuModuleGetFunction", module, b"k")
    if said.dynamic_shared:
        attribute = driver.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.call("cuFuncSetAttribute", function, attribute, said.dynamic_shared)
    counted = driver.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, threads, said.dynamic_shared)
    assert said.occupancy.resident == counted
