# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The function that sums products as tensor cores do (`AlignedSum`), as machine code of this machine's processor.

A sum looks at each product three times. NumPy takes some 10 ns a product for that, twenty times as long as for the
multiplication of matrices. LLVM, which the compiler needs anyway, makes a function in some 100 ms, once in a process;
the function takes about 0.5 ns a product.
"""

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from ....base.held_signals import holding_signals
from ... import native_code

_ZERO = -4096
"""The exponent of zero: less than any other, also after that of another operand is added."""
_SPECIAL = 128
"""The exponent of infinities and NaN in f32."""
_SIZES = ("count", "m", "n", "k", "terms", "size_a", "size_b", "size_c")
_NUMBERS = ("fraction", "least", "least_a", "least_b", "least_c", "significand", "top_c", "nearest")
_POINTERS = ("table_a", "table_b", "table_c", "a", "b", "c", "d", "numbers", "exponents")


@cache
@holding_signals
def compiled(n: int | None, terms: int) -> Callable[..., None]:
    """The function for any N, or for `n` and `terms`, which lets LLVM unroll short loops.

    Its parameters are 64-bit integers: `count` multiplications of `m` x `k` by `k` x `n` matrices, in steps of `terms`
    products; the number of elements of a fragment of A, B and C. Then 32-bit ones: `fraction` and the least M of a
    step, the exponent of subnormal numbers of A, B and C, the bits of a result and its largest exponent, and whether
    it is rounded to nearest even instead of truncated. Then pointers: tables of i32 that tell where an element of
    (M, K), (K, N) and (M, N) is in a fragment; the fragments of A, B, C and D in f32; scratch memory of `scratch`.
    """
    engine = native_code.compiled(str(_Writer(n, terms).module))
    types = [ctypes.c_int64] * len(_SIZES) + [ctypes.c_int32] * len(_NUMBERS) + [ctypes.c_void_p] * len(_POINTERS)
    signature: Any = ctypes.CFUNCTYPE(None, *types)
    function = signature(engine.get_function_address("sums"))
    function.engine = engine  # which owns the code
    return function


def scratch(m: int, n: int, k: int) -> tuple[int, int]:
    """How many f64 and how many i32 of scratch memory the function takes."""
    return m * k + k * n + 3 * n, m * k + k * n + n


class _Writer:
    """Writes the function as LLVM IR, which llvmlite builds."""

    def __init__(self, n: int | None, terms: int) -> None:
        ir: Any = import_module("llvmlite.ir")
        self.i32, self.i64, self.single, self.double = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
        of_integer, of_single, of_double = [x.as_pointer() for x in (self.i32, self.single, self.double)]
        types = [self.i64] * len(_SIZES) + [self.i32] * len(_NUMBERS)
        types += [of_integer] * 3 + [of_single] * 4 + [of_double, of_integer]
        self.module = ir.Module("sums")
        self.function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), types), "sums")
        names = (*_SIZES, *_NUMBERS, *_POINTERS)
        self.given: dict[str, Any] = dict(zip(names, self.function.args, strict=True))
        for name in _POINTERS:
            self.given[name].add_attribute("noalias")
        if n is not None:
            self.given["n"], self.given["terms"] = self.i64(n), self.i64(terms)
        self.b = ir.IRBuilder(self.function.append_basic_block())
        self._write()
        self.b.ret_void()

    def _write(self) -> None:
        b, given = self.b, self.given
        m, n, k = given["m"], given["n"], given["k"]
        mk, kn = b.mul(m, k), b.mul(k, n)
        numbers, exponents = given["numbers"], given["exponents"]
        self.a, self.exponents_a = numbers, exponents
        self.b_, self.exponents_b = b.gep(numbers, [mk]), b.gep(exponents, [mk])
        self.totals, self.tops = b.gep(self.b_, [kn]), b.gep(self.exponents_b, [kn])
        self.scales, self.row = b.gep(self.totals, [n]), b.gep(self.totals, [b.mul(n, self.i64(2))])
        self.special = b.alloca(self.i32)
        self.sum = b.alloca(self.double)
        steps = b.sdiv(k, given["terms"])
        with self._loop(self.i64(0), given["count"]) as number:
            self.fragments = {x: b.gep(given[x], [b.mul(number, given[f"size_{x}"])]) for x in "abc"}
            d = b.gep(given["d"], [b.mul(number, given["size_c"])])
            b.store(self.i32(0), self.special)
            self._read_operand("a", mk, self.a, self.exponents_a)
            self._read_operand("b", kn, self.b_, self.exponents_b)
            with self._loop(self.i64(0), m) as i:
                first_c = b.mul(i, n)
                with self._loop(self.i64(0), n) as j:
                    single = self._load(self.fragments["c"], self._place("c", b.add(first_c, j)))
                    self._store(b.fpext(single, self.double), self.row, j)
                with self._loop(self.i64(0), steps) as step:
                    self._step(i, b.mul(step, given["terms"]))
                with self._loop(self.i64(0), n) as j:
                    single = b.fptrunc(self._load(self.row, j), self.single)
                    self._store(single, d, self._place("c", b.add(first_c, j)))

    def _read_operand(self, name: str, size: object, numbers: object, exponents: object) -> None:
        """Numbers in f64 and raw exponents of the elements of A or B."""
        with self._loop(self.i64(0), size) as i:
            single = self._load(self.fragments[name], self._place(name, i))
            number, exponent = self._number(self.b.fpext(single, self.double), self.given[f"least_{name}"])
            self._store(number, numbers, i)
            self._store(exponent, exponents, i)

    def _step(self, i: object, first: object) -> None:
        """Adds the products of A's row `i` and B's rows from `first` on to the row of results."""
        b, n, k, fraction = self.b, self.given["n"], self.given["k"], self.given["fraction"]
        first_a = b.add(b.mul(i, k), first)
        with self._loop(self.i64(0), n) as j:
            number, exponent = self._number(self._load(self.row, j), self.given["least_c"])
            self._store(number, self.totals, j)
            self._store(self._most(exponent, self.given["least"]), self.tops, j)
        with self._loop(self.i64(0), self.given["terms"]) as p:
            own, row_b = self._load(self.exponents_a, b.add(first_a, p)), b.mul(b.add(first, p), n)
            with self._loop(self.i64(0), n) as j:
                exponent = b.add(own, self._load(self.exponents_b, b.add(row_b, j)))
                self._store(self._most(exponent, self._load(self.tops, j)), self.tops, j)
        with self._loop(self.i64(0), n) as j:
            scale = self._power(b.sub(fraction, self._load(self.tops, j)))
            self._store(scale, self.scales, j)
            self._store(self._call("trunc", b.fmul(self._load(self.totals, j), scale)), self.totals, j)
        with self._loop(self.i64(0), self.given["terms"]) as p:
            own, row_b = self._load(self.a, b.add(first_a, p)), b.mul(b.add(first, p), n)
            with self._loop(self.i64(0), n) as j:
                product = b.fmul(own, self._load(self.b_, b.add(row_b, j)))
                addend = self._call("trunc", b.fmul(product, self._load(self.scales, j)))
                self._store(b.fadd(self._load(self.totals, j), addend), self.totals, j)
        with self._loop(self.i64(0), n) as j:
            down = self._power(b.sub(self._load(self.tops, j), fraction))
            self._store(self._rounded(b.fmul(self._load(self.totals, j), down)), self.totals, j)
        with b.if_then(b.icmp_signed("!=", b.load(self.special), self.i32(0)), likely=False):
            self._specials(first_a, first)
        with self._loop(self.i64(0), n) as j:
            self._store(self._load(self.totals, j), self.row, j)

    def _specials(self, first_a: object, first: object) -> None:
        """Replaces the results of a step that infinities or NaN among the operands decide."""
        b, n = self.b, self.given["n"]
        with self._loop(self.i64(0), n) as j:
            b.store(self._load(self.row, j), self.sum)
            with self._loop(self.i64(0), self.given["terms"]) as p:
                row_b = b.mul(b.add(first, p), n)
                at_a, at_b = self._place("a", b.add(first_a, p)), self._place("b", b.add(row_b, j))
                left, right = self._load(self.fragments["a"], at_a), self._load(self.fragments["b"], at_b)
                product = b.fmul(b.fpext(left, self.double), b.fpext(right, self.double))
                b.store(b.fadd(b.load(self.sum), product), self.sum)
            size = self._call("fabs", b.load(self.sum))
            with b.if_then(b.fcmp_unordered("==", size, self.double(float("inf")))):
                self._store(b.load(self.sum), self.totals, j)

    def _number(self, number: object, least: object) -> tuple[Any, Any]:
        """A number of f32 and its raw exponent; zero, and a note in `special`, for infinities and NaN."""
        b = self.b
        exponent = self._exponent(number)
        is_special = b.icmp_signed(">=", exponent, self.i32(_SPECIAL))
        b.store(b.or_(b.load(self.special), b.zext(is_special, self.i32)), self.special)
        is_zero = b.or_(is_special, b.fcmp_ordered("==", number, self.double(0.0)))
        exponent = b.select(is_zero, self.i32(_ZERO), self._most(exponent, least))
        return b.select(is_special, self.double(0.0), number), exponent

    def _rounded(self, total: object) -> Any:
        """A sum as a number of the result's type; zero is positive."""
        b, given = self.b, self.given
        last = b.sub(given["significand"], self.i32(1))
        grid = b.sub(self._most(self._exponent(total), given["least_c"]), last)
        scaled = b.fmul(total, self._power(b.neg(grid)))
        is_nearest = b.icmp_signed("!=", given["nearest"], self.i32(0))
        whole = b.select(is_nearest, self._call("rint", scaled), self._call("trunc", scaled))
        result = b.fmul(whole, self._power(grid))
        limit = self._power(b.add(given["top_c"], self.i32(1)))
        is_outside = b.fcmp_ordered(">=", self._call("fabs", result), limit)
        infinity = b.select(
            b.fcmp_ordered("<", result, self.double(0.0)), self.double(float("-inf")), self.double(float("inf"))
        )
        return b.fadd(b.select(is_outside, infinity, result), self.double(0.0))

    def _exponent(self, number: object) -> Any:
        """The exponent of a number in f64, as it is encoded there."""
        b = self.b
        encoded = b.and_(b.lshr(b.bitcast(number, self.i64), self.i64(52)), self.i64(2047))
        return b.sub(b.trunc(encoded, self.i32), self.i32(1023))

    def _power(self, exponent: object) -> Any:
        """2**e in f64."""
        biased = self.b.zext(self.b.add(exponent, self.i32(1023)), self.i64)
        return self.b.bitcast(self.b.shl(biased, self.i64(52)), self.double)

    def _place(self, name: str, index: object) -> Any:
        """Where an element of a matrix is in its fragment."""
        return self.b.zext(self._load(self.given[f"table_{name}"], index), self.i64)

    def _call(self, name: str, x: object) -> Any:
        return self.b.call(self.module.declare_intrinsic(f"llvm.{name}", [self.double]), [x])

    def _most(self, left: object, right: object) -> Any:
        return self.b.select(self.b.icmp_signed(">", left, right), left, right)

    def _load(self, pointer: object, index: object) -> Any:
        return self.b.load(self.b.gep(pointer, [index]))

    def _store(self, value: object, pointer: object, index: object) -> None:
        self.b.store(value, self.b.gep(pointer, [index]))

    @contextmanager
    def _loop(self, first: object, end: object) -> Generator[Any]:
        """A loop whose body is written in the context, with an index from `first` to `end`, which is not reached."""
        b = self.b
        before = b.block
        head, body, after = [self.function.append_basic_block() for _ in range(3)]
        b.branch(head)
        b.position_at_end(head)
        index = b.phi(self.i64)
        index.add_incoming(first, before)
        b.cbranch(b.icmp_signed("<", index, end), body, after)
        b.position_at_end(body)
        yield index
        index.add_incoming(b.add(index, self.i64(1)), b.block)
        b.branch(head)
        b.position_at_end(after)
