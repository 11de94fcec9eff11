# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A name that a program has and the vocabulary lacks, and the errors of its use."""

from types import ModuleType
from typing import NoReturn

from tilefold.base.errors import Code, TilefoldError


class UnknownNameError(TilefoldError, AttributeError):
    """A module has no such attribute, so that `hasattr` is False."""


class UnknownImportError(TilefoldError, ModuleNotFoundError):
    """A module has nothing of this name to import."""


class MissingName(ModuleType):
    """A name that is imported, not used; so are its attributes. A call, a comparison, or the like raises
    UnknownNameError (E5009).
    """

    problem: tuple[Code, str, str]

    def __init__(self, name: str, problem: tuple[Code, str, str]) -> None:
        super().__init__(name)
        vars(self).update(__path__=[], problem=problem)

    def __getattr__(self, name: str) -> "MissingName":
        if name.startswith("__"):
            raise AttributeError(f"'{self.__name__}' has no attribute '{name}'", name=name, obj=self)
        return MissingName(f"{self.__name__}.{name}", self.problem)

    def _use(self, *_: object, **__: object) -> NoReturn:
        raise UnknownNameError(*self.problem)

    __call__ = __iter__ = __len__ = __bool__ = __index__ = __int__ = __float__ = _use
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __le__ = __gt__ = __ge__ = _use

    def __eq__(self, other: object) -> bool:
        if self is other or other is None or isinstance(other, type) or type(other).__module__ == "typing":
            return self is other
        self._use()

    def __hash__(self) -> int:
        return id(self)

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __subclasscheck__(self, subclass: type) -> bool:
        return False

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """A class that derives from the name can be defined, and has no objects."""
        return (type(self.__name__.rpartition(".")[2], (), {"__new__": self._use}),)

    def __getitem__(self, key: object) -> "MissingName":
        """Annotations have such texts: `Name[int]`, `Name | None`."""
        return self

    __or__ = __ror__ = __getitem__
