# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds a module with one kernel from a Python function: calls the function on the kernel's arguments."""

import inspect
import re
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FileLineColLoc, IndexType, IntAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ..base.errors import Code, TilefoldError
from ..base.occupancy import REGISTERS
from ..base.target import MAX_SET_REGISTERS
from ..compiler.frontend.diagnostics import Diagnostic, ProgramError, Severity, place_of
from ..compiler.frontend.source import Source
from ..compiler.frontend.verify import refusal_of
from ..dialects.gpu import ModuleOp as GpuModuleOp
from ..dialects.kernel import LaunchBounds
from ..dialects.ptx import ActivemaskOp, BarWarpSyncOp, ElectSyncOp, SetMaxNRegOp, TensorCommitOp
from ..dialects.ptx.tcgen05.mma import TensorMmaBase
from ..dialects.tile import (
    CoordTensorType,
    CopyOp,
    GemmOp,
    PrefetchOp,
    ReturnOp,
    TensorType,
    TiledMmaType,
    TileKernelOp,
)
from ..dialects.tile.threads import ThreadViewOp, accesses, by_every_thread, is_thread_x
from ..layout.atoms.contract import Agent
from ..passes.analysis.thread_values import ThreadValues
from .capture import captured
from .control.objects import is_ours
from .control.variables import tree_of
from .scalars.casts import register_of
from .scalars.dtypes import DType
from .scalars.values import convert, wrap
from .tensors.gemm import ONE_THREAD
from .tensors.tensors import Tensor
from .tracing.python_errors import explain_error
from .tracing.source import PythonSource, place_of_line
from .tracing.state import building, host, is_building

if TYPE_CHECKING:
    from .tracing.host_function import HostFunction


