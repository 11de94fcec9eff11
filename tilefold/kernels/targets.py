# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU that a kernel is chosen for, and the table of kernels by function and target."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from tilefold.base.errors import Code
from tilefold.base.target import Target
from tilefold.runtime.errors import LaunchError

HOPPER, BLACKWELL = "sm_90a", "sm_100a"
MULTIPROCESSORS = 132
"""Those of an H100 or H200, for which the simulator chooses."""

KERNELS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "gemm": {HOPPER: "sm90.products:product", BLACKWELL: "sm100.gemm:product", "sm_80": "sm80.gemm:product"},
        "grouped_gemm": {HOPPER: "sm90.products:grouped"},
        "scaled_gemm": {HOPPER: "sm90.products:scaled"},
        "attention": {
            HOPPER: "sm90.attentions:forward",
            BLACKWELL: "sm100.attention:forward",
            "sm_80": "sm80.attention:forward",
        },
        "attention_fp8": {HOPPER: "sm90.attention_fp8:forward"},
        "attention_backward": {HOPPER: "sm90.attentions:backward", "sm_80": "sm80.attention:backward"},
        "decode_attention": {HOPPER: "sm90.attentions:decode"},
    }
)
"""The function that launches a kernel, as module:name, by function of the library and the least target. A kernel of
sm_90a or sm_100a serves that target alone; one of sm_80 serves it and all later ones. Another target is one more entry.
"""


@lru_cache(maxsize=64)
def at_hand(device: str, target: str | None) -> tuple[str, int]:
    """The target to choose for, and its multiprocessors: the GPU of a device, or what the simulator stands for.

    TilefoldError where the target is unknown (E2101), or where there is no GPU (E3301).
    """
    from tilefold.driver.devices import chosen_device

    if target is not None:
        return Target(target).arch, MULTIPROCESSORS
    if chosen_device(device.partition(":")[0]) != "cuda":
        return HOPPER, MULTIPROCESSORS
    from tilefold.cute import utils
    from tilefold.driver.devices import gpu_engine

    count = utils.HardwareInfo().get_device_multiprocessor_count()
    return gpu_engine(int(device.partition(":")[2] or 0)).driver.target.arch, count


@lru_cache(maxsize=64)
def kernel_for(function: str, arch: str) -> Callable[..., Any]:
    """The function that launches the kernel of a function of the library on a target.

    LaunchError (E3105) where the library has none for it.
    """
    entries = KERNELS[function]
    least = arch if arch in entries else "sm_80"
    if least not in entries:
        problem = f"{function} has no kernel for {arch}"
        raise LaunchError(Code.RUN_LAUNCH, problem, f"it has one for {', '.join(sorted(entries))}")
    module, _, name = entries[least].partition(":")
    return getattr(import_module(f".{module}", __package__), name)
