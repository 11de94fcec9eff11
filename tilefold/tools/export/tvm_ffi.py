# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An exported host function as a function of TVM FFI (`__tvm_ffi_NAME`), which torch, JAX and C++ call through it.

The function checks its arguments against the types that it was compiled for, loads the kernels where they are called
first, and launches them in the stream of TVM FFI's environment, or in that of a stream argument. The types are those of
tvm/ffi/c_api.h and dlpack.h.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute

from tilefold.base.errors import Code, TilefoldError
from tilefold.dialects.element_types import element_of
from tilefold.dialects.kernel import passed_as
from tilefold.dialects.tile import TensorType
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import leaves
from tilefold.tools.export.c_names import TAKEN, free_name
from tilefold.tools.export.cuda_driver import driver_declarations
from tilefold.tools.export.function_header import function_header
from tilefold.tools.export.function_record import FunctionRecord

_DEVICES = 64
"""The most devices for which a module keeps its kernels."""

_TYPES = """
/* of dlpack.h and tvm/ffi/c_api.h */
typedef struct {
    int32_t type, id;
} tilefold_device;
typedef struct {
    void *data;
    tilefold_device device;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} tilefold_tensor;
typedef struct {
    int32_t type_index;
    uint32_t padding;
    union {
        int64_t integer;
        double number;
        void *pointer;
    } value;
} tilefold_any;
enum {
    TILEFOLD_NONE = 0, TILEFOLD_INT = 1, TILEFOLD_BOOL = 2, TILEFOLD_FLOAT = 3, TILEFOLD_POINTER = 4,
    TILEFOLD_DLTENSOR = 7, TILEFOLD_TENSOR = 70, TILEFOLD_OBJECT_HEADER = 24, TILEFOLD_CUDA = 2
};
extern void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
extern void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);

static int tilefold_fail(const char *kind, const char *name, const char *problem)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%s: %s", name, problem);
    TVMFFIErrorSetRaisedFromCStr(kind, text);
    return -1;
}

static int tilefold_misfit(const char *name, const char *fact, int64_t given, const char *rule, int64_t wanted)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%s is %lld, and must be %s%lld", fact, (long long)given, rule,
        (long long)wanted);
    return tilefold_fail("ValueError", name, text);
}

/* The tensor that a value holds; none for another value. */
static const tilefold_tensor *tilefold_tensor_of(const tilefold_any *value)
{
    if (value->type_index == TILEFOLD_DLTENSOR)
        return value->value.pointer;
    if (value->type_index == TILEFOLD_TENSOR)
        return (const void *)((const char *)value->value.pointer + TILEFOLD_OBJECT_HEADER);
    return 0;
}
"""


