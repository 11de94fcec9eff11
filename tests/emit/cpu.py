# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs emitted LLVM IR on the CPU: what an operation means, not only how it is spelt.

The kernel's text is retargeted: state spaces become the one address space of the machine, and the kernel an
ordinary function, called for one thread of a block whose size is 1.
"""

import ctypes
import re
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray


def run_on_cpu(llvm_ir: str, arrays: list[NDArray[Any]]) -> None:
    """Executes `@k` once; its parameters are pointers to the arrays."""
    llvm: Any = import_module("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = llvm.get_host_cpu_features().flatten()  # f16 and rounding are instructions then, not calls
    machine = llvm.Target.from_default_triple().create_target_machine(llvm.get_host_cpu_name(), features)
    text = re.sub(r"^target .*\n", "", llvm_ir, flags=re.MULTILINE)
    text = re.sub(r"call (i\d+) @llvm\.nvvm\.[fd]2(?:i|ll)\.rz\(([^)]*)\)", r"fptosi \2 to \1", text)
    text = re.sub(r"call (i\d+) @llvm\.nvvm\.[fd]2u(?:i|ll)\.rz\(([^)]*)\)", r"fptoui \2 to \1", text)
    text = text.replace("ptx_kernel ", "").replace(" addrspace(1)", "")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text, llvm.create_context()), machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(None, *([ctypes.c_void_p] * len(arrays)))(engine.get_function_address("k"))
    function(*(array.ctypes.data for array in arrays))


def apply(op_text: str, types: list[str], result: str, operands: list[Any]) -> Any:
    """The value of an operation `op_text`, written with {0}, {1}, ... for its operands, of NumPy scalars."""
    from tests.emit.harness import kernel, llvm_of

    args = ", ".join(f"%a{i}: !ptx.ptr<global> align 1" for i in range(len(types) + 1))
    loads = [f"%x{i} = ptx.ld %a{i} align 8 : !ptx.ptr<global> -> {type}" for i, type in enumerate(types)]
    names = [f"%x{i}" for i in range(len(types))]
    store = f"ptx.st %y, %a{len(types)} align 8 : {result}, !ptx.ptr<global>"
    body = "\n".join((*loads, f"%y = {op_text.format(*names)}", store))
    kinds = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f16": np.float16}
    kinds |= {"f32": np.float32, "f64": np.float64}
    arrays = [np.array([value], kinds[type]) for value, type in zip(operands, types, strict=True)]
    out = np.zeros(1, kinds[result])
    run_on_cpu(llvm_of(kernel(body, args, threads="1")), [*arrays, out])
    return out[0]
