# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What host programs may reach: three C functions, constant strings, and the environment variables that are allowed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.runtime.cute_ir.c_functions import (
    NULL,
    Argument,
    CallError,
    HostPointer,
    PointerError,
    World,
    atoi,
    getenv,
    printf,
)

from tests.host.harness import C, main_of, refused, run


def _string(text: str) -> Argument:
    return Argument(HostPointer(text.encode() + b"\0", 0, "text"))


def _world(written: list[str], **environment: str | None) -> World:
    return World(environment, written.append)


@given(st.integers(-(2**31), 2**31 - 1), st.sampled_from(["", " ", "\t\n"]), st.sampled_from(["", "x", " 7"]))
def test_atoi_reads_the_number_that_a_string_begins_with(number: int, before: str, after: str) -> None:
    assert atoi(_world([]), [_string(f"{before}{number}{after}")]) == number


@pytest.mark.parametrize("text", ["", "x1", "-", "+ 1", "--1"])
def test_atoi_of_no_number_is_zero(text: str) -> None:
    assert atoi(_world([]), [_string(text)]) == 0


@pytest.mark.parametrize("text", ["2147483648", "-2147483649", "9" * 19])
def test_atoi_refuses_what_c_leaves_undefined(text: str) -> None:
    with pytest.raises(CallError, match="exceeds 32 bits"):
        atoi(_world([]), [_string(text)])


def test_printf_writes_numbers_and_strings() -> None:
    written: list[str] = []
    values = [Argument(-1, 32), Argument(-1, 32), Argument(2**40, 64), Argument(1.5, 64, True), _string("s")]
    assert printf(_world(written), [_string("%d %x %lld %g %s%%\n"), *values]) == len(
        "-1 ffffffff 1099511627776 1.5 s%\n"
    )
    assert written == ["-1 ffffffff 1099511627776 1.5 s%\n"]


@pytest.mark.parametrize(
    ("format", "values", "words"),
    [
        ("%d", [], "1 conversions for 0 values"),
        ("", [Argument(1, 32)], "0 conversions for 1 values"),
        ("%d", [Argument(1, 64)], "%d does not fit value 0"),
        ("%lld", [Argument(1, 32)], "%lld does not fit value 0"),
        ("%s", [Argument(1, 32)], "%s does not fit value 0"),
        ("%d", [_string("a")], "%d does not fit value 0"),
        ("%f", [Argument(1, 32)], "%f does not fit value 0"),
        ("%n", [Argument(1, 32)], "unknown conversion '%n'"),
        ("%9999999d", [Argument(1, 32)], "unknown conversion"),
        ("%*d", [Argument(1, 32), Argument(1, 32)], "unknown conversion"),
    ],
)
def test_printf_refuses_values_that_do_not_fit(format: str, values: list[Argument], words: str) -> None:
    with pytest.raises(CallError, match=words.replace("*", r"\*")):
        printf(_world([]), [_string(format), *values])


def test_getenv_knows_the_allowed_variables_only() -> None:
    world = _world([], SIZE="12", GONE=None)
    assert getenv(world, [_string("SIZE")]).string() == b"12"
    assert getenv(world, [_string("GONE")]) is NULL
    with pytest.raises(CallError, match=r"'HOME', which is not allowed \(allowed: GONE, SIZE\)"):
        getenv(world, [_string("HOME")])


def test_strings_end_where_their_constant_ends() -> None:
    text = HostPointer(b"ab\0cd", 0, "@t")
    assert text.moved(1).string() == b"b"
    for distance in (-1, 3, 5, 100):
        with pytest.raises(PointerError):
            text.moved(distance).string()


BASE = C + main_of("%b = func.call @base() : () -> i32\n%s = cute.make_shape(%b) : (i32) -> !cute.shape<\"(?,2)\">\n"
                   "cute.print(%s) : !cute.shape<\"(?,2)\">")  # fmt: skip


def test_programs_read_what_is_allowed() -> None:
    assert run(BASE, environment={"BASE": "41"}) == "(41,2)\n"
    error = refused(BASE, "E3402")
    assert "'BASE'" in error.message
    assert "--allow-env BASE=VALUE" in error.hint
    assert error.place is not None
    assert error.place.line == 7
    assert "atoi reads a null pointer" in refused(BASE, "E3403", environment={"BASE": None}).message


def test_programs_index_constants() -> None:
    text = C + main_of(
        "%0 = llvm.mlir.addressof @text : !llvm.ptr\n%i = arith.constant 1 : i64\n"
        "%1 = llvm.getelementptr %0[%i, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<4 x i8>\n"
        "%2 = llvm.call @atoi(%1) : (!llvm.ptr) -> i32\n%s = cute.make_shape(%2) : (i32) -> !cute.shape<\"?\">\n"
        "cute.print(%s) : !cute.shape<\"?\">"
    )  # fmt: skip
    assert run('llvm.mlir.global internal constant @text("....  56\\00") {addr_space = 0 : i32}\n' + text) == "56\n"
    short = 'llvm.mlir.global internal constant @text("....\\00") {addr_space = 0 : i32}\n' + text
    assert "no string 6 bytes into @text of 5 bytes" in refused(short, "E3403").message


@pytest.mark.parametrize("name", ["system", "fopen", "malloc", "exit", "mgpuLaunchKernel"])
def test_no_other_function_can_be_called(name: str) -> None:
    text = f"llvm.func @{name}(!llvm.ptr) -> i32\n" + C + main_of(
        f"%0 = llvm.mlir.addressof @name : !llvm.ptr\n%1 = llvm.call @{name}(%0) : (!llvm.ptr) -> i32"
    )  # fmt: skip
    error = refused(text, "E3401")
    assert f"may not call @{name}" in error.message
    assert "printf, atoi, getenv" in error.hint


def test_calls_through_pointers_and_of_own_llvm_functions_are_refused() -> None:
    body = "%0 = llvm.mlir.addressof @name : !llvm.ptr\n%1 = llvm.call %0(%0) : !llvm.ptr, (!llvm.ptr) -> i32"
    assert "through a pointer" in refused(C + main_of(body), "E3401").message
    own = "llvm.func @atoi(%p: !llvm.ptr) -> i32 {\n%c = llvm.mlir.constant(1 : i32) : i32\nllvm.return %c : i32\n}\n"
    body = "%z = llvm.mlir.zero : !llvm.ptr\n%1 = llvm.call @atoi(%z) : (!llvm.ptr) -> i32"
    assert "@atoi" in refused(own + main_of(body), "E3401").message
