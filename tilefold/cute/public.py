# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of the public vocabulary: they list their public names alone, and name the nearest one where one is missing.

A missing name is an error of ours by each way to it: the attribute of a module, `from ... import`, `import`.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.builder.tracing.cuda_names import CUDA_NAMES


class UnknownNameError(TilefoldError, AttributeError):
    """A module has no such attribute, so that `hasattr` is False."""


class UnknownImportError(TilefoldError, ModuleNotFoundError):
    """A module has nothing of this name to import."""


class _PublicModule(ModuleType):
    def __dir__(self) -> list[str]:
        return sorted(vars(self).get("__all__") or super().__dir__())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name not in CUDA_NAMES:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'", name=name, obj=self)
        raise UnknownNameError(*_unknown(self, name))


class _Missing(MetaPathFinder):
    """The last finder that Python asks, for a module that does not exist. Python would swallow the message of an
    attribute's error.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Raises UnknownImportError for a name behind that of a public module."""
        module, _, last = name.rpartition(".")
        holder = sys.modules.get(module)
        if isinstance(holder, _PublicModule) and not last.startswith("_"):
            raise UnknownImportError(*_unknown(holder, last))


def _unknown(module: ModuleType, name: str) -> tuple[Code, str, str]:
    """The code, the message and the hint for a name that a public module lacks."""
    from tilefold.compiler.builder.tracing.python_errors import unknown_name

    return unknown_name(module, name)


def publish(name: str) -> None:
    """Makes the module of this name one of the public vocabulary."""
    module = sys.modules[name]
    module.__class__ = _PublicModule
    vars(module).setdefault("__path__", [])  # or else Python does not ask for what is imported from it
    if not any(isinstance(finder, _Missing) for finder in sys.meta_path):
        sys.meta_path.append(_Missing())
