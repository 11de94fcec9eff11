# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ZLUDA's tests of PTX: kernels written by hand, with their inputs and outputs, which also ran on NVIDIA's GPUs.

The file `mod.rs` beside the kernels lists the numbers, as Rust writes them; a kernel without numbers is left out. A
kernel reads the input and writes the output; one of `test_ptx_warp` has 64 threads and no input. See
https://github.com/vosen/ZLUDA.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefold.cute.loaded_ptx import PtxKernel, PtxKernelCall
from tilefold.driver.ptx_module import PtxModule, parameter_names

from .case import Case, Checked

FOLDER = "ptx/src/test/spirv_run"
SHARED = 1024
_TEST = re.compile(r"^test_ptx(?P<kind>\w*)!\(\s*(?P<name>\w+)\s*(?P<rest>,.*?)?\);", re.MULTILINE | re.DOTALL)
_TYPES: Mapping[str, Any] = {
    "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32, "i32": np.int32,
    "u64": np.uint64, "i64": np.int64, "f32": np.float32, "f64": np.float64, "f16": np.float16,
}  # fmt: skip
_INTEGER = re.compile(r"(-?)(0x|0b)?([0-9a-fA-F_]+?)_?((?:[ui](?:8|16|32|64))|f32|f64)?")
_MEMBER = re.compile(r"(?:half::)?(?:std::)?([uif]\d+)::(?:consts::)?(\w+)(?:\s*\(([^()]*)\))?")
_CONSTANTS = {"NAN": math.nan, "INFINITY": math.inf, "NEG_INFINITY": -math.inf}


def cases(checkout: Path) -> Iterator[Case]:
    """The kernels with numbers."""
    folder = checkout / FOLDER
    text = re.sub(r"//[^\n]*", "", (folder / "mod.rs").read_text())
    for test in _TEST.finditer(text[text.index("test_ptx!(ld_st") :]):
        arrays = [numbers(array) for array in re.findall(r"\[([^\]]*)\]", test["rest"] or "")]
        if not arrays:
            continue
        file = folder / f"{test['name']}.ptx"
        is_warp, known = "warp" in test["kind"], [array for array in arrays if array is not None]
        reason = "" if len(known) == len(arrays) else "its numbers are expressions of Rust"
        given = [] if is_warp else known[:1]
        launches = partial(launched, given, known[-1]) if known else None
        block = (64,) if is_warp else (1,)
        yield Case(test["name"], "", file, "clean", (1,), block, (), left_out=reason, launches=launches)


def numbers(text: str) -> NDArray[Any] | None:
    """An array as Rust writes it: the first number has the type; None for an expression that is not known."""
    items = [item.strip() for item in re.sub(r"(\([^()]*\))", lambda m: m[1].replace(",", ";"), text).split(",")]
    read = [_number(item) for item in items if item]
    if not read or None in read:
        return None
    known = [pair for pair in read if pair is not None]
    name = next((name for _, name in known if name), "i32" if all(isinstance(x, int) for x, _ in known) else "f64")
    type = np.dtype(_TYPES[name])
    if type.kind == "f":
        return np.array([value for value, _ in known], type)
    return np.array([int(value) & ((1 << 8 * type.itemsize) - 1) for value, _ in known], np.uint64).astype(type)


def _number(text: str) -> tuple[float | int, str] | None:
    """A number and the name of its type, if it says that."""
    match = _MEMBER.fullmatch(text)
    if match is None:
        match_of = _INTEGER.fullmatch(text)
        if match_of is not None and (match_of[4] or "")[:1] != "f":
            base = {"0x": 16, "0b": 2, None: 10}[match_of[2]]
            if base == 10 and not match_of[3].replace("_", "").isdecimal():
                return None
            value = int(match_of[3].replace("_", ""), base)
            return (-value if match_of[1] else value), match_of[4] or ""
        float_of = re.fullmatch(r"(-?[\d._]+(?:e-?\d+)?)(f32|f64)?", text)
        return None if float_of is None else (float(float_of[1].replace("_", "")), float_of[2] or "")
    name, member, argument = match.groups()
    if argument is None and member in _CONSTANTS:
        return _CONSTANTS[member], name
    if argument is None and member == "PI":
        return math.pi, name
    if name[0] in "ui" and member in ("MAX", "MIN", "max_value", "min_value"):
        limits = np.iinfo(_TYPES[name])
        return int(limits.max if member.lower().startswith("max") else limits.min), name
    inner = None if argument is None else _number(argument)
    if inner is None or member not in ("from_f32", "from_f64", "from_bits"):
        return None
    if member == "from_bits":
        bits = np.array([inner[0]], f"u{np.dtype(_TYPES[name]).itemsize}").view(_TYPES[name])
        return float(bits[0]), name
    return inner[0], name


def launched(given: Sequence[NDArray[Any]], wanted: NDArray[Any], case: Case) -> Iterator[Checked]:
    """A launch whose output is compared, and its check."""
    module = PtxModule.read(case.file.read_text(), str(case.file))
    function = module.find(None)
    kernel = PtxKernel(module, function, tuple(parameter_names(function)))

    def call() -> PtxKernelCall:
        arrays = [*(array.copy() for array in given), np.zeros_like(wanted)]
        return PtxKernelCall(kernel, tuple((arrays * 2)[: len(function.parameters)]))

    made = call()
    made.launch(case.grid, case.block, shared=SHARED)
    have = made.arguments[-1]
    equal = np.isclose(have, wanted, rtol=1e-6, atol=0, equal_nan=True) if have.dtype.kind == "f" else have == wanted
    if not equal.all():
        yield f"{have.reshape(-1)[:4]}, not {wanted.reshape(-1)[:4]}", None
        return
    yield "", call().check(case.grid, case.block, shared=SHARED)