def tvm_ffi_source(
    record: FunctionRecord, types: Mapping[str, Attribute | None], values: int, codes: Sequence[int]
) -> str:
    """The function in C, with all that it calls but the object file's data and its function of values. The parameters
    are those of `function_header`; those named in `record.optional` must be None.

    Raises TilefoldError (E0213) for arguments in tuples, and for tensors of nested layouts.
    """
    name = record.name
    taken = {"args", "count", "result", "device", *(f"tilefold_{word}" for word in ("stream", "module", "status"))}
    names = {argument: free_name(argument, taken, TAKEN) for argument in types}
    order = [argument for argument in record.parameters if argument in types or argument in record.optional]
    if grouped := [argument for argument in types if argument not in record.parameters]:
        _refuse(name, f"'{grouped[0]}' is a part of an argument", "pass its parts as arguments of their own")
    tensors = {argument: type for argument, type in types.items() if isinstance(type, TensorType)}
    body = "".join(
        _take(name, argument, names.get(argument, argument), types.get(argument), place, argument in record.optional)
        for place, argument in enumerate(order)
    )
    body += "".join(_same(name, names, record.symbols, tensors))
    first = next((f"{names[argument]}_->device.id" for argument in tensors), "0")
    same_device = "".join(
        f"""    if ({names[argument]}_->device.id != device)
        return tilefold_misfit({_of(name, argument)}, "the device", {names[argument]}_->device.id, "", device);
"""
        for argument in list(tensors)[1:]
    )
    given = ",\n        ".join(
        ["&tilefold_module[device]", *(f"&{names[a]}" if a in tensors else names[a] for a in types)]
    )
    header = function_header(
        record, types, values, codes, driver=driver_declarations(), default_stream="tilefold_current_stream"
    )
    return f"""{header}
{_TYPES}
static {name}_Kernel_Module_t tilefold_module[{_DEVICES}];
static int tilefold_loaded[{_DEVICES}];
static char tilefold_lock;

/* Makes the context of a device current where another is, and loads the kernels into it once. */
static CUresult tilefold_prepare(int device)
{{
    CUcontext context = 0;
    int current = -1;
    CUresult status = CUDA_SUCCESS;
    if (!__atomic_load_n(&tilefold_loaded[device], __ATOMIC_ACQUIRE)) {{
        while (__atomic_test_and_set(&tilefold_lock, __ATOMIC_ACQUIRE))
            ;
        status = tilefold_open_driver();
    }}
    if (status == CUDA_SUCCESS && (cuCtxGetDevice(&current) != CUDA_SUCCESS || current != device)) {{
        status = cuDevicePrimaryCtxRetain(&context, device);
        if (status == CUDA_SUCCESS)
            status = cuCtxSetCurrent(context);
    }}
    if (!__atomic_load_n(&tilefold_loaded[device], __ATOMIC_RELAXED)) {{
        if (status == CUDA_SUCCESS)
            status = {name}_Kernel_Module_Load(&tilefold_module[device]);
        if (status == CUDA_SUCCESS)
            __atomic_store_n(&tilefold_loaded[device], 1, __ATOMIC_RELEASE);
        __atomic_clear(&tilefold_lock, __ATOMIC_RELEASE);
    }}
    return status;
}}

__attribute__((visibility("default"))) int __tvm_ffi_{name}(
    void *self, const tilefold_any *args, int32_t count, tilefold_any *result)
{{
    int32_t device;
    CUresult tilefold_status;
    (void)self;
    if (count != {len(order)})
        return tilefold_misfit("{name}", "the number of arguments", count, "", {len(order)});
{body}    device = {first};
    if (device < 0 || device >= {_DEVICES})
        return tilefold_misfit("{name}", "the number of the device", device, "less than ", {_DEVICES});
{same_device}    tilefold_status = tilefold_prepare(device);
    if (tilefold_status == CUDA_SUCCESS) {{
        tilefold_current_stream = TVMFFIEnvGetStream(TILEFOLD_CUDA, device);
        tilefold_status = cute_dsl_{name}_wrapper(
        {given});
    }}
    if (tilefold_status != CUDA_SUCCESS) {{
        const char *text = "the CUDA driver is not there, or failed";
        if (tilefold_driver.is_open && cuGetErrorString)
            (void)cuGetErrorString(tilefold_status, &text);
        return tilefold_fail("RuntimeError", "{name}", text);
    }}
    result->type_index = TILEFOLD_NONE;
    result->padding = 0;
    result->value.integer = 0;
    return 0;
}}
"""


def _take(function: str, argument: str, name: str, type: Attribute | None, place: int, is_none: bool) -> str:
    """The statements that check an argument and declare a variable for it: a structure for a tensor, and under the name
    with an underscore the tensor itself.
    """
    what = f"\"{function}: argument '{argument}'\""
    value = f"args[{place}]"
    if is_none:
        return f"""    if ({value}.type_index != TILEFOLD_NONE)
        return tilefold_fail("TypeError", {what}, "must be None, for which the function is compiled");
"""
    if isinstance(type, TensorType):
        return _take_tensor(function, argument, name, type, value)
    if type is None:
        return f"""    CUstream {name} = (CUstream){value}.value.pointer;
    if ({value}.type_index != TILEFOLD_POINTER && {value}.type_index != TILEFOLD_INT)
        return tilefold_fail("TypeError", {what}, "is a stream: pass its handle");
"""
    kind = passed_as(type)
    assert kind is not None, "a launch can pass the arguments of a function"
    is_integer = f"{value}.type_index == TILEFOLD_INT || {value}.type_index == TILEFOLD_BOOL"
    if not isinstance(type, AnyFloat):
        return f"""    {kind.c} {name} = ({kind.c}){value}.value.integer;
    if (!({is_integer}))
        return tilefold_fail("TypeError", {what}, "must be an integer");
{_range(what, value, kind.size)}"""
    if kind.c not in ("float", "double"):
        _refuse(function, f"'{argument}' is a number of {kind.name}", "take it as Float32; the kernel can convert it")
    return f"""    {kind.c} {name} = ({kind.c})({is_integer} ? (double){value}.value.integer : {value}.value.number);
    if (!({is_integer} || {value}.type_index == TILEFOLD_FLOAT))
        return tilefold_fail("TypeError", {what}, "must be a number");
"""


def _range(what: str, value: str, size: int) -> str:
    """The statements that refuse an integer of more bytes, with a sign or without."""
    if size == 8:
        return ""
    given = f"{value}.value.integer"
    return f"""    if ({given} < -((int64_t)1 << {8 * size - 1}) || {given} >= (int64_t)1 << {8 * size})
        return tilefold_fail("OverflowError", {what}, "does not fit {size} bytes");
"""


