# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of HeCBench and of llm.c at small sizes, each with a reference of our own in NumPy.

NVRTC compiles the device part of a file of the checkout. A kernel is right if its results are those of the reference
and the report has no fault; of a kernel with a race or an access out of bounds, if the report has that. See
https://github.com/zjin-lcf/HeCBench and https://github.com/karpathy/llm.c.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import hecbench_table, llmc_table
from .case import Case
from .device_part import device_part
from .tabled_kernel import Draw, Kernel

TABLES: Mapping[str, Sequence[Kernel]] = {"hecbench": hecbench_table.KERNELS, "llm.c": llmc_table.KERNELS}
FOLDERS = {"hecbench": "src", "llm.c": "dev/cuda"}
"""The folders of checkouts that the files of tables are in."""

HEAD = """\
#include <cuda_fp16.h>
#include <cuda_bf16.h>
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
namespace std { template <bool value> struct bool_constant {}; }
"""
"""The names that headers of the host declare."""


def cases(table: str, checkout: Path) -> Iterator[Case]:
    """The kernels of a table, from a checkout of its suite."""
    for number, kernel in enumerate(TABLES[table]):
        file = checkout / FOLDERS[table] / kernel.file
        folder, _, name = kernel.file.rpartition("/")
        text = device_part(file, kernel.name, kernel.instance)
        yield Case(
            name=f"{folder.split('/')[0].removesuffix('-cuda') or name.removesuffix('.cu')}: {kernel.name}",
            text=f'{HEAD}#line 1 "{file}"\n{text}\n{kernel.instance}\n',
            file=file,
            expected="faults" if kernel.fault else "clean",
            codes=(kernel.fault,) if kernel.fault else (),
            grid=_sizes(kernel.grid),
            block=_sizes(kernel.block),
            inputs=(partial(arguments, table, number),),
            kernel=kernel.name,
            nvrtc=("-w",),
            shared=kernel.shared,
            judge=None if kernel.fault else partial(difference, table, number),
        )


def arguments(table: str, number: int, _: Any = None) -> Sequence[Any]:
    """The arguments of a kernel, by its number in a table."""
    return list(TABLES[table][number].given(Draw(0)))


def references(table: str, number: int) -> Mapping[int, Any]:
    """The arrays that a kernel ought to write, by the places of its arguments."""
    with np.errstate(all="ignore"):
        return TABLES[table][number].wanted(arguments(table, number))


def difference(table: str, number: int, given: Sequence[Any]) -> str:
    """How the results differ from the reference; an empty text if they do not."""
    kernel = TABLES[table][number]
    for place, reference in references(table, number).items():
        have, want = given[place], np.broadcast_to(np.asarray(reference), given[place].shape)
        if have.dtype.kind not in "biu":  # a bfloat16 of ml_dtypes has the kind V
            have, want = have.astype(np.float64), want.astype(np.float64)
            wrong = ~np.isclose(have, want, rtol=kernel.tolerance, atol=kernel.tolerance, equal_nan=True)
        else:
            wrong = have != want.astype(have.dtype)
        if wrong.any():
            first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            return f"argument {place}: {wrong.sum()} of {wrong.size} differ, first {have[first]}, not {want[first]}"
    return ""


def _sizes(size: int | tuple[int, ...]) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else size
