# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example beside an exported kernel: a program in C, or C++, that runs it once on tensors in files."""

from tilefold.base.parameters import ParameterKind, Scalar
from tilefold.tools.export.c_names import LICENCE, Argument

_CHECK = """\
/* Ends the program where a call of the driver has failed. */
static void check(CUresult status, const char *what)
{
    const char *text = 0;
    if (status == CUDA_SUCCESS)
        return;
    if (cuGetErrorString(status, &text) != CUDA_SUCCESS || !text)
        text = "unknown error";
    fprintf(stderr, "%s: %s\\n", what, text);
    exit(1);
}

/* The integer that a word of the command line is. */
static long long number(const char *word)
{
    char *end = 0;
    long long value = strtoll(word, &end, 0);
    if (end == word || *end) {
        fprintf(stderr, "%s: not an integer\\n", word);
        exit(2);
    }
    return value;
}
"""

_REAL = """
/* The number that a word of the command line is. */
static double real(const char *word)
{
    char *end = 0;
    double value = strtod(word, &end);
    if (end == word || *end) {
        fprintf(stderr, "%s: not a number\\n", word);
        exit(2);
    }
    return value;
}
"""

_TENSOR = """
/* The bytes of a file, and their copy in the GPU's memory. */
typedef struct tensor {
    const char *file;
    void *bytes;
    size_t size;
    CUdeviceptr address;
} tensor;

/* Copies a file to the GPU. */
static tensor read_tensor(const char *name)
{
    tensor found;
    FILE *file = fopen(name, "rb");
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    found.file = name;
    found.size = size > 0 ? (size_t)size : 0;
    found.bytes = malloc(found.size + 1);
    if (size <= 0 || fseek(file, 0, SEEK_SET) || !found.bytes ||
        fread(found.bytes, 1, found.size, file) != found.size) {
        fprintf(stderr, "%s: cannot be read, or is empty\\n", name);
        exit(2);
    }
    fclose(file);
    check(cuMemAlloc(&found.address, found.size), name);
    check(cuMemcpyHtoD(found.address, found.bytes, found.size), name);
    return found;
}

/* Copies the GPU's result to the file. */
static void write_tensor(tensor *written)
{
    FILE *file;
    check(cuMemcpyDtoH(written->bytes, written->address, written->size), written->file);
    check(cuMemFree(written->address), written->file);
    file = fopen(written->file, "wb");
    if (!file || fwrite(written->bytes, 1, written->size, file) != written->size || fclose(file)) {
        fprintf(stderr, "%s: cannot be written\\n", written->file);
        exit(1);
    }
    free(written->bytes);
}
"""

_FIRST = 5
"""The word of the command line that is the first argument: after the program, the code and the grid."""


def _is_real(kind: ParameterKind) -> bool:
    """Whether a value is written as a floating-point literal of C; other floats are passed by their bits."""
    return isinstance(kind, Scalar) and kind.element.kind == "float" and not kind.by_bits


def example(name: str, code: str, passed: tuple[Argument, ...]) -> str:
    """The program for kernel `name`, whose code is in file `code` and takes the arguments `passed`."""
    tensors = [argument for argument in passed if argument.kind.is_tensor]
    words = "".join(f" {argument.name}" for argument in passed)
    helpers = _CHECK
    if any(_is_real(argument.kind) for argument in passed):
        helpers += _REAL
    if tensors:
        helpers += _TENSOR
    declared = "".join(f"    {_declare(argument, _FIRST + at)}\n" for at, argument in enumerate(passed))
    given = "".join(f",\n              {arg.name}{'.address' if arg.kind.is_tensor else ''}" for arg in passed)
    written = "".join(f"    write_tensor(&{argument.name});\n" for argument in tensors)
    return f"""{LICENCE}
/* Runs kernel {name} once, on tensors in files of raw elements, which its results replace.
 *
 *     nvcc -o {name}_example {name}_example.c -lcuda
 *     ./{name}_example {code} GRID_X GRID_Y GRID_Z{words}
 *
 * Any other compiler does as well, with the folder of cuda.h (-I) and, where no driver is installed, that of the
 * toolkit's stub of its library (-L.../lib64/stubs). Each argument is the file of a tensor, or a number; a float of 16
 * bits is given by its bits, 0x3c00 for 1.
 */
#include <stdio.h>
#include <stdlib.h>

#include "{name}.h"

{helpers}
int main(int argc, char **argv)
{{
    CUdevice device;
    CUcontext context;
    {name}_kernel kernel;

    if (argc != {_FIRST + len(passed)}) {{
        fprintf(stderr, "usage: %s CODE GRID_X GRID_Y GRID_Z{words}\\n", argv[0]);
        return 2;
    }}
    check(cuInit(0), "the driver");
    check(cuDeviceGet(&device, 0), "the GPU");
    check(cuDevicePrimaryCtxRetain(&context, device), "its context");
    check(cuCtxSetCurrent(context), "its context");
    check({name}_load(&kernel, argv[1]), argv[1]);

{declared}    check({name}_launch(
              &kernel, (unsigned)number(argv[2]), (unsigned)number(argv[3]), (unsigned)number(argv[4]), 0{given}),
          "the launch");
    check(cuCtxSynchronize(), "the kernel");

{written}    check({name}_unload(&kernel), "unloading");
    check(cuDevicePrimaryCtxRelease(device), "its context");
    return 0;
}}
"""


def _declare(argument: Argument, word: int) -> str:
    """The declaration of an argument's value, which a word of the command line gives."""
    if argument.kind.is_tensor:
        return f"tensor {argument.name} = read_tensor(argv[{word}]);"
    read = "real" if _is_real(argument.kind) else "number"
    return f"{argument.kind.c} {argument.name} = ({argument.kind.c}){read}(argv[{word}]);"
