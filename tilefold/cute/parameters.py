# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of a kernel's decorator, and the names by which its function gets values: its parameters, and the
outer names that it reads.

Outer names are the globals and the variables of enclosing functions that a kernel reads while it is built, its helpers'
too. A kernel is built anew where one of them has changed: a constant, a helper that a notebook's cell defines again, an
element of a list. A launch compares them by one comparison of tuples for each module, which takes a fraction of a
microsecond.
"""

import copy
import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from operator import itemgetter
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.scalars.dtypes import DType
from tilefold.runtime.arrays.signature import Dynamic, is_constexpr, read_annotation
from tilefold.runtime.errors import Dim3

if TYPE_CHECKING:
    from .specialise import BoundArguments

BoundArgumentsT = TypeVar("BoundArgumentsT", bound="BoundArguments")

MAX_BYTES = 1 << 16
"""The largest array whose contents are compared, and not only which array it is."""

_LIBRARIES = {"tilefold", "xdsl", "numpy", "torch", "jax", "cupy", *sys.stdlib_module_names} - {"__main__"}
"""The packages whose modules, functions and classes stay as they are."""


@dataclasses.dataclass(frozen=True)
class KernelOptions:
    """The options of a kernel's decorator: the kernel's name, the blocks that a multiprocessor is to hold at least, the
    most registers of a thread, whether the function's control flow is rewritten, the size of a cluster in blocks,
    whether it may exceed the portable size, and whether sums of products are rounded once.
    """

    name: str = ""
    min_blocks: int | None = None
    max_registers: int | None = None
    preprocessor: bool = True
    cluster: Dim3 | None = None
    non_portable: bool = False
    contract: bool = False


class Signature:
    """The parameters of a function, but for those `without`, and which of them are known while the kernel is built."""

    def __init__(self, function: Callable[..., object], without: Set[str] = frozenset()) -> None:
        self.function = function
        self.without = without

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature with annotations evaluated, where they can be."""
        try:
            signature = inspect.signature(self.function, eval_str=True)
        except Exception:  # an annotation that names something undefined is ignored
            signature = inspect.signature(self.function)
        return signature.replace(parameters=[p for p in signature.parameters.values() if p.name not in self.without])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(self.signature.parameters)

    @cached_property
    def is_plain(self) -> bool:
        """Whether each parameter has a name to be given by, and is one argument."""
        parameters = self.signature.parameters.values()
        return all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters)

    @cached_property
    def by_position(self) -> int:
        """The parameters that can be given by their position, where `is_plain` holds."""
        return sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in self.signature.parameters.values())

    @cached_property
    def defaults(self) -> Mapping[str, object]:
        """The values of parameters that a call need not give."""
        parameters = self.signature.parameters.values()
        return {p.name: p.default for p in parameters if p.default is not p.empty}

    @cached_property
    def constants(self) -> frozenset[str]:
        """The parameters that are known while the kernel is built."""
        parameters = self.signature.parameters.values()
        return frozenset(p.name for p in parameters if is_constexpr(p.annotation))

    @cached_property
    def rules(self) -> Mapping[str, Dynamic]:
        """The parameters that are annotated as dynamic tensors."""
        return {name: annotation for name, annotation in self.annotations.items() if isinstance(annotation, Dynamic)}

    @cached_property
    def ranges(self) -> Mapping[str, tuple[int, int]]:
        """The smallest and the largest number of each parameter that is annotated as an integer."""
        annotated = {name: dtype for name, dtype in self.annotations.items() if isinstance(dtype, DType)}
        return {name: (dtype.least, dtype.greatest) for name, dtype in annotated.items() if dtype.kind == "int"}

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> "BoundArguments":
        """The value of each parameter in a call. CallError for a call that does not fit."""
        from .specialise import BoundArguments

        return self.bound(self.given(args, kwargs), BoundArguments())

    def given(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments of a call by parameter. CallError for a call that does not fit."""
        if self.is_plain:
            return dict(zip(self.names, self.in_order(tuple(args), kwargs), strict=True))
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise self._unfit(str(error)) from None
        bound.apply_defaults()
        return bound.arguments

    def bind_in_order(self, args: Sequence[object]) -> "BoundArguments":
        """The same for the result of `in_order`."""
        from .specialise import BoundArguments

        return self.bound(dict(zip(self.names, args, strict=True)), BoundArguments())

    def bound(self, given: Mapping[str, object], made: BoundArgumentsT) -> BoundArgumentsT:
        """`made`, with the arguments of a call by parameter."""
        for name, value in given.items():
            made.arguments[name] = made.add(name, value, self.annotations[name])
        return made

    @cached_property
    def annotations(self) -> Mapping[str, object]:
        """The meaning of the annotations, by parameter."""
        parameters = self.signature.parameters.values()
        # of `*name: annotation` the annotation is that of each argument, not of the tuple
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return {
            p.name: None if p.kind in variadic and not is_constexpr(p.annotation) else read_annotation(p.annotation)
            for p in parameters
        }

    def in_order(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[Any, ...]:
        """The arguments of a call in the order of the parameters, where `is_plain` holds. CallError if it does not fit.

        Python's own binding takes much longer.
        """
        names, defaults = self.names, self.defaults
        if len(args) > self.by_position:
            raise self._unfit(f"takes {self.by_position} positional arguments but {len(args)} were given")
        for name in kwargs:
            if name not in names:
                raise self._unfit(f"got an unexpected keyword argument '{name}'")
            if name in names[: len(args)]:
                raise self._unfit(f"got multiple values for argument '{name}'")
        rest: list[object] = []
        for name in names[len(args) :]:
            if name in kwargs:
                rest.append(kwargs[name])
            elif name in defaults:
                rest.append(defaults[name])
            else:
                raise self._unfit(f"is missing a required argument: '{name}'")
        return (*args, *rest)

    def _unfit(self, problem: str) -> "CallError":
        name, hint = getattr(self.function, "__name__", "the kernel"), ", ".join(self.names)
        hint = f"it takes {hint}" if hint else ""
        if known := sorted(self.without & Signature(self.function).constants):
            hint = f"{hint or 'it takes nothing'}; {', '.join(known)} was given to cute.compile"
        return CallError(Code.BUILD_NAME, f"{name}() {problem}", hint)


class CallError(TilefoldError, TypeError):
    """A call that does not fit a function's parameters, which Python calls a TypeError."""


class OuterNames:
    """The names that functions read, with the values that they have now; `in_place` values are compared that change
    in place, too, such as lists.
    """

    def __init__(self, *functions: FunctionType, in_place: bool = True) -> None:
        self._spaces: dict[int, tuple[Mapping[str, Any], set[str]]] = {}
        self._cells: list[CellType] = []
        self._seen: set[int] = set()
        for function in functions:
            self._collect(function)
        # each name twice, since the getter of one name alone gives no tuple, whose comparison begins with identity
        keep: Callable[[Any], Any] = _snapshot if in_place else lambda value: value
        getters = [(itemgetter(*names, *names), space) for space, names in self._spaces.values() if names]
        self._kept = tuple((get, space, keep(get(space))) for get, space in getters)
        self._contents = tuple(keep(_cell_contents(cell)) for cell in self._cells)

    def have_changed(self) -> bool:
        """Whether one of the names has another value now, or none."""
        try:
            for get, space, kept in self._kept:
                if get(space) != kept:
                    return True
            return bool(self._cells) and tuple(map(_cell_contents, self._cells)) != self._contents
        except Exception:  # a name that is gone, or values that do not compare any more
            return True

    def _collect(self, function: FunctionType) -> None:
        if id(function.__code__) in self._seen or _is_library(function):
            return
        self._seen.add(id(function.__code__))
        used = set(_names(function.__code__))
        self._read(function.__globals__, used)
        for cell in function.__closure__ or ():
            if cell not in self._cells:
                self._cells.append(cell)
                self._follow(_cell_contents(cell), used)

    def _read(self, space: Mapping[str, object], used: set[str]) -> None:
        """Notes those of the names that a module or a class has."""
        _, names = self._spaces.setdefault(id(space), (space, set()))
        for name in sorted(used & space.keys() - names):
            names.add(name)
            self._follow(space[name], used)

    def _follow(self, value: object, used: set[str]) -> None:
        if not isinstance(value, ModuleType):
            value = getattr(value, "function", value)  # of a kernel, and of a helper
        if isinstance(value, FunctionType):
            self._collect(value)
        elif isinstance(value, ModuleType | type) and not _is_library(value):
            self._read(vars(value), used)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_library(value: object) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return (name or "").partition(".")[0] in _LIBRARIES


def _cell_contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has no value yet
        return None


class _Contents:
    """The contents of an array, which are compared element by element."""

    __array_ufunc__ = None
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, array: Any) -> None:
        self.type, self.shape, self.bytes = array.dtype, array.shape, array.tobytes()

    def __eq__(self, other: object) -> bool:
        given: Any = other
        return (given.dtype, given.shape, given.tobytes()) == (self.type, self.shape, self.bytes)


def _snapshot(value: Any) -> Any:
    """A value such that a later comparison tells whether it has changed, in place too."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is tuple:
        return tuple([_snapshot(part) for part in value])
    if kind is list:
        return [_snapshot(part) for part in value]
    if kind is dict:
        return {key: _snapshot(part) for key, part in value.items()}
    if kind.__module__ == "numpy" and hasattr(value, "tobytes") and value.nbytes <= MAX_BYTES:
        return _Contents(value)
    if kind is set or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        try:
            kept = copy.copy(value)
            return kept if kept == value else value
        except Exception:  # one that has no copies, or no comparison
            return value
    return value
