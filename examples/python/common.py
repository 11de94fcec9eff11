# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that the examples share: their options, arrays where the kernel runs, and the comparison with NumPy."""

import argparse
from typing import Any

import numpy as np

Array = Any
"""A NumPy array for the simulator, for the GPU also a torch tensor."""


def parser(description: str, **sizes: int) -> argparse.ArgumentParser:
    """The options of an example: `--device`, and one for each size."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--device", choices=("auto", "cuda", "sim"), default="auto", help="where the kernel runs")
    for name, value in sizes.items():
        made.add_argument(f"--{name}", type=int, default=value, help=f"default: {value}")
    return made


def chosen(device: str) -> str:
    """`cuda` or `sim`: for `auto` the GPU, if there is one."""
    from tilefold.driver.devices import chosen_device

    return chosen_device(device)


def place(device: str, *arrays: np.ndarray) -> list[Array]:
    """The arrays where the kernel runs. Without torch a launch on the GPU copies those of NumPy there and back."""
    try:
        import torch
    except ImportError:
        return list(arrays)
    if device == "sim" or not torch.cuda.is_available():
        return list(arrays)
    return [_tensor(torch, array) for array in arrays]


def _tensor(torch: Any, array: np.ndarray) -> Array:
    """An array as a tensor on the GPU; types that NumPy does not know (`ml_dtypes`) pass as bytes."""
    known = array.dtype.kind != "V"
    tensor = torch.from_numpy(array if known else array.view(np.uint8)).cuda()
    return tensor if known else tensor.view(getattr(torch, array.dtype.name))


def normal(seed: int, shape: tuple[int, ...], dtype: Any = np.float16) -> np.ndarray:
    """Normally distributed numbers, the same for the same seed."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


def check(subject: str, result: Array, expected: np.ndarray, rtol: float = 2e-3, atol: float = 2e-3) -> None:
    """Compares a result with what NumPy computes. SystemExit for one that differs by more than the tolerances."""
    actual = result if isinstance(result, np.ndarray) else result.cpu().numpy()
    far = np.abs(actual.astype(np.float64) - expected) > atol + rtol * np.abs(expected)
    if far.any() or not np.isfinite(actual).all():
        at = tuple(int(i) for i in np.argwhere(far | ~np.isfinite(actual))[0])
        raise SystemExit(f"{subject}: {int(far.sum())} of {actual.size} elements are wrong, first {at}: {actual[at]}")
    print(f"{subject}: {actual.size} elements are right")
