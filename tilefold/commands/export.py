# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold export`: a kernel for programs in C and C++."""

import argparse
from pathlib import Path

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import DEFAULT_ARCH
from tilefold.commands.options import add_cache, add_file, add_target, add_time, read_source

_EPILOG = """\
writes KERNEL.cubin (or KERNEL.ptx), KERNEL.h and KERNEL_example.c. The header has static functions: KERNEL_load (from
the file) or KERNEL_load_data (from memory), KERNEL_launch and KERNEL_unload, which need only the CUDA driver API. The
example runs the kernel on files of raw elements.

examples:
  tilefold export kernel.cute --kernel gemm --target sm_90a -o out
  tilefold export kernel.cute --ptx -o out     PTX, without an assembler
  cd out && nvcc -o gemm_example gemm_example.c -lcuda && ./gemm_example gemm.cubin 8 8 1 A.bin B.bin C.bin
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `export`."""
    parser.epilog = _EPILOG
    add_file(parser)
    add_target(parser, DEFAULT_ARCH)
    parser.add_argument("--kernel", metavar="NAME", help="the kernel, if the file has several")
    parser.add_argument("-o", "--output", metavar="DIR", default=".", help="the folder to write to (default: this one)")
    parser.add_argument("--ptx", action="store_true", help="write PTX, which newer GPUs run too, not machine code")
    add_cache(parser)
    add_time(parser)


def execute(args: argparse.Namespace) -> int:
    """Compiles, writes the files and names them."""
    from tilefold.base.target import Target
    from tilefold.driver.lowering import TO_INDEX, load
    from tilefold.tools.export.exporting import export

    program = load(read_source(args), args.target, cached=args.cache)
    with program.explaining():
        if program.gpu_kernels:
            program = program.device_program(TO_INDEX)
        target = Target(args.target)
        artifacts = program.ptx_artifacts(target) if args.ptx else program.machine_build(target).artifacts
    by_name = {artifact.kernel: artifact for artifact in artifacts}
    name = args.kernel.rpartition("::")[2] if args.kernel else next(iter(by_name)) if len(by_name) == 1 else ""
    if name not in by_name:
        several = "the file has several kernels" if by_name else "the file has no kernel"
        problem = f"there is no kernel '{name[:80]}'" if name else several
        raise TilefoldError(Code.RUN_KERNEL, problem, f"--kernel takes one of: {', '.join(by_name) or 'none'}")
    files = export(by_name[name], Path(args.output), program.tensors(name))
    print(files.code, files.header, files.example, sep="\n")
    return 0
