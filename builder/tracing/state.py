# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel that is being built: where its next operation goes, and which line of the user's it comes from."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast
from weakref import ref

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import MemoryEffectKind, Pure, has_effects, only_has_effect
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError, TilefoldError
from ...compiler.frontend.diagnostics import Diagnostic, Place, ProgramError, Severity
from ...compiler.frontend.source import MAX_OPERATIONS
from .source import place_of_code, places_of_traceback, spell_in_python, user_frame

if TYPE_CHECKING:
    from .host_function import HostFunction

MAX_STEPS = 1 << 20
"""The most iterations that Python does of loops in a kernel's functions."""
MAX_UNBOUNDED_OPERATIONS = 1 << 14
"""The most operations that Python builds in a loop of unknown length: a `while`, or a `for` over an iterator."""
_MOST_CALLS = 3
"""How many of the calls that led to an error are shown."""


@dataclass
class Builder:
    """A kernel under construction: operations go to the end of `block`.

    `convert` makes a value of a type of a number or a value: types come before the values that they make. `line` is the
    place of rewritten code, None for that of the user's frame. `unbound` has the reason and a hint for variables that
    control flow left without a value; `texts` has functions that the simulator executes in place of PTX texts,
    `registers` those of the kernel that texts declare. `threads` is the number of threads of a block, None if unknown.
    `contract` says whether sums of products are rounded once. `smem` are the bytes of shared memory that the launch
    gives, and `smem_by` is the function by which the kernel takes the memory at their start. `host` is the host
    function that launches the kernel, or runs itself. One thread of each warp executes the blocks `elected`. `at_end`
    adds operations. `maps` are those that the kernel writes to memory, by the tensor and the type of the atom.
    """

    block: Block
    convert: Callable[[Any, Any], Any]
    line: Place | None = None
    unbound: dict[str, tuple[str, str]] = field(default_factory=lambda: {})
    texts: dict[str, Callable[..., Any]] = field(default_factory=lambda: {})
    registers: dict[str, Any] = field(default_factory=lambda: {})
    threads: int | None = None
    contract: bool = False
    smem: int | None = None
    smem_by: str = ""
    host: "HostFunction | None" = None
    _pending: "list[ref[Fragment]]" = field(default_factory=lambda: [], repr=False)
    _entering: "list[ref[Fragment]]" = field(default_factory=lambda: [], repr=False)
    _root: Block | None = None
    _open: list[Block] = field(default_factory=lambda: [], repr=False)
    elected: list[Block] = field(default_factory=lambda: [], repr=False)
    at_end: list[Callable[[], None]] = field(default_factory=lambda: [], repr=False)
    maps: dict[tuple[SSAValue, Attribute], Any] = field(default_factory=lambda: {}, repr=False)
    _shared: dict[Attribute, SSAValue] = field(default_factory=lambda: {}, repr=False)
    _constants: dict[tuple[Block, Attribute], SSAValue] = field(default_factory=lambda: {}, repr=False)
    _count: int = 0
    _steps: int = 0
    _places: dict[tuple[CodeType, int], FileLineColLoc] = field(default_factory=lambda: {}, repr=False)

    def __post_init__(self) -> None:
        self._root = self.block
        self._open.append(self.block)

    @property
    def root(self) -> Block | None:
        """The block of the kernel itself, in no branch, loop or map."""
        return self._root

    @property
    def is_certain(self) -> bool:
        """Whether every thread executes the operations added now: they are in no branch, loop or map."""
        return self.block is self._root

    @property
    def open_blocks(self) -> frozenset[Block]:
        """The blocks that are being built, each within the one before."""
        return frozenset(self._open)

    def sees(self, value: SSAValue) -> bool:
        """Whether operations added now may use a value: it is not of a path that is complete."""
        return (value.owner if isinstance(value.owner, Block) else value.owner.parent) in self._open

    def location(self) -> FileLineColLoc | None:
        """The line and column of the user's code that is being executed; None outside the user's code."""
        if self.line is not None:
            return FileLineColLoc(StringAttr(self.line.file), IntAttr(self.line.line), IntAttr(self.line.column))
        frame = user_frame()
        if frame is None:
            return None
        key = frame.f_code, frame.f_lasti
        location = self._places.get(key)
        if location is None:
            place = place_of_code(*key, frame.f_globals)
            location = self._places[key] = FileLineColLoc(
                StringAttr(place.file), IntAttr(place.line), IntAttr(place.column)
            )
        return location

    def insert(self, op: Operation) -> None:
        """Adds an operation, at the user's line, after those of the current block."""
        self._locate(op)
        self._count += 1
        if self._count > MAX_OPERATIONS:
            self.refuse_endless(f"has more than {MAX_OPERATIONS} operations")
        self.block.add_op(op)

    def _locate(self, op: Operation) -> None:
        location = self.location()
        if location is not None:
            op.location = location

    @property
    def count(self) -> int:
        """The number of operations that were built."""
        return self._count

    def step(self, before: int | None = None) -> None:
        """Counts an iteration that Python does, of a loop that nothing bounds if `before` is the `count` when it began.
        Raises TilefoldError (E5010) where loops do not end.
        """
        self._steps += 1
        if self._steps > MAX_STEPS:
            self.refuse_endless(f"makes Python do more than {MAX_STEPS} iterations")
        if before is not None and self._count - before > MAX_UNBOUNDED_OPERATIONS:
            self.refuse_endless(f"has more than {MAX_UNBOUNDED_OPERATIONS} operations of one loop that nothing bounds")

    def refuse_endless(self, problem: str) -> NoReturn:
        """Raises TilefoldError (E5010) about a loop that Python runs."""
        raise TilefoldError(
            Code.BUILD_ENDLESS,
            f"the kernel {problem}; does a loop that Python runs never end?",
            "write `for i in cute.range(...)`, or a `while` whose condition is a value of the kernel",
        )

    def insert_after(self, value: SSAValue, op: Operation) -> None:
        """Adds an operation right where `value` is defined, so that it can be used wherever the value can."""
        self._locate(op)
        owner = value.owner
        if isinstance(owner, Block):
            Rewriter.insert_op(op, InsertPoint.at_start(owner))
        else:
            Rewriter.insert_op(op, InsertPoint.after(owner))

    def shared(self, key: Attribute, make: Callable[[], Operation]) -> SSAValue:
        """The result of `make`, once for a kernel and before everything else: it depends on nothing but `key`."""
        value = self._shared.get(key)
        if value is None:
            assert self._root is not None, "set on construction"
            op = make()
            self._locate(op)
            op.verify()
            Rewriter.insert_op(op, InsertPoint.at_start(self._root))
            value = self._shared[key] = op.results[0]
        return value

    def constant(self, value: Attribute) -> SSAValue:
        """A constant, once for each block that uses it."""
        key = self.block, value
        ssa = self._constants.get(key)
        if ssa is None or ssa.owner.parent is not self.block:
            from xdsl.dialects import arith

            op = arith.ConstantOp(cast("IntegerAttr[Any]", value))
            self.insert(op)
            ssa = self._constants[key] = op.result
        return ssa

    def defer(self, fragment: "Fragment", inside: bool = False) -> None:
        """Notes a fragment that reads tensors when its elements are computed, which is not yet; `inside` the block that
        is entered next.
        """
        (self._entering if inside else self._pending).append(ref(fragment))

    def materialize(self, keep: "Fragment | None" = None) -> None:
        """Computes the fragments that are still referenced, except `keep`, before the tensors they read change."""
        pending, self._pending = self._pending, []
        for reference in pending:
            fragment = reference()
            if fragment is keep and keep is not None:
                self._pending.append(reference)
            elif fragment is not None:
                fragment.materialize()

    @contextmanager
    def body(self, block: Block) -> Generator[Block, None, None]:
        """Within it, operations go to the end of the body of a `tile.map`, which computes one element, or to the
        beginning of a block that `inside` enters next.

        Fragments are computed around it, never in it.
        """
        outer, self.block = self.block, block
        self._open.append(block)
        pending, self._pending = self._pending, []
        try:
            yield block
        finally:
            self._open.pop()
            self.block = outer
            self._pending = pending + self._pending

    @contextmanager
    def inside(self, block: Block) -> Generator[Block, None, None]:
        """Within it, operations go to the end of another block: the body of a loop, for instance."""
        self.materialize()
        self._pending, self._entering = self._entering, []
        outer, self.block = self.block, block
        self._open.append(block)
        try:
            yield block
            self.materialize()
        finally:
            self._open.pop()
            self.block = outer

    @contextmanager
    def at(self, place: Place | None) -> Generator[None, None, None]:
        """Within it, operations come from `place`; None looks at the frames again."""
        outer, self.line = self.line, place
        try:
            yield
        finally:
            self.line = outer


