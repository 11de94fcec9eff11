# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tangent and the inverse functions of angles, against NumPy's in Float64."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportAttributeAccessIssue=false

MOST = 3
"""Units in the last place."""
RANDOM = np.random.default_rng(0)
UNIT = np.concatenate((RANDOM.uniform(-1, 1, 3000), [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-30, np.nan, 1.5]))
LINE = np.concatenate(
    (RANDOM.normal(size=2000) * 10.0 ** RANDOM.uniform(-8, 8, 2000), [0.0, -0.0, np.inf, -np.inf, np.nan])
)
ANGLES = np.concatenate(
    (RANDOM.uniform(-(2.0**20), 2.0**20, 2000), RANDOM.uniform(-7, 7, 1000), np.arange(-40, 41) * np.pi / 4)
)


def computed(device: str, function: Any, *arguments: Any) -> Any:
    """A function of fragments of eight elements."""
    count = -(-len(arguments[0]) // 256)
    given = [np.resize(x.astype(np.float32), (count, 32, 8)) for x in arguments]

    @cute.kernel
    def kernel(out, given):
        t, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        out[row, t, None].store(function(*[x[row, t, None].load() for x in given]))

    out = np.zeros((count, 32, 8), np.float32)
    kernel(out, given).launch(grid=count, block=32, device=device)
    return out, *(x.astype(np.float64) for x in given)


@pytest.mark.parametrize("device", ["sim", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    ("name", "exact", "arguments"),
    [
        ("atan", np.arctan, (LINE,)),
        ("asin", np.arcsin, (UNIT,)),
        ("acos", np.arccos, (UNIT,)),
        ("tan", np.tan, (ANGLES,)),
        ("log1p", np.log1p, (LINE[np.isfinite(LINE) & (LINE != -1)],)),
        ("atan2", np.arctan2, (np.repeat(LINE[-300:], 300), np.tile(LINE[-300:], 300)[::-1][: 300 * 300])),
    ],
)
def test_accuracy(device: str, name: str, exact: Any, arguments: Any) -> None:
    arguments = [x[:8192] if len(x) > 8192 else x for x in arguments]
    if name == "atan2":
        special = LINE[-5:]
        arguments = [
            np.concatenate((x, y)) for x, y in zip(arguments, (np.repeat(special, 5), np.tile(special, 5)), strict=True)
        ]
    with np.errstate(invalid="ignore"):
        out, *given = computed(device, getattr(cute.math, name), *arguments)
        wanted = exact(*given)
    assert (np.isnan(out) == np.isnan(wanted)).all()
    known = ~np.isnan(wanted)
    assert (np.signbit(out) == np.signbit(wanted))[known].all()
    ulp = np.spacing(np.maximum(np.abs(wanted), 1e-37).astype(np.float32))
    assert (np.abs(out - wanted)[known] <= MOST * ulp[known]).all()


def test_other_types_and_numbers() -> None:
    assert cute.math.atan2(1.0, -1.0) == np.arctan2(1.0, -1.0)
    with pytest.raises(TilefoldError, match=r"asin of 2\.0 is not a number"):
        cute.math.asin(2.0)

    @cute.kernel
    def kernel(out, n, x):
        out[0] = cute.math.atan(n).to(cute.Float32) + cute.math.atan(cute.Float16(1.0))
        cute.math.tan(x[0])

    with pytest.raises(TilefoldError, match="tan is not computed in Float64"):
        kernel(np.zeros(1, np.float32), 3, np.ones(1)).build(1)
