# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads constant expressions (PTX ISA, Constants, Integer Constant Expressions)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from .syntax import Float, Integer
from .tokens import Tokens

MAX_DEPTH = 64
"""How deep scopes, lists of operands and expressions may nest."""
_WORD = (1 << 64) - 1
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
"""Operators, from those that bind least on."""
_PRODUCTS = len(_LEVELS) - 1


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATIONS: Mapping[str, Callable[[int, int], int]] = MappingProxyType({
    "||": lambda a, b: int(bool(a) or bool(b)), "&&": lambda a, b: int(bool(a) and bool(b)),
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "&": lambda a, b: a & b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "<<": lambda a, b: a << (b & 63), ">>": lambda a, b: a >> (b & 63),
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _quotient,
    "%": lambda a, b: (a & _WORD) % (b & _WORD),  # of unsigned integers, as in ptxas
})  # fmt: skip


class ConstantParser(Tokens):
    """A parser of constant expressions."""

    def constant(self, sign: int = 1) -> Integer | Float:
        """A constant: a number, or an expression of integers, behind a sign that has been read."""
        return self._choice(0, sign)

    def product(self) -> int:
        """Integers that are multiplied, as they are added to an address."""
        value = self._binary(_PRODUCTS, 0)
        if isinstance(value, Float):
            self.fail("expected an integer, got a float")
        return value.value

    def _choice(self, depth: int, sign: int = 1) -> Integer | Float:
        condition = self._binary(0, depth, sign)
        if isinstance(condition, Float) or not self.accept("?"):
            return condition
        first = self._choice(depth + 1)
        self.expect(":")
        second = self._choice(depth + 1)
        return first if condition.value else second

    def _binary(self, level: int, depth: int, sign: int = 1) -> Integer | Float:
        """Operators of a level and those that bind more."""
        if level == len(_LEVELS):
            return self._unary(depth, sign)
        value = self._binary(level + 1, depth, sign)
        while isinstance(value, Integer) and self.token.kind != "string" and self.token.text in _LEVELS[level]:
            how = self.advance().text
            other = self._binary(level + 1, depth)
            if isinstance(other, Float):
                self.fail("expected an integer, got a float")
            if how in "/%" and not other.value:
                self.fail("the expression divides by 0")
            made = int(_OPERATIONS[how](value.value, other.value))
            made = made if -(1 << 63) <= made <= _WORD else (made + (1 << 63)) % (1 << 64) - (1 << 63)
            value = Integer(made)
        return value

    def _unary(self, depth: int, sign: int) -> Integer | Float:
        if depth > MAX_DEPTH:
            self.fail(f"expressions nest more than {MAX_DEPTH} deep")
        while self.token.text in ("-", "+"):
            sign *= -1 if self.advance().text == "-" else 1
        if self.token.text in ("~", "!") and self.token.kind == "mark":
            how = self.advance().text
            value = self._unary(depth + 1, 1)
            if isinstance(value, Float):
                self.fail("expected an integer, got a float")
            return Integer(sign * (~value.value if how == "~" else int(not value.value)))
        if self.accept("("):
            value = self._choice(depth + 1)
            self.expect(")")
            return Integer(sign * value.value) if isinstance(value, Integer) else value
        return self.number(sign)
