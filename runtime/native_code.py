# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions as machine code of this machine's processor, which LLVM makes while the program runs."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def compiled(text: str, symbols: Mapping[str, int] | None = None) -> Any:
    """The engine that owns the functions of a module of LLVM IR; `get_function_address` tells where one is. `symbols`
    are the addresses of functions that the module declares. The caller holds signals back (`base.held_signals`).
    """
    llvm = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in (symbols or {}).items():
        llvm.add_symbol(name, address)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True
    )
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
