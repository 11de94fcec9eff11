# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An interrupt ends a launch or a compilation of Python, and leaves nothing behind that keeps the next from working."""

import subprocess
import sys
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.alarms import interrupt_at
from tests.project.tree import ROOT
from tilefold import cute

START = """
import signal, llvmlite.binding as llvm
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.base.target import Target
set_option, count = llvm.set_option, 0
def interrupted(*words):
    global count
    set_option(*words)
    count += 1
    if count == {at}:
        signal.raise_signal(signal.SIGINT)
llvm.set_option = interrupted
try:
    compile_llvm("", Target("sm_80"))
except KeyboardInterrupt:
    print("interrupted")
print(".target sm_80" in compile_llvm("", Target("sm_80")))
"""


@pytest.mark.parametrize("at", [1, 3])
def test_interrupt_while_llvm_starts(at: int) -> None:
    """The next compilation sets all options, of which some are set."""
    ran = subprocess.run(
        [sys.executable, "-c", START.format(at=at)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "interrupted\nTrue\n", "")


EVERYWHERE = """
import signal, sys
from threading import Thread
import llvmlite.binding as llvm
from tilefold.base.target import Target
from tilefold.compiler.machine.host_object import make_object
from tilefold.compiler.machine.nvptx import LlvmError, bitcode, compile_llvm

TEXT = "define ptx_kernel void @k() {{\\n  ret void\\n}}"
step = at = 0
def trace(frame, event, argument):
    global step
    if "llvmlite" not in frame.f_code.co_filename:
        return None if event == "call" else trace
    frame.f_trace_opcodes = True
    if event == "opcode":
        step += 1
        if step == at:
            signal.raise_signal(signal.SIGINT)
    return trace

def run():
    try:
        {run}
    except LlvmError:
        pass

def traced(number):
    global step, at
    step, at = 0, number
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(None)

run()
traced(0)
handler, steps = signal.getsignal(signal.SIGINT), step
for number in range(1, steps + 1, steps // {count} + 1):
    try:
        traced(number)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError(f"the interrupt at step {{number}} is lost")
    assert signal.getsignal(signal.SIGINT) is handler
    other = Thread(target=run, daemon=True)
    other.start()
    other.join(120)
    assert not other.is_alive(), f"the lock is taken after an interrupt at step {{number}} of {{steps}}"
assert steps > 100
"""
RUNS = {
    "ptx": "compile_llvm(TEXT, Target('sm_80'))",
    "refused": "compile_llvm('nonsense', Target('sm_80'))",
    "bitcode": "bitcode(TEXT)",
    "object": "make_object(TEXT, 'data', b'12')",
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.sampled(2)
def test_interrupts_at_every_step_of_llvmlite_leave_its_lock_free(name: str) -> None:
    """An interrupt takes effect after the call of LLVM, and the next compilation, in another thread, does not wait."""
    code = EVERYWHERE.format(run=RUNS[name], count=150)
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def kernel() -> Any:
    """A kernel of which nothing is built yet."""

    @cute.kernel
    def scaled(A: cute.Tensor, n: cute.Constexpr):
        t, _, _ = cute.arch.thread_idx()
        x = A[t]
        for _ in cute.range(3):
            x = x + n
        if t < 16:
            x = x * 2.0
        A[t] = x

    return scaled


@pytest.mark.parametrize("what", ["launch", "ptx"])
def test_next_launch_works_after_an_interrupt(what: str) -> None:
    random, interrupted, scaled = Random(what), 0, kernel()
    for n in range(1, 41):
        if n % 3 == 0:
            scaled = kernel()

        def run(number: float = n, kernel: Any = scaled) -> None:
            a = np.ones(32, np.float32)
            if what == "ptx":
                assert ".entry scaled" in kernel(a, number).build(32).ptx("sm_80")
            else:
                kernel(a, number).launch(1, 32, device="sim")
                assert np.array_equal(a, np.where(np.arange(32) < 16, 2, 1) * (1 + 3 * np.float32(number)))

        try:
            with interrupt_at(random.randrange(1, 20_000)):
                run()
        except KeyboardInterrupt:
            interrupted += 1
        run()
    assert interrupted > 20  # the others make fewer calls
