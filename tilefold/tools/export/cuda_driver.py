# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of the CUDA driver API that exported functions use, declared in C without CUDA's headers.

The driver is opened at the first call, so that a module which contains kernels also loads where there is no GPU. Types
and numbers are those of cuda.h.
"""

from collections.abc import Iterator

from tilefold.layout.tma.recipe import MAP_ELEMENTS, PROMOTIONS
from tilefold.layout.tma.tensor_map import SWIZZLE_NAMES

_FUNCTIONS = {
    "cuInit": "unsigned flags",
    "cuCtxSetCurrent": "CUcontext context",
    "cuCtxGetDevice": "int *device",
    "cuDevicePrimaryCtxRetain": "CUcontext *context, int device",
    "cuGetErrorString": "CUresult status, const char **text",
    "cuModuleLoadData": "CUmodule *module, const void *code",
    "cuModuleUnload": "CUmodule module",
    "cuModuleGetFunction": "CUfunction *function, CUmodule module, const char *name",
    "cuFuncSetAttribute": "CUfunction function, int attribute, int value",
    "cuTensorMapEncodeTiled": (
        "CUtensorMap *map, int type, cuuint32_t rank, void *address, const cuuint64_t *dims,\n"
        "        const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,\n"
        "        int interleave, int swizzle, int promotion, int fill"
    ),
    "cuLaunchKernel": (
        "CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,\n"
        "        unsigned shared, CUstream stream, void **arguments, void **extra"
    ),
    "cuLaunchKernelEx": "const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra",
}
"""The functions, with their parameters; each returns a CUresult."""


def driver_declarations() -> str:
    """Declarations in C that stand in for `#include <cuda.h>`, and `tilefold_open_driver`, which finds the functions
    and returns the driver's status.
    """
    numbers = ",\n    ".join(f"{name} = {value}" for name, value in _numbers())
    members = "".join(f"    CUresult (*{name}_)({parameters});\n" for name, parameters in _FUNCTIONS.items())
    names = "".join(f"#define {name} tilefold_driver.{name}_\n" for name in _FUNCTIONS)
    found = "".join(_lookup(name) for name in _FUNCTIONS)
    return f"""#include <dlfcn.h>
#include <stdint.h>

typedef int CUresult;
typedef uint64_t CUdeviceptr, cuuint64_t;
typedef uint32_t cuuint32_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct {{
    _Alignas(128) cuuint64_t opaque[16];
}} CUtensorMap;
typedef struct {{
    int id;
    char pad[4];
    union {{
        char pad[64];
        struct {{
            unsigned x, y, z;
        }} clusterDim;
        int cooperative;
        int programmaticStreamSerializationAllowed;
    }} value;
}} CUlaunchAttribute;
typedef struct {{
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
}} CUlaunchConfig;
enum {{
    {numbers}
}};

static __thread CUstream tilefold_current_stream;
static struct {{
{members}    CUresult status;
    int is_open;
}} tilefold_driver;
{names}
/* Finds the functions of the driver, and initialises it. */
static CUresult tilefold_open_driver(void)
{{
    void *library;
    if (tilefold_driver.is_open)
        return tilefold_driver.status;
    tilefold_driver.is_open = 1;
    tilefold_driver.status = CUDA_ERROR_NOT_INITIALIZED;
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return tilefold_driver.status;
{found}    return tilefold_driver.status = cuInit(0);
}}
"""


def _lookup(name: str) -> str:
    """The statements that find a function. POSIX converts its address through a pointer to void."""
    return f"""    *(void **)&tilefold_driver.{name}_ = dlsym(library, "{name}");
    if (!tilefold_driver.{name}_)
        return tilefold_driver.status;
"""


def _numbers() -> Iterator[tuple[str, int]]:
    yield from (("CUDA_SUCCESS", 0), ("CUDA_ERROR_INVALID_VALUE", 1), ("CUDA_ERROR_NOT_INITIALIZED", 3))
    yield from (
        ("CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", 8),
        ("CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 14),
        ("CU_LAUNCH_ATTRIBUTE_COOPERATIVE", 2),
        ("CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", 4),
        ("CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION", 6),
        ("CU_TENSOR_MAP_INTERLEAVE_NONE", 0),
        ("CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE", 0),
        ("CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA", 1),
    )
    for element in MAP_ELEMENTS.values():
        yield f"CU_TENSOR_MAP_DATA_TYPE_{element.driver_name}", element.number
    for number, name in enumerate(SWIZZLE_NAMES):
        yield f"CU_TENSOR_MAP_SWIZZLE_{name}", number
    for number, size in enumerate(PROMOTIONS):
        yield f"CU_TENSOR_MAP_L2_PROMOTION_{f'L2_{size}B' if size else 'NONE'}", number
