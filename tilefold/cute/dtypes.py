# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of values under names that are types to a type checker as well.

`cute.Float32` is an object for the type of elements and values; as the annotation of a parameter it says that the
argument is converted to it. A type checker takes such a parameter for a `cute.Float`.
"""

from typing import TYPE_CHECKING, Any

from tilefold.builder.scalars.dtypes import DTYPES

if TYPE_CHECKING:
    from tilefold.builder.scalars.dtypes import DType
    from tilefold.builder.scalars.values import Bool, Float, Int

    class _ScalarType(type, DType):
        def __call__(cls, x: object) -> Any: ...

    class BFloat16(Float, metaclass=_ScalarType): ...

    class Float8E4M3FN(Float, metaclass=_ScalarType): ...

    class Float8E5M2(Float, metaclass=_ScalarType): ...

    class Float16(Float, metaclass=_ScalarType): ...

    class Float32(Float, metaclass=_ScalarType): ...

    class Float64(Float, metaclass=_ScalarType): ...

    class TFloat32(Float, metaclass=_ScalarType): ...

    class Int8(Int, metaclass=_ScalarType): ...

    class Int16(Int, metaclass=_ScalarType): ...

    class Int32(Int, metaclass=_ScalarType): ...

    class Int64(Int, metaclass=_ScalarType): ...

    class Uint8(Int, metaclass=_ScalarType): ...

    class Uint16(Int, metaclass=_ScalarType): ...

    class Uint32(Int, metaclass=_ScalarType): ...

    class Uint64(Int, metaclass=_ScalarType): ...

    class Boolean(Bool, metaclass=_ScalarType): ...


__all__ = [
    "BFloat16", "Boolean", "Float16", "Float32", "Float64", "Float8E4M3FN", "Float8E5M2", "Int16", "Int32", "Int64",
    "Int8", "TFloat32", "Uint16", "Uint32", "Uint64", "Uint8",
]  # fmt: skip

if not TYPE_CHECKING:
    globals().update({name: DTYPES[name] for name in __all__})