def _take_tensor(function: str, argument: str, name: str, type: TensorType, value: str) -> str:
    what = _of(function, argument)
    element, layout = element_of(type.element_type), type.layout.data
    if element is None or element.dlpack is None:
        _refuse(function, f"'{argument}' has elements of {type.element_type}, which DLPack lacks", "pass their bytes")
    assert isinstance(layout, Layout), "arguments have plain layouts"
    if not isinstance(layout.shape, tuple) or any(isinstance(mode, tuple) for mode in layout.shape):
        _refuse(function, f"'{argument}' has the layout {layout}", "pass a tensor whose modes are integers")
    align = type.align.data
    code = f"{name}_->code > 1" if element.kind == "int" else f"{name}_->code != {element.dlpack}"
    lines = [
        f"{function}_Tensor_{argument}_t {name};",
        f"const tilefold_tensor *{name}_ = tilefold_tensor_of(&{value});",
        f"if (!{name}_)",
        f'    return tilefold_fail("TypeError", {what}, "must be a tensor");',
        f"if ({name}_->device.type != TILEFOLD_CUDA)",
        f'    return tilefold_fail("ValueError", {what}, "must be on a CUDA device");',
        f"if ({code} || {name}_->bits != {8 * element.bytes} || {name}_->lanes != 1)",
        f'    return tilefold_fail("TypeError", {what}, "must have elements of {element.library}");',
        f"if ({name}_->rank != {len(layout.shape)})",
        f'    return tilefold_misfit({what}, "the rank", {name}_->rank, "", {len(layout.shape)});',
        f"{name}.data = (char *){name}_->data + {name}_->byte_offset;",
        f"if ((uintptr_t){name}.data % {align})",
        f'    return tilefold_fail("ValueError", {what}, "must be at an address that is a multiple of {align}");',
        *_integers(what, name, layout, "shape"),
        *_integers(what, name, layout, "stride"),
    ]
    return "".join(f"    {line}\n" for line in lines)


def _integers(what: str, name: str, layout: Layout, part: str) -> Iterator[str]:
    """The statements that compare extents or strides with those of a layout, and take those that it leaves open. The
    stride of an extent of one is never used, and may be any.
    """
    field, fact = ("shape", "extent") if part == "shape" else ("strides", "stride")
    dynamic = 0
    for mode, leaf in enumerate(leaves(getattr(layout, part))):
        at = f"{name}_->{field}[{mode}]"
        moot = f"{name}_->shape[{mode}] != 1 && " if part == "stride" else ""
        if not isinstance(leaf, Unknown):
            yield f"if ({moot}{at} != {leaf})"
            yield f'    return tilefold_misfit({what}, "{fact} {mode}", {at}, "", {leaf});'
            continue
        member = f"{name}.dynamic_{part}s[{dynamic}]"
        dynamic += 1
        if part == "shape" and leaf.width <= 32:
            yield f"{member} = (int32_t){at};"
            yield f"if ({member} != {at})"
            yield f'    return tilefold_misfit({what}, "{fact} {mode}", {at}, "at most ", INT32_MAX);'
        else:
            yield f"{member} = {at};"
        if leaf.div > 1:
            yield f"if ({moot}{at} % {leaf.div})"
            yield f'    return tilefold_misfit({what}, "{fact} {mode}", {at}, "a multiple of ", {leaf.div});'


def _of(function: str, argument: str) -> str:
    return f"\"{function}: argument '{argument}'\""


def _refuse(function: str, problem: str, hint: str) -> NoReturn:
    raise TilefoldError(Code.BAD_ARGUMENT, f"the function '{function}' is not exported for TVM FFI: {problem}", hint)


def _same(
    function: str,
    names: Mapping[str, str],
    symbols: Sequence[Sequence[tuple[str, int]]],
    tensors: Mapping[str, TensorType],
) -> Iterator[str]:
    """The statements that compare integers which one symbol describes."""
    for places in symbols:
        (first, at), *rest = places
        wanted = _place(names[first], tensors[first], at)
        for argument, place in rest:
            given = _place(names[argument], tensors[argument], place)
            yield f"""    if ({given} != {wanted})
        return tilefold_misfit({_of(function, argument)}, "{_fact(tensors[argument], place)}", {given}, "", {wanted});
"""


def _place(name: str, type: TensorType, place: int) -> str:
    rank = _rank(type)
    return f"{name}_->shape[{place}]" if place < rank else f"{name}_->strides[{place - rank}]"


def _fact(type: TensorType, place: int) -> str:
    rank = _rank(type)
    return f"extent {place}" if place < rank else f"stride {place - rank}"


def _rank(type: TensorType) -> int:
    layout = type.layout.data
    assert isinstance(layout, Layout), "arguments have plain layouts"
    return len(list(leaves(layout.shape)))
