# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions of undefined numbers: a branch that only chooses among values is no fault, a use of its result is."""

import numpy as np
import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError

from tilefold import cute

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false


@cute.kernel
def inverses(out, stored: cute.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor((32,), cute.Float32, 16)
    if t < 16:
        s[t] = cute.Float32(2.0)
    cute.arch.sync_threads()
    x = cute.make_fragment(2, cute.Float32)
    x[0] = s[t]
    x[1] = s[t]
    bad = x[0] == 0.0 or x[1] != x[1]
    y = cute.arch.rcp_approx(x[1] if not bad else 1.0)
    if t < stored:
        out[t] = y


@pytest.mark.parametrize("stage", ["cute", "folded", "instr", "ptx"])
def test_a_choice_by_undefined_numbers(stage: str) -> None:
    out = np.zeros(32, np.float32)
    inverses(out, 16).launch(grid=1, block=32, device="sim", stage=stage)
    assert out.tolist() == [0.5] * 16 + [0.0] * 16
    with pytest.raises(ProgramError, match=r"E3204.* stores a value that depends on undefined bytes"):
        inverses(out, 32).launch(grid=1, block=32, device="sim", stage=stage)
