# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program for several GPUs, each of which a process of its own would run, on simulated devices of this process.

Every device runs the program in a thread. It finds its rank where torchrun puts it, in the environment; the functions
of `torch.distributed` here exchange the host's tensors; symmetric memory of torch and of nvshmem is that of
`tilefold.cute.several_devices`.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tilefold.cute.host.streams import torch_module
from tilefold.cute.several_devices import meet, multicast, peers, run_on_devices, symmetric, world

from ..replacements import Replacements
from .host_memory import TorchTensor


def run_ranks(count: int, program: Callable[[], None]) -> None:
    """Runs a program once for each of some devices. Raises the first error of one of them."""

    def run(_: int) -> None:
        program()

    with Replacements() as replaced:
        replaced.set(os.environ, __class__=_environment(type(os.environ)))
        if find_spec("torch") is not None:
            torch = torch_module()
            replaced.set(torch.cuda, device_count=lambda: count, current_device=lambda: world().rank)
            _collectives(torch, import_module("torch.distributed"), replaced)
            _symmetric_memory(torch, replaced)
            for name, module in _nvshmem(torch).items():
                sys.modules[name] = module
                replaced.callback(sys.modules.pop, name)
        _libraries(replaced)
        run_on_devices(count, run)


def _environment(kind: Any) -> Any:
    """The class of an environment that has the rank of the device whose program asks."""

    class Environment(kind):
        def __getitem__(self, key: str) -> str:
            if key in ("RANK", "LOCAL_RANK"):
                return str(world().rank)
            return str(world().count) if key in ("WORLD_SIZE", "LOCAL_WORLD_SIZE") else kind.__getitem__(self, key)

    return Environment


def _reduced(torch: ModuleType, op: str, tensors: list[TorchTensor]) -> TorchTensor:
    """The tensor of the sums, or of another operation, of some tensors."""
    ops = {"SUM": torch.sum, "AVG": torch.mean, "MAX": torch.amax, "MIN": torch.amin, "PRODUCT": torch.prod}
    return ops[op](torch.stack(tensors), 0)


def _collectives(torch: ModuleType, distributed: Any, replaced: Replacements) -> None:
    """Lets torch.distributed exchange tensors between the devices of this process."""
    state = SimpleNamespace(ready=False)

    def begin(*_: object, **__: object) -> None:
        state.ready = True

    def end(*_: object, **__: object) -> None:
        meet("destroy_process_group")

    def exchanged(name: str, tensor: TorchTensor) -> list[TorchTensor]:
        return meet(name, tensor.clone())

    def all_reduce(tensor: TorchTensor, op: object = distributed.ReduceOp.SUM, *_: object, **__: object) -> None:
        name = str(op).rpartition(".")[2].upper()
        tensor.copy_(_reduced(torch, name, exchanged("all_reduce", tensor)))

    def broadcast(tensor: TorchTensor, src: int = 0, *_: object, **__: object) -> None:
        tensor.copy_(exchanged("broadcast", tensor)[src])

    def all_gather(tensors: list[TorchTensor], tensor: object, *_: object, **__: object) -> None:
        for target, source in zip(tensors, exchanged("all_gather", tensor), strict=True):
            target.copy_(source)

    def all_gather_into_tensor(target: TorchTensor, tensor: TorchTensor, *_: object, **__: object) -> None:
        target.copy_(torch.cat(exchanged("all_gather_into_tensor", tensor)).view(target.shape))

    def reduce_scatter_tensor(target: TorchTensor, tensor: TorchTensor, *_: object, **__: object) -> None:
        total = torch.sum(torch.stack(exchanged("reduce_scatter_tensor", tensor)), 0)
        target.copy_(total.chunk(world().count)[world().rank].view(target.shape))

    def all_gather_object(objects: list[object], value: object, *_: object, **__: object) -> None:
        objects[:] = meet("all_gather_object", value)

    def barrier(*_: object, **__: object) -> None:
        meet("barrier")

    def get_rank(*_: object, **__: object) -> int:
        return world().rank

    def get_world_size(*_: object, **__: object) -> int:
        return world().count

    functions: Mapping[str, Callable[..., object]] = {
        "init_process_group": begin, "destroy_process_group": end, "is_initialized": lambda: state.ready,
        "get_rank": get_rank, "get_world_size": get_world_size, "barrier": barrier,
        "all_reduce": all_reduce, "broadcast": broadcast, "all_gather": all_gather,
        "all_gather_into_tensor": all_gather_into_tensor, "reduce_scatter_tensor": reduce_scatter_tensor,
        "all_gather_object": all_gather_object,
    }  # fmt: skip
    replaced.set(distributed, **functions)
    replaced.set(distributed.group, WORLD=SimpleNamespace(group_name="world"))