def bounds_of(body: Block, bounds: LaunchBounds) -> LaunchBounds:
    """The bounds of a kernel: one whose warpgroups ask for registers (setmaxnreg inc) is launched with no more than the
    least number that one asks for, since the instruction cannot take registers away.
    """
    requested = [op.n.value.data for op in body.walk() if isinstance(op, SetMaxNRegOp) and op.inc is not None]
    if not requested or bounds.max_registers is not None:
        return bounds
    fitting = min(REGISTERS // (prod(bounds.threads) * (bounds.min_blocks or 1)), MAX_SET_REGISTERS)
    return bounds if fitting <= min(requested) else replace(bounds, max_registers=min(requested))


def drop_unused_coordinates(body: Block) -> None:
    """Erases the conversions of coordinates (x, y, z are read at once) that nothing uses."""
    for op in list(body.walk()):
        if isinstance(op, arith.IndexCastOp) and not op.result.uses and register_of(op.result) is not None:
            Rewriter.erase_op(op)


def assign_threads(kernel: TileKernelOp) -> None:
    """Finishes operations that depend on the threads that execute them."""
    copies = [op for op in kernel.walk() if _is_elected(op)]
    parts = [op for op in kernel.walk() if _is_part_beyond(op, kernel.block)]
    if kernel.block == (1, 1, 1) or not (copies or parts):
        return
    threads = ThreadValues(kernel)
    _elect(copies, threads)
    for op in parts:
        _wrap(op, threads)


def _wrap(op: Operation, threads: ThreadValues) -> None:
    """Takes the thread of a part of an MMA modulo the MMA's threads, as ThrMMA does, where others access the part.
    E0321 refuses a part that all threads access.
    """
    assert isinstance(op, ThreadViewOp)
    assert op.sharing is not None
    beyond = any(max(threads.executing(use), default=0) >= op.sharing for use in _uses(op.results[0]))
    if not beyond or any(map(by_every_thread, accesses(op.results[0]))):
        return
    index = op.coords[0]
    made = (count := arith.ConstantOp(IntegerAttr(op.sharing, IndexType())), arith.RemUIOp(index, count.result))
    for new in made:
        new.location = op.location
    block = op.parent_block()
    assert block is not None
    block.insert_ops_before(made, op)
    op.operands[list(op.operands).index(index)] = made[1].result


def _uses(value: SSAValue) -> Iterator[Operation]:
    """The operations on a tensor, itself or its views, that are not views."""
    for use in value.uses:
        views = [made for made in use.operation.results if isinstance(made.type, TensorType | CoordTensorType)]
        if not views:
            yield use.operation
        for view in views:
            yield from _uses(view)


def _is_part_beyond(op: Operation, block: tuple[int, int, int]) -> bool:
    """Whether it is a part of an MMA of a thread that may lie beyond the threads of the MMA."""
    return (
        isinstance(op, ThreadViewOp)
        and isinstance(op.operands[0].type, TiledMmaType)
        and is_thread_x(op.coords[0])
        and op.sharing is not None
        and block[0] > op.sharing
    )


def _elect(copies: list[Operation], threads: ThreadValues) -> None:
    """Puts copies that an elected thread issues, and prefetches of tensors, under `ptx.elect.sync`, unless a condition
    around them selects threads of a warp: then the program itself has chosen the thread. Behind a condition of data
    that may differ within a warp, the thread is one of those that are there.
    """
    elected: dict[tuple[Block, bool], SSAValue] = {}
    for op in copies:
        block = op.parent_block()
        if block is None or threads.chosen(op):
            continue
        group = block, op.name.startswith(_ARRIVAL)
        if group not in elected or group[1]:
            active = [] if threads.execute_uniformly(op) else [ActivemaskOp()]
            masks = [mask.result for mask in active]
            election = ElectSyncOp(*masks)
            # a barrier orders the other threads' accesses before an arrival of the one
            together = [BarWarpSyncOp(-1, *masks)] if op.name == _ARRIVAL else []
            for made in (*active, *together, election):
                made.location = op.location
                block.insert_op_before(made, op)
            elected[group] = election.results[0]
        body = Block()
        branch = scf.IfOp(elected[group], [], Region(body))
        block.insert_op_before(branch, op)
        op.detach()
        body.add_ops([op, end := scf.YieldOp()])
        branch.location = end.location = op.location


def _is_elected(op: Operation) -> bool:
    """Whether an elected thread of a warp issues an operation, as the contract of its atom says."""
    match op:
        case PrefetchOp():
            return op.tiles is not None
        case TensorCommitOp():
            return True
        case _ if op.name.startswith(_ARRIVAL) or isinstance(op, TensorMmaBase):
            return op.attributes.pop(ONE_THREAD, None) is not None
        case GemmOp():
            return op.mma_atom.atom.contract.agent in _OF_ONE_THREAD
        case CopyOp() if op.tma is not None:
            return op.tma.type.tma_copy.atom.contract.agent in _OF_ONE_THREAD
        case CopyOp():
            return op.copy_atom is not None and op.copy_atom.atom.contract.agent in _OF_ONE_THREAD
        case _:
            return False


_ARRIVAL = "ptx.mbarrier.arrive"
"""The operation by which a thread arrives, and the beginning of the names of its like: kernels without mbarriers do not
import them.
"""
_OF_ONE_THREAD = (Agent.ELECTED, Agent.BLOCK_PAIR)
"""The agents for which one thread acts."""


MODULE = "kernels"
"""The symbol of the module that holds the kernel."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the kernel: its name there, the type of a tensor in global memory, or of a scalar, the dtype that
    the function sees (None for that of the type), and the form in which it sees a tensor, such as an `Array`.
    """

    name: str
    type: Attribute
    dtype: DType | None = None
    view: Callable[[Tensor], object] | None = None


class DeferredArgument(NamedTuple):
    """An argument that is made of its `values`, which are parameters, as soon as these have values in the kernel."""

    make: Callable[[list[Any]], object]
    values: tuple[object, ...]


@dataclass(frozen=True)
class Traced:
    """A module that is verified, with one kernel of the name `kernel` and its launch bounds, its source, and the
    functions that the simulator executes in place of PTX texts. `captured` are the values of the host that its last
    parameters stand for, by name.
    """

    module: ModuleOp
    kernel: str
    bounds: LaunchBounds
    source: Source
    texts: Mapping[str, Callable[..., object]] = field(default_factory=lambda: MappingProxyType({}))
    captured: Mapping[str, SSAValue] = field(default_factory=lambda: MappingProxyType({}))


def trace(
    function: Callable[..., object],
    arguments: Mapping[str, object],
    bounds: LaunchBounds,
    name: str = "",
    contract: bool = False,
    smem: int | None = None,
) -> Traced:
    """Builds the kernel of a function, which is rewritten (or needs no rewriting). Its sums of products are rounded
    once where it may `contract`. The launch gives it `smem` bytes of shared memory, None where it does not say.

    Each `Parameter` in `arguments`, also one in a tuple, a list, a dictionary or a dataclass, becomes a parameter of
    the kernel; everything else is given to the function as it is. `bounds` are the kernel's. Raises ProgramError, at
    the user's line, for errors in the kernel; other exceptions of the function go through.

    It runs in a context of its own, so that an interrupt leaves no half-built kernel.
    """
    return copy_context().run(_trace, function, arguments, bounds, name, contract, smem)


def _trace(
    function: Callable[..., object],
    arguments: Mapping[str, object],
    bounds: LaunchBounds,
    name: str,
    contract: bool,
    smem: int | None,
) -> Traced:
    kernel = name or re.sub(r"\W", "_", function.__name__, flags=re.ASCII)
    launching = host()
    if is_building() and launching is None:
        hint = "launch it from the host, or move the shared part into a function decorated with @cute.jit"
        raise TilefoldError(Code.BUILD_FORM, f"the kernel '{kernel}' is launched within another kernel", hint)
    trees = {key: tree_of(value) for key, value in arguments.items()}
    parameters = [leaf for tree in trees.values() for leaf in tree.leaves if isinstance(leaf, Parameter)]
    block = Block(arg_types=[parameter.type for parameter in parameters])
    values = iter(block.args)
    given = {
        key: tree.rebuilt(
            [_value(next(values), leaf) if isinstance(leaf, Parameter) else leaf for leaf in tree.leaves], True
        )
        for key, tree in trees.items()
    }
    given = {key: x.make(list(x.values)) if isinstance(x, DeferredArgument) else x for key, x in given.items()}
    call = inspect.BoundArguments(inspect.signature(function), OrderedDict(given))
    code: Any = getattr(function, "__code__", None)
    place = FileLineColLoc(StringAttr(code.co_filename), IntAttr(code.co_firstlineno), IntAttr(1))
    with building(block, convert, launching) as builder, _restore_attributes(arguments.values()):
        builder.threads, builder.contract, builder.smem = prod(bounds.threads), contract, smem
        try:
            result = function(*call.args, **call.kwargs)
            for action in builder.at_end:
                action()
        except TilefoldError:
            raise
        except Exception as error:
            if (ours := explain_error(error, builder.unbound)) is not None:
                raise ours.with_traceback(error.__traceback__) from error
            error.add_note(f"while the kernel '{kernel}' was built")
            raise
    if result is not None:
        message = f"the kernel '{kernel}' returns a value of type {type(result).__name__}"
        at = place_of_line(code.co_filename, code.co_firstlineno)
        hint = "write results into a tensor"
        raise ProgramError([Diagnostic(Severity.ERROR, message, at, Code.BUILD_FORM, hint)])
    end = ReturnOp()
    block.add_op(end)
    names = [parameter.name for parameter in parameters]
    shared = {} if launching is None else _capture_host_values(block, launching, names)
    drop_unused_coordinates(block)
    bounds = bounds_of(block, bounds)
    op = TileKernelOp(kernel, names, bounds, Region(block))
    inner = GpuModuleOp.create(properties={"sym_name": StringAttr(MODULE)}, regions=[Region(Block([op]))])
    module = ModuleOp([inner])
    for part in (end, op, inner, module):
        part.location = place
    source = PythonSource(code.co_filename, module)
    _check_scopes(op, source)
    assign_threads(op)
    _verify(module, source)
    return Traced(module, kernel, bounds, source, builder.texts, shared)


def _capture_host_values(block: Block, launching: "HostFunction", names: list[str]) -> dict[str, SSAValue]:
    """The values of the host that become the last parameters of a kernel, by the names that are added to `names`."""
    shared: dict[str, SSAValue] = {}
    for parameter in captured(block, launching):
        name = wanted = parameter.value.name_hint or "n"
        count = 0
        while name in names:
            count += 1
            name = f"{wanted}_{count}"
        names.append(name)
        shared[name] = parameter.value
    return shared


@contextmanager
def _restore_attributes(arguments: Iterable[object]) -> Generator[None, None, None]:
    """After it, no attribute of an object among the arguments holds a value of this kernel."""
    before = [(argument, tree_of(argument)) for argument in arguments]
    try:
        yield
    finally:
        for argument, tree in before:
            known = set(map(id, tree.leaves))
            if any(is_ours(leaf) and id(leaf) not in known for leaf in tree_of(argument).leaves):
                tree.rebuilt(tree.leaves)


def _verify(module: ModuleOp, source: PythonSource) -> None:
    """Verifies operations with regions (the kernel, its loops and branches) and the parts of threads, whose rules are
    about the whole kernel. Other operations were verified as they were made.

    Raises ProgramError.
    """
    for op in module.walk():
        if op.regions or isinstance(op, ThreadViewOp):
            try:
                op.verify(verify_nested_ops=False)
            except VerifyException as error:
                raise ProgramError([refusal_of(op, error, source)]) from error


def _value(ssa: SSAValue, parameter: Parameter) -> object:
    if not isinstance(ssa.type, TensorType):
        return wrap(ssa, parameter.dtype)
    tensor = Tensor(ssa, parameter.dtype)
    return tensor if parameter.view is None else parameter.view(tensor)


def _check_scopes(kernel: Operation, source: PythonSource) -> None:
    """Refuses the use of a value outside the branch or loop that computes it. Raises ProgramError (E5008)."""
    visible: set[SSAValue] = set()
    problems: list[Diagnostic] = []

    def visit(block: Block) -> None:
        own: list[SSAValue] = list(block.args)
        visible.update(own)
        for op in block.ops:
            for operand in op.operands:
                if operand not in visible:
                    problems.append(_escape_error(op, operand, source))
            for region in op.regions:
                for inner in region.blocks:
                    visit(inner)
            own += op.results
            visible.update(op.results)
        visible.difference_update(own)

    visit(kernel.regions[0].block)
    if problems:
        raise ProgramError(problems[:1])


def _escape_error(op: Operation, operand: SSAValue, source: PythonSource) -> Diagnostic:
    owner = operand.owner
    around = owner if isinstance(owner, Block) else owner.parent_block()
    outer = around.parent_op() if around is not None else None
    line = "" if outer is None or (place := place_of(outer.location, source)) is None else f" at line {place.line}"
    word = "loop" if outer is not None and outer.name in ("scf.for", "scf.while") else "branch"
    return Diagnostic(
        Severity.ERROR,
        f"a value is used outside the {word}{line} that computes it",
        place_of(op.location, source),
        Code.BUILD_ESCAPED,
        "assign it to a variable that has a value before; attributes are followed only in objects of your own classes",
    )
