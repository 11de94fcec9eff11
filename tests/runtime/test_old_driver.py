# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A driver that is too old for a kernel: the code, CUDA's name of the error, and what helps."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from tilefold.base.errors import Code
from tilefold.runtime.cuda.driver import CudaError, CudaUnavailable, Driver

UNSUPPORTED, NO_BINARY, INSUFFICIENT = 222, 209, 35
NAMES = {
    UNSUPPORTED: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", NO_BINARY: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    INSUFFICIENT: "CUDA_ERROR_INSUFFICIENT_DRIVER",
}  # fmt: skip


class OldStatus(int):
    """A status with CUDA's name."""

    @property
    def name(self) -> str:
        return NAMES[self]


def old_api(init: int, load: int) -> Any:
    """The functions of a driver that answers these statuses when it begins, and when it loads a kernel."""

    def name(status: int) -> tuple[int, bytes]:
        return 0, NAMES[status].encode()

    return SimpleNamespace(
        cuInit=partial(_answer, (OldStatus(init),)),
        cuLibraryLoadData=partial(_answer, (load, None)),
        CUresult=int,
        cuGetErrorName=name,
        cuGetErrorString=partial(_answer, (0, b"as CUDA says it")),
    )


def _answer(given: tuple[Any, ...], *_: object) -> tuple[Any, ...]:
    return given


@pytest.mark.parametrize(
    ("status", "cure"), [(UNSUPPORTED, "update the driver, or make machine code by ptxas"), (NO_BINARY, "compile for")]
)
def test_a_kernel_that_the_driver_cannot_load(status: int, cure: str) -> None:
    driver = Driver.__new__(Driver)
    driver.api = old_api(0, status)
    with pytest.raises(CudaError, match=f"loading k: cuLibraryLoadData failed with {NAMES[status]}") as caught:
        driver.call("cuLibraryLoadData", b"", doing="loading k")
    assert caught.value.code is Code.CUDA_FAILED
    assert caught.value.status == NAMES[status]
    assert cure in caught.value.hint


def test_a_driver_that_is_older_than_cuda_python(monkeypatch: pytest.MonkeyPatch) -> None:
    found = partial(_answer, old_api(INSUFFICIENT, 0))
    monkeypatch.setattr("tilefold.runtime.cuda.driver.import_module", found)
    with pytest.raises(CudaUnavailable, match="the driver answers CUDA_ERROR_INSUFFICIENT_DRIVER") as caught:
        Driver(0)
    assert caught.value.code is Code.CUDA_UNAVAILABLE
    assert "install an NVIDIA driver" in caught.value.hint