def _symmetric_memory(torch: ModuleType, replaced: Replacements) -> None:
    """Makes the symmetric memory of torch that of the devices of this process."""
    module = import_module("torch.distributed._symmetric_memory")

    def empty(*size: object, dtype: Any = None, device: object = None) -> TorchTensor:
        shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return _allocated(torch, shape, dtype or torch.float32)

    def rendezvous(tensor: object, group: object = None) -> "_Handle":
        return _Handle(peers_of(tensor), world().rank, world().count, multicast(_memory(tensor)).ctypes.data)

    def has_multicast_support(*_: object) -> bool:
        return True

    def multimem_all_reduce_(tensor: TorchTensor, op: str, group: str) -> TorchTensor:
        return tensor.copy_(_reduced(torch, op.upper(), meet("all_reduce", tensor.clone())))

    replaced.set(module, empty=empty, rendezvous=rendezvous)
    replaced.set(torch.ops.symm_mem, multimem_all_reduce_=multimem_all_reduce_)
    native: Any = getattr(torch._C, "_distributed_c10d", None)  # a torch that is built without them has none
    if native is not None:
        replaced.set(native._SymmetricMemory, has_multicast_support=staticmethod(has_multicast_support))


@dataclass(frozen=True)
class _Handle:
    """A symmetric tensor on all devices: theirs, and the address that stands for all."""

    buffers: list[TorchTensor]
    rank: int
    world_size: int
    multicast_ptr: int

    @property
    def buffer_ptrs(self) -> list[int]:
        """The addresses of the devices' tensors."""
        return [buffer.data_ptr() for buffer in self.buffers]

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Waits for all devices."""
        meet("barrier")

    def get_buffer(self, rank: int, sizes: Any, dtype: Any, storage_offset: int = 0) -> TorchTensor:
        """The tensor of a device, as one of other sizes and type."""
        count = int(np.prod(tuple(sizes)))
        return self.buffers[rank].view(-1).view(dtype)[storage_offset : storage_offset + count].view(tuple(sizes))


def _allocated(torch: ModuleType, shape: Any, dtype: Any) -> TorchTensor:
    """A symmetric tensor."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    count = int(np.prod(sizes)) * torch.empty(0, dtype=dtype).element_size()
    return torch.from_numpy(symmetric(count, np.uint8)).view(dtype).view(sizes)


def _memory(tensor: TorchTensor) -> TorchTensor:
    """The array of all bytes of a symmetric tensor."""
    return world().symmetric[tensor.untyped_storage().data_ptr()][world().rank]


def peers_of(tensor: TorchTensor) -> list[TorchTensor]:
    """The tensors of all devices, by rank, that were allocated with a symmetric one."""
    torch = torch_module()
    return [torch.from_numpy(array).view(tensor.dtype).view(tensor.shape) for array in peers(_memory(tensor))]


def _nvshmem(torch: ModuleType) -> Mapping[str, ModuleType]:
    """A package `nvshmem` and its module `nvshmem.core`, by name, whose functions allocate symmetric memory and
    multicast addresses.
    """
    package, core = ModuleType("nvshmem"), ModuleType("nvshmem.core")

    def tensor(shape: Any, dtype: Any = None, **_: object) -> Any:
        return _allocated(torch, shape, dtype or torch.float32)

    def get_peer_tensor(tensor: object, pe: int) -> TorchTensor:
        return peers_of(tensor)[pe]

    def get_multicast_tensor(_: object, tensor: TorchTensor) -> TorchTensor:
        return torch.from_numpy(multicast(_memory(tensor))).view(tensor.dtype).view(tensor.shape)

    def get_unique_id(**_: object) -> Any:
        return SimpleNamespace(_data=np.zeros(16, np.uint8))

    def nothing(*_: object, **__: object) -> None:
        """Memory lives as long as the devices."""

    functions = {
        "tensor": tensor, "get_peer_tensor": get_peer_tensor, "get_multicast_tensor": get_multicast_tensor,
        "get_unique_id": get_unique_id, "free_tensor": nothing, "init": nothing, "finalize": nothing,
        "my_pe": lambda: world().rank, "n_pes": lambda: world().count, "Teams": SimpleNamespace(TEAM_NODE=0),
    }  # fmt: skip
    vars(core).update(functions)
    vars(package).update(core=core, __path__=[])
    return {"nvshmem": package, "nvshmem.core": core}


class _Device:
    """A device of cuda-core, which has nothing to choose."""

    def __init__(self, *_: object) -> None: ...

    def set_current(self) -> None:
        """It is the one of its thread."""

    def create_stream(self, *_: object, **__: object) -> Any:
        """A stream that has nothing to wait for."""
        return SimpleNamespace(sync=lambda: None)


def _libraries(replaced: Replacements) -> None:
    """Lets cuda-core name the devices, and cuda-pathfinder find the library of nvshmem."""
    if find_spec("cuda") is None:
        return
    if find_spec("cuda.core") is not None:
        replaced.set(import_module("cuda.core"), Device=_Device)
    if find_spec("cuda.pathfinder") is not None:
        pathfinder = import_module("cuda.pathfinder")
        load = pathfinder.load_nvidia_dynamic_lib

        def found(name: str) -> Any:
            return SimpleNamespace(abs_path=None) if name == "nvshmem_host" else load(name)

        replaced.set(pathfinder, load_nvidia_dynamic_lib=found)