_CURRENT: ContextVar[Builder | None] = ContextVar("tilefold_builder", default=None)


def host() -> "HostFunction | None":
    """The function of the host that is being executed, outside the kernels that it launches; None without one."""
    builder = _CURRENT.get()
    if builder is None or builder.host is None or builder.host.block is not builder.block:
        return None
    return builder.host


def is_of_host(value: SSAValue) -> bool:
    """Whether a value is one that the host computes, and not one that is known only when a kernel runs."""
    builder = _CURRENT.get()
    return builder is not None and builder.host is not None and is_of(builder.host.block, value)


def host_number(value: SSAValue) -> int | float | bool | None:
    """The number of a value that the host computes; None for a value that is known only when a kernel runs."""
    launching = host()
    return None if launching is None or not is_of_host(value) else launching.number(value)


def is_of(block: Block, value: SSAValue) -> bool:
    """Whether a value is an argument of a block or the result of one of its operations."""
    owner = value.owner
    return (owner if isinstance(owner, Block) else owner.parent) is block


def is_building() -> bool:
    """Whether a kernel is being built."""
    return _CURRENT.get() is not None


def current() -> Builder:
    """The kernel that is being built. Raises TilefoldError (E5001) outside one."""
    builder = _CURRENT.get()
    if builder is None:
        raise TilefoldError(
            Code.BUILD_OUTSIDE,
            "this operation belongs in a kernel, but no kernel is being built",
            "call it in a function that is decorated with @cute.kernel, which a launch or .build(block) builds",
        )
    return builder


