# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of kernels in PTX as options of `tilefold check`, with the text of their module."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefold.base.element_types import ELEMENT_TYPES
from tilefold.driver.ptx_module import PtxModule
from tilefold.runtime.engine import Argument, LaunchConfig, TensorArgument, numpy_type
from tilefold.runtime.options import SimOptions
from tilefold.tools.reproduction.options import simulation_words
from tilefold.tools.reproduction.replay import Repeated


def repeated_ptx(
    module: PtxModule,
    kernel: str,
    config: LaunchConfig,
    values: Mapping[str, Argument],
    outputs: Collection[str],
    shared: int,
    options: SimOptions,
) -> Repeated:
    """The check of a launch whose arguments have these `values`; those among `outputs` have none."""
    words = ["--launch", kernel, "--grid", _size(config.grid), "--block", _size(config.block)]
    words += ["--shared", str(shared)] if shared else []
    words += simulation_words(options)
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in values.items():
        if not isinstance(value, TensorArgument):
            words += ["--arg", f"{name}={value.item() if isinstance(value, np.generic) else value}"]
        elif name in outputs:
            words += ["--arg", f"{name}={_element(value.storage)}[{value.storage.size}]"]
        else:
            arrays[name] = _plain(value.storage)
    return Repeated(module.source.name, module.source.text, words, arrays, module.compiled_text, is_ptx=True)


def _size(size: tuple[int, int, int]) -> str:
    return ",".join(map(str, size))


def _element(array: NDArray[Any]) -> str:
    """The name of the type of an array's elements."""
    element = next(e for e in ELEMENT_TYPES if e.bits >= 8 and numpy_type(e) == array.dtype)
    return element.signed_name or element.ptx


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """An array of a type that .npy files have: of the same bytes, as integers, where NumPy lacks it."""
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}")
