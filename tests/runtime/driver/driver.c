/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A driver without a GPU, which prints what it is asked for. Its memory is the host's. A launch of any kernel adds 1 to
 * each byte of each tensor; what the arguments are, the environment says: the variable of the kernel's name, or else
 * ARGUMENTS, such as "p4d", has a letter for each, p for a tensor, m for a tensor map, 1 to 8 for the bytes of an
 * integer, f and d for floats.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS 64

static CUdeviceptr addresses[TENSORS];
static size_t sizes[TENSORS];
static int allocated;

CUresult cuInit(unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_NOT_FOUND ? "named symbol not found" : "invalid argument";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = 0;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    (void)device;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
    FILE *opened = fopen(file, "rb");
    *module = 0;
    if (!opened)
        return CUDA_ERROR_INVALID_VALUE;
    fclose(opened);
    printf("load %s\n", file);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    *module = (CUmodule)image;
    printf("load %s at %d\n", memcmp(image, "\177ELF", 4) ? "PTX" : "machine code", (int)((size_t)image % 16));
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    (void)module;
    printf("unload\n");
    return CUDA_SUCCESS;
}

static const char *arguments_of(const char *kernel)
{
    const char *own = getenv(kernel);
    return own ? own : getenv("ARGUMENTS");
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    *function = (CUfunction)name;
    printf("function %s\n", name);
    return arguments_of(name) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function;
    printf("attribute %d = %d\n", (int)attribute, value);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size)
{
    void *found = malloc(size);
    *address = (CUdeviceptr)(size_t)found;
    if (allocated == TENSORS)
        return CUDA_ERROR_INVALID_VALUE;
    addresses[allocated] = *address;
    sizes[allocated++] = size;
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address)
{
    free((void *)(size_t)address);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size)
{
    memcpy((void *)(size_t)to, from, size);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size)
{
    memcpy(to, (const void *)(size_t)from, size);
    return CUDA_SUCCESS;
}

static void touch(CUdeviceptr address)
{
    int tensor;
    size_t at;
    for (tensor = 0; tensor < allocated; tensor++)
        if (addresses[tensor] == address) {
            printf(" tensor%d", tensor);
            for (at = 0; at < sizes[tensor]; at++)
                ((unsigned char *)(size_t)address)[at]++;
        }
}

CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
    const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    static int made;
    cuuint32_t i;
    map->opaque[0] = (cuuint64_t)++made;
    printf("map %d %lld", (int)type, (long long)((uintptr_t)address - (uintptr_t)addresses[0]));
    for (i = 0; i < rank; i++)
        printf(" %d:%d:%d", (int)dims[i], (int)box[i], i ? (int)strides[i - 1] : (int)steps[i]);
    printf(" %d %d %d %d\n", (int)interleave, (int)swizzle, (int)promotion, (int)fill);
    return dims[0] ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra)
{
    unsigned i;
    for (i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            printf(
                "cluster %ux%ux%u\n", config->attrs[i].value.clusterDim.x, config->attrs[i].value.clusterDim.y,
                config->attrs[i].value.clusterDim.z);
        else
            printf("attribute %d\n", (int)config->attrs[i].id);
    return cuLaunchKernel(
        function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY,
        config->blockDimZ, config->sharedMemBytes, config->hStream, arguments, extra);
}

CUresult cuLaunchKernel(
    CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
    unsigned block_z, unsigned shared, CUstream stream, void **arguments, void **extra)
{
    const char *each;
    printf("launch %ux%ux%u %ux%ux%u %u", grid_x, grid_y, grid_z, block_x, block_y, block_z, shared);
    for (each = arguments_of((const char *)function); *each; each++, arguments++)
        if (*each == 'p')
            touch(*(CUdeviceptr *)*arguments);
        else if (*each == 'm')
            printf(" map%d", (int)((CUtensorMap *)*arguments)->opaque[0]);
        else if (*each == 'f')
            printf(" %g", (double)*(float *)*arguments);
        else if (*each == 'd')
            printf(" %g", *(double *)*arguments);
        else {
            long long value = 0;  /* of a machine whose lowest byte comes first */
            int bits = 64 - 8 * (*each - '0');
            memcpy(&value, *arguments, (size_t)(*each - '0'));
            printf(" %lld", (long long)((unsigned long long)value << bits) >> bits);
        }
    printf(stream ? " stream %d\n" : "\n", (int)(size_t)stream);
    return extra ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
