# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.native_struct`: objects with typed fields that kernels change, as state that is updated in loops."""

import inspect
from dataclasses import MISSING, dataclass
from functools import partial
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.scalars.dtypes import DType


def native_struct(cls: type[Any] | None = None, /, *, zero_init: bool = True, packed: bool = False) -> Any:
    """Makes a class with annotated fields a structure of values: `@cute.native_struct`. Branches and loops carry its
    fields.

    `S(total=x)` converts numbers and values to the types of the fields; other fields are 0 unless `zero_init` is False,
    and must be given then. Its objects are arguments of kernels, too. A structure has no memory, so that `packed`
    changes nothing; `cute.struct` describes one in shared memory. Raises TilefoldError (E5002) for anything but a
    class.
    """
    if cls is None:
        return partial(native_struct, zero_init=zero_init, packed=packed)
    if not isinstance(cls, type):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"native_struct takes a class, not {type(cls).__name__}"
        raise TilefoldError(Code.BUILD_VALUE, message, "write @cute.native_struct before a class")
    types = {
        name: type for name, type in inspect.get_annotations(cls, eval_str=True).items() if isinstance(type, DType)
    }

    def convert(self: object) -> None:
        for name, type in types.items():
            setattr(self, name, type(getattr(self, name)))

    for name in types if zero_init else ():
        if getattr(cls, name, MISSING) is MISSING:
            setattr(cls, name, types[name].zero)
    cls.__post_init__ = convert
    return dataclass(kw_only=False, eq=False)(cls)
