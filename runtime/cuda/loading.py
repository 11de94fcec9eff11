# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code loaded by the driver, which assembles PTX (CUDA Driver API, Module Management, cuModuleLoadDataEx).

The driver keeps the machine code of PTX in a cache of its own, and has nothing to say of it when it loads it again. So
messages about lost speed are kept here, in the cache of tilefold.
"""

import warnings
from typing import Any

from ...base.assembler_warnings import assembler_warnings, check_speed
from ..compiled.artifact import Artifact
from ..compiled.store import default_store, digest
from ..settings import allows_slower
from .driver import CudaError, Driver

_LOG_BYTES = 65536


def load_module(driver: Driver, artifact: Artifact) -> Any:
    """Loads an artifact's code in the current context.

    CudaError if the driver refuses it, with the words of its assembler. TilefoldError (E2303) where the assembler
    makes a kernel slower than it is written, unless the settings allow that; then a RuntimeWarning, except for those
    that cost next to nothing.
    """
    option, code = driver.api.CUjit_option, artifact.code
    errors, messages = bytearray(_LOG_BYTES), bytearray(_LOG_BYTES)
    options = {option.CU_JIT_ERROR_LOG_BUFFER: errors, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES}
    if isinstance(code, str):
        options |= {option.CU_JIT_INFO_LOG_BUFFER: messages, option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES}
    try:
        module = driver.call(
            "cuModuleLoadDataEx",
            code.encode() + b"\0" if isinstance(code, str) else code,
            len(options),
            list(options),
            list(options.values()),
            doing=f"loading kernel '{artifact.kernel}'",
        )
    except CudaError as error:
        if words := _text(errors):
            raise CudaError(error.status, error.error_code, f"{error.message}: {words}", error.hint) from error
        raise
    if isinstance(code, str):
        try:
            _check(driver, artifact, code, _text(messages))
        except Exception:
            driver.api.cuModuleUnload(module)
            raise
    return module


def _check(driver: Driver, artifact: Artifact, ptx: str, log: str) -> None:
    store = default_store()
    if store is not None:
        key = digest("log of the driver", ptx, artifact.target.arch, str(driver.call("cuDriverGetVersion")))
        if assembler_warnings(log):
            store.put(key, log.encode())
        elif (kept := store.get(key)) is not None:
            log = kept.decode("utf-8", "replace")
    check_speed(log, allows_slower())
    for message in assembler_warnings(log):
        if not message.harmless:
            warnings.warn(message.remark, RuntimeWarning, stacklevel=2)


def _text(log: bytearray) -> str:
    return bytes(log).split(b"\0")[0].decode("utf-8", "replace").strip()
