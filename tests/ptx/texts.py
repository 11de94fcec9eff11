# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in PTX, as compilers write them."""

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def kernel(body: str, parameters: str = ".param .u64 A", name: str = "k", registers: str = "") -> str:
    """A module of one kernel; registers are predicates p, b16 h, b32 r, b64 d, f32 f and f64 g, 40 of each."""
    declared = ".reg .pred %p<40>; .reg .b16 %h<40>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<40>;"
    return f"{HEAD}.visible .entry {name}({parameters})\n{{\n{declared} .reg .f64 %g<40>; {registers}\n{body}\n}}\n"


STORE_LANE = """
    ld.param.u64 %d1, [A];
    cvta.to.global.u64 %d2, %d1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d2, %d3;
"""
"""%d4 is the address of the thread's i32 in A, and %r1 the thread."""
