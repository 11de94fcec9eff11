# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that call themselves, memory on the stack, and the heap."""

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError

import tilefold
from tests.ptx.texts import HEAD, STORE_LANE, kernel

REGISTERS = ".reg .b32 %r<10>; .reg .b64 %d<10>; .reg .pred %p<4>;"
FIBONACCI = f""".func (.param .b32 out) fib(.param .b32 n) {{ {REGISTERS}
    ld.param.b32 %r1, [n]; setp.lt.s32 %p1, %r1, 2; @%p1 bra END;
    {{ .param .b32 given; .param .b32 back; sub.s32 %r2, %r1, 1; st.param.b32 [given], %r2;
      call.uni (back), fib, (given); ld.param.b32 %r3, [back]; }}
    {{ .param .b32 given; .param .b32 back; sub.s32 %r2, %r1, 2; st.param.b32 [given], %r2;
      call.uni (back), fib, (given); ld.param.b32 %r1, [back]; }}
    add.s32 %r1, %r1, %r3;
    END: st.param.b32 [out], %r1; ret; }}
"""
PARITY = f""".func (.reg .b32 out) even(.reg .b32 n);
.func (.reg .b32 out) odd(.reg .b32 n) {{ {REGISTERS} mov.b32 out, 0;
    setp.eq.s32 %p1, n, 0; sub.s32 %r2, n, 1; @!%p1 call (out), even, (%r2); ret; }}
.func (.reg .b32 out) even(.reg .b32 n) {{ {REGISTERS} mov.b32 out, 1; mov.b64 %d1, odd;
    setp.eq.s32 %p1, n, 0; sub.s32 %r2, n, 1; P: .callprototype (.reg .b32 _) _ (.reg .b32 _);
    @!%p1 call (out), %d1, (%r2), P; ret; }}
"""
"""Two functions that call each other, one of them by its address."""
REVERSED = f""".func reversed(.param .b64 to, .param .b32 n) {{ {REGISTERS} .local .align 4 .b8 own[16];
    ld.param.b64 %d1, [to]; ld.param.b32 %r1, [n]; mov.b64 %d2, own; st.local.b32 [%d2+4], %r1;
    setp.eq.s32 %p1, %r1, 0; setp.gt.s32 %p2, %r1, 2; @%p1 bra END;
    {{ .param .b64 a; .param .b32 b; sub.s32 %r2, %r1, 1; st.param.b64 [a], %d1; st.param.b32 [b], %r2;
      call.uni reversed, (a, b); }}
    END: ld.global.b32 %r3, [%d1]; mul.lo.s32 %r3, %r3, 10; ld.local.b32 %r4, [own+4]; add.s32 %r3, %r3, %r4;
    @%p2 add.s32 %r3, %r3, 1; st.global.b32 [%d1], %r3; ret; }}
"""


def run(body: str, functions: str = "", threads: int = 32) -> list[int]:
    A = np.zeros(threads, np.int32)
    text = kernel(f"{STORE_LANE}{body}").replace(HEAD, f"{HEAD}{functions}\n")
    tilefold.load_ptx(text)["k"](A).launch(1, threads)
    return A.tolist()


def test_a_function_calls_itself_twice() -> None:
    body = """and.b32 %r2, %r1, 7; { .param .b32 given; .param .b32 back; st.param.b32 [given], %r2;
        call.uni (back), fib, (given); ld.param.b32 %r3, [back]; } st.global.b32 [%d4], %r3; ret;"""
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13]
    assert run(body, FIBONACCI) == fibonacci * 4


def test_functions_call_each_other() -> None:
    body = "call (%r3), even, (%r1); st.global.b32 [%d4], %r3; ret;"
    assert run(body, PARITY) == [1, 0] * 16


def test_each_call_has_variables_of_its_own() -> None:
    body = """and.b32 %r2, %r1, 3; { .param .b64 a; .param .b32 b; st.param.b64 [a], %d4; st.param.b32 [b], %r2;
        call.uni reversed, (a, b); } ret;"""
    assert run(body, REVERSED) == [0, 1, 12, 124] * 8


def test_recursion_without_end_leaves_the_stack() -> None:
    body = "call (%r3), even, (-1); st.global.b32 [%d4], %r3; ret;"
    with pytest.raises(TilefoldError) as caught:
        run(body, PARITY)
    assert caught.value.code is Code.SIM_OUT_OF_BOUNDS


def test_memory_on_the_stack() -> None:
    """Each thread fills memory of its own size, and gives it back."""
    body = """mov.u32 %r9, 0; mov.u32 %r8, 0; add.u32 %r2, %r1, 1; mul.wide.u32 %d5, %r2, 4;
        MORE: stacksave.u64 %d6; alloca.u64 %d7, %d5, 32; mov.u32 %r3, 0;
        FILL: mul.wide.u32 %d8, %r3, 4; add.u64 %d8, %d7, %d8; st.local.u32 [%d8], %r3; add.u32 %r3, %r3, 1;
        setp.le.u32 %p1, %r3, %r1; @%p1 bra FILL;
        cvta.local.u64 %d9, %d7; mul.wide.u32 %d8, %r1, 4; add.u64 %d9, %d9, %d8; ld.u32 %r4, [%d9];
        add.u32 %r9, %r9, %r4; stackrestore.u64 %d6; add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 200; @%p1 bra MORE;
        st.global.u32 [%d4], %r9; ret;"""
    assert run(body) == [200 * t for t in range(32)]


MALLOC = ".extern .func (.param .b64 r) malloc (.param .b64 n); .extern .func free (.param .b64 a);"
ALLOCATE = """{ .param .b64 size; .param .b64 back; st.param.b64 [size], 8; call.uni (back), malloc, (size);
    ld.param.b64 %d5, [back]; } st.u32 [%d5], %r1; ld.u32 %r2, [%d5]; st.global.u32 [%d4], %r2;"""
FREE = "{ .param .b64 place; st.param.b64 [place], %d5; call.uni free, (place); }"


def test_memory_of_the_heap() -> None:
    assert run(f"{ALLOCATE} {FREE} {ALLOCATE} ret;", MALLOC, 64) == list(range(64))


@pytest.mark.parametrize(("wrong", "code", "said"), [
    (f"{ALLOCATE} ld.u32 %r3, [%d5+8];", Code.SIM_OUT_OF_BOUNDS, "the gap behind an allocation of 8 bytes by malloc"),
    (f"{ALLOCATE} ld.u32 %r3, [%d5+4]; st.global.u32 [%d4], %r3;", Code.SIM_UNINITIALISED, "depends on undefined"),
    (f"{ALLOCATE} {FREE} ld.u32 %r3, [%d5];", Code.SIM_OUT_OF_BOUNDS, "an allocation by malloc"),
    (f"{ALLOCATE} {FREE} {FREE}", Code.SIM_OUT_OF_BOUNDS, "frees memory that is already freed"),
    (f"{ALLOCATE} add.u64 %d5, %d5, 4; {FREE}", Code.SIM_OUT_OF_BOUNDS, "frees an address that malloc has not"),
    (f"mov.u64 %d5, %d4; {FREE}", Code.SIM_OUT_OF_BOUNDS, "frees an address that malloc has not"),
    (ALLOCATE.replace("], 8;", "], 100000000;"), Code.SIM_OUT_OF_BOUNDS, "writes 4 bytes"),
])  # fmt: skip
def test_wrong_uses_of_the_heap(wrong: str, code: Code, said: str) -> None:
    with pytest.raises(TilefoldError, match=said) as caught:
        run(f"{wrong} ret;", MALLOC)
    assert caught.value.code is code
