# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch tensors for CuTe programs, `cutlass.torch`: types, random matrices, and copies as arguments.

torch is imported when a function is called.
"""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilefold.base.element_types import BY_NAME
from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.scalars.dtypes import DType
from tilefold.cute.host.streams import current_stream, default_stream, torch_module
from tilefold.cute.runtime import RuntimeTensor, from_dlpack
from tilefold.cute.several_devices import memory_at
from tilefold.cute.testing import convert

__all__ = [
    "GaussianInitConfig", "RandomInitConfig", "ScalarInitConfig", "TensorInitType", "as_tensor",
    "convert_cute_tensor", "create_and_permute_torch_tensor", "current_stream", "cute_tensor_like",
    "default_stream", "dtype", "get_leading_dim", "matrix",
]  # fmt: skip


class TensorInitType(Enum):
    """The numbers of a new tensor."""

    SKIP = "skip"
    SCALAR = "scalar"
    RANDOM = "random"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True)
class RandomInitConfig:
    """Integers from `min_val` to `max_val`, exclusive."""

    min_val: int = -2
    max_val: int = 2


@dataclass(frozen=True)
class ScalarInitConfig:
    """One number everywhere."""

    value: float = 0.0


@dataclass(frozen=True)
class GaussianInitConfig:
    """Normally distributed numbers, multiplied by `scale`."""

    mean: float = 0.0
    std: float = 1.0
    scale: float = 1.0


def dtype(type: DType) -> Any:
    """torch's type for one of tilefold. TilefoldError (E0213) for elements that torch has not."""
    torch = torch_module()

    element = BY_NAME.get("Float32" if type.name == "TFloat32" else type.name)
    dtype = None if element is None else getattr(torch, element.library, None)
    if dtype is None:
        raise TilefoldError(Code.BAD_ARGUMENT, f"torch has no elements of type {type}", "use torch.uint8 as storage")
    return dtype


def as_tensor(pointer: Any, shape: Any, type: Any) -> Any:
    """A tensor of a shape and a type of torch in the memory of several simulated devices that begins at an address.
    TilefoldError (E0213) for another address: it says nothing of who owns it.
    """
    count = math.prod(shape) * type.itemsize
    return torch_module().from_numpy(memory_at(pointer)[:count]).view(type).view(tuple(shape))


def create_and_permute_torch_tensor(
    shape: Any,
    dtype: object,
    permute_order: object = None,
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: object = None,
    device: Any = None,
) -> Any:
    """A new torch tensor with its modes in another order: the compact tensor of `shape`, filled as `init_type` and
    its configuration say, then permuted. TilefoldError (E0213) for a configuration of another kind.
    """
    torch = torch_module()

    made: Any = torch.empty(*shape, dtype=torch.float32, device=device or "cpu")
    kinds = {
        TensorInitType.RANDOM: RandomInitConfig, TensorInitType.SCALAR: ScalarInitConfig,
        TensorInitType.GAUSSIAN: GaussianInitConfig,
    }  # fmt: skip
    kind = kinds.get(init_type)
    config = init_config if init_config is not None or kind is None else kind()
    if kind is not None and not isinstance(config, kind):
        raise TilefoldError(Code.BAD_ARGUMENT, f"{init_type} takes a {kind.__name__}, not {config!r}")
    if isinstance(config, RandomInitConfig):
        made.random_(config.min_val, config.max_val)
    elif isinstance(config, ScalarInitConfig):
        made.fill_(config.value)
    elif isinstance(config, GaussianInitConfig):
        made.normal_(config.mean, config.std).mul_(config.scale)
    elif init_type is not TensorInitType.SKIP:
        raise TilefoldError(Code.BAD_ARGUMENT, f"unknown kind of numbers: {init_type!r}")
    made = made.to(dtype)
    return made if permute_order is None else made.permute(permute_order)


def matrix(
    l: int,  # noqa: E741
    mode0: int,
    mode1: int,
    is_mode0_major: bool,
    cutlass_dtype: DType,
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: object = None,
    device: object = None,
) -> Any:
    """A batch of matrices, (mode0,mode1,l), as a torch tensor whose fast mode is mode0, or else mode1. Elements that
    torch cannot compute with are float32 there, with numbers that they can hold.
    """
    torch = torch_module()

    shape, order = ((l, mode1, mode0), (2, 1, 0)) if is_mode0_major else ((l, mode0, mode1), (1, 2, 0))
    is_narrow = cutlass_dtype.bits < 8 or (cutlass_dtype.bits < 16 and not cutlass_dtype.is_integer)
    wanted = torch.float32 if is_narrow or cutlass_dtype.kind == "packed" else dtype(cutlass_dtype)
    if init_config is None and init_type is TensorInitType.RANDOM:
        unsigned = cutlass_dtype.unsigned
        init_config = RandomInitConfig(0 if unsigned else -2, 4 if unsigned else 2)
    return create_and_permute_torch_tensor(shape, wanted, order, init_type, init_config, device)


def cute_tensor_like(
    data_ref: Any, cutlass_dtype: DType, is_dynamic_layout: bool, assumed_align: int | None = None
) -> tuple[RuntimeTensor, Any]:
    """A copy of a torch tensor on the GPU, in elements of a type: as an argument, and as a tensor of torch, of bytes
    where torch cannot compute with the elements.
    """
    torch = torch_module()

    is_narrow = cutlass_dtype.bits < 8 or (cutlass_dtype.bits < 16 and not cutlass_dtype.is_integer)
    storage = torch.uint8 if is_narrow else dtype(cutlass_dtype)
    held: Any = torch.empty_strided(data_ref.shape, data_ref.stride(), dtype=storage, device="cuda")
    if not is_narrow:
        held.copy_(data_ref.to(storage))
    made = from_dlpack(held, assumed_align=assumed_align)
    made.element_type = cutlass_dtype
    if is_dynamic_layout:
        made.mark_layout_dynamic(get_leading_dim(data_ref))
    if is_narrow:
        convert_cute_tensor(data_ref.to(torch.float32).to(held.device), made, cutlass_dtype, is_dynamic_layout)
    return made, held


def convert_cute_tensor(
    f32_torch_tensor: Any, cute_tensor: RuntimeTensor, dtype: DType, is_dynamic_layout: bool = True
) -> RuntimeTensor:
    """Writes the numbers of a float32 torch tensor to an argument, rounded to its elements, and returns it."""
    source = from_dlpack(f32_torch_tensor.to("cuda"))
    if is_dynamic_layout:
        source.mark_layout_dynamic(get_leading_dim(f32_torch_tensor))
    convert(source, cute_tensor)
    return cute_tensor


def get_leading_dim(tensor: Any) -> int | None:
    """The mode of a torch tensor whose stride is 1, the one of more than one element if there are several."""
    ones = [mode for mode, step in enumerate(tensor.stride()) if step == 1]
    return next((mode for mode in ones if tensor.shape[mode] != 1), ones[0] if ones else None)
