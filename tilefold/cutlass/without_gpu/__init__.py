# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuTe programs on a machine without a GPU: host memory takes the place of a GPU's, and launches are simulated.

Only `python -m tilefold.cutlass` and `make programs` do this, in the process of the program. `replacements` is the one
place that gives functions of torch and of CUDA another meaning, for as long as a `Replacements` is open. For torch
`device="cuda"` means the host then, `tensor.cuda()` is the tensor or an aligned copy, streams and events order
launches, graphs repeat them, and there is a GPU. Memory that the program allocates by CUDA's runtime or driver is the
host's, and its streams, events and questions about the device are answered.
"""

from importlib.util import find_spec

from tilefold.cute.host.streams import torch_module
from tilefold.driver.devices import devices_of_process
from tilefold.runtime.settings import program_target

from ..replacements import Replacements
from .device_calls import MissingGpu, device_on_host, take_the_place_of_gpus
from .host_memory import memory_on_host
from .streams import compiler_on_host, streams_on_host
from .tensor_accesses import tensor_accesses_on_host
from .tensor_maps import tensor_maps_on_host
from .tensors import tensors_on_host


def wait_for_gpu() -> None:
    """Waits at the program's end for the work that its streams have left. SimulationError (E3231) for launches that
    wait for something that nothing else does.
    """
    gpu = devices_of_process().simulator
    assert isinstance(gpu, MissingGpu)
    gpu.streams.synchronize()


def stay_on_host() -> Replacements:
    """Redirects launches to the simulator, and torch's and CUDA's memory to the host, until the result is closed; it is
    also a context. `utils.HardwareInfo` has the
    sizes of a small GPU, which a cooperative launch must fit; its architecture is Hopper's, or that of `CUTE_DSL_ARCH`.
    TilefoldError (E4003) for an unknown one.
    """
    wished = program_target()
    gpu = MissingGpu(wished) if wished else MissingGpu()
    with Replacements() as replaced:
        take_the_place_of_gpus(gpu, replaced)
        memory_on_host(gpu.streams, replaced)
        device_on_host(gpu, replaced)
        tensor_maps_on_host(replaced)
        if find_spec("torch") is not None:
            torch = torch_module()
            tensors_on_host(torch, replaced)
            streams_on_host(torch, gpu, replaced)
            tensor_accesses_on_host(torch, gpu.streams, replaced)
            compiler_on_host(torch, replaced)
        return replaced.pop_all()
