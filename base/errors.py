# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The errors a user can meet, and the catalogue of their stable codes.

Every refusal is a `TilefoldError` with a code of this catalogue, a message that names the failure and its place,
and usually a hint towards a cure. The first digits of a code name its area. A released code keeps its meaning.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from .printable import message_text

_AREAS: Mapping[str, str] = MappingProxyType(
    {
        "E01": "layout text",
        "E02": "layout algebra",
        "E03": "atoms and partitioning",
        "E1": "programs",
        "E2": "lowering and code generation",
        "E3": "running and checking",
        "E4": "command line",
        "E5": "kernels in Python",
    }
)


class Code(StrEnum):
    """A stable error code, such as `E0203`, which is also its text, with a `summary`: one line on the mistake."""

    summary: str

    def __new__(cls, id: str, summary: str) -> "Code":
        code = str.__new__(cls, id)
        code._value_, code.summary = id, summary
        return code

    TEXT_SYNTAX = ("E0101", "layout text is malformed")
    TEXT_TOO_LARGE = ("E0102", "layout text is too long, too deeply nested or has too many integers")
    TEXT_INTEGER_RANGE = ("E0103", "an integer does not fit in 64 bits")
    TEXT_NOT_CONGRUENT = ("E0104", "the shape and the stride of a layout are nested differently")
    TEXT_WRONG_KIND = ("E0105", "a text describes the wrong kind of value")
    TEXT_UNKNOWN_NAME = ("E0106", "an expression uses an unknown name, or defines a reserved one")
    TEXT_ARGUMENTS = ("E0107", "a call has too few or too many arguments")

    PROFILE_MISMATCH = ("E0201", "two tuples are nested differently")
    RANK_MISMATCH = ("E0202", "ranks are incompatible")
    STRIDE_DIVISIBILITY = ("E0203", "a stride and an extent do not divide each other")
    SHAPE_DIVISIBILITY = ("E0204", "two extents do not divide each other")
    EXTENT_NOT_POSITIVE = ("E0205", "an extent is zero or negative")
    NOT_INJECTIVE = ("E0206", "two coordinates map to the same index")
    DYNAMIC_UNSUPPORTED = ("E0207", "an operation needs a static integer, but got a dynamic one")
    MODE_OUT_OF_RANGE = ("E0208", "a mode index is out of range")
    RESULT_TOO_LARGE = ("E0209", "a result would have too many integers")
    SWIZZLE_INVALID = ("E0210", "the parameters do not describe a swizzle")
    COMPOSED_UNSUPPORTED = ("E0211", "the operation is not defined for a composed layout")
    NO_ADJACENT_ELEMENTS = ("E0212", "no mode has stride 1, so elements cannot be split into narrower ones")
    BAD_ARGUMENT = ("E0213", "an argument is outside the operation's domain")
    COORDINATE_OUTSIDE = ("E0215", "a coordinate is out of range for the shape that it selects from")
    MODES_CARRY = ("E0214", "modes of the right layout of a composition overlap")

    ATOM_INVALID = ("E0301", "the fields of an atom contradict each other")
    ATOM_UNKNOWN = ("E0302", "no atom has this name")
    ATOM_VALUE_WIDTH = ("E0303", "the atom cannot move values of this width")
    ATOM_OPERAND = ("E0304", "the instruction does not exist for this operand size")
    TOO_FEW_THREADS = ("E0305", "the number of threads of a tiling is not a multiple of its atom's")
    TOO_FEW_VALUES = ("E0306", "the number of values per thread of a tiling is not a multiple of its atom's")
    TILE_RANK = ("E0307", "a tensor has fewer modes than the tiler")
    NOT_IN_DATA_LAYOUT = ("E0308", "threads and values address elements that the data layout does not contain")
    NOT_A_WGMMA_OPERAND = ("E0315", "wgmma cannot read a layout in shared memory")
    NOT_A_NUMBERING = ("E0313", "a thread or value layout does not number its coordinates")

    ATOM_SPACE = ("E0309", "the atom does not move data between these memory spaces")
    ATOM_VALUES = ("E0310", "a tensor does not hold the number of values that the atom moves")
    ATOM_NOT_CONTIGUOUS = ("E0311", "the elements that the atom moves together are not adjacent in memory")
    TILE_NOT_DIVIDING = ("E0314", "tiles do not cover a tensor exactly")
    MMA_OPERAND = ("E0318", "the matrix instruction does not accept a tensor as this operand")
    ATOM_MISALIGNED = ("E0312", "an address is not known to be as aligned as the atom requires")

    PACKED_ELEMENTS = ("E0319", "an access splits a byte that several elements share")
    BLOCK_THREADS = ("E0321", "the number of threads of a block differs from the number that share a tensor")
    ATOM_PACKAGE = ("E0320", "an installed package defines an unusable atom, instruction or memory space")
    TENSOR_MAP = ("E0322", "no tensor map can describe a tensor in global memory")
    TMA_BOX = ("E0323", "no TMA copy can move a tile between these layouts")
    TMA_OPERANDS = ("E0324", "a TMA copy lacks an operand, or has one that its instruction does not accept")
    MMA_REGISTERS = ("E0325", "the accumulators of a multiplication need more registers than a thread has")
    CACHE_HINT = ("E0317", "the instruction does not accept this cache hint")
    PREDICATE_SHAPE = ("E0316", "predicates do not fit their copy")

    IR_SYNTAX = ("E1001", "the program does not parse")
    IR_UNKNOWN_OPERATION = ("E1002", "no operation, type or attribute has this name")
    IR_VERIFY = ("E1003", "an operation breaks a rule of its dialect")
    IR_USE_BEFORE_DEFINITION = ("E1004", "a value is used where its definition is not visible")
    IR_TOO_LARGE = ("E1005", "the program is too large or too deeply nested")
    IR_ENCODING = ("E1006", "the file is not UTF-8 text")
    IR_FORMAT = ("E1007", "this tilefold does not read the file's version of the .cute format")
    PTX_PENDING = ("E1011", "PTX text writes a register that a load from tensor memory still writes")
    TENSOR_FORM = ("E1010", "PTX has no tcgen05 instruction of this form")
    PTX_SYNTAX = ("E1008", "PTX text is malformed")
    PTX_UNSUPPORTED = ("E1009", "PTX text has an instruction or a form that tilefold does not execute")

    PARAM_SYNTAX = ("E1101", "a parameter's declaration or use is malformed")
    PARAM_UNKNOWN = ("E1102", "no parameter has this name")
    PARAM_VALUE = ("E1103", "a parameter's value is undefined or of the wrong kind")
    PARAM_TOO_LARGE = ("E1104", "the parameters expand to too much text")
    PARAM_BRANCH = ("E1105", "lines // if, // elif, // else and // end do not match")
    PARAM_ASSERT = ("E1106", "the parameters do not satisfy an assertion of the file")

    EXPRESSION_SYNTAX = ("E1201", "an expression is malformed")
    EXPRESSION_TOO_LARGE = ("E1202", "an expression is too long or too deeply nested")

    PASS_FAILED = ("E2001", "a pass cannot transform this program")
    PASS_UNKNOWN = ("E2002", "no pass has this name")
    PASS_PIPELINE = ("E2003", "a pass pipeline is malformed")
    CARRIED_TENSOR = ("E2004", "control flow carries a tensor")
    PRINT_TOO_LARGE = ("E2005", "a tensor has too many elements to print")
    STAGE_CONTRACT = ("E2006", "an operation is not legal at this stage")
    LOOP_HINT = ("E2007", "a loop cannot be unrolled as its hint requests")

    TARGET_UNKNOWN = ("E2101", "no target has this name")
    TARGET_TOO_OLD = ("E2102", "an instruction is newer than the target")
    TARGET_SHARED_MEMORY = ("E2103", "a block needs more shared memory than the target has")

    EMIT_UNSUPPORTED = ("E2201", "an operation or type has no translation to PTX")
    EMIT_NAME = ("E2202", "PTX does not allow this name for a kernel")
    LLVM_REFUSED = ("E2203", "LLVM rejected tilefold's output; this is a bug of tilefold")
    LLVM_CRASHED = ("E2204", "the process that ran LLVM ended abnormally")
    LLVM_TIMEOUT = ("E2205", "compilation took too long")
    LLVM_EFFORT = ("E2206", "a kernel is too large for LLVM")
    WARPGROUP = ("E2210", "a warpgroup cannot execute an instruction as a whole")

    ASSEMBLE_REFUSED = ("E2301", "the assembler rejected the PTX")
    ASSEMBLE_UNAVAILABLE = ("E2302", "the assembler is not installed")
    FOREIGN_REFUSED = ("E2304", "a kernel in CUDA C++ or Triton does not compile")
    FOREIGN_UNAVAILABLE = ("E2305", "the compiler of CUDA C++ or Triton is not installed")
    ASSEMBLE_SLOWER = ("E2303", "the assembler makes a kernel slower than written")

    CHECK_NAME = ("E3101", "an expression uses an unknown name")
    CHECK_VALUE = ("E3102", "an operation of an expression is undefined for its operands")
    CHECK_TOO_LARGE = ("E3103", "an expression would cost too much to evaluate")
    CHECK_FAILED = ("E3104", "a result fails a check of the file")
    STAGES_DIFFER = ("E3108", "a program gives different results at different stages")
    RUN_LAUNCH = ("E3105", "a launch does not fit its kernel")
    RUN_ARGUMENT = ("E3106", "an argument has the wrong shape or type")
    RUN_KERNEL = ("E3107", "the program has no kernel of this name")

    SIM_UNSUPPORTED = ("E3201", "the simulator has no rule for an operation or a type")
    SIM_OUT_OF_BOUNDS = ("E3202", "a thread accesses memory outside every allocation or outside its tensor")
    SIM_MISALIGNED = ("E3203", "the address of an access is not a multiple of its size")
    SIM_UNINITIALISED = ("E3204", "a thread uses a value that it read from unwritten memory")
    SIM_RACE = ("E3205", "two threads access the same byte, one of them writes, and nothing orders them")
    SIM_IN_FLIGHT = (
        "E3206",
        "a thread touches bytes that an asynchronous operation still writes, or changes its input",
    )
    SIM_BARRIER = ("E3207", "not every thread reaches a barrier")
    SIM_CONVERGENCE = ("E3208", "not every lane of the warp executes a warp-wide instruction")
    SIM_ARITHMETIC = ("E3209", "an integer operation has no defined result")
    SIM_STEPS = ("E3210", "the run needs more steps than its budget allows")
    SIM_MEMORY = ("E3211", "the run needs more memory than its budget allows")
    SIM_DEPTH = ("E3212", "functions call each other too deeply")
    SIM_PREDICATE = ("E3214", "the predicates of the values that an atom moves together do not agree")
    SIM_ASSERT = ("E3213", "an assertion of the program does not hold")
    SIM_MBARRIER = ("E3215", "an address holds no mbarrier, or the use of an mbarrier is undefined")
    SIM_PROXY = ("E3216", "the async proxy accesses bytes that the generic one used, without a proxy fence between")
    SIM_EXIT = ("E3217", "a thread or its block ends while an asynchronous operation still runs")
    SIM_PEER_BEGIN = ("E3218", "a thread accesses the shared memory of a block that may not have begun")
    SIM_MBARRIER_FENCE = ("E3219", "a block uses an mbarrier without having synchronised with its initialisation")
    SIM_PEER_END = ("E3220", "a thread accesses the shared memory of a block that may have ended")
    SIM_CLUSTER_BARRIER = ("E3221", "a thread arrives twice at the cluster barrier, or waits without having arrived")
    SIM_WGMMA_FENCE = ("E3225", "a warpgroup multiplies with registers that its threads used, without a fence between")
    SIM_DESCRIPTOR = ("E3226", "a descriptor or a tensor map does not match the matrix in shared memory")
    SIM_REGISTERS = ("E3227", "a warpgroup requests a number of registers that the block cannot give it")
    SIM_METADATA = ("E3228", "the metadata of a sparse matrix do not name different elements of a chunk")
    SIM_SCALES = ("E3229", "a multiplication reads scales or narrow elements that are not where it reads them")
    SIM_UNWRITTEN = ("E3230", "a launch leaves elements of an output unwritten")
    SIM_STUCK = ("E3231", "warps wait for memory that no thread changes, or repeat a loop that changes nothing")
    SIM_PHASE = ("E3232", "a phase of an mbarrier may pass before a waiting thread looks")
    SIM_EXACT = ("E3240", "a launch in exact arithmetic has more numbers than a type has bit patterns")
    SIM_GRID = ("E3241", "the grid has fewer blocks than a tensor has tiles, so some tiles have no block")
    SIM_CONSTANT = ("E3242", "a load promises that nothing writes its data (nc), but the launch writes them")
    SIM_SECONDS = ("E3243", "the run takes more time than its budget allows")
    SIM_TENSOR_COLUMNS = ("E3260", "columns of tensor memory are allocated, used or freed incorrectly")
    SIM_TENSOR_LANES = ("E3261", "a warp reaches lanes of tensor memory that are not its own")
    SIM_TENSOR_BUSY = ("E3262", "cells of tensor memory are used while an earlier use of them still runs")
    SIM_TENSOR_FENCE = ("E3263", "two uses of tensor memory are ordered without the fences of tcgen05 between them")
    SIM_TENSOR_ISSUE = ("E3264", "an instruction of tcgen05 is issued by several threads, or committed by another one")
    SIM_TENSOR_PAIR = ("E3265", "the two blocks of a pair do not act together")
    SIM_TENSOR_RESIDENT = ("E3267", "blocks of a multiprocessor can deadlock on each other's columns of tensor memory")
    SIM_LAUNCH_CONTROL = ("E3266", "a cluster requests more work, or uses the answer, incorrectly")
    SIM_NAN = ("E3251", "an operation produces NaN from operands that are not NaN")
    SIM_INFINITY = ("E3252", "an operation produces infinity from finite operands")
    SIM_INDEX = ("E3253", "an integer that addresses memory wraps")
    SIM_LOSSY = ("E3254", "a conversion loses digits, or its operand is out of range")
    SIM_CANCELLATION = ("E3255", "a difference of rounded numbers loses almost all significant digits")

    CUDA_UNAVAILABLE = ("E3301", "there is no GPU or no CUDA driver")
    CUDA_FAILED = ("E3302", "the CUDA driver reports an error")

    HOST_CALL = ("E3401", "the host part of a program calls a forbidden C function, or calls one wrongly")
    HOST_ENVIRONMENT = ("E3402", "the program reads an environment variable that is unset or not allowed")
    HOST_POINTER = ("E3403", "the host part of a program follows an invalid pointer")
    HOST_ENTRY = ("E3404", "the program has no host function to start with")

    BUILD_OUTSIDE = ("E5001", "an operation of a kernel is used while no kernel is being built")
    BUILD_VALUE = ("E5002", "an operation of a kernel does not accept a value of this kind")
    BUILD_RUN_TIME = ("E5003", "Python needs a value that is known only when the kernel runs")
    BUILD_SOURCE = ("E5004", "the source of a function with control flow on values is not available")
    BUILD_FORM = ("E5005", "a kernel does not support a Python construct")
    BUILD_CARRIED = ("E5006", "control flow of the kernel cannot carry the value of a variable")
    BUILD_UNBOUND = ("E5007", "a variable has no value on some path through the kernel")
    BUILD_ESCAPED = ("E5008", "a value is used outside the branch or loop that computes it")
    BUILD_NAME = ("E5009", "no function, attribute or argument has this name, or an argument is missing")
    BUILD_ENDLESS = ("E5010", "building a kernel does not end, or takes too many steps")
    BUILD_PIPELINE = ("E5011", "the parameters of a pipeline or a tile scheduler are inconsistent")

    CLI_READ = ("E4001", "a file cannot be read")
    CLI_WRITE = ("E4002", "a file cannot be written")
    CLI_VALUE = ("E4003", "a command-line option has an unusable value")
    PACKAGE_MISSING = ("E4004", "a feature needs a package that is not installed")
    NO_MEMORY = ("E4005", "there is not enough memory")

    @property
    def id(self) -> str:
        """The code's text."""
        return self.value

    @property
    def area(self) -> str:
        """The subject of the code, such as `layout algebra`."""
        return next(area for digits, area in _AREAS.items() if self.id.startswith(digits))


class TilefoldError(Exception):
    """A mistake in the input of tilefold.

    `code` is from the catalogue, `message` names the failure and its place, and `hint` a cure (it may be empty).
    """

    def __init__(self, code: Code, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        text = message_text(f"{self.code}: {self.message}")
        return f"{text}\n  hint: {message_text(self.hint)}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (type(self), self.args), self.__dict__  # without __init__, whose parameters differ


def _unpickle(kind: type[TilefoldError], args: tuple[object, ...]) -> TilefoldError:
    """An error from another process, before it gets its attributes."""
    return kind.__new__(kind, *args)


class LayoutError(TilefoldError):
    """A layout operation that is not defined for its operands."""


class LayoutSyntaxError(LayoutError):
    """Text of layouts, or an expression of them, that is wrong; `text[offset:end]` is the offending part."""

    def __init__(self, code: Code, message: str, offset: int, end: int, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.offset = offset
        self.end = end

    def __str__(self) -> str:
        return f"{super().__str__()} (at character {self.offset})"
