# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of the literature: what they print, at every stage, and what they compile to."""

import numpy as np
import pytest

from tests.kernels.harness import STAGES
from tests.python.four_ways import KERNELS
from tilefold import cute

A = np.arange(8 * 128, dtype=np.float32).reshape(8, 128)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.function.__name__)
def test_thread_1_prints_its_elements(kernel: cute.Kernel, stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    kernel(A, 8, 128, 8).launch(grid=1, block=128, device="sim", stage=stage)
    head, *rows = capsys.readouterr().out.splitlines()
    assert "o " in head
    assert [float(x) for x in " ".join(rows).split()] == A[0, 8:16].tolist()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.function.__name__)
def test_the_text_form_compiles_to_the_same_ptx(kernel: cute.Kernel) -> None:
    from tests.kernels.harness import TARGET, program_of

    built = kernel(A, 8, 128, 8).build(128)
    assert program_of(built.to_cute()).ptx(TARGET, lines=False) == built.ptx("sm_80", lines=False)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.function.__name__)
def test_they_run_on_a_gpu(kernel: cute.Kernel) -> None:
    kernel(A, 8, 128, 8).launch(grid=1, block=128, device="cuda")
