# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of the public vocabulary: they list only their public names, and suggest the nearest one for a missing name.

A missing name is an error of ours as the attribute of a module and in `from ... import`. To answer `import` of a module
that does not exist takes a finder, which only `tilefold.cutlass.install` adds to the process. Where a program imports a
missing name by the name `cutlass`, the error comes with its use.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from types import FrameType, ModuleType
from typing import Any

from tilefold.base.errors import Code
from tilefold.builder.tracing.cuda_names import CUDA_NAMES

from .missing_name import MissingName, UnknownImportError, UnknownNameError


@dataclass(frozen=True)
class _Names:
    """The `__getattr__` of a module, after the one that it has itself."""

    module: ModuleType
    own: Callable[[str], Any] | None

    def __call__(self, name: str) -> Any:
        try:
            if self.own is not None:
                return self.own(name)
        except AttributeError as error:
            if error.name != name or error.obj is not self.module:
                raise
        if name.startswith("_") and name not in CUDA_NAMES:
            raise AttributeError(
                f"module '{self.module.__name__}' has no attribute '{name}'", name=name, obj=self.module
            )
        if _is_kept_by_module(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
            return MissingName(f"{self.module.__name__}.{name}", unknown(self.module, name))
        # Python would swallow the message of an attribute's error in `from ... import`; a finder is asked after it
        is_import = sys._getframe(1).f_code.co_name == "_handle_fromlist"  # pyright: ignore[reportPrivateUsage]
        is_asked = any(isinstance(finder, MissingModules) for finder in sys.meta_path)
        is_final = is_import and not is_asked and find_spec(f"{self.module.__name__}.{name}") is None
        raise (UnknownImportError if is_final else UnknownNameError)(*unknown(self.module, name))

    def listed(self) -> list[str]:
        """The names that `dir` lists."""
        return sorted(vars(self.module).get("__all__") or vars(self.module))


def _is_kept_by_module(frame: FrameType) -> bool:
    """Whether a module of a program, not the program itself, reads an attribute while it is imported: it may list
    names of several GPUs. `hasattr` and `getattr` are calls.
    """
    code = frame.f_code
    if code.co_name != "<module>" or frame.f_globals.get("__name__") == "__main__" or "cutlass" not in sys.modules:
        return False
    from dis import opname

    return opname[code.co_code[frame.f_lasti]] in ("LOAD_ATTR", "LOAD_METHOD")


class MissingModules(MetaPathFinder):
    """The last finder that Python asks, for a module that does not exist. Python would swallow the message of an
    attribute's error.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Raises UnknownImportError for a name behind that of a public module, unless `importlib.util.find_spec` asks
        whether there is one.
        """
        asking = sys._getframe(1).f_back  # pyright: ignore[reportPrivateUsage]
        if asking is not None and asking.f_code is find_spec.__code__:
            return
        module, _, last = name.rpartition(".")
        holder = sys.modules.get(module)
        if holder is not None and is_public(holder) and not last.startswith("_"):
            raise UnknownImportError(*unknown(holder, last))


def unknown(module: ModuleType, name: str) -> tuple[Code, str, str]:
    """The code, the message and the hint for a name that a public module lacks."""
    from tilefold.builder.tracing.python_errors import unknown_name

    return unknown_name(module, name)


def is_public(module: ModuleType) -> bool:
    """Whether a module is one of the public vocabulary."""
    return isinstance(vars(module).get("__getattr__"), _Names)


def publish(name: str) -> None:
    """Makes the module of this name one of the public vocabulary."""
    module = sys.modules[name]
    names = vars(module)
    own = names.get("__getattr__")
    if not isinstance(own, _Names):
        published = _Names(module, own)
        names.update(__getattr__=published, __dir__=published.listed)
        names.setdefault("__path__", [])  # or else Python does not look for its submodules
