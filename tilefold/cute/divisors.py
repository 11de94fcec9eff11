# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Divisors of many numbers."""

from typing import Any

from tilefold.builder.scalars.dtypes import Int32
from tilefold.builder.scalars.values import Value
from tilefold.builder.tracing.attributes import Stateful


class FastDivmodDivisor(Stateful):
    """A divisor of 32 bits: `x // d`, `x % d` and `divmod(x, d)` for integers `x`, of Python or of the kernel.

    Quotient and remainder are those of `x // d.divisor` and `x % d.divisor`, and take as long: tilefold prepares
    nothing for them.
    """

    def __init__(self, divisor: object) -> None:
        """Raises TilefoldError (E5002) for anything but an integer, E5001 outside functions of the program."""
        self.divisor: Value = Int32(divisor)

    def __extract_mlir_values__(self) -> list[Value]:
        return [self.divisor]

    def __new_from_mlir_values__(self, values: list[Value]) -> "FastDivmodDivisor":
        return FastDivmodDivisor(values[0])

    def __rfloordiv__(self, x: Any) -> Any:
        return x // self.divisor

    def __rmod__(self, x: Any) -> Any:
        return x % self.divisor

    def __rdivmod__(self, x: Any) -> tuple[Any, Any]:
        return x // self.divisor, x % self.divisor


FastDivmodDivisorV2 = FastDivmodDivisor


def fast_divmod_create_divisor(divisor: object, **unused: object) -> FastDivmodDivisor:
    """The divisor of many divisions by one number."""
    return FastDivmodDivisor(divisor)


fast_divmod_create_divisor_v2 = fast_divmod_create_divisor