@contextmanager
def suspended() -> Generator[None, None, None]:
    """Within it, nothing is being built: for kernels that a host function launches at once."""
    token = _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def building(
    block: Block, convert: Callable[[Any, Any], object], host: "HostFunction | None" = None
) -> Generator[Builder, None, None]:
    """Within it, the functions of this folder write operations to the end of `block`, and types make
    values by `convert`.

    An error that leaves it becomes a ProgramError that shows the line of the user's code.
    """
    builder = Builder(block, convert, host=host)
    token = _CURRENT.set(builder)
    try:
        yield builder
    except ProgramError:
        raise
    except (TilefoldError, VerifyException) as fault:
        error = fault if isinstance(fault, TilefoldError) else _as_tilefold_error(fault)
        if builder.block is getattr(host, "block", None) and not _is_of_line(error):
            raise error from fault.__cause__  # of a launch: it names the place that matters
        raise _shown(error, fault.__traceback__, builder.line) from fault
    except RecursionError as fault:
        error = TilefoldError(
            Code.BUILD_ENDLESS,
            "calls, branches or loops nest more deeply than Python allows; does a recursion never end?",
            "an 'if' on a value of the kernel builds both branches, so it ends no recursion; write a loop",
        )
        raise _shown(error, fault.__traceback__, builder.line) from None
    finally:
        _CURRENT.reset(token)


def _is_of_line(fault: Exception) -> bool:
    """Whether an error in a host function is about the line: the function's own, or the sizes and arguments of a
    launch.
    """
    of_call = (Code.RUN_LAUNCH, Code.RUN_ARGUMENT, Code.BUILD_NAME)
    of_launch = isinstance(fault, TilefoldError) and fault.code in of_call
    return of_launch or type(fault) in (TilefoldError, LayoutError)


def _shown(error: TilefoldError, traceback: TracebackType | None, line: Place | None) -> ProgramError:
    """An error with the user's line at which it was raised, and the calls that led there."""
    place, *calls = (line,) if line is not None else places_of_traceback(traceback) or (None,)
    notes = [Diagnostic(Severity.NOTE, "called here", place) for place in calls[:_MOST_CALLS]]
    fault = Diagnostic(Severity.ERROR, spell_in_python(error.message), place, error.code, spell_in_python(error.hint))
    return ProgramError([fault, *notes])


_READ = MemoryEffectKind.READ


class Fragment(Protocol):
    """Elements that are computed when they are needed."""

    def materialize(self) -> object:
        """Computes them here, unless they are already."""
        ...


def emit(op: Operation, is_materialized: bool = False) -> Operation:
    """Verifies an operation and adds it to the kernel that is being built. Raises TilefoldError if it breaks a rule.

    Before one that may write memory, or waits for others that do, fragments that read memory are computed, unless
    `is_materialized` says that it changes nothing that they read.
    """
    _verify(op)
    if not op.has_trait(Pure) and (side := host()) is not None:
        current().insert(op)
        side.effect(op)
        return op
    if not (is_materialized or op.has_trait(Pure) or (has_effects(op, _READ) and only_has_effect(op, _READ))):
        current().materialize()
    current().insert(op)
    return op


def _verify(op: Operation) -> None:
    """Raises TilefoldError if an operation, which is in no kernel yet, breaks a rule, and erases it then."""
    try:
        op.verify(verify_nested_ops=False)
    except VerifyException as error:
        op.erase()
        raise _as_tilefold_error(error, f"'{op.name}': ") from error


@contextmanager
def checked() -> Generator[None, None, None]:
    """Within it, an attribute or a type that breaks a rule raises TilefoldError."""
    try:
        yield
    except VerifyException as error:
        raise _as_tilefold_error(error) from error


def _as_tilefold_error(error: VerifyException, prefix: str = "") -> TilefoldError:
    """A verifier's refusal, as the error that caused it or one of its own."""
    cause = error.__cause__
    return cause if isinstance(cause, TilefoldError) else TilefoldError(Code.IR_VERIFY, f"{prefix}{error}")


def insert_value(op: Operation) -> SSAValue:
    """Adds an operation of one result, which is correct as it is made, and needs no verifying; returns the result."""
    current().insert(op)
    return op.results[0]
