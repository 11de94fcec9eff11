# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of HeCBench at small sizes, each with a reference of our own in NumPy.

NVRTC compiles the device part of a file of the checkout. A kernel is right if its results are those of the reference
and the report has no fault; of a kernel with a race or an access out of bounds, if the report has that. See
https://github.com/zjin-lcf/HeCBench.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .case import Case
from .device_part import device_part
from .hecbench_kernel import Draw
from .hecbench_table import KERNELS

HEAD = """\
#include <cuda_fp16.h>
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned long ulong;
typedef unsigned short ushort;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT_MAX 2147483647
#define NULL 0
#define __noinline__
"""
"""The names that headers of the host declare."""


def cases(checkout: Path) -> Iterator[Case]:
    """The kernels of the table."""
    for number, kernel in enumerate(KERNELS):
        file = checkout / "src" / kernel.file
        yield Case(
            name=f"{kernel.file.split('/')[0].removesuffix('-cuda')}: {kernel.name}",
            text=f'{HEAD}#line 1 "{file}"\n{device_part(file, kernel.name, kernel.instance)}\n{kernel.instance}\n',
            file=file,
            expected="faults" if kernel.fault else "clean",
            codes=(kernel.fault,) if kernel.fault else (),
            grid=_sizes(kernel.grid),
            block=_sizes(kernel.block),
            inputs=(partial(arguments, number),),
            kernel=kernel.name,
            nvrtc=("-w",),
            shared=kernel.shared,
            judge=None if kernel.fault else partial(difference, number),
        )


def arguments(number: int, _: Any = None) -> Sequence[Any]:
    """The arguments of a kernel, by its number in the table."""
    return list(KERNELS[number].given(Draw(0)))


def references(number: int) -> Mapping[int, Any]:
    """The arrays that a kernel ought to write, by the places of its arguments."""
    with np.errstate(all="ignore"):
        return KERNELS[number].wanted(arguments(number))


def difference(number: int, given: Sequence[Any]) -> str:
    """How the results differ from the reference; an empty text if they do not."""
    kernel = KERNELS[number]
    for place, reference in references(number).items():
        have, want = given[place], np.broadcast_to(np.asarray(reference), given[place].shape)
        if have.dtype.kind == "f":
            wrong = ~np.isclose(have, want, rtol=kernel.tolerance, atol=kernel.tolerance, equal_nan=True)
        else:
            wrong = have != want.astype(have.dtype)
        if wrong.any():
            first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            return f"argument {place}: {wrong.sum()} of {wrong.size} differ, first {have[first]}, not {want[first]}"
    return ""


def _sizes(size: int | tuple[int, ...]) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else size
