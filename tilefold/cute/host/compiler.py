# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.compile`."""

from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any

from tilefold.base.errors import Code, TilefoldError

from ..debugging_methods import shown
from ..jit import JitFunction
from ..parameters import Signature
from .options import CompileOptions, options_of
from .streams import FakeStream

if TYPE_CHECKING:
    from .compiled import CompiledFunction


class Compiler:
    """`cute.compile(f, *args)` and, with options, `cute.compile[options](f, *args)`."""

    def __init__(self, options: CompileOptions) -> None:
        self._options = options

    def __getitem__(self, options: object) -> "Compiler":
        return Compiler(options_of(options))

    def __call__(self, function: Any, *args: Any, options: Any = None, **kwargs: Any) -> "CompiledFunction":
        """Compiles a host function, decorated with `cute.jit`, a bound method of such, or an object whose
        `__call__` is one, for arguments: arrays, numbers, or descriptions of tensors. The arguments of a
        `functools.partial` are constants.

        The result is called with the arguments that are not `cute.Constexpr`. Raises ProgramError for a fault of the
        function or its kernels, TilefoldError (E5005) for anything else than a function.
        """
        from .compiled import CompiledFunction, TVMFFIJitCompiledFunction

        try:
            function, first, words = _without_partial(function)
            jit, owner = _function(function)
            whole = Signature(jit.function)
            bound = (*(() if owner is None else (owner,)), *first)
            own = {**dict(zip(whole.names, bound, strict=False)), **words}
            given = dict(whole.given((*bound, *args), {**words, **kwargs}))
            streams = {n: None for n, value in given.items() if isinstance(value, FakeStream) and value.environment}
            given |= streams
            constants = {name: value for name, value in given.items() if name in {*whole.constants, *own, *streams}}
            signature = Signature(jit.function, frozenset(constants))
            chosen = self._options if options is None else options_of(options)
            kind = TVMFFIJitCompiledFunction if chosen.enable_tvm_ffi else CompiledFunction
            made = kind(jit.function, signature, constants, chosen)
            made.prepare((), {name: value for name, value in given.items() if name not in constants})
        except TilefoldError as error:
            raise shown(error) from error.__cause__
        return made


def _without_partial(function: object) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A function, and the arguments that `functools.partial` has given it."""
    if not isinstance(function, partial):
        return function, (), {}
    inner, args, words = _without_partial(function.func)  # pyright: ignore[reportUnknownMemberType]
    return inner, (*args, *function.args), {**words, **function.keywords}


def _function(function: Any) -> tuple[JitFunction[..., Any], Any]:
    """The function that is compiled, and the object whose method it is."""
    if isinstance(function, MethodType):
        inner = function.__func__
        return _jit(inner), function.__self__
    if isinstance(function, JitFunction) or hasattr(function, "__code__"):
        return _jit(function), None
    for kind in type(function).__mro__:
        call = vars(kind).get("__call__")
        if isinstance(call, JitFunction):
            return _jit(call), function
    if isinstance(function, type):
        problem, hint = f"the class {function.__name__} cannot be compiled", f"pass an object: {function.__name__}(...)"
    else:
        problem = f"a {type(function).__name__} cannot be compiled"
        hint = "pass a function that is decorated with @cute.jit, or an object whose __call__ is"
    raise TilefoldError(Code.BUILD_FORM, problem, hint)


def _jit(function: Any) -> JitFunction[..., Any]:
    return function if isinstance(function, JitFunction) else JitFunction(function)  # pyright: ignore[reportUnknownVariableType]


compile = Compiler(CompileOptions())
"""Compiles host functions; see `Compiler.__call__`."""
