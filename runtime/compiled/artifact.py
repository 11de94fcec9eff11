# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled kernel: code, and what a launch must know. The CUDA engine needs this and nothing of the compiler."""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ...base.errors import Code, TilefoldError
from ...base.target import STATIC_SHARED_BYTES, Target
from ...layout.algebra.core import Layout
from ...layout.algebra.inttuple import leaves
from ...layout.algebra.unknown import Unknown

if TYPE_CHECKING:
    from ...dialects.ptx import EntryOp


class Kind(Enum):
    """What a kernel's parameter is: a pointer to global memory, or a scalar."""

    POINTER = "pointer"
    I1 = "i1"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel. `align` is what a pointer's address must be a multiple of, in bytes; 1 for
    scalars. A tensor with `?` in its `layout` is passed as a pointer and an integer for each `?`."""

    name: str
    kind: Kind
    align: int = 1
    layout: Layout | None = None

    @property
    def unknowns(self) -> list[Unknown]:
        """The `?` of the layout in the order in which their values are passed, after the pointer."""
        if self.layout is None:
            return []
        return [each for each in (*leaves(self.layout.shape), *leaves(self.layout.stride)) if isinstance(each, Unknown)]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A kernel ready to be loaded.

    `code` is PTX text, which the driver assembles, or a cubin; it may hold other kernels as well. `block`
    is the size of the block in threads, `dynamic_shared` the bytes of shared memory that a launch must ask
    for.
    """

    kernel: str
    code: str | bytes
    target: Target
    parameters: tuple[Parameter, ...]
    block: tuple[int, int, int]
    static_shared: int = 0
    dynamic_shared: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(parameter.name for parameter in self.parameters)


def artifact_of(entry: "EntryOp", code: str | bytes, target: Target) -> Artifact:
    """The artifact of a kernel of stage `instr`, whose code the compiler made for `target`.

    TilefoldError for a parameter of a type that a launch cannot pass.
    """
    shared = entry.shared_bytes.value.data if entry.shared_bytes is not None else 0
    dynamic = shared > STATIC_SHARED_BYTES
    return Artifact(
        kernel=entry.sym_name.data,
        code=code,
        target=target,
        parameters=tuple(_parameter(each.name, str(each.type), each.align, each.layout) for each in entry.parameters()),
        block=entry.block,
        static_shared=0 if dynamic else shared,
        dynamic_shared=shared if dynamic else 0,
    )


def _parameter(name: str, type: str, align: int, layout: Layout | None) -> Parameter:
    if type == "!ptx.ptr<global>":
        return Parameter(name, Kind.POINTER, align, layout)
    try:
        return Parameter(name, Kind(type))
    except ValueError:
        raise TilefoldError(
            Code.RUN_ARGUMENT,
            f"a launch cannot pass parameter '{name}' of type {type}",
            "use pointers to global memory, i1 to i64, f16, bf16, f32 or f64",
        ) from None
