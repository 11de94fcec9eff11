# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that only ptxas and the driver assemble as they are written, and the tests that need ptxas."""

import pytest
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.machine.assemble import AssembleError
from tilefold.compiler.machine.ptxas import Ptxas, find_ptxas
from tilefold.runtime.compiled.store import Store
from tilefold.runtime.settings import ptxas_settings

from tests.emit.harness import kernel
from tilefold.driver.lowering import Program, load


def installed() -> Ptxas | None:
    """The ptxas that compilations use here, if there is one."""
    settings = ptxas_settings()
    try:
        return find_ptxas(settings.program, settings.cuda_home)
    except AssembleError:
        return None


needs_ptxas = pytest.mark.skipif(installed() is None, reason="needs ptxas: pip install nvidia-cuda-nvcc")
"""For tests of its machine code. The search for it is tested without it."""


def program(text: str, store: Store | None = None) -> Program:
    """A program of this text, in a file k.cute."""
    read = load(plain_source(text, "k.cute"))
    read.cache = store
    return read


def handing_over(bounds: str = "min_blocks(1)") -> str:
    """A kernel whose first warpgroup hands registers over to the other two."""
    body = """
    %t = gpu.thread_id x
    %c128 = arith.constant 128 : index
    %c4 = arith.constant 4 : index
    %o = arith.muli %t, %c4 : index
    %a = ptx.ptr_add %A, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
    %v = arith.constant 7 : i32
    %first = arith.cmpi ult, %t, %c128 : index
    scf.if %first {
      ptx.setmaxnreg dec 40
    } else {
      ptx.setmaxnreg inc 232
      ptx.st %v, %a align 4 : i32, !ptx.ptr<global>
    }
    """
    text = kernel(body, "%A: !ptx.ptr<global> align 4", "384")
    return text.replace("threads(384)", f"threads(384) {bounds}")


_SETUP = """{ .reg .f32 f<4>; .reg .b64 d; mov.f32 f0, 0f00000000; mov.f32 f1, f0; mov.f32 f2, f0; mov.f32 f3, f0;
mov.b64 d, $0; wgmma.fence.sync.aligned;"""
_MMA = """wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0, f1, f2, f3}, d, d, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;"""
_WAIT = "wgmma.wait_group.sync.aligned 0;"
_STORE = "st.global.f32 [$1], f0; st.global.f32 [$1+4], f1; }"


def multiplying(between: str = "", after: str = "") -> str:
    """A kernel with two wgmma on the same accumulators: `between` is PTX after the first, `after` what follows all."""
    text = " ".join(f"{_SETUP} {_MMA} {between} {_MMA} {_WAIT} {_STORE}".split())
    body = f"""
    %d = arith.constant 64 : i64
    ptx.inline "{text}" constraints "l,l"(%d, %A) : (i64, !ptx.ptr<global>) -> ()
    {after}
    """
    return kernel(body, "%A: !ptx.ptr<global> align 4", "128")


EARLY = "add.f32 f0, f0, f1;"
"""Uses the accumulators of `multiplying` before their wait."""
