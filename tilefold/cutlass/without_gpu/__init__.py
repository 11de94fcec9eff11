# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuTe programs on a machine without a GPU: host memory takes the place of a GPU's, and launches are simulated.

Only `python -m tilefold.cutlass` and `make programs` do this, in the process of the program. For torch `device="cuda"`
means the host then, `tensor.cuda()` is the tensor or an aligned copy, streams and events do nothing, graphs repeat
their launches, and there is a GPU. Memory that the program allocates by CUDA's runtime or driver is the host's.
"""

from importlib.util import find_spec

from tilefold.cute.host.streams import torch_module

from .launches import SimulatedLaunches, simulate_launches
from .memory import memory_on_host
from .streams import streams_on_host
from .tensors import tensors_on_host


def stay_on_host() -> None:
    """Keeps torch's memory, if it is installed, and CUDA's memory on the host; `utils.HardwareInfo` has the
    sizes of a small GPU, which a cooperative launch must fit.
    """
    launches = SimulatedLaunches()
    simulate_launches(launches)
    memory_on_host()
    if find_spec("torch") is not None:
        torch = torch_module()
        tensors_on_host(torch)
        streams_on_host(torch, launches)
